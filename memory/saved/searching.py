"""The one search of saved memories in a reply: exact, over the rows that count there, and never a reason for it to fail (SM-29 to SM-34, SM-98).

Vectors are read from the database once and held by the hash of their text, for a text never changes what its vector says.
"""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Literal, TypeVar

import numpy as np

from memory import words
from memory.database import Database
from memory.embedders.calibration import ROWS, Calibration
from memory.errors import StoreError
from memory.index_errors import EmbedderFailed
from memory.ports import Embedder, Matrix, Vector
from memory.query import Query
from memory.saved import row_vectors
from memory.saved.found import NOT_SEARCHED, Found, Searched
from memory.saved.matching import match, query_of
from memory.saved.rows import Memory, content_hash

log = logging.getLogger(__name__)

HELD_ROWS = 16_000  # vectors in memory: 32 MB of 512 numbers
HELD_QUESTIONS = 64  # characters that answer one message ask the same (SM-29)

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Who makes vectors of rows at present. `state`: ok; off (there is no embedder); building (never measured yet, or its vectors are being made);
    failed, with `reason`. Only with ok there are `embedder` and `calibration`."""

    state: Literal["ok", "off", "building", "failed"]
    embedder: Embedder | None = None
    calibration: Calibration | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchSettings:
    """`time_limit_s`: `recall.time_limit_s`; `words_weight`: `search.words_weight.rows`; the others are keys of `saved.`. `match_floor`: cosines by
    fingerprint or label of an embedder; one that is not named is measured (SM-33). `ageing`: `MEMORY_DECAY_ENABLED` (SM-97)."""

    time_limit_s: float = 1.5
    words_weight: float = 0.2
    query_min_chars: int = 3
    query_min_chars_cjk: int = 2
    query_max_chars: int = 1000
    matches_max: int = 3
    match_floor: Mapping[str, float] = field(default_factory=dict[str, float])
    match_floor_percentile: float = 60.0
    ageing: bool = True


class SavedSearch:
    """`serving`: who makes vectors now; `settings`: as they are now; `spoiled` hears of the hashes of vectors that cannot be what they say."""

    def __init__(
        self,
        db: Database,
        *,
        serving: Callable[[], Serving],
        settings: Callable[[], SearchSettings] = SearchSettings,
        spoiled: Callable[[Sequence[str]], object] = lambda hashes: None,
    ) -> None:
        self._db = db
        self._serving = serving
        self._settings = settings
        self._spoiled = spoiled
        self._rows: _Held[Vector] = _Held(HELD_ROWS)  # centred, by fingerprint and hash
        self._tokens: _Held[tuple[str, ...]] = _Held(HELD_ROWS)
        self._questions: _Held[Vector] = _Held(HELD_QUESTIONS)  # as the embedder made them

    async def search(self, rows: Iterable[Memory], text: str, *, asked: Query | None = None) -> Found:
        """Compare the newest message of a person with the visible rows of a reply; pins among them are left out.

        `text`: empty for a sticker, an image alone or a turn of the system: nothing is searched then. `asked`: what this reply asks all indexes, with
        the prepared query among its texts. Raises nothing: the result says how it went.
        """
        settings, unpinned = self._settings(), tuple(each for each in rows if not each.pinned)
        query = query_of(text, min_chars=settings.query_min_chars, min_chars_cjk=settings.query_min_chars_cjk, max_chars=settings.query_max_chars)
        if not query:
            return NOT_SEARCHED
        serving = self._serving()
        if reason := self.why_off():
            return Found(mode=Searched.OFF, reason=reason)
        if serving.state != "ok" or serving.embedder is None or serving.calibration is None:
            return Found(mode=Searched.FAILED, reason=serving.reason or serving.state) if unpinned else NOT_SEARCHED
        try:
            async with asyncio.timeout(settings.time_limit_s):
                question = await self._question(serving.embedder, query, asked)
                return await self._found(serving.embedder, serving.calibration, settings, unpinned, query, question)
        except TimeoutError:
            reason = f"no answer within {settings.time_limit_s:g} s"
        except StoreError as error:
            reason = str(error)
        log.warning("a search of saved memories failed: %s", reason)
        return Found(mode=Searched.FAILED, reason=reason)

    def why_off(self) -> str:
        """Why nothing can be searched however often it is tried: no embedder, or one that cannot tell (SM-98); empty when it can."""
        serving = self._serving()
        if serving.state == "off":
            return "there is no embedding model"
        if serving.calibration is None or serving.embedder is None:
            return ""
        floor = self.floor(serving.embedder, serving.calibration)
        return "" if serving.calibration.is_suitable(floor) else f"{serving.embedder.label} does not tell related texts from others"

    @property
    def ageing_on(self) -> bool:
        """Whether rows age on this instance; a policy may still say no for a chat (SM-98)."""
        return self._settings().ageing and not self.why_off()

    def floor(self, embedder: Embedder, calibration: Calibration) -> float:
        """The similarity that a match must pass: measured, or what the configuration says of exactly this embedder (SM-33)."""
        settings = self._settings()
        for name in (embedder.fingerprint, embedder.label):
            if name in settings.match_floor:
                return settings.match_floor[name]
        return calibration.floor(ROWS, settings.match_floor_percentile)

    async def _found(
        self, embedder: Embedder, calibration: Calibration, settings: SearchSettings, rows: Sequence[Memory], query: str, question: Vector | None
    ) -> Found:
        if question is None:
            return Found(mode=Searched.FAILED, reason=f"{embedder.label} has no vector for this message")
        if len(question) != calibration.dimension:
            raise EmbedderFailed(f"{embedder.label} gave {len(question)} numbers instead of {calibration.dimension}")
        known = await self._vectors(embedder.fingerprint, calibration, rows)
        compared = tuple(each for each in rows if each.content_hash in known)
        matches = await asyncio.to_thread(
            match,
            compared,
            _stacked([known[each.content_hash] for each in compared], calibration.dimension),
            [self._tokens_of(each) for each in compared],
            calibration.question(question),
            query,
            floor=self.floor(embedder, calibration),
            words_weight=settings.words_weight,
            most=settings.matches_max,
        )
        return Found(mode=Searched.OK, matches=matches, compared=compared)

    async def _question(self, embedder: Embedder, query: str, asked: Query | None) -> Vector | None:
        """The message's vector, asked for once for all characters that answer it (SM-29)."""
        key = f"{embedder.fingerprint} {content_hash(query)}"
        if (held := self._questions.get(key)) is not None:
            return held
        if asked is not None:
            vector = await asked.vector(embedder, query)
        else:
            (vector,) = await embedder.questions([query])
        if vector is not None:
            self._questions.put(key, vector)
        return vector

    async def _vectors(self, fingerprint: str, calibration: Calibration, rows: Sequence[Memory]) -> dict[str, Vector]:
        """Centred vectors by hash, of those rows that have one. Raises StoreError for one of a wrong dimension (SM-94)."""
        found = {each.content_hash: self._rows.get(f"{fingerprint} {each.content_hash}") for each in rows}
        wanted = [key for key, held in found.items() if held is None]
        read = await self._db.read(lambda connection: row_vectors.of_hashes(connection, fingerprint, wanted)) if wanted else {}
        if wrong := [key for key, data in read.items() if len(data) != 2 * calibration.dimension]:
            self._spoiled(wrong)
            raise StoreError(f"{len(wrong)} stored vectors do not have {calibration.dimension} numbers; they are made anew")
        if read:
            matrix = np.frombuffer(b"".join(read.values()), dtype=np.float16).reshape(-1, calibration.dimension).astype(np.float32)
            for key, vector in zip(read, calibration.document(matrix), strict=True):
                found[key] = vector
                self._rows.put(f"{fingerprint} {key}", vector)
        return {key: vector for key, vector in found.items() if vector is not None}

    def _tokens_of(self, memory: Memory) -> tuple[str, ...]:
        if (held := self._tokens.get(memory.content_hash)) is not None:
            return held
        made = tuple(words.tokens(memory.content))
        self._tokens.put(memory.content_hash, made)
        return made


def _stacked(vectors: Sequence[Vector], dimension: int) -> Matrix:
    return np.stack(vectors) if vectors else np.zeros((0, dimension), dtype=np.float32)


class _Held(Generic[T]):
    """At most `most` values; the least recently used goes."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._values: OrderedDict[str, T] = OrderedDict()

    def get(self, key: str) -> T | None:
        if key not in self._values:
            return None
        self._values.move_to_end(key)
        return self._values[key]

    def put(self, key: str, value: T) -> None:
        self._values[key] = value
        self._values.move_to_end(key)
        if len(self._values) > self._most:
            self._values.popitem(last=False)
