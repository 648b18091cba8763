"""The part of the composition root that is about what people do with saved memories, on the page and by commands (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from gateway.background import Background
from gateway.config import Config
from gateway.dreams.reading import FindManagers
from gateway.models import Models
from gateway.saved.desk import SavedDesk
from gateway.saved.drafts import Drafting
from gateway.saved.shelves import Shelves
from gateway.wiring.saved import SavedParts
from memory.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class PanelParts:
    """`desk`: the use cases; `shelves`: which lists somebody may open; `drafting`: drafts by the helper model."""

    desk: SavedDesk
    shelves: Shelves
    drafting: Drafting


def build_panel(
    saved: SavedParts,
    *,
    db: Database,
    clock: Callable[[], datetime],
    config: Callable[[], Config],
    models: Models,
    background: Background,
    managers: FindManagers,
) -> PanelParts:
    return PanelParts(
        desk=SavedDesk(db=db, clock=clock, limits=saved.limits, ageing_on=saved.ageing_on, on_written=saved.on_written),
        shelves=Shelves(db=db, clock=clock, config=config, managers=managers),
        drafting=Drafting(models=models, background=background, config=config, length=lambda: saved.limits().content),
    )
