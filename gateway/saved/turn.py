"""What saved memory does for one reply, before the first model call (steps 1 to 6 of the turn order in the rules of saved memory).

Whose rows count here, which stand in the head, the one search, which of its matches join the tail, what ages; then the tools that write. Nothing of
it fails a reply: without the database there are no rows, without a search there is no tail and no counter changes (SM-34, SM-93).
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from agent.characters import Character
from agent.tools.port import Tool
from agent.turn import Record
from gateway.config import Config
from gateway.saved import place as saved_place
from gateway.saved.report import report
from gateway.saved.tools import Facts, TurnMemories
from gateway.turn_store import TurnStart
from memory.database import Database
from memory.errors import StoreError
from memory.query import Query
from memory.saved import ageing, decay_store, stored
from memory.saved.found import NOT_SEARCHED, Found, Searched
from memory.saved.journal import Writer
from memory.saved.lineages import lineages, make_lineages, names_of
from memory.saved.lists import Where, counted, in_effect
from memory.saved.matching import query_of
from memory.saved.policy import OFF, MemoryPolicy
from memory.saved.printing import Names
from memory.saved.searching import SavedSearch
from memory.saved.shown import NOTHING_SHOWN, Shown
from memory.saved.split import Head, head
from memory.saved.visible import Seen, look
from memory.saved.writing import Limits
from memory.schema import people

log = logging.getLogger(__name__)

_NAMES = sa.select(people.c.id, people.c.name).where(people.c.id.in_(sa.bindparam("ids", expanding=True)))


@dataclass(frozen=True, slots=True, kw_only=True)
class SavedTurn:
    """What one reply has of saved memory. `where` is None where nothing is read; `shown` goes into the prompt, `tools` to the model."""

    policy: MemoryPolicy = OFF
    where: Where | None = None
    seen: Seen = field(default_factory=Seen)
    head: Head = field(default_factory=Head)
    found: Found = NOT_SEARCHED
    shown: Shown = NOTHING_SHOWN
    writer: Writer = field(default_factory=lambda: Writer(actor="tool"))
    tools: tuple[Tool, ...] = ()

    def report(self, record: Record) -> dict[str, Any]:
        """For the receipt: what was sent and why, what was not and why not (WO-15, SM-28)."""
        in_space = self.where is not None and self.where.space is not None
        return report(self.seen, self.head, self.found, self.shown, record.rows_left_out, in_space=in_space)


NO_SAVED_TURN = SavedTurn()


@dataclass(frozen=True, slots=True, kw_only=True)
class Asker:
    """Who answers, and how. `model`: its name; `can_call`: whether it can use tools; `foreign`: whether text of others entered the run by now."""

    character: Character
    model: str
    can_call: bool
    record: Record
    foreign: Callable[[], bool]


class SavedTurns:
    """`on_written`: rows have changed, for whoever makes their vectors."""

    def __init__(
        self, *, db: Database, clock: Callable[[], datetime], config: Callable[[], Config], search: SavedSearch, on_written: Callable[[], None]
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._search = search
        self._on_written = on_written

    def query(self, start: TurnStart, *others: str) -> Query:
        """What this reply asks all indexes: the newest message, and the texts `others` that documents are searched with (SM-29)."""
        return Query(self._words(start), *others, time_limit_s=self._config().recall.time_limit_s)

    async def prepare(self, start: TurnStart, asker: Asker, query: Query) -> SavedTurn:
        """For one reply by one character. The search's changes are committed when this returns (SM-43)."""
        policy = saved_place.policy_of(self._config(), start)
        if not policy.read_rows and not policy.write_rows:
            return NO_SAVED_TURN
        now = self._clock()
        try:
            turn = await self._looked(start, asker.character, policy, now)
        except StoreError as error:
            log.warning("saved memories cannot be read: %s", error)
            return NO_SAVED_TURN
        if policy.read_rows:
            turn = await self._searched(turn, start, query, now)
        return self._with_tools(turn, start, asker) if asker.can_call and policy.write_rows else turn

    async def standing(self, start: TurnStart, asker: Asker) -> SavedTurn:
        """What stands in the head whatever is asked: nothing is searched, and nothing ages (RS-78). StoreError when it cannot be read."""
        policy = saved_place.policy_of(self._config(), start)
        if not policy.read_rows and not policy.write_rows:
            return NO_SAVED_TURN
        turn = await self._looked(start, asker.character, policy, self._clock())
        return self._with_tools(turn, start, asker) if asker.can_call and policy.write_rows else turn

    async def _looked(self, start: TurnStart, character: Character, policy: MemoryPolicy, now: datetime) -> SavedTurn:
        saved = self._config().saved
        members = saved_place.members_of(start)
        wanted = {each: self._config().characters[each].name or each for each in members if each in self._config().characters}
        wanted[character.id] = wanted.get(character.id) or character.name
        ageing_on = self._ageing_on(policy)

        def look_at(connection: sa.Connection) -> SavedTurn | None:
            known = lineages(connection)
            if not wanted.keys() <= known.keys():
                return None
            where = saved_place.where(
                connection,
                start,
                policy,
                character=known[character.id],
                members=tuple(known[each] for each in members),
                participants_max=saved.participants_max,
                now=now,
            )
            seen = look(stored.rows_of(connection, in_effect(where)), where)
            chosen = head(seen.visible, policy.head_rows, ageing_on=ageing_on)
            shown = Shown(head=chosen.rows, names=_names(connection, where), now=now, recent_days=saved.recent_days)
            return SavedTurn(policy=policy, where=where, seen=seen, head=chosen, shown=shown)

        turn = await self._db.read(look_at)
        if turn is None:
            await self._db.write(lambda connection: make_lineages(connection, wanted, now))
            turn = await self._db.read(look_at)
        assert turn is not None, "lineages are kept for ever"
        return turn

    async def _searched(self, turn: SavedTurn, start: TurnStart, query: Query, now: datetime) -> SavedTurn:
        assert turn.where is not None
        found = await self._search.search(turn.seen.visible, self._words(start), asked=query)
        if found.ok and self._ageing_on(turn.policy):
            found = await self._committed(found, turn.where, now)
        tail = ageing.tail(found, turn.head.rows)
        return replace(turn, found=found, shown=replace(turn.shown, tail=tail))

    async def _committed(self, found: Found, where: Where, now: datetime) -> Found:
        matched, ticking = [each.id for each in found.matches], ageing.may_tick(found, where)
        days = self._config().saved.dormant_after_days
        try:
            await self._db.write(lambda connection: decay_store.commit_search(connection, matched, ticking, now, dormant_after_days=days))
        except StoreError as error:
            log.warning("what a search of saved memories found could not be kept: %s", error)
            return Found(mode=Searched.FAILED, reason=str(error))
        return found

    def _with_tools(self, turn: SavedTurn, start: TurnStart, asker: Asker) -> SavedTurn:
        assert turn.where is not None
        source = saved_place.source_of(start)
        writer = Writer(
            actor="tool",
            turn_id=start.questions[0].turn_id if start.questions else "",
            attempt=start.attempt,
            conversation_id=start.conversation.id,
            source_messages=tuple(question.id for question in start.questions),
        )
        facts = Facts(
            writer=writer,
            where=turn.where,
            sent=turn.shown.rows,
            visible=frozenset(memory.id for memory in turn.seen.visible),
            search_ok=turn.found.ok,
            ageing_on=self._ageing_on(turn.policy),
            operations_max=self._config().saved.tool_ops_max,
            limits=limits_of(self._config()),
            model=asker.model,
            record=asker.record,
            foreign=asker.foreign,
            source=source,
        )
        memories = TurnMemories(facts, db=self._db, clock=self._clock, on_written=self._on_written)
        return replace(turn, writer=writer, tools=memories.tools)

    def _ageing_on(self, policy: MemoryPolicy) -> bool:
        return policy.ageing and self._search.ageing_on

    def _words(self, start: TurnStart) -> str:
        saved = self._config().saved
        return query_of(
            saved_place.newest_words(start.questions),
            min_chars=saved.query_min_chars,
            min_chars_cjk=saved.query_min_chars_cjk,
            max_chars=saved.query_max_chars,
        )


def limits_of(config: Config) -> Limits:
    """The caps of lists, as they are configured now."""
    return Limits(unpinned=config.saved.unpinned_max, pinned=config.saved.pinned_max, content=config.saved.content_max)


def _names(connection: sa.Connection, where: Where) -> Names:
    """Names of people where several speak; in a private chat the person needs none."""
    characters = names_of(connection, {where.character, *where.members})
    if where.space is None:
        return Names(characters=characters)
    ids = [each.person for each in counted(where)]
    return Names(people={row.id: row.name for row in connection.execute(_NAMES, {"ids": ids})}, characters=characters)
