"""Of which messages a person wants an entry: the newest so many, or from one number to another (RS-82)."""

from __future__ import annotations

import sqlalchemy as sa

from gateway import windows
from gateway.config import Config
from gateway.entries import settings as entry_settings
from memory.conversations import Conversation
from memory.recall import entry_plan, entry_rows
from memory.recall.calendar_plan import Stamp
from memory.recall.chunk_views import may_hear


class RangeRefused(ValueError):
    """`key` names the sentence: `too_few`, `too_many`, `backwards`, `no_such_messages`. Its values: `least` and `most` messages of one entry, and
    `last`, the number of the newest."""

    def __init__(self, key: str, **values: int) -> None:
        super().__init__(key)
        self.key = key
        self.values = values


def chosen(
    connection: sa.Connection, config: Config, chat: Conversation, person_id: str, *, last: int | None, first: int | None, to: int | None
) -> list[Stamp]:
    """The real messages that are meant, of those that the person may read (RS-82). Raises RangeRefused."""
    talk, after = entry_rows.real(connection, chat.id), windows.cleared(chat)
    bounds = {"least": entry_plan.FEWEST, "most": entry_plan.MOST, "last": len(talk)}

    def heard(part: list[Stamp]) -> list[Stamp]:
        return [each for each in part if each.seq > after and may_hear(each.audience, chat.id, person_id)]

    if first is None and to is None:
        count = entry_settings.of_chat(config, chat).last_n if last is None else last
        if not entry_plan.FEWEST <= count <= entry_plan.MOST:
            raise RangeRefused("too_few" if count < entry_plan.FEWEST else "too_many", **bounds)
        meant = heard(talk)[-count:]
    else:
        begin, end = 1 if first is None else first, len(talk) if to is None else to
        if end < begin:
            raise RangeRefused("backwards", **bounds)
        if end - begin + 1 > entry_plan.MOST:
            raise RangeRefused("too_many", **bounds)
        if begin < 1 or end > len(talk):
            raise RangeRefused("no_such_messages", **bounds)
        meant = heard(talk[begin - 1 : end])
    if not meant:
        raise RangeRefused("no_such_messages", **bounds)
    return meant
