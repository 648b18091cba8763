"""The index of the talk while the gateway runs: cuts chunks behind the replies, makes their vectors, makes anew what changed (RS-11 to RS-21).

No reply waits for any of it (RS-20, RS-193). Everything is found again from the log after a kill: no job is needed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from functools import partial
from itertools import count, islice

import sqlalchemy as sa

from gateway.embedding.change import EmbeddingChange
from gateway.embedding.vector_keeping import AGAIN_S, Sleep, VectorKeeper, VectorStatus
from memory import conversations
from memory.areas import IndexArea
from memory.chunk_rows import Gone
from memory.database import Database
from memory.errors import StoreError
from memory.file_search import Serving
from memory.hot_areas import HotAreas
from memory.index_kinds import MESSAGES
from memory.ports import Embedder
from memory.recall import chunk_store, chunks, real_talk
from memory.recall.chunks import Chunk, Spoken
from memory.recall.talk_search import AT_ONCE
from memory.vector_mirror import Home

log = logging.getLogger(__name__)

LOOK_EVERY_S = 15.0  # for chunks of messages that were edited or deleted
CHATS_AT_ONCE = 20  # that have news, in one transaction
LOOKS_TO_WHOLE = 40  # then one through all of the talk: another process may have stored messages
STRICTEST = ("full", "recall_only", "none")


def record_rule(platform: str, chat: str) -> str:
    """The stricter of two record rules; an empty one says nothing (RS-12)."""
    return max(platform or "full", chat or "full", key=STRICTEST.index)


class TalkIndexing:
    """`gap`: a silence that parts vectors; `record`: the rule of the platform as it is now; `mirror_above`: passages of a chat that is no longer
    read whole while its reply waits, and so has its vectors in the vector index too. Run `run` in the task group of the gateway."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        embedder: Embedder | None,
        home: Home | None,
        gap: Callable[[], timedelta],
        record: Callable[[], str],
        samples: int = 64,
        hot: HotAreas | None = None,
        look_every_s: float = LOOK_EVERY_S,
        sleep: Sleep = asyncio.sleep,
        change: EmbeddingChange | None = None,
        mirror_above: int = AT_ONCE,
    ) -> None:
        self._db = db
        self._clock = clock
        self._gap = gap
        self._record = record
        self._part_tokens = embedder.passage_tokens if embedder is not None else 0
        self._look_every_s = look_every_s
        self._sleep = sleep
        self._pending: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._cold: dict[IndexArea, None] = {}
        self._cold_wake = asyncio.Event()
        self.hot = hot or HotAreas(MESSAGES)
        self._keeper = VectorKeeper(
            MESSAGES, db=db, clock=clock, embedder=embedder, home=home, hot=self.hot, samples=samples, sleep=sleep, change=change,
            mirror_above=mirror_above,
        )  # fmt: skip

    def serving(self) -> Serving:
        """What answers now."""
        return self._keeper.serving()

    async def status(self) -> VectorStatus:
        """How the vectors stand. StoreError when the database does not answer."""
        return await self._keeper.status()

    def changed(self, conversation_id: str) -> None:
        """Something was said in a chat, edited or deleted. Call it on the event loop; it does not wait."""
        self._pending[conversation_id] = None
        self._wake.set()

    def warm(self, area: IndexArea) -> None:
        """A reply needed the vectors of a large area, and they are not in memory. Call it on the event loop; it does not wait."""
        self._cold[area] = None
        self._cold_wake.set()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._read_cold())
            group.create_task(self._follow())
            group.create_task(self._tick())
            group.create_task(self._keeper.run())

    async def follow(self, *conversation_ids: str) -> None:
        """Make the chunks of these chats say what they say now. StoreError when the database does not answer."""
        chats = sorted(conversation_ids)  # in one order everywhere, so that two processes never wait for each other
        gone = await self._db.write(lambda connection: [each for chat in chats for each in self._bring_up(connection, chat)])
        self._keeper.changed(gone)

    async def rebuild(self, conversation_id: str, progress: Callable[[int, int], object] = lambda done, total: None) -> int:
        """Make every native chunk of a chat anew from its messages, imported ones stay (RS-40, RS-41); how many there are."""
        gone = await self._db.write(lambda connection: chunk_store.drop_chat(connection, conversation_id))
        self._keeper.changed(gone)
        await self.follow(conversation_id)
        made = [each for each in await self._db.read(partial(chunk_store.of_chat, conversation_id=conversation_id)) if each.origin == "native"]
        progress(len(made), len(made))
        return len(made)

    def cut(self, messages: Sequence[Spoken]) -> Chunk:
        """One chunk of these messages, parted as the embedder wants it."""
        return chunks.chunk_of(messages, gap=self._gap(), part_tokens=self._part_tokens)

    def dropped(self, gone: Sequence[Gone] = ()) -> None:
        """Chunks came or went by another hand; `gone`: what the vector index must drop. Call it on the event loop; it does not wait."""
        self._keeper.changed(gone)

    async def _tick(self) -> None:
        for look in count():
            for found in await self._with_work(whole=look % LOOKS_TO_WHOLE == 0):
                self._pending[found] = None
            self._wake.set()
            await self._sleep(self._look_every_s)

    async def _with_work(self, *, whole: bool) -> list[str]:
        try:
            waiting = await self._db.read(lambda connection: real_talk.with_work(connection, chunks.SIZE)) if whole else []
            return [*await self._db.read(chunk_store.chats_with_stale), *waiting]
        except StoreError as error:
            log.warning("the talk cannot be looked through for recall now: %s", error)
            return []

    async def _follow(self) -> None:
        while True:
            await self._wake.wait()
            self._wake.clear()
            while self._pending:
                some = list(islice(self._pending, CHATS_AT_ONCE))
                for conversation_id in some:  # before they are read: what is said in one meanwhile counts again
                    del self._pending[conversation_id]
                try:
                    await self.follow(*some)
                except StoreError as error:
                    log.warning("the chunks of %d chats cannot be made now: %s", len(some), error)
                    self._pending |= dict.fromkeys(some)
                    await self._sleep(AGAIN_S)

    async def _read_cold(self) -> None:
        """Read the vectors of areas that are searched, one area after the other, so that the next reply has them (RS-34, RS-181)."""
        while True:
            await self._cold_wake.wait()
            self._cold_wake.clear()
            while self._cold:
                area, serving = next(iter(self._cold)), self.serving()
                if (embedder := serving.embedder) is not None:
                    try:
                        await self._db.read(partial(self.hot.rows, area=area, fingerprint=embedder.fingerprint, calibration=serving.calibration))
                    except StoreError as error:
                        log.warning("the vectors of a chat cannot be read now: %s", error)  # the next reply asks again
                self._cold.pop(area, None)

    def _bring_up(self, connection: sa.Connection, conversation_id: str) -> list[Gone]:
        """Stale chunks are made of what is left of their messages, their borders stay (RS-21); new ones of what no chunk holds."""
        if connection.dialect.name == "postgresql":
            connection.execute(_ONE_AT_A_TIME, {"of": conversation_id})
        chat = conversations.conversation(connection, conversation_id)
        gone: list[Gone] = []
        for old in chunk_store.stale(connection, conversation_id):
            gone += chunk_store.drop(connection, [old.id])
            left = real_talk.by_seq(connection, conversation_id, old.seqs)
            if left and chat is not None:
                area = IndexArea(old.area) if old.importer else None
                chunk_store.add(connection, conversation_id, self.cut(left), self._clock(), importer=old.importer, area=area)
        if chat is None or record_rule(self._record(), chat.record) == "none":
            return gone
        talk = real_talk.uncut(connection, conversation_id)
        for chunk in chunks.cut(talk, (), gap=self._gap(), part_tokens=self._part_tokens):
            chunk_store.add(connection, conversation_id, chunk, self._clock())
        return gone


# Two processes that follow one chat would each cut the same messages (RS-190). SQLite has one writer anyway.
_ONE_AT_A_TIME = sa.text("SELECT pg_advisory_xact_lock(hashtext('yumegate chunks'), hashtext(:of))")
