"""The listener for platforms that call us: a port that serves nothing else (WX-10, CH-12)."""

from __future__ import annotations

import asyncio
import io
import json
import logging
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from channels.port import WebhookRequest, WebhookResponse
from gateway.config import Webhooks
from gateway.config.load import load
from gateway.webhooks import WebhookListener
from tests.contracts.channel_contract import until
from tests.leap import leaping


@dataclass
class Hook:
    path: str
    answer: WebhookResponse = field(default_factory=lambda: WebhookResponse(body=b"good", content_type="application/xml"))
    seen: list[WebhookRequest] = field(default_factory=list[WebhookRequest])
    error: Exception | None = None
    hold_s: float = 0

    async def handle(self, request: WebhookRequest) -> WebhookResponse:
        self.seen.append(request)
        await asyncio.sleep(self.hold_s)
        if self.error is not None:
            raise self.error
        return self.answer


class Sorry(Hook):
    def apology(self, request: WebhookRequest) -> WebhookResponse:
        return WebhookResponse(body=b"sorry")


@asynccontextmanager
async def listening(*hooks: Hook) -> AsyncGenerator[tuple[str, aiohttp.ClientSession, list[Hook]]]:
    mounted = list(hooks)
    async with (
        WebhookListener(lambda: mounted, lambda: Webhooks(port=0), shutdown_s=0.1) as listener,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(force_close=True)) as session,
    ):
        yield f"http://127.0.0.1:{listener.port}", session, mounted


@pytest.mark.rule("WX-10", "CH-12", "CH-14")
async def test_each_account_has_its_path_and_nothing_else_is_served() -> None:
    one, two = Hook("/wechat"), Hook("/wechat/two")
    async with listening(one, two) as (url, session, mounted):
        async with session.post(f"{url}/wechat/two?a=1&b=%C3%BC", data=b"body", headers={"X-Y": "z"}) as answer:
            assert (answer.status, await answer.read(), answer.content_type) == (200, b"good", "application/xml")
        async with session.get(f"{url}/wechat") as answer:
            assert answer.status == 200
        for path in ("/", "/wechat/", "/wechat/three", "/healthz", "/static/app.js", "/api/chats", "/wechat/../wechat/two/x"):
            async with session.get(f"{url}{path}") as answer:
                assert (answer.status, await answer.read()) == (404, b"")
        for method in ("PUT", "DELETE", "PATCH", "OPTIONS", "HEAD"):
            async with session.request(method, f"{url}/wechat") as answer:
                assert answer.status == 405
        del mounted[0]
        async with session.get(f"{url}/wechat") as answer:
            assert answer.status == 404, "a channel that does not run is not there"
    (request,) = two.seen
    assert (request.method, request.path, request.body) == ("POST", "/wechat/two", b"body")
    assert request.query == {"a": "1", "b": "ü"}
    assert request.headers["X-Y"] == "z"


@pytest.mark.rule("WX-10", "WX-185")
async def test_a_large_body_is_not_read() -> None:
    hook = Hook("/wechat")
    async with listening(hook) as (url, session, _):
        async with session.post(f"{url}/wechat", data=io.BytesIO(b"x" * 1_000_000)) as answer:
            assert answer.status == 200
        async with session.post(f"{url}/wechat", data=io.BytesIO(b"x" * 1_000_001)) as answer:
            assert answer.status == 413

        async def endless() -> AsyncGenerator[bytes]:
            for _ in range(40):
                yield b"x" * 50_000

        async with session.post(f"{url}/wechat", data=endless()) as answer:
            assert answer.status == 413
    assert len(hook.seen) == 1


@pytest.mark.rule("WX-65", "WX-7")
async def test_a_fault_of_ours_is_an_apology_or_no_answer_and_never_a_traceback(caplog: pytest.LogCaptureFixture) -> None:
    broken, sorry = Hook("/broken", error=RuntimeError("private")), Sorry("/sorry", error=RuntimeError("private"))
    silent = Hook("/silent", answer=WebhookResponse(silent=True))
    async with listening(broken, sorry, silent) as (url, session, _):
        for path in ("/broken", "/silent"):
            with pytest.raises(aiohttp.ServerDisconnectedError):
                await session.post(f"{url}{path}", data=b"x")
        async with session.post(f"{url}/sorry", data=b"x") as answer:
            assert (answer.status, await answer.read()) == (200, b"sorry")
            assert "private" not in str(answer.headers)
    assert [record.levelno for record in caplog.records if record.exc_info] == [logging.ERROR] * 2


@pytest.mark.rule("WX-70", "CH-12")
@leaping
async def test_the_channel_is_told_whether_the_connection_took_the_answer() -> None:
    told: list[bool] = []
    hook = Hook("/wechat", answer=WebhookResponse(body=b"x", written=told.append))
    async with listening(hook) as (url, session, _):
        async with session.post(f"{url}/wechat", data=b"x") as answer:
            assert answer.status == 200
        await until(lambda: told == [True])
        hook.hold_s = 0.3
        with pytest.raises(TimeoutError):
            await session.post(f"{url}/wechat", data=b"x", timeout=aiohttp.ClientTimeout(total=0.1))
        await until(lambda: told == [True, False])


@pytest.mark.case("WE-20")
@pytest.mark.rule("WX-10")
def test_two_accounts_on_one_path_are_a_fault_of_the_configuration(tmp_path: Path) -> None:
    account = {"enabled": True, "app_id": "a", "token": "${TOKEN}", "mode": "plain", "path": "/wechat"}
    section = account | {"accounts": {"second": account | {"app_id": "b"}}}
    (tmp_path / "config.json").write_text(json.dumps({"channels": {"wechat_official": section}}))
    loaded = load(tmp_path / "config.json", {"TOKEN": "t" * 12})
    (fault,) = [each for each in loaded.errors if each.path.endswith(".path")]
    assert fault.path == "channels.wechat_official.accounts.second.path" and "channels.wechat_official has the path /wechat too" in fault.message


@pytest.mark.rule("WX-10")
async def test_a_gateway_that_nobody_calls_opens_no_port() -> None:
    listener = WebhookListener(list, lambda: Webhooks(port=0))
    assert listener.port == 0
    await listener.listen()
    port = listener.port
    await listener.listen()
    assert listener.port == port > 0
    await listener.close()
    await listener.close()


async def test_a_taken_port_is_an_error_of_the_system() -> None:
    async with WebhookListener(list, lambda: Webhooks(port=0)) as first:
        with pytest.raises(OSError, match="address"):
            async with WebhookListener(list, lambda: Webhooks(port=first.port)):
                pass
