"""What the results of commands say when the work is done (lane B): one function for each kind of result, handed to `gateway.followups`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import date
from typing import Any

from channels.message import Account, Address
from channels.port import Capabilities
from gateway.attachments import Attachments
from gateway.buttons import Question, deciding
from gateway.commands.dreams import within
from gateway.dreams.night import CHANGED, NO_MODEL, NOTHING_NEW, REFUSED
from gateway.dreams.wishes import Dreaming
from gateway.entries import view as entry_view
from gateway.entries.jobs import ASKED
from gateway.followups import Told, Wanted, Words
from gateway.job_words import failure, why
from gateway.jobs.table import JobRow
from gateway.language import say
from gateway.summaries.summarist import NO_MODEL as NO_TEXT_MODEL
from gateway.summaries.summarizing import UNCHANGED
from memory import conversations, dream_store
from memory.database import Database
from memory.dream_guards import Refusal
from memory.file_errors import FileUnreadable
from memory.recall.summary_rows import State
from memory.scopes import parse_scope

_SKIPS = {NOTHING_NEW: "dream_nothing_new", NO_MODEL: "dream_no_model", CHANGED: "dream_overtaken"}
_DAY_REASONS = ("done", "no_real_messages", "not_over_yet", "record_rule", "no_model")


class Results:
    """`page`: the address of the web page; `can`: what the channel of an account can carry."""

    def __init__(
        self,
        *,
        db: Database,
        dreams: Dreaming,
        attachments: Attachments,
        page: Callable[[], str],
        can: Callable[[Account], Capabilities | None],
    ) -> None:
        self._db = db
        self._dreams = dreams
        self._attachments = attachments
        self._page = page
        self._can = can

    @property
    def words(self) -> Mapping[str, Words]:
        return {
            "dream": self.dream,
            "summary": self.summary,
            "backfill": self.backfill,
            "rebuild": self.rebuild,
            "export": self.export,
            "chat_summaries": self.chat_summaries,
            "entries": self.entries,
        }

    async def dream(self, wanted: Wanted, rows: Sequence[JobRow]) -> Told:
        """`+added ~changed −dropped` with what the diary tells, or why there was none."""
        row = next(iter(rows), None)
        if row is not None and row.state == "waiting":
            return Told(text=say(wanted.language, "dream_later", error=why(wanted.language, row)))
        if row is None or row.state != "done":
            return Told(text=say(wanted.language, "dream_failed"))
        result = row.result or {}
        if "skipped" in result:
            return Told(text=say(wanted.language, _SKIPS.get(str(result["skipped"]), "dream_nothing_new")))
        if "refused" in result:
            last = await self._db.read(lambda connection: dream_store.last(connection, row.job.scope))
            refusal = Refusal.of_reason(last.reason) if last else None
            return Told(text=say(wanted.language, REFUSED[refusal.kind if refusal else "lines"], **result["refused"], id=""))
        numbers = {name: result.get(name, 0) for name in ("added", "changed", "dropped", "candidates")}
        told = await self._diary(row)
        key = "dream_done_waiting" if numbers["candidates"] else "dream_done"
        return Told(text="\n\n".join([say(wanted.language, key, **numbers), *([told] if told else [])]))

    async def _diary(self, row: JobRow) -> str:
        """The newest section of the dream's day."""
        try:
            found = await self._dreams.diary(parse_scope(row.job.scope), date.fromisoformat(row.job.payload["date"]))
        except FileUnreadable:
            return ""
        return within(found[1].rpartition("\n## ")[2].partition("\n")[2]) if found else ""

    async def summary(self, wanted: Wanted, rows: Sequence[JobRow]) -> Told:
        return Told(text=self._summarised(wanted.language, rows[0]) if rows else say(wanted.language, "result_gone"))

    async def backfill(self, wanted: Wanted, rows: Sequence[JobRow]) -> Told:
        """A line for each date, newest first, with what it came to (RS-167)."""
        dates = sorted(rows, key=lambda row: row.job.local_date, reverse=True)
        return Told(text="\n".join(f"- {row.job.local_date}: {self._summarised(wanted.language, row)}" for row in dates))

    def _summarised(self, language: str, row: JobRow) -> str:
        result = row.result or {}
        if row.state != "done":
            return say(language, "summary_failed", error=why(language, row))
        if result.get("skipped") == UNCHANGED:
            return say(language, "summary_unchanged")
        return say(language, "summary_done", points=result.get("bullets", 0), dates=", ".join(result.get("dates", ())) or "–")

    async def chat_summaries(self, wanted: Wanted, rows: Sequence[JobRow]) -> Told:
        """Summaries of a chat that were asked for: each day with what became of it (RS-167)."""
        lines = [
            say(wanted.language, "summary_missing", date=row.job.payload["date"], reason=_of_day(wanted.language, row))
            for row in sorted(rows, key=lambda row: str(row.job.payload.get("date", "")))
            if "date" in row.job.payload
        ]
        failed = next((row for row in rows if "date" not in row.job.payload and row.state != "done"), None)
        if failed:
            lines.append(say(wanted.language, "chat_summaries_failed", error=why(wanted.language, failed)))
        elif any("date" not in row.job.payload for row in rows):
            skipped = [str((row.result or {}).get("skipped", "")) for row in rows]
            lines.append(say(wanted.language, "chat_summaries_no_model" if NO_TEXT_MODEL in skipped else "chat_summaries_done"))
        return Told(text="\n".join(lines))

    async def entries(self, wanted: Wanted, rows: Sequence[JobRow]) -> Told:
        """An entry that was asked for, or why there is none; one that waits with how it is settled by its number (RS-85). Before others its words are
        not said: they may be for the asker alone."""
        row, values = next(iter(rows), None), wanted.values
        if row is None or row.state != "done":
            return Told(text=say(wanted.language, "chat_summaries_failed", error=why(wanted.language, row)))
        made = await self._db.read(lambda connection: entry_view.readable(connection, wanted.conversation_id, str(values["person"]), None))
        lines: list[str] = []
        questions: list[Question] = []
        for each in sorted((each for each in made if each.id > values["after"] and each.origin == ASKED), key=lambda each: each.id):
            waits = each.state is State.WAITING
            commands = {verb: f"{values[verb]} {each.id}" for verb in ("approve", "decline")}
            lines.append(say(wanted.language, "entries_result_waits" if waits else "entries_result", id=each.id, **commands))
            lines += [] if values["shared"] else [within(each.text)]
            questions += [deciding(wanted.language, each.id, approve=values["approve"], decline=values["decline"])] if waits else []
        skipped = str((row.result or {}).get("skipped", ""))
        text = "\n".join(lines) or say(wanted.language, "chat_summaries_no_model" if skipped == NO_TEXT_MODEL else "entries_result_none")
        return Told(text=text, questions=tuple(questions), person=str(values["person"]))

    async def rebuild(self, wanted: Wanted, rows: Sequence[JobRow]) -> Told:
        row = next(iter(rows), None)
        if row is None or row.state != "done" or row.result is None:
            return Told(text=say(wanted.language, "rebuild_failed", error=why(wanted.language, row)))
        (files_before, chunks_before), (files, chunks) = row.result["before"], row.result["after"]
        text = say(wanted.language, "rebuilt", files=files, chunks=chunks, files_before=files_before, chunks_before=chunks_before)
        if row.result["vectors"]:
            text = f"{text} {say(wanted.language, 'rebuilt_words_only', reason=row.result['vectors'])}"
        return Told(text=text)

    async def export(self, wanted: Wanted, rows: Sequence[JobRow]) -> Told:
        """A link on the page; elsewhere the file itself, if the channel can carry it, and the link."""
        row = next(iter(rows), None)
        chat = await self._db.read(lambda connection: conversations.conversation(connection, wanted.conversation_id))
        if row is None or row.state != "done" or row.result is None or chat is None:
            return Told(text=say(wanted.language, "export_failed"))
        made: Mapping[str, Any] = row.result
        can = self._can(Address.parse(chat.key.removesuffix(f"#{chat.id}")).account)
        on_page = can is None or can.log_is_delivery
        address = f"{'' if on_page else self._page()}/api/attachments/{made['file']}"
        text = say(wanted.language, "export_done", files=made["files"], name=made["name"], address=address)
        if made["left_out"]:
            text = f"{text}\n{say(wanted.language, 'export_left_out', paths=', '.join(made['left_out']))}"
        stored = None
        if can is not None and not on_page and can.media_max_bytes >= int(made["size"]):
            stored = await self._attachments.find(str(made["file"]), str(row.job.payload["person"]))
        return Told(text=text, file=stored.attachment if stored else None)


def _of_day(language: str, row: JobRow) -> str:
    """What became of a day: made, or one of the reasons."""
    if row.state != "done":
        return say(language, "day_reason_failed", error=why(language, row))
    skipped = str((row.result or {}).get("skipped", ""))
    reason = skipped.replace(" ", "_") or "done"
    return say(language, f"day_reason_{reason}" if reason in _DAY_REASONS else "day_reason_failed", error=failure(language, reason))
