"""`/summary …`: what stands in a day's file, and summaries by hand (WD-55)."""

from __future__ import annotations

import sqlalchemy as sa

from gateway import nightly
from gateway.commands.asked import Around, Asked
from gateway.commands.dreams import day_in, today_of, within
from gateway.commands.memory import follow
from gateway.commands.scoped import of_scope
from gateway.commands.summary import reason_words
from gateway.jobs.table import find_job
from gateway.summaries.plan import DAILY
from memory.file_errors import FileUnreadable
from memory.layout import daily_path
from memory.scopes import Scope

BACKFILL_DAYS, BACKFILL_MAX = 14, 60


@of_scope
async def day(around: Around, asked: Asked, scope: Scope) -> str:
    """One day's record, today's unless another is named."""
    wanted = day_in(asked.rest or "today", await today_of(around, asked, scope))
    if wanted is None:
        return asked.say("summary_usage", command=asked.line)
    try:
        found = await around.desks.files.read(lambda workspace: workspace.read(scope, daily_path(wanted)))
    except FileUnreadable:
        return asked.say("error_file_unreadable")
    return within(found.content) if found and found.content.strip() else asked.say("summary_none", date=wanted)


@of_scope
async def now(around: Around, asked: Asked, scope: Scope) -> str:
    """What stands in no day's file yet is summarised now; the result follows."""
    config = around.house.config()

    def work(connection: sa.Connection) -> None:
        job_id = nightly.summarise_now(connection, str(scope), config, asked.now)
        follow(connection, asked, "summary", [job_id], scope=str(scope))

    await around.db.write(work)
    around.desks.wake_jobs()
    return asked.say("summary_started")


@of_scope
async def backfill(around: Around, asked: Asked, scope: Scope) -> str:
    """The newest missing dates get their run; the result of each follows."""
    if asked.words and not (asked.words[0].isascii() and asked.words[0].isdigit()):
        return asked.say("backfill_usage", command=asked.line)
    days = max(1, min(BACKFILL_MAX, int(asked.words[0][:4]))) if asked.words else BACKFILL_DAYS
    config = around.house.config()

    def work(connection: sa.Connection) -> list[str]:
        dates = [str(each) for each in nightly.backfill(connection, str(scope), config, asked.now, days=days)]
        jobs = [job for each in dates if (job := find_job(connection, DAILY, f"{scope}:{each}")) is not None]
        if jobs:
            follow(connection, asked, "backfill", [job.id for job in jobs], scope=str(scope))
        return dates

    dates = await around.db.write(work)
    around.desks.wake_jobs()
    told = asked.say("backfill_started", dates=", ".join(dates)) if dates else asked.say("backfill_none")
    return "\n".join([told, *await _of_chat(around, asked, scope, days)])


async def _of_chat(around: Around, asked: Asked, scope: Scope, most: int) -> list[str]:
    """The days of this chat too, where its profile has such (RS-58): what begins, and what is in the way of the others (RS-167)."""
    asked_for, jobs = await around.desks.summaries.backfill(asked.chat, most=most)
    if jobs:
        await around.db.write(lambda connection: follow(connection, asked, "chat_summaries", jobs, scope=str(scope)))
    begun = [each.day.isoformat() for each in asked_for if each.reason == "waiting"]
    lines = [asked.say("chat_backfill_started", dates=", ".join(begun))] if begun else []
    return lines + [
        asked.say("summary_missing", date=each.day.isoformat(), reason=reason_words(asked, each)) for each in asked_for if each.reason != "waiting"
    ]
