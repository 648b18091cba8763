"""Everything that is held about a person, for the person (WO-22): values for the page, and the same as Markdown.

The words of chats and files are in the archive of `/memory export`; here they are counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any

import sqlalchemy as sa

from gateway.language import say
from gateway.person import Person
from memory.saved import moves, stored, switches
from memory.saved.rows import ListKind, Memory
from memory.schema import api_tokens, conversations, identities, messages, model_calls, sessions
from memory.task_schema import tasks

_PERSON = sa.bindparam("person", type_=sa.Text())
_IDENTITIES = sa.select(identities.c.channel, identities.c.account, identities.c.platform_user_id, identities.c.name, identities.c.created_at).where(
    identities.c.person_id == _PERSON
)
_CHATS = (
    sa.select(
        conversations.c.id,
        conversations.c.title,
        conversations.c.kind,
        conversations.c.channel,
        conversations.c.created_at,
        conversations.c.updated_at,
        sa.func.count(messages.c.seq).label("messages"),
    )
    .outerjoin(messages, (messages.c.conversation_id == conversations.c.id) & (messages.c.state == "live"))
    .where(conversations.c.person_id == _PERSON, conversations.c.deleted_at.is_(None))
    .group_by(*(conversations.c[name] for name in ("id", "title", "kind", "channel", "created_at", "updated_at")))
    .order_by(conversations.c.updated_at.desc())
)
_TASKS = sa.select(tasks.c.id, tasks.c.text, tasks.c.rule, tasks.c.state, tasks.c.next_run).where(tasks.c.person_id == _PERSON).order_by(tasks.c.id)
_SESSIONS = sa.select(sessions.c.agent, sessions.c.created_at, sessions.c.seen_at).where(sessions.c.person_id == _PERSON)
_TOKENS = sa.select(api_tokens.c.name, api_tokens.c.created_at, api_tokens.c.used_at).where(api_tokens.c.person_id == _PERSON)
_USAGE = sa.select(
    sa.func.count().label("requests"),
    sa.func.coalesce(sa.func.sum(model_calls.c.input_tokens), 0).label("input_tokens"),
    sa.func.coalesce(sa.func.sum(model_calls.c.output_tokens), 0).label("output_tokens"),
).where(model_calls.c.person_id == _PERSON)
_SAID = (
    sa.select(messages)
    .join(conversations, conversations.c.id == messages.c.conversation_id)
    .where(conversations.c.person_id == _PERSON, conversations.c.deleted_at.is_(None), messages.c.state == "live")
    .order_by(messages.c.seq)
)
_SAID_SHOWN = ("conversation_id", "id", "role", "author_name", "text", "origin", "created_at")


def held(connection: sa.Connection, person: Person, characters: Mapping[str, tuple[str, str]], files: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """`characters`: id and name by lineage; `files`: path and size in bytes of each of the person's own."""
    of = {"person": person.id}
    rows = stored.rows_of(connection, moves.lists_of_people(connection, [person.id]))
    learning = switches.learning_of(connection, [person.id], list(characters))
    return {
        "person": {
            "id": person.id,
            "name": person.name,
            "role": person.role,
            "language": person.language,
            "timezone": person.timezone,
            "subscriber_until": person.subscriber_until,
            "created_at": person.created_at,
        },
        "accounts": _rows(connection, _IDENTITIES, of),
        "switches": {
            "privacy": str(switches.privacy_of(connection, person.id)),
            "share_private": switches.shares_private(connection, person.id),
            "learning": {characters[lineage][0]: {"learn": each.learn, "use": each.use} for (_, lineage), each in learning.items()},
        },
        "memories": [_memory(row, characters) for row in rows],
        "files": [dict(file) for file in files],
        "chats": _rows(connection, _CHATS, of),
        "tasks": _rows(connection, _TASKS, of),
        "sessions": _rows(connection, _SESSIONS, of),
        "tokens": _rows(connection, _TOKENS, of),
        "usage": _rows(connection, _USAGE, of)[0],
    }


def said(connection: sa.Connection, person_id: str) -> list[dict[str, Any]]:
    """Every message of the person's own chats, both sides, in order."""
    return [{name: row[name] for name in _SAID_SHOWN} for row in connection.execute(_SAID, {"person": person_id}).mappings()]


def markdown(found: Mapping[str, Any], language: str) -> str:
    """The same to be read."""
    person = found["person"]
    parts = [f"# {say(language, 'held_title', name=_line(person['name']))}", say(language, "held_intro")]
    facts = [f"- {name}: {_line(_said(value))}" for name, value in person.items() if value not in ("", None)]
    parts.append(_section(language, "person", facts))
    known = [f"- {each['channel']} · {_line(each['name'] or each['platform_user_id'])}" for each in found["accounts"]]
    parts.append(_section(language, "accounts", known))
    set_to = found["switches"]
    learning = [f"- {name}: learn {each['learn']}, use {each['use']}" for name, each in set_to["learning"].items()]
    parts.append(_section(language, "switches", [f"- privacy: {set_to['privacy']}", f"- share_private: {set_to['share_private']}", *learning]))
    parts.append(_section(language, "memories", [_remembered(each) for each in found["memories"]]))
    parts.append(_section(language, "files", [f"- `{each['path']}` ({each['size']:,})" for each in found["files"]]))
    parts.append(_section(language, "chats", [f"- {_line(each['title'] or each['id'])} ({each['messages']:,})" for each in found["chats"]]))
    parts.append(_section(language, "tasks", [f"- {_line(each['text'])} ({each['state']})" for each in found["tasks"]]))
    parts.append(_section(language, "sessions", [f"- {_line(each['agent'] or '–')} ({_said(each['seen_at'])})" for each in found["sessions"]]))
    parts.append(_section(language, "tokens", [f"- {_line(each['name'])}" for each in found["tokens"]]))
    parts.append(_section(language, "usage", [f"- {name}: {number:,}" for name, number in found["usage"].items()]))
    return "\n\n".join(parts) + "\n"


def _rows(connection: sa.Connection, statement: sa.Executable, of: Mapping[str, str]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(statement, of).mappings()]


def _memory(row: Memory, characters: Mapping[str, tuple[str, str]]) -> dict[str, Any]:
    return {
        "id": row.id,
        "list": row.key.kind.value,
        "character": characters.get(row.key.character, ("", ""))[1] if row.key.kind is ListKind.CHARACTER else "",
        "content": row.content,
        "pinned": row.pinned,
        "dormant": row.dormant,
        "origin": row.origin,
        "private": row.private_origin,
        "tags": list(row.tags),
        "channel_ids": list(row.channel_ids),
        "created_at": row.created_at,
        "updated_at": row.updated_at,
        "last_matched_at": row.last_matched_at,
    }


def _section(language: str, name: str, lines: Sequence[str]) -> str:
    return "\n".join((f"## {say(language, f'held_{name}')}", "", *(lines or [say(language, "held_none")])))


def _remembered(memory: Mapping[str, Any]) -> str:
    about = [memory["character"] or memory["list"], *(["pinned"] if memory["pinned"] else []), _said(memory["updated_at"])]
    return f"- {_line(memory['content'])} ({', '.join(about)})"


def _said(value: object) -> str:
    return value.isoformat()[:10] if isinstance(value, date | datetime) else str(value)


def _line(text: str) -> str:
    """One line that no words in it can turn into a heading or a list."""
    return " ".join(text.split()).replace("`", "'")
