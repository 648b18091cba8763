"""Commands about the gateway as it runs, and about who asks."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from gateway import channel_words
from gateway.access import includes
from gateway.commands.asked import Around, Asked
from gateway.job_words import failure
from gateway.jobs.table import JobRow
from gateway.memory_status import JOB_STATES, job_counts, title_of
from gateway.supervise import ChannelStatus
from gateway.talk import duration
from gateway.zones import zone_of
from memory.schema import identities
from memory.scopes import ROOT, Kind, Scope


async def status(around: Around, asked: Asked) -> str:
    """What runs here. The owner hears of the whole house too, but not before a group (WD-115)."""
    house = around.house
    running = around.lanes.running(asked.address)
    waiting = around.lanes.waiting(asked.address)
    up = duration(asked.now - house.started_at, asked.language)
    lines = [asked.say("status_up", duration=up, version=house.version)]
    if running is None:
        lines.append(asked.say("status_idle"))
    else:
        lines.append(asked.say("status_turn", duration=duration(timedelta(seconds=running.age), asked.language)))
    if waiting:
        lines.append(asked.say("status_waiting", count=waiting))
    if includes(asked.call.sender.role, "owner") and not asked.in_group:
        counts = await house.job_counts()
        lines.append(asked.say("status_model", name=house.model_name()))
        lines.append(asked.say("status_jobs", **{state: counts.get(state, 0) for state in JOB_STATES}))
        lines += [_channel_line(asked, channel) for channel in house.channel_states()]
        lines.append(await around.desks.status.index_line(asked.language))
    elif (scope := asked.access().scope) is not None:
        counts = await around.db.read(partial(job_counts, scope=str(scope)))
        lines.append(asked.say("status_jobs", **{state: counts.get(state, 0) for state in JOB_STATES}))
    return "\n".join(lines)


def _channel_line(asked: Asked, status: ChannelStatus) -> str:
    why = channel_words.reason(status.account.channel, status.code, status.reason, asked.language)
    state = f"{status.state.value} ({why})" if why else status.state.value
    return asked.say("status_channel", channel=str(status.account), state=state)


async def channels(around: Around, asked: Asked) -> str:
    return "\n".join(_channel_line(asked, status) for status in around.house.channel_states())


async def jobs(around: Around, asked: Asked) -> str:
    rows = await around.house.job_rows(20)
    return "\n".join(_job_line(asked, row) for row in rows) or asked.say("jobs_none")


def _job_line(asked: Asked, row: JobRow) -> str:
    error = failure(asked.language, row.error_class) if row.error_class else ""
    return asked.say("job_line", id=row.id, kind=row.job.kind, state=asked.say(f"job_{row.state}"), error=error and f" · {error}")


async def reload(around: Around, asked: Asked) -> str:
    changed, faults = await around.house.reload()
    if faults:
        return asked.say("reload_faults", faults="; ".join(faults))
    return asked.say("reloaded", changed=", ".join(changed) or asked.say("reload_same"))


# -- who asks ---------------------------------------------------------------------------------------------------------------


async def whoami(around: Around, asked: Asked) -> str:
    """The role, whose memory this chat has, the zone; in a private chat also the accounts that are linked."""
    sender, scope = asked.call.sender, asked.access().scope
    default = around.house.config().timezone

    def look(connection: sa.Connection) -> tuple[str, str, list[str]]:
        linked = [] if asked.in_group else [f"{row.channel}:{row.account}" for row in connection.execute(_ACCOUNTS, {"person": sender.id})]
        return _zone(connection, asked, scope, default), scope_words(connection, asked, scope), linked

    zone, words, linked = await around.db.read(look)
    memory = asked.say("on" if asked.chat.memory_on and asked.chat.kind != "challenge" else "off")
    lines = [asked.say("whoami", name=sender.name or sender.id, role=sender.role, timezone=zone, memory=memory), words]
    if linked:
        lines.append(asked.say("whoami_accounts", accounts=", ".join(linked)))
    return "\n".join(lines)


def scope_words(connection: sa.Connection, asked: Asked, scope: Scope | None) -> str:
    """Whose memory this chat has, in words."""
    if scope is None:
        return asked.say("scope_none")
    if scope == ROOT:
        return asked.say("scope_root")
    if scope.kind is Kind.PERSON:
        return asked.say("scope_person")
    title = title_of(connection, scope)
    return asked.say("scope_space", title=title) if title else asked.say("scope_group")


def _zone(connection: sa.Connection, asked: Asked, scope: Scope | None, default: str) -> str:
    if asked.chat.timezone:
        return asked.chat.timezone
    found: ZoneInfo | None = zone_of(connection, str(scope), default) if scope is not None else None
    name = found.key if found is not None else default
    return asked.say("system_zone") if name in (None, "", "localtime") else name


_ACCOUNTS = (
    sa.select(identities.c.channel, identities.c.account).where(identities.c.person_id == sa.bindparam("person")).order_by(identities.c.id)
)
