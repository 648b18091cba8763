"""Entries of a chat as people look after them: short recaps by the helper or by hand, each switched on or off (RS-81 to RS-95).

Nothing is summarised here: what must be made is handed to the jobs of `entries`. Every method is for whoever may look after the chat (`ChatReach`);
what of it is not for the person's eyes is as if it were not there.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway import windows
from gateway.chat_reach import NotYourChat
from gateway.config import Config
from gateway.entries import jobs as entries
from gateway.entries import range as entry_range
from gateway.entries import settings as entry_settings
from gateway.entries import view as entry_view
from gateway.entries.range import RangeRefused
from gateway.entries.settings import EntrySettings, NoSuchTemplate, SettingRefused
from gateway.entries.templates import Template, TemplateDesk
from gateway.entries.view import EntriesView, Entry, Progress
from gateway.jobs.parts import drop_progress
from gateway.jobs.table import cancel_job, enqueue, find_job, run_now
from gateway.summaries.summarist import Summarist
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.extract import shortened
from memory.recall import entry_rows, summary_rows, uncovered
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State, Summary

__all__ = [
    "Changed", "EntriesView", "Entry", "EntryDesk", "EntrySettings", "NoSuchEntry", "NoSuchTemplate", "NotPossible", "NotYourChat", "Progress",
    "RangeRefused", "SettingRefused", "Template",
]  # fmt: skip

TITLE_MAX, TEXT_MAX = 200, 40_000  # characters


class NotPossible(Exception):
    """Nothing can be stored here. `reason`: `record_rule` or `no_model`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Changed(Exception):
    """Somebody, or a job, changed the entry since it was read: nothing was written."""


class NoSuchEntry(LookupError):
    """There is no such entry in this chat, or it is not for this person's eyes."""


class EntryDesk(TemplateDesk):
    """Every method that names a chat raises NotYourChat when it is gone. The shared templates: see `TemplateDesk`."""

    def __init__(
        self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], summarist: Summarist, wake: Callable[[], None]
    ) -> None:
        super().__init__(db=db, clock=clock)
        self._config = config
        self._summarist = summarist
        self._wake = wake

    async def listing(self, chat_id: str, person_id: str) -> EntriesView:
        """The entries of a chat, the oldest talk first, those too that are switched off or wait."""

        def look(connection: sa.Connection) -> EntriesView:
            chat = _chat(connection, chat_id)
            has_model = bool(self._summarist.entry_account(chat))
            return entry_view.view(connection, self._config(), chat, person_id, self._clock(), has_model=has_model)

        return await self._db.read(look)

    # -- making

    async def generate(self, chat_id: str, person_id: str, *, last: int | None = None, first: int | None = None, to: int | None = None) -> int:
        """Ask for an entry of the `last` messages, or of those numbered `first` to `to`; neither: of as many as the chat's `last_n`. It is made by a
        job, whose id this is. Raises RangeRefused, NotPossible."""

        def work(connection: sa.Connection) -> int:
            chat = _chat(connection, chat_id)
            self._refuse(chat, model=True)
            meant = entry_range.chosen(connection, self._config(), chat, person_id, last=last, first=first, to=to)
            return self._enqueue(connection, chat, entries.ASKED, person=person_id, first=meant[0].seq, last=meant[-1].seq)

        job = await self._db.write(work)
        self._wake()
        return job

    async def write(
        self,
        chat_id: str,
        person_id: str,
        *,
        title: str,
        text: str,
        last: int | None = None,
        first: int | None = None,
        to: int | None = None,
    ) -> Entry:
        """An entry in a person's own words; it may be empty to be filled later, and is in force at once. Of messages of several audiences it stands
        for those of the first one's, and is for that one. Raises RangeRefused, NotPossible."""

        def work(connection: sa.Connection) -> Entry:
            chat = _chat(connection, chat_id)
            self._refuse(chat, model=False)
            meant = entry_range.chosen(connection, self._config(), chat, person_id, last=last, first=first, to=to)
            audience = meant[0].audience
            sources = [each.seq for each in meant if each.audience == audience]
            now = self._clock()
            made = summary_rows.add(connection, NewSummary(
                conversation_id=chat.id, kind=Kind.ENTRY, text="", sources=sources, audience=audience, origin="written",
            ), now)  # fmt: skip
            summary_rows.edit(connection, made, now, text=_text(text), title=_title(title))
            return self._one(connection, chat, person_id, made)

        return await self._db.write(work)

    # -- changing

    async def change(self, chat_id: str, person_id: str, entry_id: int, *, title: str | None, text: str | None, based_on: str = "") -> Entry:
        """`based_on`: the `updated_at` that was read, ISO; empty: whatever it is. Raises NoSuchEntry, Changed."""

        def work(connection: sa.Connection) -> Entry:
            chat = _chat(connection, chat_id)
            old = entry_view.readable(connection, chat_id, person_id, [entry_id])
            if not old:
                raise NoSuchEntry(entry_id)
            if based_on and based_on != old[0].updated_at.isoformat():
                raise Changed(entry_id)
            told = None if text is None else _text(text)
            summary_rows.edit(connection, entry_id, self._clock(), text=told, title=None if title is None else _title(title))
            return self._one(connection, chat, person_id, entry_id)

        return await self._db.write(work)

    async def switch(self, chat_id: str, person_id: str, ids: Collection[int] | None, *, enabled: bool) -> int:
        """Switch these entries, or all (None); those that wait for a yes stay so. How many changed. All are on: not those that stand in another. One
        that was withheld comes back when a person has written it anew; one that is stale, when that was done."""

        def work(connection: sa.Connection) -> int:
            chat = _chat(connection, chat_id)
            apart = entry_rows.replaced(connection, chat_id) if ids is None and enabled else set[int]()
            rows = entry_view.readable(connection, chat_id, person_id, ids)
            found = [each for each in rows if each.id not in apart and _can_be(each, enabled=enabled)]
            if enabled:
                summary_rows.bring_back(connection, found, self._clock())
            else:
                summary_rows.set_state(connection, [each.id for each in found], State.INACTIVE, self._clock())
            self._merge_if_many(connection, chat)
            return len(found)

        changed = await self._db.write(work)
        self._wake()
        return changed

    async def delete(self, chat_id: str, person_id: str, ids: Collection[int]) -> int:
        """What they hid is shown again (RS-94). How many went; those that a merged one was made from stay, switched off."""

        def work(connection: sa.Connection) -> int:
            found = [each.id for each in entry_view.readable(connection, chat_id, person_id, ids)]
            summary_rows.delete(connection, found)
            return len(found)

        return await self._db.write(work)

    async def decide(self, chat_id: str, person_id: str, entry_id: int, *, accept: bool) -> bool:
        """Yes or no to an entry that waits (RS-85): it counts from now on, or is gone. False when that was settled already."""

        def work(connection: sa.Connection) -> bool:
            chat = _chat(connection, chat_id)
            if not any(each.state is State.WAITING for each in entry_view.readable(connection, chat_id, person_id, [entry_id])):
                return False
            if accept:
                summary_rows.set_state(connection, [entry_id], State.ACTIVE, self._clock())
                self._merge_if_many(connection, chat)
            else:
                summary_rows.delete(connection, [entry_id])
            return True

        settled = await self._db.write(work)
        self._wake()
        return settled

    async def configure(self, chat_id: str, changes: Mapping[str, Any]) -> EntrySettings:
        """The chat's own values, by the names of `EntrySettings`; None for the gateway's. Raises SettingRefused, NoSuchTemplate."""

        def work(connection: sa.Connection) -> EntrySettings:
            changed = entry_settings.change(connection, self._config(), _chat(connection, chat_id), changes)
            return entry_settings.read(connection, self._config(), changed)

        return await self._db.write(work)

    # -- a whole old chat

    async def backfill(self, chat_id: str) -> None:
        """Entries for all that no entry stands for, by a job in batches (RS-87). One that runs goes on. Raises NotPossible."""

        def work(connection: sa.Connection) -> None:
            chat = _chat(connection, chat_id)
            self._refuse(chat, model=True)
            row = entry_view.backfill_job(connection, chat_id)
            if row is not None and row.state in ("done", "cancelled", "parked"):
                drop_progress(connection, row.id)
            self._enqueue(connection, chat, entries.BACKFILL)

        await self._db.write(work)
        self._wake()

    async def stop(self, chat_id: str) -> bool:
        """Stop the backfill; what is done stays. False when none runs."""

        def work(connection: sa.Connection) -> bool:
            row = entry_view.backfill_job(connection, chat_id)
            return row is not None and cancel_job(connection, row.id)

        return await self._db.write(work)

    # -- inside

    def _refuse(self, chat: Conversation, *, model: bool) -> None:
        if not windows.keeps_summaries(self._config(), chat):
            raise NotPossible("record_rule")
        if model and not self._summarist.entry_account(chat):
            raise NotPossible("no_model")

    def _enqueue(self, connection: sa.Connection, chat: Conversation, what: str, **payload: object) -> int:
        """The id of the job."""
        job = entries.job_of(what, chat.id, uncovered.scope_of(connection, chat.id), **payload)
        row = find_job(connection, job.kind, job.key)
        if row is not None and row.state == "running":  # a second click is no second wish
            return row.id
        number = enqueue(connection, job, again=True)
        run_now(connection, number)  # a back-off is not for what a person asks for
        return number

    def _merge_if_many(self, connection: sa.Connection, chat: Conversation) -> None:
        entries.merge_if_many(connection, self._config(), chat, uncovered.scope_of(connection, chat.id))

    def _one(self, connection: sa.Connection, chat: Conversation, person_id: str, entry_id: int) -> Entry:
        return entry_view.listed(connection, self._config(), chat, person_id, self._clock(), [entry_id])[0]


def _chat(connection: sa.Connection, chat_id: str) -> Conversation:
    chat = conversations.conversation(connection, chat_id)
    if chat is None:
        raise NotYourChat(chat_id)
    return chat


def _can_be(row: Summary, *, enabled: bool) -> bool:
    if not enabled:
        return row.state is State.ACTIVE
    return row.state is State.INACTIVE or (row.state is State.WITHHELD and row.hand_edited and not row.stale)


def _title(title: str) -> str:
    return shortened(" ".join(title.replace("\0", "").split()), TITLE_MAX)


def _text(text: str) -> str:
    told = text.replace("\0", "").strip()
    if len(told) > TEXT_MAX:
        raise SettingRefused(f"text: at most {TEXT_MAX:,} characters")
    return told
