"""Commands, carried out beside the lanes: each to its stored answer, and those that an earlier run left once more (CH-54)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import datetime

import sqlalchemy as sa

from channels.message import InboundEvent
from gateway import buttons
from gateway.access import Rules
from gateway.arrivals import inbox, senders
from gateway.arrivals.inbox import Waiting
from gateway.arrivals.intake import CommandCall
from gateway.command_line import parse
from gateway.commands import Answer, Asked, Commands
from gateway.commands.asked import Desk
from gateway.config import Config
from gateway.delivery import outbox_store
from gateway.delivery.replies import Replies, Reply
from gateway.language import from_tag, guess, language_for, say
from gateway.logs import delivery
from gateway.patience import write_at_last
from gateway.shapes import message_json
from gateway.streams import Streams
from memory import conversations
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)


class CommandRuns:
    """`desk`: what commands may ask of the intake."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        commands: Commands,
        replies: Replies,
        streams: Streams,
        group: asyncio.TaskGroup,
        desk: Desk,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._commands = commands
        self._replies = replies
        self._streams = streams
        self._group = group
        self._desk = desk
        self._running: set[asyncio.Task[None]] = set()

    def begin(self, call: CommandCall, *, dead: bool = False, behind: Sequence[asyncio.Future[None]] = ()) -> asyncio.Task[None]:
        """`behind`: it is carried out when these are done."""
        task = self._group.create_task(self._carry_out(call, dead, behind), name=f"command {call.event.delivery_id}")
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        return task

    async def again(self, waiting: Waiting, event: InboundEvent, rules: Rules, behind: Sequence[asyncio.Future[None]]) -> asyncio.Task[None] | None:
        """A command that an earlier run stored and did not answer; None when it cannot be. Each further try is counted before it begins (CH-54)."""
        again = await self._db.write(lambda connection: inbox.start(connection, [waiting.row_id], ""))
        sender = await self._db.read(lambda connection: senders.by_id(connection, waiting.person_id))
        if sender is not None:
            role = senders.role_of(sender, listed=rules.admits(event.sender_id))
            sender = replace(sender, role=role)
        line = parse(event.text, self._config().command_prefixes)
        if sender is None or line is None:
            await self._desk.end_rows([waiting], "unreadable")
            return None
        call = CommandCall(row_id=waiting.row_id, conversation_id=waiting.conversation_id, sender=sender, line=line, event=event)
        return self.begin(call, dead=again >= self._config().delivery.attempts, behind=behind)

    async def quiet(self) -> None:
        """Returns when none is being carried out; the caller bounds the wait."""
        while self._running:
            await asyncio.wait(self._running)

    async def _carry_out(self, call: CommandCall, dead: bool, behind: Sequence[asyncio.Future[None]]) -> None:
        """One command, to its stored answer. Raises nothing but cancellation: commands run beside the lanes, and none may end the gateway."""
        if behind:
            await asyncio.wait(behind)
        with delivery(call.event.delivery_id):
            if dead:
                log.error("command %s was tried too often and is given up", call.line.name)
                answer = Answer(text=say(language_for(call.event.language, call.event.text, chosen=call.sender.language), "dead"))
            else:
                answer = await self._answered(call)
            try:
                await self._finish(call, answer, state="dead" if dead else "done")
            except Exception:  # the lane worker's home (STYLE)
                log.exception("the answer of command %s cannot be stored", call.line.name)

    async def _answered(self, call: CommandCall) -> Answer:
        language = language_for(call.event.language, call.event.text, chosen=call.sender.language)
        try:
            chat, said = await self._db.read(lambda connection: _chat_and_words(connection, call.conversation_id))
            if chat is None:
                return Answer()
            if said and not call.sender.language and not from_tag(call.event.language):
                language = guess(said)  # the command itself is Latin whatever its writer speaks
            return await self._commands.run(Asked(call=call, chat=chat, language=language, now=self._clock(), desk=self._desk))
        except StoreUnavailable as error:
            log.warning("command %s: %s", call.line.name, error)
            return Answer(text=say(language, "store"))
        except Exception:  # the lane worker's home (STYLE), taken here so that the person hears of it and the row ends
            log.exception("command %s failed", call.line.name)
            return Answer(text=say(language, "failed"))

    async def _finish(self, call: CommandCall, answer: Answer, *, state: str) -> None:
        now = self._clock()
        address, drawn = call.event.address, buttons.draw(answer.questions)
        said = self._replies.notice(
            address, answer.text, part_id=f"{call.event.delivery_id}.answer", now=now, delivery_id=call.event.delivery_id,
            conversation_id=call.conversation_id, actions=buttons.rows(drawn),
        )  # fmt: skip
        reply = Reply(parts=(*said.parts, *answer.parts))

        def work(connection: sa.Connection) -> Message | None:
            inbox.finish(connection, [call.row_id], now=now, state=state, rule="" if state == "done" else state)
            outbox_store.put(connection, reply.parts, now)
            if said.has_buttons:
                buttons.keep(connection, drawn, person_id=call.sender.id, conversation_id=call.conversation_id, now=now)
            if not answer.text:
                return None
            return conversations.add_message(
                connection, now=now, conversation_id=call.conversation_id, role="notice", origin="command", text=answer.text
            )

        added = await write_at_last(self._db, work, f"the answer of command {call.line.name}")
        if added is not None:
            self._streams.publish(call.conversation_id, "message", message_json(added))
        self._replies.stored(str(address), reply)


def _chat_and_words(connection: sa.Connection, conversation_id: str) -> tuple[Conversation | None, str]:
    """A chat and what a person said in it last. Where its talk was put aside meanwhile, the command is for the one that goes on."""
    chat = conversations.conversation(connection, conversation_id)
    if chat is not None and chat.key.endswith(aside := f"#{chat.id}"):
        chat = conversations.conversation_by_key(connection, chat.key.removesuffix(aside)) or chat
    return chat, conversations.last_words(connection, conversation_id)
