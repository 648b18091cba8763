"""Two people or two memories become one, and one account a person of its own again: the rows, each in one transaction (WD-13).

Whose memory a row belongs to is rewritten with everything else; the files follow as a job (`gateway.link_files`), for no transaction reaches them.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway import audit
from gateway.access import ROLES
from gateway.audit import Actor
from gateway.person import Identity, sign_in_name
from memory import conversations as talks
from memory.conversations import Conversation
from memory.file_schema import coverage, dreams, file_changes, file_lines, line_bars, onboarding, proposals, scope_settings
from memory.ids import PersonId, new_person
from memory.pairing_schema import account_links, space_managers
from memory.saved import moves
from memory.schema import (
    api_tokens,
    attachments,
    conversations,
    identities,
    inbox,
    jobs,
    login_links,
    messages,
    model_calls,
    people,
    sessions,
    turns,
)
from memory.scopes import person_scope
from memory.task_schema import tasks

_KEEP, _GONE = sa.bindparam("keep", type_=sa.Text()), sa.bindparam("gone", type_=sa.Text())
_PRIVACY = ("", "partial", "full")

_OF_PERSON = tuple(
    sa.update(column.table).where(column == _GONE).values({column: _KEEP})
    for column in (
        identities.c.person_id,
        conversations.c.person_id,
        sessions.c.person_id,
        api_tokens.c.person_id,
        tasks.c.person_id,
        proposals.c.person_id,
        messages.c.author_person_id,
        attachments.c.person_id,
        turns.c.person_id,
        inbox.c.person_id,
        model_calls.c.person_id,
    )
)
_SAME_LINE = file_lines.alias()
_OF_SCOPE = (
    # What rests on the text of a file that will not be there: its hash fits no more, so it is not applied or taken back.
    sa.delete(file_changes).where(file_changes.c.scope == _GONE),
    sa.delete(dreams).where(dreams.c.scope == _GONE, dreams.c.state == "applying"),
    sa.update(proposals).where(proposals.c.scope == _GONE, proposals.c.state == "open", proposals.c.kind != "candidate").values(state="discarded"),
    sa.delete(file_lines).where(
        file_lines.c.scope == _GONE,
        sa.exists().where(_SAME_LINE.c.scope == _KEEP, _SAME_LINE.c.path == file_lines.c.path, _SAME_LINE.c.hash == file_lines.c.hash),
    ),
    *(
        sa.update(table).where(table.c.scope == _GONE).values(scope=_KEEP)
        for table in (messages, turns, coverage, dreams, proposals, line_bars, file_lines, tasks)
    ),
)
_WORK = sa.delete(jobs).where(jobs.c.scope == _GONE)
_SPEAKERS = sa.select(file_lines.c.id, file_lines.c.speakers).where(
    sa.cast(file_lines.c.speakers, sa.Text).contains(sa.bindparam("gone", type_=sa.Text()), autoescape=False)
)


def join(connection: sa.Connection, *, keep: str, gone: str, by: Actor, now: datetime) -> tuple[str, str]:
    """`gone` is `keep` from now on: accounts, chats, tasks, sessions and all rows of memory. Returns the scopes of both. LookupError for nobody."""
    rows = {row.id: row for row in connection.execute(sa.select(people).where(people.c.id.in_([keep, gone])))}
    kept, lost = rows[keep], rows[gone]
    both = {"keep": keep, "gone": gone}
    join_scopes(connection, keep=kept.scope, gone=lost.scope)
    for statement in _OF_PERSON:
        connection.execute(statement, both)
    _move_one(connection, onboarding.c.person_id, keep, gone)
    _move_spaces(connection, keep, gone)
    _move_speakers(connection, keep, gone)
    moves.join_people(connection, keep=keep, gone=gone)
    connection.execute(sa.delete(login_links).where(login_links.c.person_id == gone))
    connection.execute(sa.delete(account_links).where(sa.or_(account_links.c.asker_id == gone, account_links.c.giver_id == gone)))
    connection.execute(sa.delete(people).where(people.c.id == gone))
    connection.execute(sa.update(people).where(people.c.id == keep).values(**_together(kept, lost)))
    before = {"name": lost.name, "role": lost.role, "scope": lost.scope}
    audit.record(connection, by, "person.join", at=now, target=keep, before=before, after={"person": keep, "joined": gone})
    return kept.scope, lost.scope


def join_scopes(connection: sa.Connection, *, keep: str, gone: str) -> None:
    """The memory `gone` is part of `keep` from now on: its rows; its work is dropped. The files follow (`link_files.order`)."""
    move_scope(connection, keep=keep, gone=gone)
    connection.execute(_WORK, {"gone": gone})
    _move_one(connection, scope_settings.c.scope, keep, gone)


def move_scope(connection: sa.Connection, *, keep: str, gone: str) -> None:
    """Every row of the memory `gone` belongs to `keep`. It may be called again, for a turn that was just ending."""
    for statement in _OF_SCOPE:
        connection.execute(statement, {"keep": keep, "gone": gone})


def part(connection: sa.Connection, who: Identity, chat: Conversation, *, by: Actor, now: datetime) -> PersonId:
    """The account `who` becomes a person of its own with an empty memory. Its chat begins anew, and what was said in it stays with the other.

    The chat's tasks go along; they read the new memory. The caller has ended what runs and waits there.
    """
    new, old = new_person(), str(chat.person_id)
    scope = str(person_scope(new))
    connection.execute(sa.insert(people), {"id": new, "name": who.name, "role": "user", "scope": scope, "created_at": now})
    known = (identities.c.channel == who.channel, identities.c.account == who.account, identities.c.platform_user_id == who.platform_user_id)
    connection.execute(sa.update(identities).where(*known).values(person_id=new))
    connection.execute(sa.update(tasks).where(tasks.c.address == chat.key, tasks.c.person_id == old).values(person_id=new, scope=scope))
    talks.rekey(connection, old=chat.key, new=f"{chat.key}#{chat.id}")
    after = {"channel": who.channel, "account": who.account, "platform_user_id": who.platform_user_id, "person": new}
    audit.record(connection, by, "person.part", at=now, target=old, before={"person": old}, after=after)
    return new


def _together(kept: Any, lost: Any) -> dict[str, Any]:
    """What the one person is: the higher role, the stricter privacy, the later date; else the kept one's, where it has settled it."""
    dates = [row.subscriber_until for row in (kept, lost) if row.subscriber_until is not None]
    values: dict[str, Any] = {
        "role": max(kept.role, lost.role, key=ROLES.index),
        "privacy": max(kept.privacy, lost.privacy, key=_PRIVACY.index),
        "share_private": kept.share_private and lost.share_private,
        "language": kept.language or lost.language,
        "timezone": kept.timezone or lost.timezone,
        "subscriber_until": max(dates, default=None),
    }
    if lost.password_hash and not kept.password_hash:  # they sign in as before
        values |= {"name": lost.name, "password_hash": lost.password_hash, "sign_in": sign_in_name(lost.name)}
    return values


def _move_one(connection: sa.Connection, own: sa.Column[Any], keep: str, gone: str) -> None:
    """In a table with one row for each, the kept one's own counts."""
    table = own.table
    if connection.execute(sa.select(own).where(own == keep)).first() is None:
        connection.execute(sa.update(table).where(own == gone).values({own: keep}))
    connection.execute(sa.delete(table).where(own == gone))


def _move_spaces(connection: sa.Connection, keep: str, gone: str) -> None:
    own = sa.select(space_managers.c.space_id).where(space_managers.c.person_id == keep)
    of_gone = space_managers.c.person_id == gone
    connection.execute(sa.update(space_managers).where(of_gone, space_managers.c.space_id.not_in(own)).values(person_id=keep))
    connection.execute(sa.delete(space_managers).where(of_gone))


def _move_speakers(connection: sa.Connection, keep: str, gone: str) -> None:
    """In spaces too: whoever said something there may have it forgotten later, under their new id."""
    for row in connection.execute(_SPEAKERS, {"gone": gone}).all():
        speakers = list(dict.fromkeys(keep if each == gone else each for each in row.speakers))
        connection.execute(sa.update(file_lines).where(file_lines.c.id == row.id).values(speakers=speakers))
