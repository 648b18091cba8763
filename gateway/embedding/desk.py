"""The operators' side of embeddings: which source there is, how far each kind has got, what a change costs, the yes to it (RS-25, RS-29)."""

from __future__ import annotations

import json
import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa

from gateway import audit
from gateway.admin import AdminCommand, AdminFault, Arguments
from gateway.audit import CONSOLE, Actor
from gateway.config import Config
from gateway.config.types import hide_login
from gateway.embedding.change import EmbeddingChange, Estimate
from gateway.embedding.row_vectors import RowVectorStatus
from gateway.embedding.source import EmbeddingSource, SourceFault, source_of
from gateway.embedding.vector_keeping import VectorStatus
from memory.database import Database
from memory.ports import Embedder

Status = VectorStatus | RowVectorStatus
State = Literal["off", "ok", "building", "waits", "failed"]
SECRET_NAME = "YUMEGATE_EMBEDDING_KEY"


class NothingWaits(Exception):
    """Nothing waits for a confirmation, or something else than what was confirmed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KindView:
    """How far a kind has got. `former`: the model that answers meanwhile, empty for none; `reason`: why nothing goes on."""

    kind: str
    state: State
    embedded: int
    texts: int
    former: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbeddingsView:
    """`source`, `model`, `address`, `place` (the section of the configuration, empty for none): what runs; `restart`: the configuration names another
    one by now. `waits_for`: what must be confirmed, with what it would read; empty and None when nothing waits."""

    source: str
    model: str
    address: str
    place: str
    paid: bool
    english_only: bool
    restart: bool
    kinds: tuple[KindView, ...]
    waits_for: str
    estimate: Estimate | None


class EmbeddingDesk:
    """`embedder`: the one that runs, None for none; `source`: what it was made of; `kinds`: how each kind stands."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        change: EmbeddingChange,
        embedder: Embedder | None,
        source: EmbeddingSource,
        kinds: Mapping[str, Callable[[], Awaitable[Status]]],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._change = change
        self._embedder = embedder
        self._source = source
        self._kinds = kinds

    async def view(self) -> EmbeddingsView:
        """StoreError when the database does not answer."""
        seen = {kind: await status() for kind, status in self._kinds.items()}
        waits_for = next((each.waits_for for each in seen.values() if each.waits_for), "")
        source = self._source
        return EmbeddingsView(
            source=source.kind if self._embedder is not None else "none",
            model=source.model if source.kind == "openai" or self._embedder is None else self._embedder.label,
            address=hide_login(source.base_url),
            place=".".join(map(str, source.place)),
            paid=source.is_paid,
            english_only=source.is_english_only,
            restart=self._is_another(),
            kinds=tuple(_kind(kind, status) for kind, status in seen.items()),
            waits_for=waits_for,
            estimate=await self._change.estimate(waits_for) if waits_for else None,
        )

    async def confirm(self, actor: Actor, waits_for: str) -> Estimate:
        """Let a change begin; what it will read. Raises NothingWaits."""
        view = await self.view()
        if not waits_for or view.waits_for != waits_for or view.estimate is None:
            raise NothingWaits
        after = {"embeddings": waits_for, "texts": view.estimate.texts, "tokens": view.estimate.tokens}

        def record(connection: sa.Connection) -> None:
            audit.record(connection, actor, "embeddings.confirm", at=self._clock(), target=view.model, after=after)

        await self._db.write(record)
        await self._change.confirm(waits_for)
        return view.estimate

    # -- the command line

    @property
    def commands(self) -> dict[str, AdminCommand]:
        return {"embeddings": self._show, "embeddings confirm": self._confirm}

    async def _show(self, _arguments: Arguments) -> dict[str, Any]:
        view = await self.view()
        return {
            "source": view.source,
            "model": view.model,
            "restart": view.restart,
            "kinds": [{"kind": each.kind, "state": each.state, "embedded": each.embedded, "texts": each.texts} for each in view.kinds],
            "waits": view.estimate is not None,
            "tokens": view.estimate.tokens if view.estimate is not None else 0,
            "texts": view.estimate.texts if view.estimate is not None else 0,
        }

    async def _confirm(self, _arguments: Arguments) -> dict[str, Any]:
        try:
            read = await self.confirm(CONSOLE, (await self.view()).waits_for)
        except NothingWaits:
            raise AdminFault("nothing waits for a confirmation: `embeddings` shows how it stands") from None
        return {"tokens": read.tokens, "texts": read.texts}

    def _is_another(self) -> bool:
        try:
            return source_of(self._config()) != self._source
        except SourceFault:
            return False


def config_lines(source: EmbeddingSource) -> list[str]:
    """The lines to put into `config.json` for a source chosen on the page, the key as a reference to the environment (RS-25)."""
    chosen: dict[str, str] = {"provider": source.kind}
    if source.kind == "openai":
        chosen["base_url"] = source.base_url
        if source.api_key.get_secret_value():
            chosen["api_key"] = f"${{{SECRET_NAME}}}"
    if source.model:
        chosen["model"] = source.model
    return re.sub(r"\A\{\n|\n\}\Z", "", json.dumps({"embedding": chosen}, indent=2, ensure_ascii=False)).splitlines()


def _kind(kind: str, status: Status) -> KindView:
    match status:
        case VectorStatus():
            state, texts = status.vectors, status.passages
        case RowVectorStatus():
            texts = status.texts
            state = "failed" if status.reason else "ok" if status.embedded >= texts else "building"
    return KindView(
        kind=kind,
        state="waits" if status.waits_for else state,
        embedded=status.embedded,
        texts=texts,
        former=status.former,
        reason=status.reason,
    )
