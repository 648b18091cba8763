"""Recall for a reply: how long the product's search takes with 1,000 to 100,000 chunks, in a chat that was searched before and in one that was not.

Messages, chunks and words are stored as the product stores them, and Chroma holds the vectors; these are random, for only their number and size cost
time. A cold reply is the first of a chat whose area is not in memory: what is too large to be read while it waits goes by Chroma's filtered query.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from memory import conversations, vectors
from memory.chroma_home import ChromaHome
from memory.chunk_rows import vector_key
from memory.database import Database, sqlite_url
from memory.embedders import background_set
from memory.embedders.builtin import fast_encoder
from memory.embedders.calibration import Calibration, calibrate
from memory.file_search import Serving
from memory.hot_areas import HotAreas
from memory.index_kinds import MESSAGES
from memory.migrate import migrate
from memory.ports import Embedder, Vector
from memory.query import Query
from memory.recall import chunk_store, chunks, real_talk
from memory.recall.talk_search import Asked, Reach, TalkSearch
from memory.schema import messages

SIZES = ((1_000, 1), (10_000, 1), (100_000, 1_000))  # chunks, chats
COLLECTION = "bench"
BATCH = 1_000  # vectors
QUESTIONS = 100
COLD = 20  # of them, each to a chat that is not in memory
PARALLEL = 20
START = datetime(2024, 1, 1, tzinfo=UTC)
GAP = timedelta(hours=6)
DIMENSION = 512


@dataclass(frozen=True, slots=True)
class _Given:
    """An embedder whose questions are embedded already: what is left is the search."""

    fingerprint: str
    label: str
    passage_tokens: int
    batch: int
    known: dict[str, Vector | None]

    async def dimension(self) -> int:
        return DIMENSION

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self.known[text] for text in texts]

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self.known[text] for text in texts]

    async def close(self) -> None:
        pass


@dataclass(frozen=True, slots=True, kw_only=True)
class _Filled:
    """A chat and what Chroma is to hold of it, by key."""

    of: str
    vectors: dict[str, Vector]


def _fill(connection: sa.Connection, number: int, size: int, embedder: Embedder, chooser: random.Random) -> _Filled:
    """A chat of `size` chunks, each with its vectors, and two messages that wait for one."""
    of = conversations.create_conversation(connection, now=START, key=f"web::{number}", channel="web", account="", kind="web")
    passages = background_set.background().passages
    rows = [
        {
            "id": f"{number}-{at}", "conversation_id": of, "role": "assistant" if at % 2 else "user", "text": f"{chooser.choice(passages)} {at}",
            "origin": "assistant" if at % 2 else "person", "author_name": "Ann", "scope": "root", "fingerprint": "",
            "created_at": START + timedelta(minutes=at),
        }
        for at in range(size * chunks.SIZE + 2)
    ]  # fmt: skip
    connection.execute(sa.insert(messages), rows)
    made = chunks.cut(real_talk.uncut(connection, of), (), gap=GAP, part_tokens=embedder.passage_tokens)
    ids = [chunk_store.add(connection, of, chunk, START) for chunk in made]
    hashes = [passage.text_hash for chunk in made for passage in chunk.passages]
    keys = [vector_key(str(chunk_id), at) for chunk_id, chunk in zip(ids, made, strict=True) for at in range(len(chunk.passages))]
    random_rows = np.random.default_rng(number).standard_normal((len(hashes), DIMENSION)).astype(np.float32)
    random_rows /= np.linalg.norm(random_rows, axis=1, keepdims=True)
    vectors.put(connection, embedder.fingerprint, dict(zip(hashes, random_rows, strict=True)))
    return _Filled(of=of, vectors=dict(zip(keys, random_rows, strict=True)))


@dataclass(slots=True)
class _Archive:
    db: Database
    chats: list[str]
    calibration: Calibration
    home: ChromaHome

    def search(self, embedder: Embedder, hot: HotAreas, *, patient: bool = True) -> TalkSearch:
        """`patient`: reads any area in full before it answers; the product does that for small ones alone, and of others behind its reply."""
        serving = Serving(vectors="ok", embedder=embedder, calibration=self.calibration, index=self.home.index, collection=COLLECTION)
        return TalkSearch(
            self.db, hot, serving=lambda: serving, words_weight=lambda: 0.5, name_weight=lambda: 8.0, floor_percentile=lambda: 97.0,
            text_share=lambda: 0.55, warm=None if patient else lambda area: None,
        )  # fmt: skip

    async def ask(self, search: TalkSearch, question: str, chat: str) -> float:
        """Milliseconds."""
        asked = Asked(text=question, names=(frozenset({"ann"}),), query=Query(question, time_limit_s=60))
        began = time.perf_counter()
        await search.search(asked, [Reach(conversation_id=chat, audiences=("",), edge=10**9)])
        return (time.perf_counter() - began) * 1000


async def recall_speed(folder: Path, console: Console) -> None:
    table = Table(title=f"Recall for a reply (ms), {QUESTIONS} questions; {PARALLEL} at a time for the last")
    headings = (
        "chunks", "chats", "hot p50", "p95", "with embedding p50", "p95", "cold p50", "p95", "read whole p50", "p95", "parallel p95", "MB before",
        "MB after",
    )  # fmt: skip
    for heading in headings:
        table.add_column(heading, justify="right")
    embedder = fast_encoder()
    known = await calibrate(embedder)
    questions = background_set.background().questions[:QUESTIONS]
    given = _Given(
        embedder.fingerprint, embedder.label, embedder.passage_tokens, embedder.batch,
        dict(zip(questions, await embedder.questions(questions), strict=True)),
    )  # fmt: skip
    for size, count in SIZES:
        db = Database(sqlite_url(folder / f"{size}.db"))
        migrate(db, folder / "backups")
        chooser, chats, home, before = random.Random(size), list[str](), ChromaHome(folder / f"chroma-{size}"), _memory_mb()
        for number in range(count):
            made = await db.write(lambda c, number=number: _fill(c, number, size // count, embedder, chooser))  # noqa: B023
            named = list(made.vectors)
            for at in range(0, len(named), BATCH):
                keys = named[at : at + BATCH]
                area = dict.fromkeys(keys, chunk_store.area_of(made.of))
                await home.index.upsert(COLLECTION, area, {key: made.vectors[key] for key in keys})
            chats.append(made.of)
        table.add_row(f"{size:,}", f"{count:,}", *await _measured(_Archive(db, chats, known, home), given, embedder, questions, before))
        await home.close()
        await db.close()
    await embedder.close()
    console.print(table)


async def _measured(archive: _Archive, given: Embedder, embedder: Embedder, questions: Sequence[str], before: float) -> list[str]:
    hot = HotAreas(MESSAGES)
    search = archive.search(given, hot)
    for chat in archive.chats:
        await archive.ask(search, questions[0], chat)
    chat = archive.chats[-1]
    alone = [await archive.ask(search, question, chat) for question in questions]
    embedding = archive.search(embedder, hot)
    whole = [await archive.ask(embedding, question, chat) for question in questions]
    cold = await _cold(archive, given, questions[:COLD], patient=False)
    read = await _cold(archive, given, questions[:COLD], patient=True)
    parallel = [
        each
        for at in range(0, len(questions), PARALLEL)
        for each in await asyncio.gather(*(archive.ask(search, question, chat) for question in questions[at : at + PARALLEL]))
    ]
    figures = [_at(times, share) for times in (alone, whole, cold, read) for share in (0.5, 0.95)]
    return [*(f"{each:.1f}" for each in (*figures, _at(parallel, 0.95))), f"{before:.0f}", f"{_memory_mb():.0f}"]


async def _cold(archive: _Archive, given: Embedder, questions: Sequence[str], *, patient: bool) -> list[float]:
    return [
        await archive.ask(archive.search(given, HotAreas(MESSAGES), patient=patient), question, archive.chats[at % len(archive.chats)])
        for at, question in enumerate(questions)
    ]


def _at(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]


def _memory_mb() -> float:
    """Of this process, resident."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 1e6
