"""Nobody is shown what was not said to them: in prompt, receipt, export or request, over every chat app (AT-17, AT-18, AT-34)."""

from __future__ import annotations

import itertools
import random
import re
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.characters import Character
from gateway import trimming
from gateway.config import Config
from gateway.embedding.change import EmbeddingChange
from gateway.recall.desk import RecallDesk
from gateway.recall.talk_indexing import TalkIndexing
from gateway.turn_store import TurnStart
from gateway.wiring.recall import RecallParts, build_recall
from memory import conversations
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.query import Query
from memory.recall import chunk_store
from memory.recall.chunk_views import may_read
from memory.recall_schema import message_chunks, summaries
from memory.schema import jobs, messages, people, spaces
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse, lines

PEOPLE = ("p-annannanna", "p-bobbobbobb", "p-chichichic")
PERSONAS = ("default", "aki")
ITEMS, SEEDS = 40, (17, 18, 19)
SPACES = {"telegram": "s-telegramte", "discord": "s-discorddis"}
# direct chats of Ann and Bo on every app, groups, a topic of a Telegram group and two threads of a Discord channel
CHATS = [
    *(f"{channel}:main:{person[2:5]}" for channel in ("telegram", "discord", "wechat", "web") for person in PEOPLE[:2]),
    "telegram:main:-100", "telegram:main:-100:7", "discord:main:55", "discord:main:55:551", "discord:main:55:552",
]  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    chat: str
    id: str
    people: tuple[str, ...] | None
    personas: tuple[str, ...] | None


@dataclass
class Town:
    """`items`: by their secret word; `links`: reader and source."""

    db: Database
    recall: RecallParts
    desk: RecallDesk
    chats: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    newest: dict[str, Message] = field(default_factory=dict[str, Message])
    items: dict[str, Item] = field(default_factory=dict[str, Item])
    links: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def start(self, key: str, person: str, text: str = "") -> TurnStart:
        question = self.newest[key]
        said = Message(**{name: getattr(question, name) for name in Message.__dataclass_fields__} | ({"text": text} if text else {}))
        return TurnStart(conversation=self.chats[key], person={"id": person}, questions=(said,), history=(), attempt=1, scope="root")

    def may(self, item: Item, key: str, person: str, responder: str) -> bool:
        """The rule, word for word (RS-185): the same conversation or a link, every reader inside `people`, who answers inside `personas`."""
        here = self.chats[key]
        readers = {"*"} if here.space_id else {person}
        return (
            (item.chat == here.id or (here.id, item.chat) in self.links)
            and (item.people is None or readers <= {*item.people})
            and (item.personas is None or responder in item.personas)
        )


def speak(c: sa.Connection, of: str, text: str, clock: FakeClock, **more: Any) -> Message:
    clock.advance(minutes=1)
    values = {"role": "user", "origin": "person", "scope": "root", "author_person_id": PEOPLE[0], "author_name": "Ann"} | more
    personas = values.pop("audience_personas", None)
    said = conversations.add_message(c, now=clock(), conversation_id=of, text=text, **values)
    c.execute(sa.update(messages).where(messages.c.id == said.id).values(audience_personas=personas))
    return said


@pytest.fixture
async def town(request: pytest.FixtureRequest, sqlite: Database, clock: FakeClock) -> Town:
    config = Config.model_validate({"agent_max_context_turns": 20})
    recall = build_recall(
        db=sqlite, clock=clock, config=lambda: config, embedder=None, home=None, change=EmbeddingChange(sqlite, clock)
    )  # fmt: skip
    made = Town(sqlite, recall, RecallDesk(db=sqlite, clock=clock, config=lambda: config, indexing=recall.indexing))
    chooser = random.Random(getattr(request, "param", SEEDS[0]))

    def settle(c: sa.Connection) -> None:
        for each in PEOPLE:
            c.execute(sa.insert(people), {"id": each, "name": each[2:5], "scope": f"people/{each}", "created_at": clock()})
        for channel, space in SPACES.items():
            values = {"id": space, "channel": channel, "account": "main", "platform_space_id": "1", "created_at": clock()}
            c.execute(sa.insert(spaces), values)
        for key in CHATS:
            channel, _, name = key.split(":")[:3]
            direct = name.isalpha()
            owner = next((each for each in PEOPLE if each[2:5] == name), None)
            of = conversations.create_conversation(
                c, now=clock(), key=key, channel=channel, account="main", kind="dm" if direct else "group", person_id=owner,
                space_id=None if direct else SPACES[channel], title=key,
            )  # fmt: skip
            found = conversations.conversation(c, of)
            assert found is not None
            made.chats[key] = found
            for _ in range(ITEMS):
                to = chooser.choice([None, None, [PEOPLE[0]], [*PEOPLE[:2]], [PEOPLE[2]], []])
                by = chooser.choice([None, None, None, ["default"], ["aki"], []])
                word = f"secret{len(made.items)}"
                said = speak(c, of, f"{word} is hidden in the garden", clock, audience_people=to, audience_personas=by)
                made.items[word] = Item(
                    chat=of, id=said.id, people=None if to is None else tuple(to), personas=None if by is None else tuple(by)
                )  # fmt: skip
            made.newest[key] = speak(c, of, "where is it hidden", clock)

    await sqlite.write(settle)
    for chat in made.chats.values():
        await recall.indexing.follow(chat.id)
    for reader, source in (("web:main:ann", "telegram:main:ann"), ("discord:main:55", "telegram:main:-100"), ("telegram:main:bob", "web:main:bob")):
        await made.desk.link(PEOPLE[0], made.chats[reader].id, made.chats[source].id)
        made.links.add((made.chats[reader].id, made.chats[source].id))
    await made.desk.link(PEOPLE[0], made.chats["telegram:main:-100"].id, made.chats["telegram:main:ann"].id)
    await made.desk.unlink(made.chats["telegram:main:-100"].id, made.chats["telegram:main:ann"].id)
    return made


@pytest.mark.slow
@pytest.mark.rule("RS-185", "RS-186", "RS-187")
@pytest.mark.case("AT-17", "AT-34", "K28", "K34", "K40")
@pytest.mark.parametrize("town", SEEDS, indirect=True)
async def test_of_a_hundred_thousand_pairs_of_a_reply_and_an_item_none_is_read_against_the_rule(town: Town) -> None:
    """Over the seeds: every chat, reader and responder against every item, by the areas that the search may look into at all."""

    def held(c: sa.Connection) -> dict[str, set[str]]:
        """The words that lie in each area of the index."""
        found: dict[str, set[str]] = {}
        for row in c.execute(sa.select(message_chunks.c.area, message_chunks.c.text)):
            found.setdefault(row.area, set()).update(re.findall(r"secret\d+", row.text))
        return found

    words, pairs, shown = await town.db.read(held), 0, 0
    around = town.recall.turns._around  # pyright: ignore[reportPrivateUsage]
    for key, person, responder in itertools.product(CHATS, PEOPLE, PERSONAS):
        start, character, live = town.start(key, person), Character(id=responder, name=responder), frozenset({town.newest[key].seq})
        reaches, _, _ = await town.db.read(lambda c, of=(start, character, live): around(c, *of))
        reached = {word for reach in reaches for area in reach.areas for word in words.get(area, ())}
        assert [word for word in reached if not town.may(town.items[word], key, person, responder)] == [], (key, person, responder)
        pairs, shown = pairs + len(town.items), shown + len(reached)
    assert pairs * len(SEEDS) > 100_000
    assert shown > 500


@pytest.mark.rule("RS-185", "RS-186", "RS-187", "RS-196")
@pytest.mark.case("AT-17", "AT-34", "K34", "K40")
async def test_no_block_receipt_or_snapshot_holds_what_was_not_said_to_its_readers(town: Town) -> None:
    chooser, asked = random.Random(2), {each.id for each in town.newest.values()}
    found = 0
    for n in range(60):
        key, person, responder = chooser.choice(CHATS), chooser.choice(PEOPLE), chooser.choice(PERSONAS)
        word = chooser.choice([word for word, item in town.items.items() if n % 2 or item.chat == town.chats[key].id])
        start, character = town.start(key, person, f"where is {word} hidden in the garden"), Character(id=responder, name=responder)
        text = town.recall.turns.question(start, character)
        told = await town.recall.turns.of(start, character, text, Query(text, time_limit_s=30), window_tokens=100_000, standing=0, used=0)
        ids = {each for used in told.report["used"] for each in used["messages"]}
        words = {*re.findall(r"secret\d+", told.text)}
        assert all(town.may(town.items[each], key, person, responder) for each in words)
        assert ids - asked == {town.items[each].id for each in words}
        assert "secret" not in str(told.snapshot)
        found += word in words
    assert found > 5


@pytest.mark.rule("RS-185", "RS-39", "RS-37")
@pytest.mark.case("AT-17")
@pytest.mark.parametrize("person", PEOPLE)
async def test_an_export_and_the_viewer_show_a_person_only_what_is_for_their_eyes(town: Town, person: str) -> None:
    for chat in town.chats.values():
        document = str(await town.desk.export(chat, person))
        shown = "\n".join(row.text for row in (await town.desk.chunks(chat.id, person, limit=200)).rows)
        for word in {*re.findall(r"secret\d+", document + shown)}:
            item = town.items[word]
            assert item.chat == chat.id
            assert item.people is None or person in item.people
    assert may_read(chunk_store.area_of("c1", "p:x"), "c1", "y") is False


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    made = RowsHouse(sqlite, tmp_path, clock, companion={"messages": 10, "block": 5})
    await made.person()
    yield made
    await made.close()


@pytest.mark.rule("RS-188", "RS-186")
@pytest.mark.case("AT-17")
@pytest.mark.parametrize("profile", ["companion", "calendar"])
async def test_no_request_of_a_helper_holds_texts_for_different_people(house: RowsHouse, profile: str) -> None:
    house.profile, chooser = profile, random.Random(3)
    chat, whose = await house.made(), dict[str, tuple[str, ...] | None]()
    for n in range(60):
        to = chooser.choice([None, [PEOPLE[0]], [*PEOPLE[:2]]])
        await house.says(chat, f"word{n}", audience_people=to)
        whose[f"word{n}"] = None if to is None else tuple(to)
    found = await house.conversation(chat)

    def leave(c: sa.Connection) -> None:
        trimming.left(c, found, "root", 1, found.last_seq, house.clock(), into="rolling")
        conversations.move_edge(c, chat, found.last_seq)

    if profile == "companion":
        await house.db.write(leave)
    house.clock.advance(days=1)
    while await house.plan() + len(await house.run("rolling", "day-row", "fold")):
        pass
    assert house.calls >= 3
    assert all(len({whose[each] for each in lines(request)}) <= 1 for request in house.model.requests)
    rows = await house.rows(chat)
    assert {row.audience for row in rows} >= {"", f"p:{PEOPLE[0]}"}
    assert not [word for word in re.findall(r"word\d+", await house.stands(chat)) if whose[word] is not None]


@pytest.mark.slow
@pytest.mark.rule("RS-12", "RS-11")
@pytest.mark.case("AT-18")
@pytest.mark.parametrize(
    ("kind", "scope", "values"),
    [
        ("group", "spaces/s-telegramte", {"record": "none"}), ("challenge", "", {"kind": "challenge"}), ("signed out", "", {}),
        ("memory off", "", {"memory_on": False}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("profile", ["assistant", "companion", "calendar"])
async def test_where_nothing_may_be_kept_a_hundred_messages_leave_no_row_vector_or_call(
    house: RowsHouse, kind: str, scope: str, values: dict[str, Any], profile: str
) -> None:
    house.profile = profile
    chat = await house.made(**values)
    index = TalkIndexing(
        db=house.db, clock=house.clock, embedder=None, home=None, gap=lambda: timedelta(hours=6), record=lambda: house.config.recall.record
    )  # fmt: skip
    for n in range(100):
        await house.asks(chat, f"word{n}", scope=scope)
    await index.follow(chat)
    house.clock.advance(days=9)
    await house.plan()
    await house.run()
    tables = (message_chunks, summaries, jobs)
    assert [await house.count(table) for table in tables] == [0, 0, 0], kind
    words = await house.db.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM message_words").scalar_one())
    assert (words, house.calls, await house.stands(chat)) == (0, 0, "")
