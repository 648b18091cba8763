"""`/memory forget`, also `/forget`: the matches first, then a yes within ten minutes; then counts for each store (WD-92)."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from gateway.arrivals import inbox
from gateway.commands.asked import Answer, Around, Asked
from gateway.commands.scoped import of_scope
from gateway.delivery.rules import OPEN
from gateway.forgetting import OPEN_FOR, ForgettingExpired, Match
from gateway.memory_status import title_of
from memory import message_changes
from memory.schema import inbox as arrivals
from memory.schema import messages, outbox
from memory.scopes import ROOT, Kind, Scope

FORGET, CONFIRM, WITH_MESSAGES = "forget", "confirm", "messages"
SHOWN, TEXT_MAX = 20, 160
NO_ROW = -1
_KINDS = {  # what goes with the lines and is not quoted
    "backup": "forget_kind_backup",
    "diary": "forget_kind_diary",
    "dream": "forget_kind_dream",
    "block": "forget_kind_block",
    "change": "forget_kind_change",
}


@of_scope
async def forget(around: Around, asked: Asked, scope: Scope) -> str | Answer:
    """`forget TEXT|ID` lists; `forget confirm CODE [messages]` removes. In a group a plain user reaches lines that rest on own messages alone."""
    if not asked.rest:
        return asked.say("forget_usage", command=asked.line)
    words = asked.words
    if words[0].lower() == CONFIRM and len(words) in (2, 3):
        return await _confirmed(around, asked, scope, words[1], with_messages=len(words) == 3 and words[2].lower() == WITH_MESSAGES)
    own_only = scope.kind is Kind.SPACE and not asked.manages
    questions = await around.db.read(lambda connection: [row.id for row in _questions(connection, asked)])
    where = await around.db.read(lambda connection: _where(connection, asked, scope))
    found = await around.desks.forgetting.find(scope, asked.rest, person=asked.call.sender.id, own_only=own_only, questions=questions)
    if found is None:
        return f"{asked.say('forget_none_own' if own_only else 'forget_none')}\n{where}"
    lines = [_match(asked, match) for match in found.matches[:SHOWN]]
    if len(found.matches) > SHOWN:
        lines.append(asked.say("and_more", count=len(found.matches) - SHOWN))
    confirm = f"{asked.line} {CONFIRM} {found.proposal_id}"
    choices: list[tuple[str, str]] = []
    if found.matches:
        choices.append(("button_forget", confirm))
        ask = asked.say("forget_confirm", command=confirm)
        lines = [asked.say("forget_head", count=len(found.matches)), where, *lines, "", ask]  # after a list Markdown needs a line between
    else:
        lines = [asked.say("forget_head_messages", count=found.messages), where]
    if found.messages:
        choices.append(("button_forget_messages", f"{confirm} {WITH_MESSAGES}"))
        lines.append(asked.say("forget_messages", command=f"{confirm} {WITH_MESSAGES}", count=found.messages))
    return asked.confirming("\n".join(lines), *choices, open_for=OPEN_FOR)


def _match(asked: Asked, match: Match) -> str:
    text = " ".join(match.text.split())[:TEXT_MAX]
    where = match.where or match.store
    if not text and match.store in _KINDS:
        return asked.say(_KINDS[match.store], where=where)
    return asked.say("forget_match", id=match.id, where=where, text=text) if match.id else asked.say("forget_match_store", where=where, text=text)


async def _confirmed(around: Around, asked: Asked, scope: Scope, code: str, *, with_messages: bool) -> str:
    try:
        counts = await around.desks.forgetting.confirm(scope, code, person=asked.call.sender.id, messages=with_messages)
    except ForgettingExpired:
        return asked.say("forget_over")
    await around.db.write(lambda connection: _forget_the_question(connection, asked))
    told = ", ".join(asked.say(f"forgot_{store}", count=count) for store, count in counts.items()) or "0"
    where = await around.db.read(lambda connection: _where(connection, asked, scope))
    return f"{asked.say('forgotten', counts=told)}\n{where}"


def _where(connection: sa.Connection, asked: Asked, scope: Scope) -> str:
    """Whose memory is worked on: more than the chat in which it is asked, and never another one (WD-92)."""
    if scope == ROOT:
        return asked.say("forget_in_root")
    if scope.kind is Kind.PERSON:
        return asked.say("forget_in_person")
    title = title_of(connection, scope)
    return asked.say("forget_in_space", title=title) if title else asked.say("forget_in_group")


def _forget_the_question(connection: sa.Connection, asked: Asked) -> None:
    """The question held what was to be forgotten, and so did the list that answered it: both leave the log and what was sent."""
    for row in _questions(connection, asked, but=asked.call.row_id):
        message_changes.forget(connection, row.id)
        if row.role != "notice" and row.delivery_id:
            inbox.forget_words(connection, row.id)
            for part in connection.execute(_PARTS, {"delivery": row.delivery_id}).all():
                connection.execute(sa.update(outbox).where(outbox.c.id == part.id).values(part={**part.part, "text": ""}))


def _questions(connection: sa.Connection, asked: Asked, *, but: int = NO_ROW) -> list[sa.Row[Any, Any, Any, Any, Any]]:
    """What this person asked to forget here of late, and the lists that answered it; `but`: not the message that arrived in that row."""
    rows = connection.execute(_RECENT, {"of": asked.chat.id, "since": asked.now - OPEN_FOR, "now_at": but}).all()
    return [
        row
        for row in rows
        if (row.author_person_id == asked.call.sender.id and FORGET in row.text.lower())
        or (row.role == "notice" and f"{FORGET} {CONFIRM} " in row.text)
    ]


_RECENT = (
    sa.select(messages.c.id, messages.c.role, messages.c.author_person_id, messages.c.text, arrivals.c.delivery_id)
    .outerjoin(arrivals, arrivals.c.message_id == messages.c.id)
    .where(
        messages.c.conversation_id == sa.bindparam("of"),
        messages.c.origin == "command",
        messages.c.created_at >= sa.bindparam("since", type_=messages.c.created_at.type),
        sa.func.coalesce(arrivals.c.id, 0) != sa.bindparam("now_at", type_=sa.BigInteger),
    )
)
_PARTS = sa.select(outbox.c.id, outbox.c.part).where(
    outbox.c.delivery_id == sa.bindparam("delivery"), outbox.c.state.not_in([state.value for state in OPEN])
)
