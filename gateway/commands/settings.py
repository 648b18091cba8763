"""Commands of the owner alone: first-start questions, settings, the log, a new start."""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from gateway import audit
from gateway.audit import Actor
from gateway.commands.asked import Around, Asked
from gateway.overrides import Effective, NotSettable, effective
from memory.scopes import ROOT

LOG_LINES, LOG_LINES_MAX = 20, 50
KEYS_SHOWN = 60
UNSET = "-"


async def setup(around: Around, asked: Asked) -> str:
    """The first questions come again (WD-35); they are about the owner of the root scope."""
    if asked.access().scope != ROOT:
        return asked.say("setup_not_yours")
    return await around.desks.onboarding.reopen(asked.call.sender.id, asked.language)


async def config(around: Around, asked: Asked) -> str:
    """`config`: what was set here; `config KEY`: its value and source, or those of a whole section; `config KEY VALUE` sets it, `-` unsets it."""
    key, _, text = asked.rest.partition(" ")
    try:
        if not key:
            return await _overview(around, asked)
        if not text.strip():
            return _shown(asked, effective(around.house.config(), await around.desks.overrides.all(), key))
        return await _set(around, asked, key, text.strip())
    except NotSettable as error:
        return asked.say(error.key, **error.values)


async def _overview(around: Around, asked: Asked) -> str:
    config, overrides = around.house.config(), await around.desks.overrides.all()
    found = [each for key in sorted(overrides) for each in effective(config, overrides, key) if each.source == "override"]
    return "\n".join([asked.say("config_head", command=asked.line), *(_lines(asked, found) or [asked.say("config_none")])])


def _shown(asked: Asked, found: Sequence[Effective]) -> str:
    lines = _lines(asked, found[:KEYS_SHOWN])
    if len(found) > KEYS_SHOWN:
        lines.append(asked.say("and_more", count=len(found) - KEYS_SHOWN))
    if len(found) == 1 and not found[0].live:
        lines.append(asked.say("config_restart", name=found[0].key))
    return "\n".join(lines)


def _lines(asked: Asked, found: Sequence[Effective]) -> list[str]:
    sources = {"file": "config_from_file", "default": "config_from_default", "override": "config_from_override"}
    return [asked.say("config_line", name=each.key, value=each.value, source=asked.say(sources[each.source], default=each.default)) for each in found]


async def _set(around: Around, asked: Asked, key: str, text: str) -> str:
    """Stored over the file, never in it, and read in at once (WD-119)."""
    by, overrides = Actor(id=asked.call.sender.id, address=asked.address), around.desks.overrides
    if text == UNSET:
        if not await overrides.remove(key, by=by, now=asked.now):
            return asked.say("config_not_set", name=key)
    else:
        await overrides.put(around.house.config(), key, text, by=by, now=asked.now)
    _, faults = await around.house.reload()
    if faults:
        return asked.say("reload_faults", faults="; ".join(faults))
    return _shown(asked, effective(around.house.config(), await overrides.all(), key))


async def logs(around: Around, asked: Asked) -> str:
    """The last lines of the log, as code."""
    word = asked.words[0] if asked.words else str(LOG_LINES)
    if not (word.isascii() and word.isdigit()):
        return asked.say("logs_usage", command=asked.line)
    lines = around.desks.logs.last(max(1, min(LOG_LINES_MAX, int(word[:4]))))
    return "\n".join(["```", *(line.replace("`", "'") for line in lines), "```"]) if lines else asked.say("logs_none")


async def restart(around: Around, asked: Asked) -> str:
    """Drain, then begin again; this answer still goes out, for commands are waited for."""
    by = Actor(id=asked.call.sender.id, address=asked.address)

    def note(connection: sa.Connection) -> None:
        audit.record(connection, by, "gateway.restart", at=asked.now)

    await around.db.write(note)
    around.desks.restart()
    return asked.say("restarting")
