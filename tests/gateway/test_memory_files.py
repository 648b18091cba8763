"""The memory files over HTTP, through a whole gateway: list, read with origins, save over what was read, refuse, remove, older texts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
import sqlalchemy as sa

from agent.llm.scripted import ScriptedModel
from gateway.http.control import SECRET_HEADER
from memory import provenance
from memory.instance_lock import read_info
from memory.lines import line_hash
from memory.provenance import LineRow, Origin
from memory.schema import spaces
from tests.harness import Running, running

MARCH = datetime(2026, 3, 1, tzinfo=UTC)
LANGUAGES = {"en": "A quiet garden.", "ja": "静かな庭が好きです。", "zh": "喜欢安静的花园。"}


def root(gateway: Running) -> Path:
    return gateway.data_dir.parent


def put(gateway: Running, path: str, text: str | bytes, scope: str = "") -> None:
    """As an editor on the disk writes."""
    file = root(gateway) / scope / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(text.encode() if isinstance(text, str) else text)


async def call(gateway: Running, method: str, path: str, body: Any = None, **more: Any) -> tuple[int, Any]:
    async with gateway.http.request(method, f"{gateway.url}/api/memory/{path}", json=body, **more) as answer:
        return answer.status, await answer.json()


def store(gateway: Running, work: Callable[[sa.Connection], Any]) -> Any:
    """One transaction beside the gateway's own."""
    engine = sa.create_engine(f"sqlite:///{gateway.data_dir / 'yumegate.db'}", poolclass=sa.NullPool)
    with engine.begin() as connection:
        return work(connection)


def remember_line(gateway: Running, scope: str, path: str, words: str, origin: Origin, author: str = "dream", **more: Any) -> None:
    row = LineRow(hash=line_hash(words), origin=origin, author=author, **more)
    store(gateway, lambda connection: provenance.put_lines(connection, scope, path, [row], MARCH))


def add_space(gateway: Running, space: str = "s-abcdefghij", title: str = "読書会") -> str:
    values = {"id": space, "channel": "telegram", "account": "main", "platform_space_id": space, "title": title, "created_at": MARCH}
    store(gateway, lambda connection: connection.execute(sa.insert(spaces).values(values)))
    return f"spaces/{space}"


async def order(gateway: Running, command: str, **arguments: str) -> Any:
    """What the command line has the running gateway do."""
    info = read_info(gateway.data_dir)
    assert info is not None
    wish = {"command": command, "arguments": arguments}
    async with gateway.http.post(f"{gateway.url}/control", json=wish, headers={SECRET_HEADER: str(info["secret"])}) as answer:
        return (await answer.json())["ok"]


@asynccontextmanager
async def browser(gateway: Running) -> AsyncIterator[tuple[aiohttp.ClientSession, str]]:
    """The owner's browser, signed in by a link, and its CSRF token."""
    async with aiohttp.ClientSession(gateway.url, cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        await session.get(urlsplit((await order(gateway, "login-link", person=""))["url"]).path, allow_redirects=False)
        async with session.get("/api/me") as answer:
            yield session, (await answer.json())["csrf"]


@asynccontextmanager
async def somebody(gateway: Running, role: str, name: str = "Ben") -> AsyncIterator[Running]:
    """The gateway as another person reaches it."""
    wish = {"name": name, "role": role}
    async with (
        browser(gateway) as (owner, csrf),
        owner.post("/api/operator/people", json=wish, headers={"X-CSRF-Token": csrf}) as answer,
    ):
        person = (await answer.json())["id"]
    token = (await order(gateway, "token create", name="test", person=person))["token"]
    async with aiohttp.ClientSession(headers={"Authorization": f"Bearer {token}"}) as http:
        yield replace(gateway, http=http)


@asynccontextmanager
async def house(folder: Path, **config: Any) -> AsyncIterator[Running]:
    async with running(folder, ScriptedModel([]), config=config) as gateway:
        yield gateway


# -- whose memory ------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-9", "WD-10", "WD-115")
async def test_a_person_opens_their_own_memory_and_an_owner_that_of_a_space_too(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        space = add_space(gateway)
        put(gateway, "MEMORY.md", "- the owner's secret\n")
        put(gateway, "MEMORY.md", "- the circle reads on Fridays\n", space)
        async with somebody(gateway, "user") as ben, somebody(gateway, "admin", "Chiyo") as chiyo:
            _, own = await call(ben, "GET", "scopes")
            assert [each["kind"] for each in own["scopes"]] == ["own"]
            mine = own["scopes"][0]["scope"]
            assert mine.startswith("people/p-")
            _, all_of_them = await call(gateway, "GET", "scopes")
            assert [(each["scope"], each["label"]) for each in all_of_them["scopes"][1:]] == [(space, "読書会")]
            assert (await call(gateway, "GET", "files/MEMORY.md", params={"scope": space}))[1]["content"] == "- the circle reads on Fridays\n"
            assert (await call(gateway, "GET", "files/MEMORY.md"))[1]["content"] == "- the owner's secret\n"
            assert (await call(ben, "GET", "files/MEMORY.md"))[0] == 404
            foreign = ["root", space, "people/p-aaaaaaaaaa", "spaces/s-aaaaaaaaaa", "spaces/", "people/../root", "", "nobody", f"{mine}/"]
            for scope in foreign:
                for asker in (ben, chiyo):
                    for what in ("files", "files/MEMORY.md", "files/MEMORY.md/revisions", "days", "days/2026-03-08"):
                        assert (await call(asker, "GET", what, params={"scope": scope}))[0] == 404, (scope, what)
                    wish = {"content": "- mine now\n", "based_on": None}
                    assert (await call(asker, "PUT", "files/MEMORY.md", wish, params={"scope": scope}))[0] == 404
            for scope in (mine, "people/p-aaaaaaaaaa", "spaces/s-aaaaaaaaaa"):  # not the owner's either
                assert (await call(gateway, "GET", "files", params={"scope": scope}))[0] == 404
        assert (root(gateway) / "MEMORY.md").read_text() == "- the owner's secret\n"


@pytest.mark.rule("WD-9", "WD-115")
async def test_a_guest_and_a_stranger_open_no_memory(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway, somebody(gateway, "guest") as guest, aiohttp.ClientSession() as nobody:
        stranger = replace(gateway, http=nobody)
        for what in ("scopes", "files", "files/MEMORY.md", "days", "days/2026-03-08"):
            assert (await call(guest, "GET", what))[0] == 403
            assert (await call(stranger, "GET", what))[0] == 401
        assert (await call(guest, "PUT", "files/MEMORY.md", {"content": "x", "based_on": None}))[0] == 403


# -- the list ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-7", "WD-23")
async def test_the_list_tells_what_is_there_what_is_missing_and_what_is_left_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        await call(gateway, "GET", "files")  # whatever the start has made
        for name in ("user.md", "system.md"):
            (root(gateway) / name).unlink(missing_ok=True)
        put(gateway, "MEMORY.md", "".join(f"- {words}\n" for words in LANGUAGES.values()))
        put(gateway, "memory/dreams/2026-03-08.md", "# Dream Diary: 2026-03-08\n\nA dream.\n")
        put(gateway, "knowledge/garden.md", "# Garden\n\nRoses.\n")
        put(gateway, "knowledge/broken.md", b"\xff\xfe nothing")
        status, listed = await call(gateway, "GET", "files")
        assert (status, listed["scope"]) == (200, "root")
        files = {each["path"]: each for each in listed["files"]}
        assert (files["user.md"]["exists"], files["user.md"]["editable"], files["user.md"]["role"]) == (False, True, "about")
        assert files["system.md"]["exists"] is False
        assert (files["MEMORY.md"]["exists"], files["MEMORY.md"]["in_prompt"], files["MEMORY.md"]["editable"]) == (True, True, True)
        assert (files["memory/dreams/2026-03-08.md"]["editable"], files["memory/dreams/2026-03-08.md"]["in_prompt"]) == (False, False)
        assert files["knowledge/garden.md"]["in_prompt"] is False
        assert files["knowledge/garden.md"]["size"] == len("# Garden\n\nRoses.\n")
        assert [each["path"] for each in listed["problems"]] == ["knowledge/broken.md"]
        assert listed["prompt"]["max_tokens"] == 4000
        assert 0 < listed["prompt"]["tokens"] < 100
        assert listed["prompt"]["left_out"] == 0
        status, refused = await call(gateway, "GET", "files/knowledge/broken.md")
        assert (status, refused["error"]["code"]) == (422, "unreadable")


@pytest.mark.rule("WD-7")
async def test_a_memory_above_its_room_says_how_many_lines_are_left_out(tmp_path: Path) -> None:
    async with house(tmp_path, memory={"prompt_max_tokens": 200}) as gateway:
        put(gateway, "MEMORY.md", "".join(f"- fact number {n} about the quiet garden\n" for n in range(100)))
        _, listed = await call(gateway, "GET", "files")
        assert listed["prompt"]["tokens"] > listed["prompt"]["max_tokens"] == 200
        assert 60 < listed["prompt"]["left_out"] < 100


# -- reading and writing -----------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-5", "WD-67")
@pytest.mark.parametrize("words", LANGUAGES.values(), ids=LANGUAGES)
async def test_each_line_says_where_it_is_from(tmp_path: Path, words: str) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "MEMORY.md", f"# Long-term memory\n\n- {words}\n- {words} *mine*\n- {words} two\n  and more\n")
        remember_line(gateway, "root", "MEMORY.md", words, Origin.PERSON)
        remember_line(gateway, "root", "MEMORY.md", f"{words} two\n  and more", Origin.MIXED, "tool")
        _, file = await call(gateway, "GET", "files/MEMORY.md")
        marks = [(line["first"], line["last"], line["origin"], line["author"]) for line in file["lines"]]
        assert marks == [(3, 3, "person", "dream"), (4, 4, "human", ""), (5, 6, "mixed", "tool")]
        assert file["lines"][0]["created_at"].startswith("2026-03-01T00:00:00")
        assert file["lines"][1]["created_at"] is None
        assert len({line["id"] for line in file["lines"]}) == 3
        assert [(block["kind"], block["first"], block["last"]) for block in file["blocks"]] == [
            ("heading", 1, 1), ("line", 3, 3), ("line", 4, 4), ("line", 5, 6),
        ]  # fmt: skip
        assert "<em>mine</em>" in file["blocks"][2]["html"]


@pytest.mark.rule("WD-4", "WD-17", "WD-19")
async def test_an_edit_is_written_byte_for_byte_in_the_style_of_the_file_and_is_then_a_humans(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "MEMORY.md", "\ufeff- one\r\n- two\r\n")
        remember_line(gateway, "root", "MEMORY.md", "two", Origin.PERSON)
        _, file = await call(gateway, "GET", "files/MEMORY.md")
        wish = {"content": "- one\n- two and a half\n- 三\n", "based_on": file["hash"]}
        status, done = await call(gateway, "PUT", "files/MEMORY.md", wish)
        assert (status, done["changed"]) == (200, True)
        assert (root(gateway) / "MEMORY.md").read_bytes() == "\ufeff- one\r\n- two and a half\r\n- 三\r\n".encode()
        _, file = await call(gateway, "GET", "files/MEMORY.md")
        assert file["hash"] == done["hash"]
        assert [line["origin"] for line in file["lines"]] == ["human"] * 3


@pytest.mark.rule("WD-17")
async def test_a_stale_form_writes_nothing_and_shows_both_differences(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "MEMORY.md", "- one\n")
        _, file = await call(gateway, "GET", "files/MEMORY.md")
        await call(gateway, "PUT", "files/MEMORY.md", {"content": "- one\n- theirs\n", "based_on": file["hash"]})
        status, refused = await call(gateway, "PUT", "files/MEMORY.md", {"content": "- one\n- mine\n", "based_on": file["hash"]})
        assert (status, refused["error"]["code"]) == (409, "conflict")
        assert refused["current"]["content"] == (root(gateway) / "MEMORY.md").read_text() == "- one\n- theirs\n"
        assert [(line["kind"], line["text"]) for line in refused["mine"]] == [("same", "- one"), ("removed", "- theirs"), ("added", "- mine")]
        assert [(line["kind"], line["text"]) for line in refused["theirs"]] == [("same", "- one"), ("added", "- theirs")]
        wish = {"content": "- one\n- mine\n", "based_on": refused["current"]["hash"]}
        assert (await call(gateway, "PUT", "files/MEMORY.md", wish))[0] == 200
        assert (await call(gateway, "PUT", "files/MEMORY.md", {"content": "- new\n", "based_on": None}))[0] == 409


@pytest.mark.rule("WD-17", "WD-19")
async def test_a_file_deleted_meanwhile_is_a_conflict_and_is_not_brought_back_unasked(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "knowledge/garden.md", "Roses.\n")
        _, file = await call(gateway, "GET", "files/knowledge/garden.md")
        (root(gateway) / "knowledge/garden.md").unlink()
        status, refused = await call(gateway, "PUT", "files/knowledge/garden.md", {"content": "Lilies.\n", "based_on": file["hash"]})
        assert (status, refused["current"], refused["theirs"]) == (409, None, [])
        wish = {"content": "Lilies.\n", "based_on": file["hash"], "base": file["content"]}
        _, refused = await call(gateway, "PUT", "files/knowledge/garden.md", wish)
        assert [(line["kind"], line["text"]) for line in refused["theirs"]] == [("removed", "Roses.")]
        assert not (root(gateway) / "knowledge/garden.md").exists()


HOSTILE = (
    "../outside.md", "..%2Foutside.md", "%2e%2e/outside.md", "memory/../../outside.md", "/etc/passwd.md", "~/x.md", ".hidden.md",
    ".yumegate/x.md", "knowledge/.x.md", "config.json", "MEMORY.MD", "memory.md", "Memory/2026-03-08.md", "con.md", "a:b.md", "a\\b.md",
    "memory/dreams/x/y.md", "skills/x.md", "people/p-aaaaaaaaaa/MEMORY.md", "spaces/s-aaaaaaaaaa/MEMORY.md", "space.md",
    "knowledge/a\u202eb.md", "x" * 300 + ".md", "knowledge/", "memory",
)  # fmt: skip


@pytest.mark.rule("WD-20")
@pytest.mark.case("WP-17")
async def test_a_path_out_of_the_memory_is_refused_with_a_sentence_and_nothing_is_written(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway, somebody(gateway, "user") as ben:
        before = set(tmp_path.rglob("*.md"))
        for asker in (gateway, ben):
            for path in HOSTILE:
                status, refused = await call(asker, "PUT", f"files/{path}", {"content": "x\n", "based_on": None})
                assert status in (403, 404, 405, 422), path
                assert refused["error"]["message"]
                assert (await call(asker, "GET", f"files/{path}"))[0] in (404, 422), path
        assert set(tmp_path.rglob("*.md")) == before
        status, refused = await call(ben, "PUT", "files/system.md", {"content": "- obey me\n", "based_on": None}, headers={"Accept-Language": "ja"})
        assert (status, refused["error"]["code"]) == (422, "bad_path")
        assert "記憶のファイル" in refused["error"]["message"]


@pytest.mark.rule("WD-20")
async def test_a_text_above_the_limit_is_refused(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        status, refused = await call(gateway, "PUT", "files/knowledge/long.md", {"content": "夢" * 100_000, "based_on": None})
        assert (status, refused["error"]["code"]) == (422, "too_large")
        assert "256 KiB" in refused["error"]["message"]
        assert (await call(gateway, "PUT", "files/knowledge/long.md", {"content": "夢" * 80_000, "based_on": None}))[0] == 200


@pytest.mark.rule("WD-139")
async def test_a_page_that_always_stands_in_prompts_is_refused_when_no_room_is_left(tmp_path: Path) -> None:
    def lore(words: str, count: int) -> dict[str, Any]:
        return {"content": f"---\nlore: always\n---\n\n{words * count}\n", "based_on": None}

    async with house(tmp_path) as gateway:
        assert (await call(gateway, "PUT", "files/knowledge/city.md", lore("The gate stands in the north. ", 100)))[0] == 200
        status, refused = await call(gateway, "PUT", "files/knowledge/sea.md", lore("海は南にある。", 100))
        assert (status, refused["error"]["code"]) == (422, "no_room")
        assert "1,000" in refused["error"]["message"]
        assert (await call(gateway, "PUT", "files/knowledge/sea.md", lore("海は南にある。", 2)))[0] == 200
        put(gateway, "knowledge/vast.md", lore("风从西边来。", 400)["content"])
        put(gateway, "knowledge/index.md", "- city.md: the city\n")
        _, listed = await call(gateway, "GET", "files")
        assert {each["path"] for each in listed["files"] if each["in_prompt"] and each["role"] == "knowledge"} == {
            "knowledge/city.md", "knowledge/index.md", "knowledge/sea.md",
        }  # fmt: skip
        assert listed["prompt"]["pages_left_out"] == ["knowledge/vast.md"]
        _, vast = await call(gateway, "GET", "files/knowledge/vast.md")
        shorter = {**lore("风从西边来。", 300), "based_on": vast["hash"]}
        assert (await call(gateway, "PUT", "files/knowledge/vast.md", shorter))[0] == 200  # what makes it less is never refused


@pytest.mark.rule("WD-78", "WD-23")
async def test_a_diary_and_a_broken_file_are_left_as_they_are(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "memory/dreams/2026-03-08.md", "# Dream Diary\n\nA dream.\n")
        put(gateway, "knowledge/broken.md", b"\xff\xfe")
        _, diary = await call(gateway, "GET", "files/memory/dreams/2026-03-08.md")
        assert diary["editable"] is False
        for path, code in (("memory/dreams/2026-03-08.md", "read_only"), ("knowledge/broken.md", "unreadable")):
            status, refused = await call(gateway, "PUT", f"files/{path}", {"content": "x", "based_on": None})
            assert (status, refused["error"]["code"]) == (422, code)
            assert (await call(gateway, "DELETE", f"files/{path}"))[0] == 422
        assert (root(gateway) / "knowledge/broken.md").read_bytes() == b"\xff\xfe"


# -- older texts -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-19", "WD-88")
async def test_an_older_text_is_listed_compared_and_brought_back_also_of_a_deleted_file(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        _, first = await call(gateway, "PUT", "files/knowledge/garden.md", {"content": "Roses.\n", "based_on": None})
        _, second = await call(gateway, "PUT", "files/knowledge/garden.md", {"content": "Lilies.\n", "based_on": first["hash"]})
        assert (await call(gateway, "DELETE", "files/knowledge/garden.md", params={"based_on": first["hash"]}))[0] == 409
        assert (await call(gateway, "DELETE", "files/knowledge/garden.md", params={"based_on": second["hash"]}))[0] == 200
        assert (await call(gateway, "GET", "files/knowledge/garden.md"))[0] == 404
        assert (await call(gateway, "DELETE", "files/knowledge/garden.md", params={"based_on": second["hash"]}))[0] == 404
        _, listed = await call(gateway, "GET", "files/knowledge/garden.md/revisions")
        texts = [(await call(gateway, "GET", f"files/knowledge/garden.md/revisions/{each['id']}"))[1] for each in listed["revisions"]]
        assert [text["content"] for text in texts] == ["Lilies.\n", "Roses.\n"]
        assert (texts[1]["hash"], [(line["kind"], line["text"]) for line in texts[1]["difference"]]) == (None, [("removed", "Roses.")])
        status, _ = await call(gateway, "PUT", "files/knowledge/garden.md", {"content": texts[1]["content"], "based_on": texts[1]["hash"]})
        assert (status, (root(gateway) / "knowledge/garden.md").read_text()) == (200, "Roses.\n")
        for wrong in ("nothing", "..%2f..%2fMEMORY", "20260101T000000000000Z-0000000000000000"):
            assert (await call(gateway, "GET", f"files/knowledge/garden.md/revisions/{wrong}"))[0] == 404


@pytest.mark.parametrize("path", ["files/memory/2026-03-08.md", "days/2026-03-08"])
async def test_nobody_waits_while_a_large_file_is_prepared_for_its_reader(tmp_path: Path, path: str) -> None:
    """Each line of it is Markdown of its own, which takes seconds: were it done on the event loop, every chat would stand still."""
    async with house(tmp_path) as gateway:
        put(gateway, "memory/2026-03-08.md", "# 2026-03-08\n\n" + "- a **b** c\n" * 10_000)
        began, longest, tick = time.monotonic(), 0.0, time.monotonic()
        reading = asyncio.ensure_future(gateway.http.get(f"{gateway.url}/api/memory/{path}"))
        while not reading.done():
            await asyncio.sleep(0)
            longest, tick = max(longest, time.monotonic() - tick), time.monotonic()
        (await reading).close()
        assert longest < (time.monotonic() - began) / 2


@pytest.mark.rule("WO-61")
async def test_a_browser_writes_with_the_csrf_token_alone(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway, browser(gateway) as (session, csrf):
        wish = {"content": "- tea\n", "based_on": None}
        for method, path in (("PUT", "files/knowledge/tea.md"), ("DELETE", "files/knowledge/tea.md")):
            async with session.request(method, f"/api/memory/{path}", json=wish) as answer:
                assert (answer.status, (await answer.json())["error"]["code"]) == (403, "csrf")
        async with session.put("/api/memory/files/knowledge/tea.md", json=wish, headers={"X-CSRF-Token": csrf}) as answer:
            assert answer.status == 200
