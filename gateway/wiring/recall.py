"""The part of the composition root that is about recall of the talk (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from gateway.config import Config
from gateway.embedding.change import EmbeddingChange
from gateway.recall.recalling import Recalling
from gateway.recall.talk_indexing import TalkIndexing
from memory.database import Database
from memory.ports import Embedder
from memory.recall.talk_search import TalkSearch
from memory.vector_mirror import Home


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallParts:
    """`indexing`: to be run beside everything, and told of every chat where something was said; `turns`: what a reply has of the past."""

    indexing: TalkIndexing
    search: TalkSearch
    turns: Recalling


def build_recall(
    *,
    db: Database,
    clock: Callable[[], datetime],
    config: Callable[[], Config],
    embedder: Embedder | None,
    home: Home | None,
    change: EmbeddingChange,
) -> RecallParts:
    """Tie it together; nothing runs yet. `embedder` and `home` are closed by whoever made them; `change`: which embedder serves."""
    indexing = TalkIndexing(
        db=db,
        clock=clock,
        embedder=embedder,
        home=home,
        gap=lambda: timedelta(hours=config().chunk.gap_hours),
        record=lambda: config().recall.record,
        samples=config().chroma.canary_samples,
        change=change,
    )
    search = TalkSearch(
        db,
        indexing.hot,
        serving=indexing.serving,
        words_weight=lambda: config().search.words_weight.messages,
        name_weight=lambda: config().recall.name_weight,
        floor_percentile=lambda: config().recall.floor_percentile,
        text_share=lambda: config().recall.text_floor_percent / 100,
        warm=indexing.warm,
    )
    return RecallParts(indexing=indexing, search=search, turns=Recalling(db=db, config=config, search=search, stale=indexing.changed))
