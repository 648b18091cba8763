"""One's accounts on the page and a link between the page and an app, begun from either side, with a yes in both (WD-13)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from agent.llm.scripted import ScriptedModel
from channels.loopback import LoopbackPlatform
from tests.harness import Running, eventually, loopback_plan, running

CODE = re.compile(r"[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}")
ACCOUNTS = "/api/me/accounts"


class Desk:
    """A person on the page, in a session, and the app in which others write."""

    def __init__(self, gateway: Running, session: aiohttp.ClientSession, csrf: str, platform: LoopbackPlatform) -> None:
        self.gateway = gateway
        self.platform = platform
        self._session = session
        self._csrf = csrf

    async def ask(self, method: str, path: str, body: dict[str, Any] | None = None, *, language: str = "en") -> tuple[int, Any]:
        headers = {"X-CSRF-Token": self._csrf, "Accept-Language": language}
        async with self._session.request(method, f"{self.gateway.url}{path}", json=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def pending(self) -> Any:
        return (await self.ask("GET", ACCOUNTS))[1]["pending"]

    async def says(self, text: str, sender: str = "ann") -> str:
        """What is written in the app, and what is answered."""
        before = len(self.platform.texts(f"c-{sender}"))
        self.platform.says(f"c-{sender}", text, sender=sender)

        async def answered() -> str:
            return "\n".join(self.platform.texts(f"c-{sender}")[before:])

        return await eventually(answered)


@asynccontextmanager
async def desk_of(folder: Path, platform: LoopbackPlatform) -> AsyncGenerator[Desk]:
    async with running(folder, ScriptedModel(lambda _request: "yes"), channels=(loopback_plan(platform),)) as gateway:
        me = (await gateway.get("/api/me"))["person"]["id"]
        link = (await gateway.post(f"/api/operator/people/{me}/login-link"))["url"]
        async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
            async with session.get(link, allow_redirects=False) as answer:
                assert answer.status == 303
            async with session.get(f"{gateway.url}/api/me") as answer:
                csrf = (await answer.json())["csrf"]
            yield Desk(gateway, session, csrf, platform)


@pytest.fixture
async def desk(tmp_path: Path) -> AsyncGenerator[Desk]:
    async with desk_of(tmp_path, LoopbackPlatform(hold_s=0.05)) as made:
        yield made


@pytest.mark.rule("WD-13")
async def test_a_code_of_the_page_links_an_app_after_a_yes_in_both(desk: Desk) -> None:
    assert await desk.ask("GET", ACCOUNTS) == (200, {"accounts": [], "pending": None})
    status, made = await desk.ask("POST", f"{ACCOUNTS}/code")
    assert (status, made["command"]) == (201, f"/link {made['code']}")
    assert (await desk.pending())["other"] is None
    assert "(web)" in await desk.says(made["command"]), "the app is told whose code it is"
    pending = await desk.pending()
    assert (pending["other"], pending["agreed"]) == ({"name": "ann", "accounts": "loopback:main ann"}, False)
    assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": True, "id": pending["id"]}) == (200, {"state": "waits"})
    assert (await desk.pending())["agreed"]
    assert (await desk.ask("GET", ACCOUNTS))[1]["accounts"] == [], "one yes links nobody"
    assert (await desk.says("/link yes")).startswith("Linked.")
    (account,) = (await desk.ask("GET", ACCOUNTS))[1]["accounts"]
    assert (account["channel"], account["account"], account["platform_user_id"]) == ("loopback", "main", "ann")
    assert await desk.pending() is None


@pytest.mark.rule("WD-13")
async def test_a_code_of_the_app_links_it_from_the_page_and_the_session_lives_on(desk: Desk) -> None:
    code = CODE.search(await desk.says("/link"))
    assert code
    status, given = await desk.ask("POST", f"{ACCOUNTS}/link", {"code": code[0].lower()})
    assert (status, given["pending"]["other"]["name"]) == (200, "ann")
    await eventually(lambda: _told(desk, "has used your code"))
    assert (await desk.says("/link yes")).startswith("Noted.")
    assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": True, "id": given["pending"]["id"]}) == (200, {"state": "joined"})
    assert [each["platform_user_id"] for each in (await desk.ask("GET", ACCOUNTS))[1]["accounts"]] == ["ann"]
    assert await eventually(lambda: _told(desk, "Linked")), "the other side hears of it"


async def _told(desk: Desk, words: str) -> list[str]:
    """What the app was told by itself, beside the answers."""
    return [text for text in desk.platform.texts("c-ann") if words in text]


@pytest.mark.rule("WD-13")
async def test_a_no_ends_it_and_there_is_nothing_to_say_yes_to(desk: Desk) -> None:
    _, made = await desk.ask("POST", f"{ACCOUNTS}/code")
    await desk.says(made["command"])
    number = (await desk.pending())["id"]
    assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": False, "id": number}) == (200, {"state": "dropped"})
    for agree in (True, False):
        assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": agree, "id": number}) == (200, {"state": "none"})
    assert (await desk.says("/link yes")).startswith("Nothing waits")


@pytest.mark.rule("WD-13", "WO-12")
@pytest.mark.parametrize(("language", "words"), [("en", "unknown"), ("ja", "コード"), ("zh", "代码")])
async def test_a_wrong_code_and_ones_own_are_told_in_the_language_of_the_page(tmp_path: Path, language: str, words: str) -> None:
    async with desk_of(tmp_path, LoopbackPlatform(hold_s=0.05)) as desk:
        status, wrong = await desk.ask("POST", f"{ACCOUNTS}/link", {"code": "ABCD-EFGH"}, language=language)
        assert (status, wrong["error"]["code"], wrong["error"]["param"]) == (400, "wrong_code", "code")
        assert words in wrong["error"]["message"]
        _, made = await desk.ask("POST", f"{ACCOUNTS}/code")
        status, own = await desk.ask("POST", f"{ACCOUNTS}/link", {"code": made["code"]}, language=language)
        assert (status, own["error"]["code"]) == (409, "same_person")


@pytest.mark.rule("WD-13", "WO-61")
async def test_an_api_token_and_a_guest_link_no_accounts(desk: Desk) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [("/code", {}), ("/link", {"code": "ABCD-EFGH"}), ("/decision", {"agree": True, "id": 1})]
    assert (await desk.gateway.get(ACCOUNTS))["accounts"] == [], "a token may look"
    for path, body in calls:
        await desk.gateway.post(f"{ACCOUNTS}{path}", body, status=403)
    guest = await desk.gateway.post("/api/operator/people", {"name": "Gus", "role": "guest"})
    link = (await desk.gateway.post(f"/api/operator/people/{guest['id']}/login-link"))["url"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        await (await session.get(link, allow_redirects=False)).read()
        async with session.get(f"{desk.gateway.url}/api/me") as answer:
            headers = {"X-CSRF-Token": (await answer.json())["csrf"]}
        for path, body in calls:
            async with session.post(f"{desk.gateway.url}{ACCOUNTS}{path}", json=body, headers=headers) as answer:
                assert answer.status == 403
    async with aiohttp.ClientSession() as nobody, nobody.get(f"{desk.gateway.url}{ACCOUNTS}") as answer:
        assert answer.status == 401


@pytest.mark.rule("WD-13")
async def test_a_yes_on_the_page_is_for_the_link_that_was_shown(desk: Desk) -> None:
    _, made = await desk.ask("POST", f"{ACCOUNTS}/code")
    await desk.says(made["command"], "ann")
    code = CODE.search(await desk.says("/link", "bob"))
    assert code
    assert (await desk.ask("POST", f"{ACCOUNTS}/link", {"code": code[0]}))[0] == 200
    shown = await desk.pending()
    other = {"ann": "bob", "bob": "ann"}[shown["other"]["name"]]
    assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": False, "id": shown["id"] + 1000}) == (200, {"state": "none"})
    assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": False, "id": shown["id"]}) == (200, {"state": "dropped"})
    left = await desk.pending()
    assert left["other"]["name"] == other
    assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": True, "id": shown["id"]}) == (200, {"state": "none"})
    assert await desk.ask("POST", f"{ACCOUNTS}/decision", {"agree": True, "id": left["id"]}) == (200, {"state": "waits"})
    assert (await desk.says("/link yes", other)).startswith("Linked.")
    assert [each["platform_user_id"] for each in (await desk.ask("GET", ACCOUNTS))[1]["accounts"]] == [other]


@pytest.mark.rule("WD-13", "CH-113")
async def test_a_restart_gives_nobody_new_guesses(tmp_path: Path) -> None:
    platform = LoopbackPlatform(hold_s=0.05)  # goes on counting its updates while the gateway restarts
    async with desk_of(tmp_path, platform) as desk:
        for _ in range(5):
            assert "unknown" in await desk.says("/link ABCD-EFGH")
    async with desk_of(tmp_path, platform) as desk:
        _, made = await desk.ask("POST", f"{ACCOUNTS}/code")
        assert "unknown" in await desk.says(made["command"])
        assert "This code comes from" in await desk.says(made["command"], "bob"), "who has not guessed is not held up"
