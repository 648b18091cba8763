"""What must be known of an embedder before its numbers mean anything (SM-33): what all texts have in common, and how near unrelated ones come.

The mean of a background set is taken off every vector, of documents and of questions apart; a floor is a percentile of the best similarity that
questions reach which no passage answers. Both are measured once for each embedder and kept. There is no built-in cosine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
import sqlalchemy as sa

from memory.embedders import background_set
from memory.index_errors import EmbedderFailed
from memory.index_schema import calibrations
from memory.ports import Embedder, Matrix, Vector
from memory.upserts import insert_or_change

ROWS, ARCHIVE = 100, 200
"""Among how many passages the best wrong one is looked for: in a list of saved rows, and in an archive of files or messages (SM-33, RS-174)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """`best`: for each N the best similarities of the unanswered questions among N passages, ascending. `related`: those of the pairs that belong
    together, ascending."""

    dimension: int
    documents_mean: Vector
    questions_mean: Vector
    best: Mapping[int, tuple[float, ...]]
    related: tuple[float, ...] = ()

    def document(self, vectors: Matrix) -> Matrix:
        """Rows without what all documents have in common, with length 1."""
        return _centred(vectors, self.documents_mean)

    def question(self, vector: Vector) -> Vector:
        return _centred(vector[None, :], self.questions_mean)[0]

    def floor(self, among: int, percentile: float) -> float:
        """The similarity that a match must pass. `among`: ROWS or ARCHIVE; `percentile`: 0 to 100."""
        return float(np.percentile(self.best[among], percentile))

    def is_suitable(self, floor: float) -> bool:
        """Whether more than half of what belongs together passes this floor (SM-33)."""
        return bool(self.related) and float(np.median(self.related)) > floor


def measured(passages: Matrix, questions: Matrix, pairs: tuple[Matrix, Matrix] | None = None) -> Calibration:
    """From the vectors of the background set, in its order; `pairs`: of its pairs, passages and questions apart."""
    documents_mean, questions_mean = passages.mean(axis=0), questions.mean(axis=0)
    similar = _centred(questions, questions_mean) @ _centred(passages, documents_mean).T
    best = {among: tuple(sorted(map(float, similar[:, :among].max(axis=1)))) for among in (ROWS, ARCHIVE)}
    related: tuple[float, ...] = ()
    if pairs is not None:
        alike = (_centred(pairs[0], documents_mean) * _centred(pairs[1], questions_mean)).sum(axis=1)
        related = tuple(sorted(map(float, alike)))
    return Calibration(dimension=passages.shape[1], documents_mean=documents_mean, questions_mean=questions_mean, best=best, related=related)


async def calibrate(embedder: Embedder) -> Calibration:
    """Embed the background set. Raises EmbedderFailed, also when a text of it has no vector."""
    bundled = background_set.background()
    stored, asked = zip(*bundled.pairs, strict=True)
    passages, answers = await embedder.documents(bundled.passages), await embedder.documents(stored)
    questions: list[Vector | None] = []
    texts = [*bundled.questions, *asked]
    for at in range(0, len(texts), 16):  # in parts: a real question need not wait for all of them
        questions += await embedder.questions(texts[at : at + 16])
    unanswered, answered = questions[: len(bundled.questions)], questions[len(bundled.questions) :]
    return measured(_whole(passages), _whole(unanswered), (_whole(answers), _whole(answered)))


_RELATED = "related"  # beside the numbers N of `best`
_COLUMN = calibrations.c
_READ = sa.select(calibrations).where(_COLUMN.fingerprint == sa.bindparam("name"), _COLUMN.background == background_set.VERSION)
_PUT = insert_or_change(calibrations, ["fingerprint"], [column.name for column in calibrations.columns if not column.primary_key])


def read(connection: sa.Connection, fingerprint: str) -> Calibration | None:
    """What is kept of this embedder; None when it was never measured, or with another background set or fewer figures."""
    row = connection.execute(_READ, {"name": fingerprint}).one_or_none()
    if row is None or _RELATED not in row.best:
        return None
    return Calibration(
        dimension=row.dimension,
        documents_mean=np.frombuffer(row.documents_mean, dtype=np.float32),
        questions_mean=np.frombuffer(row.questions_mean, dtype=np.float32),
        best={int(among): tuple(similarities) for among, similarities in row.best.items() if among != _RELATED},
        related=tuple(row.best[_RELATED]),
    )


def keep(connection: sa.Connection, fingerprint: str, made: Calibration, now: datetime) -> None:
    values = {
        "fingerprint": fingerprint,
        "dimension": made.dimension,
        "background": background_set.VERSION,
        "documents_mean": made.documents_mean.astype(np.float32).tobytes(),
        "questions_mean": made.questions_mean.astype(np.float32).tobytes(),
        "best": {str(among): list(similarities) for among, similarities in made.best.items()} | {_RELATED: list(made.related)},
        "made_at": now,
    }
    connection.execute(_PUT[connection.dialect.name], values)


def _centred(vectors: Matrix, mean: Vector) -> Matrix:
    apart = np.subtract(vectors, mean, dtype=np.float32)
    lengths = np.sqrt(np.einsum("ij,ij->i", apart, apart))  # no copy of squares: an area of the talk has tens of thousands of rows
    apart /= np.maximum(lengths, 1e-6)[:, None]
    return apart


def _whole(rows: Sequence[Vector | None]) -> Matrix:
    known = [row for row in rows if row is not None]
    if len(known) < len(rows):
        raise EmbedderFailed("the embedder has no vector for a plain sentence", permanent=True)
    return np.stack(known)
