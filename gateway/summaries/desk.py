"""Summaries of a chat as people look after them: rolling ones by level, days and weeks, what nothing stands for, where the window begins (RS-47,
RS-48, RS-54, RS-56 to RS-58, RS-68, RS-167).

Nothing is summarised here: what must be made is handed to the jobs of `rolling`, `restating` and `calendar_days`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from pydantic import ValidationError

from gateway.config import Config
from gateway.config.recall import Days
from gateway.jobs.table import enqueue, run_now
from gateway.summaries import calendar_look
from gateway.summaries import view as summary_view
from gateway.summaries.restating import restate_job
from gateway.summaries.summarist import Summarist
from gateway.summaries.view import Calendar, Missing, Row, Whole, Window
from gateway.trimming import rolling_job
from gateway.windows import clock_of, keeps_summaries, profile_of, setting, stands, wrong_zone
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import confirming, edge_jump, summary_rows, uncovered
from memory.recall.edge_jump import Jump
from memory.recall.kinds import CALENDAR, ROLLING
from memory.recall.summary_rows import Detail, State

__all__ = ["Calendar", "Changed", "HandEdited", "Missing", "Row", "SettingRefused", "SummaryDesk", "TailAsked", "Whole", "Window"]

TAIL_ASKED = 500  # messages of a tail above which a yes is asked for (RS-57)


class Changed(Exception):
    """Somebody, or a job, changed the row since it was read: nothing was written."""


class HandEdited(Exception):
    """A person wrote this row: it is replaced only with their consent (RS-48)."""


class SettingRefused(ValueError):
    """The value is none, or outside its bounds; the message names them."""


class TailAsked(Exception):
    """So long a tail is taken only when it is said twice (RS-57)."""


class SummaryDesk:
    def __init__(
        self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], summarist: Summarist, wake: Callable[[], None]
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._summarist = summarist
        self._wake = wake

    # -- looking

    async def whole(self, chat: Conversation, person_id: str, *, folded: bool = False) -> Whole:
        """Rolling summaries, the oldest level first; `folded`: those too that stand in another now."""
        config = self._config()
        profile = profile_of(config, chat)
        kinds = tuple(kind for kind in ROLLING if kind in (*profile.sent, *profile.stored))

        def look(connection: sa.Connection) -> Whole:
            fresh = conversations.conversation(connection, chat.id) or chat
            count = len(uncovered.unsaid(connection, chat.id, kinds, last=fresh.window_edge)) if kinds else None
            return Whole(
                rows=tuple(summary_view.rows(connection, chat.id, person_id, ROLLING, folded=folded)),
                uncovered=count,
                window=summary_view.window(connection, fresh, profile.name),
                allowed=keeps_summaries(config, fresh),
                has_model=self._summarist.can(chat),
            )

        return await self._db.read(look)

    async def calendar(self, chat: Conversation, person_id: str, *, folded: bool = False) -> Calendar:
        config, now = self._config(), self._clock()
        profile = profile_of(config, chat)

        def look(connection: sa.Connection) -> Calendar:
            clock = clock_of(connection, config, chat, uncovered.scope_of(connection, chat.id))
            made = stands(profile, CALENDAR)
            rows = summary_view.rows(connection, chat.id, person_id, CALENDAR, folded=folded)
            return Calendar(
                rows=tuple(rows),
                missing=tuple(summary_view.missing(connection, config, self._summarist, chat, now)) if made else (),
                settings={f"days.{name}": setting(config, chat, f"days.{name}") for name in ("rollover_hour", "tail")},
                zone=str(clock.zone),
                made=made,
                allowed=keeps_summaries(config, chat),
                wrong_zone=wrong_zone(chat),
            )

        return await self._db.read(look)

    async def row(self, chat_id: str, person_id: str, summary_id: int) -> Row | None:
        """One row of this chat, if it is for the person's eyes."""
        return await self._db.read(lambda connection: summary_view.row(connection, chat_id, person_id, summary_id))

    async def inputs(self, chat_id: str, person_id: str, summary_id: int) -> list[Row]:
        """The rows that it was made from (RS-45)."""

        def look(connection: sa.Connection) -> list[Row]:
            if summary_view.row(connection, chat_id, person_id, summary_id) is None:
                return []
            found = summary_rows.inputs_of(connection, summary_id)
            return summary_view.facts(connection, [each for each in found if each.text and summary_view.may_read(each, person_id)])

        return await self._db.read(look)

    # -- changing

    async def edit(
        self, chat_id: str, person_id: str, summary_id: int, *, text: str | None, details: Sequence[Detail] | None, based_on: str
    ) -> Row | None:
        """A person's words: no automatic path rewrites them (RS-48, RS-54). None for a row that is not theirs to see; raises Changed."""
        now = self._clock()

        def work(connection: sa.Connection) -> Row | None:
            old = summary_view.row(connection, chat_id, person_id, summary_id)
            if old is None:
                return None
            if based_on and based_on != old.summary.updated_at.isoformat():
                raise Changed(summary_id)
            summary_rows.edit(connection, summary_id, now, text=text, details=details)
            return summary_view.row(connection, chat_id, person_id, summary_id)

        return await self._db.write(work)

    async def approve(self, chat_id: str, person_id: str, summary_id: int) -> Row | None:
        """A row that waited for a yes counts from now on; one that did not stays as it is."""
        now = self._clock()

        def work(connection: sa.Connection) -> Row | None:
            old = summary_view.row(connection, chat_id, person_id, summary_id)
            if old is not None and old.summary.state is State.WAITING:
                summary_rows.set_state(connection, [summary_id], State.ACTIVE, now)
            return summary_view.row(connection, chat_id, person_id, summary_id)

        return await self._db.write(work)

    async def unfold(self, chat_id: str, person_id: str, summary_id: int) -> int:
        """The rows that it was made from count again, and it does not (RS-45); how many there are. Those that were withheld stay so."""
        now = self._clock()

        def work(connection: sa.Connection) -> int:
            if summary_view.row(connection, chat_id, person_id, summary_id) is None:
                return 0
            back = [each for each in summary_rows.inputs_of(connection, summary_id) if each.state is State.INACTIVE]
            if back:
                summary_rows.bring_back(connection, back, now)
                summary_rows.set_state(connection, [summary_id], State.INACTIVE, now)
            return len(back)

        return await self._db.write(work)

    async def ask(self, chat_id: str, person_id: str, summary_id: int) -> str:
        """The code for forgetting a row."""
        now = self._clock()
        return await self._db.write(lambda connection: confirming.ask(connection, person_id, _target(chat_id, summary_id), now))

    async def forget(self, chat_id: str, person_id: str, summary_id: int, code: str) -> bool:
        """The row and what it was made from are gone, the messages stay, uncovered. False when there is none. Raises CodeExpired."""
        now = self._clock()

        def work(connection: sa.Connection) -> bool:
            confirming.take(connection, person_id, _target(chat_id, summary_id), code, now)
            if summary_view.row(connection, chat_id, person_id, summary_id) is None:
                return False
            summary_rows.delete(connection, _with_inputs(connection, [summary_id]))
            return True

        return await self._db.write(work)

    async def rebuild(self, chat: Conversation, person_id: str, summary_id: int | None = None, *, consent: bool = False) -> list[int]:
        """Have one row made anew, or summarise whatever left the window and nothing stands for; ids of the jobs. The old words stand until then.
        Raises HandEdited without consent."""
        now = self._clock()

        def work(connection: sa.Connection) -> list[int]:
            scope = uncovered.scope_of(connection, chat.id)
            jobs = [rolling_job(chat.id, scope), restate_job(chat.id, scope)]
            if summary_id is not None:
                found = summary_view.row(connection, chat.id, person_id, summary_id)
                if found is None:
                    return []
                if found.summary.hand_edited and not consent:
                    raise HandEdited(summary_id)
                summary_rows.release(connection, [summary_id], now)
                jobs = jobs[1:]
            ids = [enqueue(connection, job, again=True) for job in jobs]
            for number in ids:
                run_now(connection, number)
            return ids

        jobs = await self._db.write(work)
        self._wake()
        return jobs

    async def backfill(self, chat: Conversation, *, most: int | None = None) -> tuple[list[Missing], list[int]]:
        """The newest missing days are summarised, whatever back-off they are in; what became of each, and the ids of the jobs (RS-58, RS-167).
        None in a profile that keeps no days (RS-52)."""
        config, now = self._config(), self._clock()
        if not stands(profile_of(config, chat), CALENDAR):
            return [], []

        def work(connection: sa.Connection) -> tuple[list[Missing], list[int]]:
            asked = calendar_look.backfill(connection, config, self._summarist, chat.id, now, most=most)
            begun = {each.day for each in asked if each.reason == "waiting"}
            jobs = [job.id for day, job in summary_view.day_jobs(connection, config, chat.id) if day in begun]
            return [summary_view.told(each, running=False) for each in asked], jobs

        found = await self._db.write(work)
        self._wake()
        return found

    async def set(self, chat: Conversation, values: Mapping[str, Any], *, sure: bool = False) -> list[str]:
        """The chat's own `days.rollover_hour` and `days.tail`, None for the gateway's; warnings by name: `old_hour` when rows were made with another
        hour (RS-56). Raises SettingRefused, TailAsked."""
        checked = {key: _checked(key, value) for key, value in values.items()}
        tail = checked.get("days.tail")
        if tail is not None and tail > TAIL_ASKED and not sure:
            raise TailAsked(tail)

        def work(connection: sa.Connection) -> list[str]:
            changed = conversations.change_settings(connection, chat.id, checked) or chat
            hour = setting(self._config(), changed, "days.rollover_hour")
            rows = summary_rows.of_chat(connection, chat.id, kinds=CALENDAR, states=tuple(State)) if "days.rollover_hour" in checked else []
            return ["old_hour"] if any(row.rollover_hour != hour for row in rows) else []

        return await self._db.write(work)

    async def undo_jump(self, chat_id: str) -> Jump | None:
        """The window begins again where it began before it jumped (RS-68); None when there is nothing to undo."""
        return await self._db.write(lambda connection: edge_jump.undo(connection, chat_id))

def _with_inputs(connection: sa.Connection, ids: Sequence[int]) -> list[int]:
    """These rows and all that they were made from."""
    found, ahead = list(ids), list(ids)
    while ahead:
        ahead = [each.id for of in ahead for each in summary_rows.inputs_of(connection, of) if each.id not in found]
        found += ahead
    return found


def _checked(key: str, value: Any) -> Any:
    if value is None:
        return None
    section, _, name = key.partition(".")
    if section != "days" or name not in ("rollover_hour", "tail") or isinstance(value, bool) or not isinstance(value, int):
        raise SettingRefused(f"{key}: this is no setting of a chat's days")
    try:
        return getattr(Days.model_validate({name: value}), name)
    except ValidationError as error:
        raise SettingRefused(f"{key}: {error.errors(include_url=False)[0]['msg']}") from error


def _target(chat_id: str, summary_id: int) -> str:
    return f"summary:{chat_id}:{summary_id}"
