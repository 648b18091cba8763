"""The dream of one scope: the job that makes a night's notes into lines of MEMORY.md (WD-61 to WD-88).

It reads the live files, asks one model, lets code decide what of the answer may stand, and writes in steps that survive a kill. Large input is taken
in parts, oldest dates first, each a dream of its own with its own budget.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import date, datetime, timedelta
from typing import Any

import sqlalchemy as sa

from agent.llm.port import ChatModel
from gateway.config import Config
from gateway.dreams.asking import Budget, DreamAsking
from gateway.dreams.errors import BudgetGone, DreamFailed, ForgottenMeanwhile
from gateway.dreams.night import CHANGED, DIARY_WORDS, NO_MODEL, NOTHING_NEW, Night, booking, can_dream, refuse
from gateway.dreams.reading import DreamReading, Seen
from gateway.dreams.writing import DreamWriting, unless_forgotten
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.parts import drop_paid
from gateway.jobs.table import Job
from gateway.language import guess, say
from gateway.models import Models
from gateway.zones import zone_of
from memory import dream_store
from memory.database import Database
from memory.diary import diary_section, happened, numbers
from memory.dream_guards import refusal
from memory.dream_input import DATES_MAX, Day, Material, batch_key, part, unused
from memory.dream_rules import Judged, judge
from memory.dream_store import Dream
from memory.dream_text import TextBroken, rewrite
from memory.file_errors import FileUnreadable
from memory.file_hash import file_hash
from memory.schedule import local_date
from memory.scopes import Scope, parse_scope
from memory.tokens import count

KIND = "dream"
PARTS_MAX = 3  # of one night (WD-87)
RERUNS_MAX = 2  # after somebody changed MEMORY.md during the model call (WD-84)
IDLE_MAX = 2  # parts in a row without effect end the run (WD-87)
Notify = Callable[[sa.Connection, str, str, Mapping[str, object]], None]


class DreamJob:
    """The handler. `notify` is called in the transaction that ends the job: scope, key of a text, values."""

    def __init__(
        self,
        *,
        db: Database,
        models: Models,
        config: Callable[[], Config],
        clock: Callable[[], datetime],
        reading: DreamReading,
        asking: DreamAsking,
        writing: DreamWriting,
        notify: Notify,
    ) -> None:
        self._db = db
        self._models = models
        self._config = config
        self._clock = clock
        self._reading = reading
        self._asking = asking
        self._writing = writing
        self._notify = notify

    async def run(self, job: Job, context: JobContext) -> JobResult:
        """Payload: of a night `date`; by hand `days`, `force`; both `zone`. The row's date is the dream's, whatever the clock says when it runs."""
        scope = parse_scope(job.scope)
        recovered = await self._writing.recover(job.scope, context.write)
        if not can_dream(self._config()):
            return JobResult(skipped=NO_MODEL)
        night = Night(
            trigger="manual" if "days" in job.payload else "night",
            today=date.fromisoformat(await context.settled("today", lambda connection: self._today(connection, job))),
            force=bool(job.payload.get("force")),
            days=int(job.payload.get("days", 0)),
            changes=[each for dream in recovered for each in dream.changes],
            dreams=len(recovered),
        )
        try:
            async with self._models.helper(chosen=self._config().dream.model) as model:
                await self._parts(scope, night, model, context, str(job.payload.get("person", "")))
        except (DreamFailed, FileUnreadable) as error:
            if self._tells(night, failed=True):
                await context.write(lambda connection: self._notify(connection, job.scope, "dream_failed", {}))
            raise DreamFailed(str(error)) from error
        return self._result(job, night)

    async def _parts(self, scope: Scope, night: Night, model: ChatModel, context: JobContext, person_id: str) -> None:
        idle = 0
        for number in range(PARTS_MAX):
            settings = self._config().dream
            ends = asyncio.get_running_loop().time() + settings.max_seconds
            budget = Budget(str(number), settings.max_calls, settings.max_input_tokens, ends)
            before = len(night.changes)
            done = False
            for again in range(RERUNS_MAX + 1):
                try:
                    done = await self._part(scope, night, model, context, budget, part_name=f"answer-{number}-{again}", person_id=person_id)
                except BudgetGone:
                    if not again:
                        raise
                    night.overtaken = True  # another run costs more than is left: it waits for the next night
                    break
                if not night.overtaken:
                    break
            idle = 0 if len(night.changes) > before else idle + 1
            if not done or not night.waiting or night.refused or night.overtaken or idle >= IDLE_MAX:
                return

    async def _part(
        self, scope: Scope, night: Night, model: ChatModel, context: JobContext, budget: Budget, *, part_name: str, person_id: str
    ) -> bool:
        """One dream; whether there was anything to do."""
        night.overtaken = False
        seen = await self._reading.look(scope, new_only=night.trigger == "night")
        chosen = night.left_of(self._chosen(seen, night))
        last = await self._db.read(lambda connection: dream_store.last(connection, str(scope)))
        add_only = last is not None and last.state == "refused"
        policy, names = await self._reading.policy(scope, [line for day in chosen for line in day.lines], add_only=add_only)
        if not any(day.lines for day in chosen):
            night.waiting = False
            return False
        settings = self._config().dream
        room = self._asking.room(model, seen.material((), names), policy, settings.max_input_tokens)
        days = part(chosen, room, count)
        if not any(day.lines for day in days):
            raise DreamFailed("MEMORY.md and one day's notes have no room in the model's window or in dream.max_input_tokens")
        night.waiting = sum(len(day.lines) for day in days) < sum(len(day.lines) for day in chosen) or len(chosen) == DATES_MAX
        key = batch_key(str(scope), days)
        taken = {(day.date, line.hash) for day in days for line in day.lines}
        if not night.force and await self._db.read(lambda connection: dream_store.succeeded(connection, str(scope), key)):
            night.taken |= taken
            return True
        given = seen.material(days, names)
        answer = await self._asking.answer(model, given, policy, budget, context, part=part_name, person_id=person_id)
        judged = judge(answer, given, policy)
        dream = self._dream(scope, night, seen, given, judged, answer.diary, key, budget.made, zone=await self._db.read(self._zone(scope)))
        try:
            settled = await self._settle(scope, night, seen, given, judged, dream, context)
        except ForgottenMeanwhile:
            await context.write(lambda connection: drop_paid(connection, context.id))
            night.overtaken, settled = True, False
        if settled:
            night.taken |= taken
            night.dreams += 1
        return True

    async def _settle(
        self, scope: Scope, night: Night, seen: Seen, given: Material, judged: Judged, dream: Dream, context: JobContext
    ) -> bool:
        """Write, book or refuse; whether it is done."""
        settings, now = self._config().dream, self._clock()
        commit = unless_forgotten(context.write, str(scope), seen.forgettings)
        if not judged.changes or dream.staged is None:
            quiet = replace(dream, state="done", staged=None, diary="", ended_at=now)

            def book(connection: sa.Connection) -> None:
                dream_store.put(connection, quiet, now)
                dream_store.settle(connection, quiet, now)

            await commit(book)
            night.changes += dream.changes
            return True
        found = refusal(
            seen.text, dream.staged, given, judged, loss_percent=settings.max_loss_percent, shrink_percent=settings.max_shrink_percent
        )
        if found is not None:
            night.proposal_id = await commit(lambda connection: refuse(connection, dream, found, now))
            night.refused = found
            return False
        if await self._writing.write(dream, context.write, seen.forgettings):
            night.changes += dream.changes
            return True
        night.overtaken = True
        return False

    def _dream(
        self, scope: Scope, night: Night, seen: Seen, given: Material, judged: Judged, narrative: str, key: str, calls: int, *, zone: Any
    ) -> Dream:
        try:
            staged = rewrite(seen.text, judged) if judged.changes else None
        except TextBroken as error:
            raise DreamFailed(str(error)) from error
        changes = happened(judged)
        language = guess(narrative + "".join(each.text for each in changes))
        words = {name: say(language, key) for name, key in DIARY_WORDS.items()}
        dream_id = dream_store.new_id()
        return Dream(
            id=dream_id,
            scope=str(scope),
            local_date=night.today.isoformat(),
            state="applying",
            trigger=night.trigger,
            batch_key=key,
            old_hash=seen.live.hash if seen.live else "",
            new_hash=file_hash(staged) if staged is not None else "",
            staged=staged,
            booking=booking(judged, given, dream_id),
            changes=changes,
            diary=diary_section(f"{self._clock().astimezone(zone):%H:%M}", narrative, changes, words),
            calls=calls,
        )

    def _chosen(self, seen: Seen, night: Night) -> tuple[Day, ...]:
        if night.trigger == "night":
            return unused(seen.days, night.today)
        there = {day.date: day for day in seen.days}
        dates = [night.today - timedelta(days=back) for back in reversed(range(night.days))]
        return tuple(there.get(on, Day(date=on, lines=())) for on in dates)

    def _zone(self, scope: Scope) -> Callable[[sa.Connection], Any]:
        return lambda connection: zone_of(connection, str(scope), self._config().timezone)

    def _today(self, connection: sa.Connection, job: Job) -> str:
        if found := str(job.payload.get("date") or job.local_date):
            return found
        return local_date(self._clock(), zone_of(connection, job.scope, self._config().timezone)).isoformat()

    # -- what is told ---------------------------------------------------------------------------------------------------

    def _result(self, job: Job, night: Night) -> JobResult:
        key, values = night.news()
        told = self._tells(night, failed=night.refused is not None or night.overtaken)

        def tell(connection: sa.Connection) -> None:
            if told:
                self._notify(connection, job.scope, key, values)

        if night.overtaken or not (night.dreams or night.refused):
            return JobResult(skipped=CHANGED if night.overtaken else NOTHING_NEW, commit=tell)
        refused = {"refused": {"lost": night.refused.lost, "total": night.refused.total, "limit": night.refused.limit}} if night.refused else {}
        return JobResult(output={**numbers(night.changes), "dreams": night.dreams, "waiting": night.waiting, **refused}, commit=tell)

    def _tells(self, night: Night, *, failed: bool) -> bool:
        """As `dream.notify` says (WD-78). A dream asked for by hand is told where it was asked for: by the command that waits for it, on the page."""
        wanted = self._config().dream.notify
        return night.trigger == "night" and ((wanted == "always" and night.dreams > 0) or (wanted != "never" and failed))
