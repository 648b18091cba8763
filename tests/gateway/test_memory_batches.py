"""Many saved memories at once over HTTP: clearing in two steps, drafts, taking back what programs did, files out and in (SM-57 to SM-60, SM-76)."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.scripted import Reply, Say, ScriptedModel
from gateway.saved.picks import packed
from gateway.store import utc_now
from memory import conversations
from memory.saved import hand
from memory.saved.hand import Hand
from memory.saved.journal import Writer
from memory.saved.lineages import lineage_of
from memory.saved.lists import Learning
from memory.saved.rows import Origin, character_list
from memory.saved.switches import set_learning
from memory.saved.writing import Limits, New
from tests.conftest import FakeClock
from tests.gateway.test_memories import CHARACTERS, MODEL, add, call, house, listed, texts
from tests.gateway.test_memory_files import add_space, somebody, store
from tests.harness import Running, running

GLOBAL = {"list": "global"}


async def ask(gateway: Running, **where: str) -> dict[str, Any]:
    status, answer = await call(gateway, "POST", "/clear", {**GLOBAL, **where})
    assert status == 200, answer
    return answer


async def answer_step(gateway: Running, question: dict[str, Any], *, yes: bool = True, **more: Any) -> tuple[int, Any]:
    step = more.pop("step", question["step"])
    return await call(gateway, "POST", f"/clear/{step}", {**GLOBAL, "token": question["token"], "yes": yes, **more})


async def with_pins(gateway: Running, pins: int) -> None:
    for number in range(pins):
        made = await add(gateway, f"pin {number}")
        await call(gateway, "POST", f"/{made['id']}/pin")


def drafts(*memories: str) -> Reply:
    return json.dumps({"memories": list(memories)})


# -- clearing ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-76", "SM-77", "WO-21")
@pytest.mark.case("T18")
async def test_clearing_takes_all_but_the_pins_and_asks_about_those_apart(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        await with_pins(gateway, 2)
        await add(gateway, "plain")
        await add(gateway, "in another list", "character")
        question = await ask(gateway)
        assert (question["step"], question["count"]) == (1, 1)
        assert len((await listed(gateway))["items"]) == 4, "asking changes nothing"
        status, first = await answer_step(gateway, question)
        assert (status, first["deleted"]) == (200, 1)
        assert [pin["content"] for pin in first["next"]["pins"]] == ["pin 0", "pin 1"]
        assert texts(await listed(gateway)) == ["pin 0", "pin 1", "in another list"]
        status, second = await answer_step(gateway, first["next"])
        assert (status, second) == (200, {"deleted": 2, "next": None})
        assert texts(await listed(gateway)) == ["in another list"]


@pytest.mark.rule("SM-77")
@pytest.mark.case("T18")
async def test_each_step_of_clearing_counts_once_for_its_list_step_and_person(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        await with_pins(gateway, 1)
        await add(gateway, "plain")
        question = await ask(gateway)
        assert (await answer_step(gateway, question, step=2))[0] == 409, "the second step before the first"
        assert (await answer_step(gateway, question, list="character"))[0] == 409, "another list"
        async with somebody(gateway, "user") as ben:
            assert (await answer_step(ben, question))[0] == 409, "another person"
        assert len((await listed(gateway))["items"]) == 2
        _, first = await answer_step(gateway, question)
        assert (await answer_step(gateway, question))[0] == 409, "a double click"
        late = await add(gateway, "pinned meanwhile")
        await call(gateway, "POST", f"/{late['id']}/pin")
        _, second = await answer_step(gateway, first["next"])
        assert (second["deleted"], [pin["content"] for pin in second["next"]["pins"]]) == (1, ["pinned meanwhile"])
        assert (await answer_step(gateway, first["next"]))[0] == 409, "a replay"
        assert (await answer_step(gateway, second["next"], yes=False))[0] == 200
        assert (await answer_step(gateway, second["next"]))[0] == 409, "after a no"
        assert texts(await listed(gateway)) == ["pinned meanwhile"]


@pytest.mark.rule("SM-77")
async def test_a_question_is_open_for_ten_minutes(tmp_path: Path, clock: FakeClock) -> None:
    async with house(tmp_path, clock=clock) as gateway:
        await add(gateway, "plain")
        question = await ask(gateway)
        clock.now += timedelta(minutes=10, seconds=1)
        status, answer = await answer_step(gateway, question)
        assert (status, answer["error"]["code"]) == (409, "expired")
        assert texts(await listed(gateway)) == ["plain"]


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


# -- from a description ------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-57")
@pytest.mark.case("T22")
async def test_drafts_are_made_of_the_description_alone_and_saved_unpinned(tmp_path: Path) -> None:
    model = ScriptedModel([Say("Good evening."), drafts("She is called Momo", "Avoids peanuts")])
    async with running(tmp_path, model, config={"characters": CHARACTERS, "model": MODEL}) as gateway:
        chat = await gateway.chat(title="A talk")
        await gateway.say(chat, "My cat Shiro is ill")
        await gateway.answers(chat)
        before = len(model.requests)
        status, made = await call(gateway, "POST", "/generate", {**GLOBAL, "description": "Call me Momo. No peanuts."})
        assert (status, made["drafts"]) == (200, ["She is called Momo", "Avoids peanuts"])
        (request,) = [each for each in model.requests[before:] if each.purpose == "memory_drafts"]
        sent = "\n".join(message.text for message in request.messages)
        assert "Call me Momo. No peanuts." in sent
        assert not any(word in sent for word in ("Shiro", "Good evening", "A talk"))
        assert texts(await listed(gateway)) == []
        status, saved = await call(gateway, "POST", "/drafts", {**GLOBAL, "origin": "generate", "drafts": made["drafts"]})
        assert status == 201
        assert [(row["pinned"], row["protected"], row["origin"], row["author"]["you"]) for row in saved["added"]] == [
            (False, True, "generate", True)
        ] * 2


@pytest.mark.rule("SM-57")
@pytest.mark.case("T22")
@pytest.mark.parametrize(("length", "status"), [(0, 422), (1, 200), (1000, 200), (1001, 422)])
async def test_a_description_has_1_to_1000_code_points(tmp_path: Path, length: int, status: int) -> None:
    async with house(tmp_path, script=[drafts("Is called Momo")]) as gateway:
        assert (await call(gateway, "POST", "/generate", {**GLOBAL, "description": "記" * length}))[0] == status


@pytest.mark.rule("SM-57", "SM-60", "WD-22")
async def test_drafts_that_cannot_be_kept_are_not_shown(tmp_path: Path) -> None:
    secret = "The key is sk-proj-abcdefghij1234567890klmnop"
    async with house(tmp_path, script=[drafts("Likes tea", "likes TEA", "x" * 501, " ", secret)], saved={"generate_drafts_max": 2}) as gateway:
        _, made = await call(gateway, "POST", "/generate", {**GLOBAL, "description": "tea"})
        assert made == {"drafts": ["Likes tea"], "found": 1, "limit": 2}


@pytest.mark.rule("SM-57")
@pytest.mark.parametrize("said", ["I remember that you like tea.", '{"facts": []}', '```json\n{"memories": "tea"}\n```'])
async def test_an_answer_of_another_form_is_a_clear_refusal(tmp_path: Path, said: str) -> None:
    async with house(tmp_path, script=[said]) as gateway:
        status, answer = await call(gateway, "POST", "/generate", {**GLOBAL, "description": "tea"})
        assert (status, answer["error"]["code"]) == (503, "model")


@pytest.mark.rule("SM-57")
async def test_the_demo_model_is_not_asked_for_drafts(tmp_path: Path) -> None:
    async with house(tmp_path, model={"provider": "demo"}) as gateway:
        status, answer = await call(gateway, "POST", "/generate", {**GLOBAL, "description": "tea"})
        assert (status, answer["error"]["code"]) == (409, "no_model")


# -- from a conversation -----------------------------------------------------------------------------------------------


def talk(gateway: Running, chat: str, *texts: str, origin: str = "person", role: str = "user") -> list[str]:
    """Messages of a chat as if they had been said."""

    def work(connection: sa.Connection) -> list[str]:
        now = FakeClock().now
        return [
            conversations.add_message(connection, now=now, conversation_id=chat, role=role, origin=origin, text=text, author_name="Momo").id
            for text in texts
        ]

    return store(gateway, work)


async def extract(gateway: Running, chat: str, messages: list[str], how: str = "extract", **more: str) -> tuple[int, Any]:
    return await call(gateway, "POST", "/extract", {**GLOBAL, "chat": chat, "messages": messages, "how": how, **more})


@pytest.mark.rule("SM-58")
@pytest.mark.case("T23")
async def test_one_to_twenty_messages_of_an_own_private_chat_can_be_picked(tmp_path: Path) -> None:
    async with house(tmp_path, script=[drafts("Has a cat")]) as gateway:
        chat = await gateway.chat()
        said = talk(gateway, chat, *(f"message {number}" for number in range(21)))
        notice = talk(gateway, chat, "a notice", origin="notice", role="notice")
        command = talk(gateway, chat, "/memory list", origin="command")
        for messages, wanted in (([], 422), (said, 422), (said[:2] + notice, 422), (command, 422), (["m-nowhere"], 404), (said[:20], 200)):
            status, answer = await extract(gateway, chat, messages)
            assert status == wanted, answer
        async with somebody(gateway, "user") as ben:
            assert (await extract(ben, chat, said[:1]))[0] == 404
        other = await gateway.chat()
        assert (await extract(gateway, other, said[:1]))[0] == 404, "a message of another chat"


@pytest.mark.rule("SM-58", "SM-87", "SM-88")
async def test_nothing_is_taken_out_of_a_challenge_nor_while_learning_is_off_nor_into_a_space(tmp_path: Path) -> None:
    async with house(tmp_path, script=[drafts("x")]) as gateway:
        space = add_space(gateway).removeprefix("spaces/")
        challenge, chat = await gateway.chat(kind="challenge"), await gateway.chat()
        assert (await extract(gateway, challenge, talk(gateway, challenge, "hello")))[1]["error"]["code"] == "challenge"
        said = talk(gateway, chat, "hello")
        assert (await extract(gateway, chat, said, list="space", space=space))[1]["error"]["code"] == "list_not_allowed"
        me = (await gateway.get("/api/me"))["person"]["id"]

        def forbid(connection: sa.Connection) -> None:
            lineage = lineage_of(connection, "default", "Yume", FakeClock().now)
            set_learning(connection, me, lineage, Learning(learn=False, use=True))

        store(gateway, forbid)
        for body in ({}, {"list": "character"}):
            assert (await extract(gateway, chat, said, **body))[1]["error"]["code"] == "learning_off"
        assert (await extract(gateway, chat, said, list="character", character="kaito"))[0] == 200
        wish = {**GLOBAL, "origin": "from_chat", "drafts": ["x"], "chat": chat, "messages": said}
        assert (await call(gateway, "POST", "/drafts", wish))[1]["error"]["code"] == "learning_off", "also when it is saved"


@pytest.mark.rule("SM-58")
@pytest.mark.case("T23")
async def test_five_of_seven_drafts_are_shown_and_arrive_pinned(tmp_path: Path) -> None:
    async with house(tmp_path, script=[drafts(*(f"fact {number}" for number in range(7))), drafts()]) as gateway:
        chat = await gateway.chat()
        said = talk(gateway, chat, "I promise to call on Friday")
        _, made = await extract(gateway, chat, said)
        assert (len(made["drafts"]), made["found"], made["limit"]) == (5, 7, 5)
        wish = {**GLOBAL, "origin": "from_chat", "chat": chat, "messages": said}
        status, saved = await call(gateway, "POST", "/drafts", {**wish, "drafts": made["drafts"][:2]})
        assert status == 201
        assert [(row["pinned"], row["protected"], row["origin"]) for row in saved["added"]] == [(True, True, "from_chat")] * 2
        assert (await call(gateway, "POST", "/drafts", {**wish, "drafts": ["x"] * 6}))[0] == 422
        assert (await extract(gateway, chat, said))[1] == {"drafts": [], "found": 0, "limit": 5}


@pytest.mark.rule("SM-60")
@pytest.mark.case("T23")
async def test_three_drafts_with_two_places_save_none_and_say_how_many_fit(tmp_path: Path) -> None:
    async with house(tmp_path, saved={"pinned_max": 2, "unpinned_max": 2}) as gateway:
        chat = await gateway.chat()
        said = talk(gateway, chat, "hello")
        for more in ({"origin": "from_chat", "chat": chat, "messages": said}, {"origin": "generate"}):
            status, answer = await call(gateway, "POST", "/drafts", {**GLOBAL, **more, "drafts": ["a", "b", "c"]})
            assert (status, answer["error"]["code"], answer["fits"]) == (409, "list_full", 2)
            status, answer = await call(gateway, "POST", "/drafts", {**GLOBAL, **more, "drafts": ["a", "x" * 501]})
            assert (status, answer["error"]["code"], answer["draft"]) == (422, "too_long", 1)
        assert texts(await listed(gateway)) == []


@pytest.mark.rule("SM-59")
@pytest.mark.parametrize("letter", ["a", "記", "忆"])
def test_word_for_word_texts_are_cut_only_between_messages(letter: str) -> None:
    def pack(*lengths: int) -> list[str] | None:
        return packed([letter * length for length in lengths], length=500, pieces=5)

    assert pack(500) == [letter * 500]
    assert pack(501) is None
    assert [len(draft) for draft in pack(249, 250, 500, 1) or ()] == [500, 500, 1]
    assert [len(draft) for draft in pack(250, 250) or ()] == [250, 250], "a line break counts"
    assert len(pack(*[400] * 5) or ()) == 5
    assert pack(*[400] * 6) is None
    assert packed(["  ", "hello ", ""], length=500, pieces=5) == ["hello"]


@pytest.mark.rule("SM-59")
async def test_word_for_word_needs_no_model_and_advises_when_it_does_not_fit(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        chat = await gateway.chat()
        said = talk(gateway, chat, "Shall we meet?", "On Friday at six.", "x" * 501)
        assert (await extract(gateway, chat, said[1::-1], "verbatim"))[1]["drafts"] == ["Shall we meet?\nOn Friday at six."]
        status, answer = await extract(gateway, chat, said, "verbatim")
        assert (status, answer["error"]["code"]) == (422, "too_long")
        assert "500" in answer["error"]["message"]


# -- what programs did -------------------------------------------------------------------------------------------------


async def by_the_model(gateway: Running, content: str, turn: str) -> int:
    """A row that the AI saved in a turn."""
    me = (await gateway.get("/api/me"))["person"]["id"]

    def work(connection: sa.Connection) -> int:
        now = utc_now()
        key = character_list(me, lineage_of(connection, "default", "Yume", now))
        writer = Writer(actor="tool", turn_id=turn, attempt=1)
        by = Hand(
            writer=writer, lists=frozenset({key}), sent={}, visible=(), search_ok=True, ageing_on=True, private=True, operations_max=10,
            limits=Limits(),
        )  # fmt: skip
        done = hand.save(connection, by, New(key=key, content=content, origin=Origin.TOOL, author_kind="model"), now)
        assert done.memory is not None
        return done.memory.id

    return store(gateway, work)


@pytest.mark.rule("SM-72", "SM-66")
async def test_what_the_model_did_can_be_taken_back_by_whoever_manages_the_list(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        await by_the_model(gateway, "Likes tea", "t-1")
        kept = await by_the_model(gateway, "Likes cake", "t-2")
        await call(gateway, "POST", f"/{kept}/pin")
        _, answer = await call(gateway, "GET", "/changes")
        shown = [(each["op"], each["actor"], each["before"], each["after"]) for each in answer["changes"]]
        assert shown == [("create", "tool", None, "Likes cake"), ("create", "tool", None, "Likes tea")]
        cake, tea = (each["id"] for each in answer["changes"])
        async with somebody(gateway, "user") as ben:
            assert (await call(ben, "POST", f"/changes/{tea}/undo"))[0] == 404
            assert (await call(ben, "GET", "/changes"))[1] == {"changes": []}
        status, done = await call(gateway, "POST", f"/changes/{tea}/undo")
        assert status == 200, done
        assert (status, [row["content"] for row in done["removed"]]) == (200, ["Likes tea"])
        assert (await call(gateway, "POST", f"/changes/{tea}/undo"))[0] == 404, "once"
        status, answer = await call(gateway, "POST", f"/changes/{cake}/undo")
        assert (status, answer["error"]["code"]) == (409, "kept"), "a person pinned it"
        assert texts(await listed(gateway)) == ["Likes cake"]


# -- out and in --------------------------------------------------------------------------------------------------------


async def exported(gateway: Running, **where: str) -> str:
    async with gateway.http.get(f"{gateway.url}/api/memories/export", params=where) as answer:
        assert answer.status == 200
        assert "attachment" in answer.headers["Content-Disposition"]
        return await answer.text()


@pytest.mark.rule("SM-91")
async def test_a_file_goes_out_and_comes_in_after_a_look(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        await with_pins(gateway, 1)
        await add(gateway, "麦茶が好き")
        await add(gateway, "Owes a song", "character", character="kaito")
        document = await exported(gateway)
        assert "vector" not in document
        async with somebody(gateway, "user") as ben:
            _, look = await call(ben, "POST", "/import/preview", {"document": document})
            assert [(each["list"], each["rows"], each["target"] and each["target"]["list"]) for each in look["lists"] if each["rows"]] == [
                ("global", 2, "global"), ("character", 1, "character"),
            ]  # fmt: skip
            assert (look["new"], look["faults"]) == (3, [])
            assert texts(await listed(ben)) == [], "looking changes nothing"
            status, done = await call(ben, "POST", "/import", {"document": document})
            assert (status, done["new"]) == (200, 3)
            rows = (await listed(ben))["items"]
            assert [(row["content"], row["pinned"], row["protected"], row["origin"]) for row in rows] == [
                ("pin 0", False, False, "import"), ("麦茶が好き", False, False, "import"), ("Owes a song", False, False, "import"),
            ]  # fmt: skip
            assert (await call(ben, "POST", "/import", {"document": document}))[1]["standing"] == 3


@pytest.mark.rule("SM-91")
async def test_an_import_is_whole_or_nothing_and_says_which_rows_do_not_fit(tmp_path: Path) -> None:
    async with house(tmp_path, saved={"unpinned_max": 2}) as gateway:
        await add(gateway, "one")
        document = json.loads(await exported(gateway, list="global"))
        row = document["lists"][0]["rows"][0]
        document["lists"][0]["rows"] = [{**row, "content": text} for text in ("two", "x" * 501, "three", "four")]
        body = {"document": json.dumps(document)}
        status, answer = await call(gateway, "POST", "/import", body)
        assert (status, answer["error"]["code"]) == (409, "refused")
        assert [(each["row"], each["reason"]) for each in answer["faults"]] == [(1, "too_long"), (2, "full"), (3, "full")]
        assert texts(await listed(gateway)) == ["one"]
        assert (await call(gateway, "POST", "/import", {"document": "no"}))[1]["error"]["code"] == "no_export"


@pytest.mark.rule("SM-91")
async def test_memories_move_between_a_space_and_a_person_only_after_a_yes_and_never_to_a_foreign_list(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        space = add_space(gateway).removeprefix("spaces/")
        await add(gateway, "mine")
        wish = {"document": await exported(gateway, list="global"), "targets": [{"at": 0, "list": "space", "space": space}]}
        async with somebody(gateway, "user") as ben:
            assert (await call(ben, "POST", "/import", wish))[0] == 404
        status, answer = await call(gateway, "POST", "/import", wish)
        assert (status, answer["error"]["code"]) == (409, "crosses")
        assert (await call(gateway, "POST", "/import", {**wish, "cross": True}))[0] == 200
        assert texts(await listed(gateway, list="space", space=space)) == ["mine"]
