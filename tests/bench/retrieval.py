"""Recall in long talks (decision 14): how much of what answers a question is among the first finds, and how often a question about nothing finds one.

The search is the product's own, over chunks that it cut and stored; beside it stand three plain ways to do the same, built here over the same chunks.
A way that answers nearly every question finds more, of anything: the last column is what each finds among its first three when it is held to as few
unrelated questions as ours, by the best number for that, which nobody would know beforehand. LoCoMo joins when a file of it is named in BENCH_LOCOMO;
BENCH_ARCHIVE is the size of the archives in chunks (AT-1), 0 for none.
"""

from __future__ import annotations

import math
import os
import statistics
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import numpy as np
import regex
import sqlalchemy as sa
from rich.console import Console
from rich.table import Table

from gateway.config.memory import WordsWeight
from gateway.config.recall import Recall
from gateway.recall.talk_indexing import TalkIndexing
from memory import conversations
from memory.database import Database, sqlite_url
from memory.embedders.builtin import fast_encoder, nano_e5
from memory.languages import LANGUAGES
from memory.migrate import migrate
from memory.ports import Embedder, Matrix
from memory.query import Query
from memory.recall import asking, block, chunk_store
from memory.recall import talk_search as searching
from memory.recall.chunk_store import Stored
from memory.recall.reach import Reach
from memory.recall.talk_search import TalkSearch
from tests.bench.talk_sets import ARCHIVE, LongTalk, all_scripted, archive, locomo
from tests.memory.recall.talks import GAP, Talks

LOCOMO, ARCHIVES = "BENCH_LOCOMO", "BENCH_ARCHIVE"
PLACES = (1, 3, 5, 10)
ROOM = block.room(65_000, 384, 1_536, 6_500)  # tokens of the block, as the defaults have it
FIXED_FLOOR = 0.25
WEIGHTS = (0.0, 0.3, 0.5, 1.0)
NANO = nano_e5().label


T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What is tuned: the keys of `recall.*` and `search.words_weight.messages`, with their defaults.

    An infinite text share takes words out of what accepts.
    """

    words_weight: float = WordsWeight().messages
    name_weight: float = Recall().name_weight
    floor_percentile: float = Recall().floor_percentile
    text_share: float = Recall().text_floor_percent / 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Find:
    """What a search found: the messages of each find, best first, by their places in the talk, with what it weighs; `quoted`: those that fit into the
    block."""

    finds: tuple[frozenset[int], ...]
    scores: tuple[float, ...]
    quoted: frozenset[int] = frozenset()


Way = Callable[[str], Awaitable[Find]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """Shares, 0 to 1: of the evidence among the first finds (as PLACES), of what is quoted, and of unrelated questions that found something."""

    among: tuple[float, ...]
    quoted: float
    wrong: float

    def __str__(self) -> str:
        return f"{self.among[1]:.2f} / {self.wrong:.2f}"


@dataclass(slots=True)
class Filled:
    """A talk in a database, cut and embedded. `numbers`: the messages' numbers, in order."""

    talk: LongTalk
    talks: Talks
    of: str
    numbers: list[int]

    def way(self, settings: Settings, *, words_alone: bool = False) -> Way:
        """The product's search."""
        talks = replace(self.talks, embedder=None, calibration=None) if words_alone else self.talks
        search = TalkSearch(
            talks.db, talks.hot, serving=talks.serving, words_weight=lambda: settings.words_weight, name_weight=lambda: settings.name_weight,
            floor_percentile=lambda: settings.floor_percentile, text_share=lambda: settings.text_share,
        )  # fmt: skip
        reach = Reach(conversation_id=self.of, audiences=("",), edge=self.numbers[-1])
        place = {number: at for at, number in enumerate(self.numbers)}

        async def ask(question: str) -> Find:
            names = asking.names_in(question, self.talk.names)
            asked = searching.Asked(text=question, names=names, query=Query(question, time_limit_s=60))
            found = await search.search(asked, [reach], most=PLACES[-1])
            quotes = block.excerpts(found.passages, ROOM)
            return Find(
                finds=tuple(frozenset(place[message.seq] for message in passage.messages) for passage in found.passages),
                scores=tuple(passage.score for passage in found.passages),
                quoted=frozenset(place[message.seq] for quote in quotes for message in quote.messages),
            )

        return ask

    async def plain_ways(self) -> dict[str, Way]:
        """Three ways that need no calibration: one cosine for each chunk above a number that never changes; the question's words as they stand; the
        whole question as it stands."""
        stored = await self.talks.db.read(lambda c: chunk_store.of_chat(c, self.of))
        place = {number: at for at, number in enumerate(self.numbers)}
        held = [frozenset(place[seq] for seq in each.seqs) for each in stored]
        embedder = self.talks.embedder
        assert embedder is not None
        rows = [row for row in await embedder.documents([each.text for each in stored]) if row is not None]
        return {
            "fixed floor": partial(_by_fixed_floor, embedder, np.stack(rows), held),
            "whole words": partial(_by_whole_words, [(each, frozenset(_WHOLE.findall(each.text.casefold()))) for each in stored], held),
            "whole phrase": partial(_by_whole_phrase, stored, held),
        }


async def _by_fixed_floor(embedder: Embedder, rows: Matrix, held: Sequence[frozenset[int]], question: str) -> Find:
    (vector,) = await embedder.questions([question])
    assert vector is not None
    similar = rows @ vector
    best = [int(at) for at in np.argsort(-similar)[: PLACES[-1]] if similar[at] > FIXED_FLOOR]
    return Find(finds=tuple(held[at] for at in best), scores=tuple(float(similar[at]) for at in best))


_WHOLE = regex.compile(r"[\p{L}\p{M}\p{N}]+")


async def _by_whole_phrase(stored: Sequence[Stored], held: Sequence[frozenset[int]], question: str) -> Find:
    phrase = question.casefold().strip("?？。.!！ ")
    best = [at for at, each in reversed(list(enumerate(stored))) if phrase in each.text.casefold()][: PLACES[-1]]
    return Find(finds=tuple(held[at] for at in best), scores=tuple(1.0 for _ in best))


async def _by_whole_words(stored: Sequence[tuple[Stored, frozenset[str]]], held: Sequence[frozenset[int]], question: str) -> Find:
    """What stands between blanks and marks counts as one word, as a database's own search has it; the rarer, the more it says."""
    asked = set(_WHOLE.findall(question.casefold()))
    sets = [words & asked for _, words in stored]
    common = Counter(word for each in sets for word in each)
    scores = [sum(1 / common[word] for word in each) for each in sets]
    best = sorted((at for at, score in enumerate(scores) if score), key=lambda at: (-scores[at], -at))
    best = best[: PLACES[-1]]
    return Find(finds=tuple(held[at] for at in best), scores=tuple(scores[at] for at in best))


async def filled(folder: Path, talk: LongTalk, embedder: Embedder) -> Filled:
    db = Database(sqlite_url(folder / f"{talk.name}-{embedder.label}.db"))
    migrate(db, folder / "backups")
    return await filled_in(db, talk, embedder)


async def filled_in(db: Database, talk: LongTalk, embedder: Embedder) -> Filled:
    """`db`: migrated."""
    talks = Talks(db, embedder)
    of = await talks.chat()

    def say(connection: sa.Connection) -> list[int]:
        return [
            conversations.add_message(
                connection, conversation_id=of, text=line.text, now=line.at, role="assistant" if line.ours else "user", scope="root",
                origin="assistant" if line.ours else "person", author_name=line.speaker,
            ).seq
            for line in talk.lines
        ]  # fmt: skip

    numbers = await db.write(say)
    indexing = TalkIndexing(
        db=db, clock=lambda: talk.lines[-1].at, embedder=embedder, home=None, gap=lambda: GAP, record=lambda: "full", hot=talks.hot
    )
    await indexing.follow(of)
    await talks.embed()
    return Filled(talk, talks, of, numbers)


async def score(way: Way, talk: LongTalk, *, half: int | None = None, most_wrong: float | None = None) -> Score:
    """Over all questions, or those of every other fact (`half`: 0 or 1; two questions in a row ask for one fact).

    `most_wrong`: only finds count that weigh more than what all unrelated questions find but such a share of them.
    """
    among: list[list[float]] = [[] for _ in PLACES]
    quoted: list[float] = []
    unrelated = [await way(question) for question in _half(talk.unrelated, half)]
    floor = -math.inf if most_wrong is None else _floor([each.scores[0] for each in unrelated if each.scores], most_wrong * len(unrelated))
    for asked in _half(talk.asked, half):
        found, wanted = await way(asked.text), frozenset(asked.evidence)
        finds = [find for find, weighs in zip(found.finds, found.scores, strict=True) if weighs > floor]
        for shares, most in zip(among, PLACES, strict=True):
            shares.append(len(wanted & frozenset[int]().union(*finds[:most])) / len(wanted))
        quoted.append(len(wanted & found.quoted) / len(wanted))
    wrong = [bool(each.scores and each.scores[0] > floor) for each in unrelated]
    return Score(among=tuple(map(statistics.mean, among)), quoted=statistics.mean(quoted), wrong=statistics.mean(wrong))


def _floor(best: Sequence[float], pass_it: float) -> float:
    """The lowest number that at most `pass_it` of these are above."""
    ordered = sorted(best, reverse=True)
    return ordered[int(pass_it)] if int(pass_it) < len(ordered) else -math.inf


def _half(items: Sequence[T], half: int | None) -> Sequence[T]:
    return items if half is None else [item for at, item in enumerate(items) if at // 2 % 2 == half]


async def ways(found: Filled) -> dict[str, Way]:
    """Everything that is compared, the product's own first."""
    return {
        "hybrid": found.way(Settings()),
        "vectors": found.way(Settings(words_weight=0.0, text_share=math.inf)),
        "words": found.way(Settings(), words_alone=True),
        **await found.plain_ways(),
    }


PLAIN = ("fixed floor", "whole words", "whole phrase")


async def all_scores(found: Filled) -> dict[str, tuple[Score, Score]]:
    """Of each way what it finds as it is, and when it is held to as few unrelated questions as ours, which stands first."""
    scores: dict[str, tuple[Score, Score]] = {}
    rate = 0.0
    for name, way in (await ways(found)).items():
        plain = await score(way, found.talk)
        rate = rate if scores else plain.wrong
        scores[name] = (plain, await score(way, found.talk, most_wrong=rate) if name in PLAIN else plain)
    return scores


async def retrieval(folder: Path, console: Console) -> None:
    named, size = os.environ.get(LOCOMO, ""), int(os.environ.get(ARCHIVES, ARCHIVE))
    if not named:
        console.print(f"LoCoMo is left out: {LOCOMO} names no file of it.")
    for embedder in (fast_encoder(), nano_e5()):
        table = Table(title=f"Recall in long talks, {embedder.label}: evidence among the first {' / '.join(map(str, PLACES))} chunks")
        for heading in ("talk", "way", "recall", "in the block", "unrelated that find", "first 3 at our rate"):
            table.add_column(heading)
        archives = tuple(archive(language, size) for language in LANGUAGES) if size and embedder.label != NANO else ()  # it would take an hour
        swept: list[Filled] = []
        for talk in (*all_scripted(), *archives):
            found = await filled(folder, talk, embedder)
            for name, (plain, held) in (await all_scores(found)).items():
                table.add_row(talk.name, name, *_cells(plain, held))
            swept.append(found)
        of_locomo: dict[str, list[tuple[Score, Score]]] = {}
        for talk in locomo(Path(named)) if named else ():
            found = await filled(folder, talk, embedder)
            for name, scored in (await all_scores(found)).items():
                of_locomo.setdefault(name, []).append(scored)
            await found.talks.db.close()
        for name, each in of_locomo.items():
            table.add_row("LoCoMo", name, *_cells(_mean([plain for plain, _ in each]), _mean([held for _, held in each])))
        console.print(table)
        console.print(await _sweep(embedder.label, swept))
        for found in swept:
            await found.talks.db.close()
        await embedder.close()


async def _sweep(label: str, scripts: Sequence[Filled]) -> Table:
    """Settings on the half to tune with, and on the half to report."""
    table = Table(title=f"{label}: what is tuned, recall / unrelated that find, on the half to tune with → on the other")
    for heading in ("words", "floor percentile", "text share", *(found.talk.name for found in scripts)):
        table.add_column(heading, justify="right")
    kept = Settings()
    tried = [
        *(replace(kept, words_weight=weight) for weight in WEIGHTS),
        *(replace(kept, floor_percentile=percentile) for percentile in (90.0, 95.0, 99.0)),
        *(replace(kept, text_share=share) for share in (0.45, 0.5, 0.6, 0.7)),
    ]
    for settings in tried:
        cells = [
            f"{await score(found.way(settings), found.talk, half=0)} → {await score(found.way(settings), found.talk, half=1)}" for found in scripts
        ]
        table.add_row(f"{settings.words_weight:g}", f"{settings.floor_percentile:g}", f"{settings.text_share:g}", *cells)
    return table


def _cells(scored: Score, held: Score) -> tuple[str, ...]:
    return " / ".join(f"{each:.2f}" for each in scored.among), f"{scored.quoted:.2f}", f"{scored.wrong:.2f}", f"{held.among[1]:.2f}"


def _mean(scores: Sequence[Score]) -> Score:
    among = tuple(statistics.mean(each.among[at] for each in scores) for at in range(len(PLACES)))
    return Score(among=among, quoted=statistics.mean(each.quoted for each in scores), wrong=statistics.mean(each.wrong for each in scores))
