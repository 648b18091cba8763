"""Recall as people look after it: the switch, the record rule, the chunks of a chat (RS-9 to RS-12, RS-37 to RS-42, RS-187).

Every use case is about one chat that the caller has opened for its asker (`ChatReach`, or the chat where a command is given). What is shown is only
what the asker may read. What cannot be undone asks first, with a code that is good once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from gateway.config import Config
from gateway.embedding.vector_keeping import VectorStatus
from gateway.recall.recalling import is_on
from gateway.recall.talk_indexing import TalkIndexing
from gateway.windows import record_of
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import chunk_clearing, chunk_store, chunk_views, confirming, summary_rows, transfer
from memory.recall.chunk_views import Seen, Totals
from memory.recall.summary_rows import State
from memory.recall.transfer import Packed, Plan
from memory.recall_schema import chat_links, message_chunks
from memory.schema import conversations as chats
from memory.upserts import insert_or_change

Rule = Literal["full", "recall_only", "none"]
Label = Literal["vectorized", "waiting", "unavailable"]
_LINK = insert_or_change(chat_links, ["reader_id", "source_id"], ["person_id", "created_at", "revoked_at"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Overview:
    """How recall stands in a chat. `on`: whether it is used; `chosen`: the chat's own switch, None for none; `record`: what is kept, the stricter of
    the chat's rule `own_record` and the gateway's; `vectors`: of the whole gateway."""

    on: bool
    chosen: bool | None
    record: str
    own_record: str
    totals: Totals
    vectors: VectorStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunks:
    """A page of chunks with the label of each, and why there is no vector when none can be made."""

    rows: tuple[Seen, ...]
    labels: tuple[Label, ...]
    totals: Totals
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Link:
    """`reader` may recall what was said in `source`, not the other way round."""

    reader: str
    source: str
    reader_title: str
    source_title: str
    created_at: datetime


class RecallDesk:
    def __init__(self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], indexing: TalkIndexing) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._indexing = indexing

    # -- looking

    async def overview(self, chat: Conversation, person_id: str) -> Overview:
        config = self._config()
        return Overview(
            on=is_on(chat, config.recall.enabled),
            chosen=chat.recall_on,
            record=record_of(config, chat),
            own_record=chat.record,
            totals=await self._db.read(lambda connection: self._totals(connection, chat.id, person_id)),
            vectors=await self._indexing.status(),
        )

    async def chunks(self, chat_id: str, person_id: str, *, limit: int, offset: int = 0) -> Chunks:
        """The newest talk first."""
        status = await self._indexing.status()
        fingerprint = self._fingerprint()

        def look(connection: sa.Connection) -> tuple[list[Seen], Totals]:
            readable = chunk_views.areas(connection, chat_id, person_id)
            rows = chunk_views.page(connection, chat_id, readable, fingerprint, limit=limit, offset=offset)
            return rows, self._totals(connection, chat_id, person_id)

        rows, totals = await self._db.read(look)
        return Chunks(rows=tuple(rows), labels=tuple(label_of(row, status) for row in rows), totals=totals, reason=reason_of(status))

    async def readable(self, chat_id: str, person_id: str, ids: Collection[int]) -> frozenset[int]:
        """Those of these chunks that the person may read: of linked chats only their own (RS-37, RS-196)."""

        def look(connection: sa.Connection) -> frozenset[int]:
            return frozenset(
                row.id
                for row in connection.execute(_OF_IDS, {"ids": list(ids)})
                if chunk_views.may_read(row.area, row.conversation_id, person_id) and (row.conversation_id == chat_id or row.person_id == person_id)
            )

        return await self._db.read(look)

    async def unshared(self, chat_id: str) -> int:
        """How many imported chunks of a chat only their importer reads (RS-40)."""

        def look(connection: sa.Connection) -> int:
            return sum(bool(each.importer) and "/importer:" in each.area for each in chunk_store.of_chat(connection, chat_id))

        return await self._db.read(look)

    # -- switches

    async def switch(self, chat_id: str, on: bool) -> None:
        """Whether old passages are put into replies here. Nothing else changes (RS-10)."""
        await self._db.write(lambda connection: conversations.change(connection, chat_id, recall_on=on))

    async def record(self, chat_id: str, rule: Rule) -> bool:
        """What may be kept of a chat from now on; whether something is kept that the rule would not have allowed, so that clearing it is offered
        (RS-12)."""

        def work(connection: sa.Connection) -> bool:
            conversations.change(connection, chat_id, record="" if rule == "full" else rule)
            return rule == "none" and self._holds(connection, chat_id)

        return await self._db.write(work)

    # -- what cannot be undone

    async def ask(self, chat_id: str, person_id: str, what: str) -> str:
        """The code for `what`: `clear`, `everything`, or `forget:` with the id of a chunk."""
        now = self._clock()
        return await self._db.write(lambda connection: confirming.ask(connection, person_id, _target(chat_id, what), now))

    async def forget(self, chat_id: str, person_id: str, chunk_id: int, code: str) -> bool:
        """One chunk goes, its messages stay; False when there is none for the person. Raises CodeExpired."""
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[bool, list[chunk_clearing.Gone]]:
            confirming.take(connection, person_id, _target(chat_id, f"forget:{chunk_id}"), code, now)
            row = connection.execute(_OF_IDS, {"ids": [chunk_id]}).one_or_none()
            if row is None or not chunk_views.may_read(row.area, chat_id, person_id):
                return False, []
            return True, chunk_clearing.forget(connection, chat_id, [chunk_id], now)

        done, gone = await self._db.write(work)
        self._indexing.dropped(gone)
        return done

    async def clear(self, chat_id: str, person_id: str, code: str) -> int:
        """Every chunk of the chat goes, its messages stay; how many there were. Raises CodeExpired."""
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[int, list[chunk_clearing.Gone]]:
            confirming.take(connection, person_id, _target(chat_id, "clear"), code, now)
            return chunk_clearing.clear(connection, chat_id, now)

        count, gone = await self._db.write(work)
        self._indexing.dropped(gone)
        return count

    async def clear_everything(self, chat_id: str, person_id: str, code: str) -> int:
        """Chunks and summaries of a chat that keeps nothing any more; the messages stay (RS-12). How many chunks there were. Raises CodeExpired."""
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[int, list[chunk_clearing.Gone]]:
            confirming.take(connection, person_id, _target(chat_id, "everything"), code, now)
            kept = summary_rows.of_chat(connection, chat_id, states=tuple(State))
            summary_rows.delete(connection, [row.id for row in kept])
            return chunk_clearing.clear(connection, chat_id, now)

        count, gone = await self._db.write(work)
        self._indexing.dropped(gone)
        return count

    async def rebuild(self, chat_id: str) -> int:
        """Every native chunk anew from the messages of now, also of what was forgotten; how many. Their vectors follow behind (RS-41)."""
        return await self._indexing.rebuild(chat_id)

    # -- out and in

    async def export(self, chat: Conversation, person_id: str) -> str:
        now = self._clock()

        def look(connection: sa.Connection) -> str:
            return transfer.export(connection, chat.id, chat.title, chunk_views.areas(connection, chat.id, person_id), now)

        return await self._db.read(look)

    async def preview(self, chat_id: str, person_id: str, packed: Sequence[Packed]) -> Plan:
        """What an import would do; it changes nothing."""
        return await self._db.read(lambda connection: transfer.plan(connection, chat_id, packed, person_id, self._indexing.cut))

    async def bring_in(self, chat: Conversation, person_id: str, packed: Sequence[Packed]) -> Plan:
        """What was done. In a group the importer alone reads it, until it is shared (RS-40)."""
        now = self._clock()

        def work(connection: sa.Connection) -> Plan:
            plan = transfer.plan(connection, chat.id, packed, person_id, self._indexing.cut)
            transfer.bring_in(connection, chat.id, plan, person_id, now, shared=chat.space_id is None)
            return plan

        plan = await self._db.write(work)
        self._indexing.dropped()
        return plan

    async def share(self, chat_id: str) -> int:
        """Imported chunks become readable by whoever may read their messages; how many did."""
        now = self._clock()
        done, gone = await self._db.write(lambda connection: transfer.share(connection, chat_id, now, self._indexing.cut))
        self._indexing.dropped(gone)
        return done

    # -- links between chats

    async def links(self, chat_ids: Collection[str]) -> list[Link]:
        """Open links into and out of these chats."""
        return await self._db.read(lambda connection: [Link(**row._mapping) for row in connection.execute(_LINKS, {"ids": list(chat_ids)})])  # pyright: ignore[reportPrivateUsage]

    async def link(self, person_id: str, reader: str, source: str) -> None:
        """`reader` may recall `source` from now on. Both must be chats that the person looks after; the caller has seen to it (RS-187)."""
        values = {"reader_id": reader, "source_id": source, "person_id": person_id, "created_at": self._clock(), "revoked_at": None}
        await self._db.write(lambda connection: connection.execute(_LINK[connection.dialect.name], values))

    async def unlink(self, reader: str, source: str) -> bool:
        """Whether there was such a link."""
        values = {"reader": reader, "source": source, "now": self._clock()}
        return await self._db.write(lambda connection: connection.execute(_UNLINK, values).rowcount > 0)

    # -- inside

    def _fingerprint(self) -> str:
        embedder = self._indexing.serving().embedder
        return embedder.fingerprint if embedder is not None else ""

    def _holds(self, connection: sa.Connection, chat_id: str) -> bool:
        chunks = chunk_store.of_chat(connection, chat_id)
        return any(not chunk_clearing.is_emptied(each) for each in chunks) or bool(summary_rows.of_chat(connection, chat_id, states=tuple(State)))

    def _totals(self, connection: sa.Connection, chat_id: str, person_id: str) -> Totals:
        readable = chunk_views.areas(connection, chat_id, person_id)
        return chunk_views.totals(connection, chat_id, readable, self._fingerprint(), person_id)


def label_of(chunk: Seen, status: VectorStatus) -> Label:
    """How the vector of a chunk stands (RS-38)."""
    if chunk.embedded == chunk.passages and chunk.state == "live":
        return "vectorized"
    return "unavailable" if status.vectors in ("off", "failed") or chunk.state == "off" else "waiting"


def reason_of(status: VectorStatus) -> str:
    """Why vectors cannot be made now; empty when they can."""
    return status.reason or "off" if status.vectors in ("off", "failed") else ""


def _target(chat_id: str, what: str) -> str:
    return f"recall:{chat_id}:{what}"


_READER, _SOURCE = chats.alias("reader"), chats.alias("source")
_IDS = sa.bindparam("ids", type_=sa.Text, expanding=True)
_LINKS = (
    sa.select(
        chat_links.c.reader_id.label("reader"),
        chat_links.c.source_id.label("source"),
        _READER.c.title.label("reader_title"),
        _SOURCE.c.title.label("source_title"),
        chat_links.c.created_at,
    )
    .join(_READER, _READER.c.id == chat_links.c.reader_id)
    .join(_SOURCE, _SOURCE.c.id == chat_links.c.source_id)
    .where(chat_links.c.revoked_at.is_(None), chat_links.c.reader_id.in_(_IDS) | chat_links.c.source_id.in_(_IDS))
    .order_by(chat_links.c.created_at)
)
_UNLINK = (
    sa.update(chat_links)
    .where(chat_links.c.reader_id == sa.bindparam("reader"), chat_links.c.source_id == sa.bindparam("source"), chat_links.c.revoked_at.is_(None))
    .values(revoked_at=sa.bindparam("now"))
)
_OF_IDS = (
    sa.select(message_chunks.c.id, message_chunks.c.area, message_chunks.c.conversation_id, chats.c.person_id)
    .join(chats, chats.c.id == message_chunks.c.conversation_id)
    .where(message_chunks.c.id.in_(sa.bindparam("ids", type_=sa.BigInteger, expanding=True)))
)
