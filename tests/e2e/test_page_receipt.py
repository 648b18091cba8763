"""The summaries that a reply was given, in the receipt, in a real browser: three languages, two widths, two themes (RS-77, RS-171)."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.async_api import Browser, expect

from memory.recall import summary_rows
from memory.recall.kinds import Kind
from tests.e2e import browser, recall_scenes
from tests.e2e.browser import House, Tab, house_over
from tests.e2e.memory_scenes import store
from tests.e2e.page_look import look
from tests.e2e.page_scenes import LANGUAGES, LIVES
from tests.e2e.recall_scenes import PASTS

chromium = browser.chromium  # a fixture
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

CONFIG = {
    "context": {"memory_budget": 600, "memory_overrun": 0},
    "recall": {"enabled": "off"},
    "characters": {"default": {"prompt": "{{chat_summary}}"}},
}
SLOT = {"en": "where the character’s text has {{chat_summary}}", "ja": "{{chat_summary}} の場所", "zh": "{{chat_summary}} 的位置"}
SAID: Mapping[str, Mapping[str, str]] = {
    "en": {"title": "Summaries", "cut": "excerpt", "long": "Long-term", "recent": "Recent", "messages": "messages 11 – 14", "note": "an excerpt"},
    "ja": {"title": "要約", "cut": "抜粋", "long": "長期", "recent": "最近", "messages": "メッセージ 11 – 14", "note": "抜粋で送りました"},
    "zh": {"title": "总结", "cut": "节选", "long": "长期", "recent": "近期", "messages": "消息 11 – 14", "note": "以节选发送"},
}


def outgrown(data_dir: Path, chat: str, text: str) -> None:
    """The oldest summary is longer than its room."""

    def work(connection: sa.Connection) -> None:
        [oldest] = summary_rows.of_chat(connection, chat, kinds=(Kind.LONG_TERM,))
        summary_rows.edit(connection, oldest.id, datetime.now(UTC), text=" ".join([text] * 40))

    store(data_dir, work)


async def answered(house: House, language: str, title: str) -> str:
    chat = await house.me.api.chat(title=title)
    recall_scenes.settle(house.gateway.data_dir, chat, house.me.id, language)
    outgrown(house.gateway.data_dir, chat, PASTS[language].summaries[0])
    house.will("Noted.")
    await house.me.api.say(chat, PASTS[language].lines[4])
    await house.me.api.answers(chat, 13)
    return chat


async def opened(tab: Tab, chat: str) -> None:
    await tab.go(f"chat/{chat}")
    await tab.page.locator(".message.is-assistant [data-receipt]").last.click()
    await expect(tab.page.locator(".drawer .token-list")).to_be_visible()


@pytest.mark.slow
@pytest.mark.rule("RS-77", "RS-170", "RS-171", "WO-12", "WO-15")
async def test_the_receipt_names_the_summaries_and_which_was_an_excerpt(chromium: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    async with house_over(tmp_path, chromium, config=CONFIG, name="receipt looks") as house:
        for language in LANGUAGES:
            life, words = LIVES[language], SAID[language]
            async with house.someone(life.name) as house.me:
                async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": life.zone}) as done:
                    assert done.status == 200
                chat = await answered(house, language, life.title)
                async with house.tab(locale=language, timezone_id=life.zone) as tab:
                    await opened(tab, chat)
                    block = tab.page.locator(".receipt-block", has=tab.page.get_by_role("heading", name=words["title"], exact=True))
                    rows = block.locator(".stood-row")
                    await expect(rows.first).to_contain_text(words["long"])
                    await expect(rows.first).to_contain_text(words["cut"])
                    await expect(rows.last).to_contain_text(words["recent"])
                    await expect(rows.last).to_contain_text(words["messages"])
                    await expect(block.locator(".stood-cut")).to_have_count(1)
                    await expect(block).to_contain_text(SLOT[language])
                    await expect(tab.page.locator(".drawer")).to_contain_text(words["note"])
                    await block.scroll_into_view_if_needed()
                    await look(tab, "receipt-summaries", language, faults)
    assert not faults, "\n".join(faults)


@pytest.mark.rule("WO-15", "RS-77")
async def test_the_receipt_says_why_nothing_was_remembered(chromium: Browser, tmp_path: Path) -> None:
    async with house_over(tmp_path, chromium, config={"recall": {"enabled": "on"}}, name="receipt reasons") as house:
        chat = await house.me.api.chat()
        async with house.tab() as tab:
            for command, why in (("", "nothing earlier to remember"), ("/memory off", "memory is off here")):
                if command:
                    await house.me.api.say(chat, command)
                house.will("Noted.")
                await house.me.api.say(chat, "The heron sleeps by the lighthouse.")
                await house.me.api.answers(chat, 2 if command else 1)
                await opened(tab, chat)
                await expect(tab.page.locator(".drawer")).to_contain_text(why)
                await tab.page.reload()
