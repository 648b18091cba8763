"""Recall and summaries on the page in a real browser: conversation, calendar, passages; three languages, two widths, two themes (WO-12, WO-20)."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.e2e import browser, page_audit, recall_scenes
from tests.e2e.browser import NARROW, House, Tab, house_over, until
from tests.e2e.page_look import look
from tests.e2e.page_scenes import LANGUAGES, LIVES
from tests.e2e.recall_scenes import PASTS

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def past(house: House, language: str = "en", *, profile: str = "companion") -> str:
    chat = await house.me.api.chat(title=PASTS[language].title)
    recall_scenes.settle(house.gateway.data_dir, chat, house.me.id, language, profile=profile)
    return chat


async def show(tab: Tab, name: str, chat: str) -> None:
    await tab.go(f"memory/{name}/{chat}")
    await expect(tab.page.locator(".recall-body .memory").first).to_be_visible()
    await expect(tab.page.locator(".skeleton")).to_have_count(0)


async def act(tab: Tab, text: str, item: str) -> None:
    await tab.page.locator(".memory").filter(has_text=text).first.locator("> .icon-button").click()
    await tab.page.get_by_role("menuitem", name=item, exact=True).click()


async def _edit(tab: Tab, chat: str) -> None:
    await show(tab, "calendar", chat)
    await tab.page.locator(".memory > .icon-button").first.click()
    await tab.page.locator(".menu-item").first.click()
    await expect(tab.page.locator(".memory-edit textarea")).to_be_visible()


async def _settings(tab: Tab, chat: str) -> None:
    await show(tab, "calendar", chat)
    await tab.page.locator(".recall-fold summary").last.click()


View = Callable[[Tab, str], Awaitable[None]]
VIEWS: Mapping[str, View] = {
    "conversation": lambda tab, chat: show(tab, "conversation", chat),
    "calendar": lambda tab, chat: show(tab, "calendar", chat),
    "settings": _settings,
    "edit": _edit,
    "chunks": lambda tab, chat: show(tab, "chunks", chat),
}


@pytest.mark.slow
@pytest.mark.rule("WO-12", "WO-20")
async def test_the_tabs_are_whole_in_each_language_width_and_theme(chromium: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    async with house_over(tmp_path, chromium, name="recall looks") as house:
        for language in LANGUAGES:
            async with house.someone(LIVES[language].name) as house.me:
                chat = await past(house, language)
                async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": LIVES[language].zone}) as done:
                    assert done.status == 200
                async with house.tab(locale=language, timezone_id=LIVES[language].zone) as tab:
                    for name, visit in VIEWS.items():
                        await visit(tab, chat)
                        await look(tab, f"recall-{name}", language, faults)
    assert not faults, "\n".join(faults)


@pytest.mark.rule("RS-47", "RS-48", "RS-68")
async def test_the_window_its_jump_and_summaries_by_level(house: House) -> None:
    chat = await past(house)
    async with house.tab() as tab:
        await show(tab, "conversation", chat)
        await expect(tab.page.locator(".recall-part h3")).to_have_text(
            ["What is sent word for word", "Long-term", "Consolidated", "Recent", "Recall in this chat"]
        )
        await expect(tab.page.get_by_text("4 messages outside the window have no summary yet")).to_be_visible()
        await expect(tab.page.locator(".window-start")).to_contain_text("Starts here")
        await tab.page.get_by_role("button", name="Undo the jump").click()
        await expect(tab.page.get_by_role("button", name="Undo the jump")).to_have_count(0)
        await expect(tab.page.get_by_text("Everything outside the window has a summary.")).to_be_visible()
        await act(tab, PASTS["en"].summaries[2], "Edit")
        await tab.page.locator(".memory-edit textarea").fill("They walk, and never by taxi.")
        await tab.page.get_by_role("button", name="Save").first.click()
        await expect(tab.page.get_by_text("Written by hand")).to_be_visible()
        await act(tab, "never by taxi", "Make anew")
        await expect(tab.dialog).to_contain_text("by hand")
        await tab.page.keyboard.press("Escape")
        await act(tab, PASTS["en"].day, "Approve")
        await expect(tab.page.get_by_text("Waits for your yes")).to_have_count(0)
        await act(tab, "never by taxi", "Forget")
        await tab.dialog.get_by_role("button", name="Forget").click()
        await expect(tab.page.get_by_text("never by taxi")).to_have_count(0)
        assert await page_audit.tab_order(tab.page) == []


@pytest.mark.rule("RS-9", "RS-12")
async def test_the_record_rule_asks_whether_what_is_kept_goes_too(house: House) -> None:
    chat = await past(house)
    async with house.tab() as tab:
        await show(tab, "conversation", chat)
        before = await tab.page.get_by_role("switch").element_handle()
        await tab.page.get_by_role("switch").uncheck()
        await until(lambda: before.evaluate("(node) => node.isConnected"), False)  # what came of it is shown anew
        await expect(tab.page.get_by_role("switch")).not_to_be_checked()
        await tab.page.locator(".segment", has_text="Nothing").click()
        await expect(tab.dialog).to_contain_text("4 passages and every summary")
        await tab.dialog.get_by_role("button", name="Forget all of it").click()
        await expect(tab.page.get_by_text("No summaries yet")).to_be_visible()
        await tab.go(f"memory/chunks/{chat}")
        await expect(tab.page.get_by_text("No passages yet")).to_be_visible()


@pytest.mark.rule("RS-54", "RS-56", "RS-57", "RS-58")
async def test_a_week_is_edited_with_its_details_and_days_are_counted_otherwise(house: House) -> None:
    chat = await past(house, profile="calendar")
    async with house.tab() as tab:
        tab.forgives("409", "422")
        await show(tab, "calendar", chat)
        await expect(tab.page.locator(".recall-part h3")).to_have_text(["Days without a summary", "Weeks", "Days"])
        await expect(tab.page.locator(".recall-part .rows .row").first).to_be_visible()
        await act(tab, PASTS["en"].week, "Edit")
        await tab.page.get_by_role("button", name="Add detail").click()
        await tab.page.locator(".detail-edit .detail-text").last.fill("The inn is called Moss")
        await tab.page.get_by_role("button", name="Save").first.click()
        await expect(tab.page.locator(".details-list li")).to_contain_text(["Send the opening", "Which soba", "Her mother", "The inn is called Moss"])
        await tab.page.locator(".recall-fold summary").last.click()
        await tab.page.get_by_label("Hour at which a day begins").fill("2")
        await tab.page.locator(".days-settings button").click()
        await expect(tab.page.get_by_text("made with the old hour")).to_be_visible()
        await tab.page.get_by_label("Messages of earlier days that are still sent").fill("800")
        await tab.page.locator(".days-settings button").click()
        await expect(tab.dialog).to_contain_text("800")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.dialog).to_have_count(0)
        await tab.go()
        await show(tab, "calendar", chat)
        await tab.page.locator(".recall-fold summary").last.click()
        await expect(tab.page.get_by_label("Messages of earlier days that are still sent")).to_have_value("800")


@pytest.mark.rule("RS-37", "RS-38", "RS-39", "RS-42", "WO-21")
async def test_passages_are_forgotten_cleared_in_two_steps_and_brought_back(house: House, tmp_path: Path) -> None:
    chat = await past(house)
    async with house.tab() as tab:
        await show(tab, "chunks", chat)
        passages = tab.page.locator(".chunk")
        await expect(passages).to_have_count(4)
        await expect(tab.page.get_by_text("4 messages wait for a passage")).to_be_visible()
        await expect(passages.filter(has_text="Embedding unavailable")).to_have_count(4)
        await expect(tab.page.get_by_text("There is no embedding model")).to_have_count(1)  # why is said once, above
        async with tab.page.expect_download() as coming:
            await _menu(tab, "Save as a file")
        saved = tmp_path / (await coming.value).suggested_filename
        await (await coming.value).save_as(saved)
        assert saved.name.endswith(".yumegate.json")
        assert len(json.loads(saved.read_text(encoding="utf-8"))["chunks"]) == 4
        await passages.first.get_by_role("button").click()
        await tab.dialog.get_by_role("button", name="Forget").click()
        await expect(passages).to_have_count(3)
        await _menu(tab, "Forget all passages")
        await tab.dialog.get_by_role("button", name="Go on").click()
        await expect(tab.dialog).to_contain_text("Really all of them?")
        await tab.dialog.get_by_role("button", name="Forget 3 passages").click()
        await expect(tab.page.get_by_text("No passages yet")).to_be_visible()
        await _menu(tab, "Bring in a file")
        await tab.dialog.locator("input[type=file]").set_input_files(saved)
        await tab.dialog.locator("footer .primary").click()
        await expect(tab.dialog).to_contain_text("4 passages of messages of this chat")
        await tab.dialog.locator("footer .primary").click()
        await expect(passages).to_have_count(4)
        assert await page_audit.tab_order(tab.page) == []


async def _menu(tab: Tab, item: str) -> None:
    await tab.page.get_by_role("button", name="More for all passages").click()
    await tab.page.get_by_role("menuitem", name=item, exact=True).click()


@pytest.mark.rule("WO-12")
@pytest.mark.parametrize("address", ["memory/conversation", "memory"])
async def test_a_list_that_is_alone_on_a_narrow_page_has_no_row_that_looks_open(house: House, address: str) -> None:
    await past(house)
    async with house.tab() as tab:
        await tab.go(address)
        row = tab.page.locator(".file-row[aria-current]")
        await expect(row).to_be_visible()
        await tab.page.mouse.move(0, 0)
        ground = "(row) => getComputedStyle(row).backgroundColor"
        none = "rgba(0, 0, 0, 0)"
        assert await row.evaluate(ground) != none
        await tab.page.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        assert await row.evaluate(ground) == none
