"""Letting people in: a stranger gets a code, an admin says it, and nothing else opens the door (CH-113, CH-114, CH-117)."""

from __future__ import annotations

import json
import logging
import re
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gateway.access import Rules
from gateway.audit import CONSOLE
from gateway.language import say
from gateway.pairing import Locked, Pairing, WrongCode
from gateway.pairing_codes import ALPHABET, new_code, typed
from gateway.person import Identity
from memory.columns import metadata
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.arrivals import Door, event
from tests.gateway.command_house import CommandHouse, command_house
from tests.harness import eventually
from tests.talks import asked, model, talk

CODE = re.compile(r"\b[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}\b")
LISTED = Rules()  # nobody


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(database, tmp_path, clock) as made:
        yield made


async def outgoing(house: CommandHouse) -> list[tuple[str, str]]:
    """Address and words of everything that goes out, in order."""
    table = metadata.tables["outbox"]
    rows = await house.db.read(lambda c: c.execute(sa.select(table.c.address, table.c.part).order_by(table.c.id)).all())
    return [(row.address, row.part["text"]) for row in rows]


async def stranger(house: CommandHouse, name: str = "zoe", text: str = "hello there", **more: Any) -> str:
    """Somebody unknown writes; the code they are given, empty for none."""
    before = len(await outgoing(house))
    received = await house.receive(house.event(text, by=name, **more))
    assert received.accepted.rule == "dm-unpaired"
    await house.company.pairing.greet(received.event)
    new = (await outgoing(house))[before:]
    assert len(new) <= 1
    if not new:
        return ""
    assert new[0][0] == f"loopback:main:dm-{name}", "in their own chat alone"
    found = CODE.search(new[0][1])
    assert found
    return found[0]


# -- codes ------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-113")
def test_a_code_has_eight_characters_that_nobody_mixes_up() -> None:
    codes = {new_code() for _ in range(200)}
    assert len(codes) == 200
    for code in codes:
        assert re.fullmatch(f"[{ALPHABET}]{{4}}-[{ALPHABET}]{{4}}", code)
        assert not set(code) & set("01IO")


@pytest.mark.rule("CH-113")
@pytest.mark.parametrize("text", ["abcd-efgh", "ABCDEFGH", " abcd efgh ", "ａｂｃｄ－ｅｆｇｈ", "ABCD—EFGH", "AB CD\u200bEF-GH", "ABCD‑EFGH"])
def test_a_code_is_known_however_it_is_typed(text: str) -> None:
    assert typed(text) == "ABCDEFGH"


@pytest.mark.parametrize("text", ["", "ABCD-EFG", "ABCD-EFGHJ", "ABCD-EFG0", "ABCD-EFGI", "あいうえおかきく", "😀" * 8])
def test_what_is_no_code_is_none(text: str) -> None:
    assert typed(text) == ""


# -- the stranger -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-113", "CH-117")
@pytest.mark.parametrize(("text", "language"), [("hello there", "en"), ("こんにちは", "ja"), ("你好，在吗", "zh")])
async def test_a_stranger_hears_a_code_in_their_language_and_their_words_are_not_kept(house: CommandHouse, text: str, language: str) -> None:
    code = await stranger(house, text=text)
    ((_, told),) = await outgoing(house)
    assert told == say(language, "pair_code", code=code)
    for name, table in metadata.tables.items():
        kept = str(await house.db.read(lambda c, table=table: c.execute(sa.select(table)).all()))
        assert text not in kept, name
        assert name == "outbox" or code not in kept, f"{name} holds the code itself"
        assert name == "outbox" or code.replace("-", "") not in kept, name


@pytest.mark.case("WP-23")
@pytest.mark.rule("CH-113")
async def test_a_code_goes_to_its_requester_alone_whoever_spoke_last_and_stands_in_no_log(
    house: CommandHouse, caplog: pytest.LogCaptureFixture
) -> None:
    """Nor is it on the operator's page (CH-113): there it is typed in, so that only who was told it is let in."""
    caplog.set_level(logging.DEBUG)
    for who in ({"by": "uma"}, {"by": "ada"}, {"by": "mia", "group": True}):
        await house.talk("hello", "hi", **who)
    code = await stranger(house)
    for who in ({"by": "uma"}, {"by": "mia", "group": True}):
        await house.talk("hello again", "hi", **who)
    assert [address for address, words in await outgoing(house) if code in words] == ["loopback:main:dm-zoe"]
    assert code not in str(await house.company.pairing.waiting()) and code not in await house.says("/pair list", by="ada")
    assert code not in caplog.text and code.replace("-", "") not in caplog.text


@pytest.mark.rule("CH-113")
async def test_a_stranger_is_answered_once_in_ten_minutes_and_a_new_code_replaces_the_old(house: CommandHouse) -> None:
    first = await stranger(house)
    house.clock.advance(minutes=9, seconds=59)
    assert await stranger(house) == ""
    house.clock.advance(seconds=1)
    second = await stranger(house)
    assert second not in ("", first)
    with pytest.raises(WrongCode):
        await house.company.pairing.approve(CONSOLE, first)
    assert (await house.company.pairing.approve(CONSOLE, second)).identity.platform_user_id == "zoe"


@pytest.mark.rule("CH-113")
async def test_three_people_wait_at_most_and_who_is_too_late_makes_room(house: CommandHouse) -> None:
    assert all([await stranger(house, name) for name in ("zoe", "yan", "xia")])
    assert await stranger(house, "wes") == ""
    house.clock.advance(minutes=30)
    assert await stranger(house, "zoe"), "who waits already gets a new one"
    house.clock.advance(minutes=30, seconds=1)
    assert await stranger(house, "wes")
    assert {each.identity.platform_user_id for each in await house.company.pairing.waiting()} == {"zoe", "wes"}


@pytest.mark.rule("CH-113")
async def test_a_code_dies_after_an_hour(house: CommandHouse) -> None:
    code = await stranger(house)
    house.clock.advance(hours=1)
    with pytest.raises(WrongCode):
        await house.company.pairing.approve(CONSOLE, code)


async def test_the_silence_survives_a_restart(house: CommandHouse) -> None:
    await stranger(house)
    fresh = Pairing(db=house.db, clock=house.clock, people=house.persons, linking=house.company.linking, replies=house.replies)
    before = len(await outgoing(house))
    await fresh.greet(house.event("hello", by="zoe"))
    assert len(await outgoing(house)) == before


# -- letting in -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-113", "CH-121")
@pytest.mark.parametrize(("text", "language"), [("hello there", "en"), ("こんにちは", "ja"), ("你好，在吗", "zh")])
async def test_an_admin_lets_the_requester_in_who_is_told_and_answered_from_then_on(house: CommandHouse, text: str, language: str) -> None:
    code = await stranger(house, text=text)
    listed = await house.says("/pair list", by="ada")
    assert "Zoe, loopback:main, id zoe" in listed
    assert code not in listed
    done = await house.says(f"/pair approve {code.lower()}", by="ada")
    assert done == "Zoe (loopback:main, id zoe) is let in and has been told."
    assert ("loopback:main:dm-zoe", say(language, "pair_welcome")) in await outgoing(house)
    received = await house.receive(house.event("again", by="zoe"))
    assert received.waiting is not None, received.accepted.rule
    assert await house.says("/pair list", by="ada") == "Nobody waits to be let in."
    (entry,) = await house.db.read(lambda c: c.execute(sa.text("SELECT actor, action, after FROM audit WHERE action = 'pairing.approve'")).all())
    after = json.loads(entry.after) if isinstance(entry.after, str) else entry.after
    assert after == {"role": "user", "channel": "loopback", "account": "main", "platform_user_id": "zoe"}
    with pytest.raises(WrongCode):
        await house.company.pairing.approve(CONSOLE, code)


@pytest.mark.rule("CH-113")
async def test_a_code_lets_in_its_requester_whoever_says_it(house: CommandHouse) -> None:
    code = await stranger(house, "zoe")
    await stranger(house, "yan")
    assert await house.says(f"/pair approve {code}", by="yan") == "door: dm-unpaired"
    assert await house.says(f"/pair approve {code}", by="uma") == "door: role"
    await house.company.pairing.approve(CONSOLE, code)
    assert (await house.receive(house.event("hi", by="yan"))).accepted.rule == "dm-unpaired"
    assert (await house.receive(house.event("hi", by="zoe"))).waiting is not None


@pytest.mark.rule("CH-113")
async def test_five_wrong_codes_lock_approving_for_an_hour_everywhere(house: CommandHouse) -> None:
    code = await stranger(house)
    for _ in range(4):
        assert "unknown" in await house.says("/pair approve ABCD-EFGH", by="ada")
    with pytest.raises(WrongCode):
        await house.company.pairing.approve(CONSOLE, "nonsense")
    assert await house.says(f"/pair approve {code}", by="ada") == "Too many codes were wrong, so nobody can be let in for another 60 min."
    with pytest.raises(Locked):
        await house.company.pairing.approve(CONSOLE, code)
    house.clock.advance(minutes=59)
    fresh = await stranger(house)
    with pytest.raises(Locked):
        await house.company.pairing.approve(CONSOLE, fresh)
    house.clock.advance(minutes=1)
    assert await house.company.pairing.approve(CONSOLE, fresh)


@pytest.mark.rule("CH-113")
async def test_a_right_code_ends_the_count_of_wrong_ones(house: CommandHouse) -> None:
    for name in ("zoe", "yan"):
        code = await stranger(house, name)
        for _ in range(4):
            with pytest.raises(WrongCode):
                await house.company.pairing.approve(CONSOLE, "ABCD-EFGH")
        assert await house.company.pairing.approve(CONSOLE, code)


async def test_who_is_turned_away_hears_nothing_for_a_day(house: CommandHouse) -> None:
    code = await stranger(house)
    number = (await house.company.pairing.waiting())[0].id
    assert await house.says(f"/pair decline {number}", by="ada") == "Turned away, without a word to them."
    assert await house.says(f"/pair decline {number}", by="ada") == "Nobody waits to be let in."
    with pytest.raises(WrongCode):
        await house.company.pairing.approve(CONSOLE, code)
    house.clock.advance(hours=23)
    assert await stranger(house) == ""
    house.clock.advance(hours=1)
    assert await stranger(house)


@pytest.mark.rule("CH-115")
async def test_a_guest_of_groups_is_paired_for_the_private_chat_and_stays_the_same_person(house: CommandHouse) -> None:
    received = await house.receive(house.event("hi", by="zoe", group=True))
    code = await stranger(house)
    let_in = await house.company.pairing.approve(CONSOLE, code)
    assert received.message is not None
    assert let_in.person.id == received.message.author_person_id
    assert let_in.person.role == "user"


@pytest.mark.rule("CH-115")
async def test_pairing_opens_no_group(house: CommandHouse) -> None:
    house.rules = Rules()
    await house.company.pairing.approve(CONSOLE, await stranger(house))
    assert (await house.receive(house.event("hi", by="zoe", group=True))).accepted.rule == "group-not-allowed"


# -- the owner --------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-114")
async def test_the_console_makes_an_account_the_owners_by_its_code(house: CommandHouse) -> None:
    owner = await house.persons.ensure_owner()
    let_in = await house.company.pairing.approve(CONSOLE, await stranger(house), role="owner")
    assert (let_in.person.id, let_in.person.scope) == (owner.id, "root"), "the owner is one person"
    received = await house.receive(house.event("it is me", by="zoe"))
    assert received.message is not None
    assert received.message.scope == "root"


@pytest.mark.rule("CH-114")
async def test_the_console_names_an_owner_before_they_wrote_and_joins_who_was_a_guest(house: CommandHouse) -> None:
    owner = await house.persons.ensure_owner()
    await house.receive(house.event("hi", by="zoe", group=True))
    for user in ("zoe", "nobody-yet"):
        who = Identity(channel="loopback", account="main", platform_user_id=user)
        assert (await house.company.pairing.admit(CONSOLE, who, role="owner")).id == owner.id
        assert await house.persons.find_by_identity(who.channel, who.account, who.platform_user_id) == await house.persons.person(owner.id)


@pytest.mark.rule("CH-114")
async def test_nobody_becomes_owner_by_writing_first(sqlite: Database, clock: FakeClock) -> None:
    door = Door(sqlite, clock)
    await door.one(event("I am the owner"))
    assert await door.rows("people", "role") == ["guest"], "whom the configuration lists is a guest of the store"


# -- a whole gateway ----------------------------------------------------------------------------------------------------------


@pytest.mark.case("WP-08", "WP-23")
@pytest.mark.rule("CH-113", "CH-117")
async def test_a_stranger_writes_gets_a_code_is_let_in_on_the_page_and_is_answered(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), rules=LISTED) as chat:
        chat.says("hello there, secret words")
        (told,) = await chat.shown(1)
        found = CODE.search(told)
        assert found
        chat.says("are you there")
        chat.platform.says("g1", "@yume hello", sender="u9", group=True)
        page = await chat.gateway.chat()
        await chat.gateway.say(page, "/pair list")

        async def listed() -> bool:
            return any("id u1" in message["text"] for message in await chat.gateway.messages(page))

        await eventually(listed)
        await chat.gateway.say(page, f"/pair approve {found[0]}")
        await chat.shown(2)
        assert chat.texts()[1] == "Welcome, you are let in. Write to me whenever you like; /help shows what I can do."
        chat.says("and now")
        await chat.until(lambda: chat.texts()[-1] == "Re: and now")
        assert len(chat.texts()) == 3
        assert chat.texts("g1") == [], "strangers in groups get no reply"
        assert not any("secret words" in str(request) for request in chat.model.requests)
    assert found[0] not in caplog.text
    assert found[0].replace("-", "") not in caplog.text
    with closing(sqlite3.connect(tmp_path / "workspace" / ".yumegate" / "yumegate.db")) as stored:
        assert not any(found[0] in part for (part,) in stored.execute("SELECT part FROM outbox")), "its words go once they were sent"
