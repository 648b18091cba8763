"""What all that make vectors share: is the model behind a name still the same, what was measured of it, who served before, may a change begin.

A model that is checked and measured is so for rows, files and the talk alike. A changed source is built beside the one that serves and takes over
kind by kind (RS-29, RS-183, SM-95); one that is paid for waits for a confirmation.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import sqlalchemy as sa

from gateway import notices
from memory import tokens, vectors
from memory.database import Database
from memory.embedders import calibration as calibrating
from memory.embedders import canary
from memory.embedders.calibration import Calibration
from memory.index_errors import EmbedderFailed
from memory.index_kinds import FILES, MESSAGES, IndexKind
from memory.ports import Embedder
from memory.saved import row_vectors
from memory.schema import settings
from memory.scopes import ROOT
from memory.upserts import insert_or_change
from memory.vectors import Unembedded

log = logging.getLogger(__name__)

KINDS = (FILES, MESSAGES)  # saved memories have a pointer of their own
SAMPLE = 400  # texts that are counted for an estimate
_CONFIRMED, _SERVING, _CUT = "embedding:confirmed", "embedding:serving:", "embedding:cut"
_READ = sa.select(settings.c.value).where(settings.c.key == sa.bindparam("name", type_=sa.Text))
_PUT = insert_or_change(settings, ["key"], ["value", "updated_at"])


@dataclass(frozen=True, slots=True)
class Known:
    """An embedder under the name of its model, with what was measured of it: its vectors may be compared."""

    embedder: Embedder
    calibration: Calibration

    @property
    def fingerprint(self) -> str:
        return self.embedder.fingerprint


@dataclass(slots=True)
class _Former:
    known: Known
    users: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """What is still to be read by an embedder: different texts, and about how many tokens they have."""

    texts: int
    tokens: int


@dataclass(slots=True)
class EmbeddingChange:
    """One for a gateway. `find_former`: an embedder by the fingerprint it served under, None when it cannot be called any more; `is_paid`: whether
    the source that is wanted costs money."""

    db: Database
    clock: Callable[[], datetime]
    find_former: Callable[[str], Embedder | None] = lambda fingerprint: None
    is_paid: bool = False
    _named: dict[str, Embedder] = field(default_factory=dict[str, Embedder])
    _known: dict[str, Known] = field(default_factory=dict[str, Known])
    _formers: dict[str, _Former] = field(default_factory=dict[str, _Former])
    _listeners: list[Callable[[], object]] = field(default_factory=list[Callable[[], object]])
    _lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def named(self, embedder: Embedder) -> Embedder:
        """The wanted embedder under the name of the model that answers, looked at once (RS-182); whoever comes meanwhile waits. Raises
        EmbedderFailed, StoreError."""
        async with self._lock:
            return await self._name_once(embedder)

    async def known(self, embedder: Embedder) -> Known:
        """The same, measured once (SM-33)."""
        async with self._lock:
            named = await self._name_once(embedder)
            found = self._known.get(named.fingerprint)
            if found is None:
                found = self._known[named.fingerprint] = await self._measured(named)
            return found

    def check_again(self, embedder: Embedder) -> None:
        """Something is built anew: whether it is still the same model is looked at afresh (RS-182)."""
        self._named.pop(embedder.fingerprint, None)

    # -- who served before

    async def former(self, name: str) -> Known | None:
        """The embedder that served under this name, if it can be called still, was measured, and is the same model. Whoever has it gives it back by
        `release`. EmbedderFailed, StoreError: ask again later."""
        async with self._lock:
            held = self._formers.get(name)
            if held is None:
                held = await self._call_back(name)
            if held is None:
                return None
            held.users += 1
            self._formers[name] = held
            return held.known

    async def release(self, former: Known) -> None:
        held = self._formers[former.fingerprint]
        held.users -= 1
        if not held.users:
            del self._formers[former.fingerprint]
            await held.known.embedder.close()

    async def _call_back(self, name: str) -> _Former | None:
        calibration = await self.db.read(lambda connection: calibrating.read(connection, name))
        embedder = self.find_former(canary.plain(name)) if calibration is not None else None
        if embedder is None or calibration is None:
            return None
        try:
            named = await self._met(embedder)
        except EmbedderFailed:
            await embedder.close()
            raise
        if named.fingerprint != name:
            await embedder.close()
            return None
        return _Former(Known(named, calibration))

    # -- may it begin

    async def may_begin(self, name: str) -> bool:
        """Whether everything may be read by this embedder: it costs nothing, or somebody said yes to it (RS-29)."""
        return not self.is_paid or await self.db.read(confirmed) == name

    async def confirm(self, name: str) -> None:
        values = {"key": _CONFIRMED, "value": {"fingerprint": name}, "updated_at": self.clock()}
        await self.db.write(lambda connection: connection.execute(_PUT[connection.dialect.name], values))
        for told in self._listeners:
            told()

    def on_confirmed(self, told: Callable[[], object]) -> None:
        self._listeners.append(told)

    async def estimate(self, name: str) -> Estimate:
        """What this embedder has not read yet, of all kinds. StoreError."""
        return await self.db.read(lambda connection: estimate(connection, name))

    # -- the model behind a name

    async def _name_once(self, embedder: Embedder) -> Embedder:
        found = self._named.get(embedder.fingerprint)
        if found is None:
            found = self._named[embedder.fingerprint] = await self._met(embedder)
        return found

    async def _measured(self, named: Embedder) -> Known:
        kept = await self.db.read(lambda connection: calibrating.read(connection, named.fingerprint))
        if kept is not None and kept.dimension == await named.dimension():
            return Known(named, kept)
        made = await calibrating.calibrate(named)
        await self.db.write(lambda connection: calibrating.keep(connection, named.fingerprint, made, self.clock()))
        return Known(named, made)

    async def _met(self, embedder: Embedder) -> Embedder:
        """Under the name of the model that answers now; one that was never met before gets a name, and if it stands where another stood, the owner is
        told once (RS-182)."""
        plain = embedder.fingerprint
        made = await canary.embedded(embedder)

        def settle(connection: sa.Connection) -> int:
            models = canary.known(connection, plain)
            for number, model in enumerate(models, start=1):
                if canary.is_alike(model, made):
                    return number
            canary.keep(connection, plain, [*models, made], self.clock())
            number = len(models) + 1
            if number > 1:
                once = f"embedding:{canary.name_of(plain, number)}"
                notices.tell(connection, str(ROOT), "embedding_swapped", {"model": embedder.label}, once=once, now=self.clock())
            return number

        number = await self.db.write(settle)
        if number == 1:
            return embedder
        log.warning("another model answers as %s than before: its vectors are made anew and not compared with the old ones", embedder.label)
        return canary.KnownAs(embedder, canary.name_of(plain, number))


# -- rows -------------------------------------------------------------------------------------------------------------------


def serving(connection: sa.Connection, kind: IndexKind) -> str:
    """The name of the embedder that answers for a kind; empty when none ever did."""
    value = connection.execute(_READ, {"name": f"{_SERVING}{kind.name}"}).scalar()
    return "" if value is None else str(value["fingerprint"])


def serve(connection: sa.Connection, kind: IndexKind, name: str, now: datetime) -> None:
    """This embedder answers from now on."""
    values = {"key": f"{_SERVING}{kind.name}", "value": {"fingerprint": name}, "updated_at": now}
    connection.execute(_PUT[connection.dialect.name], values)


def cut_by(connection: sa.Connection, wanted: int, now: datetime) -> int:
    """By how many tokens files are cut into passages, where the embedder wants them cut by `wanted`; 0 is not at all.

    Once finely cut stays so: cut coarser they would be other texts, and the embedder that serves would find nothing until the new one has read all.
    It costs as many tokens, and a line is found more exactly than a chunk (docs/decisions/0007).
    """
    value = connection.execute(_READ, {"name": _CUT}).scalar()
    before = 0 if value is None else int(value["tokens"])
    finest = min(filter(None, (before, wanted)), default=0)
    if finest != before:
        values = {"key": _CUT, "value": {"tokens": finest}, "updated_at": now}
        connection.execute(_PUT[connection.dialect.name], values)
    return finest


def confirmed(connection: sa.Connection) -> str:
    """The name that somebody said yes to last; empty for none."""
    value = connection.execute(_READ, {"name": _CONFIRMED}).scalar()
    return "" if value is None else str(value["fingerprint"])


def estimate(connection: sa.Connection, name: str) -> Estimate:
    """Counted on a sample of the newest texts of each kind."""
    parts = [(vectors.missing(connection, kind, name, SAMPLE), vectors.coverage(connection, kind, name)) for kind in KINDS]
    parts.append((row_vectors.missing(connection, name, SAMPLE), row_vectors.coverage(connection, name)))
    left = [(sample, total - done) for sample, (done, total) in parts]
    return Estimate(texts=sum(count for _, count in left), tokens=sum(_tokens(sample, count) for sample, count in left))


def _tokens(sample: list[Unembedded], count: int) -> int:
    return 0 if not sample else round(sum(tokens.count(each.text) for each in sample) / len(sample) * count)
