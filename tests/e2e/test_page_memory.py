"""The memory page in a real browser: files, daily notes, dreams; by keyboard, in three languages, two widths and two themes (WO-12)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, Route, expect

from tests.e2e import browser, memory_scenes, page_audit
from tests.e2e.browser import NARROW, WIDE, House, Tab, house_over
from tests.e2e.memory_scenes import MEMORIES, today
from tests.e2e.page_look import look
from tests.e2e.page_scenes import LANGUAGES, LIVES

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


def folder(house: House) -> Path:
    """Where the files of the present person lie."""
    return house.gateway.data_dir.parent / "people" / house.me.id


def lived(house: House, language: str = "en") -> Path:
    scope = f"people/{house.me.id}"
    memory_scenes.settle(house.gateway.data_dir, scope, language)
    memory_scenes.dream(house.gateway.data_dir, scope, language)
    return folder(house)


async def open_file(tab: Tab, path: str) -> None:
    await tab.go(f"memory/files/{path}")
    await expect(tab.page.locator(".file-title h2")).to_have_text(path)
    await expect(tab.page.locator(".file-pane .skeleton")).to_have_count(0)


def mode(tab: Tab, name: str) -> Locator:
    return tab.page.locator(".file-actions .segment", has_text=name)


async def edit(tab: Tab, text: str) -> Locator:
    await mode(tab, "Edit").click()
    field = tab.page.get_by_role("textbox", name="Text of")
    await field.fill(text)
    return field


# -- how it looks ------------------------------------------------------------------------------------------------------


async def _at(tab: Tab, address: str, seen: str) -> None:
    await tab.go(address)
    await expect(tab.page.locator(seen).first).to_be_visible()
    await expect(tab.page.locator(".skeleton")).to_have_count(0)


async def _edited(tab: Tab) -> None:
    await _at(tab, "memory/files/MEMORY.md", ".file-view")
    await tab.page.locator(".file-actions .segment").nth(1).click()
    await tab.page.locator(".file-text").press_sequentially(" ")


async def _history(tab: Tab) -> None:
    await tab.page.locator(".file-foot .button").first.click()  # what was typed is given up
    await tab.page.locator(".file-actions .icon-button").first.click()
    await expect(tab.page.locator(".revisions .drawer-body > *").first).to_be_visible()


async def _menu_closed(tab: Tab) -> None:
    await tab.page.keyboard.press("Escape")
    await _at(tab, "memory/dreams", ".memory-tab.is-dreams .dreams > *")


VIEWS: Mapping[str, Callable[[Tab, str], Awaitable[None]]] = {
    "files": lambda tab, _: _at(tab, "memory/files", ".file-row"),
    "file": lambda tab, _: _at(tab, "memory/files/MEMORY.md", ".file-view"),
    "edit": lambda tab, _: _edited(tab),
    "history": lambda tab, _: _history(tab),
    "dreams": lambda tab, _: _menu_closed(tab),
    "page": lambda tab, page: _at(tab, f"memory/files/knowledge/{page}.md", ".file-view table"),
    "missing": lambda tab, _: _at(tab, "memory/files/knowledge/nothing.md", ".file-pane .state"),
    "days": lambda tab, _: _at(tab, "memory/days", ".month"),
    "day": lambda tab, _: _at(tab, f"memory/days/{today()}", ".day-section"),
}


@pytest.mark.slow
@pytest.mark.rule("WO-12", "WD-67")
async def test_the_memory_page_is_whole_in_each_language_width_and_theme(chromium: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    async with house_over(tmp_path, chromium, name="memory looks") as house:
        for language in LANGUAGES:
            async with house.someone(LIVES[language].name) as house.me:
                lived(house, language)
                async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": LIVES[language].zone}) as answer:
                    assert answer.status == 200
                async with house.tab(locale=language, timezone_id=LIVES[language].zone) as tab:
                    tab.forgives("404")  # the view `missing`
                    for name, visit in VIEWS.items():
                        await visit(tab, MEMORIES[language].page[0])
                        await look(tab, f"memory-{name}", language, faults)
    assert not faults, "\n".join(faults)


@pytest.mark.rule("WO-12")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_the_keyboard_reaches_everything_of_the_memory(house: House, size: tuple[int, int]) -> None:
    lived(house)
    async with house.tab(size=size) as tab:
        for name in ("files", "file", "day", "dreams"):
            await VIEWS[name](tab, MEMORIES["en"].page[0])
            assert await page_audit.tab_order(tab.page) == [], name


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-5", "WD-67", "WD-7")
async def test_a_file_is_read_with_the_origin_of_its_lines_and_the_room_it_takes(house: House) -> None:
    lived(house)
    async with house.tab() as tab:
        tab.forgives("404")
        await tab.page.get_by_role("link", name="Memory", exact=True).click()
        await tab.page.get_by_role("link", name="Notes", exact=True).click()
        await tab.page.get_by_role("link", name="MEMORY.md").click()
        lines = tab.page.locator(".file-line")
        await expect(lines).to_have_count(len(MEMORIES["en"].facts))
        await expect(lines.nth(0).locator(".origin")).to_have_text("from what was said · dream")
        await expect(lines.nth(2).locator(".origin")).to_have_count(0)  # the person's own
        await expect(lines.nth(3).locator(".origin")).to_have_text("from other texts too · dream")
        await expect(tab.page.get_by_role("meter", name="Room in the prompt")).to_have_attribute("aria-valuemax", "4000")
        await tab.go(f"memory/files/memory/dreams/{today().isoformat()}.md")
        await expect(tab.page.get_by_text("Nothing here yet")).to_be_visible()


@pytest.mark.rule("WO-12", "WD-88")
async def test_older_texts_are_a_sheet_from_below_on_a_narrow_page(house: House) -> None:
    lived(house)
    async with house.tab(size=NARROW) as tab:
        await VIEWS["file"](tab, MEMORIES["en"].page[0])
        await tab.page.locator(".file-actions .icon-button").first.click()
        sheet = tab.page.locator(".revisions")
        await expect(sheet.locator(".drawer-body > *").first).to_be_visible()
        box = await sheet.bounding_box()
        assert box is not None
        assert (box["x"], box["width"], box["y"] + box["height"]) == (0, *NARROW)


@pytest.mark.rule("WD-17", "WD-19")
async def test_an_edit_is_saved_by_keyboard_and_can_be_undone_at_once(house: House) -> None:
    file = lived(house) / "MEMORY.md"
    before = file.read_text(encoding="utf-8")
    async with house.tab() as tab:
        await open_file(tab, "MEMORY.md")
        field = await edit(tab, "- 京都が好き\n- likes tea\n")
        await expect(tab.page.get_by_text("Not saved yet").last).to_be_visible()
        await field.press("Control+s")
        await expect(tab.page.locator(".file-line")).to_have_count(2)
        assert file.read_text(encoding="utf-8") == "- 京都が好き\n- likes tea\n"
        await tab.page.locator(".toast").get_by_role("button", name="Undo").click()
        await expect(tab.page.locator(".file-line")).to_have_count(len(MEMORIES["en"].facts))
        assert file.read_text(encoding="utf-8") == before


@pytest.mark.rule("WO-12", "WD-17")
async def test_what_is_typed_while_a_text_is_being_saved_stays_and_can_be_saved_as_well(house: House) -> None:
    file = lived(house) / "MEMORY.md"
    go = asyncio.Event()

    async def slow(route: Route) -> None:
        if route.request.method == "PUT":
            await go.wait()
        await route.continue_()

    async with house.tab() as tab:
        await tab.page.route("**/api/memory/files/**", slow)
        await open_file(tab, "MEMORY.md")
        field = await edit(tab, "- likes tea\n")
        await field.press("Control+s")
        await field.press_sequentially("- and ")
        go.set()
        await tab.told("MEMORY.md is saved")
        await expect(field).to_be_focused()
        await field.press_sequentially("soba")
        await expect(field).to_have_value("- likes tea\n- and soba")
        assert file.read_text(encoding="utf-8") == "- likes tea\n"
        await field.press("Control+s")
        await expect(tab.page.locator(".file-line")).to_have_text(["likes tea", "and soba"])
        assert file.read_text(encoding="utf-8").rstrip() == "- likes tea\n- and soba"


async def test_unsaved_words_outlive_a_look_at_another_page_and_end_with_cancel(house: House) -> None:
    file = lived(house) / "MEMORY.md"
    before = file.read_text(encoding="utf-8")
    async with house.tab() as tab:
        await open_file(tab, "MEMORY.md")
        await edit(tab, "- half a thought")
        await tab.go("memory/days")
        await expect(tab.page.locator(".month")).to_be_visible()
        await tab.go("memory/files/user.md")
        await expect(tab.page.locator(".file-row", has_text="MEMORY.md").locator(".unsaved")).to_have_count(1)
        await tab.page.get_by_role("link", name="MEMORY.md").click()
        await expect(tab.page.get_by_role("textbox", name="Text of")).to_have_value("- half a thought")
        await tab.page.get_by_role("button", name="Cancel").click()
        await expect(tab.page.locator(".file-line")).to_have_count(len(MEMORIES["en"].facts))
        assert file.read_text(encoding="utf-8") == before


async def _clash(house: House, tab: Tab) -> Path:
    """Two edits of one file, the second of which is refused."""
    file = lived(house) / "knowledge" / "garden.md"
    file.write_text("- roses\n", encoding="utf-8")
    tab.forgives("409")
    await open_file(tab, "knowledge/garden.md")
    await edit(tab, "- roses\n- lilies\n")
    file.write_text("- roses\n- thyme\n", encoding="utf-8")
    await tab.page.get_by_role("button", name="Save").click()
    await expect(tab.page.get_by_role("heading", name="knowledge/garden.md was changed meanwhile")).to_be_focused()
    await expect(tab.page.get_by_role("region", name="What changed meanwhile").locator("ins")).to_have_text("- thyme")
    await expect(tab.page.get_by_role("region", name="What yours would change now").locator("ins")).to_have_text("- lilies")
    assert file.read_text(encoding="utf-8") == "- roses\n- thyme\n"
    assert await page_audit.structure(tab.page) == []
    return file


@pytest.mark.rule("WD-17")
async def test_in_a_conflict_theirs_can_be_taken(house: House) -> None:
    async with house.tab() as tab:
        file = await _clash(house, tab)
        faults: list[str] = []
        await look(tab, "memory-conflict", "en", faults)
        assert not faults, "\n".join(faults)
        await tab.page.get_by_role("button", name="Take theirs").click()
        await expect(tab.page.locator(".file-line")).to_have_text(["roses", "thyme"])
        assert file.read_text(encoding="utf-8") == "- roses\n- thyme\n"


@pytest.mark.rule("WD-17")
async def test_in_a_conflict_mine_can_be_kept_and_theirs_stays_among_the_older_texts(house: House) -> None:
    async with house.tab() as tab:
        file = await _clash(house, tab)
        await tab.page.get_by_role("button", name="Keep mine on top").click()
        await expect(tab.page.locator(".file-line")).to_have_text(["roses", "lilies"])
        assert file.read_text(encoding="utf-8") == "- roses\n- lilies\n"
        await tab.page.get_by_role("button", name="Older texts").click()
        await tab.page.locator(".revision summary").first.click()
        await expect(tab.page.locator(".revision del")).to_have_text("- thyme")


@pytest.mark.rule("WD-17")
async def test_in_a_conflict_both_can_be_merged_by_hand(house: House) -> None:
    async with house.tab() as tab:
        file = await _clash(house, tab)
        await tab.page.get_by_role("button", name="Merge by hand").click()
        field = tab.page.get_by_role("textbox", name="Text of")
        await expect(field).to_have_value("- roses\n- lilies\n")
        await expect(tab.page.locator(".meanwhile ins")).to_have_text("- thyme")
        await field.fill("- roses\n- thyme\n- lilies\n")
        await tab.page.get_by_role("button", name="Save").click()
        await expect(tab.page.locator(".file-line")).to_have_text(["roses", "thyme", "lilies"])
        assert file.read_text(encoding="utf-8") == "- roses\n- thyme\n- lilies\n"


@pytest.mark.rule("WD-88", "WD-19")
async def test_an_older_text_is_compared_and_brought_back(house: House) -> None:
    file = lived(house) / "knowledge" / "garden.md"
    async with house.tab() as tab:
        await open_file(tab, "knowledge/garden.md")
        await edit(tab, "- only this\n")
        await tab.page.get_by_role("button", name="Save").click()
        await expect(tab.page.locator(".file-line")).to_have_text(["only this"])
        await tab.page.get_by_role("button", name="Older texts").click()
        drawer = tab.page.get_by_role("dialog", name="Older texts")
        await drawer.locator("summary").first.click()
        await expect(drawer.locator("ins")).to_have_text("- only this")
        assert await page_audit.structure(tab.page) == []
        await drawer.get_by_role("button", name="Bring this text back").click()
        await expect(drawer).to_have_count(0)
        await expect(tab.page.locator(".file-view table")).to_be_visible()
        assert file.read_text(encoding="utf-8") == MEMORIES["en"].page[1]


@pytest.mark.rule("WD-19")
async def test_deleting_names_the_file_and_its_lines_and_can_be_undone(house: House) -> None:
    file = lived(house) / "user.md"
    before = file.read_text(encoding="utf-8")
    async with house.tab() as tab:
        tab.forgives("404")
        await open_file(tab, "user.md")
        await tab.page.locator(".file-actions").get_by_role("button", name="Actions").click()
        await tab.page.get_by_role("menuitem", name="Delete file").click()
        await expect(tab.dialog.get_by_role("heading")).to_have_text("Delete user.md?")
        await expect(tab.dialog).to_contain_text("It has 3 lines.")
        await tab.dialog.get_by_role("button", name="Delete file").click()
        await expect(tab.page.get_by_text("Nothing here yet")).to_be_visible()
        assert not file.exists()
        await tab.page.locator(".toast").get_by_role("button", name="Undo").click()
        await expect(tab.page.locator(".file-line")).to_have_count(3)
        assert file.read_text(encoding="utf-8") == before


@pytest.mark.rule("WD-20")
async def test_a_new_page_is_made_and_an_impossible_name_is_refused_with_the_words_kept(house: House) -> None:
    lived(house)
    async with house.tab() as tab:
        tab.forgives("404", "422")
        await tab.go("memory/files")
        for name, path in (("旅行", "knowledge/旅行.md"), ("skills/x", "skills/x.md")):
            await tab.page.get_by_role("button", name="New page").click()
            await tab.dialog.get_by_role("textbox").fill(name)
            await tab.dialog.get_by_role("button", name="Begin").click()
            await expect(tab.page.locator(".file-title h2")).to_have_text(path)
            if path.startswith("skills"):
                await expect(tab.page.get_by_role("alert")).to_contain_text("This name cannot be used here.")
            else:
                await tab.page.get_by_role("button", name="Write it").click()
                await tab.page.get_by_role("textbox", name="Text of").fill("京都へ\n")
                await tab.page.get_by_role("button", name="Save").click()
                await expect(tab.page.locator(".file-line")).to_have_text(["京都へ"])
        assert (folder(house) / "knowledge" / "旅行.md").read_text(encoding="utf-8") == "京都へ\n"
        assert not (folder(house) / "skills").exists()


@pytest.mark.rule("WO-12", "WD-23")
async def test_a_list_that_fails_says_so_and_words_stay_while_the_gate_is_away(house: House) -> None:
    file = lived(house) / "knowledge" / "garden.md"
    (folder(house) / "knowledge" / "broken.md").write_bytes(b"\xff")
    async with house.tab() as tab:
        tab.forgives("500", "ERR_")
        await tab.page.route("**/api/memory/files*", lambda route: route.fulfill(status=500, body="broken"))
        await tab.go("memory/files")
        await expect(tab.page.get_by_role("alert")).to_contain_text("(500)")
        await tab.page.unroute("**/api/memory/files*")
        await tab.page.get_by_role("button", name="Try again").click()
        await expect(tab.page.get_by_text("1 file is left alone")).to_be_visible()
        await open_file(tab, "knowledge/garden.md")
        field = await edit(tab, "- typed without a line\n")
        await tab.page.context.set_offline(True)
        await tab.page.get_by_role("button", name="Save").click()
        await expect(tab.page.locator(".file-form").get_by_role("alert")).to_be_visible()
        await expect(field).to_have_value("- typed without a line\n")
        await tab.page.context.set_offline(False)
        await field.press("Control+s")
        await expect(tab.page.locator(".file-line")).to_have_text(["typed without a line"])
        assert file.read_text(encoding="utf-8") == "- typed without a line\n"


@pytest.mark.rule("WD-9", "WD-10")
async def test_an_owner_chooses_a_space_and_the_place_stays_with_it(house: House) -> None:
    lived(house)
    memory_scenes.add_space(house.gateway.data_dir, "s-abcdefghij", "Reading circle")
    circle = house.gateway.data_dir.parent / "spaces" / "s-abcdefghij"
    circle.mkdir(parents=True, exist_ok=True)
    (circle / "MEMORY.md").write_text("- reads on Fridays\n", encoding="utf-8")
    async with house.tab() as tab:
        await open_file(tab, "MEMORY.md")
        await tab.page.get_by_label("Whose memory").select_option("spaces/s-abcdefghij")
        await tab.page.get_by_role("link", name="MEMORY.md").click()
        await expect(tab.page.locator(".file-line")).to_have_text(["reads on Fridays"])
        await expect(tab.page.locator(".file-row", has_text="space.md")).to_contain_text("not there yet")
        await tab.page.reload()
        await expect(tab.page.locator(".file-line")).to_have_text(["reads on Fridays"])
        await expect(tab.page.get_by_label("Whose memory")).to_have_value("spaces/s-abcdefghij")


@pytest.mark.rule("WD-9")
async def test_a_user_has_a_memory_of_their_own_and_a_guest_by_role_has_none(house: House) -> None:
    for role, links in (("user", 1), ("guest", 0)):
        (person,) = await house.add({"name": f"Kaede, {role}", "role": role})
        async with house.tab(stranger=True) as tab:
            await tab.page.goto(await house.link(person))
            await expect(tab.field).to_be_visible()
            await expect(tab.page.get_by_role("link", name="Memory", exact=True)).to_have_count(links)
            await tab.go("memory")
            await expect(tab.page.locator(".file-row" if links else "main.is-new").first).to_be_visible()
            await expect(tab.page.get_by_label("Whose memory")).to_have_count(0)


# -- daily notes -------------------------------------------------------------------------------------------------------


async def test_an_address_of_a_date_that_is_none_opens_the_month_of_today(house: House) -> None:
    lived(house)
    async with house.tab() as tab:
        await tab.go("memory/days/2026-02-30")
        await expect(tab.page.locator(".day[aria-current=date]")).to_be_visible()
        await expect(tab.page.locator(".day[aria-pressed=true]")).to_have_count(0)


@pytest.mark.rule("WO-12", "WD-67")
async def test_days_are_walked_by_keyboard_and_open_with_their_sections(house: House) -> None:
    lived(house)
    async with house.tab() as tab:
        await tab.go(f"memory/days/{today()}")
        await expect(tab.page.locator(".day-section h3")).to_have_text(["Earlier in a long chat", "Summary of the day"])
        await expect(tab.page.locator(".origin").first).to_have_text("from what was said · summary")
        cell = tab.page.locator(".day[aria-current=date]")
        await expect(cell).to_have_attribute("aria-pressed", "true")
        await cell.focus()
        keys = tab.page.keyboard
        title = tab.page.locator(".month-head h2")
        shown = await title.inner_text()
        await keys.press("PageUp")
        await expect(title).not_to_have_text(shown)
        await keys.press("PageDown")
        await expect(title).to_have_text(shown)
        await expect(tab.page.locator(".day:focus")).to_have_count(1)
        for back in (1, 2):  # each step may turn to another month, which comes from the gateway
            await keys.press("ArrowLeft")
            day = today() - timedelta(days=back)
            await expect(tab.page.locator(".day:focus")).to_have_attribute("aria-label", re.compile(rf"(?=.*\b{day.day}\b)(?=.*{day:%B})"))
        await keys.press("Enter")
        await expect(tab.page.locator(".day-head h2")).to_be_visible()
        await expect(tab.page).not_to_have_url(f"{house.url}/#/memory/days/{today()}")
        await expect(tab.page.locator(".day[tabindex='0']")).to_have_count(1)


@pytest.mark.rule("WO-12")
async def test_a_month_that_comes_late_does_not_replace_the_one_turned_to_since(house: House) -> None:
    async with house.tab() as tab:
        await tab.go("memory/days")
        title = tab.page.locator(".month-head h2")
        shown = await title.inner_text()
        held, go = asyncio.Event(), asyncio.Event()

        async def slow(route: Route) -> None:
            held.set()
            await go.wait()
            await route.continue_()

        month = re.compile(r"/api/memory/days\?")
        await tab.page.route(month, slow, times=1)
        await tab.page.get_by_role("button", name="Month before").click()
        await held.wait()
        await tab.page.get_by_role("button", name="Month after").click()
        await expect(title).not_to_have_text(shown)
        after = await title.inner_text()
        async with tab.page.expect_response(month) as late:
            go.set()
        await (await late.value).finished()
        await tab.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        await expect(title).to_have_text(after)


async def test_a_memory_without_notes_or_dreams_says_what_will_come(house: House) -> None:
    async with house.tab() as tab:
        await tab.go("memory/days")
        await expect(tab.page.get_by_text("No notes yet")).to_be_visible()
        await tab.go("memory/dreams")
        await expect(tab.page.get_by_text("No dreams yet")).to_be_visible()
        await tab.go("memory/files")
        await expect(tab.page.locator(".file-row")).to_have_count(2)
        await expect(tab.page.locator(".file-row").first).to_contain_text("not there yet")




# -- dreams ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-77", "WD-78")
async def test_dreams_read_like_a_diary_with_a_quiet_difference(house: House) -> None:
    lived(house)
    async with house.tab() as tab:
        await tab.go("memory/dreams")
        dreams = tab.page.locator(".dream")
        await expect(dreams).to_have_count(3)
        await expect(dreams.nth(0)).to_contain_text("refused")
        await expect(dreams.nth(0)).to_contain_text("4 of 4 lines would go; the limit is 1. Nothing was changed.")
        told = dreams.nth(1)
        await expect(told.locator(".dream-story")).to_have_text(MEMORIES["en"].story)
        await expect(told.locator("h3")).to_have_text(["Added1", "Changed1", "Let go1", "Looked at and left2"])
        await expect(told.locator(".change.is-dropped")).to_contain_text("outdated")
        await expect(told.locator(".change.is-merged del")).to_have_count(2)


@pytest.mark.rule("WD-89")
async def test_undo_asks_once_names_the_count_and_tells_what_it_did(house: House) -> None:
    file = lived(house) / "MEMORY.md"
    facts, notes = MEMORIES["en"].facts, MEMORIES["en"].notes
    async with house.tab() as tab:
        await tab.go("memory/dreams")
        await tab.page.get_by_role("button", name="Undo the last change").click()
        await expect(tab.dialog.get_by_role("heading").first).to_have_text("Undo 3 lines of MEMORY.md?")
        await tab.dialog.get_by_role("button", name="Undo", exact=True).click()
        done = tab.page.get_by_role("dialog", name="Taken back")
        await expect(done.locator("del")).to_have_text([facts[0][0], facts[1][0]])
        await expect(done.locator("ins")).to_have_text([notes[1][0]])
        await done.get_by_role("button", name="Done").click()
        await expect(tab.page.locator(".dream").nth(1)).to_contain_text("taken back")
        await expect(tab.page.get_by_role("button", name="Undo the last change")).to_have_count(0)
        text = file.read_text(encoding="utf-8")
        assert (facts[0][0] in text, notes[1][0] in text, facts[2][0] in text) == (False, True, True)


@pytest.mark.rule("WD-68", "WD-81")
async def test_what_waits_is_accepted_or_discarded_and_a_large_one_asks_again(house: House) -> None:
    file = lived(house) / "MEMORY.md"
    async with house.tab() as tab:
        await tab.go("memory/dreams")
        cards = tab.page.locator(".proposal")
        await expect(tab.page.get_by_role("heading", name="2 things wait for your yes")).to_be_visible()
        line = cards.filter(has_text="A line that rests on other people’s words")
        await line.get_by_role("button", name="Accept").click()
        await expect(cards).to_have_count(1)
        assert MEMORIES["en"].notes[1][0] in file.read_text(encoding="utf-8")
        await cards.get_by_role("button", name="Accept").click()
        await expect(tab.dialog.get_by_role("heading")).to_contain_text("changed lines of MEMORY.md?")
        await tab.dialog.get_by_role("button", name="Cancel").click()
        await cards.get_by_role("button", name="Discard").click()
        await expect(cards).to_have_count(0)
        await expect(tab.page.get_by_text("for your yes", exact=False)).to_have_count(0)


@pytest.mark.rule("WD-63", "WD-64")
async def test_a_dream_is_asked_for_with_its_days(house: House) -> None:
    lived(house)
    async with house.tab() as tab:
        await tab.go("memory/dreams")
        await tab.page.get_by_role("button", name="Dream now").click()
        await expect(tab.dialog.get_by_label("Days", exact=True)).to_be_focused()
        await tab.dialog.get_by_label("Days", exact=True).fill("5")
        await tab.dialog.get_by_role("button", name="Start").click()
        await tab.told("A dream of 5 days has begun")
