"""The iLink adapter against the fake server: receiving, the session, typing, files. What may be sent is in test_wechat_ilink_budget.py."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from datetime import timedelta
from typing import Any

import pytest

from channels.errors import AttachmentRefused, ConnectionLost, CredentialRefused
from channels.message import Address, Attachment
from channels.port import Arrival, LoginState, NeedsOperator, Refused, Sent, TryLater, Unknown
from channels.wechat.ilink.adapter import HEADERS, SCAN_AGAIN
from channels.wechat.ilink.tickets import Tickets
from gateway.supervise import ChannelState, Supervisor
from tests.conftest import FakeClock
from tests.contracts.channel_contract import until
from tests.patience import patience
from tests.peers.wechat.ilink_desk import ACCOUNT, ANN, BOB, Desk, file, part
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_world import TOKEN, Stored, World


@pytest.fixture
async def desk(clock: FakeClock) -> AsyncGenerator[Desk]:
    world = World(hold_s=0.05, rate_limited=False, clock=lambda: clock().timestamp())
    with FakeIlink(world) as server:
        found = Desk(server, clock)
        found.logged_in()
        yield found
        assert world.violations == []


def address(person: str = ANN) -> Address:
    return Address(account=ACCOUNT, chat_id=person)


# In


@pytest.mark.rule("WX-31", "WX-30", "CH-10")
@pytest.mark.case("WE-26")
async def test_a_batch_its_cursor_and_its_context_tokens_are_stored_together(desk: Desk) -> None:
    desk.journal.stuck_before = True
    async with desk.connected():
        for words in ("one", "two", "three"):
            desk.server.says(ANN, words)
        await asyncio.wait_for(desk.journal.entered.wait(), patience(5))
    assert (desk.journal.events, desk.kept.cursor) == ([], "")
    assert f"context/{ANN}" not in desk.kept.entries
    desk.journal.stuck_before = False
    async with desk.connected():
        await desk.journal.until(3)
    assert desk.journal.texts == ["one", "two", "three"]
    newest = desk.world.feed[-1]["context_token"]
    assert json.loads(desk.kept.entries[f"context/{ANN}"])["token"] == newest
    cursors = [call.body["get_updates_buf"] for call in desk.world.called("getupdates")]
    async with desk.connected():
        await asyncio.sleep(0.1)
    assert desk.journal.arrivals == [Arrival.NEW] * 3, "what was handed on is not asked for again"
    assert cursors[0] == ""
    assert desk.world.calls[-2].body["get_updates_buf"] == desk.kept.cursor != ""


@pytest.mark.rule("WX-30", "WX-172")
async def test_without_news_the_cursor_stays_unless_the_server_moves_it(desk: Desk) -> None:
    async with desk.connected():
        await asyncio.sleep(0.15)
        assert desk.kept.cursor == ""
        desk.world.empty_cursors = True
        desk.server.put({"message_type": 2, "from_user_id": "x", "message_id": 1})
        await until(lambda: desk.kept.cursor != "")
        moved = desk.kept.cursor
        await asyncio.sleep(0.15)
        assert desk.kept.cursor == moved


@pytest.mark.rule("WX-30", "WX-172")
async def test_the_servers_hold_is_taken_over_and_a_server_that_does_not_hold_is_not_hurried(desk: Desk) -> None:
    async with desk.connected():
        await asyncio.sleep(0.3)
        assert len(desk.world.called("getupdates")) <= 9
        desk.world.hold_s = 0.001
        asked = len(desk.world.called("getupdates"))
        await asyncio.sleep(0.5)
        assert len(desk.world.called("getupdates")) - asked <= 15


@pytest.mark.rule("WX-30", "CH-215")
@pytest.mark.case("WE-24")
async def test_our_own_time_out_is_an_empty_batch_with_the_same_cursor_and_no_proof(desk: Desk) -> None:
    desk.margin_s = 0.05
    channel = desk.adapter()
    task = asyncio.ensure_future(channel.run(desk.kept.delivering(desk.journal)))
    desk.server.says(ANN, "hello")
    await desk.journal.until(1)
    cursor, proof, asked = desk.kept.cursor, channel.proven_at, len(desk.world.called("getupdates"))
    desk.world.deaf = True
    desk.advance(minutes=1)
    await until(lambda: len(desk.world.called("getupdates")) >= asked + 5)
    assert (desk.kept.cursor, channel.proven_at) == (cursor, proof)
    assert {call.body["get_updates_buf"] for call in desk.world.called("getupdates")[asked:]} == {cursor}
    desk.world.fail("getupdates", {"ret": -14, "errcode": -14}, {"ret": -14, "errcode": -14})
    with pytest.raises(CredentialRefused, match="scan again"):
        await asyncio.wait_for(task, patience(5))


@pytest.mark.rule("WX-172", "CH-25")
async def test_an_old_cursor_brings_the_same_again_and_an_unknown_one_begins_anew(desk: Desk) -> None:
    async with desk.connected():
        desk.server.says(ANN, "one")
        await desk.journal.until(1)
    desk.kept.cursor = "never heard of"
    async with desk.connected():
        await desk.journal.until_arrived(2)
    assert desk.journal.arrivals == [Arrival.NEW, Arrival.DUPLICATE]


@pytest.mark.rule("CH-4", "CH-27")
async def test_what_is_no_message_at_all_costs_the_others_nothing(desk: Desk) -> None:
    async with desk.connected():
        desk.world.feed += [None, "nonsense", 7]  # type: ignore[list-item]
        desk.server.says(ANN, "and I")
        events = await desk.journal.until(4)
    assert [event.kind.value for event in events] == ["unknown"] * 3 + ["message"]


@pytest.mark.rule("WX-34", "WX-177")
async def test_a_group_is_one_line_for_the_operator(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    async with desk.connected():
        for _ in range(3):
            desk.server.says(ANN, "all of you", group_id="g1")
        desk.server.says(BOB, "and you")
        await desk.journal.until(4)
    assert [event.text for event in desk.journal.events] == ["", "", "", "and you"]
    assert sum("g1" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.rule("WX-29", "WX-175", "WX-170", "WX-28", "WX-27")
async def test_start_and_stop_are_told_once_and_every_call_has_what_the_vendor_wants(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        await channel.typing(address(), True)
        assert isinstance(await channel.send(part("hi")), Sent)
    assert desk.world.notices == ["start", "stop"]
    for call in desk.world.calls:
        assert call.headers["iLink-App-ClientVersion"] == "132099"
        assert call.body["base_info"] == {"channel_version": "2.4.3", "bot_agent": "Yumegate/0.1.0"}
    assert len({call.headers["X-WECHAT-UIN"] for call in desk.world.calls}) == len(desk.world.calls)


@pytest.mark.rule("WX-29")
async def test_notices_that_fail_are_a_line_in_the_log(desk: Desk) -> None:
    desk.world.fail("msg/notifystart", {"ret": 1})
    desk.world.fail("msg/notifystop", {"hang": True})
    async with desk.connected():
        pass


# The session


@pytest.mark.rule("CH-21", "CH-212")
@pytest.mark.parametrize("answer", [{"ret": -14}, {"errcode": -14}, {"ret": -14, "errcode": -14}])
async def test_a_session_that_is_gone_is_asked_once_more_and_then_the_operators_business(desk: Desk, answer: dict[str, int]) -> None:
    desk.world.fail("getupdates", answer, answer)
    channel = desk.adapter()
    with pytest.raises(CredentialRefused) as raised:
        await channel.run(desk.journal)
    assert str(raised.value) == SCAN_AGAIN.reason
    assert len(desk.world.called("getupdates")) == 2
    assert isinstance(await channel.send(part("hi")), NeedsOperator)
    assert desk.world.called("sendmessage") == []


async def test_one_refusal_alone_is_forgiven(desk: Desk) -> None:
    desk.world.fail("getupdates", {"ret": -14})
    async with desk.spoken_to():
        pass
    assert desk.journal.texts == ["hello"]


@pytest.mark.rule("CH-212")
async def test_a_lost_session_is_probed_with_one_question_and_heals(desk: Desk) -> None:
    desk.world.expired = True
    for asked in (2, 3, 4):
        with pytest.raises(CredentialRefused):
            await desk.adapter().run(desk.journal)
        assert len(desk.world.called("getupdates")) == asked
    desk.world.expired = False
    async with desk.connected():
        pass
    desk.world.expired = True
    with pytest.raises(CredentialRefused):
        await desk.adapter().run(desk.journal)
    assert len(desk.world.called("getupdates")) >= 7, "it had healed: again it is believed at the second time"


@pytest.mark.rule("WX-170")
@pytest.mark.case("WE-23")
async def test_a_refusal_right_after_the_login_points_to_the_headers_and_not_to_a_scan(desk: Desk) -> None:
    desk.logged_in(proven=False)
    desk.world.fail("getupdates", {"errcode": -14}, {"errcode": -14})
    with pytest.raises(CredentialRefused) as raised:
        await desk.adapter().run(desk.journal)
    assert str(raised.value) == HEADERS.reason
    assert "headers" in HEADERS.reason
    async with desk.connected():
        pass
    assert json.loads(desk.kept.entries["credentials"])["proven"]


@pytest.mark.rule("WX-177", "CH-212")
async def test_another_client_that_takes_over_ends_ours_and_a_new_login_begins_anew(desk: Desk) -> None:
    async with desk.spoken_to():
        pass
    desk.world.token = f"{TOKEN}-of-another"
    with pytest.raises(CredentialRefused):
        await desk.adapter().run(desk.journal)
    desk.world.qr.append({"status": "confirmed"})
    assert (await desk.login().run()).state is LoginState.DONE
    assert desk.kept.cursor == ""
    async with desk.connected():
        await desk.journal.until_arrived(2)
    assert desk.journal.arrivals == [Arrival.NEW, Arrival.DUPLICATE]


@pytest.mark.case("WE-29")
@pytest.mark.rule("CH-11")
async def test_a_send_that_finds_the_session_gone_waits_once_and_then_stops_the_account(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        desk.world.fail("sendmessage", {"errcode": -14}, {"ret": 0}, {"errcode": -14}, {"errcode": -14})
        assert await channel.send(part("one", number=1)) == TryLater(0.02)
        assert isinstance(await channel.send(part("one", number=1)), Sent)
        assert isinstance(await channel.send(part("two", number=2)), TryLater)
        assert isinstance(await channel.send(part("two", number=2)), NeedsOperator)


@pytest.mark.rule("CH-9")
@pytest.mark.parametrize(
    "fault", [{"status": 500}, {"status": 408}, {"status": 429}, {"status": 404}, {"cut": "before"}, {"text": "<html>"}, {"ret": 1}]
)
async def test_broken_polls_pause_and_the_third_in_a_row_is_the_supervisors(desk: Desk, fault: dict[str, Any]) -> None:
    async with desk.connected():
        desk.world.fail("getupdates", fault, fault)
        desk.server.says(ANN, "still there?")
        await desk.journal.until(1)
    desk.world.fail("getupdates", *[fault] * 3)
    with pytest.raises(ConnectionLost):
        await desk.adapter().run(desk.journal)


@pytest.mark.case("WE-25")
@pytest.mark.rule("CH-211", "CH-210")
async def test_when_the_network_goes_the_state_says_so_and_it_comes_back_by_itself(desk: Desk) -> None:
    supervisor = Supervisor(ACCOUNT, desk.adapter, clock=desk.clock, backoff_s=(0.02,), check_s=0.01)
    async with asyncio.TaskGroup() as group:
        task = group.create_task(supervisor.run(desk.kept.delivering(desk.journal)))
        await until(lambda: supervisor.status().state is ChannelState.READY)
        desk.server.network(False)
        await until(lambda: supervisor.status().state is ChannelState.DEGRADED)
        desk.server.says(ANN, "hello?")
        desk.server.network(True)
        await desk.journal.until(1)
        await until(lambda: supervisor.status().state is ChannelState.READY)
        task.cancel()


# Sends


@pytest.mark.rule("WX-13", "WX-37", "WX-173")
@pytest.mark.case("WE-29")
@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        ({"ret": 0}, Sent), ({"ret": -3}, Refused), ({"errcode": 1, "errmsg": "no"}, Refused), ({"ret": 1}, Refused),
        ({"ret": -2, "errmsg": "prepare failed"}, TryLater), ({"errcode": -2}, TryLater),
        ({"bad_json": True}, Unknown), ({"empty": True}, Unknown), ({"cut": "after"}, Unknown), ({"cut": "before"}, Unknown),
        ({"status": 500}, Unknown), ({"status": 408}, Unknown), ({"status": 429}, Unknown), ({"status": 403}, Refused),
    ],
)  # fmt: skip
async def test_success_is_read_from_the_body(desk: Desk, answer: dict[str, Any], kind: type[object]) -> None:
    async with desk.spoken_to() as channel:
        desk.world.fail("sendmessage", answer)
        assert isinstance(await channel.send(part("hi")), kind)


@pytest.mark.rule("WX-36", "WX-174")
async def test_a_message_is_sent_as_the_vendor_wants_it(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        outcome = await channel.send(part("你好 **there**"))
    (call,) = desk.world.called("sendmessage")
    message = call.body["msg"]
    assert message == {
        "from_user_id": "", "to_user_id": ANN, "client_id": message["client_id"], "message_type": 2, "message_state": 2,
        "item_list": [{"type": 1, "text_item": {"text": "你好 **there**"}}], "context_token": desk.world.feed[-1]["context_token"],
    }  # fmt: skip
    assert "你好".encode() in call.raw
    assert outcome == Sent((desk.world.shown[0].message_id,))
    assert int(desk.world.shown[0].message_id) > 1 << 53


@pytest.mark.rule("WX-37", "CH-35")
async def test_a_message_without_an_answer_is_sent_once_more_and_then_given_up(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        desk.world.fail("sendmessage", {"cut": "after"}, {"cut": "after"}, {"cut": "before"}, {"cut": "before"})
        assert [type(await channel.send(part("one"))) for _ in range(3)] == [Unknown, Unknown, Refused]
        assert [type(await channel.send(part("two", number=2))) for _ in range(3)] == [Unknown, Unknown, Refused]
    assert desk.world.texts() == ["one"]
    assert len(desk.world.called("sendmessage")) == 4


@pytest.mark.rule("WX-11", "CH-43")
async def test_an_invalid_message_is_told_by_its_form_alone(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    async with desk.spoken_to() as channel:
        desk.world.fail("sendmessage", {"ret": -3, "errmsg": f"bad {TOKEN}"})
        outcome = await channel.send(part("private words"))
    told = "\n".join(record.getMessage() for record in caplog.records) + repr(outcome)
    assert "text of 13" in told
    for secret in ("private words", TOKEN, "secret"):
        assert secret not in told


# Typing


@pytest.mark.rule("WX-46", "WX-175", "CH-37")
@pytest.mark.case("WE-33")
async def test_typing_is_shown_by_a_ticket_that_is_asked_for_once(desk: Desk) -> None:
    async with desk.spoken_to() as channel:
        for on in (True, False, True, False):
            await channel.typing(address(), on)
    assert desk.world.typing == [(ANN, True), (ANN, False)] * 2
    assert len(desk.world.called("getconfig")) == 1


@pytest.mark.rule("WX-46")
@pytest.mark.case("WE-33", "DL-09")
async def test_typing_is_shown_once_in_a_turn_unless_it_is_to_be_kept_alive(desk: Desk) -> None:
    assert (desk.settings.capabilities.typing_refresh_s or 0) >= 600, "longer than a turn may take"
    desk.more["keep_typing"] = True
    assert desk.settings.capabilities.typing_refresh_s == 5
    desk.world.typing_counts = True  # the worst case: on and off of one turn still leave the eight messages of the budget
    async with desk.spoken_to() as channel:
        await channel.typing(address(), True)
        outcomes = [await channel.send(part(f"{n}", number=n)) for n in range(8)]
        await channel.typing(address(), False)
    assert all(isinstance(outcome, Sent) for outcome in outcomes)


@pytest.mark.rule("WX-46")
async def test_no_ticket_is_no_typing_and_is_not_asked_for_at_every_turn(desk: Desk) -> None:
    asked: list[int] = []
    async with desk.spoken_to() as channel:
        desk.world.fail("getconfig", {"status": 500}, {"ret": 1}, {"ret": 0})
        for wait_s in (0, 0, 3, 3, 3):
            desk.advance(seconds=wait_s)
            await channel.typing(address(), True)
            asked.append(len(desk.world.called("getconfig")))
        await channel.typing(address(BOB), True)  # who never wrote
    assert asked == [1, 1, 2, 2, 3]
    assert desk.world.typing == []


@pytest.mark.rule("WX-46")
def test_a_ticket_is_kept_for_up_to_a_day_and_failures_back_off_to_an_hour(clock: FakeClock) -> None:
    tickets = Tickets(clock, chance=lambda: 0.5)
    tickets.got(ANN, "t")
    clock.advance(hours=11)
    assert tickets.of(ANN) is not None
    clock.advance(hours=2)
    assert tickets.of(ANN) is None
    waits: list[float] = []
    for _ in range(14):
        tickets.failed(BOB)
        found = tickets.of(BOB)
        assert found is not None and found.text == ""
        waits.append((found.until - clock()).total_seconds())
        clock.advance(timedelta(seconds=waits[-1]))
    assert waits[:4] == [2, 4, 8, 16]
    assert waits[-1] == 3600


# Files


@pytest.mark.rule("WX-50", "WX-51", "WX-52", "WX-176")
@pytest.mark.parametrize("full_urls", [True, False])
async def test_a_text_and_its_files_go_out_one_by_one(desk: Desk, full_urls: bool) -> None:
    desk.world.full_urls = full_urls
    desk.files = {"a": b"picture", "b": b"", "c": b"x" * 2_000_000}
    outgoing = part("look", attachments=(file("a.png", "a", mime="image/png"), file("../../b.txt", "b"), file("c.mp4", "c", mime="video/mp4")))
    async with desk.spoken_to() as channel:
        outcome = await channel.send(outgoing)
    assert isinstance(outcome, Sent)
    assert list(outcome.platform_ids) == [shown.message_id for shown in desk.world.shown]
    assert [(shown.item["type"], shown.text, shown.file, shown.name) for shown in desk.world.shown] == [
        (1, "look", b"", ""), (2, "", b"picture", ""), (4, "", b"", "b.txt"), (5, "", b"x" * 2_000_000, ""),
    ]  # fmt: skip


@pytest.mark.rule("WX-51", "WX-176")
@pytest.mark.case("WE-28")
@pytest.mark.parametrize(
    ("faults", "kind", "tries"),
    [
        ([{"status": 500}, {"status": 500}], Sent, 3),
        ([{"status": 500}] * 3, TryLater, 3),
        ([{"cut": "before"}, {"cut": "before"}], Sent, 3),
        ([{"status": 400, "headers": {"x-error-message": "bad file"}}], Refused, 1),
        ([{"no_header": True}], Refused, 1),
    ],
)
async def test_an_upload_is_tried_three_times_and_a_refusal_once(desk: Desk, faults: list[dict[str, Any]], kind: type[object], tries: int) -> None:
    desk.files = {"a": b"data"}
    async with desk.spoken_to() as channel:
        desk.world.fail("upload", *faults, {"status": 500})
        if kind is Sent:
            desk.world.faults["upload"].pop()
        outcome = await channel.send(part("the words", attachments=(file("a.pdf", "a"),)))
    assert isinstance(outcome, kind)
    assert desk.world.texts()[0] == "the words", "text arrives anyway"
    left = len(desk.world.faults["upload"])
    assert left == (0 if kind is Sent else 1)
    if kind is Refused and "status" in faults[0]:
        assert "bad file" in getattr(outcome, "reason", "")
    assert tries == len(faults) + (kind is Sent)


@pytest.mark.rule("WX-40")
async def test_who_writes_while_a_file_is_on_its_way_is_answered_with_the_new_token(desk: Desk) -> None:
    desk.files = {"a": b"data"}
    async with desk.spoken_to() as channel:
        desk.world.fail("upload", {"slow": 0.3})
        sending = asyncio.ensure_future(channel.send(part("", attachments=(file("a.pdf", "a"),))))
        await until(lambda: bool(desk.world.called("getuploadurl")))
        desk.advance(seconds=1)
        desk.server.says(ANN, "are you there?")
        await desk.journal.until(2)
        assert isinstance(await sending, Sent)
    assert desk.world.called("sendmessage")[0].body["msg"]["context_token"] == desk.world.feed[-1]["context_token"]
    assert json.loads(desk.kept.entries[f"context/{ANN}"])["sent_count"] == 1


@pytest.mark.rule("CH-7", "WX-51")
@pytest.mark.case("WE-28")
async def test_a_file_that_is_not_taken_is_replaced_by_a_sentence(desk: Desk) -> None:
    desk.files = {"a": b"data"}
    async with desk.spoken_to() as channel:
        desk.world.fail("upload", {"status": 400})
        outcome = await channel.send(part("words", attachments=(file("a.pdf", "a"),), file_note="The file could not be sent."))
    assert isinstance(outcome, Sent)
    assert desk.world.texts() == ["words", "The file could not be sent."]


@pytest.mark.rule("CH-7")
async def test_a_file_that_is_too_large_or_cannot_be_read_is_refused(desk: Desk) -> None:
    async def nothing(_: Attachment) -> bytes:
        raise FileNotFoundError(2, "No such file")

    desk.files = {"large": b"x" * 20_000_001}
    async with desk.spoken_to() as channel:
        assert isinstance(await channel.send(part("", attachments=(file("l", "large"),))), Refused)
        channel._sender._read_file = nothing  # type: ignore[union-attr]
        assert isinstance(await channel.send(part("", number=2, attachments=(file("n", "none"),))), Refused)
    assert desk.world.shown == []


@pytest.mark.rule("WX-53", "WX-176", "CH-30")
@pytest.mark.parametrize("key_as", ["hex", "base64", "base64 hex", "none"])
async def test_received_files_are_opened_whatever_their_key_looks_like(desk: Desk, key_as: str) -> None:
    async with desk.connected() as channel:
        desk.server.says(ANN, items=[desk.world.image(b"picture", key_as=key_as), desk.world.file("a.txt", b"words"), desk.world.video(b"film")])
        (event,) = await desk.journal.until(1)
        assert [await channel.fetch(each, 100) for each in event.attachments] == [b"picture", b"words", b"film"]
        with pytest.raises(AttachmentRefused):
            await channel.fetch(event.attachments[0], 6)
    with pytest.raises(ConnectionLost):
        await channel.fetch(event.attachments[0], 100)


@pytest.mark.case("WP-21")
@pytest.mark.rule("WX-53", "WX-176")
async def test_a_file_is_fetched_from_trusted_places_alone_and_never_beyond_its_limit(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    async with desk.connected() as channel:
        item = desk.world.file("a.txt", b"words")
        parameter = item["file_item"]["media"]["encrypt_query_param"]
        desk.server.says(ANN, items=[item])
        (event,) = await desk.journal.until(1)
        stored, (attachment,) = desk.world.files[parameter], event.attachments
        for elsewhere, fine in ((f"{desk.server.url}/full/moved", True), ("http://169.254.169.254/x", False), (f"{desk.server.second_url}/x", False)):
            desk.world.files[parameter] = Stored(data=b"", elsewhere=elsewhere)
            desk.world.files["moved"] = stored
            if fine:
                assert await channel.fetch(attachment, 100) == b"words"
            else:
                with pytest.raises(AttachmentRefused):
                    await channel.fetch(attachment, 100)
        desk.world.files[parameter] = Stored(data=b"x", elsewhere=f"{desk.server.cdn_url}/download?encrypted_query_param=circle")
        desk.world.files["circle"] = desk.world.files[parameter]
        with pytest.raises(AttachmentRefused):
            await channel.fetch(attachment, 100)
        desk.world.files[parameter] = Stored(data=b"x" * 1000, announced=101_000_000)
        with pytest.raises(AttachmentRefused):
            await channel.fetch(attachment, 200_000_000)
        desk.world.files[parameter] = stored
        desk.world.fail("download", {"status": 500}, {"cut": "before"}, {"cut": "before"})  # the library asks once more by itself
        for _ in range(2):
            with pytest.raises(ConnectionLost):
                await channel.fetch(attachment, 100)
    assert not any(parameter in record.getMessage() for record in caplog.records)


async def test_a_file_by_its_full_address_is_asked_there_and_only_there(desk: Desk) -> None:
    async with desk.connected() as channel:
        desk.world.files["x"] = Stored(data=b"open")
        media = {"full_url": f"{desk.server.url}/full/x?sig=a%2Bb", "encrypt_query_param": "no"}
        desk.server.says(ANN, items=[{"type": 2, "image_item": {"media": media}}])
        (event,) = await desk.journal.until(1)
        assert await channel.fetch(event.attachments[0], 100) == b"open"



@pytest.mark.rule("WX-53")
async def test_a_store_that_offers_no_safe_connection_is_reported_and_not_asked_otherwise(desk: Desk) -> None:
    desk.more["trusted_hosts"] = ("127.0.0.1",)
    async with desk.connected() as channel:
        address = desk.server.second_url.replace("http://", "https://")
        desk.server.says(ANN, items=[{"type": 2, "image_item": {"media": {"full_url": f"{address}/full/x"}}}])
        (event,) = await desk.journal.until(1)
        with pytest.raises(ConnectionLost, match="TLS"):
            await channel.fetch(event.attachments[0], 100)
