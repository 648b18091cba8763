"""How a chat keeps its entries: its own values of `entries.*` over the gateway's, and the instruction its summaries are made by (RS-82 to RS-90)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

import sqlalchemy as sa
from pydantic import ValidationError

from agent.prompt import words
from gateway.config import Config
from gateway.config.recall import Entries
from gateway.windows import setting
from memory import conversations
from memory.conversations import Conversation
from memory.recall import entry_templates
from memory.recall.entry_templates import Kept

BUILTIN = 0  # the id of the instruction that comes with the program
PROMPT_MAX = 8_000  # characters
_ROW_MOST = 2**63 - 1  # no row has a greater number, and no database looks for one
SINCE = "entries.since"  # where a chat counts from until its next automatic entry: {"chat", "after"}
TEMPLATE = "entries.template_id"
_OF_CONFIG = ("last_n", "every", "automatic", "max_output", "hide", "tail", "review")
_OWN: Mapping[str, type] = {"collapse": bool, "template_id": int, "prompt_override": str}  # that the gateway has none of


class SettingRefused(ValueError):
    """The value is none, or outside its bounds; the message names them."""


class NoSuchTemplate(LookupError):
    """There is no such template, or it is the built-in one, which nobody changes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EntrySettings:
    """Of one chat. `template_id`: of a shared template, None for the built-in one; `prompt_override`: the chat's own words in its place, or empty."""

    last_n: int
    every: int
    automatic: bool
    max_output: int
    hide: bool
    tail: int
    collapse: bool
    review: bool
    template_id: int | None
    prompt_override: str


def of_chat(config: Config, chat: Conversation) -> EntrySettings:
    values = {name: setting(config, chat, f"entries.{name}") for name in _OF_CONFIG}
    return EntrySettings(
        **values,
        collapse=_own(chat, "collapse", False),
        template_id=_own(chat, "template_id", BUILTIN) or None,
        prompt_override=_own(chat, "prompt_override", ""),
    )


def read(connection: sa.Connection, config: Config, chat: Conversation) -> EntrySettings:
    """As people see them: a template that is gone is the built-in one."""
    own = of_chat(config, chat)
    gone = own.template_id is not None and _template(connection, own.template_id) is None
    return replace(own, template_id=None) if gone else own


def change(connection: sa.Connection, config: Config, chat: Conversation, changes: Mapping[str, Any]) -> Conversation:
    """The chat with its own values changed, None for the gateway's; its other settings stay. Raises SettingRefused, NoSuchTemplate."""
    checked = {name: _checked(name, value) for name, value in changes.items()}
    chosen: int | None = checked.get("template_id")
    if chosen and _template(connection, chosen) is None:
        raise NoSuchTemplate(chosen)
    was = of_chat(config, conversations.held(connection, chat.id) or chat).automatic
    changed = conversations.change_settings(connection, chat.id, {f"entries.{name}": value for name, value in checked.items()}) or chat
    if of_chat(config, changed).automatic and not was:  # counted from now on (RS-86)
        count_from(connection, changed, changed.last_seq)
        changed = conversations.conversation(connection, chat.id) or changed
    return changed


def counted_from(chat: Conversation) -> int | None:
    """The number of the message behind which the chat counts to its next automatic entry; None where nothing was said of it yet. A copy of a chat has
    messages of its own and begins anew."""
    kept = chat.settings.get(SINCE)
    if not isinstance(kept, Mapping):
        return None
    values = cast("Mapping[str, Any]", kept)
    after = values.get("after")
    return after if values.get("chat") == chat.id and isinstance(after, int) else None


def count_from(connection: sa.Connection, chat: Conversation, after: int) -> None:
    conversations.change_settings(connection, chat.id, {SINCE: {"chat": chat.id, "after": after}})


def builtin() -> str:
    return words("entry_summary")


def instruction(connection: sa.Connection, own: EntrySettings) -> str:
    """How a chat's summaries are to be written: its own words, the shared template that it chose, else ours (RS-88)."""
    if own.prompt_override.strip():
        return own.prompt_override.strip()
    chosen = _template(connection, own.template_id) if own.template_id else None
    return chosen.text.strip() if chosen is not None and chosen.text.strip() else builtin()


def forget_template(connection: sa.Connection, template_id: int) -> None:
    """Chats that name it name none from now on: another one may come to have its number."""
    for chat_id in conversations.with_setting(connection, TEMPLATE):
        chat = conversations.held(connection, chat_id)
        if chat is not None and _own(chat, "template_id", BUILTIN) == template_id:
            conversations.change_settings(connection, chat_id, {TEMPLATE: None})


def _template(connection: sa.Connection, template_id: int) -> Kept | None:
    return entry_templates.one(connection, template_id) if 0 < template_id <= _ROW_MOST else None


def _own(chat: Conversation, name: str, default: Any) -> Any:
    value = chat.settings.get(f"entries.{name}")
    return value if type(value) is type(default) else default


def _checked(name: str, value: Any) -> Any:
    if name not in _OF_CONFIG and name not in _OWN:
        raise SettingRefused(f"entries.{name}: this is no setting of a chat's entries")
    if value is None:
        return None
    if name in _OWN:
        if type(value) is not _OWN[name] or (name == "prompt_override" and len(value) > PROMPT_MAX):
            raise SettingRefused(f"entries.{name}: this is none, or longer than {PROMPT_MAX:,} characters")
        return value or None
    if type(value) is not type(getattr(Entries(), name)):
        raise SettingRefused(f"entries.{name}: this is no value of it")
    try:
        return getattr(Entries.model_validate({name: value}), name)
    except ValidationError as error:
        raise SettingRefused(f"entries.{name}: {error.errors(include_url=False)[0]['msg']}") from error
