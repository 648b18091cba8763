"""Groups and people: who is answered where, who says so, and that names alone move nothing (CH-111, CH-112, CH-115 to CH-121)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from channels.message import ReplyTo
from gateway.access import Rules
from memory.columns import metadata
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(database, tmp_path, clock) as made:
        made.rules = Rules()
        yield made


async def rule(house: CommandHouse, text: str = "hello", **who: Any) -> str:
    """What the door says of a message in the group; empty when it is answered."""
    given: dict[str, Any] = {"group": True, "by": "gus", **who}
    received = await house.receive(house.event(text, **given))
    return received.accepted.rule


async def actions(house: CommandHouse) -> list[str]:
    table = metadata.tables["audit"]
    return await house.db.read(lambda c: list(c.execute(sa.select(table.c.action).order_by(table.c.id)).scalars()))


@pytest.mark.rule("CH-115", "CH-121")
async def test_an_admin_opens_a_group_there_and_closes_it_again(house: CommandHouse) -> None:
    assert await rule(house) == "group-not-allowed"
    for who in ("gus", "uma", "mia"):
        assert await house.says("/allow", by=who, group=True) == "door: group-not-allowed", "only an admin is heard before"
    assert await house.says("/status", by="ada", group=True) == "door: group-not-allowed", "and with this one command"
    assert (await house.says("/allow", by="ada", group=True)).startswith("I answer in this group from now on")
    assert await rule(house) == ""
    assert await rule(house, by="nobody") == "", "members are guests in it"
    assert await rule(house, by="nobody", group=False) == "dm-unpaired", "and only there"
    assert await rule(house, chat="g2") == "group-not-allowed"
    assert await house.says("/allow off", by="ada", group=True) == "I do not answer in this group any more."
    assert await rule(house) == "group-not-allowed"
    assert await actions(house) == ["space.allow", "space.allow"]


@pytest.mark.rule("CH-115")
async def test_what_the_configuration_lists_only_the_configuration_ends(house: CommandHouse) -> None:
    house.rules = Rules(groups=frozenset({"g1"}))
    assert "configuration lists this group" in await house.says("/allow off", by="ada", group=True)
    assert await rule(house) == ""


@pytest.mark.rule("CH-116", "CH-119")
async def test_whether_a_mention_is_needed_is_settled_for_each_group(house: CommandHouse) -> None:
    await house.says("/allow", by="ada", group=True)
    await house.says("/allow", by="ada", group=True, chat="g2")
    assert await rule(house, mentioned=False) == "not-mentioned"
    assert "/allow mention off" in await house.says("/why", by="ada", group=True)
    assert await house.says("/allow mention off", by="ada", group=True) == "I answer here without being mentioned."
    assert await rule(house, mentioned=False) == ""
    assert await rule(house, mentioned=False, chat="g2") == "not-mentioned"
    assert await house.says("/allow mention on", by="ada", group=True) == "I answer here only when I am mentioned."
    assert await rule(house, mentioned=False) == "not-mentioned"


@pytest.mark.case("CF-12")
@pytest.mark.rule("CH-115", "CH-116")
async def test_the_operator_sees_of_each_group_what_holds_and_who_said_so(house: CommandHouse) -> None:
    async def seen() -> dict[str, tuple[str, bool, str]]:
        return {each.platform_space_id: (each.answered, each.mention, each.mention_from) for each in await house.company.places.groups()}

    assert await seen() == {}
    for group in ("g1", "g2"):
        await house.says("/allow", by="ada", group=True, chat=group)
    assert await seen() == {"g1": ("command", True, "default"), "g2": ("command", True, "default")}
    await house.says("/allow mention off", by="ada", group=True)
    await house.says("/allow mention on", by="ada", group=True, chat="g2")
    assert await seen() == {"g1": ("command", False, "command"), "g2": ("command", True, "command")}
    house.rules = Rules(groups=frozenset({"g1"}), mention_needed=False)
    await house.says("/allow off", by="ada", group=True, chat="g2")
    assert await seen() == {"g1": ("config", False, "command"), "g2": ("no", True, "command")}


@pytest.mark.rule("CH-116", "CH-117")
async def test_what_is_not_answered_in_a_group_is_not_stored_as_text(house: CommandHouse) -> None:
    await rule(house, "words of a closed group")
    await house.says("/allow", by="ada", group=True)
    await rule(house, "words beside us", mentioned=False)
    for name, table in metadata.tables.items():
        kept = str(await house.db.read(lambda c, table=table: c.execute(sa.select(table)).all()))
        assert "words of a closed group" not in kept, name
        assert "words beside us" not in kept, name


@pytest.mark.rule("CH-112", "CH-121")
async def test_a_block_holds_with_the_next_event_and_can_be_lifted(house: CommandHouse) -> None:
    await house.says("/allow", by="ada", group=True)
    assert (await house.says("/block uma", by="ada")).startswith("Uma (p-uma")
    assert await rule(house, by="uma") == "blocked"
    assert await rule(house, by="uma", group=False) == "blocked"
    assert (await house.says("/unblock uma", by="ada")).endswith("is heard again.")
    assert await rule(house, by="uma", group=False) == ""
    assert await actions(house) == ["space.allow", "person.change", "person.change"]


@pytest.mark.rule("CH-118")
async def test_an_admin_blocks_neither_an_admin_nor_the_owner_nor_themself(house: CommandHouse) -> None:
    for who in ("owen", "ada"):
        assert (await house.says(f"/block {who}", by="ada")).startswith("You may not block")
    assert await house.says("/block owen") == "You may not block Owen (p-owenaaaaaa; loopback:main owen)."


@pytest.mark.rule("CH-118", "CH-121")
async def test_the_owner_gives_roles_by_id(house: CommandHouse) -> None:
    told = await house.says("/role uma admin")
    assert told == "Uma (p-umaaaaaaaa; loopback:main uma) has the role admin now."
    assert "Waiting" not in await house.says("/pair list", by="uma")
    assert await house.says("/pair list", by="uma") == "Nobody waits to be let in."
    assert (await house.says(f"/role {person_id('uma')} guest")).endswith("has the role guest now.")
    assert await house.says("/pair list", by="uma") == "door: dm-unpaired"
    assert await house.says("/role owen user") == "The last owner stays the owner."
    assert await house.says("/role uma user", by="ada") == "door: role"


@pytest.mark.case("WP-07")
@pytest.mark.rule("CH-111")
async def test_a_name_gives_nobody_a_role_and_two_of_a_name_are_told_apart(house: CommandHouse) -> None:
    received = await house.receive(house.event("hi", by="u77", group=True, sender_name="Ann Lee"))
    assert received.accepted.rule == "group-not-allowed"
    await house.says("/allow", by="ada", group=True)
    await rule(house, by="u77", sender_name="Ann Lee")
    told = await house.says("/role ann lee user")
    assert "Anybody can take a name" in told
    await rule(house, by="u78", sender_name="ann lee")
    several = await house.says("/block Ann Lee", by="ada")
    assert "u77" in several
    assert "u78" in several
    assert (await house.says("/role u77 user")).endswith("has the role user now.")
    assert await rule(house, by="u77", group=False) == ""
    assert await rule(house, by="u78", group=False) == "dm-unpaired"


@pytest.mark.rule("CH-118")
async def test_whoever_is_named_manager_runs_that_group_and_no_other(house: CommandHouse) -> None:
    for group in ("g1", "g2"):
        await house.says("/allow", by="ada", group=True, chat=group)
    received = await house.receive(house.event("hello", by="gus", group=True))
    answered = ReplyTo(message_id=received.event.platform_message_id)
    assert (await house.says("/role manager", group=True, reply_to=answered)).startswith("Gus (p-gus")
    rows = metadata.tables["space_managers"]
    (row,) = await house.db.read(lambda c: c.execute(sa.select(rows)).all())
    assert row.person_id == person_id("gus")
    assert (await house.says("/role gus manager off", group=True)).endswith("does not manage this group any more.")
    assert await house.db.read(lambda c: c.execute(sa.select(rows)).all()) == []
    assert await house.says("/role gus manager") == "/role works in a group only."


@pytest.mark.parametrize(("language", "words"), [("en", "I answer here only"), ("ja", "メンション"), ("zh", "提及")])
async def test_the_words_are_in_the_language_of_the_chat(house: CommandHouse, language: str, words: str) -> None:
    await house.says("/allow", by="ada", group=True)
    assert words in await house.says("/allow mention on", by="ada", group=True, language=language)
