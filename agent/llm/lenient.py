"""Field types that forgive: providers write null, numbers as text, objects as lists. Each gives the fact or its empty value, never an error.

Used by the pydantic models that read answers and complaints, so that an odd field beside an answer cannot cost the answer (MD-01 … MD-04).
"""

from __future__ import annotations

import json
import math
from typing import Annotated, TypeAlias, TypeVar, cast

from pydantic import BaseModel, BeforeValidator, ConfigDict

MAX_COUNT = 1 << 40
"""No token count is larger; above it a number is noise."""


class Lenient(BaseModel):
    """Unknown fields are left out, known ones default to nothing."""

    model_config = ConfigDict(extra="ignore", frozen=True)


def _text(value: object) -> str:
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False)


def _text_or_nothing(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int | None:
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return int(number) if math.isfinite(number) and 0 <= number <= MAX_COUNT else None


def object_or_none(value: object) -> object:
    """A JSON object stays; null, text, a list or a number becomes None."""
    return cast("object", value) if isinstance(value, dict) else None


def objects(value: object) -> list[object]:
    """The JSON objects of a list; anything else is left out (`"choices": null` is an empty list)."""
    if not isinstance(value, list):
        return []
    return [item for item in cast("list[object]", value) if isinstance(item, dict)]


Item = TypeVar("Item")

Text: TypeAlias = Annotated[str, BeforeValidator(_text)]
"""Text as it is; null is empty; a number or an object is written as JSON."""

TextOnly: TypeAlias = Annotated[str, BeforeValidator(_text_or_nothing)]
"""Text as it is; everything else is empty."""

Count: TypeAlias = Annotated[int | None, BeforeValidator(_count)]
"""A count of tokens, also when written as text or as 12.0; None when it is no such thing."""

Maybe: TypeAlias = Annotated[Item | None, BeforeValidator(object_or_none)]
Many: TypeAlias = Annotated[list[Item], BeforeValidator(objects)]
