"""Summary entries over HTTP, through a whole gateway: whose chats, bounds, several at once, a yes that counts once, templates (RS-81 to RS-95)."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, Say, ScriptedModel, Until
from gateway.entries import jobs as entries
from gateway.jobs.table import enqueue
from memory import conversations
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State
from memory.schema import jobs
from tests.gateway.test_memory_files import somebody, store
from tests.harness import Running, eventually, running

MODEL: Mapping[str, Any] = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}
SUMMARY = "They walk slowly and drink tea."


class House:
    """A gateway, with the model that it asks."""

    def __init__(self, gateway: Running, model: ScriptedModel) -> None:
        self.gateway = gateway
        self.model = model

    async def call(self, method: str, path: str, body: Any = None, *, http: Any = None, language: str = "en") -> tuple[int, Any]:
        headers = {"Accept-Language": language}
        async with (http or self.gateway.http).request(method, f"{self.gateway.url}/api{path}", json=body, headers=headers) as answer:
            return answer.status, await answer.json() if answer.content_type == "application/json" else None

    async def chat(self, said: int = 0) -> str:
        """A chat of one's own in which `said` messages were said."""
        _, made = await self.call("POST", "/chats", {"title": "Maps 地図"})
        if said:
            store(self.gateway, lambda c: _say(c, made["id"], said))
        return made["id"]

    def entries(self, chat: str, count: int, *, each: int = 5, state: State = State.ACTIVE) -> list[int]:
        """So many entries of `each` messages, one behind the other."""

        def work(c: sa.Connection) -> list[int]:
            seqs, now = [message.seq for message in conversations.window(c, chat, 0)], _now(c, chat)
            rows = [
                NewSummary(conversation_id=chat, kind=Kind.ENTRY, text=f"Recap {at}.", sources=seqs[each * at :][:each], state=state, origin="asked")
                for at in range(count)
            ]
            return [summary_rows.add(c, row, now) for row in rows]

        return store(self.gateway, work)

    async def items(self, chat: str) -> list[dict[str, Any]]:
        status, found = await self.call("GET", f"/chats/{chat}/entries")
        assert status == 200
        return found["items"]


def _say(c: sa.Connection, chat: str, count: int) -> None:
    begin = _now(c, chat)
    for at in range(count):
        conversations.add_message(
            c, now=begin + timedelta(seconds=at), conversation_id=chat, role="user", text=f"word{at}", author_name="Ann", scope="root"
        )


def _now(c: sa.Connection, chat: str) -> Any:
    found = conversations.conversation(c, chat)
    assert found is not None
    return found.created_at


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    model = ScriptedModel(lambda _request: f'{{"title": "Tea", "text": "{SUMMARY}"}}')
    async with running(tmp_path, model, config={"model": MODEL}) as gateway:
        yield House(gateway, model)


@pytest.mark.rule("RS-81", "RS-185")
async def test_nobody_reaches_the_entries_of_a_chat_that_is_not_theirs(house: House) -> None:
    chat = await house.chat(12)
    [entry] = house.entries(chat, 1)
    tails: list[tuple[str, str, Any]] = [
        ("GET", "", None), ("POST", "", {"action": "generate", "last": 5}), ("POST", "", {"action": "write", "last": 5, "text": "x"}),
        ("POST", "/switch", {"ids": "all", "enabled": False}), ("PATCH", "/settings", {"hide": True}), ("POST", "/backfill", {}),
        ("POST", "/stop", {}), ("PATCH", f"/{entry}", {"text": "mine"}), ("DELETE", f"/{entry}", None),
        ("POST", f"/{entry}/decide", {"accept": True}),
    ]  # fmt: skip
    async with somebody(house.gateway, "admin") as ada, somebody(house.gateway, "guest", "Gus") as gus:
        for method, tail, body in tails:
            assert (await house.call(method, f"/chats/{chat}/entries{tail}", body, http=ada.http))[0] == 404, tail
            assert (await house.call(method, f"/chats/{chat}/entries{tail}", body, http=gus.http))[0] == 403, tail
        other = await house.chat(12)
        for method, tail, body in tails[-3:-1]:  # one's own chat does not open another one's entry
            assert (await house.call(method, f"/chats/{other}/entries{tail}", body))[0] == 404, tail
        assert (await house.call("POST", f"/chats/{other}/entries/{entry}/decide", {"accept": False}))[1] == {"settled": False}
        assert (await house.call("POST", f"/chats/{other}/entries/switch", {"ids": [entry], "enabled": False}))[1] == {"changed": 0}
    [item] = await house.items(chat)
    assert (item["text"], item["enabled"]) == ("Recap 0.", True)
    assert house.model.requests == []


@pytest.mark.rule("RS-82")
@pytest.mark.parametrize(
    ("wish", "code"),
    [
        ({"last": 4}, "range_too_few"), ({"last": 501}, "range_too_many"), ({"first": 9, "to": 2}, "range_backwards"),
        ({"first": 1, "to": 501}, "range_too_many"), ({"first": 5_000, "to": 5_010}, "range_no_such_messages"),
    ],
)  # fmt: skip
@pytest.mark.parametrize(("language", "script"), [("en", "messages"), ("ja", "メッセージ"), ("zh", "消息")])
async def test_a_range_beyond_its_bounds_is_refused_in_the_reader_s_words(
    house: House, wish: dict[str, int], code: str, language: str, script: str
) -> None:
    chat = await house.chat(510)
    for action in ("generate", "write"):
        status, refused = await house.call("POST", f"/chats/{chat}/entries", {"action": action, "text": "x", **wish}, language=language)
        assert (status, refused["error"]["code"]) == (422, code)
        assert script in refused["error"]["message"] or code == "range_backwards"
        assert not refused["error"]["message"].startswith("entries_")
    assert await house.items(chat) == []


@pytest.mark.rule("RS-82")
@pytest.mark.parametrize(("wish", "count"), [({"last": 5}, 5), ({"last": 500}, 500), ({"first": 11, "to": 20}, 10)])
async def test_write_makes_an_entry_of_the_bounds_and_asks_no_model(house: House, wish: dict[str, int], count: int) -> None:
    chat = await house.chat(510)
    status, made = await house.call("POST", f"/chats/{chat}/entries", {"action": "write", "title": "Tea", "text": "Tea at Mo-an.", **wish})
    assert status == 201
    item = made["item"]
    assert (item["title"], item["text"], item["messages"], item["enabled"], item["by_hand"]) == ("Tea", "Tea at Mo-an.", count, True, True)
    assert (item["first"], item["last"]) == (wish.get("first", 511 - count), wish.get("to", 510))
    assert [each["id"] for each in await house.items(chat)] == [item["id"]]
    assert house.model.requests == []


@pytest.mark.rule("RS-82", "RS-85")
async def test_what_the_model_writes_waits_for_a_yes_that_counts_once(house: House) -> None:
    chat = await house.chat(12)
    assert (await house.call("PATCH", f"/chats/{chat}/entries/settings", {"review": True}))[1]["settings"]["review"] is True
    assert (await house.call("POST", f"/chats/{chat}/entries", {"action": "generate", "last": 10})) == (202, {"begun": True})

    async def made() -> list[dict[str, Any]]:
        return await house.items(chat)

    [item] = await eventually(made)
    assert (item["waiting"], item["enabled"], item["messages"], item["text"]) == (True, False, 10, SUMMARY)
    where = f"/chats/{chat}/entries/{item['id']}"
    assert (await house.call("POST", f"/chats/{chat}/entries/switch", {"ids": "all", "enabled": True}))[1] == {"changed": 0}
    assert await house.call("POST", f"{where}/decide", {"accept": True}) == (200, {"settled": True})
    assert await house.call("POST", f"{where}/decide", {"accept": False}) == (200, {"settled": False})
    [item] = await house.items(chat)
    assert (item["waiting"], item["enabled"]) == (False, True)
    assert await house.call("POST", f"/chats/{chat}/entries/999/decide", {"accept": True}) == (200, {"settled": False})


@pytest.mark.rule("RS-83", "RS-84", "RS-94")
async def test_an_entry_is_edited_several_are_switched_at_once_and_one_goes(house: House) -> None:
    chat = await house.chat(60)
    ids = house.entries(chat, 10)
    status, done = await house.call("POST", f"/chats/{chat}/entries/switch", {"ids": ids[2:5], "enabled": False})
    assert (status, done) == (200, {"changed": 3})
    assert [item["id"] for item in await house.items(chat) if not item["enabled"]] == ids[2:5]
    assert (await house.call("POST", f"/chats/{chat}/entries/switch", {"ids": "all", "enabled": False}))[1] == {"changed": 7}
    item = (await house.items(chat))[0]
    changed = {"title": "Names", "text": "They spoke of names.", "based_on": item["updated_at"]}
    _, edited = await house.call("PATCH", f"/chats/{chat}/entries/{ids[0]}", changed)
    assert (edited["item"]["title"], edited["item"]["text"], edited["item"]["by_hand"]) == ("Names", "They spoke of names.", True)
    status, refused = await house.call("PATCH", f"/chats/{chat}/entries/{ids[0]}", changed)
    assert (status, refused["error"]["code"]) == (409, "changed")
    assert (await house.call("DELETE", f"/chats/{chat}/entries/{ids[0]}"))[0] == 204
    assert (await house.call("DELETE", f"/chats/{chat}/entries/{ids[0]}"))[0] == 404
    assert [each["id"] for each in await house.items(chat)] == ids[1:]


@pytest.mark.rule("RS-86", "RS-89", "RS-90")
@pytest.mark.parametrize(
    "wrong", [{"last_n": 4}, {"last_n": 501}, {"every": 0}, {"every": 201}, {"max_output": 0}, {"max_output": 32_769}, {"tail": -1}], ids=str
)
async def test_settings_keep_within_their_bounds(house: House, wrong: dict[str, int]) -> None:
    chat = await house.chat()
    before = (await house.call("GET", f"/chats/{chat}/entries"))[1]["settings"]
    for language in ("en", "ja", "zh"):
        status, refused = await house.call("PATCH", f"/chats/{chat}/entries/settings", {"hide": True, **wrong}, language=language)
        assert (status, refused["error"]["code"]) == (422, "bad_setting")
        assert "Input should" not in refused["error"]["message"] and "entries" not in refused["error"]["message"]
    assert (await house.call("GET", f"/chats/{chat}/entries"))[1]["settings"] == before
    right = {"last_n": 500, "every": 200, "max_output": 32_768, "hide": True, "tail": 0, "collapse": True, "automatic": True}
    _, done = await house.call("PATCH", f"/chats/{chat}/entries/settings", right)
    assert done["settings"] == {**before, **right}
    _, done = await house.call("PATCH", f"/chats/{chat}/entries/settings", dict.fromkeys(right))
    assert done["settings"] == before


@pytest.mark.rule("RS-12", "RS-82")
async def test_where_no_summary_may_be_kept_none_is_begun(house: House) -> None:
    chat = await house.chat(12)
    assert (await house.call("PATCH", f"/recall/chats/{chat}", {"record": "none"}))[0] == 200
    for path, wish in (("", {"action": "generate", "last": 5}), ("", {"action": "write", "last": 5, "text": "x"}), ("/backfill", {})):
        status, refused = await house.call("POST", f"/chats/{chat}/entries{path}", wish)
        assert (status, refused["error"]["code"]) == (409, "record_rule"), path
        assert "/memory record full" in refused["error"]["message"]
    _, found = await house.call("GET", f"/chats/{chat}/entries")
    assert (found["items"], found["allowed"]) == ([], False)
    assert house.model.requests == []


@pytest.mark.rule("RS-87")
async def test_stopping_says_when_nothing_runs(house: House) -> None:
    chat = await house.chat(12)
    assert await house.call("POST", f"/chats/{chat}/entries/stop", {}) == (200, {"stopped": False})


@pytest.mark.rule("RS-88")
async def test_templates_are_everybody_s_to_choose_and_the_operators_to_change(house: House) -> None:
    _, found = await house.call("GET", "/summary-templates")
    [builtin] = found["items"]
    assert (builtin["builtin"], builtin["id"], bool(builtin["text"])) == (True, 0, True)
    _, made = await house.call("POST", "/summary-templates", {"name": "Diary", "text": "Write a diary entry."})
    number = made["item"]["id"]
    status, copied = await house.call("POST", f"/summary-templates/{number}/copy", {})
    assert (status, copied["item"]["text"], copied["item"]["id"] != number) == (201, "Write a diary entry.", True)
    _, changed = await house.call("PATCH", f"/summary-templates/{number}", {"text": "Write as a letter."})
    assert (changed["item"]["name"], changed["item"]["text"]) == ("Diary", "Write as a letter.")
    async with somebody(house.gateway, "user") as ben:
        assert len((await house.call("GET", "/summary-templates", http=ben.http))[1]["items"]) == 3
        for method, tail, body in (
            ("POST", "", {"name": "x", "text": "y"}), ("PATCH", f"/{number}", {"text": "y"}), ("DELETE", f"/{number}", None),
            ("POST", f"/{number}/copy", {}),
        ):  # fmt: skip
            assert (await house.call(method, f"/summary-templates{tail}", body, http=ben.http))[0] == 403, (method, tail)
    chat = await house.chat()
    _, done = await house.call("PATCH", f"/chats/{chat}/entries/settings", {"template_id": number, "prompt_override": "In one line."})
    assert (done["settings"]["template_id"], done["settings"]["prompt_override"]) == (number, "In one line.")
    assert (await house.call("PATCH", "/summary-templates/0", {"text": "mine"}))[0] == 404
    assert (await house.call("DELETE", "/summary-templates/0"))[0] == 404
    assert (await house.call("DELETE", f"/summary-templates/{number}"))[0] == 204
    _, found = await house.call("GET", f"/chats/{chat}/entries")
    assert found["settings"]["prompt_override"] == "In one line.", "a chat's own wording hangs on no template"


@pytest.mark.rule("RS-82")
@pytest.mark.parametrize(
    ("method", "tail", "body"),
    [
        ("POST", "", {"action": "dream"}), ("POST", "", {"action": "write", "last": "5"}), ("POST", "/switch", {"ids": ["1"], "enabled": True}),
        ("POST", "/switch", {"ids": "some", "enabled": True}), ("PATCH", "/settings", {"model": "x"}), ("PATCH", "/settings", {"hide": 1}),
        ("POST", "/1/decide", {}),
    ],
)  # fmt: skip
async def test_a_body_that_means_nothing_is_refused_by_its_field(house: House, method: str, tail: str, body: Any) -> None:
    chat = await house.chat()
    status, refused = await house.call(method, f"/chats/{chat}/entries{tail}", body)
    assert (status, refused["error"]["code"]) == (400, "bad_field")


# -- a whole old chat ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def halting(folder: Path, *, at: int) -> AsyncGenerator[tuple[House, asyncio.Event]]:
    """A gateway whose model gives the summary number `at`, from 1, only when the event is set."""
    goes_on, calls = asyncio.Event(), itertools.count(1)

    def script(_request: ModelRequest) -> Reply:
        told = Say(f'{{"title": "Tea", "text": "{SUMMARY}"}}')
        return [Until(goes_on), told] if next(calls) == at else [told]

    model = ScriptedModel(script)
    async with running(folder, model, config={"model": MODEL, "entries": {"last_n": 5}}) as gateway:
        yield House(gateway, model), goes_on
        goes_on.set()


async def come_so_far(house: House, chat: str, done: int, state: str) -> dict[str, Any]:
    """The progress of a backfill, when it is there."""

    async def look() -> Any:
        _, found = await house.call("GET", f"/chats/{chat}/entries")
        progress: dict[str, Any] = found["progress"] or {}
        return progress if (progress.get("done"), progress.get("state")) == (done, state) else None

    return await eventually(look, within_s=30)


@pytest.mark.rule("RS-87")
async def test_a_backfill_goes_on_when_its_page_is_closed_half_way(tmp_path: Path) -> None:
    async with halting(tmp_path, at=3) as (house, goes_on):
        chat = await house.chat(23)
        async with aiohttp.ClientSession(headers=house.gateway.http.headers, cookie_jar=aiohttp.DummyCookieJar()) as page:
            assert await house.call("POST", f"/chats/{chat}/entries/backfill", {}, http=page) == (202, {"begun": True})
            await eventually(lambda: _asked(house, 3))
        goes_on.set()
        done = await come_so_far(house, chat, 5, "done")
        assert (done["total"], done["reason"]) == (5, "")
        items = await house.items(chat)
        assert [(each["first"], each["last"], each["origin"]) for each in items] == [
            (1, 5, "automatic"), (6, 10, "automatic"), (11, 15, "automatic"), (16, 20, "automatic"), (21, 23, "automatic"),
        ]  # fmt: skip
        assert len(house.model.requests) == 5


@pytest.mark.rule("RS-87", "RS-191")
async def test_a_backfill_that_is_stopped_after_two_batches_keeps_them_and_pays_for_nothing_twice(tmp_path: Path) -> None:
    async with halting(tmp_path, at=3) as (house, goes_on):
        chat = await house.chat(23)
        await house.call("POST", f"/chats/{chat}/entries/backfill", {})
        await eventually(lambda: _asked(house, 3))
        seen = await come_so_far(house, chat, 2, "running")
        assert seen["total"] == 5
        assert await house.call("POST", f"/chats/{chat}/entries/stop", {}) == (200, {"stopped": True})
        assert await house.call("POST", f"/chats/{chat}/entries/stop", {}) == (200, {"stopped": False})
        await come_so_far(house, chat, 2, "stopped")
        kept = [each["id"] for each in await house.items(chat)]
        assert len(kept) == 2
        goes_on.set()
        await asyncio.sleep(0.2)
        assert [each["id"] for each in await house.items(chat)] == kept, "nothing comes after the stop"
        assert (await house.call("POST", f"/chats/{chat}/entries/backfill", {}))[0] == 202
        await come_so_far(house, chat, 3, "done")
        items = await house.items(chat)
        assert [each["first"] for each in items] == [1, 6, 11, 16, 21]
        assert [each["id"] for each in items][:2] == kept


async def _asked(house: House, count: int) -> bool:
    return len(house.model.requests) >= count


# -- what nobody asked for -------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-86", "RS-74")
async def test_an_automatic_entry_that_cannot_be_made_is_told_with_its_reason(house: House) -> None:
    chat = await house.chat(6)

    def fails(c: sa.Connection) -> None:
        number = enqueue(c, entries.job_of(entries.AUTOMATIC, chat, "root"))
        c.execute(
            sa.update(jobs)
            .where(jobs.c.id == number)
            .values(state="parked", error_class="InvalidOutput", not_before=_now(c, chat).replace(year=2999))
        )

    store(house.gateway, fails)
    _, found = await house.call("GET", f"/chats/{chat}/entries")
    assert found["stuck"] == [{"what": "automatic", "state": "failed", "reason": "the model’s answer could not be used"}]
