"""A real Chromium for the tests of the page: one browser and one gateway per module, a new person for each test, tabs that hold the page to account.

    chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
    pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

    async def test_…(house: House) -> None:
        house.will("Hello.")
        async with house.tab() as tab:
            await tab.say("Hi")

A tab fails its test at the end for every error on the console, every exception of the page, every breach of its content policy and every request to
anywhere but the gateway; `tab.forgives(…)` names what a test provokes. Without `chromium` on the PATH these tests are skipped and say so.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
from collections import deque
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import pytest_asyncio
from playwright.async_api import Browser, BrowserContext, ConsoleMessage, ElementHandle, Error, Locator, Page, Request, async_playwright, expect

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from gateway.http.control import SECRET_HEADER
from memory.instance_lock import read_info
from tests.harness import Running, eventually, running
from tests.ports import free_port

ROOT = Path(__file__).resolve().parent.parent.parent
SHOTS = ROOT / ".shots"  # ignored by git
PATIENCE_MS = int(os.environ.get("PATIENCE_MS", "20000"))  # the machine may be busy with something else

FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",
    "--font-render-hinting=none",
)
LOOPBACK_ONLY = '--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1, EXCLUDE localhost'

MODEL: Mapping[str, Any] = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}
CONFIG: Mapping[str, Any] = {"model": MODEL, "rate": {"person_per_minute": 0, "chat_per_minute": 0}}

WIDE, NARROW = (1280, 800), (360, 740)

_WATCH_POLICY = """addEventListener("securitypolicyviolation", (breach) =>
  console.error(`content policy: ${breach.violatedDirective} ${breach.blockedURI} ${breach.sample}`));"""

# What the page says in passing: it is gone after some seconds, which a busy machine may take to look.
_LISTEN = """window.told = [];
new MutationObserver((changes) => {
  for (const { addedNodes } of changes)
    for (const node of addedNodes) if (node.matches?.(".toast")) window.told.push(node.querySelector(".toast-text").textContent);
}).observe(document, { childList: true, subtree: true });"""

expect.set_options(timeout=PATIENCE_MS)


class Script:
    """What the model says, one reply after the other. Titles of chats are apart from the replies; without one, first words stay."""

    def __init__(self, *, model_name: str = "scripted") -> None:
        self.title: Reply = ""
        self.otherwise: Reply | None = None
        self.model = ScriptedModel(self._answer, name=model_name)
        self._replies: deque[Reply] = deque()

    def will(self, *replies: Reply) -> None:
        """What the next requests get."""
        self._replies.extend(replies)

    def begin(self) -> None:
        """Nothing of an earlier test is left."""
        self._replies.clear()
        self.model.requests.clear()
        self.title = ""

    @property
    def requests(self) -> list[ModelRequest]:
        """The requests for replies."""
        return [request for request in self.model.requests if request.purpose != "title"]

    def fresh(self, _account: object) -> ScriptedModel:
        """Another client that says the same, for what closes it after use."""
        return ScriptedModel(self._answer, name=self.model.name)

    def _answer(self, request: ModelRequest) -> Reply:
        if request.purpose == "title":
            return self.title
        if not self._replies and self.otherwise is not None:
            return self.otherwise
        assert self._replies, f"no answer is left for {request.messages[-1].text!r}"
        return self._replies.popleft()


class Line:
    """A wire between browser and gateway that can be cut and mended; what goes over it is not looked at."""

    def __init__(self, target: int) -> None:
        self.port = 0
        self._target = target
        self._whole = True
        self._ends: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Line:
        self._server = await asyncio.start_server(self._carry, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        self._whole = False
        for end in list(self._ends):
            end.transport.abort()

    def mend(self) -> None:
        self._whole = True

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if not self._whole:
            writer.transport.abort()
            return
        there_reader, there_writer = await asyncio.open_connection("127.0.0.1", self._target)
        mine = {writer, there_writer}
        self._ends |= mine
        try:
            await asyncio.gather(_pump(reader, there_writer), _pump(there_reader, writer))
        finally:
            self._ends -= mine
            for end in mine:
                end.transport.abort()


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
        writer.write_eof()


class Tab:
    """One page in a browser context, mostly of somebody signed in. The locators are those of the chat page."""

    def __init__(self, page: Page, url: str) -> None:
        self.page = page
        self.url = url
        self.faults: list[str] = []
        self._forgiven: list[re.Pattern[str]] = []
        self.field = page.locator(".chat-bottom textarea")
        self.send = page.get_by_role("button", name="Send", exact=True)
        self.stop = page.get_by_role("button", name="Stop answering")
        self.answers = page.locator(".message.is-assistant[data-id] .prose")
        self.growing = page.locator(".message.is-growing .prose")
        self.asked = page.locator(".message.is-user[data-id] .bubble")
        self.notices = page.locator(".message.is-notice .prose")
        self.rows = page.locator(".chat-row")
        self.dialog = page.get_by_role("dialog")
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", self._console)
        page.on("pageerror", lambda error: self.faults.append(f"exception: {error}"))
        page.on("request", self._request)

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning", "assert"):
            self.faults.append(f"{message.type}: {message.text} ({message.location.get('url', '')})")

    def _request(self, request: Request) -> None:
        if not request.url.startswith((f"{self.url}/", "blob:", "data:")):
            self.faults.append(f"a request went to {request.url}")

    def forgives(self, *patterns: str) -> None:
        """Faults of these kinds are what this test is about."""
        self._forgiven += map(re.compile, patterns)

    @property
    def blame(self) -> list[str]:
        return [fault for fault in self.faults if not any(pattern.search(fault) for pattern in self._forgiven)]

    @property
    def chat(self) -> str:
        """The id of the open chat."""
        return self.page.url.partition("#/chat/")[2]

    async def go(self, address: str = "") -> None:
        """To a page, by the part of its address behind `#/`, as a link would. The page that was there is gone then."""
        wanted = f"{self.url}/#/{address}"
        before = None if self.page.url == wanted else await self.page.query_selector("#app > *")
        await self.page.goto(wanted)
        if before is not None:
            await until(partial(_stands, before), False)

    async def begin(self) -> None:
        """To the page of a new chat."""
        await self.go("chat")
        await expect(self.page.locator("main.is-new")).to_be_visible()

    async def say(self, text: str) -> None:
        await self.field.fill(text)
        await self.field.press("Enter")

    async def says(self, *answers: str) -> None:
        """Waits until the answers of this chat are these and none is being written."""
        await expect(self.answers).to_have_text(list(answers))
        await self.quiet()

    async def quiet(self) -> None:
        """Waits until nothing is on its way or being written."""
        await expect(self.page.locator(".message:is(.is-pending, .is-growing)")).to_have_count(0)
        await expect(self.stop).to_be_hidden()

    async def told(self, words: str | re.Pattern[str]) -> None:
        """Waits until the page has said this in passing since it was loaded, whether it still shows it or not."""

        async def heard() -> bool:
            said: list[str] = await self.page.evaluate("window.told")
            return any(words == text if isinstance(words, str) else words.search(text) for text in said)

        await until(heard, True)

    def row(self, title: str) -> Locator:
        return self.rows.filter(has_text=title)

    async def act(self, title: str, item: str) -> None:
        """Chooses from the menu of a chat in the list."""
        await self.row(title).hover()
        await self.page.get_by_role("button", name=f"Actions for {title}", exact=True).click()
        await self.page.get_by_role("menuitem", name=item, exact=True).click()

    async def act_here(self, item: str) -> None:
        """Chooses from the menu of the open chat."""
        await self.page.get_by_role("button", name="Actions", exact=True).click()
        await self.page.get_by_role("menuitem", name=item, exact=True).click()

    async def glance(self) -> None:
        """Looks away and back, as one who comes from another window: lists are read again."""
        await self.page.evaluate("dispatchEvent(new Event('focus'))")

    async def until(self, script: str, wanted: object = True) -> None:
        """Waits until an expression has a value. Playwright's own way is forbidden by the page's content policy."""
        await until(lambda: self.page.evaluate(script), wanted)

    async def restarted(self) -> None:
        """Loads the page again and waits until the chat is there."""
        await self.page.reload()
        await expect(self.page.locator("main.chat")).to_be_visible()

    async def shoot(self, name: str) -> Path:
        path = SHOTS / f"{name}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        await self.page.screenshot(path=path, animations="disabled", caret="hide")
        return path


@dataclass(slots=True)
class Person:
    """Somebody of a gateway. `api` is the gateway as they reach it with a token."""

    id: str
    name: str
    api: Running


class House:
    """A gateway and the browser before it. `me` is the person of the present test, an owner with nothing in their name."""

    def __init__(self, gateway: Running, browser: Browser, script: Script, name: str = "") -> None:
        self.gateway = gateway
        self.browser = browser
        self.script = script
        self.name = name
        self.me: Person
        self._everyday: BrowserContext | None = None
        self._in_use = False

    @property
    def url(self) -> str:
        return self.gateway.url

    def will(self, *replies: Reply) -> None:
        self.script.will(*replies)

    async def order(self, command: str, **arguments: str) -> dict[str, Any]:
        """What the command line has the running gateway do."""
        info = read_info(self.gateway.data_dir)
        assert info is not None
        order = {"command": command, "arguments": arguments}
        async with self.gateway.http.post(f"{self.url}/control", json=order, headers={SECRET_HEADER: str(info["secret"])}) as answer:
            return (await answer.json())["ok"]

    async def link(self, person_id: str = "") -> str:
        """A one-time link that signs somebody in, by default the first owner."""
        return (await self.order("login-link", person=person_id))["url"]

    async def add(self, *people: Mapping[str, str]) -> list[str]:
        """Adds people as an owner does, in a browser: tokens may not. Their ids."""
        link = urlsplit(await self.link())
        async with aiohttp.ClientSession(self.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
            async with http.get(link.path, allow_redirects=False) as answer:
                assert answer.status == 303
            async with http.get("/api/me") as answer:
                csrf = (await answer.json())["csrf"]
            ids: list[str] = []
            for person in people:
                async with http.post("/api/operator/people", json=person, headers={"X-CSRF-Token": csrf}) as answer:
                    assert answer.status == 201, await answer.text()
                    ids.append((await answer.json())["id"])
        return ids

    async def person(self, name: str) -> Person:
        """A new owner, with a token of theirs."""
        (person_id,) = await self.add({"name": name, "role": "owner"})
        token = (await self.order("token create", name="test", person=person_id))["token"]
        session = aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}, cookie_jar=aiohttp.DummyCookieJar())
        return Person(person_id, name, replace(self.gateway, http=session))

    @asynccontextmanager
    async def someone(self, name: str) -> AsyncGenerator[Person]:
        """A new owner, whose connections end with the block."""
        person = await self.person(name)
        try:
            yield person
        finally:
            await person.api.http.close()

    @asynccontextmanager
    async def tab(
        self, *, who: Person | None = None, stranger: bool = False, size: tuple[int, int] = WIDE, url: str = "", **context: Any
    ) -> AsyncGenerator[Tab]:
        """A browser without a past in which somebody has just signed in by their link; of a stranger, one that nobody signed in to."""
        async with self._context(context, alone=stranger) as browser, self.another(browser, url=url) as tab:
            await tab.page.set_viewport_size({"width": size[0], "height": size[1]})
            if not stranger:
                await tab.page.goto(await self.link((who or self.me).id))
                await expect(tab.field).to_be_visible()
            yield tab

    @asynccontextmanager
    async def _context(self, wishes: Mapping[str, Any], *, alone: bool) -> AsyncGenerator[BrowserContext]:
        """A context of its own for wishes, beside another or for who must not find a cookie that came as the last page was closed; else the everyday
        one, emptied: there the page's files need no second look."""
        options: dict[str, Any] = {"locale": "en-GB", "timezone_id": "UTC", "reduced_motion": "reduce", **wishes}
        if wishes or alone or self._in_use:
            context = await self.browser.new_context(**options)
            try:
                yield context
            finally:
                await context.close()
            return
        self._everyday = self._everyday or await self.browser.new_context(**options)
        self._in_use = True
        try:
            yield self._everyday
        finally:
            for page in self._everyday.pages:
                await page.close()
            await self._everyday.clear_cookies()
            self._in_use = False

    @asynccontextmanager
    async def another(self, context: BrowserContext, *, url: str = "") -> AsyncGenerator[Tab]:
        """One more tab of the same browser."""
        page = await context.new_page()
        await page.add_init_script(_WATCH_POLICY)
        await page.add_init_script(_LISTEN)
        tab = Tab(page, url or self.url)
        try:
            yield tab
        except BaseException as error:
            error.add_note(f"the page was at {page.url} and said {tab.faults}")
            with suppress(Error):
                await page.screenshot(path=SHOTS / "failed" / f"{self.name}.png", timeout=5_000)
            raise
        with suppress(Error):
            await page.evaluate("localStorage.clear()")
        await page.close()
        assert not tab.blame, "\n".join(["the page was not clean:", *tab.blame])


@asynccontextmanager
async def house_over(
    folder: Path, browser: Browser, *, config: Mapping[str, Any] | None = None, model: Any = None, name: str = "", **more: Any
) -> AsyncGenerator[House]:
    """A gateway of one test, for what needs a configuration, a model or a folder of its own."""
    script = Script()
    async with running(folder, model or script.model, config={**CONFIG, **(config or {})}, **more) as gateway:
        house = House(gateway, browser, script, name)
        async with house.someone("Ada") as house.me:
            yield house


@asynccontextmanager
async def house_at_the_end_of_a_line(folder: Path, browser: Browser, name: str = "") -> AsyncGenerator[tuple[House, Line]]:
    """A gateway that the browser reaches only through a line; tests reach it directly."""
    port = free_port()
    async with Line(port) as line:
        web = {"port": port, "public_url": line.url}
        script = Script()
        async with running(folder, script.model, config={**CONFIG, "channels": {"web": web}}) as gateway:
            house = House(replace(gateway, url=f"http://127.0.0.1:{port}"), browser, script, name)
            async with house.someone("Ada") as house.me:
                yield house, line


# -- fixtures ----------------------------------------------------------------------------------------------------------


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def chromium() -> AsyncIterator[Browser]:
    """One browser for a module. It finds no way to any other machine."""
    path = shutil.which("chromium")
    if path is None:
        pytest.skip("no chromium on the PATH (apt-get install chromium fonts-noto-cjk)")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=path, args=[*FLAGS, LOOPBACK_ONLY], timeout=60_000)
        yield browser
        await browser.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared_house(chromium: Browser, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[House]:
    """One gateway for a module. It lives in a task of its own, because fixtures begin and end in different ones."""
    script, leave = Script(), asyncio.Event()
    opened: asyncio.Future[Running] = asyncio.get_running_loop().create_future()

    async def live() -> None:
        async with running(tmp_path_factory.mktemp("house"), script.model, config=CONFIG) as gateway:
            opened.set_result(gateway)
            await leave.wait()

    task = asyncio.create_task(live())
    await asyncio.wait([task, opened], return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        await task
    yield House(opened.result(), chromium, script)
    leave.set()
    await task


_NAMES = ("Ada", "Ben", "Chiyo", "Dana", "Emil", "Fumiko", "Gao", "Hana")
_numbers = count()


@pytest_asyncio.fixture(loop_scope="module")
async def house(shared_house: House, request: pytest.FixtureRequest) -> AsyncIterator[House]:
    """The module's gateway with a new person and an empty script."""
    shared_house.name = request.node.name
    shared_house.script.begin()
    number = next(_numbers)
    async with shared_house.someone(f"{_NAMES[number % len(_NAMES)]} {number + 1}") as shared_house.me:
        yield shared_house


async def _stands(node: ElementHandle) -> bool:
    try:
        return await node.evaluate("(node) => node.isConnected")
    except Error:
        return False  # another document is there


# -- looking -----------------------------------------------------------------------------------------------------------


async def until(look: Callable[[], Awaitable[object]], wanted: object) -> None:
    """Waits until `look` gives what is wanted."""
    seen: list[object] = []

    async def as_wanted() -> bool:
        seen[:] = [await look()]
        return seen == [wanted]

    with suppress(TimeoutError):
        await eventually(as_wanted, within_s=PATIENCE_MS / 1000)
    assert seen == [wanted], f"{seen} is not {wanted}"
