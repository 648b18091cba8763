"""Login by a code: every state the vendor knows, as people see it, and what is stored at the end."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from channels.errors import CredentialRefused
from channels.port import LoginState, LoginView, QrLogin
from channels.wechat.ilink.adapter import SCAN
from channels.wechat.ilink.login import IlinkLogin
from tests.conftest import FakeClock
from tests.patience import patience
from tests.peers.wechat.ilink_desk import ANN, Desk
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_world import BOT_ID, TOKEN, World


@pytest.fixture
async def desk(clock: FakeClock) -> AsyncGenerator[Desk]:
    with FakeIlink(World(hold_s=0.05)) as server:
        yield Desk(server, clock)
        assert server.world.violations == []


async def seen_through(login: IlinkLogin, *numbers: str) -> list[LoginView]:
    """Every view of a login from its start to its end; `numbers` are typed as they are asked for."""
    typed, views = list(numbers), [LoginView(state=LoginState.STARTING)]
    task = asyncio.ensure_future(login.run())
    await asyncio.sleep(0)
    async with asyncio.timeout(patience(10)):
        while views[-1].state not in (LoginState.DONE, LoginState.FAILED):
            views.append(await login.changed(views[-1]))
            if views[-1].state is LoginState.NUMBER:
                login.give_number(typed.pop(0))
        assert await task == views[-1]
    return views


def states(views: list[LoginView]) -> list[str]:
    return [view.state.value for view in views]


@pytest.mark.rule("WX-20", "WX-22", "WX-23", "WX-24", "WX-171")
async def test_a_scanned_and_confirmed_code_is_a_login(desk: Desk) -> None:
    desk.world.qr.extend([{"status": "wait"}, {"status": "scaned"}, {"status": "confirmed"}])
    login = desk.login()
    assert isinstance(login, QrLogin)
    views = await seen_through(login)
    assert states(views) == ["starting", "scan", "confirm", "done"]
    assert views[1].code == "https://liteapp.weixin.qq.com/q/fake?qrcode=qr1"
    assert views[-1].person_id == ANN
    kept = json.loads(desk.kept.entries["credentials"])
    assert (kept["token"], kept["bot_id"], kept["base_url"], kept["person_id"]) == (TOKEN, BOT_ID, desk.server.url, ANN)
    assert desk.world.known_tokens == [[]]
    async with desk.connected() as channel:
        assert channel.proven_at is not None


@pytest.mark.rule("WX-23")
@pytest.mark.case("WE-21")
async def test_a_number_is_asked_for_again_when_it_was_wrong_and_a_blocked_code_is_replaced(desk: Desk) -> None:
    script = ["wait", "scaned", "need_verifycode", "need_verifycode", "verify_code_blocked", "wait", "confirmed"]
    desk.world.qr.extend({"status": status} for status in script)
    views = await seen_through(desk.login(), "11", "22")
    assert states(views) == ["starting", "scan", "confirm", "number", "confirm", "number", "confirm", "scan", "done"]
    assert [view.wrong_number for view in views if view.state is LoginState.NUMBER] == [False, True]
    assert desk.world.numbers == ["11", "22"]
    assert desk.world.codes == 2
    assert [view.codes for view in views if view.state is LoginState.SCAN] == [1, 2]


@pytest.mark.rule("WX-23")
async def test_a_right_number_is_sent_at_once_and_dropped_once_it_was_right(desk: Desk) -> None:
    desk.world.qr.extend({"status": status} for status in ("need_verifycode", "scaned", "wait", "need_verifycode", "confirmed"))
    views = await seen_through(desk.login(pause_s=0.05), "12", " 3 4 ")
    assert [view.wrong_number for view in views if view.state is LoginState.NUMBER] == [False, False]
    polled = [call.body.get("verify_code", "") for call in desk.world.called("get_qrcode_status")]
    assert polled == ["", "12", "", "", "34"]


@pytest.mark.rule("WX-23", "WX-171")
@pytest.mark.parametrize("status", ["expired", "verify_code_blocked"])
async def test_after_three_codes_it_ends(desk: Desk, status: str) -> None:
    desk.world.qr.append({"status": status})
    views = await seen_through(desk.login())
    assert (views[-1].state, views[-1].reason, desk.world.codes) == (LoginState.FAILED, "expired", 3)
    assert "credentials" not in desk.kept.entries


@pytest.mark.rule("WX-23")
async def test_the_whole_login_has_an_end(desk: Desk) -> None:
    desk.world.qr.append({"status": "wait"})
    views = await seen_through(desk.login(login_s=0.2))
    assert (views[-1].state, views[-1].reason) == (LoginState.FAILED, "too_long")


@pytest.mark.rule("WX-23", "WX-171")
async def test_a_redirect_is_followed_and_one_without_a_host_stays(desk: Desk) -> None:
    desk.more["trusted_hosts"] = ("127.0.0.1",)
    script = [{"status": "scaned_but_redirect"}, {"status": "scaned_but_redirect", "redirect_host": desk.server.second_url}, {"status": "confirmed"}]
    desk.world.qr.extend(script)
    assert (await seen_through(desk.login()))[-1].state is LoginState.DONE
    asked = [call.headers["Host"] for call in desk.world.called("get_qrcode_status")]
    first, second = desk.server.url.removeprefix("http://"), desk.server.second_url.removeprefix("http://")
    assert asked == [first, first, second]


@pytest.mark.rule("WX-20")
@pytest.mark.parametrize(
    "status",
    [
        {"status": "scaned_but_redirect", "redirect_host": "evil.example"},
        {"status": "confirmed", "bot_token": "t", "ilink_bot_id": "b@im.bot", "baseurl": "https://evil.example"},
        {"status": "confirmed", "bot_token": "t", "ilink_bot_id": "b@im.bot", "baseurl": "http://ilink.weixin.qq.com"},
    ],
)
async def test_a_server_that_is_not_the_vendors_ends_it(desk: Desk, status: dict[str, str]) -> None:
    desk.world.qr.append(status)
    views = await seen_through(desk.login())
    assert (views[-1].state, views[-1].reason) == (LoginState.FAILED, "odd_host")
    assert "credentials" not in desk.kept.entries


@pytest.mark.rule("WX-23", "WX-171")
async def test_a_bot_that_is_bound_here_keeps_its_credentials(desk: Desk) -> None:
    desk.logged_in()
    before = dict(desk.kept.entries)
    desk.world.qr.append({"status": "binded_redirect"})
    view = (await seen_through(desk.login()))[-1]
    assert (view.state, view.already_bound) == (LoginState.DONE, True)
    assert desk.kept.entries == before


@pytest.mark.rule("WX-23", "WX-171")
@pytest.mark.parametrize(
    ("status", "reason"),
    [
        ({"status": "binded_redirect"}, "not_bound_here"),
        ({"status": "confirmed", "bot_token": "t", "baseurl": ""}, "no_bot"),
        ({"status": "confirmed", "ilink_bot_id": "b@im.bot", "baseurl": ""}, "no_bot"),
    ],
)
async def test_a_success_without_what_it_takes_is_a_failure(desk: Desk, status: dict[str, str], reason: str) -> None:
    desk.world.qr.append(status)
    views = await seen_through(desk.login())
    assert (views[-1].state, views[-1].reason) == (LoginState.FAILED, reason)


@pytest.mark.rule("WX-23", "WX-171")
async def test_time_outs_broken_connections_and_unknown_states_count_as_waiting(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING)
    desk.world.fail("get_qrcode_status", {"hang": True}, {"status": 524}, {"cut": "before"}, {"status": 403})
    desk.world.qr.extend([{"status": "brewing"}, {"status": "brewing"}, {"status": "confirmed"}])
    views = await seen_through(desk.login())
    assert states(views) == ["starting", "scan", "done"]
    assert sum("brewing" in record.getMessage() for record in caplog.records) == 1


@pytest.mark.rule("WX-22", "WX-25")
async def test_a_new_login_names_the_old_tokens_and_leaves_nothing_of_the_old_one(desk: Desk) -> None:
    desk.world.qr.append({"status": "confirmed"})
    for number in range(12):
        desk.world.token = f"token-{number}-of-the-bot"
        await desk.login().run()
        desk.kept.cursor = "old"
        desk.kept.entries["context/ann@im.wechat"] = b"old"
    assert desk.world.known_tokens[-1] == [f"token-{number}-of-the-bot" for number in range(10, 0, -1)]
    desk.world.token = "token-of-today"
    await desk.login().run()
    assert desk.kept.cursor == ""
    assert set(desk.kept.entries) == {"credentials", "known_tokens"}


@pytest.mark.rule("WX-22", "WX-171")
async def test_when_the_old_tokens_are_refused_it_asks_without_them(desk: Desk) -> None:
    desk.world.qr.append({"status": "confirmed"})
    await desk.login().run()
    desk.world.refuses_known_tokens = True
    assert (await desk.login().run()).state is LoginState.DONE
    assert desk.world.known_tokens == [[], [TOKEN], []]


async def test_a_vendor_that_gives_no_code_or_cannot_be_reached_is_said_so(desk: Desk) -> None:
    desk.world.fail("get_bot_qrcode", {"ret": 1, "errmsg": "no"})
    assert (await desk.login().run()).reason == "refused"
    desk.server.network(False)
    assert (await desk.login().run()).reason == "unreachable"


@pytest.mark.rule("WX-26")
def test_the_operators_page_says_what_to_do_when_the_phone_calls_itself_too_old() -> None:
    page = (Path(__file__).parents[2] / "docs" / "channels" / "wechat-ilink.md").read_text(encoding="utf-8")
    assert "switch its bot plugin on" in page


@pytest.mark.rule("WX-23")
async def test_a_login_that_failed_can_be_begun_again(desk: Desk) -> None:
    desk.world.qr.append({"status": "expired"})
    login = desk.login()
    assert (await login.run()).state is LoginState.FAILED
    desk.world.qr.clear()
    desk.world.qr.append({"status": "confirmed"})
    assert states(await seen_through(login))[-3:] == ["starting", "scan", "done"]


@pytest.mark.rule("WX-21")
@pytest.mark.case("WE-22")
async def test_without_a_login_nothing_is_asked_and_no_code_appears(desk: Desk) -> None:
    channel = desk.adapter()
    with pytest.raises(CredentialRefused, match="nobody has logged in"):
        await channel.run(desk.journal)
    assert SCAN.reason.startswith("scan")
    assert desk.world.calls == []
    assert desk.world.codes == 0


@pytest.mark.rule("WX-11", "CH-43")
async def test_a_login_writes_no_token_into_the_log(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    desk.world.fail("get_qrcode_status", {"status": 524}, {"cut": "before"})
    desk.world.qr.extend([{"status": "scaned"}, {"status": "confirmed"}])
    login = desk.login()
    await login.run()
    told = "\n".join(record.getMessage() for record in caplog.records) + repr(login.view) + repr(login)
    assert TOKEN not in told
    assert "qr1" not in told.replace(login.view.code, "")
