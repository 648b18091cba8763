"""Which embedder answers for one kind of text, and how a new one takes over (RS-29, RS-183, SM-95).

The one that served goes on answering, and reads what is new, until the wanted one has read everything; then one transaction moves the pointer. Where
the old one cannot be called any more words answer meanwhile. Killed or refused in the middle, it goes on where it was: a vector is kept once made.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from gateway.embedding.change import EmbeddingChange, Known
from memory.database import Database
from memory.embedders import canary
from memory.index_errors import EmbedderFailed
from memory.ports import Embedder, Vector
from memory.vectors import Unembedded, is_usable

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shelf:
    """The texts of one kind and their vectors, functions on a connection. `pointer`: the name of the embedder that serves, empty for none; `point`:
    moves it; `missing`: up to so many texts without a vector under a name; `coverage`: how many have one, and how many there are; `keep`: by hash."""

    pointer: Callable[[sa.Connection], str]
    point: Callable[[sa.Connection, Known, datetime], object]
    missing: Callable[[sa.Connection, str, int], list[Unembedded]]
    coverage: Callable[[sa.Connection, str], tuple[int, int]]
    keep: Callable[[sa.Connection, str, Mapping[str, Vector]], object]


class Succession:
    """`embedder`: the one that is wanted; `pages`: batches that are looked up at once; `kept`: told after vectors were stored, and after a change."""

    def __init__(
        self, shelf: Shelf, *, db: Database, clock: Callable[[], datetime], change: EmbeddingChange, embedder: Embedder, pages: int,
        kept: Callable[[], object] = lambda: None,
    ) -> None:  # fmt: skip
        self._shelf = shelf
        self._db = db
        self._clock = clock
        self._change = change
        self._embedder = embedder
        self._pages = pages
        self._kept = kept
        self._former: Known | None = None
        self._given_up = ""  # a former one that cannot be called
        self._refused: set[tuple[str, str]] = set()  # name and text that the embedder cannot take
        self.name = embedder.fingerprint
        """What the vectors of the wanted embedder stand under."""
        self.answering: Known | None = None
        self.waits_for = ""
        """The name that must be confirmed before anything goes on; empty when nothing waits."""

    @property
    def former(self) -> str:
        """The label of the old one that still answers; empty when none does."""
        return self._former.embedder.label if self._former is not None else ""

    def refused(self) -> int:
        """How many texts the wanted embedder cannot take."""
        return sum(name == self.name for name, _ in self._refused)

    def begin_anew(self) -> None:
        """What was refused is tried again, and the model is looked at afresh."""
        self._refused.clear()
        self._change.check_again(self._embedder)

    async def round(self) -> None:
        """Measure, read what is missing, take over when all is read. Raises EmbedderFailed of the wanted one, StoreError."""
        plain, shelf = self._embedder.fingerprint, self._shelf
        serving = await self._db.read(shelf.pointer)
        self.waits_for = ""
        if not (await self._db.read(lambda connection: shelf.coverage(connection, plain)))[1]:
            return  # to load a model for nothing would cost the first answers their time
        if serving and canary.plain(serving) != plain:
            fault = await self._keep_serving(serving)
            if not await self._may_begin(plain):
                if fault is not None:
                    raise fault  # nothing answers: it is tried again soon
                return
        self.name = (await self._change.named(self._embedder)).fingerprint
        if self.answering is not None and self.answering is not self._former and self.answering.fingerprint != self.name:
            self.answering = None  # it answered until its model was found to be another one
        if serving and serving != self.name != plain and not await self._may_begin(self.name):
            return
        wanted = await self._change.known(self._embedder)
        if serving in ("", wanted.fingerprint):
            self.answering = wanted
        while await self._embed_some(wanted):
            await self._keep_up()
        if serving != wanted.fingerprint:
            await self._take_over(wanted, serving)

    async def release(self) -> None:
        former, self._former = self._former, None
        if former is not None:
            await self._change.release(former)

    async def _may_begin(self, name: str) -> bool:
        """What was read before costs nothing again."""
        done, total = await self._db.read(lambda connection: self._shelf.coverage(connection, name))
        if done >= total or await self._change.may_begin(name):
            return True
        self.waits_for = name
        return False

    async def _keep_serving(self, serving: str) -> EmbedderFailed | None:
        """The old one answers and keeps up, if it can be called; why it does not now."""
        if self._former is None and self._given_up != serving:
            try:
                self._former = await self._change.former(serving)
            except EmbedderFailed as error:
                log.debug("the embedder that served before does not answer now: %s", error)
                return error
            self.answering = self._former
            self._kept()
            if self._former is None:
                self._given_up = serving
                log.warning("the embedder that served before cannot be called any more: words answer until the new one has read everything")
        await self._keep_up()
        return None

    async def _keep_up(self) -> None:
        """The old one reads what is new, so that it is found before the new one takes over."""
        try:
            while self._former is not None and await self._embed_some(self._former):
                pass
        except EmbedderFailed as error:
            log.debug("the embedder that served before reads nothing now: %s", error)

    async def _take_over(self, wanted: Known, serving: str) -> None:
        if serving:
            self._change.check_again(self._embedder)
            if (await self._change.named(self._embedder)).fingerprint != wanted.fingerprint:
                raise EmbedderFailed("another model answered while everything was read")

        def settle(connection: sa.Connection) -> bool:
            left = self._shelf.missing(connection, wanted.fingerprint, len(self._refused) + 1)
            if any((wanted.fingerprint, each.text_hash) not in self._refused for each in left):
                return False
            self._shelf.point(connection, wanted, self._clock())
            return True

        if await self._db.write(settle):
            self.answering = wanted
            await self.release()
        self._kept()  # what came meanwhile is read in the next round

    async def _embed_some(self, known: Known) -> int:
        """Give the next texts their vectors, what was written last first; how many there were."""
        name, batch = known.fingerprint, known.embedder.batch
        most = self._pages * batch + len(self._refused)
        found = await self._db.read(lambda connection: self._shelf.missing(connection, name, most))
        texts = [each for each in found if (name, each.text_hash) not in self._refused]
        for at in range(0, len(texts), batch):
            await self._embed(known, texts[at : at + batch])
        return len(texts)

    async def _embed(self, known: Known, texts: list[Unembedded]) -> None:
        rows = await known.embedder.documents([each.text for each in texts])
        made = {each.text_hash: row for each, row in zip(texts, rows, strict=True) if row is not None and is_usable(row)}
        self._refused.update((known.fingerprint, each.text_hash) for each in texts if each.text_hash not in made)
        await self._db.write(lambda connection: self._shelf.keep(connection, known.fingerprint, made))
        self._kept()
