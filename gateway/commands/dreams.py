"""`/memory dream …`, the diary, and undo (WD-63, WD-64, WD-78, WD-81, WD-89)."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, timedelta
from functools import partial

import sqlalchemy as sa

from gateway.buttons import deciding
from gateway.commands.asked import Answer, Around, Asked
from gateway.commands.memory import follow
from gateway.commands.scoped import of_scope
from gateway.dreams.errors import DreamFailed
from gateway.dreams.wishes import ProposalGone, Requested
from gateway.file_changes import ChangeStale, NoSuchChange
from gateway.talk import duration
from gateway.zones import zone_of
from memory.extract import shortened
from memory.file_errors import FileRefused, FileUnreadable
from memory.proposed_changes import ProposedChange
from memory.schedule import local_date
from memory.scopes import Scope

PROPOSALS_SHOWN, LINES_SHOWN = 5, 40
_REFUSED = {"per_day": "dream_enough", "no_model": "dream_no_model"}
TEXT_MAX = 6_000  # characters of a file in one answer


@of_scope
async def dream(around: Around, asked: Asked, scope: Scope) -> str:
    """Started, and the result follows; or since when one runs, or why not."""
    wish = _wish(asked.words)
    if wish is None:
        return asked.say("dream_usage", command=asked.line)
    days, force = wish
    person = asked.call.sender.id

    def work(connection: sa.Connection) -> Requested:
        got = around.desks.dreams.request(connection, scope, days=days, force=force, person=person, now=asked.now)
        if got.running_since is None and not got.refused:
            follow(connection, asked, "dream", [got.job_id], scope=str(scope))
        return got

    got = await around.db.write(work)
    if got.running_since is not None:
        return asked.say("dream_runs", since=duration(asked.now - got.running_since, asked.language))
    if got.refused:
        return asked.say(_REFUSED[got.refused], limit=around.house.config().dream.manual_per_day)
    around.desks.wake_jobs()
    return asked.say("dream_started_clamped" if got.clamped else "dream_started", days=got.days)


def _wish(words: list[str]) -> tuple[int | None, bool] | None:
    """The days and whether it is forced: `5 force`, in either order; None for anything else."""
    lowered = [word.lower() for word in words]
    rest = [word for word in lowered if word != "force"]
    if len(rest) > 1 or lowered.count("force") > 1:
        return None
    if not rest:
        return None, "force" in lowered
    sign, digits = ("-", rest[0][1:]) if rest[0].startswith("-") else ("", rest[0])
    if not (digits.isascii() and digits.isdigit()):
        return None
    return int(f"{sign}{digits[:6]}"), "force" in lowered


# -- what waits for a yes ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """A refused dream, a candidate or a tool's change. `change`: of the last kind, which has a service of its own."""

    id: str
    kind: str
    path: str
    change: ProposedChange | None = None


async def _waiting(around: Around, scope: Scope) -> list[Open]:
    """What waits in this scope, and in no other, oldest first by kind."""
    desks = around.desks
    proposals = await around.db.read(partial(desks.dreams.proposals, scope=scope))
    changes = await desks.changes.waiting(scope)
    return [
        *(Open(id=each.id, kind=each.kind, path=each.path) for each in proposals),
        *(Open(id=each.id, kind="change", path=each.path, change=each) for each in changes),
    ]


async def _one(around: Around, asked: Asked, scope: Scope) -> Open | str:
    """The one that is named, or the only one."""
    waiting = await _waiting(around, scope)
    if asked.words:
        found = next((each for each in waiting if each.id == asked.words[0]), None)
        return found or asked.say("proposal_unknown", id=asked.words[0][:40])
    if not waiting:
        return asked.say("proposals_none")
    if len(waiting) > 1:
        return asked.say("proposal_which", ids=", ".join(each.id for each in waiting), command=asked.line)
    return waiting[0]


@of_scope
async def show(around: Around, asked: Asked, scope: Scope) -> str | Answer:
    """What waits for a yes, each with the lines it would change."""
    waiting = await _waiting(around, scope)
    chosen = [each for each in waiting if not asked.words or each.id == asked.words[0]]
    if not chosen:
        return asked.say("proposal_unknown", id=asked.words[0][:40]) if asked.words else asked.say("proposals_none")
    parts = [await _shown(around, asked, scope, each) for each in chosen[:PROPOSALS_SHOWN]]
    if len(chosen) > PROPOSALS_SHOWN:
        parts.append(asked.say("and_more", count=len(chosen) - PROPOSALS_SHOWN))
    commands = {"apply": asked.command("memory", "dream", "apply"), "discard": asked.command("memory", "dream", "discard")}
    parts.append(asked.say("proposals_how", **commands))
    questions = (deciding(asked.language, each.id, approve=commands["apply"], decline=commands["discard"]) for each in chosen[:PROPOSALS_SHOWN])
    return Answer(text="\n".join(parts), questions=tuple(questions))


async def _shown(around: Around, asked: Asked, scope: Scope, proposal: Open) -> str:
    head = asked.say(_KINDS[proposal.kind], id=proposal.id, path=proposal.path)
    if proposal.change is not None:
        return "\n".join([head, *changed_lines(asked, removed=proposal.change.removed, added=proposal.change.added)])
    try:
        lines = await around.desks.dreams.show(scope, proposal.id)
    except (ProposalGone, FileUnreadable):
        return "\n".join([head, asked.say("proposal_stale")])
    gone, come = ([line.text for line in lines if line.kind == kind and line.text.strip()] for kind in ("removed", "added"))
    return "\n".join([head, *changed_lines(asked, removed=gone, added=come)])


_KINDS = {"dream": "proposal_dream", "candidate": "proposal_candidate", "change": "proposal_change"}


def changed_lines(asked: Asked, *, removed: Sequence[str], added: Sequence[str]) -> list[str]:
    """The lines that go and come, as code: a plus at the start of a line would be read as a bullet."""
    changed = [*(f"− {_bare(line)}" for line in removed), *(f"+ {_bare(line)}" for line in added)]
    if not changed:
        return []
    more = [asked.say("and_more", count=len(changed) - LINES_SHOWN)] if len(changed) > LINES_SHOWN else []
    return ["```", *changed[:LINES_SHOWN], "```", *more]


def _bare(line: str) -> str:
    return " ".join(line.split()).removeprefix("- ").replace("```", "'''")


@of_scope
async def apply(around: Around, asked: Asked, scope: Scope) -> str:
    """A yes. Every other check is made again (WD-81)."""
    proposal = await _one(around, asked, scope)
    if isinstance(proposal, str):
        return proposal
    try:
        lines = await _applied(around, asked, scope, proposal)
    except (ProposalGone, NoSuchChange):
        return asked.say("proposal_unknown", id=proposal.id)
    except (ChangeStale, DreamFailed, FileUnreadable, FileRefused):
        return asked.say("proposal_stale")
    return "\n".join([asked.say("proposal_applied", id=proposal.id, path=proposal.path), *lines])


async def _applied(around: Around, asked: Asked, scope: Scope, proposal: Open) -> list[str]:
    if proposal.change is not None:
        done = await around.desks.changes.accept(scope, proposal.id)
        return changed_lines(asked, removed=done.removed, added=done.added)
    accepted = await around.desks.dreams.apply(scope, proposal.id, asked.call.sender.id)
    lines = changed_lines(asked, removed=accepted.dropped, added=(*accepted.added, *accepted.changed))
    return [*lines, *([asked.say("proposal_left", count=len(accepted.left))] if accepted.left else [])]


@of_scope
async def discard(around: Around, asked: Asked, scope: Scope) -> str:
    proposal = await _one(around, asked, scope)
    if isinstance(proposal, str):
        return proposal
    if proposal.change is not None:
        try:
            await around.desks.changes.discard(scope, proposal.id)
        except NoSuchChange:
            return asked.say("proposal_unknown", id=proposal.id)
        return asked.say("proposal_discarded", id=proposal.id)
    gone = await around.db.write(partial(around.desks.dreams.discard, scope=scope, proposal_id=proposal.id))
    return asked.say("proposal_discarded" if gone else "proposal_unknown", id=proposal.id)


# -- back, and the diary ----------------------------------------------------------------------------------------------------


@of_scope
async def undo(around: Around, asked: Asked, scope: Scope) -> str:
    """What was reversed, line by line (WD-89)."""
    try:
        done = await around.desks.undoing.undo(scope)
    except (FileRefused, FileUnreadable):
        return asked.say("undo_refused")
    if done is None:
        return asked.say("undo_nothing")
    lines = [asked.say("undone" if done.whole else "undone_lines", path=done.path)]
    lines += changed_lines(asked, removed=done.taken_back, added=done.restored)
    if done.forgotten:
        lines.append(asked.say("undo_forgotten", count=done.forgotten))
    return "\n".join(lines)


@of_scope
async def diary(around: Around, asked: Asked, scope: Scope) -> str:
    """The diary of a date, or the newest one. It is for people, in whole or in its beginning (WD-78)."""
    wanted = day_in(asked.rest, await today_of(around, asked, scope)) if asked.rest else None
    if asked.rest and wanted is None:
        return asked.say("diary_usage", command=asked.line)
    try:
        found = await around.desks.dreams.diary(scope, wanted)
    except FileUnreadable:
        return asked.say("error_file_unreadable")
    return within(found[1]) if found else asked.say("diary_none")


async def today_of(around: Around, asked: Asked, scope: Scope) -> date:
    default = around.house.config().timezone
    return await around.db.read(lambda connection: local_date(asked.now, zone_of(connection, str(scope), default)))


def day_in(text: str, today: date) -> date | None:
    """`today`, `yesterday` or a date such as 2026-03-08; None for anything else."""
    word = text.strip().lower()
    if word in ("today", "yesterday"):
        return today if word == "today" else today - timedelta(days=1)
    with suppress(ValueError):
        return date.fromisoformat(word)
    return None


def within(text: str) -> str:
    """As much of a file as one answer takes."""
    text = text.strip()
    return shortened(text, TEXT_MAX)
