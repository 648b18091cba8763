"""Saved memories on the page in a real browser: lists, rows, dialogs; by keyboard, in three languages, two widths and two themes (WO-12, WO-20)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Route, expect

from gateway.config import Config
from memory.embedders.hashed import hash_embedder
from memory.ports import Embedder
from tests.e2e import browser, page_audit, saved_scenes
from tests.e2e.browser import NARROW, WIDE, House, Tab, house_over, until
from tests.e2e.page_look import look
from tests.e2e.page_scenes import LANGUAGES, LIVES
from tests.e2e.saved_scenes import SAVED
from tests.harness import eventually

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

CONFIG: Mapping[str, Any] = {"characters": {"default": {"name": "Yume"}, "kaito": {"name": "Kaito"}}, "saved": {"match_floor": {"hash": -1.0}}}


@asynccontextmanager
async def ageing_house(folder: Path, chromium: Browser, name: str, **config: Any) -> AsyncGenerator[House]:
    """A house whose memories can sleep: an embedder is there and measured."""
    embedder = hash_embedder()

    def ready(_config: Config) -> Embedder:
        return embedder

    saved = {**CONFIG["saved"], **config.pop("saved", {})}
    async with house_over(folder, chromium, config={**CONFIG, **config, "saved": saved}, name=name, embedder=ready) as house:

        async def is_ready() -> bool:
            return (await house.me.api.get("/api/memories"))["limits"]["ageing"]

        await eventually(is_ready)
        yield house


async def lived(house: House, language: str = "en") -> None:
    saved_scenes.settle(house.gateway.data_dir, house.me.id, language)


async def add(house: House, content: str, kind: str = "global", **more: Any) -> dict[str, Any]:
    return (await house.me.api.post("/api/memories", {"list": kind, "content": content, **more}))["memory"]


async def open_list(tab: Tab, address: str = "global") -> None:
    await tab.go(f"memory/saved/{address}")
    await expect(tab.page.locator(".saved-pane h2")).to_be_visible()
    await expect(tab.page.locator(".skeleton")).to_have_count(0)


def rows(tab: Tab) -> Locator:
    return tab.page.locator(".memory .memory-text")


def row(tab: Tab, text: str) -> Locator:
    return tab.page.locator(".memory").filter(has_text=text)


async def act(tab: Tab, text: str, item: str) -> None:
    await row(tab, text).locator("[data-part=more]").click()
    await tab.page.get_by_role("menuitem", name=item, exact=True).click()


async def act_on_list(tab: Tab, item: str) -> None:
    await tab.page.locator(".saved-head .icon-button").click()
    await tab.page.get_by_role("menuitem", name=item, exact=True).click()


# -- how it looks ------------------------------------------------------------------------------------------------------


async def _overview(tab: Tab) -> None:
    await tab.go("memory")
    await expect(tab.page.locator(".saved-lists .file-row").first).to_be_visible()
    await expect(tab.page.locator(".skeleton")).to_have_count(0)


async def _plain(tab: Tab, address: str) -> None:
    await tab.go(address)
    await expect(tab.page.locator(".cards .card").nth(1)).to_be_visible()
    await expect(tab.page.locator(".skeleton")).to_have_count(0)


async def _edit(tab: Tab) -> None:
    await open_list(tab)
    await tab.page.locator(".memory [data-part=more]").nth(4).click()
    await tab.page.locator(".menu-item").first.click()
    await expect(tab.page.locator(".memory-edit textarea")).to_be_visible()


async def _changes(tab: Tab) -> None:
    await open_list(tab, "character/default")
    await tab.page.locator(".saved-changes summary").click()


async def _dialog(tab: Tab, at: int) -> None:
    await open_list(tab)
    await tab.page.locator(".saved-head .icon-button").click()
    await tab.page.locator(".menu-item").nth(at).click()
    await expect(tab.dialog).to_be_visible()
    await expect(tab.page.locator(".skeleton")).to_have_count(0)


async def _add(tab: Tab) -> None:
    await open_list(tab)
    await tab.page.locator(".saved-head .button.primary").click()
    await tab.dialog.locator("textarea").fill("x" * 480)


async def _drafts(tab: Tab, house: House, language: str) -> None:
    house.will(json.dumps({"memories": list(SAVED[language].own[:3])}))
    await _dialog(tab, 0)
    await tab.dialog.locator("textarea").fill(SAVED[language].describe)
    await tab.dialog.locator("footer .primary").click()
    await expect(tab.dialog.locator(".draft")).to_have_count(3)


async def _limits(tab: Tab) -> None:
    await open_list(tab)
    await tab.page.locator(".memory [data-part=more]").nth(4).click()
    await tab.page.locator(".menu-item").nth(1).click()
    await expect(tab.dialog).to_be_visible()


async def _clear_pins(tab: Tab) -> None:
    await _dialog(tab, 4)
    await tab.dialog.locator("footer .danger").click()
    await expect(tab.dialog.locator(".quote-list")).to_be_visible()


View = Callable[[Tab, House, str], Awaitable[None]]
VIEWS: Mapping[str, View] = {
    "overview": lambda tab, _house, _language: _overview(tab),
    "lists": lambda tab, _house, _language: open_list(tab),
    "edit": lambda tab, _house, _language: _edit(tab),
    "changes": lambda tab, _house, _language: _changes(tab),
    "empty": lambda tab, _house, _language: open_list(tab, "character/kaito"),
    "me": lambda tab, _house, _language: _plain(tab, "memory/me"),
    "all-limits": lambda tab, _house, _language: _plain(tab, "limits"),
    "switches": lambda tab, _house, _language: open_list(tab, "switches"),
    "add": lambda tab, _house, _language: _add(tab),
    "limits": lambda tab, _house, _language: _limits(tab),
    "drafts": _drafts,
    "from-chat": lambda tab, _house, _language: _dialog(tab, 1),
    "clear-pins": lambda tab, _house, _language: _clear_pins(tab),
}


@pytest.mark.slow
@pytest.mark.rule("WO-12", "WO-20", "WO-21", "WO-22")
async def test_saved_memories_are_whole_in_each_language_width_and_theme(chromium: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    async with ageing_house(tmp_path, chromium, "saved looks") as house:
        for language in LANGUAGES:
            async with house.someone(LIVES[language].name) as house.me:
                await lived(house, language)
                question, answer = LIVES[language].talk[0]
                house.will(answer)
                chat = await house.me.api.chat(title=LIVES[language].title)
                await house.me.api.say(chat, question)
                await house.me.api.answers(chat)
                async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": LIVES[language].zone}) as done:
                    assert done.status == 200
                async with house.tab(locale=language, timezone_id=LIVES[language].zone) as tab:
                    for name, visit in VIEWS.items():
                        await visit(tab, house, language)
                        await look(tab, f"saved-{name}", language, faults)
                        await tab.page.keyboard.press("Escape")
    assert not faults, "\n".join(faults)


@pytest.mark.rule("WO-12")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_the_keyboard_reaches_everything_of_the_saved_memories(house: House, size: tuple[int, int]) -> None:
    await lived(house)
    async with house.tab(size=size) as tab:
        for address in ("global", "switches"):
            await open_list(tab, address)
            assert await page_audit.tab_order(tab.page) == [], address
        await tab.go("memory")
        await expect(tab.page.locator(".saved-lists .file-row").first).to_be_visible()
        await expect(tab.page.locator(".skeleton")).to_have_count(0)
        assert await page_audit.tab_order(tab.page) == []


@pytest.mark.rule("WO-12", "SM-74")
async def test_a_memory_is_added_pinned_edited_and_deleted_by_keyboard_alone(house: House) -> None:
    async with house.tab() as tab:
        await open_list(tab)
        press = tab.page.keyboard.press
        await tab.page.get_by_role("button", name="Add memory").first.focus()
        await press("Enter")
        await expect(tab.dialog.get_by_label("Memory", exact=True)).to_be_focused()
        await tab.page.keyboard.type("Plays the cello")
        await tab.dialog.get_by_role("button", name="Save").focus()
        await press("Enter")
        await expect(rows(tab)).to_have_text(["Plays the cello"])
        pin = tab.page.locator("[data-part=pin]")
        await expect(pin).to_be_focused()
        await press("Enter")
        await expect(pin).to_have_attribute("aria-pressed", "true")
        await expect(pin).to_be_focused()
        await expect(tab.page.locator(".saved-use .hint")).to_contain_text("0 of 100, 1 of 20 pinned")
        await press("Tab")
        await press("Enter")
        await press("Enter")  # the first item: edit
        await press("End")
        await tab.page.keyboard.type(" well")
        await press("Control+Enter")
        await expect(rows(tab)).to_have_text(["Plays the cello well"])
        await tab.page.locator("[data-part=more]").focus()
        await press("Enter")
        await press("End")
        await press("Enter")
        await expect(tab.dialog).to_contain_text("Plays the cello well")
        await press("Escape")
        await expect(rows(tab)).to_have_count(1)
        await act(tab, "Plays", "Delete")
        await tab.dialog.get_by_role("button", name="Delete").click()
        await expect(rows(tab)).to_have_count(0)
        await expect(tab.page.get_by_text("Nothing is remembered here yet")).to_be_visible()


@pytest.mark.rule("SM-3", "SM-4")
async def test_what_cannot_be_saved_is_said_where_it_was_typed(house: House) -> None:
    first = await add(house, "Likes tea")
    async with house.tab() as tab:
        tab.forgives("409", "422")
        await open_list(tab)
        await tab.page.get_by_role("button", name="Add memory").click()
        area = tab.dialog.get_by_label("Memory", exact=True)
        await area.fill("月" * 501)
        await expect(tab.dialog.locator(".field-count")).to_have_text("501 of 500 characters")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.dialog.get_by_role("alert")).to_contain_text("501 characters; at most 500")
        await area.fill("likes TEA")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.dialog.get_by_role("alert")).to_contain_text("already")
        await tab.page.keyboard.press("Escape")
        await act(tab, "Likes tea", "Edit")
        async with house.me.api.http.patch(f"{house.url}/api/memories/{first['id']}", json={"content": "Likes coffee"}) as answer:
            assert answer.status == 200
        await tab.page.locator(".memory-edit textarea").fill("Likes water")
        await tab.page.locator(".memory-edit").get_by_role("button", name="Save").click()
        await expect(tab.page.locator(".memory-edit").get_by_role("alert")).to_contain_text("changed meanwhile")
        await tab.page.locator(".memory-edit").get_by_role("button", name="Save").click()  # seen now
        await expect(rows(tab)).to_have_text(["Likes water"])


@pytest.mark.rule("SM-49", "WO-21")
async def test_a_full_list_lets_go_of_a_sleeping_memory_only_after_a_yes(chromium: Browser, tmp_path: Path) -> None:
    async with ageing_house(tmp_path, chromium, "saved full", saved={"unpinned_max": 2}) as house:
        for content in ("first", "second"):
            await add(house, content, "character")
        saved_scenes.put_to_sleep(house.gateway.data_dir, "first")
        async with house.tab() as tab:
            tab.forgives("409")
            await open_list(tab, "character/default")
            await expect(tab.page.locator(".saved-use .hint")).to_have_class("hint num tone-warn")
            await tab.page.get_by_role("button", name="Add memory").click()
            await tab.dialog.get_by_label("Memory", exact=True).fill("third")
            await tab.dialog.get_by_role("button", name="Save").click()
            await expect(tab.dialog.locator(".saved-full")).to_contain_text("first")
            asked = asyncio.Event()

            async def slow(route: Route) -> None:
                await asked.wait()
                await route.continue_()

            await tab.page.route("**/api/memories", slow, times=1)
            await tab.dialog.get_by_role("button", name="Save").click()
            await tab.dialog.get_by_label("Let go of it").check()  # while the answer, which asks for this once more, is on its way
            async with tab.page.expect_response("**/api/memories") as refused:
                asked.set()
            assert (await refused.value).status == 409
            await tab.dialog.get_by_role("button", name="Save").click()  # it can be pressed again once the answer is shown
            await expect(rows(tab)).to_have_text(["third", "second"])


@pytest.mark.rule("WO-20", "SM-44", "SM-15", "SM-17", "SM-18")
async def test_memories_are_found_filtered_woken_limited_and_shared(chromium: Browser, tmp_path: Path) -> None:
    async with ageing_house(tmp_path, chromium, "saved rows") as house:
        for content in ("Keeps a grey cat", "猫を飼っている", "Plays the cello"):
            await add(house, content)
        saved_scenes.put_to_sleep(house.gateway.data_dir, "Plays the cello")
        async with house.tab() as tab:
            await open_list(tab)
            await expect(rows(tab).last).to_have_text("Plays the cello")
            search = tab.page.get_by_role("searchbox", name="Find in this list")
            for words, found in (("GREY cat", ["Keeps a grey cat"]), ("猫", ["猫を飼っている"]), ("ﾈｺ", [])):
                await search.fill(words)
                await expect(rows(tab)).to_have_text(found)
            await search.fill("")
            await tab.page.locator(".saved-tools .segment", has_text="Asleep").click()
            await expect(rows(tab)).to_have_text(["Plays the cello"])
            await act(tab, "cello", "Wake up")
            await expect(rows(tab)).to_have_count(0)
            await tab.page.locator(".saved-tools .segment", has_text="All").click()
            await act(tab, "grey cat", "Words and chats")
            await tab.dialog.get_by_label("Words").fill("cat、猫")
            await tab.dialog.get_by_role("button", name="Save").click()
            await expect(row(tab, "grey cat").locator(".memory-badge")).to_have_text(["cat · 猫"])
            await act(tab, "grey cat", "Allow in shared places")
            await expect(row(tab, "grey cat").locator(".memory-badge")).to_have_text(["cat · 猫", "shared places too"])


@pytest.mark.rule("SM-76", "SM-77", "WO-21")
@pytest.mark.case("T18")
async def test_clearing_a_list_asks_twice_and_a_no_keeps_the_pins(house: House) -> None:
    for content in ("plain", "pinned"):
        made = await add(house, content)
    await house.me.api.post(f"/api/memories/{made['id']}/pin")
    async with house.tab() as tab:
        await open_list(tab)
        await act_on_list(tab, "Clear the list")
        await expect(tab.dialog).to_contain_text("Delete 1 memory of “Everywhere” for good?")
        await tab.dialog.get_by_role("button", name="Cancel").click()
        await expect(rows(tab)).to_have_count(2)
        await act_on_list(tab, "Clear the list")
        await tab.dialog.get_by_role("button", name="Delete all").click()
        await expect(tab.dialog).to_contain_text("set apart from the AI")
        await expect(tab.dialog.locator(".quote-list")).to_have_text("pinned")
        await tab.dialog.get_by_role("button", name="Keep the pins").click()
        await expect(rows(tab)).to_have_text(["pinned"])
        await act_on_list(tab, "Clear the list")
        await tab.dialog.get_by_role("button", name="Delete all").click()
        await tab.dialog.get_by_role("button", name="Delete the pins").click()
        await expect(rows(tab)).to_have_count(0)


@pytest.mark.rule("SM-57", "SM-58", "SM-60")
async def test_drafts_are_looked_at_before_they_are_saved(house: House) -> None:
    chat = await house.me.api.chat(title="A promise")
    house.will("I promise to call on Friday.")
    await house.me.api.say(chat, "Will you call?")
    await house.me.api.answers(chat)
    await house.me.api.say(chat, "/status")  # neither this nor what it says is talk
    async with house.tab() as tab:
        await open_list(tab, "character/default")
        house.will(json.dumps({"memories": ["Likes tea", "Hates rain"]}))
        await act_on_list(tab, "Generate from a description")
        await tab.dialog.get_by_label("Description").fill("Tea, no rain")
        await tab.dialog.get_by_role("button", name="Make drafts").click()
        await tab.dialog.get_by_label("Keep draft 2").uncheck()
        await tab.dialog.get_by_role("textbox", name="Draft 1").fill("Likes barley tea")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(rows(tab)).to_have_text(["Likes barley tea"])
        await act_on_list(tab, "Save from a conversation")
        await expect(tab.dialog.locator(".pick")).to_have_count(2)
        for box in await tab.dialog.locator(".pick input").all():
            await box.check()
        await expect(tab.dialog.get_by_text("2 of at most 20 messages picked")).to_be_visible()
        await tab.dialog.locator(".segment", has_text="Word for word").click()
        await tab.dialog.get_by_role("button", name="Make drafts").click()
        await expect(tab.dialog.get_by_role("textbox", name="Draft 1")).to_have_value("Will you call?\nI promise to call on Friday.")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.page.locator(".memory.is-pinned")).to_have_count(1)
        await tab.go(f"chat/{chat}")
        await expect(tab.answers).to_have_count(1)
        await tab.act_here("Remember from this chat")
        await expect(tab.dialog.locator(".pick")).to_have_count(2)


@pytest.mark.rule("SM-72")
async def test_what_the_model_changed_is_shown_and_taken_back(house: House) -> None:
    await lived(house)
    async with house.tab() as tab:
        await open_list(tab, "character/default")
        await expect(rows(tab)).to_have_text([SAVED["en"].by_model[1], SAVED["en"].by_model[0]])
        await tab.page.get_by_text("3 changes by the AI can be undone").click()
        await tab.page.locator(".saved-changes").get_by_role("button").first.click()
        await expect(rows(tab).filter(has_text=SAVED["en"].changed)).to_have_count(1)
        await expect(tab.page.get_by_text("2 changes by the AI can be undone")).to_be_visible()


@pytest.mark.rule("SM-91")
async def test_a_list_is_saved_as_a_file_and_brought_in_again(house: House, tmp_path: Path) -> None:
    await add(house, "麦茶が好き")
    async with house.tab(accept_downloads=True) as tab:
        await open_list(tab)
        await act_on_list(tab, "Save as a file")
        async with tab.page.expect_download() as download:
            await tab.dialog.get_by_role("button", name="Save file").click()
        file = tmp_path / "memories.json"
        await (await download.value).save_as(file)
        await act(tab, "麦茶", "Delete")
        await tab.dialog.get_by_role("button", name="Delete").click()
        await expect(rows(tab)).to_have_count(0)
        await act_on_list(tab, "Bring in a file")
        await tab.dialog.get_by_label("File").set_input_files(file)
        await tab.dialog.get_by_role("button", name="Look at it").click()
        await expect(tab.dialog).to_contain_text("1 new memory")
        await tab.dialog.get_by_role("button", name="Bring in").click()
        await expect(rows(tab)).to_have_text(["麦茶が好き"])


@pytest.mark.rule("SM-87", "SM-13", "SM-15", "WO-20")
async def test_learning_privacy_and_sharing_are_switched(house: House) -> None:
    async with house.tab() as tab:
        await open_list(tab, "switches")
        learning = tab.page.locator(".saved-body").first.get_by_role("switch", name="Yume")
        for wanted in (False, True):
            await learning.set_checked(wanted)
            await tab.told(re.compile("again" if wanted else "neither"))
            switches = await house.me.api.get("/api/memory/switches")
            assert {(each["learn"], each["use"]) for each in switches["characters"]} == {(wanted, wanted)}
        await tab.page.locator(".segment", has_text="No memory").click()
        await expect(tab.page.get_by_text("neither used nor saved there")).to_be_visible()
        await tab.page.get_by_role("switch", name="Use my private memories").check()
        await expect(tab.page.get_by_role("switch", name="Use my private memories")).to_be_checked()

        async def kept() -> tuple[str, bool]:
            switches = await house.me.api.get("/api/memory/switches")
            return switches["privacy"], switches["share_private"]

        await until(kept, ("partial", True))


@pytest.mark.rule("SM-87", "WO-12")
async def test_what_is_flipped_last_stands_and_the_focus_stays(house: House) -> None:
    sent: list[str] = []
    go = asyncio.Event()

    async def slow(route: Route) -> None:
        if route.request.method == "PATCH":
            sent.append(route.request.post_data or "")
            await go.wait()
        await route.continue_()

    async with house.tab() as tab:
        await open_list(tab, "switches")
        await tab.page.route("**/api/memory/switches", slow)
        learning = tab.page.locator(".saved-body").first.get_by_role("switch", name="Yume")
        await learning.uncheck()
        await learning.check()
        go.set()
        await tab.told(re.compile("again"))
        await expect(learning).to_be_checked()
        await expect(learning).to_be_focused()
        assert [json.loads(each)["characters"]["default"]["learn"] for each in sent] == [False, True]
        switches = await house.me.api.get("/api/memory/switches")
        assert [each["learn"] for each in switches["characters"]] == [True]


@pytest.mark.rule("SM-85", "WO-23")
async def test_the_badge_of_deep_memory_shows_exactly_where_it_runs(house: House) -> None:
    ordinary, challenge = await house.me.api.chat(), await house.me.api.chat(kind="challenge")
    async with house.tab() as tab:
        badge = tab.page.locator(".deep-badge")

        async def shows(chat: str, wanted: bool) -> None:
            await tab.go(f"chat/{chat}")
            await expect(tab.page.locator("main.chat")).to_be_visible()
            looked = await house.me.api.get(f"/api/chats/{chat}/memory")
            assert looked["deep_memory"] is wanted
            await expect(badge).to_be_visible(visible=wanted)

        await shows(ordinary, False)
        saved_scenes.subscribe(house.gateway.data_dir, house.me.id)
        await shows(challenge, False)
        await shows(ordinary, True)
        await house.me.api.http.patch(f"{house.url}/api/memory/switches", json={"characters": {"default": {"learn": False, "use": False}}})
        await shows(challenge, False)
        await shows(ordinary, False)


@pytest.mark.rule("WO-12")
async def test_a_list_that_fails_says_so_and_can_be_tried_again(house: House) -> None:
    async with house.tab() as tab:
        tab.forgives("500")
        await tab.page.route("**/api/memories/lists", lambda route: route.fulfill(status=500, body="broken"))
        await tab.go("memory")
        await expect(tab.page.get_by_role("alert")).to_contain_text("(500)")
        await tab.page.unroute("**/api/memories/lists")
        await tab.page.get_by_role("button", name="Try again").click()
        await expect(tab.page.get_by_text("Nothing is remembered here yet")).to_be_visible()


@pytest.mark.rule("WO-22")
async def test_forget_me_asks_twice_and_then_nobody_is_signed_in(house: House) -> None:
    (person,) = await house.add({"name": "Kaede", "role": "user"})
    async with house.tab(stranger=True) as tab:
        tab.forgives("401")
        await tab.page.goto(await house.link(person))
        await expect(tab.field).to_be_visible()
        await tab.go("memory/me")
        forget = tab.page.get_by_role("button", name="Forget me")
        await forget.click()
        await tab.dialog.get_by_role("button", name="Cancel").click()
        await forget.click()
        await tab.dialog.get_by_role("button", name="Go on").click()
        await expect(tab.dialog).to_contain_text("Really forget Kaede?")
        await tab.dialog.get_by_role("button", name="Forget me").click()
        await expect(tab.page.get_by_role("button", name="Sign in")).to_be_visible()
    people = await house.me.api.get("/api/operator/people")
    assert person not in {each["id"] for each in people["people"]}
