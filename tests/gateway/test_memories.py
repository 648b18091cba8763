"""Saved memories over HTTP, through a whole gateway: lists and their limits, adding, editing, pinning, waking, deleting (WO-20, WO-21)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.scripted import Reply, ScriptedModel
from gateway.store import utc_now
from memory.embedders.hashed import hash_embedder
from memory.saved_schema import memories, memory_decay
from memory.schema import messages
from tests.conftest import FakeClock
from tests.gateway.test_memory_files import add_space, somebody, store
from tests.harness import Running, eventually, running

CHARACTERS = {"default": {"name": "Yume"}, "kaito": {"name": "Kaito"}}
MODEL = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}
WORDS = {"en": "Likes barley tea", "ja": "麦茶が好き", "zh": "喜欢喝大麦茶"}


async def call(gateway: Running, method: str, path: str = "", body: Any = None, **more: Any) -> tuple[int, Any]:
    async with gateway.http.request(method, f"{gateway.url}/api/memories{path}", json=body, **more) as answer:
        return answer.status, await answer.json()


async def add(gateway: Running, content: str, kind: str = "global", **more: Any) -> dict[str, Any]:
    status, answer = await call(gateway, "POST", "", {"list": kind, "content": content, **more})
    assert status == 201, answer
    return answer["memory"]


async def listed(gateway: Running, **query: str) -> dict[str, Any]:
    status, answer = await call(gateway, "GET", "", params=query)
    assert status == 200, answer
    return answer


def texts(answer: dict[str, Any]) -> list[str]:
    return [item["content"] for item in answer["items"]]


def sleep(gateway: Running, memory_id: int, *, protected: bool = True) -> None:
    """As if nobody had needed it for a week; `protected` False as if a program had made it."""

    def work(connection: sa.Connection) -> None:
        connection.execute(sa.update(memory_decay).where(memory_decay.c.memory_id == memory_id).values(dormant=True, unused_days=7))
        connection.execute(sa.update(memories).where(memories.c.id == memory_id).values(protected=protected))

    store(gateway, work)


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@asynccontextmanager
async def house(
    folder: Path, *, clock: Callable[[], datetime] = utc_now, ageing: bool = False, script: Sequence[Reply] = (), **config: Any
) -> AsyncGenerator[Running]:
    """`ageing`: with an embedder that is ready, so that memories can sleep."""
    saved = {"match_floor": {"hash": -1.0}, **config.pop("saved", {})}
    config = {"characters": CHARACTERS, "model": MODEL, "saved": saved, **config}
    embedder = hash_embedder() if ageing else None
    async with running(folder, ScriptedModel(list(script)), config=config, clock=clock, embedder=lambda _config: embedder) as gateway:
        if ageing:

            async def is_ready() -> bool:
                return (await listed(gateway))["limits"]["ageing"]

            await eventually(is_ready)
        yield gateway


# -- lists -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-21")
@pytest.mark.parametrize("model", [{"provider": "demo"}, {**MODEL, "supports_tools": False}])
async def test_a_list_says_whether_a_model_saves_there_by_itself(tmp_path: Path, model: dict[str, Any]) -> None:
    """The empty list must not promise what only a model with tools does."""
    characters = {**CHARACTERS, "kaito": {**CHARACTERS["kaito"], "model": "able"}}
    async with house(tmp_path, model=model, models={"able": MODEL}, characters=characters) as gateway:
        _, answer = await call(gateway, "GET", "/lists")
        assert {each.get("character", ""): each["saves"] for each in answer["lists"]} == {"": True, "default": False, "kaito": True}


@pytest.mark.rule("SM-2", "SM-56", "WO-21")
async def test_each_list_says_how_full_it_is_and_holds_its_own_rows(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        space = add_space(gateway).removeprefix("spaces/")
        await add(gateway, "Is called Momo")
        first = await add(gateway, "Owes Kaito a song", "character", character="kaito")
        await add(gateway, "The circle reads on Fridays", "space", space=space)
        assert (await call(gateway, "POST", f"/{first['id']}/pin"))[0] == 200
        _, answer = await call(gateway, "GET", "/lists")
        shown = {(each["list"], each.get("character"), each.get("space")): (each["unpinned"], each["pinned"]) for each in answer["lists"]}
        assert shown == {
            ("global", None, None): (1, 0),
            ("character", "default", None): (0, 0),
            ("character", "kaito", None): (0, 1),
            ("space", "default", space): (1, 0),
            ("space", "kaito", space): (0, 0),
        }
        assert (answer["limits"]["unpinned_max"], answer["limits"]["pinned_max"], answer["limits"]["content_max"]) == (100, 20, 500)
        everything = await listed(gateway)
        assert texts(everything) == ["Is called Momo", "Owes Kaito a song"]
        assert texts(await listed(gateway, list="character")) == ["Owes Kaito a song"]
        assert texts(await listed(gateway, list="character", character="default")) == []
        of_space = await listed(gateway, list="space", space=space)
        assert texts(of_space) == ["The circle reads on Fridays"]
        assert of_space["limits"]["lists"][0]["unpinned"] == 1
        assert all(each["saves"] for each in answer["lists"])
        item = everything["items"][0]
        assert {"id", "list", "content", "pinned", "protected", "state", "unused_days", "last_matched_at", "updated_at", "origin"} <= item.keys()
        assert (item["list"], item["state"], item["origin"], item["protected"], item["pinned"]) == ("global", "active", "panel", True, False)


@pytest.mark.rule("SM-56")
async def test_lists_are_filtered_by_state_and_unknown_ones_are_not_there(tmp_path: Path) -> None:
    async with house(tmp_path, ageing=True) as gateway:
        asleep, pinned = await add(gateway, "Sleeps"), await add(gateway, "Is pinned")
        await add(gateway, "Is awake")
        sleep(gateway, asleep["id"])
        await call(gateway, "POST", f"/{pinned['id']}/pin")
        assert texts(await listed(gateway, state="dormant")) == ["Sleeps"]
        assert texts(await listed(gateway, state="pinned")) == ["Is pinned"]
        assert texts(await listed(gateway, state="active")) == ["Is pinned", "Is awake"]
        for query, status in (
            ({"list": "other"}, 400),
            ({"state": "tired"}, 400),
            ({"list": "character", "character": "nobody"}, 404),
            ({"list": "space", "space": "s-nowhere234"}, 404),
        ):
            assert (await call(gateway, "GET", "", params=query))[0] == status, query


@pytest.mark.rule("SM-56", "SM-74")
async def test_nobody_reaches_another_persons_rows_nor_those_of_a_space_they_do_not_manage(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        space = add_space(gateway).removeprefix("spaces/")
        mine = await add(gateway, "The owner's secret")
        of_space = await add(gateway, "The circle's secret", "space", space=space)
        async with somebody(gateway, "user") as ben, somebody(gateway, "guest", "Gus") as gus:
            assert texts(await listed(ben)) == []
            assert [each["list"] for each in (await call(ben, "GET", "/lists"))[1]["lists"]] == ["global", "character", "character"]
            for memory in (mine, of_space):
                path = f"/{memory['id']}"
                for method, tail, body in (
                    ("GET", "", None), ("PATCH", "", {"content": "x"}), ("DELETE", "", None),
                    ("POST", "/pin", {}), ("POST", "/unpin", {}), ("POST", "/wake", {}),
                ):  # fmt: skip
                    assert (await call(ben, method, path + tail, body))[0] == 404, (method, tail)
            where = {"list": "space", "space": space}
            step = {"token": "x", "yes": True}
            for tail, body in (("", {"content": "x"}), ("/clear", {}), ("/clear/1", step), ("/generate", {"description": "x"})):
                assert (await call(ben, "POST", tail, {**where, **body}))[0] == 404, tail
            for tail in ("", "/changes", "/export"):
                assert (await call(ben, "GET", tail, params=where))[0] == 404, tail
            assert (await call(gus, "GET"))[0] == 403
            assert texts(await listed(gateway)) == ["The owner's secret"]


@pytest.mark.rule("SM-56")
async def test_a_member_of_a_space_sees_only_the_rows_they_taught(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        space = add_space(gateway).removeprefix("spaces/")
        taught = await add(gateway, "Ben brings the cake", "space", space=space)
        await add(gateway, "Chiyo brings the tea", "space", space=space)
        async with somebody(gateway, "user") as ben:
            me = (await ben.get("/api/me"))["person"]["id"]
            chat = await ben.chat()
            known = {"channel": "telegram", "account": "main", "platform_user_id": "77", "person_id": me, "created_at": FakeClock().now}

            def teach(connection: sa.Connection) -> None:
                connection.execute(sa.insert(sa.table("identities", *map(sa.column, known))), [{**known, "created_at": 0}])
                said = {"id": "m-taught", "conversation_id": chat, "turn_id": "t-taught", "role": "user", "author_person_id": me}
                connection.execute(sa.insert(messages), [{**said, "text": "I bring the cake", "created_at": FakeClock().now}])
                connection.execute(sa.update(memories).where(memories.c.id == taught["id"]).values(source={"turn": "t-taught"}))

            store(gateway, teach)
            shelf = (await call(ben, "GET", "/lists"))[1]["lists"][-1]
            assert (shelf["list"], shelf["space"], shelf["manages"]) == ("space", space, False)
            assert texts(await listed(ben, list="space", space=space)) == ["Ben brings the cake"]
            assert (await call(ben, "DELETE", f"/{taught['id']}"))[0] == 404


# -- adding ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-3", "SM-8")
@pytest.mark.parametrize("letter", ["a", "記", "忆", "\U0001f319"])
async def test_a_memory_has_500_code_points_and_not_one_more(tmp_path: Path, letter: str) -> None:
    async with house(tmp_path) as gateway:
        assert (await add(gateway, f"  {letter * 500}\n"))["content"] == letter * 500
        status, answer = await call(gateway, "POST", "", {"list": "global", "content": letter * 501})
        assert (status, answer["error"]["code"]) == (422, "too_long")
        assert "501" in answer["error"]["message"]
        assert "500" in answer["error"]["message"]
        assert (await call(gateway, "POST", "", {"list": "global", "content": " \n\u3000"}))[1]["error"]["code"] == "empty"
        assert len((await listed(gateway))["items"]) == 1


@pytest.mark.rule("SM-4")
@pytest.mark.parametrize("language", WORDS)
async def test_what_is_there_already_is_not_added_and_the_answer_shows_the_row(tmp_path: Path, language: str) -> None:
    async with house(tmp_path) as gateway:
        first = await add(gateway, WORDS[language])
        status, answer = await call(gateway, "POST", "", {"list": "global", "content": f" {WORDS[language].upper()} "})
        assert (status, answer["error"]["code"], answer["memory"]["id"]) == (409, "duplicate", first["id"])
        await add(gateway, WORDS[language], "character")  # another list


@pytest.mark.rule("SM-49", "SM-2")
async def test_a_full_list_names_the_row_that_could_go_and_acts_only_on_a_yes_to_that_row(tmp_path: Path) -> None:
    async with house(tmp_path, ageing=True, saved={"unpinned_max": 2}) as gateway:
        first, second = await add(gateway, "one", "character"), await add(gateway, "two", "character")
        wish = {"list": "character", "content": "three"}
        status, answer = await call(gateway, "POST", "", wish)
        assert (status, answer["error"]["code"], answer["candidate"]) == (409, "list_full", None)
        sleep(gateway, first["id"], protected=False)
        status, answer = await call(gateway, "POST", "", wish)
        assert (status, answer["candidate"]["content"]) == (409, "one")
        assert (await call(gateway, "POST", f"/{first['id']}/wake"))[0] == 200  # it changed meanwhile
        sleep(gateway, second["id"], protected=False)
        status, answer = await call(gateway, "POST", "", {**wish, "evict": first["id"]})
        assert (status, answer["candidate"]["content"]) == (409, "two"), "asks again"
        status, answer = await call(gateway, "POST", "", {**wish, "evict": second["id"]})
        assert (status, answer["memory"]["content"], answer["forgotten"]["content"]) == (201, "three", "two")
        assert texts(await listed(gateway)) == ["one", "three"]
        assert answer["use"] == {"unpinned": 2, "pinned": 0}


# -- changing ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-5", "SM-44", "SM-75")
async def test_only_a_new_text_or_pin_makes_a_memory_younger(tmp_path: Path, clock: FakeClock) -> None:
    async with house(tmp_path, clock=clock, ageing=True) as gateway:
        made = await add(gateway, "Plays the cello")
        path = f"/{made['id']}"
        clock.now += timedelta(days=1)
        for body in ({"tags": ["music"]}, {"channel_ids": ["telegram:main:7"]}, {"private": False}, {"content": "Plays the cello"}):
            _, answer = await call(gateway, "PATCH", path, body)
            assert answer["memory"]["updated_at"] == made["updated_at"], body
        sleep(gateway, made["id"])
        _, woken = await call(gateway, "POST", f"{path}/wake")
        assert (woken["memory"]["state"], woken["memory"]["unused_days"], woken["memory"]["updated_at"]) == ("active", 0, made["updated_at"])
        sleep(gateway, made["id"])
        _, edited = await call(gateway, "PATCH", path, {"content": "Plays the viola"})
        assert edited["memory"]["updated_at"] > made["updated_at"]
        assert edited["memory"]["state"] == "dormant", "an edit does not wake"
        clock.now += timedelta(days=1)
        _, pinned = await call(gateway, "POST", f"{path}/pin")
        assert pinned["memory"]["updated_at"] > edited["memory"]["updated_at"]
        assert (pinned["memory"]["pinned"], pinned["memory"]["state"]) == (True, "active")
        _, unpinned = await call(gateway, "POST", f"{path}/unpin")
        assert (unpinned["memory"]["pinned"], unpinned["memory"]["protected"], unpinned["memory"]["unused_days"]) == (False, True, 0)


@pytest.mark.rule("SM-2", "SM-74")
async def test_pins_have_places_of_their_own(tmp_path: Path) -> None:
    async with house(tmp_path, saved={"unpinned_max": 2, "pinned_max": 1}) as gateway:
        one, two = await add(gateway, "one"), await add(gateway, "two")
        assert (await call(gateway, "POST", f"/{one['id']}/pin"))[0] == 200
        status, answer = await call(gateway, "POST", f"/{two['id']}/pin")
        assert (status, answer["error"]["code"]) == (409, "pins_full")
        await add(gateway, "three")
        status, answer = await call(gateway, "POST", f"/{one['id']}/unpin")
        assert (status, answer["error"]["code"]) == (409, "list_full")


@pytest.mark.rule("SM-53", "SM-17", "SM-18")
async def test_an_edit_of_an_older_text_is_refused_and_limits_are_kept(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        made = await add(gateway, "Plays the cello")
        path = f"/{made['id']}"
        await call(gateway, "PATCH", path, {"content": "Plays the viola", "based_on": made["revision"]})
        status, answer = await call(gateway, "PATCH", path, {"content": "Plays the harp", "based_on": made["revision"]})
        assert (status, answer["error"]["code"], answer["memory"]["content"]) == (409, "changed", "Plays the viola")
        _, answer = await call(gateway, "PATCH", path, {"tags": ["猫", "cat", "cat", " "], "private": False})
        assert (answer["memory"]["tags"], answer["memory"]["private"]) == (["猫", "cat"], False)
        status, answer = await call(gateway, "PATCH", path, {"tags": list("abcdef")})
        assert (status, answer["error"]["code"]) == (422, "too_many_tags")
        status, answer = await call(gateway, "DELETE", path)
        assert (status, answer["outcome"], answer["use"]) == (200, "deleted", {"unpinned": 0, "pinned": 0})
        assert (await call(gateway, "GET", path))[0] == 404


@pytest.mark.rule("SM-98")
async def test_while_ageing_is_off_nothing_sleeps_and_nothing_is_let_go_of(tmp_path: Path) -> None:
    async with house(tmp_path, saved={"ageing": False, "unpinned_max": 1}) as gateway:
        made = await add(gateway, "one", "character")
        sleep(gateway, made["id"], protected=False)
        answer = await listed(gateway)
        assert (answer["items"][0]["state"], answer["limits"]["ageing"]) == ("active", False)
        _, answer = await call(gateway, "POST", "", {"list": "character", "content": "two"})
        assert (answer["error"]["code"], answer["candidate"]) == ("list_full", None)
