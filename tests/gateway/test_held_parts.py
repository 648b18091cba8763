"""Parts that wait until a person writes: kept for a day, at most three answers or reminders, then sent first and marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from channels.message import Account, Address
from channels.port import OutboundPart, TextUnit
from gateway.delivery import held_parts, outbox_store
from gateway.delivery.outbox_store import NewPart, OpenPart
from gateway.language import LANGUAGES
from memory.database import Database
from memory.schema import outbox
from tests.conftest import FakeClock

T = TypeVar("T")
ADDRESS = Address(account=Account(channel="wechat_ilink"), chat_id="ann@im.wechat")
OTHER = replace(ADDRESS, chat_id="bob@im.wechat")
KEY = str(ADDRESS)


class Chat:
    def __init__(self, db: Database, clock: FakeClock) -> None:
        self.db = db
        self.clock = clock

    async def do(self, work: Callable[[sa.Connection], T]) -> T:
        return await self.db.write(work)

    async def put(self, *texts: str, turn: str = "t1", kind: str = "answer", address: Address = ADDRESS, minutes: float = 15) -> None:
        parts = [
            NewPart(
                part=OutboundPart(part_id=f"{turn}.{number}", address=address, text=text, more_note="more" if number < len(texts) else ""),
                kind=kind, expires_at=self.clock() + timedelta(minutes=minutes), turn_id=turn,
            )
            for number, text in enumerate(texts, 1)
        ]  # fmt: skip
        await self.do(lambda connection: outbox_store.put(connection, parts, self.clock()))

    async def hold(self) -> int:
        return await self.do(lambda connection: held_parts.hold(connection, KEY, self.clock()))

    async def release(self, language: str = "en", most: int = 7) -> int:
        return await self.do(
            lambda connection: held_parts.release(
                connection, KEY, self.clock(), language=language, limit=1800, unit=TextUnit.UTF16, most=most
            )
        )

    async def first(self, address: Address = ADDRESS) -> OpenPart | None:
        return await self.do(lambda connection: outbox_store.next_open(connection, str(address)))

    async def rows(self) -> Sequence[Any]:
        return await self.do(lambda connection: connection.execute(sa.select(outbox).order_by(outbox.c.id)).all())

    async def texts(self) -> list[tuple[str, str]]:
        """Mark and words of what is open, in the order it goes out."""
        parts = [row.part for row in await self.rows() if row.state in ("queued", "unknown")]
        return [(part["earlier_note"], part["text"]) for part in parts]


@pytest.fixture
def chat(database: Database, clock: FakeClock) -> Chat:
    return Chat(database, clock)


@pytest.mark.rule("WX-44", "CH-82")
async def test_what_waits_for_a_person_waits_a_day_from_its_first_refusal(chat: Chat) -> None:
    await chat.put("one", "two", "three")
    await chat.put("for bob", turn="t2", address=OTHER)
    await chat.hold()
    chat.clock.advance(hours=1)
    await chat.hold()
    head = await chat.first()
    assert head is not None
    assert head.view.expires_at == head.view.not_before == chat.clock() + timedelta(hours=23)
    assert await chat.do(lambda connection: held_parts.held(connection, KEY)) == 3
    bob = await chat.first(OTHER)
    assert bob is not None and bob.view.not_before is None


@pytest.mark.rule("WX-44")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_next_message_releases_all_of_it_merged_and_marked(chat: Chat, language: str) -> None:
    await chat.put("one", "two", "x" * 1799)
    await chat.put("remember the milk", turn="t2", kind="reminder")
    await chat.hold()
    assert await chat.release(language) == 3
    (mark, first), second, (same, reminder) = await chat.texts()
    assert mark == same != ""
    assert (first, second, reminder) == ("one\n\ntwo", ("", "x" * 1799), "remember the milk")
    rows = await chat.rows()
    assert [(row.state, row.kind) for row in rows] == [("expired", "merged"), *[("queued", "answer")] * 2, ("queued", "reminder")]
    assert all(row.not_before is None and row.part["aside"] for row in rows[1:]), "the last message of the budget is another's"
    assert [row.part["more_note"] for row in rows[1:]] == ["more", "", ""]
    assert await chat.do(outbox_store.untold_losses) == []


@pytest.mark.rule("WX-44")
async def test_at_most_three_wait_and_reminders_go_before_answers(chat: Chat) -> None:
    await chat.put("first reminder", turn="r1", kind="reminder")
    await chat.put("first answer", "its end", turn="a1")
    await chat.put("second reminder", turn="r2", kind="reminder")
    await chat.put("second answer", turn="a2")
    await chat.put("a notice", turn="n1", kind="notice", minutes=1)
    assert await chat.hold() == 1
    await chat.put("third answer", turn="a3")
    assert await chat.hold() == 1
    await chat.put("fourth answer", turn="a4")
    assert await chat.hold() == 2, "an answer goes with all its parts"
    waiting = [row.part["text"] for row in await chat.rows() if row.reason == held_parts.WAITING]
    assert waiting == ["second answer", "a notice", "third answer", "fourth answer"], "a notice takes nobody's room"


@pytest.mark.rule("WX-44", "CH-82")
@pytest.mark.parametrize(("later_s", "expected"), [(50, ["the answer", "what /status says"]), (60, ["the answer"])])
async def test_the_answer_to_a_command_waits_for_the_person_but_no_longer_than_its_minute(chat: Chat, later_s: int, expected: list[str]) -> None:
    await chat.put("the answer")
    await chat.put("what /status says", turn="n1", kind="notice", minutes=1)
    await chat.hold()
    chat.clock.advance(seconds=later_s)
    assert await chat.release() == len(expected)
    assert [text for _, text in await chat.texts()] == expected
    assert await chat.do(outbox_store.untold_losses) == []


@pytest.mark.rule("WX-44")
async def test_what_is_more_than_the_new_budget_does_not_stand_before_the_new_answer(chat: Chat) -> None:
    await chat.put(*(f"{number}" * 1800 for number in range(9)))
    await chat.hold()
    assert await chat.release() == 7
    assert [text[0] for _, text in await chat.texts()] == list("0123456")
    assert await chat.do(outbox_store.untold_losses) == [KEY], "who lost it is told, and may ask for it"


@pytest.mark.rule("WX-44", "CH-80")
async def test_of_a_part_that_may_be_on_show_the_words_stay_as_they_are(chat: Chat) -> None:
    await chat.put("one", "two")
    await chat.do(lambda connection: connection.execute(sa.update(outbox).where(outbox.c.part_id == "t1.1").values(state="unknown", unknowns=1)))
    await chat.hold()
    assert await chat.release() == 2
    assert await chat.texts() == [("", "one"), ("", "two")]


async def test_a_message_that_finds_nothing_waiting_changes_nothing(chat: Chat) -> None:
    await chat.put("one")
    before = await chat.rows()
    chat.clock.advance(minutes=1)
    assert await chat.release() == 0
    assert await chat.rows() == before
