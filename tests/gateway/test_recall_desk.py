"""Looking after recall: switch, record rule, chunks, forgetting with a code, export and import, links between chats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy import event

from gateway.chat_reach import ChatReach, NotYourChat
from gateway.config import Config
from gateway.embedding.vector_keeping import VectorStatus
from gateway.person import Person, Role
from gateway.recall.desk import RecallDesk, label_of
from gateway.recall.talk_indexing import TalkIndexing
from memory import conversations
from memory.columns import UtcTime
from memory.conversations import Conversation
from memory.database import Database
from memory.embedders.hashed import hash_embedder
from memory.ids import PersonId
from memory.ports import Embedder
from memory.recall import chunk_store, real_talk, transfer
from memory.recall.chunk_views import may_read
from memory.recall.confirming import CodeExpired
from memory.recall.transfer import NotAnExport
from memory.recall_schema import message_chunks
from memory.schema import messages, people, spaces
from memory.scopes import Scope
from tests.conftest import FakeClock

ANN, BOB = "p-annannanna", "p-bobbobbobb"
DEN = "s-dendendend"
START = datetime(2026, 1, 1, tzinfo=UTC)


class Desk:
    """A desk over a real database; `managers`: who manages the den."""

    def __init__(self, db: Database, clock: FakeClock, *, embedder: Embedder | None = None, **config: Any) -> None:
        self.db, self.clock = db, clock
        self.config = Config.model_validate(config)
        self.indexing = TalkIndexing(
            db=db, clock=clock, embedder=embedder, home=None, gap=lambda: timedelta(hours=6), record=lambda: self.config.recall.record
        )
        self.desk = RecallDesk(db=db, clock=clock, config=lambda: self.config, indexing=self.indexing)
        self.managers: set[str] = set()
        self.reach = ChatReach(db=db, managers=self._managers)

    async def _managers(self, _scope: Scope, ids: frozenset[str]) -> frozenset[str]:
        return ids & self.managers

    async def begin(self) -> None:
        now = self.clock()

        def work(c: sa.Connection) -> None:
            for each in (ANN, BOB):
                c.execute(sa.insert(people), {"id": each, "name": each[2:5].title(), "scope": f"people/{each}", "created_at": now})
            c.execute(sa.insert(spaces), {"id": DEN, "channel": "discord", "account": "main", "platform_space_id": "9", "created_at": now})

        await self.db.write(work)

    async def chat(self, name: str = "1", *, group: bool = False, person: str = ANN, **more: Any) -> Conversation:
        def work(c: sa.Connection) -> Conversation:
            of = conversations.create_conversation(
                c, now=self.clock(), key=f"web::{name}", channel="discord" if group else "web", account="main", kind="group" if group else "web",
                person_id=None if group else person, space_id=DEN if group else None, title=f"Chat {name}",
            )  # fmt: skip
            if more:
                conversations.change(c, of, **more)
            found = conversations.conversation(c, of)
            assert found is not None
            return found

        return await self.db.write(work)

    async def say(self, chat: Conversation, *lines: str, person: str = ANN, **more: Any) -> list[str]:
        said: list[str] = []
        for line in lines:
            self.clock.advance(minutes=1)
            values: dict[str, Any] = {
                "role": "user",
                "author_person_id": person,
                "author_name": person[2:5].title(),
                "scope": f"people/{person}",
                **more,
            }
            said.append((await self.db.write(
                lambda c, line=line, values=values: conversations.add_message(c, now=self.clock(), conversation_id=chat.id, text=line, **values)
            )).id)  # fmt: skip
        return said

    async def fresh(self, chat: Conversation) -> Conversation:
        found = await self.db.read(lambda c: conversations.conversation(c, chat.id))
        assert found is not None
        return found

    async def texts(self, chat: Conversation, person: str = ANN) -> list[str]:
        return [row.text for row in (await self.desk.chunks(chat.id, person, limit=100)).rows]

    async def clear(self, chat: Conversation, person: str = ANN) -> int:
        return await self.desk.clear(chat.id, person, await self.desk.ask(chat.id, person, "clear"))


def overheard(connection: sa.Connection) -> list[int]:
    """How many parameters each statement takes, from now on."""
    found: list[int] = []
    event.listen(connection, "before_cursor_execute", lambda *given: found.append(len(given[3])))  # pyright: ignore[reportUnknownMemberType]
    return found


@pytest.fixture
async def house(database: Database, clock: FakeClock) -> Desk:
    house = Desk(database, clock)
    await house.begin()
    return house


@pytest.fixture
async def lite(sqlite: Database, clock: FakeClock) -> Desk:
    house = Desk(sqlite, clock)
    await house.begin()
    return house


def lines(*numbers: int) -> list[str]:
    return [f"word{number} of the tale" for number in numbers]


# -- looking -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-37", "RS-17")
async def test_the_numbers_equal_the_database_and_are_of_what_the_asker_may_read(house: Desk) -> None:
    chat = await house.chat(group=True)
    await house.say(chat, *lines(*range(1, 13)))
    await house.say(chat, *lines(*range(20, 25)), audience_people=[BOB])
    await house.indexing.follow(chat.id)
    rows = await house.db.read(lambda c: c.execute(sa.select(message_chunks).where(message_chunks.c.conversation_id == chat.id)).all())
    open_to_all = [row for row in rows if row.area == chunk_store.area_of(chat.id)]
    assert (len(rows), len(open_to_all)) == (3, 2)
    anns, bobs = await house.desk.chunks(chat.id, ANN, limit=1), await house.desk.chunks(chat.id, BOB, limit=100)
    assert (anns.totals.chunks, anns.totals.tokens, anns.totals.waiting) == (2, sum(row.tokens for row in open_to_all), 2)
    assert (bobs.totals.chunks, len(bobs.rows)) == (3, 3)
    [newest] = anns.rows
    assert (newest.messages, newest.said_to, newest.created_at) == (5, newest.said_from + timedelta(minutes=4), house.clock())
    [older] = (await house.desk.chunks(chat.id, ANN, limit=1, offset=1)).rows
    assert older.said_to < newest.said_from


@pytest.mark.rule("RS-37", "RS-185")
@pytest.mark.parametrize(
    ("area", "anns"),
    [
        ("talk/c1", True), ("talk/c1/p:p-annannanna", True), ("talk/c1/p:p-annannanna,p-bobbobbobb", True), ("talk/c1/p:p-bobbobbobb", False),
        ("talk/c1/c:yume", True), ("talk/c1/p:p-bobbobbobb|c:yume", False), ("talk/c1/importer:p-annannanna", True),
        ("talk/c1/importer:p-bobbobbobb", False), ("talk/c1/cleared", False), ("talk/c2", False), ("talk/c12", False), ("talk/c1/p:", False),
        ("talk/c1/x:what", False), ("talk/c1/nonsense", False), ("", False),
    ],
)  # fmt: skip
def test_an_area_is_for_the_eyes_of_its_audience_and_an_unknown_one_for_nobodys(area: str, anns: bool) -> None:
    assert may_read(area, "c1", ANN) is anns


@pytest.mark.rule("RS-38")
async def test_the_label_of_a_chunk_follows_the_embedder(sqlite: Database, clock: FakeClock) -> None:
    house = Desk(sqlite, clock, embedder=hash_embedder())
    await house.begin()
    chat = await house.chat()
    await house.say(chat, *lines(1, 2, 3, 4, 5))
    await house.indexing.follow(chat.id)
    [row] = (await house.desk.chunks(chat.id, ANN, limit=9)).rows
    table: Sequence[tuple[int, VectorStatus, str]] = [
        (0, VectorStatus(vectors="building"), "waiting"),
        (0, VectorStatus(vectors="off"), "unavailable"),
        (0, VectorStatus(vectors="failed", reason="no route"), "unavailable"),
        (row.passages, VectorStatus(vectors="failed", reason="no route"), "vectorized"),
    ]
    for embedded, status, label in table:
        assert label_of(replace(row, embedded=embedded), status) == label
    off = Desk(sqlite, clock)
    shown = await off.desk.chunks(chat.id, ANN, limit=9)
    assert (shown.labels, shown.reason) == (("unavailable",), "off")


# -- switches ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-9", "RS-10")
async def test_the_switch_changes_what_is_used_and_nothing_else(lite: Desk) -> None:
    chat = await lite.chat()
    await lite.say(chat, *lines(1, 2, 3, 4, 5))
    await lite.indexing.follow(chat.id)
    before = await lite.texts(chat)
    await lite.desk.switch(chat.id, False)
    shown = await lite.desk.overview(await lite.fresh(chat), ANN)
    assert (shown.on, shown.chosen, shown.totals.chunks) == (False, False, 1)
    await lite.desk.switch(chat.id, True)
    assert (await lite.desk.overview(await lite.fresh(chat), ANN)).on
    assert await lite.texts(chat) == before


@pytest.mark.rule("RS-12")
@pytest.mark.parametrize(
    ("platform", "own", "counts", "asks"),
    [
        ("full", "none", "none", True),
        ("full", "recall_only", "recall_only", False),
        ("none", "full", "none", False),
        ("recall_only", "full", "recall_only", False),
    ],
)
async def test_the_stricter_rule_counts_and_none_asks_whether_to_clear(
    sqlite: Database, clock: FakeClock, platform: str, own: Any, counts: str, asks: bool
) -> None:
    house = Desk(sqlite, clock)
    await house.begin()
    chat = await house.chat()
    await house.say(chat, *lines(1, 2, 3, 4, 5))
    await house.indexing.follow(chat.id)
    house.config = Config.model_validate({"recall": {"record": platform}})
    assert await house.desk.record(chat.id, own) is asks
    assert (await house.desk.overview(await house.fresh(chat), ANN)).record == counts
    if asks:
        assert await house.desk.clear_everything(chat.id, ANN, await house.desk.ask(chat.id, ANN, "everything")) == 1
        assert await house.desk.record(chat.id, own) is False


# -- forgetting --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-42")
async def test_what_is_forgotten_stays_away_until_a_rebuild_and_the_messages_stay(house: Desk) -> None:
    chat = await house.chat()
    await house.say(chat, *lines(*range(1, 13)))
    await house.indexing.follow(chat.id)
    [_, first] = (await house.desk.chunks(chat.id, ANN, limit=9)).rows
    assert await house.desk.forget(chat.id, ANN, first.id, await house.desk.ask(chat.id, ANN, f"forget:{first.id}"))
    await house.indexing.follow(chat.id)
    assert len(await house.texts(chat)) == 1
    assert await house.clear(chat) == 1
    await house.indexing.follow(chat.id)
    assert (await house.desk.overview(chat, ANN)).totals.chunks == 0
    assert (await house.desk.overview(chat, ANN)).totals.waiting == 0
    assert await house.db.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(messages)).scalar()) == 12
    await house.say(chat, *lines(13, 14, 15, 16, 17))
    await house.indexing.follow(chat.id)
    assert len(await house.texts(chat)) == 1
    assert await house.desk.rebuild(chat.id) == 3


@pytest.mark.rule("RS-42")
async def test_a_code_is_good_once_for_one_target_one_person_and_five_minutes(house: Desk) -> None:
    chat = await house.chat()
    await house.say(chat, *lines(*range(1, 11)))
    await house.indexing.follow(chat.id)
    [second, first] = (await house.desk.chunks(chat.id, ANN, limit=9)).rows
    of_one = await house.desk.ask(chat.id, ANN, f"forget:{first.id}")
    for wrong in (
        house.desk.clear(chat.id, ANN, of_one),
        house.desk.forget(chat.id, ANN, second.id, of_one),
        house.desk.forget(chat.id, BOB, first.id, of_one),
    ):
        with pytest.raises(CodeExpired):
            await wrong
    late = await house.desk.ask(chat.id, ANN, "clear")
    house.clock.advance(minutes=5, seconds=1)
    for code, what in ((late, house.desk.clear(chat.id, ANN, late)), (of_one, house.desk.forget(chat.id, ANN, first.id, of_one))):
        with pytest.raises(CodeExpired):
            await what
        assert code.isdigit() and len(code) == 4
    old, new = await house.desk.ask(chat.id, ANN, "clear"), await house.desk.ask(chat.id, ANN, "clear")
    if old != new:
        with pytest.raises(CodeExpired):
            await house.desk.clear(chat.id, ANN, old)
    assert await house.desk.clear(chat.id, ANN, new) == 2
    with pytest.raises(CodeExpired):
        await house.desk.clear(chat.id, ANN, new)


@pytest.mark.rule("RS-41")
async def test_a_rebuild_finds_edited_text_and_the_old_text_no_more(lite: Desk) -> None:
    chat = await lite.chat()
    ids = await lite.say(chat, *lines(1, 2, 3, 4, 5))
    await lite.indexing.follow(chat.id)
    await lite.db.write(lambda c: c.execute(sa.update(messages).where(messages.c.id == ids[2]).values(text="the lamp is blue")))
    assert await lite.desk.rebuild(chat.id) == 1
    [text] = await lite.texts(chat)
    assert "the lamp is blue" in text
    assert "word3" not in text


# -- out and in --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-39")
async def test_an_export_brought_in_twice_adds_nothing_the_second_time(house: Desk) -> None:
    chat = await house.chat()
    await house.say(chat, *lines(*range(1, 11)))
    await house.indexing.follow(chat.id)
    document = await house.desk.export(chat, ANN)
    assert "vector" not in document
    packed = transfer.parse(document)
    same = await house.desk.bring_in(chat, ANN, packed)
    assert (len(same.found), len(same.lost), same.standing) == (0, 0, 2)
    before = sorted(await house.texts(chat))
    await house.clear(chat)
    back = await house.desk.bring_in(chat, ANN, packed)
    assert (len(back.found), len(back.lost)) == (2, 0)
    assert sorted(await house.texts(chat)) == before
    assert (await house.desk.bring_in(chat, ANN, packed)).standing == 2


@pytest.mark.rule("RS-39")
async def test_sources_match_by_position_and_fingerprint_and_what_matches_nothing_is_off(lite: Desk) -> None:
    chat, copy, other = await lite.chat("1"), await lite.chat("2"), await lite.chat("3")
    await lite.say(chat, *lines(1, 2, 3, 4, 5))
    await lite.indexing.follow(chat.id)
    await lite.say(copy, *lines(1, 2, 3, 4, 5))
    await lite.say(other, *lines(1, 2, 9, 4, 5))
    packed = transfer.parse(await lite.desk.export(chat, ANN))
    assert len((await lite.desk.bring_in(copy, ANN, packed)).found) == 1
    lost = await lite.desk.bring_in(other, ANN, packed)
    assert (len(lost.found), len(lost.lost)) == (0, 1)
    [row] = (await lite.desk.chunks(other.id, ANN, limit=9)).rows
    assert (row.state, row.origin, row.passages) == ("off", "imported", 0)
    assert (await lite.desk.bring_in(other, ANN, packed)).standing == 1
    assert (await lite.desk.overview(other, ANN)).totals.waiting == 5


@pytest.mark.rule("RS-39")
@pytest.mark.parametrize("speaker", ["Ann", "葵", "林晓"])
async def test_a_file_of_another_program_is_read_and_unknown_fields_are_left_alone(lite: Desk, speaker: str) -> None:
    chat = await lite.chat()
    await lite.say(chat, *lines(1, 2, 3, 4, 5, 6), author_name=speaker)
    content = "\n".join(f"{speaker}: {line}" for line in lines(2, 3, 4))
    row = {
        "content": content, "embedding": [0.1, 0.2], "messageCount": 3, "firstMessageAt": "2025-01-01T10:00:00.000Z",
        "lastMessageAt": "2025-01-01T10:05:00.000Z", "createdAt": "2025-01-01T10:06:00.000Z", "mood": "sunny",
    }  # fmt: skip
    made_up = {**row, "content": f"{speaker}: I owe you a thousand"}
    envelope = {"type": "marinara_memory_recall", "version": 1, "data": {"sourceChat": {"id": "x"}, "chunks": [row, made_up]}}
    for document in (envelope, {"chunks": [row, made_up]}, {"memories": [row, made_up]}, [row, made_up]):
        plan = await lite.desk.preview(chat.id, ANN, transfer.parse(json.dumps(document)))
        assert (len(plan.found), len(plan.lost)) == (1, 1), document
    await lite.desk.bring_in(chat, ANN, transfer.parse(json.dumps(envelope)))
    rows = {row.state: row for row in (await lite.desk.chunks(chat.id, ANN, limit=9)).rows}
    assert rows["live"].text == content
    assert (rows["off"].said_from, rows["off"].messages) == (datetime.fromisoformat("2025-01-01T10:00:00+00:00"), 3)


@pytest.mark.rule("RS-39")
@pytest.mark.parametrize(
    "document",
    [
        "",
        "{",
        "7",
        "{}",
        "[]",
        '{"chunks": []}',
        '{"chunks": {}}',
        '{"chunks": [{"content": ""}]}',
        '{"chunks": ["text"]}',
        '[{"content": 3}]',
        "[" * 100_000,
    ],
)
def test_a_malformed_file_is_refused(document: str) -> None:
    with pytest.raises(NotAnExport):
        transfer.parse(document)


@pytest.mark.rule("RS-39")
@pytest.mark.parametrize("at", ["0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00", "9999-12-31T23:59:59-14:00", "9999-12-31T23:59:59"])
async def test_a_time_at_the_end_of_the_calendar_is_left_alone_and_what_came_in_can_be_read_and_removed(house: Desk, at: str) -> None:
    chat = await house.chat()
    packed = transfer.parse(json.dumps([{"content": "made up", "firstMessageAt": at, "lastMessageAt": at}]))
    assert len((await house.desk.bring_in(chat, ANN, packed)).lost) == 1
    [row] = (await house.desk.chunks(chat.id, ANN, limit=9)).rows
    assert row.said_from == row.said_to == row.created_at
    assert "made up" in await house.desk.export(chat, ANN)
    assert await house.db.write(lambda c: chunk_store.drop_chat(c, chat.id, native=False)) == []
    assert await house.texts(chat) == []


@pytest.mark.rule("RS-39")
async def test_many_passages_come_in_with_one_statement(lite: Desk) -> None:
    chat = await lite.chat()
    packed = transfer.parse(json.dumps([{"content": f"row {number}"} for number in range(50)]))
    plan = await lite.db.read(lambda c: transfer.plan(c, chat.id, packed, ANN, lite.indexing.cut))

    def work(c: sa.Connection) -> int:
        asked = overheard(c)
        transfer.bring_in(c, chat.id, plan, ANN, START, shared=True)
        return len(asked)

    assert await lite.db.write(work) == 1
    assert len(await lite.texts(chat)) == 50


@pytest.mark.rule("RS-38")
async def test_a_chat_of_more_passages_than_a_statement_takes_is_read_and_emptied(lite: Desk) -> None:
    chat, count, most = await lite.chat(), 33_000, 32_766  # the parameters that SQLite takes by default; PostgreSQL takes 65,535
    some = sa.text("WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count) SELECT i FROM n").bindparams(count=count)
    values = {"conversation_id": chat.id, "area": chunk_store.area_of(chat.id), "state": "off", "importer": ANN, "text": "x", "fingerprint": "x"}
    times = dict.fromkeys(("said_from", "said_to", "created_at"), START)
    fixed = [*map(sa.literal, values.values()), *(sa.literal(at, UtcTime) for at in times.values())]
    rows = sa.select(*fixed).select_from(some.columns(i=sa.Integer).subquery())
    await lite.db.write(lambda c: c.execute(sa.insert(message_chunks).from_select([*values, *times], rows)))

    def work(c: sa.Connection) -> int:
        asked = overheard(c)
        assert len(chunk_store.of_chat(c, chat.id)) == count
        chunk_store.drop_all(c, chat.id)
        assert chunk_store.of_chat(c, chat.id) == []
        return max(asked)

    assert await lite.db.write(work) < most


@pytest.mark.rule("RS-40")
async def test_imported_chunks_survive_a_rebuild_and_in_a_group_only_the_importer_reads_them(house: Desk) -> None:
    chat = await house.chat(group=True)
    await house.say(chat, *lines(*range(1, 6)))
    await house.indexing.follow(chat.id)
    packed = transfer.parse(await house.desk.export(chat, ANN))
    await house.clear(chat)
    assert len((await house.desk.bring_in(chat, ANN, packed)).found) == 1
    assert (len(await house.texts(chat, ANN)), len(await house.texts(chat, BOB))) == (1, 0)
    await house.desk.rebuild(chat.id)
    [row] = (await house.desk.chunks(chat.id, ANN, limit=9)).rows
    assert (row.origin, row.importer) == ("imported", ANN)
    await house.db.write(lambda c: chunk_store.mark_stale(c, chat.id, 0, 10**9))
    await house.indexing.follow(chat.id)
    assert await house.texts(chat, BOB) == []
    assert await house.desk.share(chat.id) == 1
    [row] = (await house.desk.chunks(chat.id, BOB, limit=9)).rows
    assert row.origin == "imported"
    assert await house.db.read(lambda c: real_talk.uncut(c, chat.id)) == []


@pytest.mark.rule("RS-39", "RS-185")
async def test_an_import_reaches_no_message_that_its_importer_may_not_read(lite: Desk) -> None:
    chat = await lite.chat(group=True)
    await lite.say(chat, *lines(1, 2, 3, 4, 5), person=BOB, audience_people=[BOB])
    await lite.indexing.follow(chat.id)
    packed = transfer.parse(await lite.desk.export(chat, BOB))
    assert transfer.Plan(found=(), lost=packed, standing=0) == await lite.desk.preview(chat.id, ANN, packed)
    with pytest.raises(NotAnExport):
        transfer.parse(await lite.desk.export(chat, ANN))


# -- whose chats, and links --------------------------------------------------------------------------------------------


def person(person_id: str, role: Role = "user") -> Person:
    return Person(
        id=PersonId(person_id), name="x", role=role, scope=f"people/{person_id}", language="en", timezone="", privacy="normal", has_password=True,
        blocked=False, subscriber_until=None, created_at=START,
    )  # fmt: skip


@pytest.mark.rule("RS-47", "CH-118")
async def test_a_chat_is_open_to_its_person_and_a_group_to_its_managers(lite: Desk) -> None:
    mine, den, attempt = await lite.chat("1"), await lite.chat("2", group=True), await lite.chat("3")
    await lite.db.write(lambda c: conversations.change(c, attempt.id, kind="challenge"))
    assert [each.chat.id for each in await lite.reach.of(person(ANN))] == [mine.id]
    lite.managers.add(BOB)
    await lite.reach.open(person(BOB), den.id)
    for who, chat in ((ANN, den), (BOB, mine), (ANN, attempt)):
        with pytest.raises(NotYourChat):
            await lite.reach.open(person(who), chat.id)
    admin = await lite.reach.of(person(BOB, "admin"))
    assert [each.chat.id for each in admin] == [den.id]


@pytest.mark.rule("RS-187")
async def test_a_link_is_one_way_listed_and_revocable(house: Desk) -> None:
    one, two = await house.chat("1"), await house.chat("2")
    await house.desk.link(ANN, one.id, two.id)
    await house.desk.link(ANN, one.id, two.id)
    [link] = await house.desk.links([one.id])
    assert (link.reader, link.source, link.source_title) == (one.id, two.id, "Chat 2")
    assert await house.desk.links([two.id]) == [link]
    assert await house.desk.unlink(two.id, one.id) is False
    assert await house.desk.unlink(one.id, two.id) is True
    assert await house.desk.links([one.id, two.id]) == []
    await house.desk.link(ANN, one.id, two.id)
    assert len(await house.desk.links([one.id])) == 1
