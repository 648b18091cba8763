"""The part of the composition root that is about saved memories (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime

from gateway.background import Background
from gateway.config import Config
from gateway.embedding.change import EmbeddingChange
from gateway.embedding.row_vectors import RowVectors
from gateway.models import Models
from gateway.saved.deep_memory import DeepMemory
from gateway.saved.turn import SavedTurns, limits_of
from memory.database import Database
from memory.ports import Embedder
from memory.saved.searching import SavedSearch, SearchSettings
from memory.saved.writing import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedParts:
    """`search`: the one search of rows; `vectors`: to be run beside everything; `turns`: what a reply has of saved memory; `limits`, `ageing_on`: as
    they are now; `on_written`: to be told after every commit that changed rows."""

    search: SavedSearch
    vectors: RowVectors
    turns: SavedTurns
    limits: Callable[[], Limits]
    ageing_on: Callable[[], bool]
    on_written: Callable[[], None]

    def deep(
        self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], models: Models, background: Background
    ) -> DeepMemory:
        return DeepMemory(
            db=db,
            clock=clock,
            config=config,
            models=models,
            background=background,
            search=self.search,
            serving=self.vectors.serving,
            limits=self.limits,
            on_written=self.on_written,
        )


def build_saved(
    *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], embedder: Embedder | None, change: EmbeddingChange
) -> SavedParts:
    """Tie it together; nothing runs yet. `embedder` is closed by whoever made it."""
    vectors = RowVectors(db=db, clock=clock, embedder=embedder, change=change)
    search = SavedSearch(db, serving=vectors.serving, settings=lambda: search_settings(config()), spoiled=vectors.spoiled)
    turns = SavedTurns(db=db, clock=clock, config=config, search=search, on_written=vectors.changed)
    return SavedParts(
        search=search,
        vectors=vectors,
        turns=turns,
        limits=lambda: limits_of(config()),
        ageing_on=lambda: search.ageing_on,
        on_written=vectors.changed,
    )


def search_settings(config: Config) -> SearchSettings:
    """What the search goes by, as it is configured now."""
    saved, floor = config.saved, config.saved.match_floor
    return SearchSettings(
        time_limit_s=config.recall.time_limit_s,
        words_weight=config.search.words_weight.rows,
        query_min_chars=saved.query_min_chars,
        query_min_chars_cjk=saved.query_min_chars_cjk,
        query_max_chars=saved.query_max_chars,
        matches_max=saved.matches_max,
        match_floor=floor if isinstance(floor, Mapping) else {},
        match_floor_percentile=saved.match_floor_percentile,
        ageing=saved.ageing,
    )
