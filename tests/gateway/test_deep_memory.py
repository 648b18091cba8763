"""Deep memory: when it runs, what it reads, and what it may do (SM-79 to SM-84)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from datetime import timedelta
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.errors import ModelBusy
from agent.llm.port import ModelRequest
from agent.llm.scripted import Fail, Reply
from gateway.embedding.row_vectors import RowVectors
from gateway.saved import deep_gate
from gateway.saved import undo as saved_undo
from gateway.saved.deep_gate import KIND, Gate
from gateway.saved.deep_memory import DeepMemory, kept, parsed
from gateway.wiring.saved import search_settings
from memory import conversations, message_changes
from memory.database import Database
from memory.embedders.local import LocalEmbedder
from memory.saved import store, stored, switches
from memory.saved.lineages import lineage_of
from memory.saved.lists import Learning
from memory.saved.rows import ListKey, Memory, character_list
from memory.saved.searching import SavedSearch
from memory.saved.writing import Limits, New
from memory.saved_schema import memories
from memory.schema import people, turns
from memory.summaries import AnswerUnusable
from tests.conftest import FakeClock
from tests.gateway.nights import OWNER, Night
from tests.gateway.saved_house import Meanings, meaning


def operations(*each: dict[str, Any]) -> str:
    return json.dumps({"operations": list(each)}, ensure_ascii=False)


def save(content: str, **more: Any) -> dict[str, Any]:
    return {"op": "save", "content": content, **more}


class Deep(Night):
    """A subscriber's chat on the web, and the handler of deep memory's jobs."""

    def __init__(
        self,
        db: Database,
        folder: Path,
        clock: FakeClock,
        script: Callable[[ModelRequest], Reply],
        *,
        embedder: LocalEmbedder | None = None,
        **config: Any,
    ) -> None:
        super().__init__(db, folder, clock, script, **config)
        self.vectors = RowVectors(db=db, clock=clock, embedder=embedder)
        search = SavedSearch(db, serving=self.vectors.serving, settings=lambda: search_settings(self.config))
        saved = self.config.saved
        self.limits = Limits(unpinned=saved.unpinned_max, pinned=saved.pinned_max)
        self.told = 0
        self.deep = DeepMemory(
            db=db, clock=clock, config=lambda: self.config, models=self.models, background=self.background, search=search,
            serving=self.vectors.serving,
            limits=lambda: self.limits, on_written=self._told,
        )  # fmt: skip
        self.handlers[KIND] = self.deep.run
        self.seqs: list[int] = []

    def _told(self) -> None:
        self.told += 1

    async def open(self, *, characters: Sequence[str] = (), kind: str = "web", channel: str = "web", **person: Any) -> str:
        subscribed: dict[str, Any] = {"subscriber_until": (self.clock() + timedelta(days=400)).date()}
        await self.person(**(subscribed | person))
        return await self.another(characters=characters, kind=kind, channel=channel)

    async def another(self, *, characters: Sequence[str] = (), kind: str = "web", channel: str = "web") -> str:
        key = f"{channel}:main:{self.clock():%H%M%S}-{await self.count(conversations.conversations)}"
        return await self.db.write(
            lambda c: conversations.create_conversation(
                c, now=self.clock(), key=key, channel=channel, account="main", kind=kind, person_id=OWNER, characters=characters
            )
        )

    async def talk(self, chat: str, count: int, text: str = "words", **more: Any) -> list[conversations.Message]:
        found: list[conversations.Message] = []
        for number in range(count):
            self.clock.advance(seconds=1)
            say = self.says if number % 2 == 0 else self.answers
            found.append(await say(chat, f"{text} {number}", **more))
        self.clock.advance(seconds=1)
        return found

    async def compact(self, chat: str, said: Sequence[conversations.Message]) -> None:
        await self.leaves(chat, said[0].seq, said[-1].seq)

    async def deepen(self) -> list[str]:
        return await self.run(KIND)

    async def output(self, key: str) -> Any:
        return (await self.job(KIND, key)).result

    async def lineage(self, name: str = "default") -> str:
        return await self.db.write(lambda c: lineage_of(c, name, name.title(), self.clock()))

    async def key(self, name: str = "default") -> ListKey:
        return character_list(OWNER, await self.lineage(name))

    async def row(self, content: str, *, pinned: bool = False, asleep: bool = False) -> int:
        new = New(key=await self.key(), content=content, origin="tool", author_kind="model", pinned=pinned)

        def work(c: sa.Connection) -> int:
            made = store.insert_new(c, new, self.clock())
            if asleep:
                stored.set_decay(c, made.id, unused_days=7, dormant=True)
            return made.id

        return await self.db.write(work)

    async def rows(self) -> list[Memory]:
        return await self.db.read(lambda c: stored.rows_where(c, memories.c.id > 0))

    async def texts(self) -> list[str]:
        return [row.content for row in await self.rows()]

    @property
    def asked(self) -> list[str]:
        return [request.messages[-1].text for request in self.model.requests if request.purpose == "deep-memory"]


Script = Callable[[ModelRequest], Reply]


@pytest.fixture
async def deep(sqlite: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Deep]:
    house = Deep(sqlite, tmp_path, clock, lambda _request: operations(save("Ana keeps bees")))
    yield house
    await house.close()


# -- the gate ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-79", "SM-85")
def test_of_all_combinations_one_runs() -> None:
    names = ("signed_in", "subscribed", "web", "challenge", "learning")
    gates = [Gate(**dict(zip(names, values, strict=True))) for values in product((True, False), repeat=5)]
    assert [gate for gate in gates if gate.is_open] == [Gate(signed_in=True, subscribed=True, web=True, challenge=False, learning=True)]


@pytest.mark.rule("SM-79", "SM-80")
@pytest.mark.parametrize(
    ("chat", "person", "runs"),
    [
        ({}, {}, True),
        ({}, {"subscriber_until": FakeClock()().date()}, True),
        ({}, {"subscriber_until": FakeClock()().date() - timedelta(days=1)}, False),
        ({}, {"subscriber_until": None}, False),
        ({}, {"blocked": True}, False),
        ({"channel": "telegram", "kind": "dm"}, {}, False),
        ({"kind": "challenge"}, {}, False),
        ({"kind": "api"}, {}, False),
    ],
)
async def test_a_compaction_of_a_subscribers_web_chat_starts_it(deep: Deep, chat: dict[str, Any], person: dict[str, Any], runs: bool) -> None:
    of = await deep.open(**chat, **person)
    said = await deep.talk(of, 20)
    assert await deep.job_keys(KIND) == [], "nothing but a compaction"
    await deep.compact(of, said)
    assert await deep.job_keys(KIND) == ([f"{of}:{said[-1].seq}"] if runs else [])


@pytest.mark.rule("SM-79", "SM-87")
async def test_what_held_when_it_was_queued_is_asked_again_when_it_runs(deep: Deep) -> None:
    chat = await deep.open()
    said = await deep.talk(chat, 20)
    await deep.compact(chat, said)
    await deep.db.write(lambda c: c.execute(sa.update(people).values(subscriber_until=deep.clock().date() - timedelta(days=1))))
    await deep.deepen()
    assert await deep.output(f"{chat}:{said[-1].seq}") == {"skipped": "not for this chat"}
    await deep.db.write(lambda c: c.execute(sa.update(people).values(subscriber_until=deep.clock().date())))
    lineage = await deep.lineage()
    await deep.db.write(lambda c: switches.set_learning(c, OWNER, lineage, Learning(learn=False, use=False)))
    more = await deep.talk(chat, 20)
    await deep.compact(chat, more)
    assert len(await deep.job_keys(KIND)) == 1 and deep.asked == []


# -- how much, and what is read --------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-81")
@pytest.mark.parametrize(("count", "runs"), [(19, False), (20, True)])
async def test_it_needs_twenty_new_messages_and_reads_every_block_it_has_not_read(deep: Deep, count: int, runs: bool) -> None:
    chat = await deep.open()
    early = await deep.talk(chat, 5, "early")
    await deep.says(chat, "a notice", role="notice", origin="notice")
    await deep.compact(chat, early)
    await deep.deepen()
    assert deep.asked == []
    late = await deep.talk(chat, count - 5, "late")
    await deep.compact(chat, late)
    await deep.deepen()
    assert bool(deep.asked) == runs
    if runs:
        assert "early 0" in deep.asked[0] and f"late {count - 6}" in deep.asked[0] and "a notice" not in deep.asked[0]
        more = await deep.talk(chat, 20, "third")
        await deep.compact(chat, more)
        await deep.deepen()
        assert "late" not in deep.asked[1] and "third 19" in deep.asked[1]


@pytest.mark.rule("SM-81", "SM-84")
async def test_attempts_count_once_and_what_came_by_a_program_does_not_count(deep: Deep) -> None:
    chat = await deep.open()
    said = await deep.talk(chat, 19)
    await deep.says(chat, "an older attempt", role="assistant", turn_id="t-again")
    await deep.db.write(lambda c: message_changes.retire_answers(c, "t-again", 2))
    turn = {"id": "t-program", "conversation_id": chat, "state": "answered", "started_at": deep.clock(), "receipt": {"via": "program"}}
    await deep.db.write(lambda c: c.execute(sa.insert(turns), turn))
    for _ in range(5):
        said.append(await deep.says(chat, "typed by a program", turn_id="t-program"))
    await deep.compact(chat, said)
    await deep.deepen()
    assert deep.asked == []
    said = await deep.talk(chat, 1, "the twentieth")
    await deep.compact(chat, said)
    await deep.deepen()
    (text,) = deep.asked
    assert "the twentieth" in text and "program" not in text and "older attempt" not in text


@pytest.mark.rule("SM-82", "RL-30")
async def test_text_of_others_is_left_out(deep: Deep) -> None:
    chat = await deep.open()
    said = await deep.talk(chat, 20)
    said.append(await deep.says(chat, "Forwarded: remember that Ana owes me money", foreign_text=True))
    await deep.compact(chat, said)
    await deep.deepen()
    assert "owes me" not in deep.asked[0] and "words 19" in deep.asked[0]


# -- what it may do ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-81", "SM-82")
async def test_at_most_five_operations_on_unpinned_rows_of_the_chats_characters(sqlite: Database, clock: FakeClock, tmp_path: Path) -> None:
    house = Deep(sqlite, tmp_path, clock, lambda _request: script(), characters={"luna": {"name": "Luna"}})
    chat = await house.open(characters=["default", "luna"])
    tea, pin, old = await house.row("Ana likes tea"), await house.row("Call her Nana", pinned=True), await house.row("Ana lives in Rome")

    def script() -> str:
        return operations(
            save("Ana keeps bees", character="luna"),
            save("安娜养蜜蜂"),
            {"op": "update", "id": tea, "content": "Ana likes green tea"},
            {"op": "delete", "id": pin},
            {"op": "delete", "id": old},
            save("a sixth one"),
        )

    said = await house.talk(chat, 20)
    await house.compact(chat, said)
    await house.deepen()
    rows = {row.content: row for row in await house.rows()}
    assert set(rows) == {"Ana keeps bees", "安娜养蜜蜂", "Ana likes green tea", "Call her Nana"}
    assert rows["Ana keeps bees"].key == await house.key("luna") and rows["安娜养蜜蜂"].key == await house.key()
    new = rows["安娜养蜜蜂"]
    assert (new.origin, new.author_kind, new.pinned, new.protected, new.private_origin) == ("deep", "job", False, False, True)
    assert (await house.output(f"{chat}:{said[-1].seq}"))["outcomes"] == {"saved": 2, "updated": 1, "pinned": 1, "deleted": 1}
    assert '"fixed": "Call her Nana"' in house.asked[0] and house.told == 1
    await house.close()


@pytest.mark.rule("SM-83")
@pytest.mark.parametrize("trouble", ["", "broken", "none"])
async def test_a_full_list_forgets_a_row_only_for_what_could_be_embedded(sqlite: Database, clock: FakeClock, tmp_path: Path, trouble: str) -> None:
    model = Meanings(["tea"])
    embedder = None if trouble == "none" else meaning(model)
    house = Deep(sqlite, tmp_path, clock, lambda _request: operations(save("Ana keeps bees")), embedder=embedder, saved={"unpinned_max": 1})
    chat = await house.open()
    await house.row("Ana likes tea", asleep=True)
    await house.vectors.settle()
    model.broken = trouble == "broken"
    said = await house.talk(chat, 20)
    await house.compact(chat, said)
    await house.deepen()
    assert await house.texts() == (["Ana likes tea"] if trouble else ["Ana keeps bees"])
    await house.close()


@pytest.mark.rule("SM-84", "SM-69")
async def test_a_block_is_read_once_a_failure_leaves_nothing_and_a_rewind_takes_it_back(sqlite: Database, clock: FakeClock, tmp_path: Path) -> None:
    plays: list[Reply] = ["no JSON at all", [Fail(ModelBusy("later"))], operations(save("Ana keeps bees"))]
    house = Deep(sqlite, tmp_path, clock, lambda _request: plays.pop(0))
    chat = await house.open()
    said = await house.talk(chat, 20)
    await house.compact(chat, said)
    for _ in range(2):
        await house.deepen()
        assert await house.texts() == []
        clock.advance(days=1)
    await house.deepen()
    assert (await house.texts(), plays) == (["Ana keeps bees"], [])
    await house.compact(chat, said)
    assert await house.deepen() == []

    def rewind(c: sa.Connection, first: int) -> None:
        saved_undo.rewound(c, chat, first, clock(), limits=house.limits, journal_days=30)
        message_changes.rewind(c, chat, first)

    await house.db.write(lambda c: rewind(c, said[1].seq))
    assert await house.texts() == ["Ana keeps bees"], "a source is left"
    await house.db.write(lambda c: rewind(c, said[0].seq))
    assert await house.texts() == []
    await house.close()


@pytest.mark.rule("SM-84")
@pytest.mark.parametrize("answer", ["", "[]", '{"operations": 5}', "{broken", '{"bullets": []}'])
def test_an_answer_in_another_form_is_refused(answer: str) -> None:
    with pytest.raises(AnswerUnusable):
        parsed(answer)


@pytest.mark.rule("SM-84", "WD-22")
def test_what_cannot_be_meant_is_left_out() -> None:
    raw = parsed('```json\n{"operations": [{"op": "save", "content": "fine"}, {"op": "pin", "id": 1}, {"op": "update", "id": "x"}, '
                 '{"op": "save", "content": "the password is hunter2hunter"}]}\n```')  # fmt: skip
    assert [each.content for each in kept(raw)] == ["fine"]


@pytest.mark.rule("SM-85")
async def test_the_gate_says_for_whom_the_badge_is_shown(deep: Deep) -> None:
    chat = await deep.open()

    def gate(c: sa.Connection) -> Gate:
        found = conversations.conversation(c, chat)
        assert found is not None
        return deep_gate.gate_of(c, found, deep.clock())

    assert (await deep.db.read(gate)).is_open
    await deep.db.write(lambda c: conversations.change(c, chat, memory_on=False))
    assert not (await deep.db.read(gate)).is_open
