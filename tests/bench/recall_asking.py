"""Asks one archive of the recall bench, in a process that has only opened it, as the gateway after a restart.

    python -m tests.bench.recall_asking FOLDER

Prints its `Asked` as one JSON value. Processor time stands beside the time on the clock, for other work on the machine distorts it least. A cold
reply is the first of a chat whose area is not in memory: what is too large to be read while it waits goes by Chroma's filtered query.
"""

from __future__ import annotations

import asyncio
import json
import resource
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import sqlalchemy as sa

import gateway.app  # noqa: F401  # pyright: ignore[reportUnusedImport]  # what the gateway has loaded counts as memory of who searches
from memory import collection_rows
from memory.chroma_home import ChromaHome
from memory.database import Database, sqlite_url
from memory.embedders import background_set
from memory.embedders import calibration as calibrating
from memory.embedders.builtin import fast_encoder
from memory.embedders.calibration import Calibration
from memory.file_search import Serving
from memory.hot_areas import HotAreas
from memory.index_kinds import MESSAGES
from memory.ports import Embedder, Vector
from memory.query import Query
from memory.recall import talk_search
from memory.recall.reach import Reach
from memory.recall.talk_search import TalkSearch
from memory.schema import conversations
from tests.bench.recall_archive import mirror_of

QUESTIONS = 100
COLD = 20  # of them, each to a chat that is not in memory
PARALLEL = 20


@dataclass(frozen=True, slots=True)
class Times:
    """Milliseconds at the 50th and the 95th percentile: on the clock, and of processor time of all threads of the process."""

    p50: float
    p95: float
    processor_p50: float
    processor_p95: float


@dataclass(frozen=True, slots=True)
class Asked:
    """`times` by name; `memory_mb`: resident memory by the step after which it was read, and its peak."""

    times: dict[str, Times]
    memory_mb: dict[str, float]


@dataclass(frozen=True, slots=True)
class _Given:
    """An embedder whose questions are embedded already: what is left is the search."""

    fingerprint: str
    label: str
    passage_tokens: int
    batch: int
    known: dict[str, Vector | None]

    async def dimension(self) -> int:
        return len(next(each for each in self.known.values() if each is not None))

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self.known[text] for text in texts]

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self.known[text] for text in texts]

    async def close(self) -> None:
        pass


@dataclass(slots=True)
class _Archive:
    db: Database
    chats: list[str]
    calibration: Calibration
    home: ChromaHome
    collection: str

    def search(self, embedder: Embedder, hot: HotAreas, *, patient: bool = False) -> TalkSearch:
        """`patient`: reads any area in full before it answers; the product does that for small ones alone, and of others behind its reply."""
        serving = Serving(vectors="ok", embedder=embedder, calibration=self.calibration, index=self.home.index, collection=self.collection)
        return TalkSearch(
            self.db, hot, serving=lambda: serving, words_weight=lambda: 0.5, name_weight=lambda: 8.0, floor_percentile=lambda: 97.0,
            text_share=lambda: 0.55, warm=None if patient else lambda area: None,
        )  # fmt: skip

    async def ask(self, search: TalkSearch, question: str, chat: str) -> tuple[float, float]:
        """Milliseconds on the clock and of processor time."""
        asked = talk_search.Asked(text=question, names=(frozenset({"ann"}),), query=Query(question, time_limit_s=60))
        began, used = time.perf_counter(), time.process_time()
        found = await search.search(asked, [Reach(conversation_id=chat, audiences=("",), edge=10**9)])
        took = (time.perf_counter() - began) * 1000, (time.process_time() - used) * 1000
        assert found.searched, f"nothing of {chat} was searched"
        return took


async def ask(folder: Path) -> Asked:
    """All figures of an archive that `recall_archive` filled."""
    memory = {"with the gateway's code": resident_mb()}
    db, home, embedder = Database(sqlite_url(folder / "bench.db")), ChromaHome(folder / "chroma"), fast_encoder()
    questions = background_set.background().questions[:QUESTIONS]
    given = _Given(
        embedder.fingerprint, embedder.label, embedder.passage_tokens, embedder.batch,
        dict(zip(questions, await embedder.questions(questions), strict=True)),
    )  # fmt: skip
    calibration = await db.read(lambda connection: calibrating.read(connection, embedder.fingerprint))
    assert calibration is not None, "the archive was filled without its calibration"
    chats = await db.read(lambda connection: list(connection.execute(sa.select(conversations.c.id).order_by(conversations.c.id)).scalars()))
    memory["with the encoder"] = resident_mb()
    mirror = mirror_of(db, home, embedder.fingerprint, calibration)
    await mirror.open()
    assert mirror.serving, "the vector index did not pass its check"
    memory["with the index checked"] = resident_mb()
    archive, hot = _Archive(db, chats, calibration, home, mirror.serving), HotAreas(MESSAGES)
    await _write_again(archive, embedder.fingerprint)
    memory["with the index loaded"] = resident_mb()
    search = archive.search(given, hot, patient=True)
    for chat in chats:
        await archive.ask(search, questions[0], chat)
    memory["after every chat was asked"] = resident_mb()
    times = await _times(archive, hot, given, embedder, questions)
    memory["at the end"], memory["at its peak"] = resident_mb(), resident_mb("VmHWM")
    memory["in the process that checked the index"] = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
    await home.close()
    await db.close()
    await embedder.close()
    return Asked(times, memory)


async def _times(archive: _Archive, hot: HotAreas, given: Embedder, embedder: Embedder, questions: Sequence[str]) -> dict[str, Times]:
    chat = archive.chats[-1]
    search, embedding = archive.search(given, hot), archive.search(embedder, hot)
    alone = [await archive.ask(search, question, chat) for question in questions]
    whole = [await archive.ask(embedding, question, chat) for question in questions]
    cold = [await _first(archive, given, question, at, patient=False) for at, question in enumerate(questions[:COLD])]
    read = [await _first(archive, given, question, at, patient=True) for at, question in enumerate(questions[:COLD])]
    parallel: list[tuple[float, float]] = []
    for at in range(0, len(questions), PARALLEL):
        part, used = questions[at : at + PARALLEL], time.process_time()
        took = await asyncio.gather(*(archive.ask(search, question, chat) for question in part))
        share = (time.process_time() - used) * 1000 / len(part)  # of one: they run at once
        parallel += [(on_clock, share) for on_clock, _ in took]
    found = {"hot": alone, "hot, with embedding": whole, "cold": cold, "cold, vectors read first": read, f"{PARALLEL} at a time, hot": parallel}
    return {name: _summed(each) for name, each in found.items()}


async def _first(archive: _Archive, given: Embedder, question: str, at: int, *, patient: bool) -> tuple[float, float]:
    """The first reply of a chat: nothing of it is in memory."""
    return await archive.ask(archive.search(given, HotAreas(MESSAGES), patient=patient), question, archive.chats[at % len(archive.chats)])


async def _write_again(archive: _Archive, fingerprint: str) -> None:
    """Put a vector into Chroma that it has: what was said last is put there all day, so its index is in memory. It has none of small chats."""
    held = await archive.db.read(lambda connection: collection_rows.sample(connection, MESSAGES, archive.collection, fingerprint, 1))
    if not held:
        return
    vectors = dict(zip([each.key for each in held], archive.calibration.document(np.stack([each.vector for each in held])), strict=True))
    await archive.home.index.upsert(archive.collection, {each.key: each.area for each in held}, vectors)


def _summed(times: Sequence[tuple[float, float]]) -> Times:
    def at(place: int, share: float) -> float:
        return sorted(each[place] for each in times)[min(len(times) - 1, int(share * len(times)))]

    return Times(at(0, 0.5), at(0, 0.95), at(1, 0.5), at(1, 0.95))


def resident_mb(field: str = "VmRSS") -> float:
    """Of this process; `field` of its status, `VmHWM` for the peak."""
    text = Path("/proc/self/status").read_text(encoding="utf-8")
    return int(next(line for line in text.splitlines() if line.startswith(field)).split()[1]) * 1024 / 1e6


def read_asked(text: str) -> Asked:
    """What this process printed."""
    value: dict[str, Any] = json.loads(text)
    return Asked({name: Times(**each) for name, each in value["times"].items()}, value["memory_mb"])


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asdict(asyncio.run(ask(Path(sys.argv[1]))))))
