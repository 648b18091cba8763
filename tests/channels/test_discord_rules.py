"""What the Discord adapter decides without a connection: names of commands, places, blocks, answers to commands, and what errors mean."""

from __future__ import annotations

import asyncio
import errno
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import discord
import pytest
from aiohttp.client_reqrep import ConnectionKey
from hypothesis import given
from hypothesis import strategies as st

from channels.discord import history
from channels.discord.commands import checked, fingerprint, payload
from channels.discord.echoes import Echoes
from channels.discord.edge import Edge
from channels.discord.interactions import Pending
from channels.discord.outcomes import INTENT_MISSING, TOKEN_REFUSED, fault_of, is_edge_block, is_limit, outcome_of
from channels.discord.position import KNOWN_MAX, Place, Position
from channels.discord.sending import nonce
from channels.discord.settings import CAPABILITIES, DiscordSettings, SlashCommand
from channels.errors import ConnectionLost, CredentialRefused
from channels.port import Markup, NeedsOperator, Refused, TextUnit, TryLater, Unknown
from tests.conftest import FakeClock

GROUP = Place(channel_id="110", guild_id="100")
THREAD = Place(channel_id="120", guild_id="100", parent_id="111")


@pytest.mark.rule("CH-8", "CH-187")
def test_what_discord_can_do_is_data() -> None:
    can = CAPABILITIES
    assert (can.text_unit, can.text_max, can.markup, can.caption_max) == (TextUnit.UTF16, 2000, Markup.MARKDOWN, None)
    assert (can.edit_interval_s, can.typing_refresh_s, can.threads, can.reactions) == (1.2, 8.0, True, True)
    assert (can.resend_key_s, can.reconcile, can.send_budget, can.media_max_bytes, can.liveness_s) == (120.0, True, None, 10_000_000, 60.0)
    assert "secret" not in repr(DiscordSettings(token="secret"))


# Slash commands


@pytest.mark.case("DC-10")
@pytest.mark.rule("CH-189")
def test_only_the_bad_names_are_left_out() -> None:
    names = ["Help Me", "总结!", "x" * 33, "status", "总结", "まとめ", "x" * 32, "a-b_c", "", "STATUS"]
    kept, lines = checked([SlashCommand(name=name, description="does it") for name in names])
    assert [command.name for command in kept] == ["status", "总结", "まとめ", "x" * 32, "a-b_c"]
    assert len(lines) == 5


@pytest.mark.rule("CH-189")
def test_a_hundred_commands_are_registered_and_their_print_tells_a_change() -> None:
    many = [SlashCommand(name=f"c{number}", description="x" * 300) for number in range(120)]
    kept, lines = checked([*many, many[0], SlashCommand(name="mute", description=" ")])
    assert (len(kept), len(lines)) == (100, 22)
    body = payload(kept)
    assert all(len(command["description"]) <= 100 for command in body)
    assert fingerprint(body) == fingerprint(payload(kept))
    assert fingerprint(body) != fingerprint(payload(kept[:-1]))
    told = payload([SlashCommand(name="a", description="b", localized={"ja": "ビー"})])
    assert told[0]["description_localizations"] == {"ja": "ビー"}


# The cursor


@pytest.mark.rule("CH-190", "CH-10")
def test_a_position_reads_back_and_only_grows() -> None:
    position = Position().after(GROUP, "5", speaks=True).after(THREAD, "9", speaks=True).after(GROUP, "3", speaks=False)
    assert Position.parse(str(position)) == position
    assert position.seen["110"] == (GROUP, "5")
    assert Position().after(GROUP, "5", speaks=False) == Position(), "a channel where nobody speaks to us is no conversation"
    assert position.without("110").place("110") is None
    for broken in ("", "x", "[1]", '{"1": 2}', '{"1": ["x", "", ""]}', '{"1": ["5", ""]}'):
        assert Position.parse(broken) == Position()


@pytest.mark.rule("CH-190")
def test_the_most_silent_conversations_go_first() -> None:
    position = Position()
    for number in range(KNOWN_MAX + 5):
        position = position.after(Place(channel_id=str(number)), "7", speaks=True)
        position = position.after(Place(channel_id="0"), str(number + 1), speaks=True)
    assert len(position.seen) == KNOWN_MAX
    assert "0" in position.seen
    assert "1" not in position.seen


@given(st.lists(st.tuples(st.integers(1, 6), st.integers(1, 10**19), st.booleans())))
@pytest.mark.rule("CH-190", "CH-1")
def test_any_position_survives_its_text(steps: list[tuple[int, int, bool]]) -> None:
    position = Position()
    for channel, message, speaks in steps:
        position = position.after(Place(channel_id=str(channel)), str(message), speaks=speaks)
    assert Position.parse(str(position)) == position


# What was missed


def row(at: datetime, author: str = "ann") -> dict[str, object]:
    return {"id": str(discord.utils.time_snowflake(at)), "author": {"id": author}}


@pytest.mark.case("DC-15")
@pytest.mark.rule("CH-190")
def test_of_what_was_missed_the_newest_fifty_that_are_young_enough_are_taken() -> None:
    now = datetime(2026, 3, 14, 9, tzinfo=UTC)
    rows = [row(now - timedelta(seconds=n)) for n in range(80)] + [row(now - timedelta(hours=2)), row(now, "me")]
    found = history.choose([*rows, *rows[:10]], since=now - timedelta(minutes=10), me="me")
    assert (len(found.messages), found.left, found.more) == (50, 31, False)
    ids = [int(str(message["id"])) for message in found.messages]
    assert ids == sorted(ids)
    assert ids[-1] == int(str(rows[0]["id"]))


# The edge


@pytest.mark.rule("CH-186")
def test_the_account_keeps_still_for_a_minute_and_then_for_longer(clock: FakeClock) -> None:
    edge = Edge(clock)
    waits: list[float] = []
    for _ in range(6):
        waits.append(edge.close())
        assert edge.close() == waits[-1], "told twice at the same time it is one block"
        clock.advance(seconds=waits[-1])
        assert edge.wait_s() == 0
    assert waits == [60, 120, 240, 480, 600, 600]
    edge.open()
    assert edge.close() == 60


@pytest.mark.rule("CH-120")
def test_what_we_said_is_known_for_a_minute(clock: FakeClock) -> None:
    echoes = Echoes(clock)
    echoes.say("tea is up ")
    echoes.say("  ")
    assert echoes.heard("1", "tea is up")
    assert not echoes.heard("1", "")
    clock.advance(seconds=61)
    assert not echoes.heard("1", "tea is up")


# Answers to commands


def interaction(number: int) -> discord.Interaction:
    return cast("discord.Interaction", SimpleNamespace(id=number))


@pytest.mark.rule("CH-188")
async def test_the_first_part_that_belongs_to_a_command_answers_it(clock: FakeClock) -> None:
    pending = Pending(clock)
    called = interaction(1)
    pending.link("1", "delivery-1", "", refused=False)  # stored before we are told that it is deferred
    pending.expect(called)
    taking = asyncio.ensure_future(pending.take("delivery-1.answer.1"))
    await asyncio.sleep(0)
    assert not taking.done(), "an answer before the deferral would be refused"
    pending.settle(called, deferred=True)
    assert await taking is called
    assert await pending.take("delivery-1.answer.1") is called, "the same part again is the same answer"
    assert await pending.take("delivery-1.answer.2") is None
    assert await pending.take("delivery-2.answer.1") is None


@pytest.mark.rule("CH-188")
async def test_after_fourteen_minutes_and_without_a_deferral_it_is_a_message_of_its_own(clock: FakeClock) -> None:
    pending = Pending(clock)
    late, lost = interaction(1), interaction(2)
    for number, each in ((1, late), (2, lost)):
        pending.expect(each)
        pending.link(str(number), f"turn-{number}", refused=False)
    pending.settle(late, deferred=True)
    pending.settle(lost, deferred=False)
    assert await pending.take("turn-2.1.1") is None
    clock.advance(minutes=13, seconds=59)
    assert pending.overdue() == []
    clock.advance(seconds=1)
    assert await pending.take("turn-1.1.1") is None
    assert pending.overdue() == [late], "the sign that we think is taken back"
    assert pending.overdue() == []


@pytest.mark.rule("CH-188")
async def test_a_refused_command_stops_thinking_soon_unless_it_is_told_why(clock: FakeClock) -> None:
    pending = Pending(clock)
    silent, told = interaction(1), interaction(2)
    for each in (silent, told):
        pending.expect(each)
        pending.settle(each, deferred=True)
        pending.link(str(each.id), f"d{each.id}", refused=True)
    assert await pending.take("d2.refused.1") is told
    clock.advance(seconds=5)
    assert pending.overdue() == [silent]


# What errors mean


def refusal(status: int, code: int = 0, *, headers: dict[str, str] | None = None, body: Any = None) -> discord.HTTPException:
    response = cast("aiohttp.ClientResponse", SimpleNamespace(status=status, reason="", headers=headers or {"Via": "1.1 x"}))
    kind = {403: discord.Forbidden, 404: discord.NotFound}.get(status, discord.DiscordServerError if status >= 500 else discord.HTTPException)
    return kind(response, body if body is not None else {"code": code, "message": "words"})


def connector(error: OSError) -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(cast("ConnectionKey", SimpleNamespace(host="h", port=1, ssl=True)), error)


@pytest.mark.rule("CH-11", "CH-34", "CH-38", "CH-33", "CH-36", "CH-185")
@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (discord.RateLimited(45.0), TryLater),
        (refusal(429), TryLater),
        (refusal(401), NeedsOperator),
        (refusal(400, 40001), NeedsOperator),
        (refusal(403, 50001), Refused),
        (refusal(403, 50013), Refused),
        (refusal(403, 50007), Refused),
        (refusal(404, 10003), Refused),
        (refusal(400, 50035), Refused),
        (refusal(503), Unknown),
        (connector(ConnectionRefusedError(errno.ECONNREFUSED, "refused")), TryLater),
        (aiohttp.ConnectionTimeoutError(), TryLater),
        (aiohttp.ServerDisconnectedError(), Unknown),
        (aiohttp.SocketTimeoutError(), Unknown),
        (TimeoutError(), Unknown),
        (ConnectionResetError(), Unknown),
    ],
)
def test_each_error_has_its_outcome(error: Exception, kind: type[object]) -> None:
    assert isinstance(outcome_of(error), kind)


@pytest.mark.rule("CH-38", "CH-36")
def test_a_missing_permission_is_named_and_a_vanished_message_is_told_apart() -> None:
    refused, gone, closed = (outcome_of(refusal(*each)) for each in ((403, 50013), (404, 10008), (403, 50007)))
    assert isinstance(refused, Refused)
    assert "Send Messages" in refused.reason
    assert isinstance(gone, Refused)
    assert gone.gone
    assert isinstance(closed, Refused)
    assert not closed.gone


@pytest.mark.rule("CH-180", "CH-21")
def test_a_bad_token_and_a_missing_intent_say_what_to_do() -> None:
    closed = [discord.ConnectionClosed(cast("Any", SimpleNamespace(close_code=code)), shard_id=None) for code in (4004, 4014, 4011, 4000)]
    others = (discord.LoginFailure(), discord.PrivilegedIntentsRequired(None), refusal(401), refusal(400, 40001))
    faults = [fault_of(error) for error in (*closed, *others)]
    assert [type(fault) for fault in faults] == [CredentialRefused] * 3 + [ConnectionLost] + [CredentialRefused] * 4
    assert [str(faults[0]), str(faults[1])] == [TOKEN_REFUSED, INTENT_MISSING]
    assert "developer portal" in INTENT_MISSING


@pytest.mark.rule("CH-186")
def test_a_block_by_the_network_is_not_a_limit_of_discord() -> None:
    assert is_edge_block(refusal(429, headers={"Server": "x"}))
    assert is_edge_block(refusal(429, body="<html>error code: 1015</html>"))
    assert not is_edge_block(refusal(429))
    assert not is_edge_block(refusal(403, headers={"Server": "x"}))


@pytest.mark.rule("CH-186", "CH-33")
def test_a_compatible_server_without_a_network_in_front_orders_to_wait() -> None:
    counted = {"x-ratelimit-limit": "10", "Retry-After": "5"}
    assert not is_edge_block(refusal(429, headers=counted))
    assert is_edge_block(refusal(429, headers=counted, body="<html>error code: 1015</html>"))
    assert outcome_of(refusal(429, headers=counted)) == TryLater(5.0)
    assert outcome_of(refusal(429, headers={"X-RateLimit-Global": "true", "Retry-After": "2.5"})) == TryLater(2.5, whole_account=True)
    assert fault_of(refusal(429, headers=counted)).code == "pause"
    assert is_limit(refusal(429, headers=counted)), "an API that counts is an API that answers"


@pytest.mark.rule("CH-33")
@pytest.mark.parametrize("after", ["", "-1", "nan", "inf", "1e99", "Wed, 21 Oct 2026 07:28:00 GMT"])
def test_an_order_to_wait_that_makes_no_sense_is_none(after: str) -> None:
    assert outcome_of(refusal(429, headers={"Via": "1.1 x", "Retry-After": after})) == TryLater()


@pytest.mark.rule("CH-185")
def test_a_nonce_is_the_parts_own_and_short_enough() -> None:
    assert nonce("turn-1.1.1") == nonce("turn-1.1.1")
    assert nonce("turn-1.1.1") != nonce("turn-1.1.2")
    assert len(nonce("turn-1.1.1")) == 24
