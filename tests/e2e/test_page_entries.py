"""Summary entries on the page in a real browser: list, ticks, cards that wait, settings, templates, a window of its own (RS-81 to RS-95)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from playwright.async_api import Browser, Locator, expect

from tests.e2e import browser, entry_scenes, page_audit
from tests.e2e.browser import NARROW, WIDE, House, Tab, house_over, until
from tests.e2e.entry_scenes import RECAPS
from tests.e2e.page_look import look
from tests.e2e.page_scenes import LANGUAGES, LIVES
from tests.e2e.recall_scenes import PASTS

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

ROWS = RECAPS["en"].rows


async def settled(house: House, language: str = "en", *, waits: bool = True, many: int = 1) -> str:
    """A chat with entries."""
    chat = await house.me.api.chat(title=PASTS[language].title)
    entry_scenes.settle(house.gateway.data_dir, chat, house.me.id, language, waits=waits, many=many)
    return chat


async def show(tab: Tab, chat: str, more: str = "") -> None:
    await tab.go(f"memory/entries/{chat}{more}")
    await expect(tab.page.locator(".entry").first).to_be_visible()
    await expect(tab.page.locator(".skeleton")).to_have_count(0)


async def open_fold(tab: Tab, name: str) -> None:
    await tab.page.locator(".recall-fold > summary").filter(has_text=name).click()


def row(tab: Tab, name: str) -> Locator:
    return tab.page.locator(".entry").filter(has_text=name)


async def _ticked(tab: Tab, chat: str) -> None:
    await show(tab, chat)
    await tab.page.locator(".entry summary").first.click()
    await tab.page.locator(".entry-tick").nth(1).click()


async def _folds(tab: Tab, chat: str) -> None:
    await show(tab, chat)
    for fold in await tab.page.locator(".recall-fold > summary").all():
        await fold.click()
    await expect(tab.page.locator(".entry-template")).to_be_visible()


async def _edit(tab: Tab, chat: str) -> None:
    await show(tab, chat)
    await tab.page.locator(".entry .icon-button").first.click()
    await tab.page.locator(".menu-item").first.click()
    await expect(tab.page.locator(".memory-edit textarea")).to_be_visible()


async def _write(tab: Tab, chat: str) -> None:
    await show(tab, chat)
    await tab.page.locator(".entries-tools .button").nth(1).click()
    await tab.dialog.locator(".segment").nth(1).click()


View = Callable[[Tab, str], Awaitable[None]]
VIEWS: Mapping[str, View] = {
    "ticked": _ticked,
    "folds": _folds,
    "edit": _edit,
    "write": _write,
    "alone": lambda tab, chat: show(tab, chat, "?alone=1"),
}


@pytest.mark.slow
@pytest.mark.rule("WO-12", "WO-20", "RS-83")
async def test_the_panel_is_whole_in_each_language_width_and_theme(chromium: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    async with house_over(tmp_path, chromium, name="entries looks") as house:
        for language in LANGUAGES:
            async with house.someone(LIVES[language].name) as house.me:
                chat = await settled(house, language)
                async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": LIVES[language].zone}) as done:
                    assert done.status == 200
                async with house.tab(locale=language, timezone_id=LIVES[language].zone) as tab:
                    for name, visit in VIEWS.items():
                        await visit(tab, chat)
                        await look(tab, f"entries-{name}", language, faults)
                        await tab.page.keyboard.press("Escape")
    assert not faults, "\n".join(faults)


@pytest.mark.rule("RS-83", "RS-94")
async def test_an_entry_is_expanded_switched_edited_and_deleted_and_all_of_it_lasts(house: House) -> None:
    chat = await settled(house, waits=False)
    async with house.tab() as tab:
        await show(tab, chat)
        plan = row(tab, ROWS[0][0])
        await expect(plan).to_contain_text("Messages 1 to 8 · 8 messages · about")
        await expect(plan.locator(".memory-text")).not_to_be_visible()
        await plan.locator("summary").click()
        await expect(plan.locator(".memory-text")).to_have_text(ROWS[0][1])
        await plan.get_by_role("switch").uncheck()
        await expect(plan).to_have_class("memory entry is-inactive")
        await expect(plan.locator(".memory-text")).to_be_visible()  # what was open stays open
        await expect(plan.get_by_role("switch")).to_be_focused()
        await plan.locator(".icon-button").click()
        await tab.page.get_by_role("menuitem", name="Edit").click()
        await tab.page.get_by_label("Title").fill("Maple leaves")
        await tab.page.locator(".memory-edit textarea").fill("Kyoto, in November, without the crowds.")
        await tab.page.get_by_role("button", name="Save").first.click()
        await expect(row(tab, "Maple leaves").get_by_text("Written by hand")).to_be_visible()
        await row(tab, ROWS[2][0]).locator(".icon-button").click()
        await tab.page.get_by_role("menuitem", name="Delete").click()
        await expect(tab.dialog).to_contain_text(f"Delete “{ROWS[2][0]}”?")
        await tab.dialog.get_by_role("button", name="Delete").click()
        await expect(tab.page.locator(".entry")).to_have_count(4)
        await tab.page.reload()
        await expect(row(tab, "Maple leaves")).to_have_class("memory entry is-inactive")
        await expect(tab.page.locator(".entry")).to_have_count(4)


@pytest.mark.rule("RS-84")
async def test_three_of_ten_are_ticked_with_shift_and_switched_in_one_request(house: House) -> None:
    chat = await settled(house, waits=False, many=2)
    async with house.tab() as tab:
        await show(tab, chat)
        sent: list[str] = []
        tab.page.on("request", lambda request: sent.append(request.post_data or "") if request.url.endswith("/entries/switch") else None)
        ticks, switches = tab.page.locator(".entry-tick"), tab.page.locator(".entry").get_by_role("switch")
        await expect(ticks).to_have_count(10)
        await ticks.nth(5).click()
        await ticks.nth(7).click(modifiers=["Shift"])
        await expect(tab.page.locator(".entry-tick:checked")).to_have_count(3)
        await expect(tab.page.get_by_text("3 selected")).to_be_visible()
        await tab.page.get_by_role("button", name="Disable selected").click()
        await expect(tab.page.get_by_text("3 selected")).not_to_be_visible()
        assert len(sent) == 1
        for at in (5, 6, 7):
            await expect(switches.nth(at)).not_to_be_checked()
        await tab.page.get_by_label("Show inactive").uncheck()
        shown = await tab.page.locator(".entry").count()
        assert 0 < shown < 10
        for at in range(shown):
            await expect(switches.nth(at)).to_be_checked()
        await tab.page.get_by_label("Show inactive").check()
        await expect(ticks).to_have_count(10)
        await tab.page.get_by_role("button", name="More for all entries").click()
        await tab.page.get_by_role("menuitem", name="Switch all off").click()
        await expect(tab.page.get_by_text("0 of 10 on")).to_be_visible()
        await ticks.nth(0).focus()  # by keyboard alone
        await tab.page.keyboard.press("Space")
        await expect(tab.page.get_by_text("1 selected")).to_be_visible()
        await tab.page.get_by_role("button", name="Enable selected").click()
        await expect(tab.page.get_by_text("1 of 10 on")).to_be_visible()
        assert await page_audit.tab_order(tab.page) == []


@pytest.mark.rule("WO-12")
async def test_a_long_list_comes_by_pages_and_the_focus_goes_on(house: House) -> None:
    chat = await settled(house, waits=False)
    for _ in range(100):
        await house.me.api.post(f"/api/chats/{chat}/entries", {"action": "write", "text": "x", "last": 5}, status=201)
    async with house.tab() as tab:
        await show(tab, chat)
        await expect(tab.page.locator(".entry")).to_have_count(100)
        await tab.page.get_by_role("button", name="Show more (5)").press("Enter")
        await expect(tab.page.locator(".entry")).to_have_count(105)
        await expect(tab.page.locator(".entry-tick").nth(100)).to_be_focused()
        await expect(tab.page.get_by_role("button", name="Show more")).to_have_count(0)


@pytest.mark.rule("RS-85")
async def test_cards_that_wait_are_approved_or_declined(house: House) -> None:
    chat = await settled(house)
    async with house.tab() as tab:
        await show(tab, chat)
        cards = tab.page.locator(".entry-card")
        await expect(cards).to_have_count(2)
        await expect(tab.page.locator(".entry")).to_have_count(5)
        await cards.first.get_by_role("button", name="Approve").click()
        await expect(cards).to_have_count(1)
        await expect(row(tab, RECAPS["en"].waits[0][0]).get_by_role("switch")).to_be_checked()
        await cards.first.get_by_role("button", name="Decline").click()
        await expect(cards).to_have_count(0)
        await expect(tab.page.locator(".entry")).to_have_count(6)


@pytest.mark.rule("RS-82")
async def test_write_takes_a_range_and_names_what_is_wrong_with_it(house: House) -> None:
    chat = await settled(house, waits=False)
    async with house.tab() as tab:
        tab.forgives("422")
        await show(tab, chat)
        await tab.page.get_by_role("button", name="Write", exact=True).click()
        await tab.dialog.get_by_label("Title").fill("Lanterns")
        await tab.dialog.get_by_label("Text").fill("They buy a paper lantern.")
        await tab.dialog.locator(".segment", has_text="A range").click()
        await tab.dialog.get_by_label("From message").fill("50")
        await tab.dialog.get_by_label("To message").fill("44")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.dialog).to_contain_text("The end of the range lies before its start.")
        await tab.dialog.get_by_label("To message").fill("58")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(row(tab, "Lanterns")).to_contain_text("Messages 50 to 58 · 9 messages")
        await tab.page.get_by_role("button", name="Generate", exact=True).click()
        await tab.dialog.get_by_label("Number of messages").fill("4")
        await tab.dialog.get_by_role("button", name="Generate").click()
        assert await tab.dialog.locator("input:invalid").count() == 1, "the field itself refuses less than five"


@pytest.mark.rule("RS-82", "RS-85")
async def test_a_generated_entry_appears_as_a_card_without_a_reload(house: House) -> None:
    chat = await settled(house, waits=False)
    house.script.otherwise = '{"title": "Rain", "text": "It rains, and they stay for tea."}'
    async with house.tab() as tab:
        await show(tab, chat)
        await open_fold(tab, "How entries are made")
        await tab.page.get_by_role("switch", name="Ask me before").check()
        await tab.page.locator(".entries-settings button[type=submit]").click()
        await tab.told("Saved")
        await tab.page.get_by_role("button", name="Generate", exact=True).click()
        await tab.dialog.get_by_label("Number of messages").fill("8")
        await tab.dialog.get_by_role("button", name="Generate").click()
        await expect(tab.page.locator(".entry-card")).to_contain_text("It rains, and they stay for tea.")
    house.script.otherwise = None


@pytest.mark.rule("RS-86", "RS-90", "RS-91", "RS-92")
async def test_settings_last_and_the_number_of_uncovered_messages_leads_to_backfill(house: House) -> None:
    chat = await settled(house, waits=False)
    house.script.otherwise = '{"title": "Later", "text": "They talk about later."}'
    async with house.tab() as tab:
        await show(tab, chat)
        await open_fold(tab, "How entries are made")
        await expect(tab.page.locator(".entries-uncovered")).to_contain_text("messages are in no summary and are still sent")
        await tab.page.get_by_role("switch", name="Make entries by itself").check()
        await tab.page.get_by_label("Every so many").fill("12")
        await tab.page.get_by_role("switch", name="Hide summarised").check()
        await tab.page.get_by_label("Summarised messages that").fill("3")
        await tab.page.get_by_role("switch", name="Fold hidden").check()
        await tab.page.locator(".entries-settings button[type=submit]").click()
        await tab.told("Saved")
        await tab.page.reload()
        await open_fold(tab, "How entries are made")
        await expect(tab.page.get_by_label("Every so many")).to_have_value("12")
        await expect(tab.page.get_by_label("Summarised messages that")).to_have_value("3")
        for name in ("Make entries by itself", "Hide summarised", "Fold hidden"):
            await expect(tab.page.get_by_role("switch", name=name)).to_be_checked()
        await expect(tab.page.locator(".entry").first).to_be_visible()
        before = await tab.page.locator(".entry").count()
        await tab.page.get_by_role("button", name="Backfill").click()
        await expect(tab.page.locator(".entry")).not_to_have_count(before)
    house.script.otherwise = None


@pytest.mark.rule("RS-88")
async def test_a_chat_s_own_wording_is_marked_and_templates_are_shared(house: House) -> None:
    chat = await settled(house, waits=False)
    async with house.tab() as tab:
        await show(tab, chat)
        await open_fold(tab, "Words that ask")
        await tab.page.get_by_role("button", name="Own wording for this chat").click()
        await tab.dialog.locator("textarea").fill("Sum it up in one line.")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.page.locator(".recall-fold .pill")).to_have_text("Own wording")
        await expect(tab.page.locator(".entry-override")).to_contain_text("Sum it up in one line.")
        await tab.page.reload()
        await expect(tab.page.locator(".recall-fold .pill")).to_have_text("Own wording")
        await open_fold(tab, "Words that ask")
        await tab.page.get_by_role("button", name="Use the shared template again").click()
        await expect(tab.page.locator(".recall-fold .pill")).to_have_count(0)
        await _template_menu(tab, "New template")
        await tab.dialog.get_by_label("Name").fill("Diary")
        await tab.dialog.locator("textarea").fill("Write a diary entry.")
        await tab.dialog.get_by_role("button", name="Save").click()
        await tab.page.get_by_label("Template", exact=True).select_option("Diary")
        await expect(tab.page.locator(".entries-settings .memory-quote")).to_have_text("Write a diary entry.")
        await _template_menu(tab, "Duplicate")
        await expect(tab.page.get_by_label("Template", exact=True).locator("option")).to_have_count(3)
        await _template_menu(tab, "Delete")
        await tab.dialog.get_by_role("button", name="Delete").click()
        await expect(tab.page.get_by_label("Template", exact=True).locator("option")).to_have_count(2)
        await expect(tab.page.get_by_label("Template", exact=True)).to_have_value("0")


async def _template_menu(tab: Tab, item: str) -> None:
    await tab.page.get_by_role("button", name="More for templates").click()
    await tab.page.get_by_role("menuitem", name=item, exact=True).click()


@pytest.mark.rule("RS-81")
async def test_the_panel_opens_in_a_window_of_its_own_and_both_show_the_same(house: House) -> None:
    chat = await settled(house, waits=False)
    async with house.tab() as tab:
        await show(tab, chat)
        async with tab.page.expect_popup() as coming:
            await tab.page.get_by_role("button", name="Open in its own window").click()
        beside = await coming.value
        await expect(beside.locator(".entry")).to_have_count(5)
        await expect(beside.locator(".side")).to_have_count(0)
        await expect(beside.get_by_role("button", name="Open in its own window")).to_have_count(0)
        first = beside.locator(".entry").filter(has_text=ROWS[0][0])
        await first.get_by_role("switch").uncheck()
        await expect(row(tab, ROWS[0][0])).to_have_class("memory entry is-inactive")
        await beside.close()
        await tab.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        await expect(tab.page.get_by_role("button", name="Open in its own window")).not_to_be_visible()


@pytest.mark.rule("RS-90")
async def test_the_chat_folds_hidden_messages_and_opens_them_again(house: House) -> None:
    chat = await settled(house, waits=False)
    settings = {"hide": True, "tail": 0, "collapse": True}
    async with house.me.api.http.patch(f"{house.url}/api/chats/{chat}/entries/settings", json=settings) as done:
        assert done.status == 200
    async with house.tab() as tab:
        await tab.go(f"chat/{chat}")
        folds, messages = tab.page.locator(".message-fold"), tab.page.locator(".message[data-id]:visible")
        await expect(folds).to_have_text(["4 messages stand in a summary", "8 messages stand in a summary"])  # of the 40 newest messages
        await expect(messages).to_have_count(28)
        talk = tab.page.locator(".talk")
        await until(lambda: talk.evaluate("(talk) => talk.scrollHeight - talk.clientHeight - talk.scrollTop < 2"), True)  # it opens at its end
        await talk.evaluate("(talk) => { talk.scrollTop = 0; }")
        await expect(folds).to_have_text(["8 messages stand in a summary"] * 3)  # older ones came, and fold with those that were there
        await expect(messages).to_have_count(36)
        await folds.nth(1).get_by_role("button").press("Enter")
        await expect(folds.nth(1).get_by_role("button")).to_have_attribute("aria-expanded", "true")
        await expect(messages).to_have_count(44)
        await folds.nth(1).get_by_role("button").press("Enter")
        await expect(messages).to_have_count(36)


@pytest.mark.rule("RS-90")
async def test_a_talk_that_folding_makes_too_short_to_scroll_still_shows_its_beginning(house: House) -> None:
    chat = await settled(house, waits=False)
    await house.me.api.post(f"/api/chats/{chat}/entries", {"action": "write", "text": "All of it.", "first": 5, "to": 59}, status=201)
    async with house.me.api.http.patch(
        f"{house.url}/api/chats/{chat}/entries/settings", json={"hide": True, "tail": 0, "collapse": True}
    ) as done:
        assert done.status == 200
    async with house.tab() as tab:
        await tab.go(f"chat/{chat}")
        await expect(tab.page.locator(".message-fold")).to_have_text(["59 messages stand in a summary"])
        await expect(tab.page.locator(".message[data-id]:visible")).to_have_count(1)


PARTS = (
    ("saved", "Saved", ""),
    ("conversation", "Chats", "Conversation"),
    ("entries", "Chats", "Entries"),
    ("calendar", "Chats", "Calendar"),
    ("chunks", "Chats", "Passages"),
    ("files", "Notes", "Files"),
    ("days", "Notes", "Daily notes"),
    ("dreams", "Notes", "Dreams"),
    ("me", "You", ""),
)


@pytest.mark.rule("WO-20")
async def test_the_parts_of_memory_stand_in_two_rows_that_never_wrap(house: House) -> None:
    chat = await settled(house, waits=False)
    async with house.tab() as tab:
        await show(tab, chat)
        for width in (NARROW[0], 900, WIDE[0]):
            await tab.page.set_viewport_size({"width": width, "height": 800})
            for links in (".tab", ".tab-below"):
                tops = await tab.page.locator(links).evaluate_all("(found) => found.map((each) => each.getBoundingClientRect().top)")
                assert len(set(tops)) == 1, (width, links)
            for here, name in ((".tab[aria-current=true]", "Chats"), (".tab-below[aria-current=page]", "Entries")):
                await expect(tab.page.locator(here)).to_have_text(name)
                await expect(tab.page.locator(here)).to_be_in_viewport(ratio=1)
        await tab.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        for name, group, page in PARTS:
            await tab.go(f"memory/{name}")
            current = tab.page.locator(".tabs-frame [aria-current]")
            await expect(current).to_have_text([group, page] if page else [group])
            await expect(tab.page.locator(".tabs-frame [aria-current=page]")).to_have_text(page or group)
            await expect(current.last).to_be_in_viewport(ratio=1)
        await show(tab, chat)
        await tab.page.get_by_role("link", name="Passages", exact=True).click()
        await expect(tab.page.locator(".saved-title h2")).to_have_text(PASTS["en"].title)
        assert chat in tab.page.url, "the chat that is open stays open"
