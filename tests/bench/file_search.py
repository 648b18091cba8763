"""Searching files: how fast with 10,000 chunks in one scope, and how well each embedder finds (decision 7). Ratios are of one run."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from rich.console import Console
from rich.progress import Progress, TaskID
from rich.table import Table

from memory import ranking, words
from memory.chunk_rows import totals
from memory.database import Database, sqlite_url
from memory.embedders import background_set
from memory.embedders.builtin import fast_encoder, nano_e5
from memory.embedders.calibration import calibrate
from memory.embedders.hashed import hash_embedder
from memory.migrate import migrate
from memory.ports import Embedder
from memory.scopes import ROOT
from memory.vectors import unpacked
from tests.memory.indexed import OWNER, House, house

CHUNKS = 10_000
FILES = 200
QUESTIONS = 100
NOTES = Path(__file__).parent / "notes"
LANGUAGES = ("en", "ja", "zh")

_VECTORS = sa.text("SELECT v.vector FROM file_passages p JOIN vectors v ON v.text_hash = p.text_hash ORDER BY p.chunk_id, p.position")


def noise(number: int, chooser: random.Random) -> str:
    """One section with a few bullets: a chunk of its own."""
    passages = background_set.background().passages
    return f"## {number}\n\n" + "".join(f"- {text} ({chooser.randrange(9999)})\n" for text in chooser.sample(passages, 3))


def write_notes(built: House, chunks: int) -> None:
    chooser = random.Random(7)
    each = chunks // FILES
    for file in range(FILES):
        built.put(ROOT, f"knowledge/{file:03}.md", "\n".join(noise(file * each + at, chooser) for at in range(each)))


async def timed(work: Callable[[str], Awaitable[object]], questions: Sequence[str]) -> list[float]:
    taken: list[float] = []
    for question in questions:
        began = time.perf_counter()
        await work(question)
        taken.append((time.perf_counter() - began) * 1000)
    return sorted(taken)


async def one_size(folder: Path, console: Console, table: Table, name: str, embedder: Embedder) -> None:
    folder.mkdir()
    db = Database(sqlite_url(folder / "bench.db"))
    migrate(db, folder / "backups")
    questions = background_set.background().questions[:QUESTIONS]
    async with house(folder, db, embedder=embedder, run=False) as built:
        write_notes(built, CHUNKS)
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(f"{name}: words", total=FILES)
            began = time.perf_counter()
            await built.indexing.rebuild(lambda _scope, done, total: progress.update(task, completed=done, total=total))
            words_s = time.perf_counter() - began
        _, chunks = await db.read(totals)
        alone = await timed(lambda question: built.indexing.search.search(OWNER, question), questions)
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task(f"{name}: vectors", total=None)
            began = time.perf_counter()
            async with asyncio.TaskGroup() as group:
                running = group.create_task(built.indexing.run())
                following = group.create_task(_follow(built, progress, task))
                await vectors_ready_slowly(built)
                vectors_s = time.perf_counter() - began
                following.cancel()
                await built.indexing.search.search(OWNER, "warm")
                status = await built.indexing.status()
                both = await timed(lambda question: built.indexing.search.search(OWNER, question), questions)
                running.cancel()
        scan = await timed(lambda question: brute_force(db, embedder, question), questions[:10])
    await db.close()
    table.add_row(
        name, f"{chunks:,}", f"{status.passages:,}", f"{chunks / words_s:,.0f}", f"{status.passages / vectors_s:,.0f}",
        f"{at(alone, 0.5):.1f}", f"{at(alone, 0.95):.1f}", f"{at(both, 0.5):.1f}", f"{at(both, 0.95):.1f}",
        f"{at(scan, 0.5):.0f}", f"{at(scan, 0.5) / at(both, 0.5):.0f} ×",
    )  # fmt: skip


async def vectors_ready_slowly(built: House) -> None:
    while True:
        status = await built.indexing.status()
        if status.dimension and status.embedded == status.passages:
            return
        await asyncio.sleep(0.5)


async def _follow(built: House, progress: Progress, task: TaskID) -> None:
    while True:
        status = await built.indexing.status()
        progress.update(task, completed=status.embedded, total=status.passages)
        await asyncio.sleep(0.5)


async def brute_force(db: Database, embedder: Embedder, question: str) -> object:
    """What search without an index would do: read every vector from the database and compare it, one after the other."""
    (vector,) = await embedder.questions([question])
    assert vector is not None

    def scan(connection: sa.Connection) -> float:
        return max(float(unpacked(row.vector) @ vector) for row in connection.execute(_VECTORS))

    return await db.read(scan)


def at(ordered: Sequence[float], share: float) -> float:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


async def search_speed(folder: Path, console: Console) -> None:
    table = Table(title=f"File search, one scope of {CHUNKS:,} chunks (ms; the embedding of the question included)")
    headings = ("embedder", "chunks", "vectors", "chunks/s", "vectors/s", "words p50", "p95", "hybrid p50", "p95", "scan p50", "ratio")
    for heading in headings:
        table.add_column(heading, justify="right")
    await one_size(folder / "384", console, table, "hash, 384", hash_embedder(384))
    await one_size(folder / "1536", console, table, "hash, 1536", hash_embedder(1536))
    await one_size(folder / "fast", console, table, "built-in, 512", fast_encoder())
    console.print(table)


# -- how well ----------------------------------------------------------------------------------------------------------


def days(language: str, fillers: int) -> tuple[list[list[str]], list[str]]:
    """Daily files as lists of lines, the first ones each with one fact among `fillers` others; and for each of these a question in other words."""
    text = (NOTES / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    facts, questions = ([line[2:] for line in text if line.startswith(mark)] for mark in "=?")
    own = [passage for passage in background_set.background().passages if background_set.language_of(passage) == language]
    chooser = random.Random(5)
    made = [chooser.sample([*chooser.sample(own, fillers), fact], fillers + 1) for fact in facts]
    return [*made, *(chooser.sample(own, fillers + 1) for _ in range(60))], questions


def found(scores: Sequence[ranking.Floats]) -> str:
    """hit@1 / hit@3 / hit@5, the right day of the n-th question being the n-th."""
    better = [int(np.count_nonzero(np.nan_to_num(each, nan=-1e9) > each[number])) for number, each in enumerate(scores)]
    return " / ".join(f"{sum(place < most for place in better) / len(better):.2f}" for most in (1, 3, 5))


def worded(made: Sequence[Sequence[str]], questions: Sequence[str]) -> list[ranking.Floats]:
    tokens = [words.tokens("\n".join(day)) for day in made]
    sets, lengths = [set(each) for each in tokens], np.array([len(each) for each in tokens])
    known, count = background_set.holding(), len(background_set.background().passages)

    def places(token: str) -> ranking.Places:
        return np.array([at for at, each in enumerate(sets) if token in each], dtype=np.intp)

    def scored(question: str) -> ranking.Floats:
        terms = [ranking.Found(term.weight, places(term.token), known.get(term.token, 0)) for term in words.terms(question)]
        return ranking.weigh(terms, lengths, count).scores

    return [scored(question) for question in questions]


async def search_quality(_folder: Path, console: Console) -> None:
    table = Table(title="The day of a fact, asked for in other words: hit@1 / @3 / @5, 12 other lines in each of 82 days")
    for heading in ("embedder", "language", "words", "vector of the day", "of its lines", "and words, w 0.1", "w 0.2", "w 0.3", "w 0.5", "lines/s"):
        table.add_column(heading, justify="right")
    for embedder in (fast_encoder(), nano_e5()):
        known = await calibrate(embedder)
        for language in LANGUAGES:
            made, questions = days(language, 12)
            by_words, never = worded(made, questions), np.full(len(made), np.nan)
            asked = [known.question(row) for row in await embedder.questions(questions) if row is not None]
            whole = known.document(np.stack([row for row in await embedder.documents(["\n".join(day) for day in made]) if row is not None]))
            began = time.perf_counter()
            lines = sorted({line for day in made for line in day})
            vectors = dict(zip(lines, known.document(np.stack([row for row in await embedder.documents(lines) if row is not None])), strict=True))
            speed = len(lines) / (time.perf_counter() - began)
            near = [np.array([max(float(vectors[line] @ question) for line in day) for day in made]) for question in asked]
            fused = [
                found([ranking.fuse(each, by, words_weight=weight, days_old=never) for each, by in zip(near, by_words, strict=True)])
                for weight in (0.1, 0.2, 0.3, 0.5)
            ]
            of_day = found([np.asarray(whole @ question, dtype=np.float64) for question in asked])
            table.add_row(embedder.label, language, found(by_words), of_day, found(near), *fused, f"{speed:.0f}")
        await embedder.close()
    console.print(table)
