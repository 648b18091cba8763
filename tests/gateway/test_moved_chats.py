"""A group that moved keeps its space: its managers, its memory and its switches follow to the new id, whoever told of the move first (CH-166)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import sqlalchemy as sa

from channels.message import EventKind
from gateway.arrivals import moved_chats
from gateway.audit import CONSOLE
from gateway.managing import Managing
from gateway.places import Places
from memory.database import Database
from memory.ids import SpaceId
from memory.lines import line_hash
from memory.pairing_schema import space_managers
from memory.provenance import LineRow, Origin, lines_of
from memory.schema import conversations, people, spaces
from memory.scopes import Scope, space_scope
from memory.texts import Author
from tests.conftest import FakeClock
from tests.gateway.arrivals import EVERYBODY, Door, in_group
from tests.gateway.command_house import CommandHouse, command_house

OLD, NEW = "-4518810793", "-1002471352452"  # the example of the rule


@pytest.fixture
def door(database: Database, clock: FakeClock) -> Door:
    return Door(database, clock)


async def manager_of(door: Door, chat: str, sender: str) -> str:
    """Somebody who writes in a group and may manage it; their id."""
    received = await door.one(in_group(chat=chat, sender=sender))
    space = await door.db.read(lambda c: c.execute(sa.select(conversations.c.space_id).filter_by(id=received.conversation_id)).scalar_one())
    person = await door.db.read(lambda c: c.execute(sa.select(people.c.id).where(people.c.name == sender.title())).scalar_one())
    await Places(door.db, door.clock, lambda _address: None).let_manage(CONSOLE, space, person, manages=True)
    return person


async def managed(door: Door) -> set[tuple[str, str]]:
    """Who manages which group, by its platform's id."""
    query = sa.select(spaces.c.platform_space_id, space_managers.c.person_id).join(spaces, spaces.c.id == space_managers.c.space_id)
    return {tuple(row) for row in await door.db.read(lambda c: c.execute(query).all())}


async def move(door: Door, *, by_event: bool) -> None:
    if by_event:
        await door.one(in_group("", chat=OLD, kind=EventKind.MIGRATED, target=NEW))
    else:  # a send was refused, with the new id
        old = in_group(chat=OLD).address
        await door.do(lambda c: moved_chats.follow(c, old=old, new_chat_id=NEW, rules=EVERYBODY, now=door.clock()))


@pytest.mark.rule("CH-166", "CH-118")
@pytest.mark.parametrize("by_event", [True, False])
async def test_the_managers_of_a_group_manage_it_under_its_new_id(door: Door, by_event: bool) -> None:
    bob = await manager_of(door, OLD, "bob")
    for _ in range(2):
        await move(door, by_event=by_event)
        assert await managed(door) == {(NEW, bob)}
    async with asyncio.TaskGroup() as group:
        who = Managing(lambda _account: None, door.clock, db=door.db, group=group)
        assert await who.manages(in_group(chat=NEW).address, "bob")
        assert not await who.manages(in_group(chat=OLD).address, "bob")


@pytest.mark.rule("CH-166", "WD-13")
@pytest.mark.parametrize("by_event", [True, False])
async def test_what_was_settled_under_the_new_id_meanwhile_joins_what_was_before(door: Door, by_event: bool) -> None:
    bob, eve = await manager_of(door, OLD, "bob"), await manager_of(door, NEW, "eve")
    both = await manager_of(door, OLD, "zoe"), await manager_of(door, NEW, "zoe")
    (before, _) = await spaces_by_age(door)
    await door.do(lambda c: c.execute(sa.update(spaces).where(spaces.c.platform_space_id == NEW).values(mention="off")))
    await door.one(in_group("in a topic", chat=OLD, thread_id="7", parent_chat_id=OLD))
    await move(door, by_event=by_event)
    assert await spaces_by_age(door) == [before], "the group keeps its space, and its memory with it"
    assert await managed(door) == {(NEW, bob), (NEW, eve), (NEW, both[0])}
    assert set(await door.rows("conversations", "space_id")) == {before}
    assert await door.rows("spaces", "mention") == ["off"]


async def spaces_by_age(door: Door) -> list[str]:
    return await door.db.read(lambda c: list(c.execute(sa.select(spaces.c.id).order_by(spaces.c.platform_space_id.desc())).scalars()))


@pytest.mark.rule("CH-166")
async def test_a_move_to_where_it_is_changes_nothing(door: Door) -> None:
    bob = await manager_of(door, OLD, "bob")
    old = in_group(chat=OLD).address
    await door.do(lambda c: moved_chats.follow(c, old=old, new_chat_id=OLD, rules=None, now=door.clock()))
    assert await managed(door) == {(OLD, bob)}


# -- the files --------------------------------------------------------------------------------------------------------------


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(database, tmp_path, clock) as made:
        yield made


@pytest.mark.rule("WD-13")
@pytest.mark.parametrize(
    ("words", "heading"),
    [
        ("What a nice garden", "Noted after the group moved"),
        ("きれいな庭ですね", "グループが移ったあとの記録"),
        ("花园真漂亮", "群迁移之后的记录"),
    ],
)
async def test_what_was_noted_under_the_new_id_meanwhile_stands_behind_the_memory_of_the_group(
    house: CommandHouse, words: str, heading: str
) -> None:
    house.rules = EVERYBODY
    await house.talk(words, by="uma", chat=OLD, group=True)
    await house.talk(words, by="uma", chat=NEW, group=True)
    kept, gone = [await _scope(house, chat) for chat in (OLD, NEW)]
    for scope, line in ((kept, "We meet on Mondays"), (gone, "We meet on Fridays")):
        await house.files.write(scope, lambda ws, scope=scope, line=line: ws.append(scope, "MEMORY.md", f"- {line}\n", by=Author.PERSON))
        row = LineRow(hash=line_hash(line), origin=Origin.PERSON, author="dream", sources=("m-1",))
        await house.know("MEMORY.md", row, scope=scope)
    await house.receive(house.event("", chat=OLD, group=True, kind=EventKind.MIGRATED, target=NEW))
    await house.results()
    found = await house.files.read(lambda ws: ws.read(kept, "MEMORY.md"))
    assert found is not None
    assert re.sub(r"[ (（]*\d{4}-\d\d-\d\d[)）]", "", found.content) == f"- We meet on Mondays\n\n## {heading}\n\n- We meet on Fridays\n"
    known = await house.db.read(lambda c: lines_of(c, str(kept), "MEMORY.md"))
    assert {line_hash("We meet on Mondays"), line_hash("We meet on Fridays")} <= set(known)
    assert gone not in await house.files.read(lambda ws: ws.scopes())


async def _scope(house: CommandHouse, chat: str) -> Scope:
    query = sa.select(spaces.c.id).where(spaces.c.platform_space_id == chat)
    return space_scope(SpaceId(await house.db.read(lambda c: c.execute(query).scalar_one())))
