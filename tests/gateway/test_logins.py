"""Who comes in through the operator's page and the console: by a code that was given, or by scanning one (CH-113, WO-30, WX-24)."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from agent.llm.scripted import ScriptedModel
from gateway.access import Rules
from gateway.logins import MARGIN, drawing
from tests.harness import Running, eventually, running
from tests.peers.wechat.ilink_desk import ANN
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_world import World
from tests.talks import asked, model, talk

LOGIN = "/api/operator/logins/wechat_ilink/main"


@pytest.fixture
def server() -> Iterator[FakeIlink]:
    with FakeIlink(World(hold_s=0.1, rate_limited=False)) as server:
        yield server


@asynccontextmanager
async def house(folder: Path, server: FakeIlink, script: ScriptedModel | None = None) -> AsyncGenerator[Running]:
    ilink = {"enabled": True, "base_url": server.url, "cdn_url": server.cdn_url}
    async with running(folder, script or model(lambda request: f"Re: {asked(request)}"), config={"channels": {"wechat_ilink": ilink}}) as gateway:
        yield gateway


async def until(gateway: Running, state: str) -> dict[str, Any]:
    async def there() -> dict[str, Any] | None:
        view: dict[str, Any] = await gateway.get(LOGIN)
        return view if view["state"] == state else None

    return await eventually(there)


async def channel(gateway: Running, name: str) -> dict[str, Any]:
    return next(each for each in (await gateway.get("/api/operator/overview"))["channels"] if each["channel"] == name)


@pytest.mark.parametrize("text", ["https://liteapp.weixin.qq.com/q/fake?qrcode=qr1", "短いテキスト", "x" * 300])
def test_a_code_is_a_square_of_dark_cells_with_room_around(text: str) -> None:
    drawn = drawing(text)
    cells = {(int(x), int(y)) for x, y in re.findall(r"M(\d+) (\d+)h1v1h-1z", drawn.path)}
    inner = drawn.size - 2 * MARGIN
    assert (inner - 17) % 4 == 0
    assert all(MARGIN <= each < MARGIN + inner for cell in cells for each in cell)
    assert {(MARGIN + at, MARGIN) for at in range(7)} <= cells, "the finder in the corner"
    assert re.fullmatch(r"(M\d+ \d+h1v1h-1z)+", drawn.path)


@pytest.mark.rule("WX-24", "WO-30")
async def test_a_login_on_the_page_lets_in_whoever_scanned_and_starts_the_account_anew(tmp_path: Path, server: FakeIlink) -> None:
    server.world.qr.extend([{"status": "wait"}, {"status": "scaned"}, {"status": "need_verifycode"}, {"status": "confirmed"}])
    async with house(tmp_path, server) as gateway:
        assert (await channel(gateway, "wechat_ilink"))["login"] is True
        assert (await channel(gateway, "web"))["login"] is False
        assert (await gateway.post(LOGIN))["state"] in ("starting", "scan")
        view = await until(gateway, "scan")
        assert view["link"].startswith("https://liteapp.weixin.qq.com/q/")
        assert view["picture"] == {"size": drawing(view["link"]).size, "path": drawing(view["link"]).path}
        assert "Scan this code" in view["text"]
        await until(gateway, "number")
        await gateway.post(f"{LOGIN}/number", {"number": "42"})
        done = await until(gateway, "done")
        assert done == {"state": "done", "text": "Logged in. The bot answers from now on.", "picture": None, "link": "", "mine": True}
        assert server.world.numbers == ["42"]
        people = (await gateway.get("/api/operator/people"))["people"]
        (scanned,) = [each for each in people if any(known["platform_user_id"] == ANN for known in each["identities"])]
        assert scanned["role"] == "user"
        await eventually(lambda: ready(gateway))
        server.says(ANN, "hello")
        await eventually(lambda: answered(server))

        await gateway.post(f"{LOGIN}/mine", status=204)
        people = (await gateway.get("/api/operator/people"))["people"]
        (owner,) = [each for each in people if each["role"] == "owner"]
        assert [known["platform_user_id"] for known in owner["identities"]] == [ANN], "the operator scanned it themself"
        assert len(people) == 1
        await gateway.post(f"{LOGIN}/mine", status=404)


async def ready(gateway: Running) -> bool:
    return (await channel(gateway, "wechat_ilink"))["state"] == "ready"


async def answered(server: FakeIlink) -> bool:
    return server.world.texts(ANN) == ["Re: hello"]


@pytest.mark.rule("WX-21", "WX-23")
async def test_a_login_can_be_given_up_and_fails_in_words(tmp_path: Path, server: FakeIlink) -> None:
    server.world.qr.extend([{"status": "wait"}] * 1000)
    async with house(tmp_path, server) as gateway:
        await gateway.post(f"{LOGIN}/number", {"number": "1"}, status=404)
        await gateway.post(LOGIN)
        await until(gateway, "scan")
        async with gateway.http.delete(f"{gateway.url}{LOGIN}") as answer:
            assert answer.status == 204
        async with gateway.http.get(f"{gateway.url}{LOGIN}") as answer:
            assert answer.status == 404
        server.world.qr.clear()
        server.world.qr.extend([{"status": "expired"}] * 3)
        await gateway.post(LOGIN)
        assert "not scanned in time" in (await until(gateway, "failed"))["text"]
        await gateway.post("/api/operator/logins/telegram/main", status=404)


# -- codes on the page --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-113", "WO-30")
async def test_the_page_lists_who_waits_and_lets_in_by_the_code_alone(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), rules=Rules()) as chat:
        gateway = chat.gateway
        chat.says("hello")
        (told,) = await chat.shown(1)
        chat.says("hello", chat="c2", sender="u2")
        await chat.shown(1, chat="c2")
        code = told.split(": ")[1].split("\n")[0]
        waiting = (await gateway.get("/api/operator/pairings"))["waiting"]
        assert [(each["channel"], each["account"], each["platform_user_id"]) for each in waiting] == [
            ("loopback", "main", "u1"), ("loopback", "main", "u2"),
        ]  # fmt: skip
        assert code not in str(waiting)
        wrong = await gateway.post("/api/operator/pairings/approve", {"code": "ABCD-EFGH"}, status=400)
        assert (wrong["error"]["code"], wrong["error"]["param"]) == ("wrong_code", "code")
        let_in = await gateway.post("/api/operator/pairings/approve", {"code": code, "role": "admin"})
        assert (let_in["role"], let_in["identities"][0]["platform_user_id"]) == ("admin", "u1")
        await gateway.post(f"/api/operator/pairings/{waiting[1]['id']}/decline", status=204)
        await gateway.post(f"/api/operator/pairings/{waiting[1]['id']}/decline", status=404)
        assert (await gateway.get("/api/operator/pairings"))["waiting"] == []
        for _ in range(4):
            await gateway.post("/api/operator/pairings/approve", {"code": "ABCD-EFGH"}, status=400)
        await gateway.post("/api/operator/pairings/approve", {"code": "ABCD-EFGH"}, status=400)
        locked = await gateway.post("/api/operator/pairings/approve", {"code": "ABCD-EFGH"}, status=429)
        assert locked["error"]["code"] == "locked"
        actions = [each["action"] for each in (await gateway.get("/api/operator/audit"))["entries"]]
        assert {"pairing.approve", "pairing.decline"} <= set(actions)


@pytest.mark.rule("CH-213")
async def test_the_page_shows_the_last_error_with_the_delivery_it_was_about(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}")) as chat:
        chat.platform.fail_next(*[{"refuse": "blocked by the person"}] * 5)
        chat.says("hello")
        await chat.thinking()

        async def shown() -> dict[str, Any] | None:
            found = await channel(chat.gateway, "loopback")
            return found if found["last_error"] else None

        found = await eventually(shown)
        delivery = await chat.gateway.get(f"/api/operator/deliveries/{found['last_error_delivery']}")
        assert delivery


# -- the console ----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-113", "CH-114")
async def test_the_console_lists_lets_in_and_names_the_owner(tmp_path: Path) -> None:
    async with talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), rules=Rules()) as chat:
        chat.says("hello")
        chat.says("hello", chat="c2", sender="u2")
        codes = [(await chat.shown(1, chat=each))[0].split(": ")[1].split("\n")[0] for each in ("c1", "c2")]
        assert "u1" in await console(chat.gateway, "pair", "list")
        assert "let in with the role user" in await console(chat.gateway, "pair", "approve", codes[0].lower())
        assert "unknown or older" in await console(chat.gateway, "pair", "approve", "ABCD-EFGH")
        assert "let in with the role owner" in await console(chat.gateway, "pair", "--owner", codes[1])
        assert "nobody waits" in await console(chat.gateway, "pair")
        assert "Owner" in await console(chat.gateway, "pair", "--owner", "loopback:main:u3")
        assert "write it as telegram:main:ID" in await console(chat.gateway, "pair", "--owner", "loopback:u3")
        chat.says("hi", chat="c3", sender="u3")
        await chat.shows(["Re: hi"], chat="c3")


@pytest.mark.rule("WX-21")
async def test_the_console_shows_the_code_and_says_how_it_ended(tmp_path: Path, server: FakeIlink) -> None:
    server.world.qr.extend([{"status": "wait"}, {"status": "scaned"}, {"status": "confirmed"}])
    async with house(tmp_path, server) as gateway:
        told = await console(gateway, "login", "wechat")
        assert "Scan this code with WeChat" in told
        assert "https://liteapp.weixin.qq.com/q/" in told
        assert "█" in told
        assert told.rstrip().endswith("Logged in. The bot answers from now on.")
        assert "is not switched on" in await console(gateway, "login", "telegram")


async def console(gateway: Running, *words: str) -> str:
    """What a command prints, either way."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", *words, "--config", str(gateway.config_path), stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    out, error = await asyncio.wait_for(process.communicate(), 60)
    return (out + error).decode()
