"""Searching saved memories: how fast over 240 visible rows, and how well each built-in encoder tells what belongs together (decision 12).

A list of one language holds 36 facts among 100 rows. Each fact has one message that should bring it to mind, a third of them plain, others not in its
words; 24 messages belong to no row. Percentile and weight are tuned on every other message and reported on the rest.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from memory import words
from memory.database import Database, sqlite_url
from memory.embedders import background_set
from memory.embedders.builtin import fast_encoder, nano_e5
from memory.embedders.calibration import ROWS, Calibration, calibrate
from memory.languages import LANGUAGES
from memory.migrate import migrate
from memory.ports import Embedder, Matrix, Vector
from memory.saved import row_vectors
from memory.saved.matching import match
from memory.saved.rows import Memory, content_hash, global_list
from memory.saved.searching import SavedSearch, SearchSettings, Serving
from memory.saved.stored import insert, rows_of
from memory.schema import people

TEXTS = Path(__file__).parent / "rows"
LIST = 100
VISIBLE = 240
PERCENTILES = (20.0, 40.0, 60.0, 75.0, 90.0)
WEIGHTS = (0.0, 0.1, 0.2, 0.3, 0.5)
NOW = datetime(2026, 3, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Set:
    """Of one language: the n-th of `asked` belongs to the n-th of `rows`; `unrelated` belong to none of them."""

    rows: tuple[str, ...]
    asked: tuple[str, ...]
    unrelated: tuple[str, ...]


def bench_set(language: str) -> Set:
    lines = (TEXTS / f"{language}.txt").read_text(encoding="utf-8").splitlines()
    facts, asked, unrelated = (tuple(line[2:] for line in lines if line.startswith(f"{mark} ")) for mark in "=?-")
    passages = background_set.background().passages
    own = [each for each in passages if background_set.language_of(each) == language]
    others = [each for each in passages if background_set.language_of(each) != language]
    return Set(rows=(*facts, *own, *others)[:LIST], asked=asked, unrelated=unrelated)


def memory(number: int, text: str) -> Memory:
    return Memory(
        id=number, key=global_list("p"), content=text, content_hash=content_hash(text), pinned=False, protected=False, origin="panel",
        author_kind="person", author_id="p", created_at=NOW, updated_at=NOW, updated_by="p", revision="", last_tick_day=NOW.date(),
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class Embedded:
    """One language, embedded: raw vectors of rows and of both kinds of messages."""

    texts: Set
    rows: Matrix
    asked: Matrix
    unrelated: Matrix

    def half(self, first: int) -> Embedded:
        """Every other message, from the one at `first`; all rows stay."""
        cut = slice(first, None, 2)
        texts = Set(self.texts.rows, self.texts.asked[cut], self.texts.unrelated[cut])
        return Embedded(texts, self.rows, self.asked[cut], self.unrelated[cut])


async def embedded(embedder: Embedder, language: str) -> Embedded:
    texts = bench_set(language)
    made = [await embedder.documents(texts.rows), await embedder.questions(texts.asked), await embedder.questions(texts.unrelated)]
    return Embedded(texts, _whole(made[0]), _whole(made[1]), _whole(made[2]))


def _questions(known: Calibration, vectors: Matrix) -> Matrix:
    return np.stack([known.question(vectors[at]) for at in range(len(vectors))])


def _whole(vectors: Sequence[Vector | None]) -> Matrix:
    return np.stack([row for row in vectors if row is not None])


@dataclass(frozen=True, slots=True)
class Score:
    """Shares: of messages whose row matched first, and among three; and of unrelated messages that matched anything."""

    first: float
    among_three: float
    false_match: float


def score(found: Embedded, known: Calibration, first: int, *, percentile: float, weight: float) -> Score:
    """Of a half that begins with the message at `first`."""
    rows = [memory(number, text) for number, text in enumerate(found.texts.rows)]
    vectors, tokens = known.document(found.rows), [words.tokens(text) for text in found.texts.rows]
    floor = known.floor(ROWS, percentile)

    def matched(text: str, vector: Matrix) -> list[int]:
        good = match(rows, vectors, tokens, known.question(vector), text, floor=floor, words_weight=weight, most=3)
        return [each.id for each in good]

    right = [matched(text, vector) for text, vector in zip(found.texts.asked, found.asked, strict=True)]
    wrong = [matched(text, vector) for text, vector in zip(found.texts.unrelated, found.unrelated, strict=True)]
    return Score(
        first=statistics.mean(each[:1] == [first + 2 * at] for at, each in enumerate(right)),
        among_three=statistics.mean(first + 2 * at in each for at, each in enumerate(right)),
        false_match=statistics.mean(bool(each) for each in wrong),
    )


def separation(found: Embedded, known: Calibration, *, centred: bool) -> tuple[float, float]:
    """AUC: how often a true match is nearer than the best row for an unrelated message; and of how many messages the row is among the nearest 3."""
    rows, asked, unrelated = found.rows, found.asked, found.unrelated
    if centred:
        rows, asked, unrelated = known.document(rows), _questions(known, asked), _questions(known, unrelated)
    true: Matrix = (asked * rows[: len(asked)]).sum(axis=1)
    best: Matrix = (unrelated @ rows.T).max(axis=1)
    parted = [float(np.count_nonzero(best < each)) / len(best) for each in true.tolist()]
    nearer = [int(np.count_nonzero(rows @ question > each)) for question, each in zip(asked, true.tolist(), strict=True)]
    return statistics.mean(parted), statistics.mean(count < 3 for count in nearer)


async def rows_quality(_folder: Path, console: Console) -> None:
    for embedder in (fast_encoder(), nano_e5()):
        known = await calibrate(embedder)
        sets = {language: await embedded(embedder, language) for language in LANGUAGES}
        table = Table(title=f"{embedder.label}: a message and its row among {LIST}, raw → centred: AUC; among the nearest three")
        for heading in (*LANGUAGES, "median of related pairs", "floor at 60"):
            table.add_column(heading, justify="right")
        both = [(separation(each, known, centred=False), separation(each, known, centred=True)) for each in sets.values()]
        cells = [f"{raw[0]:.2f} → {centred[0]:.2f}; {raw[1]:.2f} → {centred[1]:.2f}" for raw, centred in both]
        table.add_row(*cells, f"{float(np.median(known.related)):.3f}", f"{known.floor(ROWS, 60):.3f}")
        console.print(table)
        _sweep(console, f"{embedder.label}, the half to tune on", sets, known, 0)
        _sweep(console, f"{embedder.label}, the half to report", sets, known, 1)
        await embedder.close()


def _sweep(console: Console, title: str, sets: dict[str, Embedded], known: Calibration, first: int) -> None:
    table = Table(title=f"{title}: hit@1 / hit@3 / unrelated that match something")
    for heading in ("percentile", "w", *LANGUAGES, "all"):
        table.add_column(heading, justify="right")
    chosen = [*((60.0, weight) for weight in WEIGHTS), *((percentile, 0.2) for percentile in PERCENTILES if percentile != 60)]
    for percentile, weight in chosen:
        found = [score(each.half(first), known, first, percentile=percentile, weight=weight) for each in sets.values()]
        mean = Score(
            first=statistics.mean(each.first for each in found),
            among_three=statistics.mean(each.among_three for each in found),
            false_match=statistics.mean(each.false_match for each in found),
        )
        cells = [f"{each.first:.2f} / {each.among_three:.2f} / {each.false_match:.2f}" for each in (*found, mean)]
        table.add_row(f"{percentile:g}", f"{weight:g}", *cells)
    console.print(table)


async def rows_speed(folder: Path, console: Console) -> None:
    """240 visible rows, SQLite: the whole search of a reply, with the message's vector made anew and with it at hand."""
    table = Table(title=f"A search over {VISIBLE} visible rows, ms")
    for heading in ("embedder", "rows/s embedded", "with embedding p50", "p95", "vector at hand p50", "p95", "nothing at hand p95"):
        table.add_column(heading, justify="right")
    for embedder in (fast_encoder(), nano_e5()):
        table.add_row(*await _speed(folder / embedder.label, embedder))
        await embedder.close()
    console.print(table)


async def _speed(folder: Path, embedder: Embedder) -> list[str]:
    folder.mkdir()
    db = Database(sqlite_url(folder / "bench.db"))
    migrate(db, folder / "backups")
    background = background_set.background()
    texts = [f"{background.passages[at % len(background.passages)]} ({at})" for at in range(VISIBLE)]
    known = await calibrate(embedder)
    began = time.perf_counter()
    made = {content_hash(text): row for text, row in zip(texts, await embedder.documents(texts), strict=True) if row is not None}
    speed = VISIBLE / (time.perf_counter() - began)

    def fill(connection: sa.Connection) -> None:
        connection.execute(sa.insert(people), {"id": "p", "scope": "p", "created_at": NOW})
        for text in texts:
            insert(connection, memory(0, text))
        row_vectors.keep(connection, embedder.fingerprint, made)

    await db.write(fill)
    rows = await db.read(lambda connection: rows_of(connection, [global_list("p")]))
    serving = Serving(state="ok", embedder=embedder, calibration=known)

    def fresh() -> SavedSearch:
        return SavedSearch(db, serving=lambda: serving, settings=lambda: SearchSettings(time_limit_s=5))

    search = fresh()
    await search.search(rows, "warm up")
    anew, at_hand, cold = list[float](), list[float](), list[float]()
    for text in background.questions[:100]:
        for times, used in ((anew, search), (at_hand, search), (cold, fresh())):
            began = time.perf_counter()
            found = await used.search(rows, text)
            times.append((time.perf_counter() - began) * 1000)
            assert found.ok and len(found.compared) == VISIBLE
    await db.close()
    cells = [_at(times, share) for times in (anew, at_hand) for share in (0.5, 0.95)]
    return [embedder.label, f"{speed:.0f}", *(f"{each:.1f}" for each in (*cells, _at(cold, 0.95)))]


def _at(times: Sequence[float], share: float) -> float:
    return sorted(times)[min(len(times) - 1, int(share * len(times)))]
