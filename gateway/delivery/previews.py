"""What is known of the preview of a turn: that it is on show, or only that it was sent (CH-97).

A first preview is noted before it leaves and again once its id is known. Between the two a kill leaves a message of which nobody knows; it is then
settled as any unknown part is (CH-80), before the answer that takes its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import from_json, to_json
from channels.port import OutboundPart
from memory.schema import turns

_NOTE = sa.update(turns).where(turns.c.id == sa.bindparam("of")).values(preview_ids=sa.bindparam("known", type_=turns.c.preview_ids.type))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """A first preview as it left at `at`; nobody knows whether it arrived."""

    part: OutboundPart
    at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """`id`: of the message on show, empty while there is none that is known. `tried` is set while one may be on show under an id not known."""

    id: str = ""
    tried: Tried | None = None


NO_PREVIEW = Preview()


def note(connection: sa.Connection, turn_id: str, preview: Preview) -> None:
    known = [preview.id] if preview.id else to_json(preview.tried) if preview.tried else None
    connection.execute(_NOTE, {"of": turn_id, "known": known})


def noted(known: list[str] | Mapping[str, Any] | None) -> Preview:
    """What `note` has left in the row."""
    match known:
        case None:
            return NO_PREVIEW
        case list():
            return Preview(id=known[0])
        case _:
            return Preview(tried=from_json(Tried, known))
