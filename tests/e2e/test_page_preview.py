"""What was sent and what would be sent, beside the receipt, in a real browser: three languages, two widths, two themes (RS-78, WO-12)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from agent.llm.scripted import Call
from tests.e2e import browser, page_audit
from tests.e2e.browser import House, Tab, house_over
from tests.e2e.page_look import look
from tests.e2e.page_scenes import LANGUAGES, LIVES
from tests.harness import eventually

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

VIEWS: Mapping[str, Mapping[str, str]] = {
    "en": {"receipt": "Receipt", "sent": "Sent", "next": "Next", "advice": "less than a tenth"},
    "ja": {"receipt": "内訳", "sent": "送信内容", "next": "次に送る内容", "advice": "1割に足りません"},
    "zh": {"receipt": "明细", "sent": "已发送", "next": "下一条", "advice": "不到上限"},
}


async def show(tab: Tab, name: str) -> None:
    """A view of the open drawer, once it is there."""
    await tab.page.locator(".drawer .segment", has_text=name).click()
    await expect(tab.page.locator(".drawer .skeleton")).to_have_count(0)


async def opened(tab: Tab, chat: str) -> None:
    await tab.go(f"chat/{chat}")
    await tab.page.locator(".message.is-assistant [data-receipt]").last.click()
    await expect(tab.page.locator(".drawer .token-list")).to_be_visible()


async def talked(house: House, *questions: str, title: str = "") -> str:
    chat = await house.me.api.chat(title=title or questions[0])
    for number, question in enumerate(questions, start=1):
        await house.me.api.say(chat, question)
        await house.me.api.answers(chat, number)
    return chat


@pytest.mark.rule("RS-78", "RS-63")
async def test_the_words_of_each_request_stand_beside_the_receipt(house: House) -> None:
    house.will("Nine, I think.", [Call("memory_search", {"query": "lantern"})], "In the shed.")
    chat = await talked(house, "How many lanterns?", "And where are they?")
    async with house.tab() as tab:
        await opened(tab, chat)
        await expect(tab.page.locator(".drawer")).to_contain_text("not a bill")
        await show(tab, "Sent")
        drawer = tab.page.locator(".drawer-body")
        await expect(drawer).to_contain_text("Request 2 of 2")
        asked = [each for each in house.script.requests if each.purpose == "reply"][-1]
        shown = await drawer.locator(".prompt-list").first.locator("pre.prompt-text:not(.prompt-call)").all_text_contents()
        assert shown == [message.text for message in asked.messages if message.text]
        await expect(drawer.locator(".prompt-call")).to_have_text('memory_search({"query": "lantern"})')
        await tab.page.get_by_role("button", name="Request before").click()
        await expect(drawer).to_contain_text("Request 1 of 2")
        await expect(drawer.locator(".prompt-part[open] pre")).to_contain_text("And where are they?")
        assert await page_audit.tab_order(tab.page) == []


@pytest.mark.rule("RS-78", "RS-15")
async def test_what_comes_next_is_shown_and_asks_no_model(house: House) -> None:
    house.will("Nine, I think.")
    chat = await talked(house, "How many lanterns?")
    async with house.tab() as tab:
        await opened(tab, chat)
        calls = len(house.script.requests)
        await show(tab, "Next")
        drawer = tab.page.locator(".drawer-body")
        await expect(drawer.locator(".prompt-part[open] pre")).to_contain_text("(your next message)")
        await expect(drawer).to_contain_text("tokens")
        await expect(drawer).to_contain_text("not a bill")
        assert len(house.script.requests) == calls
        await tab.page.locator(".segment", has_text="Receipt").click()
        await expect(tab.page.locator(".drawer .token-list")).to_be_visible()


@pytest.mark.slow
@pytest.mark.rule("RS-64", "RS-78", "WO-12", "WO-20")
async def test_the_views_are_whole_in_each_language_width_and_theme(chromium: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    config = {"context": {"memory_budget": 4_000}}
    async with house_over(tmp_path, chromium, config=config, name="preview looks") as house:
        for language in LANGUAGES:
            life = LIVES[language]
            async with house.someone(life.name) as house.me:
                async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": life.zone}) as done:
                    assert done.status == 200  # before the talk: a change of the person lets prompts go
                house.will(*(answer for _, answer in life.talk))
                chat = await talked(house, *(question for question, _ in life.talk), title=life.title)
                async with house.tab(locale=language, timezone_id=life.zone) as tab:
                    await opened(tab, chat)
                    for view in ("sent", "next"):
                        await show(tab, VIEWS[language][view])
                        if view == "next":
                            await expect(tab.page.locator(".drawer")).to_contain_text(VIEWS[language]["advice"])
                        await look(tab, f"prompt-{view}", language, faults)
    assert not faults, "\n".join(faults)


FORETOLD: Mapping[tuple[str, str], str] = {
    ("jump", "en"): "leave the window",
    ("jump", "ja"): "件が外れます",
    ("jump", "zh"): "较早的消息离开",
    ("fault", "en"): "Nothing would be sent",
    ("fault", "ja"): "何も送られません",
    ("fault", "zh"): "不会向模型发送",
}


@pytest.mark.slow
@pytest.mark.rule("RS-78", "RS-70", "WO-12")
@pytest.mark.parametrize(("kind", "language"), FORETOLD)
async def test_the_jump_and_what_cannot_be_sent_are_foretold_on_the_page(chromium: Browser, tmp_path: Path, kind: str, language: str) -> None:
    faults: list[str] = []
    life = LIVES[language]
    async with house_over(tmp_path, chromium, name=f"preview {kind}") as house, house.someone(life.name) as house.me:
        async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language, "timezone": life.zone}) as done:
            assert done.status == 200
        house.will(*["word " * 800] * 5)
        chat = await talked(house, *[f"{life.talk[0][0]} {'word ' * 800}"] * 5, title=life.title)
        path, ceiling = house.gateway.config_path, 8_000 if kind == "jump" else 1_024
        path.write_text(json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"context": {"ceiling": ceiling}}), encoding="utf-8")

        async def taken() -> bool:
            return (await house.me.api.get(f"/api/chats/{chat}/preview"))["room"]["ceiling"] == ceiling

        await eventually(taken)
        async with house.tab(locale=language, timezone_id=life.zone) as tab:
            await opened(tab, chat)
            await show(tab, VIEWS[language]["next"])
            await expect(tab.page.locator(".drawer .outcome").first).to_contain_text(FORETOLD[kind, language])
            await look(tab, f"prompt-{kind}", language, faults)
    assert not faults, "\n".join(faults)


@pytest.mark.rule("RS-160")
@pytest.mark.parametrize(("language", "words"), [("en", "is no time zone"), ("ja", "というタイムゾーンはありません"), ("zh", "不是有效的时区")])
async def test_a_wrong_zone_of_a_chat_is_told_where_its_days_are(house: House, language: str, words: str) -> None:
    chat = await house.me.api.chat(title="Lanterns")
    with closing(sqlite3.connect(house.gateway.data_dir / "yumegate.db")) as store:
        store.execute("UPDATE conversations SET timezone = 'Mars/Olympus' WHERE id = ?", (chat,))
        store.commit()
    async with house.me.api.http.patch(f"{house.url}/api/me", json={"language": language}) as done:
        assert done.status == 200
    async with house.tab(locale=language) as tab:
        await tab.go(f"memory/calendar/{chat}")
        told = tab.page.locator(".recall-body .tone-warn").first
        await expect(told).to_contain_text(words)
        await expect(told).to_contain_text("Mars/Olympus")
