"""Each reason of a receipt, line of the doctor and status of a passage: made for real, and the same words on every chat app (AT-30)."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from agent.characters import Character
from channels.discord.settings import CAPABILITIES as DISCORD
from channels.port import Capabilities
from channels.render import render
from channels.telegram.settings import CAPABILITIES as TELEGRAM
from channels.web.adapter import CAPABILITIES as WEB
from channels.wechat.ilink.settings import CAPABILITIES as ILINK
from channels.wechat.official.settings import CAPABILITIES as OFFICIAL
from channels.wechat.wecom.settings import CAPABILITIES as WECOM
from gateway.config import Config
from gateway.embedding.change import EmbeddingChange
from gateway.language import LANGUAGES, catalogue, say
from gateway.recall.doctor import STATES
from gateway.recall.recalling import REASONS
from gateway.turn_store import TurnStart
from gateway.wiring.recall import build_recall
from memory import conversations
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.query import Query
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house
from tests.gateway.nights import utc
from tests.gateway.test_commands_recall import chatted, receipt

T = TypeVar("T")
APPS = {"TG": TELEGRAM, "DC": DISCORD, "WX ilink": ILINK, "WX official": OFFICIAL, "WX WeCom": WECOM, "WB": WEB}
LABELS = ("chunk_vectorized", "chunk_waiting", "chunk_unavailable", "chunk_outdated", "chunk_off")
KEYS = [*(f"recall_reason_{reason}" for reason in REASONS), *(f"recall_doctor_{state}" for state in STATES), "recall_doctor_well", *LABELS]


def plain(text: str) -> str:
    """Words without any markup."""
    return re.sub(r"\s+", " ", re.sub(r"[*_`~\\]", "", html.unescape(re.sub(r"</?\w+[^>]*>", "", text)))).strip()


@pytest.mark.rule("RS-77", "RS-80", "RS-38")
@pytest.mark.case("AT-30", "K6")
@pytest.mark.parametrize("app", APPS.values(), ids=APPS)
@pytest.mark.parametrize("language", LANGUAGES)
def test_every_line_reads_the_same_on_every_chat_app(language: str, app: Capabilities) -> None:
    for key in KEYS:
        names = re.findall(r"\{(\w+)\}", catalogue(language)[key])
        text = say(language, key, **dict.fromkeys(names, "/memory"))
        assert plain("".join(piece.text for piece in render(text, app))) == plain(text), key


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    clock.now = utc("2026-03-08T20:00")
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


@pytest.mark.rule("RS-77", "RS-196")
@pytest.mark.case("AT-30")
@pytest.mark.parametrize("language", [pytest.param(each, marks=pytest.mark.slow if each != "ja" else ()) for each in LANGUAGES])
async def test_why_says_each_reason_in_the_askers_language(house: CommandHouse, language: str) -> None:
    chat = await chatted(house)
    for reason in REASONS:
        await receipt(house, chat, {"recall": {"mode": "none", "reason": reason, "used": [], "tokens": 0, "ms": 1}})
        assert say(language, f"recall_reason_{reason}") in await house.says("/memory why", language=language)


class SlowReads(Database):
    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        await asyncio.sleep(0.5)
        return await super().read(work)


class NoReads(Database):
    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        raise StoreUnavailable("the disk is gone")


@pytest.mark.rule("RS-77", "RS-34")
@pytest.mark.case("AT-30", "K26")
@pytest.mark.parametrize(
    ("reason", "store", "recall"),
    [
        ("timeout", SlowReads, {"time_limit_s": 0.3}), ("failed", NoReads, {}), ("no_room", Database, {"block_tokens_min": 0, "block_tokens_max": 0}),
        ("off", Database, {"enabled": "off"}), ("record_rule", Database, {"record": "none"}),
    ],
)  # fmt: skip
async def test_a_reply_says_why_nothing_was_recalled(
    sqlite: Database, clock: FakeClock, reason: str, store: type[Database], recall: dict[str, Any]
) -> None:
    def work(c: sa.Connection) -> TurnStart:
        of = conversations.create_conversation(c, now=clock(), key="web::1", channel="web", account="", kind="web")
        values = {"role": "user", "origin": "person", "scope": "root"}
        said = conversations.add_message(c, now=clock(), conversation_id=of, text="where does the heron sleep", **values)
        chat = conversations.conversation(c, of)
        assert chat is not None
        return TurnStart(conversation=chat, person={"id": "p"}, questions=(said,), history=(), attempt=1, scope="root")

    start = await sqlite.write(work)
    db = store(sqlite.url.render_as_string(hide_password=False))
    config = Config.model_validate({"recall": recall})
    parts = build_recall(db=db, clock=clock, config=lambda: config, embedder=None, home=None, change=EmbeddingChange(sqlite, clock))
    yume = Character(id="default", name="Yume")
    text = parts.turns.question(start, yume)
    told = await parts.turns.of(start, yume, text, Query(text, time_limit_s=5), window_tokens=100_000, standing=0, used=0)
    assert (told.report["reason"], told.text) == (reason, "")
    await db.close()
