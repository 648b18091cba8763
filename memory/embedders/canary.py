"""Sixteen fixed sentences that show whether the model behind a name is still the one whose vectors are kept (RS-182).

What each model that answered to a fingerprint made of them is in a row of `settings`. The first model has the fingerprint itself for a name, the
second that was met has `#2` behind it, and so on; so vectors of two models never stand under one name, and one that comes back finds its own again.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from datetime import datetime
from typing import cast

import numpy as np
import sqlalchemy as sa

from memory.index_errors import EmbedderFailed
from memory.ports import Embedder, Matrix, Vector
from memory.schema import settings
from memory.upserts import insert_or_change

ALIKE = 0.999  # cosine of each sentence
SENTENCES = (
    "The ferry to the island leaves at a quarter past seven.",
    "Her grandmother taught her how to mend a torn net.",
    "The invoice for March was paid twice by mistake.",
    "A red kite circled above the empty stadium.",
    "He cannot eat walnuts, but almonds are fine.",
    "図書館は月曜日が休みです。",
    "駅前のパン屋で食パンを二斤買った。",
    "来週の会議は三階の小さな部屋に変わりました。",
    "祖父は若いころ船乗りだった。",
    "雨の日は頭が痛くなることが多い。",
    "他把自行车锁在学校门口的树旁。",
    "明天早上九点之前要把报告交上去。",
    "她养了一只怕打雷的黑猫。",
    "这家面馆的老板是四川人。",
    "去年冬天湖面结了很厚的冰。",
    "def area(width: float, height: float) -> float: return width * height",
)
_PREFIX, _MARK = "embedding:canary:", "#"
_READ = sa.select(settings.c.value).where(settings.c.key == sa.bindparam("name", type_=sa.Text))
_PUT = insert_or_change(settings, ["key"], ["value", "updated_at"])


async def embedded(embedder: Embedder) -> Matrix:
    """A row for each sentence, of length 1. Raises EmbedderFailed, also when one has no vector."""
    rows = [row for row in await embedder.documents(SENTENCES) if row is not None]
    if len(rows) < len(SENTENCES):
        raise EmbedderFailed("the embedder has no vector for a plain sentence", permanent=True)
    return np.stack(rows)


def is_alike(one: Matrix, other: Matrix) -> bool:
    """Whether the same model made both."""
    if one.shape != other.shape:
        return False
    lengths = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return bool(((one * other).sum(axis=1) >= ALIKE * lengths).all())


def known(connection: sa.Connection, fingerprint: str) -> list[Matrix]:
    """What the models that answered to this fingerprint made of the sentences, the first one first."""
    value = connection.execute(_READ, {"name": f"{_PREFIX}{fingerprint}"}).scalar()
    return [] if value is None else [_unpacked(each) for each in cast("dict[str, list[str]]", value)["models"]]


def keep(connection: sa.Connection, fingerprint: str, models: Sequence[Matrix], now: datetime) -> None:
    values = {"key": f"{_PREFIX}{fingerprint}", "value": {"models": [_packed(each) for each in models]}, "updated_at": now}
    connection.execute(_PUT[connection.dialect.name], values)


def name_of(fingerprint: str, number: int) -> str:
    """What the vectors of the `number`th model of a fingerprint stand under."""
    return fingerprint if number == 1 else f"{fingerprint}{_MARK}{number}"


def plain(name: str) -> str:
    """The fingerprint in such a name."""
    head, mark, number = name.rpartition(_MARK)
    return head if mark and number.isdecimal() else name


class KnownAs:
    """An embedder under the name that its model has here."""

    def __init__(self, inner: Embedder, fingerprint: str) -> None:
        self._inner = inner
        self.fingerprint = fingerprint
        self.label, self.batch, self.passage_tokens = inner.label, inner.batch, inner.passage_tokens

    async def dimension(self) -> int:
        return await self._inner.dimension()

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._inner.documents(texts)

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._inner.questions(texts)

    async def close(self) -> None:
        await self._inner.close()


def _packed(matrix: Matrix) -> str:
    return f"{len(matrix)} " + base64.b64encode(matrix.astype(np.float16).tobytes()).decode("ascii")


def _unpacked(text: str) -> Matrix:
    rows, _, data = text.partition(" ")
    return np.frombuffer(base64.b64decode(data), dtype=np.float16).astype(np.float32).reshape(int(rows), -1)
