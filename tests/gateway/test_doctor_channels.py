"""What `doctor` says of Discord's one switch, against our fake Discord over sockets (CH-180)."""

from __future__ import annotations

import http.server
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from gateway.config import Config
from gateway.doctor.channels import intents
from gateway.doctor.finding import Verdict
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import TOKEN


@pytest.fixture
def server() -> Iterator[FakeDiscord]:
    with FakeDiscord() as made:
        yield made


def config(**discord: Any) -> Config:
    return Config.model_validate({"channels": {"discord": discord}}, strict=False)


@pytest.mark.case("DC-04")
@pytest.mark.rule("CH-180", "WO-35")
async def test_a_bot_that_gets_no_words_in_servers_is_told_of_with_the_switch_by_its_name(server: FakeDiscord) -> None:
    account = {"enabled": True, "token": TOKEN, "api_base": server.url}
    wanted = config(**account, accounts={"second": account, "off": {**account, "enabled": False}})
    found = await intents(wanted)
    assert [(each.what, each.verdict) for each in found] == [
        ("channels.discord", Verdict.OK), ("channels.discord.accounts.second", Verdict.OK),
    ]  # fmt: skip
    server.world.content_switch = False
    (found, _) = await intents(wanted)
    assert (found.verdict, found.text) == (Verdict.FAIL, "the Message Content Intent is off")
    assert "switch on Message Content Intent" in found.next_step


@pytest.mark.rule("CH-180", "CH-43", "WO-35")
async def test_a_wrong_token_and_a_silent_platform_are_told_apart_and_no_token_is_shown(server: FakeDiscord) -> None:
    (refused,) = await intents(config(enabled=True, token="wrong.token.here", api_base=server.url))
    (silent,) = await intents(config(enabled=True, token=TOKEN, api_base="http://127.0.0.1:9/api"))
    assert (refused.verdict, silent.verdict) == (Verdict.FAIL, Verdict.WARN)
    assert "Bot page" in refused.next_step
    assert "cannot be reached" in silent.text
    assert all(token not in str(each) for each in (refused, silent) for token in (TOKEN, "wrong.token.here"))


class _Page(http.server.BaseHTTPRequestHandler):
    """Something else answers at that address."""

    status = 200

    def do_GET(self) -> None:  # the library's name
        self.send_response(self.status)
        self.end_headers()
        self.wfile.write(b"<html>hello</html>")

    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.mark.rule("WO-35")
@pytest.mark.parametrize(("status", "says"), [(200, "is not Discord's API"), (503, "HTTP 503")])
async def test_whatever_else_answers_there_is_a_finding_and_no_fault_of_ours(status: int, says: str) -> None:
    page = type("Page", (_Page,), {"status": status})
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), page) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        (found,) = await intents(config(enabled=True, token=TOKEN, api_base=f"http://127.0.0.1:{other.server_port}"))
        other.shutdown()
    assert found.verdict is Verdict.WARN
    assert says in found.text
