"""Codes and buttons in the wrong hands: forged, expired, spent, of another kind, person or account. Each opens nothing (CH-113, CH-159, WD-13)."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from channels.message import Account
from gateway.audit import CONSOLE
from gateway.pairing import Locked, Pairing, WrongCode
from gateway.pairing_codes import new_code
from memory.columns import metadata
from memory.database import Database
from memory.schema import identities, people
from tests.conftest import FakeClock
from tests.e2e.discord_talk import discord_talk
from tests.e2e.telegram_talk import ADA, BEN, GROUP, telegram_talk
from tests.gateway.command_house import CommandHouse, command_house, person_id
from tests.gateway.test_linking import code_of
from tests.gateway.test_pairing import stranger
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import BOB, HALL, ME
from tests.peers.telegram.server import FakeBotApi
from tests.talks import asked, model

SECOND = Account(channel="loopback", name="second")


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(database, tmp_path, clock) as made:
        yield made


async def everybody(house: CommandHouse) -> list[tuple[Any, ...]]:
    """Who is known, with what role, by which accounts."""
    query = sa.select(people.c.id, people.c.role, identities.c.account, identities.c.platform_user_id).join_from(
        people, identities, identities.c.person_id == people.c.id, isouter=True
    )
    return sorted(map(tuple, await house.db.read(lambda c: c.execute(query).all())))


# -- codes of people who wait ---------------------------------------------------------------------------------------------------


async def _invented(_: CommandHouse) -> str:
    return new_code()


async def _expired(house: CommandHouse) -> str:
    code = await stranger(house)
    house.clock.advance(hours=1)
    return code


async def _replaced(house: CommandHouse) -> str:
    code = await stranger(house)
    house.clock.advance(minutes=10)
    assert await stranger(house)
    return code


async def _spent(house: CommandHouse) -> str:
    code = await stranger(house)
    let_in = await house.company.pairing.approve(CONSOLE, code)
    await house.do(lambda c: c.execute(sa.delete(people).where(people.c.id == let_in.person.id)))
    return code


async def _declined(house: CommandHouse) -> str:
    code = await stranger(house)
    assert await house.company.pairing.decline(CONSOLE, (await house.company.pairing.waiting())[0].id)
    return code


async def _nearly(house: CommandHouse) -> str:
    code = await stranger(house)
    return f"{'B' if code[0] == 'A' else 'A'}{code[1:]}"


async def _of_a_link(house: CommandHouse) -> str:
    return await code_of(house, "uma")


def _as_typed(text: str) -> Callable[[CommandHouse], Awaitable[str]]:
    async def typed(_: CommandHouse) -> str:
        return text

    return typed


PAIRING: Mapping[str, Callable[[CommandHouse], Awaitable[str]]] = {
    "invented": _invented,
    "expired": _expired,
    "replaced by a newer one": _replaced,
    "used before": _spent,
    "of one who was turned away": _declined,
    "one letter off": _nearly,
    "a linking code": _of_a_link,
    "a wildcard": _as_typed("%"),
    "endless": _as_typed("A" * 100_000),
    "an injection": _as_typed("' OR '1'='1"),
}


@pytest.mark.rule("CH-113", "CH-118")
@pytest.mark.parametrize("forged", PAIRING.values(), ids=PAIRING)
async def test_a_forged_pairing_code_lets_nobody_in(house: CommandHouse, forged: Callable[[CommandHouse], Awaitable[str]]) -> None:
    code = await forged(house)
    before = await everybody(house)
    with pytest.raises(WrongCode):
        await house.company.pairing.approve(CONSOLE, code)
    with pytest.raises(WrongCode):
        await house.company.pairing.approve(CONSOLE, code, role="owner")
    await house.says(f"/pair approve {code}", by="ada")
    assert await everybody(house) == before


@pytest.mark.rule("CH-113")
async def test_the_lock_after_wrong_codes_outlives_a_restart(house: CommandHouse) -> None:
    code = await stranger(house)
    for _ in range(5):
        with pytest.raises(WrongCode):
            await house.company.pairing.approve(CONSOLE, "ABCD-EFGH")
    again = Pairing(db=house.db, clock=house.clock, people=house.persons, linking=house.company.linking)
    with pytest.raises(Locked):
        await again.approve(CONSOLE, code)


@pytest.mark.rule("CH-113", "CH-13")
async def test_a_code_lets_in_the_account_that_it_was_given_to_and_no_namesake_of_another(house: CommandHouse) -> None:
    code = await stranger(house, "zoe")
    await house.company.pairing.approve(CONSOLE, code)
    known = [(account, user) for _, _, account, user in await everybody(house) if user == "zoe"]
    assert known == [("main", "zoe")]
    assert await house.persons.find_by_identity(SECOND.channel, SECOND.name, "zoe") is None


# -- codes that link ------------------------------------------------------------------------------------------------------------


async def _old_link(house: CommandHouse) -> str:
    code = await code_of(house, "uma")
    house.clock.advance(minutes=10)
    return code


async def _newer_link(house: CommandHouse) -> str:
    code = await code_of(house, "uma")
    await code_of(house, "uma")
    return code


async def _given_link(house: CommandHouse) -> str:
    code = await code_of(house, "uma")
    assert "Uma" in await house.says(f"/link {code}", by="owen")
    return code


async def _dropped_link(house: CommandHouse) -> str:
    code = await code_of(house, "uma")
    await house.says("/link no", by="uma")
    return code


LINKING: Mapping[str, Callable[[CommandHouse], Awaitable[str]]] = {
    "invented": _invented,
    "expired": _old_link,
    "replaced by a newer one": _newer_link,
    "given by somebody else": _given_link,
    "dropped by who asked": _dropped_link,
    "a pairing code": stranger,
    "a wildcard": _as_typed("%"),
    "endless": _as_typed("A" * 100_000),
}


@pytest.mark.rule("WD-13")
@pytest.mark.parametrize("forged", LINKING.values(), ids=LINKING)
async def test_a_forged_linking_code_links_nobody(house: CommandHouse, forged: Callable[[CommandHouse], Awaitable[str]]) -> None:
    code = await forged(house)
    before = await everybody(house)
    assert "unknown" in await house.says(f"/link {code}", by="ada")
    for sender in ("ada", "uma"):
        await house.says("/link yes", by=sender)
    assert await everybody(house) == before


@pytest.mark.rule("WD-13", "CH-118")
@pytest.mark.parametrize("by", ["gus", "nobody"])
async def test_who_may_not_link_gives_no_code_and_spends_none(house: CommandHouse, by: str) -> None:
    code = await code_of(house, "uma")
    for said in (f"/link {code}", "/link yes", "/link"):
        assert (await house.says(said, by=by)).startswith("door:")
    assert "Uma" in await house.says(f"/link {code}", by="ada"), "it still works for who may"


@pytest.mark.rule("WD-13")
async def test_a_yes_of_a_third_person_links_nobody(house: CommandHouse) -> None:
    await house.says(f"/link {await code_of(house, 'uma')}", by="ada")
    table = metadata.tables["account_links"]
    (number,) = await house.db.read(lambda c: c.execute(sa.select(table.c.id)).scalars().all())
    assert await house.says("/link yes", by="uma")
    before = await everybody(house)
    assert (await house.says(f"/link yes {number}", by="owen")).startswith("Nothing waits")
    assert (await house.says(f"/link no {number}", by="owen")).startswith("Nothing waits")
    assert await everybody(house) == before
    assert person_id("ada") in str(before)
    assert (await house.says(f"/link yes {number}", by="ada")).startswith("Linked.")


# -- buttons --------------------------------------------------------------------------------------------------------------------


def echo(request: ModelRequest) -> str:
    return f"Re: {asked(request)}"


def turn_of(folder: Path) -> str:
    """The turn of the first message, as only the store knows it."""
    with closing(sqlite3.connect(next(folder.rglob("yumegate.db")))) as connection:
        return connection.execute("SELECT turn_id FROM messages WHERE turn_id != '' ORDER BY seq LIMIT 1").fetchone()[0]


@pytest.mark.rule("CH-159", "CH-118", "RL-1")
@pytest.mark.parametrize("where", [BEN, GROUP], ids=["in a chat of one's own", "in a group"])
async def test_a_press_that_names_a_turn_of_another_chat_brings_no_word_of_it(tmp_path: Path, where: int) -> None:
    with FakeBotApi() as server:
        for chat_id in (ADA, BEN, GROUP):
            server.world.chat(chat_id)
        async with telegram_talk(tmp_path, model(echo), server) as chat:
            chat.says("my secret is 4711")
            await chat.shows(["Re: my secret is 4711"])
            chat.says("@yume_bot hello", chat=where, sender=BEN)
            await chat.until(lambda: chat.texts(where))
            turn, shown = turn_of(tmp_path), server.world.ours(where)[0]
            ben = {"id": BEN, "is_bot": False, "first_name": "Ben"}
            for number, data in enumerate((turn, turn, "k" * 64, "", "regenerate", "/pair approve ABCD-EFGH")):
                server.put(callback_query={"id": f"{number}", "from": ben, "message": shown, "data": data})
            await chat.until(lambda: len(server.world.presses) == 6)
            chat.says("@yume_bot still well?", chat=where, sender=BEN)
            await chat.until(lambda: any("still well" in text for text in chat.texts(where)))
            assert "4711" not in str(chat.texts(where))
            assert len(chat.requests) == 3, "no press asks the model"
            assert len(chat.texts(ADA)) == 1


@pytest.mark.rule("CH-159", "CH-118", "RL-1")
async def test_a_press_on_discord_that_names_a_turn_of_another_chat_does_nothing(tmp_path: Path) -> None:
    with FakeDiscord() as server:
        async with discord_talk(tmp_path, model(echo), server) as chat:
            chat.says("my secret is 4711")
            await chat.shows(["Re: my secret is 4711"])
            for data in (turn_of(tmp_path), "regenerate", "x" * 100):
                server.calls_command(HALL, "", user_id=BOB, type=3, data={"custom_id": data, "component_type": 2})
            chat.says(f"<@{ME}> still well?", channel=HALL, sender=BOB)
            await chat.until(lambda: chat.texts(HALL))
            assert [text for text in chat.texts(HALL) if "still well" not in text] == []
            assert len(chat.requests) == 2
