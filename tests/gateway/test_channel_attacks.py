"""What platforms deliver in bad faith, or broken: it stops nothing, mixes nobody, and opens no door (CH-1, CH-4, CH-6, WD-13)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from dataclasses import replace
from pathlib import Path

import pytest

from channels.message import Account, Address, Attachment, ChatType, EventKind, ReplyTo
from channels.port import Arrival
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.arrivals import Door, event, in_group
from tests.gateway.command_house import CommandHouse, command_house
from tests.gateway.test_linking import code_of


@pytest.fixture
def door(database: Database, clock: FakeClock) -> Door:
    return Door(database, clock)


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(database, tmp_path, clock) as made:
        yield made


@pytest.mark.rule("WD-13")
async def test_a_code_of_ones_own_buys_no_further_guesses(house: CommandHouse) -> None:
    theirs = await code_of(house, "ada")
    own = await code_of(house, "uma")
    for _ in range(4):
        assert "unknown" in await house.says("/link ABCD-EFGH", by="uma")
    assert "same person already" in await house.says(f"/link {own}", by="uma")
    assert "unknown" in await house.says(f"/link {theirs}", by="uma")
    house.clock.advance(hours=1)
    assert "This code comes from" in await house.says(f"/link {await code_of(house, 'ada')}", by="uma")


@pytest.mark.rule("CH-1", "CH-4")
@pytest.mark.parametrize("nobody", ["", "\x00"])
@pytest.mark.parametrize("field", ["chat_id", "sender_id"])
async def test_a_message_of_nobody_or_from_nowhere_makes_no_person_and_stops_nothing(door: Door, field: str, nobody: str) -> None:
    broken, good = await door.receive(replace(event("who am I"), **{field: nobody}), event("hello"))
    assert (broken.accepted.state, broken.accepted.rule) == ("dead", "unreadable")
    assert good.accepted.state == "new"
    assert await door.rows("messages", "text") == ["hello"]
    assert await door.rows("identities", "platform_user_id") == ["ann"]
    assert [Address.parse(key).chat_id for key in await door.rows("conversations", "key")] == ["c1"]


@pytest.mark.rule("CH-6")
@pytest.mark.parametrize("broken", ["a\x00b", "a\ud800b"], ids=["nul", "surrogate"])
@pytest.mark.parametrize("field", ["kind", "mime", "name", "fetch_ref", "transcript", "transcript_origin"])
async def test_a_broken_character_in_what_is_told_of_a_file_costs_no_message(door: Door, field: str, broken: str) -> None:
    file = replace(Attachment(kind="image", name="a.png", fetch_ref="f1"), **{field: broken})
    received = await door.one(event("look", attachments=(file,)))
    assert received.accepted.state == "new"
    ((kept,),) = await door.rows("messages", "attachments")
    assert "\x00" not in kept[field]
    assert "\ud800" not in kept[field]


@pytest.mark.rule("CH-13", "CH-51")
async def test_two_accounts_of_one_platform_share_no_message_and_no_chat(door: Door) -> None:
    first = await door.one(event("for one"))
    other = replace(first.event, account=Account(channel="loopback", name="second"), text="for the other")
    assert (await door.one(other)).accepted.state == "new"
    for kind in (EventKind.EDITED, EventKind.DELETED):
        await door.one(replace(other, kind=kind, platform_event_id=f"{kind}", text="changed"))
    assert "for one" in await door.rows("messages", "text")
    assert len(await door.rows("conversations", "key")) == 2


@pytest.mark.rule("CH-2", "CH-4")
@pytest.mark.parametrize("kind", [EventKind.EDITED, EventKind.DELETED])
async def test_what_changes_an_unknown_message_of_an_unknown_chat_is_noted_and_makes_nothing(door: Door, kind: EventKind) -> None:
    received = await door.one(replace(in_group("x"), kind=kind, chat_id="-9" * 40, platform_message_id="-1"))
    assert received.accepted.state == "done"
    assert await door.rows("messages", "text") == []
    assert await door.rows("conversations", "key") == []


_IDS = ["platform_message_id", "chat_id", "parent_chat_id", "space_id", "shared_id", "thread_id", "sender_id", "target"]


@pytest.mark.rule("CH-1", "CH-4", "CH-53")
@pytest.mark.parametrize(
    ("field", "kind"),
    [
        *((field, EventKind.MESSAGE) for field in _IDS),
        *(("chat_id", kind) for kind in EventKind if kind not in (EventKind.MESSAGE, EventKind.UNKNOWN)),
    ],
)
async def test_an_endless_id_is_refused_with_its_reason_and_stops_nothing(
    door: Door, caplog: pytest.LogCaptureFixture, field: str, kind: EventKind
) -> None:
    endless = replace(event("secret words"), kind=kind, chat_type=ChatType.THREAD, **{field: "😀" * 60_000})
    long, good = await door.receive(endless, event("hello"))
    assert (long.accepted.state, long.accepted.rule) == ("dead", "id-too-long")
    assert good.accepted.state == "new"
    assert (await door.accepted(endless))[0].arrival is Arrival.DUPLICATE
    assert f"{field} has 60,000 characters" in caplog.text
    assert "😀" * 201 not in caplog.text
    assert await door.rows("messages", "text") == ["hello"]
    assert "secret words" not in str(await door.rows("inbox", "event"))
    assert max(map(len, await door.rows("inbox", "address"))) < 1_000
    assert await door.rows("identities", "platform_user_id") == ["ann"]


@pytest.mark.rule("CH-1", "CH-51")
async def test_two_endless_keys_that_begin_alike_are_two_events(door: Door) -> None:
    first, second = (event(text, platform_event_id="k" * 5_000 + text) for text in ("one", "two"))
    assert [each.arrival for each in await door.accepted(first, second, first)] == [Arrival.NEW, Arrival.NEW, Arrival.DUPLICATE]
    assert await door.rows("messages", "text") == ["one", "two"]


@pytest.mark.rule("CH-1", "CH-4")
async def test_what_cannot_be_read_is_kept_however_long_its_ids_are(door: Door) -> None:
    (kept,) = await door.accepted(event("{}", kind=EventKind.UNKNOWN, chat="c" * 9_999, platform_event_id="e" * 9_999, hint="h" * 9_999))
    assert (kept.state, kept.rule) == ("ignored", "unknown")


@pytest.mark.rule("CH-1", "CH-7")
async def test_endless_names_are_cut_and_cost_no_message(door: Door) -> None:
    long = "\u9577" * 50_000
    file = Attachment(kind=long, name=long, mime=long, fetch_ref=long)
    reply = ReplyTo(message_id=long, author_name=long, excerpt=long)
    received = await door.one(event("hello", sender_name=long, language=long, hint=long, attachments=(file,), reply_to=reply))
    assert received.accepted.state == "new"
    stored = [
        *await door.rows("inbox", "event"),
        *await door.rows("messages", "attachments", "reply_to", "author_name"),
        *await door.rows("people", "name"),
    ]
    assert len(str(stored)) < 10_000
