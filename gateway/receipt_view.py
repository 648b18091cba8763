"""A receipt as one person may see it: of the rows that stood in the prompt those that are for their eyes, with messages numbered as people see them
(RS-77, RS-196)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import sqlalchemy as sa

from gateway.summaries.view import may_read
from memory.conversations import Conversation
from memory.recall import entry_rows, private_parts, summary_rows
from memory.recall.kinds import Kind
from memory.recall.private_parts import Reader
from memory.recall.summary_rows import Summary
from memory.schema import messages, people

_ROWS = frozenset(kind.value for kind in Kind)


def for_person(connection: sa.Connection, chat: Conversation, receipt: Mapping[str, Any], person_id: str) -> dict[str, Any]:
    """The receipt with `window.summaries` of what `person_id` may read, `messages` (first and last, numbered from 1) for each that has no dates, and
    `summaries_hidden`: how many others there are. One of before summaries were named stays as it is."""
    window: Mapping[str, Any] = receipt.get("window") or {}
    if "summaries" not in window:
        return dict(receipt)
    named: list[dict[str, Any]] = window["summaries"]
    shown = _readable(connection, chat, named, person_id)
    summaries = _placed(connection, chat, shown)
    return {**receipt, "window": {**window, "summaries": summaries, "summaries_hidden": len(named) - len(shown)}}


def _readable(connection: sa.Connection, chat: Conversation, named: Sequence[dict[str, Any]], person_id: str) -> list[dict[str, Any]]:
    """Blocks, parts and extracts are made for everybody in the chat; a row is read again, for its readers and words may have changed."""
    rows = summary_rows.several(connection, [each["id"] for each in named if each["kind"] in _ROWS])
    reader = _reader(connection, chat, person_id)

    def may(each: Mapping[str, Any]) -> bool:
        if each["kind"] not in _ROWS:
            return True
        row = rows.get(each["id"])
        if row is None:  # deleted since: who could read it is not known
            return reader is None
        return row.conversation_id == chat.id and may_read(row, person_id) and _says_something(row, reader)

    return [each for each in named if may(each)]


def _says_something(row: Summary, reader: Reader | None) -> bool:
    """Not where all of its words are known to others alone (RS-93)."""
    return reader is None or not private_parts.has_parts(row.text) or bool(private_parts.view(row.text, reader))


def _reader(connection: sa.Connection, chat: Conversation, person_id: str) -> Reader | None:
    """Under the names that the person has in this group; None where the whole chat is theirs."""
    if chat.space_id is None:
        return None
    return Reader(company=tuple(connection.execute(_NAMES, {"of": chat.id, "person": person_id}).scalars()))


def _placed(connection: sa.Connection, chat: Conversation, shown: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """What has no dates is found by its messages; their numbers in the log are nobody's business."""
    spans = [(each["first"], each["last"]) for each in shown]
    dated = [bool(each["from"]) for each in shown]
    wanted = [seq for span, known in zip(spans, dated, strict=True) if not known for seq in span]
    places = dict(zip(wanted, entry_rows.places_of(connection, chat.id, wanted), strict=True))
    return [
        {key: value for key, value in each.items() if key not in ("first", "last")}
        | {"messages": None if known else [max(places[span[0]], 1), max(places[span[1]], 1)]}
        for each, span, known in zip(shown, spans, dated, strict=True)
    ]


_PERSON = sa.bindparam("person", type_=sa.Text)
_NAMES = sa.union(
    sa.select(messages.c.author_name).where(messages.c.conversation_id == sa.bindparam("of", type_=sa.Text), messages.c.author_person_id == _PERSON),
    sa.select(people.c.name).where(people.c.id == _PERSON),
)
