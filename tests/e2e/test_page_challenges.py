"""Challenges and chats with several characters, in a real browser (WO-16, WO-40)."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import sqlalchemy as sa
from playwright.async_api import Browser, expect

from gateway.config import Config
from gateway.store import open_database, utc_now
from memory.database import Database
from memory.saved.lineages import lineages
from memory.saved.rows import character_list, global_list
from memory.saved.store import insert_new
from memory.saved.stored import rows_of
from memory.saved.writing import New
from tests.e2e import browser
from tests.e2e.browser import House, house_over
from tests.harness import eventually

chromium = browser.chromium  # a fixture
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

CAST = {"characters": {"default": {"name": "Yume"}, "luna": {"name": "Luna"}, "hana": {"name": "花", "aliases": ["Hana"]}}}
GATE = {
    "title": {"en": "The gate", "ja": "門", "zh": "城门"},
    "scenario": {
        "en": "Rain, night. A tired guard stands before the gate.",
        "ja": "雨の夜。疲れた衛兵が門の前に立つ。",
        "zh": "雨夜。疲惫的卫兵站在城门前。",
    },
    "goal": {"en": "Make the guard open the gate.", "ja": "衛兵に門を開けさせる。", "zh": "让卫兵打开城门。"},
    "prompt": "You are the guard of a gate.",
    "difficulty": "hard",
    "turns": 2,
}


@asynccontextmanager
async def house(folder: Path, chromium: Browser, name: str, **files: object) -> AsyncGenerator[House]:
    place = folder / "workspace" / ".yumegate" / "challenges"
    place.mkdir(parents=True)
    for stem, content in files.items():
        (place / f"{stem}.json").write_text(json.dumps(content, ensure_ascii=False), encoding="utf-8")
    async with house_over(folder, chromium, config=CAST, name=name) as made:
        yield made


async def look(tab: browser.Tab, name: str) -> None:
    if os.environ.get("SHOTS") == "1":
        await tab.shoot(name)


@pytest.mark.rule("WO-16")
async def test_a_challenge_is_chosen_played_and_judged_and_begun_anew(chromium: Browser, tmp_path: Path) -> None:
    async with house(tmp_path, chromium, "challenge", gate=GATE, bad={"title": "x"}) as here, here.tab() as tab:
        await tab.go("chat")
        await tab.page.get_by_text("Challenge", exact=True).click()
        await expect(tab.page.get_by_role("heading", name="The gate")).to_be_visible()
        await expect(tab.page.locator(".challenge-card")).to_contain_text("hard · 2 turns")
        await expect(tab.page.locator(".cast")).to_be_hidden()
        await look(tab, "challenge-list")
        await tab.page.get_by_role("button", name="Start: The gate").click()
        bar = tab.page.get_by_role("region", name="Challenge")
        await expect(bar).to_contain_text("Make the guard open the gate.")
        await expect(bar).to_contain_text("attempt 1 · 2 turns left")
        here.will("Halt!", "The gate opens.", '{"score": 91, "verdict": "You fed the guard."}')
        await tab.say("Open!")
        await tab.says("Halt!")
        await expect(bar).to_contain_text("1 turn left")
        await look(tab, "challenge-open")
        await tab.say("Here is bread.")
        await expect(bar).to_contain_text("91 of 100 points, 80 needed")
        await expect(bar).to_contain_text("You fed the guard.")
        await expect(bar.get_by_text("won", exact=True)).to_be_visible()
        await expect(tab.field).to_be_hidden()
        await expect(tab.row("The gate")).to_contain_text("won")
        await look(tab, "challenge-won")
        await bar.get_by_role("button", name="Start over").click()
        await expect(bar).to_contain_text("attempt 2 · 2 turns left")
        await expect(tab.field).to_be_visible()
        await expect(tab.page.locator(".message")).to_have_count(0)
        await bar.get_by_role("button", name="End and judge").click()
        await tab.page.get_by_role("dialog").get_by_role("button", name="End and judge").click()
        await expect(bar.get_by_text("not met", exact=True)).to_be_visible()


@pytest.mark.rule("WO-16")
async def test_without_definitions_the_page_says_how_there_will_be_some(chromium: Browser, tmp_path: Path) -> None:
    async with house(tmp_path, chromium, "no-challenge") as here, here.tab() as tab:
        await tab.go("chat")
        await tab.page.get_by_text("Challenge", exact=True).click()
        await expect(tab.page.get_by_text("No challenges are defined")).to_be_visible()


@pytest.mark.rule("WO-40")
async def test_several_characters_answer_by_name_and_the_page_says_who_speaks(chromium: Browser, tmp_path: Path) -> None:
    async with house(tmp_path, chromium, "cast") as here, here.tab() as tab:
        await tab.go("chat")
        await tab.page.locator(".cast-chip", has_text="Luna").click()
        await tab.page.locator(".cast-chip", has_text="花").click()
        await tab.page.locator(".cast-chip", has_text="Yume").click()
        await look(tab, "cast-new")
        here.will("I am the moon.", "私は花。", "Me again.")
        await tab.say("Good evening")
        await tab.says("I am the moon.")
        await tab.say("花、こんばんは")
        await tab.says("I am the moon.", "私は花。")
        names = tab.page.locator(".message.is-assistant .message-name")
        await expect(names).to_have_text(["Luna", "花"])
        await expect(names.first).to_be_visible()
        await expect(tab.page.get_by_role("button", name="Who answers: Luna · 花")).to_be_visible()
        await look(tab, "cast-talk")
        await tab.page.get_by_role("button", name="Who answers: Luna · 花").click()
        dialog = tab.page.get_by_role("dialog")
        await look(tab, "cast-dialog")
        await dialog.locator(".cast-chip", has_text="花").click()
        await dialog.get_by_role("button", name="Save").click()
        await expect(tab.page.locator(".chat-character select")).to_have_value("luna")
        await expect(names.first).to_be_hidden()
        await tab.page.locator(".chat-character select").select_option(label="Several…")
        await expect(tab.page.get_by_role("dialog")).to_be_visible()


@pytest.mark.rule("SM-92")
async def test_a_character_that_is_gone_is_deleted_only_after_a_yes(chromium: Browser, tmp_path: Path) -> None:
    opened: list[Database] = []

    def open_it(config: Config) -> Database:
        opened.append(open_database(config))
        return opened[-1]

    async with house_over(tmp_path, chromium, config=CAST, name="gone", database=open_it) as here, here.tab() as tab:

        def teach(connection: sa.Connection) -> None:
            key = character_list(here.me.id, lineages(connection)["luna"])
            insert_new(connection, New(key=key, content="likes the sea", origin="tool", author_kind="model"), utc_now())

        await opened[0].write(teach)
        await tab.go("operate/config")
        await expect(tab.page.get_by_role("heading", name="In force")).to_be_visible()
        await expect(tab.page.get_by_text("Characters that are gone")).to_have_count(0)
        path = here.gateway.config_path
        config = json.loads(path.read_text(encoding="utf-8"))
        del config["characters"]["luna"]
        path.write_text(json.dumps(config), encoding="utf-8")
        chat = await here.gateway.chat()
        await here.gateway.say(chat, "/reload")
        await eventually(lambda: _gone(here))
        await tab.page.reload()
        await expect(tab.page.get_by_text("1 memory of 1 person, 0 of groups")).to_be_visible()
        await tab.page.get_by_role("button", name="Delete Luna").click()
        await expect(tab.dialog).to_contain_text("Delete Luna for good?")
        await look(tab, "character-gone")
        await tab.dialog.get_by_role("button", name="Delete Luna").click()
        await expect(tab.page.get_by_text("Characters that are gone")).to_have_count(0)
        rows = await opened[0].read(lambda connection: rows_of(connection, [global_list(here.me.id)]))
        assert [row.content for row in rows] == ["likes the sea"]


async def _gone(here: House) -> bool:
    return bool((await here.gateway.get("/api/operator/characters"))["characters"])
