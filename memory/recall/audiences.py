"""Who may read a message or a row, as one key (RS-185, RS-186). Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

Audience = tuple[tuple[str, ...] | None, tuple[str, ...] | None]
"""`people` and `personas` of a message; None is all."""

EVERYBODY = ""  # the key of all in the chat; rows for others stand in no prompt


def audience_key(people: Sequence[str] | None, personas: Sequence[str] | None) -> str:
    """Names an audience: empty for everybody in the chat. Two lists that hold the same have the same key (RS-185)."""
    parts = [f"{mark}:{','.join(sorted(set(ids)))}" for mark, ids in (("p", people), ("c", personas)) if ids is not None]
    return "|".join(parts)


def audience_lists(key: str) -> tuple[list[str] | None, list[str] | None]:
    """The people and the characters that `audience_key` made a key of; None for all."""
    parts = {part[0]: part[2:].split(",") for part in key.split("|") if part}
    return parts.get("p"), parts.get("c")


def readable(audiences: Collection[Audience], readers: Collection[str], responder: str) -> tuple[str, ...]:
    """Keys of the audiences that a reply may use: everybody who will read it is inside `people`, and the responder inside `personas` (RS-185)."""
    return tuple(
        audience_key(people, personas)
        for people, personas in audiences
        if (people is None or set(readers) <= set(people)) and (personas is None or responder in personas)
    )
