"""Which memory a chat reads and writes when somebody speaks in it: the one rule, for turns, commands, tasks and looks ahead (WD-9, WD-10)."""

from __future__ import annotations

from memory.conversations import Conversation
from memory.scopes import Access, scope_of, scope_or_none, space_scope


def access_in(chat: Conversation, person_scope: str, *, known: bool) -> Access:
    """`person_scope`: the speaker's own, as it is stored; `known`: they are signed in or paired. What cannot be resolved is a stranger's."""
    return scope_of(
        chat.kind,
        person=scope_or_none(person_scope),
        space=space_scope(chat.space_id) if chat.space_id else None,
        memory_on=chat.memory_on,
        known=known,
    )


def why_none(chat: Conversation, scope: str) -> str:
    """Which rule keeps memory out of a chat, for the receipt: `challenge`, `off` (switched off in the chat), or `stranger`, for whoever is not signed
    in or paired; empty where there is a `scope` (WO-15)."""
    return "" if scope else "challenge" if chat.kind == "challenge" else "stranger" if chat.memory_on else "off"
