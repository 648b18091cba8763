"""Chunks of a chat as a file, and back: text, sources and audiences, no vectors (RS-39, RS-40).

A file of ours, or one that another program wrote of its recall memory, is read as `Packed` chunks. One is believed only where it is what the log of
this chat says: its messages are found by id, else by position and fingerprint, else by their very words. What is found becomes a chunk of those
messages again; what is not is stored switched off, so that nothing made up is ever recalled. Vectors are made anew.
"""

from __future__ import annotations

import hashlib
import json
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeAlias, cast

import sqlalchemy as sa

from memory import tokens
from memory.areas import IndexArea
from memory.chunk_rows import Gone
from memory.recall import chunk_clearing, chunk_store, chunk_views, real_talk
from memory.recall.chunk_store import Stored
from memory.recall.chunks import Chunk, Spoken
from memory.recall_schema import message_chunks

Cut: TypeAlias = Callable[[Sequence[Spoken]], Chunk]

TYPE, VERSION = "yumegate_recall", 1
CHUNKS_MAX, TEXT_MAX = 20_000, 200_000  # of one file; characters of one chunk


class NotAnExport(ValueError):
    """The file holds no chunks that can be read; nothing was changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Source:
    """A message that a chunk was made of: its id, its place among the real messages of its chat, the hash of what it says; each may be missing."""

    id: str = ""
    position: int = -1
    print: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A chunk as a file tells it. `count`: of messages, 0 where it does not say."""

    text: str
    sources: tuple[Source, ...] = ()
    count: int = 0
    begin: datetime | None = None
    end: datetime | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What an import would do. `found`: chunks of messages of this chat; `lost`: those that match nothing here; `standing`: how many are here
    already."""

    found: tuple[Chunk, ...]
    lost: tuple[Packed, ...]
    standing: int


def print_of(message: Spoken) -> str:
    """The same for the same words of the same speaker, wherever they are stored."""
    return hashlib.blake2b(f"{message.speaker}\x1f{message.text}".encode(), digest_size=12).hexdigest()


# -- out -----------------------------------------------------------------------------------------------------------------------


def export(connection: sa.Connection, conversation_id: str, title: str, readable: Collection[str], now: datetime) -> str:
    """One JSON document of the chunks in `readable` areas."""
    talk = real_talk.between(connection, conversation_id, 0, 2**62)
    places = {message.seq: (at, message) for at, message in enumerate(talk)}
    found = [each for each in chunk_store.of_chat(connection, conversation_id) if each.area in readable]
    document = {
        "type": TYPE,
        "version": VERSION,
        "exported_at": now.isoformat(),
        "chat": {"id": conversation_id, "title": title},
        "chunks": [_packed(each, places) for each in found],
    }
    return json.dumps(document, ensure_ascii=False, indent=1)


def _packed(chunk: Stored, places: Mapping[int, tuple[int, Spoken]]) -> dict[str, Any]:
    sources = [places[seq] for seq in chunk.seqs if seq in places]
    return {
        "content": chunk.text,
        "audience": chunk.area.removeprefix(str(chunk_store.area_of(chunk.conversation_id))).removeprefix("/"),
        "origin": chunk.origin,
        "sources": [{"id": message.id, "position": at, "print": print_of(message)} for at, message in sources],
        "firstMessageAt": chunk.said_from.isoformat(),
        "lastMessageAt": chunk.said_to.isoformat(),
        "messageCount": chunk.messages,
        "createdAt": chunk.created_at.isoformat(),
    }


# -- in: what the file says ----------------------------------------------------------------------------------------------------


def parse(document: str) -> tuple[Packed, ...]:
    """The chunks of a file; fields that are not known are left alone. Raises NotAnExport."""
    try:
        value = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise NotAnExport("the file is no JSON") from error
    rows = _rows(value)
    if rows is None or not rows or len(rows) > CHUNKS_MAX:
        raise NotAnExport("the file holds no list of chunks, or too many")
    return tuple(_chunk(row) for row in rows)


def _rows(value: Any) -> list[Any] | None:
    """The list of chunks: in the envelope of our file, in that of others (`data`), or bare."""
    for _ in range(3):
        if isinstance(value, list):
            return cast("list[Any]", value)
        if not isinstance(value, dict):
            return None
        here = cast("dict[str, Any]", value)
        value = next((here[name] for name in ("chunks", "memories", "data") if name in here), None)
    return cast("list[Any]", value) if isinstance(value, list) else None


def _chunk(row: Any) -> Packed:
    values = cast("dict[str, Any]", row) if isinstance(row, dict) else {}
    text = next((values[name] for name in ("content", "text") if isinstance(values.get(name), str)), "")
    text = text.replace("\x00", "").encode("utf-8", "replace").decode()
    if not text.strip() or len(text) > TEXT_MAX:
        raise NotAnExport("a chunk has no text, or too much")
    sources = values.get("sources")
    count = values.get("messageCount")
    return Packed(
        text=text,
        sources=tuple(map(_source, cast("list[Any]", sources))) if isinstance(sources, list) else (),
        count=count if isinstance(count, int) and 0 < count < 10_000 else 0,
        begin=_instant(values.get("firstMessageAt")),
        end=_instant(values.get("lastMessageAt")),
    )


def _source(value: Any) -> Source:
    values = cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    found, position, hashed = values.get("id"), values.get("position"), values.get("print")
    return Source(
        id=found if isinstance(found, str) else "",
        position=position if isinstance(position, int) else -1,
        print=hashed if isinstance(hashed, str) else "",
    )


def _instant(value: Any) -> datetime | None:
    if not isinstance(value, str):
        return None
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        return None
    if not 1 < found.year < 9999:  # in another zone it may lie in a year that has no number, and what cannot be read back is never stored
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


# -- in: what it means here ----------------------------------------------------------------------------------------------------


class _Talk:
    """The real messages of a chat that the importer may read, by everything that they may be found by."""

    def __init__(self, messages: Sequence[Spoken]) -> None:
        self.messages = messages
        self.by_id = {message.id: message for message in messages}
        self._starts: dict[str, list[int]] = defaultdict(list)
        for at, message in enumerate(messages):
            self._starts[message.line.partition("\n")[0]].append(at)

    def of(self, chunk: Packed) -> tuple[Spoken, ...]:
        """The messages that the chunk was made of; empty unless every one is here, and all have one audience (RS-186)."""
        found = self._by_sources(chunk.sources) if chunk.sources else self._by_words(chunk)
        return found if len({message.audience for message in found}) == 1 else ()

    def _by_sources(self, sources: Iterable[Source]) -> tuple[Spoken, ...]:
        found: dict[int, Spoken] = {}
        for source in sources:
            message = self.by_id.get(source.id)
            if message is None and 0 <= source.position < len(self.messages):
                there = self.messages[source.position]
                message = there if source.print == print_of(there) else None
            if message is None:
                return ()
            found[message.seq] = message
        return tuple(found[seq] for seq in sorted(found))

    def _by_words(self, chunk: Packed) -> tuple[Spoken, ...]:
        wanted = chunk.text.strip()
        for at in self._starts.get(wanted.partition("\n")[0], ()):
            text, behind = "", at
            while behind < len(self.messages) and len(text) < len(wanted):
                text = f"{text}\n{self.messages[behind].line}" if text else self.messages[behind].line
                behind += 1
            if text == wanted:
                return tuple(self.messages[at:behind])
        return ()


def plan(connection: sa.Connection, conversation_id: str, packed: Sequence[Packed], person_id: str, cut: Cut) -> Plan:
    """What an import by this person would do. `cut` makes a chunk of messages."""
    messages = real_talk.between(connection, conversation_id, 0, 2**62)
    hears = [each for each in messages if chunk_views.may_read(chunk_store.area_of(conversation_id, each.audience), conversation_id, person_id)]
    stored = [each for each in chunk_store.of_chat(connection, conversation_id) if not chunk_clearing.is_emptied(each)]
    held = {seq for each in stored for seq in each.seqs if each.state != "off"}
    texts = {each.fingerprint for each in stored if each.importer == person_id}
    talk, found, lost, standing = _Talk(hears), list[Chunk](), list[Packed](), 0
    for each in packed:
        of = talk.of(each)
        seqs = {message.seq for message in of}
        if of and not seqs <= held:
            found.append(cut(of))
            held |= seqs
        elif not of and _lost_print(each) not in texts:
            lost.append(each)
            texts.add(_lost_print(each))
        else:
            standing += 1
    return Plan(found=tuple(found), lost=tuple(lost), standing=standing)


def bring_in(connection: sa.Connection, conversation_id: str, wanted: Plan, person_id: str, now: datetime, *, shared: bool) -> None:
    """Store what a plan found. `shared`: readable by whoever may read its messages, else by the importer alone (RS-40)."""
    own = area_of_importer(conversation_id, person_id)
    for chunk in wanted.found:
        chunk_store.add(connection, conversation_id, chunk, now, importer=person_id, area=None if shared else own)
    if not wanted.lost:
        return
    everywhere = {
        "conversation_id": conversation_id, "area": own, "state": "off", "origin": "imported", "importer": person_id, "first_seq": 0,
        "last_seq": 0, "created_at": now,
    }  # fmt: skip
    rows = [everywhere | _lost_values(each, now) for each in wanted.lost]
    connection.execute(sa.insert(message_chunks), rows)  # in one go: there may be 20,000, and nobody writes meanwhile


def share(connection: sa.Connection, conversation_id: str, now: datetime, cut: Cut) -> tuple[int, list[Gone]]:
    """Every imported chunk of a chat becomes readable by whoever may read its messages; what has no messages here stays its importer's. How many did,
    and what the vector index must drop."""
    done, gone = 0, list[Gone]()
    for chunk in chunk_store.of_chat(connection, conversation_id):
        if chunk.state != "live" or not chunk.importer or chunk.area != area_of_importer(conversation_id, chunk.importer):
            continue
        if messages := real_talk.by_seq(connection, conversation_id, chunk.seqs):
            gone += chunk_store.drop(connection, [chunk.id])
            chunk_store.add(connection, conversation_id, cut(messages), now, importer=chunk.importer)
            done += 1
    return done, gone


def area_of_importer(conversation_id: str, person_id: str) -> IndexArea:
    return chunk_store.area_of(conversation_id, chunk_views.importer_key(person_id))


def _lost_values(chunk: Packed, now: datetime) -> dict[str, Any]:
    begin = chunk.begin or chunk.end or now
    return {
        "text": chunk.text, "fingerprint": _lost_print(chunk), "messages": chunk.count, "tokens": tokens.count(chunk.text), "said_from": begin,
        "said_to": max(begin, chunk.end or begin),
    }  # fmt: skip


def _lost_print(chunk: Packed) -> str:
    return hashlib.blake2b(f"imported\x1f{chunk.text}".encode(), digest_size=12).hexdigest()
