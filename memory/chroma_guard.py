"""What reaches Chroma is cleaned here and nowhere else (WD-123, WD-125, WD-126). Pure."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from memory.ports import Vector
from memory.vectors import is_usable

T = TypeVar("T")

_SURROGATE = re.compile("[\ud800-\udfff]")


def collection_name(kind: str, fingerprint: str, dimension: int, generation: int) -> str:
    """A name that Chroma takes whatever the parts are; other parts give another name (WD-123)."""
    parts = "\0".join((kind, fingerprint, str(dimension), str(generation)))
    return f"{re.sub('[^a-z]', '', kind)[:8] or 'x'}-{hashlib.sha256(parts.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def clean_text(text: str) -> str:
    """Lone surrogates replaced, NUL taken out (VX-16)."""
    return _SURROGATE.sub("\ufffd", text).replace("\0", "")


def clean_metadata(values: Mapping[str, object]) -> dict[str, str | int | float | bool]:
    """Texts, numbers and flags only, no nulls, never empty (VX-14)."""
    kept: dict[str, str | int | float | bool] = {}
    for name, value in values.items():
        if isinstance(value, str):
            kept[name] = clean_text(value)
        elif isinstance(value, bool | int | float):
            kept[name] = value
    return kept or {"-": 1}


def usable(vectors: Mapping[str, Vector]) -> dict[str, Vector]:
    """What may be stored: a key, and a vector that is a vector; of one dimension, the first one's. Each key once (VX-13)."""
    kept: dict[str, Vector] = {}
    dimension = len(next(iter(vectors.values()), ()))
    for key, vector in vectors.items():
        if (name := clean_text(key)) and len(vector) == dimension and is_usable(vector):
            kept[name] = vector
    return kept


def batches(items: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """`items` in parts of at most `most`; none for none, so that an empty call is never made (VX-12)."""
    for at in range(0, len(items), max(1, most)):
        yield items[at : at + max(1, most)]
