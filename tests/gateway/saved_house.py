"""What a reply has of saved memory, without the rest of the gateway: a real database, the real search, an embedder whose meanings the test gives."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar

import numpy as np
import sqlalchemy as sa

from agent.characters import Character
from agent.tools.port import Tool
from agent.turn import Record
from gateway.config import Config
from gateway.embedding.row_vectors import RowVectors
from gateway.saved.turn import Asker, SavedTurn, SavedTurns
from gateway.turn_store import TurnStart
from gateway.wiring.saved import search_settings
from memory import conversations
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.embedders import background_set
from memory.embedders.local import LocalEmbedder
from memory.ids import new_conversation, new_turn
from memory.index_errors import EmbedderFailed
from memory.ports import Matrix
from memory.saved import store, stored
from memory.saved.lineages import lineage_of
from memory.saved.rows import ListKey, Memory, character_list, global_list, space_list
from memory.saved.searching import SavedSearch
from memory.saved.writing import Limits, New
from memory.schema import people, spaces
from tests.conftest import FakeClock

T = TypeVar("T")

ANN, BOB = "p-annannanna", "p-bobbobbobb"
DEN = "s-dendendend"
YUME = Character(id="default", name="Yume")
SIZE = 256


class Meanings:
    """A model for which texts with one of its words mean the same, and all else nothing in common. Pairs of the bundled set belong together."""

    dimension = SIZE

    def __init__(self, words: Sequence[str]) -> None:
        self._axes = {word: _noise(f"meaning of {word}") for word in words}
        for number, pair in enumerate(background_set.background().pairs):
            self._axes |= dict.fromkeys(pair, _noise(f"pair {number}"))
        self.asked: list[list[str]] = []
        self.broken = False

    def documents(self, texts: list[str]) -> Matrix:
        if self.broken:
            raise EmbedderFailed("the embedder is broken")
        return np.stack([self._vector(text) for text in texts])

    def questions(self, texts: list[str]) -> Matrix:
        self.asked.append(list(texts))
        return self.documents(texts)

    def _vector(self, text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
        meanings = [axis for word, axis in self._axes.items() if word in text]
        return (sum(meanings, np.zeros(SIZE, dtype=np.float32)) * 4 + _noise(text)).astype(np.float32)


def _noise(text: str) -> np.ndarray[Any, np.dtype[np.float32]]:
    seed = int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8])
    vector = np.random.default_rng(seed).standard_normal(SIZE).astype(np.float32)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


def meaning(model: Meanings) -> LocalEmbedder:
    return LocalEmbedder(lambda: model, fingerprint="meanings/1", label="meanings")


@dataclass
class Sent:
    """What one reply had."""

    turn: SavedTurn
    record: Record

    @property
    def texts(self) -> tuple[str, str]:
        return self.turn.shown.texts()

    @property
    def head(self) -> str:
        return self.texts[0]

    @property
    def tail(self) -> str:
        return self.texts[1]

    @property
    def head_ids(self) -> list[int]:
        return sorted(row.id for row in self.turn.shown.head)

    @property
    def tail_ids(self) -> list[int]:
        return [row.id for row in self.turn.shown.tail]

    @property
    def report(self) -> dict[str, Any]:
        return self.turn.report(self.record)

    def tool(self, name: str) -> Tool:
        return next(tool for tool in self.turn.tools if tool.name == name)

    async def call(self, name: str, **arguments: Any) -> str:
        tool = self.tool(name)
        return await tool.call(tool.arguments(**arguments))

    async def save(self, content: str, **more: Any) -> str:
        return await self.call("memory_save", content=content, **more)


@dataclass
class Chat:
    """A conversation and the talk in it so far."""

    id: str
    person: str
    log: list[Message] = field(default_factory=list[Message])


class SavedHouse:
    def __init__(self, db: Database, clock: FakeClock, *meanings: str, config: Mapping[str, Any] | None = None, embedder: bool = True) -> None:
        self.db = db
        self.clock = clock
        self.config = Config.model_validate(config or {})
        self.model = Meanings(meanings)
        self.embedder = meaning(self.model) if embedder else None
        self.vectors = RowVectors(db=db, clock=clock, embedder=self.embedder)
        self.search = SavedSearch(db, serving=self.vectors.serving, settings=lambda: search_settings(self.config), spoiled=self.vectors.spoiled)
        self.written = 0
        self.turns = SavedTurns(db=db, clock=clock, config=lambda: self.config, search=self.search, on_written=self._on_written)
        self.foreign = False
        self.yume = self.do(self._people)

    def _on_written(self) -> None:
        self.written += 1

    def _people(self, connection: sa.Connection) -> str:
        now = self.clock()
        rows = [{"id": each, "name": each[2:5].title(), "scope": f"people/{each}", "created_at": now} for each in (ANN, BOB)]
        connection.execute(sa.insert(people), rows)
        connection.execute(sa.insert(spaces), {"id": DEN, "channel": "discord", "account": "main", "platform_space_id": "9", "created_at": now})
        return lineage_of(connection, "default", "Yume", now)

    def do(self, work: Callable[[sa.Connection], T]) -> T:
        return self.db.write_now(work)

    # -- rows

    def key(self, kind: str = "character", person: str = ANN) -> ListKey:
        if kind == "global":
            return global_list(person)
        return space_list(DEN, self.yume) if kind == "space" else character_list(person, self.yume)

    def row(self, content: str, key: ListKey | None = None, *, pinned: bool = False, author_kind: str = "model", **more: Any) -> int:
        """A row as the AI or a person made it; its id."""
        new = New(key=key or self.key(), content=content, origin="tool", author_kind=author_kind, pinned=pinned, private_origin=False)
        new = replace(new, **more)
        return self.do(lambda connection: store.insert_new(connection, new, self.clock())).id

    def rows(self, *keys: ListKey) -> dict[int, Memory]:
        wanted = keys or (self.key(), self.key("global"), self.key("space"), self.key(person=BOB), self.key("global", BOB))
        return self.do(lambda connection: {row.id: row for row in stored.rows_of(connection, wanted)})

    def sleep(self, *ids: int) -> None:
        def work(connection: sa.Connection) -> None:
            for each in ids:
                stored.set_decay(connection, each, unused_days=7, dormant=True)

        self.do(work)

    # -- talk

    def chat(self, person: str = ANN, *, kind: str = "web", channel: str = "web", space: str | None = None, **more: Any) -> Chat:
        chat_id = new_conversation()

        def work(connection: sa.Connection) -> None:
            conversations.create_conversation(
                connection, now=self.clock(), key=f"{channel}:main:{chat_id}", channel=channel, account="main", kind=kind,
                person_id=None if space else person, space_id=space,
            )  # fmt: skip
            made = conversations.conversation_by_key(connection, f"{channel}:main:{chat_id}")
            assert made is not None
            if more:
                conversations.change(connection, made.id, **more)
            chat.id = made.id

        chat = Chat(id=chat_id, person=person)
        self.do(work)
        return chat

    def den(self, person: str = ANN) -> Chat:
        return self.chat(person, kind="group", channel="discord", space=DEN)

    def said(self, chat: Chat, text: str, *, person: str = "", by_us: bool = False, at: datetime | None = None, turn: str = "") -> Message:
        """A message joins the log without being answered."""
        who = person or chat.person
        scope = f"people/{who}" if self._space_of(chat) is None else f"spaces/{DEN}"

        def work(connection: sa.Connection) -> Message:
            return conversations.add_message(
                connection, now=at or self.clock(), conversation_id=chat.id, turn_id=turn or new_turn(), role="assistant" if by_us else "user",
                origin="assistant" if by_us else "person", author_person_id="" if by_us else who, author_name="" if by_us else who[2:5], text=text,
                scope=scope,
            )  # fmt: skip

        message = self.do(work)
        chat.log.append(message)
        return message

    def _space_of(self, chat: Chat) -> str | None:
        return self.conversation(chat).space_id

    def conversation(self, chat: Chat) -> Conversation:
        found = self.do(lambda connection: conversations.conversation(connection, chat.id))
        assert found is not None
        return found

    def start(self, chat: Chat, text: str, *, person: str = "", attempt: int = 1, turn: str = "") -> TurnStart:
        who = person or chat.person
        history = tuple(chat.log)
        question = self.said(chat, text, person=who, turn=turn)
        conversation = self.conversation(chat)
        return TurnStart(
            conversation=conversation,
            person={"id": who, "scope": f"people/{who}", "name": who[2:5].title()},
            questions=(question,),
            history=history,
            attempt=attempt,
            scope=question.scope if conversation.memory_on and conversation.kind != "challenge" else "",
        )

    async def asks(self, chat: Chat, text: str, *, character: Character = YUME, can_call: bool = True, **more: Any) -> Sent:
        """Someone writes, and a reply is prepared; vectors are as far as they come."""
        await self.settle()
        return await self.prepared(self.start(chat, text, **more), character=character, can_call=can_call)

    async def prepared(self, start: TurnStart, *, character: Character = YUME, can_call: bool = True) -> Sent:
        record = Record()
        asker = Asker(character=character, model="scripted", can_call=can_call, record=record, foreign=lambda: self.foreign)
        words = "\n".join(question.text for question in start.questions)
        return Sent(turn=await self.turns.prepare(start, asker, self.turns.query(start, words)), record=record)

    async def settle(self) -> None:
        if not self.model.broken:
            await self.vectors.settle()

    @property
    def limits(self) -> Limits:
        return Limits(unpinned=self.config.saved.unpinned_max, pinned=self.config.saved.pinned_max)
