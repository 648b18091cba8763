"""What our requests to a Bot API come to when a server, a proxy or we ourselves end them, and what stands in them (CH-160, CH-164)."""

from __future__ import annotations

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from telegram import Bot
from telegram.error import NetworkError, TelegramError, TimedOut

from channels.port import TryLater, Unknown
from channels.telegram import api  # it silences the library's loggers
from channels.telegram.outcomes import outcome_of, was_sent
from channels.telegram.wire import Wire
from gateway.delivery.outbox import asked
from tests.patience import patience

assert api.logging  # imported for its loggers

TOKEN = "123:VERY-SECRET"
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def served(handler: Handler) -> AsyncGenerator[int]:
    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handler)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


@asynccontextmanager
async def bot(base: str, *, size: int = 2) -> AsyncGenerator[tuple[Bot, Wire]]:
    wire, poll = Wire(size, ssl.create_default_context()), Wire(1, ssl.create_default_context())
    try:
        yield Bot(TOKEN, base_url=f"{base}/bot", request=wire, get_updates_request=poll), wire
    finally:
        await wire.shutdown()
        await poll.shutdown()


def whole(error: BaseException | None) -> str:
    """An error with all that it came from."""
    said: list[str] = []
    while error is not None:
        said.append(repr(error))
        error = error.__cause__ or error.__context__
    return " ".join(said)


@pytest.mark.rule("CH-138")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("旅行 メモ.pdf", "旅行 メモ.pdf"),
        ("会议记录（一）.txt", "会议记录（一）.txt"),
        ("👩‍👩‍👧 Ünïcode.md", "👩‍👩‍👧 Ünïcode.md"),
        ("100% 'sure'.md", "100% 'sure'.md"),
        ("a\r\nX-Evil: 1.md", "a  X-Evil: 1.md"),
    ],
)
async def test_a_file_has_its_own_name_in_every_script_and_no_name_is_a_header(name: str, shown: str) -> None:
    bodies: list[bytes] = []

    async def takes(request: web.Request) -> web.Response:
        bodies.append(await request.read())
        return web.json_response({"ok": True, "result": {"message_id": 1, "date": 0, "chat": {"id": 1, "type": "private"}}})

    async with served(takes) as port, bot(f"http://127.0.0.1:{port}") as (sender, _):
        await sender.send_document(1, b"words", filename=name)
    head = next(part for part in bodies[0].split(b"\r\n\r\n") if b"filename" in part)
    found = re.search(rb'filename="([^"]*)"', head)
    assert found is not None
    assert found[1].decode() == shown
    assert b"\r\nX-Evil" not in head


@pytest.mark.rule("CH-164")
@pytest.mark.parametrize("turns", [1, 200], ids=["looking for a proxy", "waiting"])
async def test_what_waits_for_a_connection_when_the_pool_is_closed_never_left_and_ends_no_task(turns: int) -> None:
    async def hangs(_: web.Request) -> web.Response:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    arrived = asyncio.Event()
    async with served(hangs) as port, bot(f"http://127.0.0.1:{port}", size=1) as (sender, wire), asyncio.TaskGroup() as group:
        first = group.create_task(caught(sender.send_message(1, "first")))
        async with asyncio.timeout(patience(10)):
            await arrived.wait()
        waiting = [group.create_task(caught(sender.send_message(1, f"word {n}"))) for n in range(3)]
        for _ in range(turns):
            await asyncio.sleep(0)
        await wire.shutdown()
        async with asyncio.timeout(patience(10)):
            errors = [await each for each in waiting]
            left = await first
        late = await caught(sender.send_message(1, "late"))
    assert [outcome_of(each) for each in [*errors, late]] == [TryLater()] * 4
    assert was_sent(left)
    assert TOKEN not in " ".join(map(whole, [*errors, late, left]))


@pytest.mark.rule("CH-164")
async def test_a_send_that_we_cancel_ourselves_is_cancelled() -> None:
    async def hangs(_: web.Request) -> web.Response:
        arrived.set()
        await asyncio.Event().wait()
        raise AssertionError

    arrived = asyncio.Event()
    async with served(hangs) as port, bot(f"http://127.0.0.1:{port}", size=1) as (sender, _):
        for waits in (False, True):
            task = asyncio.create_task(sender.send_message(1, "word"))
            async with asyncio.timeout(patience(10)):
                await arrived.wait()
                if waits:
                    second = asyncio.create_task(sender.send_message(1, "second"))
                    await asyncio.sleep(0)
                    second.cancel()
                    with pytest.raises(asyncio.CancelledError):
                        await second
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task


@pytest.mark.rule("CH-164")
@pytest.mark.parametrize("kind", ["half a body", "half a head", "no answer and closed", "not gzip"])
async def test_what_breaks_behind_the_request_may_have_been_sent(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    async def breaks(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        said = {
            "half a body": b'HTTP/1.1 200 OK\r\nContent-Length: 999\r\n\r\n{"ok": true',
            "half a head": b"HTTP/1.1 200 OK\r\nConte",
            "no answer and closed": b"",
            "not gzip": b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\nword",
        }[kind]
        writer.write(said)
        await writer.drain()
        writer.close()

    caplog.set_level(logging.DEBUG)
    server = await asyncio.start_server(breaks, "127.0.0.1", 0)
    async with server, bot(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}") as (sender, _):
        error = await caught(sender.send_message(1, "word"))
    assert isinstance(outcome_of(error), Unknown)
    assert TOKEN not in whole(error) + caplog.text


@pytest.mark.rule("CH-164")
@pytest.mark.parametrize("kind", ["nobody there", "no tls", "proxy refuses"])
async def test_what_breaks_before_the_request_never_left(kind: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    async def refuses(_: web.Request) -> web.Response:
        return web.Response(status=407)

    caplog.set_level(logging.DEBUG)
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        free = closed.getsockname()[1]
        async with served(refuses) as port:
            base = {
                "nobody there": f"http://127.0.0.1:{free}",
                "no tls": f"https://127.0.0.1:{port}",
                "proxy refuses": "https://api.telegram.invalid",
            }[kind]
            if kind == "proxy refuses":
                monkeypatch.setenv("HTTPS_PROXY", f"http://user:hidden@127.0.0.1:{port}")
            async with bot(base) as (sender, _):
                error = await caught(sender.send_message(1, "word"))
    assert outcome_of(error) == TryLater()
    assert TOKEN not in whole(error) + caplog.text
    assert "hidden" not in whole(error)


@pytest.mark.rule("CH-160")
@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_no_redirect_is_followed_for_the_token_would_go_with_it(status: int) -> None:
    asked_for: list[str] = []

    async def elsewhere(request: web.Request) -> web.Response:
        asked_for.append(request.path)
        return web.Response(status=status, headers={"Location": "/elsewhere"})

    async with served(elsewhere) as port, bot(f"http://127.0.0.1:{port}") as (sender, _):
        error = await caught(sender.send_message(1, "word"))
    assert len(asked_for) == 1
    assert isinstance(error, NetworkError)
    assert not isinstance(error, TimedOut)


@pytest.mark.rule("CH-164")
async def test_an_adapter_whose_call_is_cancelled_by_nobody_ends_no_sender() -> None:
    async def ends() -> None:
        waits: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waits.cancel()
        await waits

    assert isinstance(await asked(ends(), 5, "sending"), Unknown)
    task = asyncio.create_task(asked(asyncio.Event().wait(), 60, "sending"))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def caught(call: Awaitable[object]) -> TelegramError:
    try:
        await call
    except TelegramError as error:
        return error
    raise AssertionError("it arrived")
