"""Commands about the talk of one chat: what runs, what waits, what the model is told of it."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from channels.message import Address
from gateway import trimming, windows
from gateway.arrivals import inbox
from gateway.commands.asked import Answer, Around, Asked
from gateway.delivery import outbox_store
from gateway.language import catalogue, say
from gateway.talk import duration, sizes
from memory import blocks, conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.schema import inbox as arrivals
from memory.schema import messages
from memory.window import TurnSize


async def version(around: Around, asked: Asked) -> str:
    return asked.say("version", version=around.house.version)


async def stop(around: Around, asked: Asked) -> str:
    drop_all = asked.rest.lower() == "all"
    if not await around.may_stop(asked):
        return asked.say("stop_not_yours")
    running = around.lanes.running(asked.address)  # after asking the platform, which takes time: the turn of now, not of then
    dropped = around.lanes.drop_waiting(asked.address, before=asked.call.row_id) if drop_all else []
    if dropped:
        await asked.desk.end_rows(dropped, "stopped")
    if running is None and not dropped:
        return asked.say("nothing_running")
    if running is not None:
        running.interrupt()
    return asked.say("stopped_all", count=len(dropped)) if drop_all else asked.say("stopped")


async def steer(around: Around, asked: Asked) -> str:
    text = asked.rest
    if not text:
        return asked.say("steer_usage")
    idle = around.lanes.running(asked.address) is None
    if not await around.may_stop(asked):
        return asked.say("stop_not_yours")
    await asked.desk.hand_on(asked.call, text)
    return asked.say("steer_none" if idle else "busy_steered")


async def busy(around: Around, asked: Asked) -> str:
    mode = asked.rest.lower()
    if mode and mode not in ("steer", "queue"):
        return asked.say("busy_usage")
    if mode:
        await around.db.write(lambda connection: conversations.change(connection, asked.chat.id, busy=mode))
    return asked.say("busy_now", mode=mode or asked.chat.busy or around.house.config().busy.mode)


async def last(around: Around, asked: Asked) -> str | Answer:
    parts = await around.db.read(lambda connection: outbox_store.newest_answer(connection, asked.address))
    if not parts:
        return asked.say("last_none")
    part_id = f"{asked.call.event.delivery_id}.last"
    reply = around.replies.again(parts, part_id=part_id, now=asked.now, conversation_id=asked.chat.id)
    return Answer(text=asked.say("last_sent"), parts=reply.parts)


async def why(around: Around, asked: Asked) -> str:
    return await explain(around.db, asked.address, before=asked.call.row_id, language=asked.language, now=asked.now)


async def explain(db: Database, address: str, *, before: int, language: str, now: datetime) -> str:
    """One line on what became of the last message in a chat: the rule, since when, and what changes it, or its delivery state (CH-119)."""

    def work(connection: sa.Connection) -> tuple[Any, Any]:
        row = inbox.last_at(connection, address, before)
        return row, outbox_store.state_of(connection, row.turn_id) if row is not None and row.turn_id else None

    row, sent = await db.read(work)
    if row is None:
        return say(language, "why_none")
    since = duration(now - row.received_at, language)
    if row.rule:
        known = catalogue(language)
        change = known.get(f"rule_{row.rule}") or known.get(row.rule, "")
        return say(language, "why_rule", rule=row.rule, since=since, change=change).strip()
    if sent is not None and row.state == "done":
        return say(language, "why_sent", state=say(language, f"why_is_{sent}"), since=since)
    return say(language, "why_state", state=say(language, f"why_is_{row.state}"), since=since)


# -- the context ------------------------------------------------------------------------------------------------------------


async def clear(around: Around, asked: Asked) -> str:
    """The context empties for good, with what stands for turns that left it; the log and the memory stay (N17)."""

    def work(connection: sa.Connection) -> None:
        _end_talk(connection, asked)
        _empty(connection, asked.chat)

    await _end(around, asked, work)
    return asked.say("cleared")


async def new(around: Around, asked: Asked) -> str:
    """In a chat app the old conversation keeps its log under a retired key and the next message opens a new one; on the page the context empties.

    The new one is as the old one was set, memory off above all; the old one stays listed, and what was said in it is still summarised.
    """
    account = Address.parse(asked.address).account
    title = asked.rest[:80]
    old = asked.chat

    def work(connection: sa.Connection) -> None:
        _end_talk(connection, asked)
        if old.kind in ("web", "challenge"):
            _empty(connection, old)
            return
        conversations.rekey(connection, old=asked.address, new=f"{asked.address}#{old.id}")
        new_id = conversations.create_conversation(
            connection, now=asked.now, key=asked.address, channel=account.channel, account=account.name, kind=old.kind,
            person_id=old.person_id, space_id=old.space_id, character=old.character, characters=old.characters, title=title,
        )  # fmt: skip
        conversations.change(
            connection, new_id, memory_on=old.memory_on, timezone=old.timezone, busy=old.busy, profile=old.profile, persona=old.persona
        )

    await _end(around, asked, work)
    return asked.say("new_started")


async def compact(around: Around, asked: Asked) -> str:
    """All but the last two turns leave at once, and are summarised for the context and for the day."""
    access = asked.access()
    scope = str(access.scope) if access.scope else ""

    def work(connection: sa.Connection) -> tuple[int, bool]:
        chat = conversations.conversation(connection, asked.chat.id) or asked.chat
        turns = _turns(connection, chat)
        open_from = connection.execute(_FIRST_OPEN, {"of": chat.id}).scalar()
        if open_from is not None:  # nothing leaves before it was answered
            turns = [turn for turn in turns if turn.last_seq < open_from]
        into = windows.into(around.house.config(), chat)
        return trimming.compact(connection, chat, scope, turns, asked.now, into=into), bool(scope) and into != "nothing"

    gone, summarised = await around.db.write(work)
    if not gone:
        return asked.say("compact_nothing", kept=trimming.KEPT_BY_COMPACT)
    around.desks.wake_jobs()
    return asked.say("compacted" if summarised else "compacted_unkept", turns=gone, kept=trimming.KEPT_BY_COMPACT)


def _turns(connection: sa.Connection, chat: Conversation) -> list[TurnSize]:
    return sizes(conversations.window(connection, chat.id, chat.window_edge))


def _empty(connection: sa.Connection, chat: Conversation) -> None:
    conversations.clear_context(connection, chat.id)
    blocks.drop(connection, chat.id)
    now = conversations.conversation(connection, chat.id) or chat
    conversations.change_settings(connection, chat.id, {conversations.CLEARED: now.window_edge})


async def _end(around: Around, asked: Asked, work: Callable[[sa.Connection], None]) -> None:
    """What runs and what waits in a chat ends with `work`, and nothing of it is said any more (DL-14). What came after the command stays; so
    does what waits when nothing can be stored."""
    around.lanes.discard(asked.address, before=asked.call.row_id)
    await around.db.write(work)
    around.lanes.drop_waiting(asked.address, before=asked.call.row_id)
    around.lanes.discard(asked.address, before=asked.call.row_id)  # one that began meanwhile


def _end_talk(connection: sa.Connection, asked: Asked) -> None:
    """The same for what is stored, so that no start takes it up again."""
    inbox.end_open(connection, asked.chat.id, asked.call.row_id, now=asked.now)
    outbox_store.cancel(connection, asked.address, asked.now)


_FIRST_OPEN = (
    sa.select(sa.func.min(messages.c.seq))
    .join(arrivals, arrivals.c.message_id == messages.c.id)
    .where(messages.c.conversation_id == sa.bindparam("of"), messages.c.origin == "person", arrivals.c.state.in_(inbox.UNFINISHED))
)
