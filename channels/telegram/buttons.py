"""Buttons below our messages, and the presses that wait for a word (CH-159). Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import cast

from telegram import InlineKeyboardButton, InlineKeyboardMarkup

from channels.message import Action

DATA_MAX = 64  # bytes of what a button carries
ASIDE_MAX = 200  # characters of what who pressed is told


@dataclass(frozen=True, slots=True, kw_only=True)
class Press:
    """A pressed button: `id` waits for the answer; `left`: the rows below the message without that of the button."""

    id: str
    update_id: str
    chat_id: str
    message_id: str
    left: tuple[tuple[Action, ...], ...]


def keyboard(rows: Sequence[Sequence[Action]]) -> InlineKeyboardMarkup | None:
    """None when there are no buttons. One whose data is too long could not be told from others and is left out."""
    shown = [[each for each in row if len(each.data.encode()) <= DATA_MAX] for row in rows]
    buttons = [[InlineKeyboardButton(each.label, callback_data=each.data) for each in row] for row in shown if row]
    return InlineKeyboardMarkup(buttons) if buttons else None


def press(raw: object) -> Press | None:
    """The press of a raw update; None for any other."""
    update, query = _fields(raw), _fields(_fields(raw).get("callback_query"))
    if not query.get("id"):
        return None
    message, data = _fields(query.get("message")), query.get("data")
    rows = [tuple(_actions(row)) for row in _list(_fields(message.get("reply_markup")).get("inline_keyboard"))]
    return Press(
        id=str(query["id"]),
        update_id=str(update.get("update_id", "")),
        chat_id=str(_fields(message.get("chat")).get("id", "")),
        message_id=str(message.get("message_id", "")),
        left=tuple(row for row in rows if row and all(each.data != data for each in row)),
    )


def _actions(row: object) -> list[Action]:
    fields = [_fields(each) for each in _list(row)]
    return [Action(str(each.get("text", "")), str(each["callback_data"])) for each in fields if each.get("callback_data")]


def _fields(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _list(value: object) -> Sequence[object]:
    return cast("Sequence[object]", value) if isinstance(value, list | tuple) else ()
