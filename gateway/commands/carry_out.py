"""From a command line to its answer: the row is found, the asker's right looked at, then it runs (WD-115, WD-116)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa

from channels.message import Address
from gateway.access import includes
from gateway.commands import table
from gateway.commands.asked import Answer, Around, Asked, House, Manages
from gateway.commands.desks import Desks
from gateway.commands.table import Found
from gateway.commands.who import Caller, Who, asks_managers, refusal, role_named
from gateway.delivery import outbox_store
from gateway.delivery.replies import Replies
from gateway.lanes import Lanes
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.schema import conversations as chats
from memory.schema import outbox


class Commands:
    """Carries out commands. Everything that they change or read arrives in `__init__`."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        lanes: Lanes,
        replies: Replies,
        house: House,
        manages: Manages,
        desks: Desks,
    ) -> None:
        self._around = Around(db=db, clock=clock, lanes=lanes, replies=replies, house=house, manages=manages, desks=desks)

    async def run(self, asked: Asked) -> Answer:
        """The answer to one command; nothing of it is a turn (WD-117). A subcommand is checked by its own row."""
        line = asked.call.line
        found = table.find(line.name, line.rest)
        if found is None:
            return Answer(text=_unknown(asked))
        asked = replace(asked, path=found.path, rest=found.rest)
        if near := table.slip(found):
            said = asked.command(*found.path, found.rest.split()[0])
            return Answer(text=asked.say("unknown_command", command=said, nearest=asked.command(*found.path, near)))
        asked = replace(asked, manages=await self._manages(found, asked))
        caller = _caller(asked)
        if key := refusal(found.command.who, caller, private=found.command.private):
            return Answer(text=asked.say(key, command=asked.line, role=role_named(found.command.who)))
        answer = await found.command.handler(self._around, asked)
        answer = answer if isinstance(answer, Answer) else Answer(text=answer)
        return await self._aside(asked, answer) if found.command.discreet and asked.in_group else answer

    async def _manages(self, found: Found, asked: Asked) -> bool:
        """Whether the asker manages this group; the platform is asked only when that decides."""
        caller = Caller(role=asked.call.sender.role, in_group=asked.in_group)
        needed = found.command.who if found.path != ("help",) else Who.PERSON  # what /help lists hangs on it too
        if not asks_managers(needed, caller):
            return asked.in_group and includes(caller.role, "admin")
        return await self._around.manages(Address.parse(asked.address), asked.call.event.sender_id)

    async def _aside(self, asked: Asked, answer: Answer) -> Answer:
        """What is not the group's is told in the asker's private chat with us, if there is one on this account (WD-115)."""
        now, part_id = asked.now, f"{asked.call.event.delivery_id}.aside"
        chat = await self._around.db.read(lambda connection: _private_chat(connection, asked))
        if chat is None:
            return Answer(text=asked.say("only_private", command=asked.line))
        reply = self._around.replies.notice(Address.parse(chat.key), answer.text, part_id=part_id, now=now, conversation_id=chat.id)

        def work(connection: sa.Connection) -> None:
            if connection.execute(_TOLD, {"part": f"{part_id}.1"}).first() is not None:
                return  # by this same command, before a crash
            outbox_store.put(connection, reply.parts, now)
            conversations.add_message(connection, now=now, conversation_id=chat.id, role="notice", origin="command", text=answer.text)

        await self._around.db.write(work)
        self._around.replies.stored(chat.key, reply)
        return Answer(text=asked.say("told_in_private"))


def _unknown(asked: Asked) -> str:
    """A near miss gets a suggestion and is never run (WD-116)."""
    command = asked.command(asked.call.line.name)
    if near := table.nearest(asked.call.line.name):
        return asked.say("unknown_command", command=command, nearest=asked.command(near))
    return asked.say("unknown_command_bare", command=command)


def _caller(asked: Asked) -> Caller:
    return Caller(role=asked.call.sender.role, in_group=asked.in_group, manages=asked.manages)


_TOLD = sa.select(outbox.c.id).where(outbox.c.part_id == sa.bindparam("part"))
_PRIVATE = (
    sa.select(chats.c.id)
    .where(
        chats.c.kind == "dm",
        chats.c.person_id == sa.bindparam("person"),
        chats.c.channel == sa.bindparam("channel"),
        chats.c.account == sa.bindparam("account"),
        chats.c.deleted_at.is_(None),
        chats.c.key.not_like(sa.literal("%#") + chats.c.id),  # an earlier conversation, which `/new` put aside
    )
    .order_by(chats.c.updated_at.desc())
    .limit(1)
)


def _private_chat(connection: sa.Connection, asked: Asked) -> Conversation | None:
    where = {"person": asked.call.sender.id, "channel": asked.chat.channel, "account": asked.chat.account}
    found = connection.execute(_PRIVATE, where).scalar()
    return conversations.conversation(connection, found) if found else None
