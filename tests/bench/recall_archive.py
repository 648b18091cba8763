"""Fills one archive of the recall bench, in a process of its own: what filling takes must not count as memory of the process that searches.

    python -m tests.bench.recall_archive FOLDER CHUNKS CHATS

Messages, chunks, words and vectors are stored by the product's own functions, and its mirror puts them into Chroma, as after a nightly rebuild.
No text is embedded: each vector is a mixture of those of three bundled passages. So they lie to each other as those of texts do; Chroma places
random ones, to which nothing is near, at several times the cost. What was done so far goes to standard error.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from rich.console import Console

from memory import conversations, vectors
from memory.chroma_home import ChromaHome
from memory.database import Database, sqlite_url
from memory.embedders import background_set
from memory.embedders import calibration as calibrating
from memory.embedders.builtin import fast_encoder
from memory.embedders.calibration import Calibration
from memory.index_kinds import MESSAGES
from memory.migrate import migrate
from memory.ports import Matrix
from memory.recall import chunk_store, chunks, real_talk
from memory.recall.talk_search import AT_ONCE
from memory.schema import messages
from memory.vector_mirror import VectorMirror

STORED_AT_ONCE = 1_000  # chunks in one transaction, of whole chats
MIXED = 3  # texts in a vector
NOISE = 0.01  # in each of its numbers
TOLD_EVERY_S = 20.0
START = datetime(2024, 1, 1, tzinfo=UTC)
GAP = timedelta(hours=6)


@dataclass(frozen=True, slots=True)
class Fill:
    """`bundled`: vectors of the passages of the background set."""

    connection: sa.Connection
    fingerprint: str
    part_tokens: int
    bundled: Matrix
    chooser: random.Random

    def chat(self, number: int, size: int) -> None:
        """A chat of `size` chunks, with their vectors, and two messages that wait for one."""
        of = conversations.create_conversation(self.connection, now=START, key=f"web::{number}", channel="web", account="", kind="web")
        passages = background_set.background().passages
        rows = [
            {
                "id": f"{number}-{at}", "conversation_id": of, "role": "assistant" if at % 2 else "user",
                "text": f"{self.chooser.choice(passages)} {at}", "origin": "assistant" if at % 2 else "person", "author_name": "Ann",
                "scope": "root", "fingerprint": "", "created_at": START + timedelta(minutes=at),
            }
            for at in range(size * chunks.SIZE + 2)
        ]  # fmt: skip
        self.connection.execute(sa.insert(messages), rows)
        made = chunks.cut(real_talk.uncut(self.connection, of), (), gap=GAP, part_tokens=self.part_tokens)
        for chunk in made:
            chunk_store.add(self.connection, of, chunk, START)
        hashes = [passage.text_hash for chunk in made for passage in chunk.passages]
        vectors.put(self.connection, self.fingerprint, dict(zip(hashes, mixtures(self.bundled, len(hashes), number), strict=True)))


def mixtures(bundled: Matrix, count: int, seed: int) -> Matrix:
    """`count` vectors of length 1, the same for the same seed."""
    chooser = np.random.default_rng(seed)
    shares, picked = chooser.dirichlet(np.ones(MIXED), count), chooser.integers(0, len(bundled), (count, MIXED))
    made = np.einsum("ij,ijk->ik", shares, bundled[picked]) + NOISE * chooser.standard_normal((count, bundled.shape[1]))
    return (made / np.linalg.norm(made, axis=1, keepdims=True)).astype(np.float32)


def groups(size: int, count: int) -> Iterator[range]:
    """Numbers of the chats that one transaction stores."""
    each = max(1, STORED_AT_ONCE * count // size)
    return (range(at, min(count, at + each)) for at in range(0, count, each))


def mirror_of(db: Database, home: ChromaHome, fingerprint: str, calibration: Calibration) -> VectorMirror:
    return VectorMirror(db, home, lambda: START, MESSAGES, fingerprint=fingerprint, calibration=calibration, above=AT_ONCE)


@dataclass(slots=True)
class Progress:
    """Tells now and then how far a step is, and how long it took when it is done."""

    console: Console
    began: float = field(default_factory=time.monotonic)
    told: float = field(default_factory=time.monotonic)

    def __call__(self, said: str, *, done: bool = False) -> None:
        now = time.monotonic()
        if done or now - self.told > TOLD_EVERY_S:
            self.told = now
            self.console.print(f"  {said}, {now - self.began:.0f} s ({time.process_time():.0f} s of processor)")


async def fill(folder: Path, size: int, count: int, console: Console) -> None:
    """`size` chunks in `count` chats, in `folder`."""
    progress, embedder = Progress(console), fast_encoder()
    known = await calibrating.calibrate(embedder)
    bundled = np.stack([each for each in await embedder.documents(background_set.background().passages) if each is not None])
    await embedder.close()
    db, home, chooser = Database(sqlite_url(folder / "bench.db")), ChromaHome(folder / "chroma"), random.Random(size)
    migrate(db, folder / "backups")
    await db.write(lambda connection: calibrating.keep(connection, embedder.fingerprint, known, START))
    for group in groups(size, count):

        def store(connection: sa.Connection, group: range = group) -> None:
            filling = Fill(connection, embedder.fingerprint, embedder.passage_tokens, bundled, chooser)
            for number in group:
                filling.chat(number, size // count)

        await db.write(store)
        progress(f"{group.stop * size // count:,} of {size:,} chunks")
    progress(f"{size:,} chunks stored", done=True)
    mirror, put = mirror_of(db, home, embedder.fingerprint, known), 0
    await mirror.open()
    while more := await mirror.pump():
        put += more
        progress(f"{put:,} vectors in Chroma")
    progress(f"{put:,} vectors in Chroma, checked", done=True)
    await home.close()
    await db.close()


if __name__ == "__main__":
    asyncio.run(fill(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), Console(stderr=True)))
