"""The commands: one table of name, role, help and handler (section 9 of the workspace rules). Each runs at once, beside whatever runs (WD-118).

A handler returns the sentence to answer with, possibly empty. Roles are checked before it runs (WD-115); the access decision asks `needed_role`.
"""

from __future__ import annotations

import difflib
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Protocol

import sqlalchemy as sa

from channels.message import Address
from gateway import inbox, outbox_store
from gateway.access import includes
from gateway.config import Config
from gateway.intake import CommandCall
from gateway.lanes import Lanes
from gateway.language import catalogue, say
from gateway.outbox_store import NewPart
from gateway.replies import Replies
from gateway.supervise import ChannelStatus
from gateway.talk import duration, sizes
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database


class House(Protocol):
    """What commands may ask of the running gateway."""

    version: str
    started_at: datetime

    def config(self) -> Config: ...

    def channel_states(self) -> list[ChannelStatus]: ...

    def model_name(self) -> str: ...

    async def job_rows(self, limit: int) -> list[dict[str, Any]]: ...

    async def job_counts(self) -> dict[str, int]: ...

    async def reload(self) -> tuple[list[str], list[str]]:
        """Read the configuration again: what changed, and the faults (then nothing changed)."""
        ...


class Desk(Protocol):
    """Where a command hands messages on."""

    async def end_rows(self, items: Sequence[inbox.Waiting], rule: str) -> None:
        """End waiting rows with a rule; their words stay in the log."""
        ...

    async def hand_on(self, call: CommandCall, text: str) -> None:
        """Take `text` as a plain message of the caller."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One command being carried out."""

    call: CommandCall
    chat: Conversation
    language: str
    now: datetime
    desk: Desk

    @property
    def address(self) -> str:
        return self.chat.key

    def say(self, key: str, **values: object) -> str:
        return say(self.language, key, **values)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What a command says; `parts` are sent beside it (an old answer once more)."""

    text: str = ""
    parts: tuple[NewPart, ...] = ()


Manages = Callable[[Address, str], Awaitable[bool]]
Handler = Callable[["Commands", Asked], Awaitable[str | Answer]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    name: str
    role: str
    handler: Handler
    args: str = ""
    aliases: tuple[str, ...] = ()


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
    ) -> None:
        self.db = db
        self.clock = clock
        self.lanes = lanes
        self.replies = replies
        self.house = house
        self.manages = manages

    async def run(self, asked: Asked) -> Answer:
        name = asked.call.line.name
        command = find(name)
        if command is None:
            return Answer(text=self._unknown(asked))
        answer = await command.handler(self, asked)
        return answer if isinstance(answer, Answer) else Answer(text=answer)

    def _unknown(self, asked: Asked) -> str:
        """A near miss gets a suggestion and is never run (WD-116)."""
        prefix, name = asked.call.line.prefix, asked.call.line.name
        near = difflib.get_close_matches(name, [word for command in TABLE for word in (command.name, *command.aliases)], n=1)
        if near:
            return asked.say("unknown_command", command=f"{prefix}{name}", nearest=f"{prefix}{near[0]}")
        return asked.say("unknown_command_bare", command=f"{prefix}{name}")

    async def may_stop(self, asked: Asked) -> bool:
        """Only whose message is being answered, and a manager of the place (CH-72, CH-118)."""
        running, sender = self.lanes.running(asked.address), asked.call.sender
        if running is None or running.person_id == sender.id or includes(sender.role, "admin"):
            return True
        return await self.manages(Address.parse(asked.address), asked.call.event.sender_id)


def find(name: str) -> Command | None:
    return next((command for command in TABLE if name == command.name or name in command.aliases), None)


def needed_role(name: str) -> str:
    """The role a command needs; empty for an unknown one, which only gets a suggestion."""
    command = find(name)
    return command.role if command else ""


def usable_by(role: str) -> list[Command]:
    return [command for command in TABLE if includes(role, command.role)]


async def _help(_: Commands, asked: Asked) -> str:
    prefix = asked.call.line.prefix
    lines = [
        f"- {prefix}{command.name}{f' {command.args}' if command.args else ''}: {asked.say(f'help_{command.name}')}"
        for command in usable_by(asked.call.sender.role)
    ]
    return "\n".join([asked.say("help_head"), *lines])


async def _version(commands: Commands, asked: Asked) -> str:
    return asked.say("version", version=commands.house.version)


async def _status(commands: Commands, asked: Asked) -> str:
    house = commands.house
    running = commands.lanes.running(asked.address)
    waiting = commands.lanes.waiting(asked.address)
    up = duration(asked.now - house.started_at, asked.language)
    lines = [asked.say("status_up", duration=up, version=house.version)]
    if running is None:
        lines.append(asked.say("status_idle"))
    else:
        lines.append(asked.say("status_turn", duration=duration(timedelta(seconds=running.age), asked.language)))
    if waiting:
        lines.append(asked.say("status_waiting", count=waiting))
    if includes(asked.call.sender.role, "owner"):
        counts = await commands.house.job_counts()
        lines.append(asked.say("status_model", name=house.model_name()))
        lines.append(asked.say("status_jobs", **{state: counts.get(state, 0) for state in ("running", "waiting", "parked")}))
        lines += [_channel_line(asked, status) for status in house.channel_states()]
    return "\n".join(lines)


def _channel_line(asked: Asked, status: ChannelStatus) -> str:
    state = f"{status.state.value} ({status.reason})" if status.reason else status.state.value
    return asked.say("status_channel", channel=str(status.account), state=state)


async def _channels(commands: Commands, asked: Asked) -> str:
    return "\n".join(_channel_line(asked, status) for status in commands.house.channel_states())


async def _whoami(commands: Commands, asked: Asked) -> str:
    sender = asked.call.sender
    memory = asked.say("on" if asked.chat.memory_on and asked.chat.kind != "challenge" else "off")
    zone = asked.chat.timezone or commands.house.config().timezone or asked.say("system_zone")
    return asked.say("whoami", name=sender.name or sender.id, role=sender.role, timezone=zone, memory=memory)


async def _stop(commands: Commands, asked: Asked) -> str:
    drop_all = asked.call.line.rest.lower() == "all"
    if not await commands.may_stop(asked):
        return asked.say("stop_not_yours")
    running = commands.lanes.running(asked.address)  # after asking the platform, which takes time: the turn of now, not of then
    dropped = commands.lanes.drop_waiting(asked.address) if drop_all else []
    if dropped:
        await asked.desk.end_rows(dropped, "stopped")
    if running is None and not dropped:
        return asked.say("nothing_running")
    if running is not None:
        running.interrupt()
    return asked.say("stopped_all", count=len(dropped)) if drop_all else asked.say("stopped")


async def _steer(commands: Commands, asked: Asked) -> str:
    text = asked.call.line.rest
    if not text:
        return asked.say("steer_usage")
    idle = commands.lanes.running(asked.address) is None
    if not await commands.may_stop(asked):
        return asked.say("stop_not_yours")
    await asked.desk.hand_on(asked.call, text)
    return asked.say("steer_none" if idle else "busy_steered")


async def _busy(commands: Commands, asked: Asked) -> str:
    mode = asked.call.line.rest.lower()
    if mode and mode not in ("steer", "queue"):
        return asked.say("busy_usage")
    if mode:
        await commands.db.write(lambda connection: conversations.change(connection, asked.chat.id, busy=mode))
    return asked.say("busy_now", mode=mode or asked.chat.busy or commands.house.config().busy.mode)


async def _last(commands: Commands, asked: Asked) -> str | Answer:
    parts = await commands.db.read(lambda connection: outbox_store.newest_answer(connection, asked.address))
    if not parts:
        return asked.say("last_none")
    part_id = f"{asked.call.event.delivery_id}.last"
    reply = commands.replies.again(parts, part_id=part_id, now=asked.now, conversation_id=asked.chat.id)
    return Answer(text=asked.say("last_sent"), parts=reply.parts)


async def _why(commands: Commands, asked: Asked) -> str:
    return await explain(commands.db, asked.address, before=asked.call.row_id, language=asked.language, now=asked.now)


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
        return say(language, "why_sent", state=sent, since=since)
    return say(language, "why_state", state=row.state, since=since)


async def _clear(commands: Commands, asked: Asked) -> str:
    if not await commands.may_stop(asked):
        return asked.say("stop_not_yours")

    def work(connection: sa.Connection) -> None:
        _end_talk(connection, asked)
        conversations.clear_context(connection, asked.chat.id)

    _still(commands, asked)
    await commands.db.write(work)
    return asked.say("cleared")


def _still(commands: Commands, asked: Asked) -> None:
    """What runs and what waits in a chat ends, and nothing of it is said any more (DL-14)."""
    commands.lanes.drop_waiting(asked.address)
    if (running := commands.lanes.running(asked.address)) is not None:
        running.interrupt(discard=True)


def _end_talk(connection: sa.Connection, asked: Asked) -> None:
    """The same for what is stored, so that no start takes it up again."""
    inbox.end_open(connection, asked.chat.id, asked.call.row_id, rule="reset", now=asked.now)
    outbox_store.cancel(connection, asked.address, asked.now)


async def _new(commands: Commands, asked: Asked) -> str:
    """In a chat app the old conversation keeps its log under a retired key and the next message opens a new one; on the page the context empties."""
    if not await commands.may_stop(asked):
        return asked.say("stop_not_yours")
    account = Address.parse(asked.address).account
    title = asked.call.line.rest[:80]

    def work(connection: sa.Connection) -> None:
        _end_talk(connection, asked)
        if asked.chat.kind in ("web", "challenge"):
            conversations.clear_context(connection, asked.chat.id)
            return
        conversations.rekey(connection, old=asked.address, new=f"{asked.address}#{asked.chat.id}")
        conversations.create_conversation(
            connection, now=asked.now, key=asked.address, channel=account.channel, account=account.name, kind=asked.chat.kind,
            person_id=asked.chat.person_id, space_id=asked.chat.space_id, character=asked.chat.character, title=title,
        )  # fmt: skip

    _still(commands, asked)
    await commands.db.write(work)
    return asked.say("new_started")


async def _context(commands: Commands, asked: Asked) -> str:
    log = await commands.db.read(lambda connection: conversations.window(connection, asked.chat.id, asked.chat.window_edge))
    turns = sizes(log)
    config = commands.house.config()
    used = sum(turn.tokens for turn in turns)
    return asked.say(
        "context", turns=len(turns), max_turns=config.agent_max_context_turns, tokens=used, max_tokens=config.agent_max_context_tokens
    )


async def _character(commands: Commands, asked: Asked) -> str:
    characters = commands.house.config().characters
    wanted = asked.call.line.rest
    names = {name: character.name or name for name, character in characters.items()}
    if not wanted:
        others = ", ".join(label for name, label in names.items() if name != asked.chat.character) or "–"
        return asked.say("character_list", name=names.get(asked.chat.character, names["default"]), others=others)
    folded = wanted.casefold()
    found = next((name for name, label in names.items() if folded in (name.casefold(), label.casefold())), None)
    if found is None:
        return asked.say("character_unknown", name=wanted, others=", ".join(names.values()))
    await commands.db.write(lambda connection: conversations.change(connection, asked.chat.id, character=found))
    return asked.say("character_now", name=names[found])


async def _persona(commands: Commands, asked: Asked) -> str:
    text = asked.call.line.rest[:2000]
    if not text:
        return asked.say("persona_now", persona=asked.chat.persona) if asked.chat.persona else asked.say("persona_none")
    persona = "" if text == "-" else text
    await commands.db.write(lambda connection: conversations.change(connection, asked.chat.id, persona=persona))
    return asked.say("persona_now", persona=persona) if persona else asked.say("persona_cleared")


async def _jobs(commands: Commands, asked: Asked) -> str:
    rows = await commands.house.job_rows(20)
    return "\n".join(asked.say("job_line", **row) for row in rows) or asked.say("jobs_none")


async def _reload(commands: Commands, asked: Asked) -> str:
    changed, faults = await commands.house.reload()
    if faults:
        return asked.say("reload_faults", faults="; ".join(faults))
    return asked.say("reloaded", changed=", ".join(changed) or asked.say("reload_same"))


TABLE: tuple[Command, ...] = (
    Command(name="help", role="guest", handler=_help),
    Command(name="version", role="user", handler=_version),
    Command(name="status", role="user", handler=_status),
    Command(name="whoami", role="guest", handler=_whoami),
    Command(name="stop", role="guest", handler=_stop, args="[all]", aliases=("cancel",)),
    Command(name="steer", role="guest", handler=_steer, args="TEXT"),
    Command(name="busy", role="user", handler=_busy, args="[steer|queue]"),
    Command(name="last", role="user", handler=_last),
    Command(name="why", role="guest", handler=_why),
    Command(name="new", role="user", handler=_new, args="[TITLE]"),
    Command(name="clear", role="user", handler=_clear),
    Command(name="context", role="user", handler=_context),
    Command(name="character", role="user", handler=_character, args="[NAME]"),
    Command(name="persona", role="user", handler=_persona, args="[TEXT|-]"),
    Command(name="channels", role="admin", handler=_channels),
    Command(name="jobs", role="admin", handler=_jobs),
    Command(name="reload", role="admin", handler=_reload),
)
