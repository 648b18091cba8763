"""Saved memories as people manage them: look, add, edit, pin, wake, limit, delete, clear in two steps, save drafts, take back what a program did.

Every use case is one transaction behind a check of rights: `allowed` says whether the asker manages a list (SM-56, SM-74). A row of another list is
not there. What a person may do is the same on the page and in chats.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias, TypeVar

import sqlalchemy as sa

from memory.database import Database
from memory.saved import clearing, journal, store, stored, transfer, undo
from memory.saved.clearing import Cleared, Question
from memory.saved.journal import Entry
from memory.saved.rows import ListKey, ListKind, Memory, Origin
from memory.saved.transfer import Preview
from memory.saved.undo import Undone
from memory.saved.writing import Batch, Limits, New, Outcome, Result
from memory.schema import people

T = TypeVar("T")
Allowed: TypeAlias = Callable[[ListKey], Awaitable[bool]]

CHANGES_SHOWN = 50

_NAMES = sa.select(people.c.id, people.c.name).where(people.c.id.in_(sa.bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Birth:
    """How a person's new rows begin. `private_origin`: not made in a place that others share (SM-15); `channel_ids` is of a space's row that is made
    where not all of the space can read (SM-16); `source`: where it was made."""

    private_origin: bool = True
    channel_ids: tuple[str, ...] = ()
    source: Mapping[str, object] | None = None


ON_THE_PAGE = Birth(source={"platform": "web"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What a person wants of a row; None leaves it. `based_on`: the revision that they saw."""

    content: str | None = None
    tags: tuple[str, ...] | None = None
    channel_ids: tuple[str, ...] | None = None
    private: bool | None = None
    based_on: str = ""


class SavedDesk:
    """`limits`, `ageing_on`: as they are now. `on_written` is told after every commit that rows have changed (SM-55, SM-96)."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        limits: Callable[[], Limits],
        ageing_on: Callable[[], bool],
        on_written: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._limits = limits
        self._ageing_on = ageing_on
        self._on_written = on_written

    @property
    def limits(self) -> Limits:
        return self._limits()

    @property
    def ageing_on(self) -> bool:
        """False: nothing sleeps or is forgotten for a new row (SM-98)."""
        return self._ageing_on()

    # -- looking

    async def rows(self, keys: Sequence[ListKey]) -> list[Memory]:
        """Everything of these lists, by id. The asker's right is the caller's to check."""
        return await self._db.read(lambda connection: stored.rows_of(connection, keys))

    async def row(self, memory_id: int, allowed: Allowed) -> Memory | None:
        found = await self._db.read(lambda connection: stored.row(connection, memory_id))
        return found if found is not None and await allowed(found.key) else None

    async def authors(self, rows: Collection[Memory]) -> dict[str, str]:
        """Names of the people who wrote them."""
        ids = {each for row in rows for each in (row.author_id, row.updated_by) if each.startswith("p-")}
        if not ids:
            return {}
        return await self._db.read(lambda connection: {row.id: row.name for row in connection.execute(_NAMES, {"ids": sorted(ids)})})

    # -- one row

    async def add(self, person_id: str, key: ListKey, content: str, birth: Birth = ON_THE_PAGE, *, evict: int | None = None) -> Result:
        """As `store.add`: protected and unpinned (SM-56); a full list names its candidate and acts only when `evict` agrees to that very row."""
        new = _new(person_id, key, content, birth, Origin.PANEL)
        return await self._write(lambda c, now: store.add(c, new, now, limits=self._limits(), ageing_on=self._ageing_on(), evict=evict))

    async def change(self, person_id: str, memory_id: int, change: Change, allowed: Allowed) -> Result:
        """All that is wanted, or nothing. As `store.change`; only a new text moves the row's date (SM-5)."""

        def work(connection: sa.Connection, now: datetime) -> Result:
            seen = stored.row(connection, memory_id)
            if seen is None:
                return Result(outcome=Outcome.UNKNOWN_ID)
            if change.based_on and change.based_on != seen.revision:
                return Result(outcome=Outcome.CHANGED, memory=seen, present_text=seen.content)
            results: list[Result] = []
            if change.content is not None:
                result = store.change(connection, memory_id, change.content, now, by=person_id, limits=self._limits())
                if result.outcome not in (Outcome.UPDATED, Outcome.UNCHANGED):
                    return result
                results.append(result)
            if change.tags is not None:
                results.append(store.set_tags(connection, memory_id, change.tags))
            if change.channel_ids is not None:
                results.append(store.set_channels(connection, memory_id, change.channel_ids))
            if change.private is not None:
                results.append(store.set_private(connection, memory_id, change.private))
            updated = any(each.outcome is Outcome.UPDATED for each in results)
            return Result(outcome=Outcome.UPDATED if updated else Outcome.UNCHANGED, memory=stored.row(connection, memory_id))

        return await self._on(memory_id, allowed, work)

    async def remove(self, memory_id: int, allowed: Allowed) -> Result:
        return await self._on(memory_id, allowed, lambda c, now: store.remove(c, memory_id, now))

    async def pin(self, person_id: str, memory_id: int, allowed: Allowed) -> Result:
        return await self._on(memory_id, allowed, lambda c, now: store.pin(c, memory_id, now, by=person_id, limits=self._limits()))

    async def unpin(self, person_id: str, memory_id: int, allowed: Allowed) -> Result:
        return await self._on(memory_id, allowed, lambda c, now: store.unpin(c, memory_id, now, by=person_id, limits=self._limits()))

    async def wake(self, memory_id: int, allowed: Allowed) -> Result:
        return await self._on(memory_id, allowed, lambda c, now: store.wake(c, memory_id, now))

    # -- several rows

    async def save_drafts(self, person_id: str, key: ListKey, texts: Sequence[str], birth: Birth, *, origin: Origin) -> Batch:
        """All or none (SM-60): generated ones unpinned (SM-57), those of a talk pinned (SM-58); either way protected."""
        news = [_new(person_id, key, text, birth, origin) for text in texts]
        return await self._write(lambda c, now: store.add_all(c, news, now, limits=self._limits()))

    async def ask_clear(self, person_id: str, key: ListKey) -> Question:
        """The first question of clearing a list (SM-76)."""
        now = self._clock()
        return await self._db.write(lambda c: clearing.ask(c, person_id, key, now))

    async def clear(self, person_id: str, key: ListKey, token: str, *, step: int) -> Cleared:
        """Yes to the question of that step. Raises ClearingExpired for anything that is not it (SM-77)."""
        answer = clearing.clear if step == 1 else clearing.clear_pins
        return await self._write(lambda c, now: answer(c, token, person_id, key, now))

    async def decline_clear(self, person_id: str, key: ListKey, token: str) -> None:
        now = self._clock()
        await self._db.write(lambda c: clearing.decline(c, token, person_id, key, now))

    async def bring_in(self, person_id: str, wish: transfer.Wish) -> Preview:
        """Import, all or nothing. Raises ImportRefused."""
        return await self._write(lambda c, now: transfer.bring_in(c, wish, now, by=person_id, limits=self._limits()))

    # -- what programs did

    async def changes(self, keys: Collection[ListKey], limit: int = CHANGES_SHOWN) -> list[Entry]:
        """The latest operations of programs on these lists that can still be taken back, newest first (SM-72)."""
        return await self._db.read(lambda c: journal.of_lists(c, keys, limit=limit))

    async def undo(self, entry_id: int, allowed: Allowed) -> Undone | None:
        """Take one operation back; None when its entry is not theirs, ended, or was taken back before (SM-72)."""
        entry = await self._db.read(lambda c: journal.entry(c, entry_id))
        if entry is None or not await allowed(entry.key):
            return None
        return await self._write(lambda c, now: undo.undo_operation(c, entry_id, now, limits=self._limits()))

    # -- inside

    async def _on(self, memory_id: int, allowed: Allowed, work: Callable[[sa.Connection, datetime], Result]) -> Result:
        if await self.row(memory_id, allowed) is None:
            return Result(outcome=Outcome.UNKNOWN_ID)
        return await self._write(work)

    async def _write(self, work: Callable[[sa.Connection, datetime], T]) -> T:
        now = self._clock()
        done = await self._db.write(lambda connection: work(connection, now))
        self._on_written()
        return done


def _new(person_id: str, key: ListKey, content: str, birth: Birth, origin: Origin) -> New:
    return New(
        key=key,
        content=content,
        origin=origin,
        author_kind="person",
        author_id=person_id,
        protected=True,
        pinned=origin is Origin.FROM_CHAT,
        private_origin=birth.private_origin,
        channel_ids=birth.channel_ids if key.kind is ListKind.SPACE else (),
        source=birth.source,
    )
