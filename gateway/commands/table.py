"""The table of commands (section 9 of the workspace rules): name, who, lane, handler; a subcommand is a row like any other.

`find` reads what was asked against it, `nearest` suggests. Lanes: C is answered at once beside a running turn; B is accepted at once and its result
follows; N takes effect with the next turn. None of them ever waits behind a turn (WD-118).
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from gateway.commands import (
    cast,
    company,
    context,
    days,
    dreams,
    entries,
    forgetting,
    house,
    knowledge,
    linking,
    memory,
    recall,
    saved,
    settings,
    summary,
    switches,
    talk,
    tasks,
)
from gateway.commands.asked import Around, Asked, Handler
from gateway.commands.who import Caller, Who, may, role_at_the_door

Lane: TypeAlias = Literal["C", "B", "N"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """`private`: only in a private chat. `discreet`: what it says is not the group's; asked for there, it is told in the private chat. `own_words`:
    words that may follow and name no subcommand. `opens`: an admin may give it in a group that is not answered yet. `help`: the key of its line."""

    name: str
    who: Who
    handler: Handler
    help: str
    args: str = ""
    aliases: tuple[str, ...] = ()
    lane: Lane = "C"
    private: bool = False
    discreet: bool = False
    own_words: tuple[str, ...] = ()
    opens: bool = False
    subs: tuple[Command, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        return self.name, *self.aliases


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """The row that is meant, the words that name it, and what stands behind them."""

    command: Command
    path: tuple[str, ...]
    rest: str


def find(name: str, rest: str = "") -> Found | None:
    """The row for `/name rest`: as many of the words as name subcommands, one below the other."""
    command = _named(TABLE, name)
    if command is None:
        return None
    path = [command.name]
    while True:
        word, *behind = rest.split(None, 1) or [""]
        sub = _named(command.subs, word.lower())
        if sub is None:
            return Found(command=command, path=tuple(path), rest=rest.strip())
        command, rest = sub, "".join(behind)
        path.append(sub.name)


def slip(found: Found) -> str:
    """The subcommand that was probably meant; empty when what follows is no slip (WD-116)."""
    word = found.rest.split()[0].lower() if found.rest.strip() else ""
    if not word or word in found.command.own_words or word.isdigit():
        return ""
    return _close(word, found.command.subs)


def nearest(name: str) -> str:
    """The command that was probably meant by a name that is none."""
    return _close(name, TABLE)


def needed_role(name: str) -> str:
    """The role a command needs to be taken in; empty for an unknown one, which only gets a suggestion. What a place or a subcommand asks beyond it is
    checked before the command runs."""
    command = _named(TABLE, name)
    return role_at_the_door(command.who) if command else ""


def opens_groups(name: str) -> bool:
    """Whether an admin may give this command in a group that is not allowed yet (CH-115)."""
    command = _named(TABLE, name)
    return command is not None and command.opens


def usable(caller: Caller, commands: Sequence[Command] | None = None) -> list[Command]:
    """Those of the commands (None: of all) that a caller may give where they are (CH-118)."""
    return [each for each in (TABLE if commands is None else commands) if may(each.who, caller) and not (each.private and caller.in_group)]


def usable_by(role: str) -> list[Command]:
    """Those of a private chat."""
    return usable(Caller(role=role, in_group=False))


def every_row(commands: Sequence[Command] | None = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    """All rows with the words that name them, subcommands behind their command."""
    for command in TABLE if commands is None else commands:
        here = (*path, command.name)
        yield here, command
        yield from every_row(command.subs, here)


def _named(commands: Sequence[Command], name: str) -> Command | None:
    return next((command for command in commands if name in command.names), None)


def _close(word: str, commands: Sequence[Command]) -> str:
    near = difflib.get_close_matches(word, [name for command in commands for name in command.names], n=1)
    return near[0] if near else ""


def _lines(asked: Asked, commands: Sequence[Command], *path: str) -> list[str]:
    return [f"- {asked.command(*path, command.name)}{f' {command.args}' if command.args else ''}: {asked.say(command.help)}" for command in commands]


async def _help(around: Around, asked: Asked) -> str:
    return "\n".join([asked.say("help_head"), *_lines(asked, usable(_caller(asked)))])


async def _subcommands(around: Around, asked: Asked) -> str:
    """What a command consists of, for its bare name and for a word that is none of it."""
    found = find(*asked.path[:1], rest=" ".join(asked.path[1:]))
    return "\n".join([asked.say("subcommands_head"), *_lines(asked, usable(_caller(asked), found.command.subs), *asked.path)]) if found else ""


def _caller(asked: Asked) -> Caller:
    return Caller(role=asked.call.sender.role, in_group=asked.in_group, manages=asked.manages)


_APPLY = Command(name="apply", who=Who.PERSON, handler=dreams.apply, args="[ID]", help="help_memory_dream_apply")
_DISCARD = Command(name="discard", who=Who.PERSON, handler=dreams.discard, args="[ID]", help="help_memory_dream_discard")

_CHUNKS = (
    Command(name="forget", who=Who.PERSON, handler=recall.forget, args="ID", help="help_memory_chunks_forget"),
    Command(name="clear", who=Who.PERSON, handler=recall.clear, help="help_memory_chunks_clear"),
    Command(name="rebuild", who=Who.PERSON, handler=recall.rebuild, help="help_memory_chunks_rebuild"),
)
_MEMORY = (
    Command(name="status", who=Who.PERSON, handler=memory.status, help="help_memory_status"),
    Command(name="search", who=Who.PERSON, handler=memory.search, args="TEXT", help="help_memory_search"),
    Command(name="rebuild-index", who=Who.OWNER, handler=memory.rebuild, lane="B", discreet=True, help="help_memory_rebuild"),
    Command(
        name="dream",
        who=Who.PERSON,
        handler=dreams.dream,
        args="[N] [force]",
        lane="B",
        help="help_memory_dream",
        own_words=("force",),
        subs=(Command(name="show", who=Who.PERSON, handler=dreams.show, args="[ID]", help="help_memory_dream_show"), _APPLY, _DISCARD),
    ),
    _APPLY,
    _DISCARD,
    Command(name="diary", who=Who.PERSON, handler=dreams.diary, args="[DATE]", help="help_memory_diary"),
    Command(name="undo", who=Who.PERSON, handler=dreams.undo, help="help_memory_undo"),
    Command(name="why", who=Who.PERSON, handler=memory.why, args="[ID]", help="help_memory_why"),
    Command(name="forget", who=Who.MEMBER, handler=forgetting.forget, args="TEXT|ID", help="help_memory_forget"),
    Command(name="list", who=Who.PERSON, handler=saved.listed, args="[PAGE]", help="help_memory_list"),
    Command(name="pin", who=Who.PERSON, handler=saved.pin, args="ID", help="help_memory_pin"),
    Command(name="unpin", who=Who.PERSON, handler=saved.unpin, args="ID", help="help_memory_unpin"),
    Command(name="wake", who=Who.PERSON, handler=saved.wake, args="ID", help="help_memory_wake"),
    Command(name="edit", who=Who.PERSON, handler=saved.edit, args="ID TEXT", help="help_memory_edit"),
    Command(name="delete", who=Who.PERSON, handler=saved.delete, args="ID [yes]", help="help_memory_delete"),
    Command(name="clear", who=Who.PERSON, handler=saved.clear, args="[LIST]", help="help_memory_clear"),
    Command(
        name="notices",
        who=Who.PERSON,
        handler=saved.notices,
        args="[full|short|hidden]",
        own_words=("full", "short", "hidden"),
        help="help_memory_notices",
    ),
    Command(name="export", who=Who.PERSON, handler=memory.export, lane="B", private=True, help="help_memory_export"),
    Command(name="on", who=Who.PERSON, handler=memory.switch_on, help="help_memory_on"),
    Command(name="off", who=Who.PERSON, handler=memory.switch_off, help="help_memory_off"),
    Command(name="recall", who=Who.PERSON, handler=recall.recall, args="[on|off]", own_words=("on", "off"), help="help_memory_recall"),
    Command(name="record", who=Who.PERSON, handler=recall.record, args="[full|recall_only|none]", own_words=recall.RULES, help="help_memory_record"),
    Command(name="chunks", who=Who.MEMBER, handler=recall.chunks, args="[PAGE]", help="help_memory_chunks", subs=_CHUNKS),
    Command(name="jobs", who=Who.MEMBER, handler=recall.work, help="help_memory_jobs"),
    Command(name="doctor", who=Who.MEMBER, handler=recall.doctor, help="help_memory_doctor"),
    Command(name="learn", who=Who.PERSON, handler=switches.learn, args="[on|off [NAME]]", own_words=("on", "off"), help="help_memory_learn"),
    Command(name="privacy", who=Who.USER, handler=switches.privacy, args="[normal|partial|full]", private=True, help="help_memory_privacy"),
    Command(name="share", who=Who.USER, handler=switches.share, args="[on|off]", private=True, help="help_memory_share"),
    Command(name="blacklist", who=Who.PERSON, handler=switches.blacklist, args="[PERSON [off]]", help="help_memory_blacklist"),
)
_KNOWLEDGE = (
    Command(name="list", who=Who.PERSON, handler=knowledge.tree, aliases=("tree",), help="help_knowledge_list"),
    Command(name="on", who=Who.PERSON, handler=knowledge.switch_on, help="help_knowledge_on"),
    Command(name="off", who=Who.PERSON, handler=knowledge.switch_off, help="help_knowledge_off"),
)
_ENTRIES = (
    Command(name="make", who=Who.PERSON, handler=entries.make, args="[N|A-B]", lane="B", help="help_entries_make"),
    Command(name="on", who=Who.PERSON, handler=entries.on, args="N …|all", help="help_entries_on"),
    Command(name="off", who=Who.PERSON, handler=entries.off, args="N …|all", help="help_entries_off"),
    Command(name="delete", who=Who.PERSON, handler=entries.delete, args="N", help="help_entries_delete"),
    Command(name="approve", who=Who.PERSON, handler=entries.approve, args="N", help="help_entries_approve"),
    Command(name="decline", who=Who.PERSON, handler=entries.decline, args="N", help="help_entries_decline"),
    Command(name="auto", who=Who.PERSON, handler=entries.auto, args="[on|off [EVERY]]", own_words=("on", "off"), help="help_entries_auto"),
    Command(name="hide", who=Who.PERSON, handler=entries.hide, args="[on|off [TAIL]]", own_words=("on", "off"), help="help_entries_hide"),
    Command(name="review", who=Who.PERSON, handler=entries.review, args="[on|off]", own_words=("on", "off"), help="help_entries_review"),
    Command(name="backfill", who=Who.PERSON, handler=entries.backfill, lane="B", help="help_entries_backfill"),
    Command(name="stop", who=Who.PERSON, handler=entries.stop, help="help_entries_stop"),
)
_SUMMARY = (
    Command(name="now", who=Who.PERSON, handler=days.now, lane="B", help="help_summary_now"),
    Command(name="backfill", who=Who.PERSON, handler=days.backfill, args="[N]", lane="B", help="help_summary_backfill"),
    Command(name="list", who=Who.MEMBER, handler=summary.listed, args="[PAGE]", help="help_summary_list"),
    Command(name="read", who=Who.MEMBER, handler=summary.read, args="ID", help="help_summary_read"),
    Command(name="forget", who=Who.PERSON, handler=summary.forget, args="ID", help="help_summary_forget"),
    Command(name="rebuild", who=Who.PERSON, handler=summary.rebuild, args="[ID]", lane="B", help="help_summary_rebuild"),
    Command(name="entries", who=Who.MEMBER, handler=entries.listed, args="[PAGE]", help="help_summary_entries", subs=_ENTRIES),
)
_CONTEXT = (Command(name="undo", who=Who.PERSON, handler=summary.undo, lane="N", help="help_context_undo"),)
_TASKS = (
    Command(name="pause", who=Who.MAKER, handler=tasks.pause, args="ID", help="help_tasks_pause"),
    Command(name="resume", who=Who.MAKER, handler=tasks.resume, args="ID", help="help_tasks_resume"),
    Command(name="delete", who=Who.MAKER, handler=tasks.delete, args="ID", help="help_tasks_delete"),
    Command(name="run", who=Who.MAKER, handler=tasks.run, args="ID", lane="B", help="help_tasks_run"),
)
_PAIR = (
    Command(name="list", who=Who.ADMIN, handler=company.waiting, private=True, help="help_pair_list"),
    Command(name="approve", who=Who.ADMIN, handler=company.approve, args="CODE", private=True, help="help_pair_approve"),
    Command(name="decline", who=Who.ADMIN, handler=company.decline, args="NUMBER", private=True, help="help_pair_decline"),
)
_LINK = (
    Command(name="yes", who=Who.USER, handler=linking.yes, args="[NUMBER]", private=True, help="help_link_yes"),
    Command(name="no", who=Who.USER, handler=linking.no, args="[NUMBER]", private=True, help="help_link_no"),
    Command(name="off", who=Who.USER, handler=linking.off, private=True, help="help_link_off"),
)
_ALLOW = (Command(name="mention", who=Who.ADMIN, handler=company.mention, args="on|off", help="help_allow_mention"),)

TABLE: tuple[Command, ...] = (
    Command(name="help", who=Who.ALL, handler=_help, help="help_help"),
    Command(name="version", who=Who.USER, handler=talk.version, help="help_version"),
    Command(name="status", who=Who.USER, handler=house.status, help="help_status"),
    Command(name="whoami", who=Who.ALL, handler=house.whoami, help="help_whoami"),
    Command(name="stop", who=Who.MAKER, handler=talk.stop, args="[all]", aliases=("cancel",), help="help_stop"),
    Command(name="steer", who=Who.MAKER, handler=talk.steer, args="TEXT", help="help_steer"),
    Command(name="busy", who=Who.USER, handler=talk.busy, args="[steer|queue]", help="help_busy"),
    Command(name="last", who=Who.USER, handler=talk.last, help="help_last"),
    Command(name="why", who=Who.ALL, handler=talk.why, help="help_why"),
    Command(name="new", who=Who.PERSON, handler=talk.new, args="[TITLE]", help="help_new"),
    Command(name="clear", who=Who.PERSON, handler=talk.clear, help="help_clear"),
    Command(name="context", who=Who.PERSON, handler=context.context, help="help_context", subs=_CONTEXT),
    Command(name="compact", who=Who.PERSON, handler=talk.compact, lane="N", help="help_compact"),
    Command(name="character", who=Who.PERSON, handler=cast.character, args="[NAME[, NAME]|delete ID]", lane="N", help="help_character"),
    Command(name="persona", who=Who.PERSON, handler=cast.persona, args="[TEXT|-]", lane="N", help="help_persona"),
    Command(name="memory", who=Who.PERSON, handler=_subcommands, help="help_memory", subs=_MEMORY),
    Command(name="remember", who=Who.PERSON, handler=saved.remember, args="TEXT", help="help_remember"),
    Command(name="forget", who=Who.MEMBER, handler=forgetting.forget, args="TEXT|ID", help="help_memory_forget"),
    Command(name="knowledge", who=Who.PERSON, handler=knowledge.overview, help="help_knowledge", subs=_KNOWLEDGE),
    Command(
        name="summary",
        who=Who.PERSON,
        handler=days.day,
        args="[today|yesterday|DATE]",
        help="help_summary",
        own_words=("today", "yesterday"),
        subs=_SUMMARY,
    ),
    Command(name="tasks", who=Who.PERSON, handler=tasks.listed, help="help_tasks", subs=_TASKS),
    Command(name="link", who=Who.USER, handler=linking.link, args="[CODE]", private=True, help="help_link", subs=_LINK),
    Command(name="setup", who=Who.OWNER, handler=settings.setup, private=True, help="help_setup"),
    Command(name="config", who=Who.OWNER, handler=settings.config, args="[KEY [VALUE]]", private=True, help="help_config"),
    Command(name="logs", who=Who.OWNER, handler=settings.logs, args="[N]", private=True, help="help_logs"),
    Command(name="pair", who=Who.ADMIN, handler=company.waiting, private=True, help="help_pair", subs=_PAIR),
    Command(name="allow", who=Who.ADMIN, handler=company.allow, args="[off]", opens=True, own_words=("on", "off"), help="help_allow", subs=_ALLOW),
    Command(name="block", who=Who.ADMIN, handler=company.block, args="PERSON", help="help_block"),
    Command(name="unblock", who=Who.ADMIN, handler=company.unblock, args="PERSON", help="help_unblock"),
    Command(name="role", who=Who.OWNER, handler=company.role, args="PERSON ROLE", help="help_role"),
    Command(name="channels", who=Who.ADMIN, handler=house.channels, discreet=True, help="help_channels"),
    Command(name="jobs", who=Who.ADMIN, handler=house.jobs, discreet=True, help="help_jobs"),
    Command(name="reload", who=Who.ADMIN, handler=house.reload, discreet=True, help="help_reload"),
    Command(name="restart", who=Who.OWNER, handler=settings.restart, help="help_restart"),
)
