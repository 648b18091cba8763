"""A day that is longer than any prompt: what leaves is summarised ahead, told as "earlier today", and paid for once (RS-162, RS-163)."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import AsyncGenerator
from datetime import timedelta
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
import sqlalchemy as sa

from agent.characters import Character
from agent.errors import ModelBusy
from agent.llm.port import ModelRequest
from agent.llm.scripted import Fail, Reply
from agent.runtime import Runtime
from agent.turn import Budget, Said, Turn
from gateway import live_window, windows
from gateway.ceiling import Ceiling, Held
from gateway.summaries import calendar_state
from gateway.talk import history
from gateway.turn_store import TurnStart
from memory import conversations, message_changes, tokens
from memory.conversations import Message
from memory.database import Database
from memory.recall import answers, edge_jump, real_talk, uncovered
from memory.recall.kinds import CALENDAR, Kind
from memory.schema import job_parts
from tests.conftest import FakeClock
from tests.gateway.nights import OWNER
from tests.gateway.rows_house import RowsHouse, lines, utc_now_at

CEILING = 20_000
WORDS = "and so on, as people say it " * 7  # about 55 tokens


class LongDay:
    """One calendar chat and turns that are begun, held under the ceiling, and answered."""

    def __init__(self, house: RowsHouse, chat: str) -> None:
        self.house, self.chat = house, chat
        self.ceiling = Ceiling(db=house.db, config=lambda: house.config, clock=house.clock)
        self.said = 0
        self.jumps: list[Held] = []

    async def talk(self, count: int, *, apart: timedelta = timedelta(seconds=20)) -> None:
        """Questions and answers in turn, each with its number."""

        def work(c: sa.Connection) -> None:
            for _ in range(count):
                self.house.clock.now += apart
                person = self.said % 2 == 0
                conversations.add_message(
                    c,
                    now=self.house.clock(),
                    conversation_id=self.chat,
                    role="user" if person else "assistant",
                    origin="person" if person else "assistant",
                    scope="root",
                    author_person_id=OWNER if person else "",
                    author_name="Ana" if person else "Yume",
                    turn_id=f"t-{self.said // 2}",
                    text=f"n{self.said} {WORDS}",
                )
                self.said += 1

        await self.house.db.write(work)

    async def turn(self) -> Held:
        """A question, taken as a turn takes it."""
        await self.talk(1)
        start = await self.house.db.read(self._start)
        said = history(start.history, language="en", in_group=False, dates=start.dates)
        asked = Turn(
            character=Character(id="default", name="Yume"),
            newest=Said(text=start.questions[0].text, by_us=False),
            now=self.house.clock(),
            zone="UTC",
            history=said,
            standing_notes=(start.blocks,),
        )
        weight = Runtime([self.house.model], budget=Budget(), max_prompt=CEILING).weigh(asked, ceiling=CEILING)
        held = await self.ceiling.hold(start, weight, answering="", language="en")
        if held.jump is not None:
            self.jumps.append(held)
        if held.ahead:
            await self.house.db.write(lambda c: calendar_state.summarise_ahead(c, self.house.config, self.chat, held.ahead))
        await self.talk(1)
        return held

    def _start(self, c: sa.Connection) -> TurnStart:
        chat = conversations.conversation(c, self.chat)
        assert chat is not None
        profile = windows.profile_of(self.house.config, chat)
        window = live_window.window(c, chat, profile, self.house.config, self.house.clock())
        *before, question = window.log
        return TurnStart(
            conversation=chat,
            person={},
            questions=(question,),
            history=tuple(before),
            dates=window.dates,
            attempt=1,
            scope="root",
            standing=live_window.standing(c, chat, profile, self.house.config, self.house.clock()),
        )

    async def unsaid(self) -> list[int]:
        """Numbers of messages of which the prompt of now says nothing at all: neither word for word nor by a piece, an extract or a row."""
        live = {int(found) for each in await self.house.live(self.chat) for found in re.findall(r"\bn(\d+) ", each)}
        stands = await self.house.stands(self.chat)
        spans = [(int(first), int(last)) for first, last in re.findall(r"from n(\d+) to n(\d+)", stands)]
        extracted = "not summarised yet" in stands
        told = {n for first, last in spans for n in range(first, last + 1)}
        missing = [n for n in range(self.said) if n not in live | told]
        return [] if extracted and missing == list(range(missing[0], missing[-1] + 1)) else missing

    async def talk_in_pieces(self) -> list[str]:
        """The texts of the pieces into which the whole day is cut."""

        def read(c: sa.Connection) -> list[str]:
            seqs = [message.seq for message in uncovered.waiting(c, self.chat, CALENDAR)]
            found = answers.rendered(real_talk.by_seq(c, self.chat, seqs), uncovered.authors(c, self.chat, seqs), ZoneInfo("UTC"))
            return [piece.text for piece in answers.pieces(found)]

        return await self.house.db.read(read)


def brief(request: ModelRequest) -> Reply:
    """Of talk: from where to where it goes. Of summaries: that they were joined."""
    talk = lines(request)
    text = f"from {talk[0].split()[0]} to {talk[-1].split()[0]}" if talk else "joined"
    return json.dumps({"text": text, "details": [{"text": f"kept {talk[0].split()[0]}", "kind": "promise"}] if talk else []})


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-02T05:00")
    made = RowsHouse(database, tmp_path, clock, brief, profile="calendar", background={"daily_token_budget": 0}, context={"ceiling": CEILING})
    await made.person()
    yield made
    await made.close()


def asked_of_talk(house: RowsHouse) -> list[str]:
    return [request.messages[-1].text for request in house.model.requests if lines(request)]


@pytest.mark.slow
@pytest.mark.rule("RS-162", "RS-163", "RS-67")
@pytest.mark.case("AT-12", "K2", "K33")
async def test_three_thousand_messages_in_one_day(house: RowsHouse) -> None:
    day = LongDay(house, await house.made())
    while day.said < 3_000:
        await day.talk(58)
        await day.turn()
        await house.run("day-row")
        if day.said % 600 == 0:
            assert await day.unsaid() == []
    assert 8 <= len(day.jumps) <= 25
    last = day.jumps[-1]
    assert "earlier today, " in last.start.blocks, "told in the very prompt of the jump"
    assert tokens.count(last.start.blocks) < windows.standing_room(house.config, last.start.conversation) + 2_100
    before = asked_of_talk(house)
    assert len(before) == house.calls, "nothing is joined as long as the day goes on"
    pieces = await day.talk_in_pieces()
    await house.at("2026-03-03T08:00")
    after = asked_of_talk(house)
    assert after[: len(before)] == before
    assert len(after) == len(pieces), "one call for each piece of the day"
    assert Counter(after).most_common(1)[0][1] == 1, "none is paid for twice"
    [row] = await house.rows(day.chat, Kind.DAY)
    assert len(row.details) == len(pieces), "nothing is dropped"
    assert await house.count(job_parts) == 0
    stands = await house.stands(day.chat)
    assert "earlier today" not in stands and "not summarised yet" not in stands
    assert "joined" in stands


@pytest.fixture
async def small(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[LongDay]:
    """The same on SQLite alone, at its first jump."""
    clock.now = utc_now_at("2026-03-02T05:00")
    made = RowsHouse(sqlite, tmp_path, clock, brief, profile="calendar", background={"daily_token_budget": 0}, context={"ceiling": CEILING})
    await made.person()
    yield LongDay(made, await made.made())
    await made.close()


async def to_the_first_jump(day: LongDay, *, jobs: bool = True) -> Held:
    while not day.jumps:
        await day.talk(8)
        await day.turn()
        if jobs:
            await day.house.run("day-row")
    return day.jumps[0]


@pytest.mark.rule("RS-162", "RS-71")
async def test_from_eighty_percent_on_what_would_leave_is_ready_before_it_leaves(small: LongDay) -> None:
    held = await to_the_first_jump(small)
    assert small.house.calls >= 1
    assert re.search(r"earlier today, 05:00 to \d\d:\d\d: from n0 to n\d+", held.start.blocks)
    assert "promise: kept n0" in held.start.blocks, "its promises are remembered"
    assert await small.unsaid() == []
    assert await small.house.rows(small.chat) == [], "the day has no row yet"


@pytest.mark.rule("RS-162", "RS-44", "RS-71", "RS-74")
async def test_without_a_helper_an_extract_stands_until_the_pieces_are_there(small: LongDay) -> None:
    def busy(_: ModelRequest) -> Reply:
        return Fail(ModelBusy("no"))

    small.house.script = busy
    held = await to_the_first_jump(small)
    assert "earlier today" not in held.start.blocks
    assert "not summarised yet" in held.start.blocks and "n0 and so on" in held.start.blocks
    small.house.script = brief
    small.house.clock.advance(hours=1)
    await small.house.run("day-row")
    assert "earlier today" in await small.house.stands(small.chat)


@pytest.mark.rule("RS-162", "RS-166")
async def test_a_piece_whose_message_was_taken_away_says_nothing_any_more(small: LongDay) -> None:
    await to_the_first_jump(small)
    assert "from n0 to" in await small.house.stands(small.chat)
    log: list[Message] = await small.house.db.read(lambda c: conversations.window(c, small.chat, 0))
    await small.house.db.write(lambda c: message_changes.forget(c, log[2].id))
    stands = await small.house.stands(small.chat)
    assert "from n0 to" not in stands and "n0 and so on" in stands, "the extract stands in"
    assert "n2 and" not in stands


@pytest.mark.rule("RS-68", "RS-162")
async def test_undo_brings_the_messages_back_and_nothing_stands_for_them(small: LongDay) -> None:
    held = await to_the_first_jump(small)
    assert held.jump is not None
    await small.house.db.write(lambda c: edge_jump.undo(c, small.chat))
    assert await small.house.stands(small.chat) == ""
    assert len(await small.house.live(small.chat)) == small.said
    again = await small.turn()
    assert again.jump is None


@pytest.mark.rule("RS-12", "RS-162")
async def test_where_no_summary_may_be_stored_nothing_is_made_ahead(small: LongDay) -> None:
    await small.house.change(small.chat, record="recall_only")
    held = await to_the_first_jump(small)
    assert (held.start.blocks, small.house.calls, await small.house.count(job_parts)) == ("", 0, 0)
