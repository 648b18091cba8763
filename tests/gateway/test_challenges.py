"""Challenges: their files, attempts, turns, the judge, and prompts that are alike for everybody (WO-16, SM-88)."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from gateway.challenge_files import ChallengeFiles
from gateway.challenges import Challenge, in_language
from gateway.config import Config
from gateway.judging import JudgementUnusable, parsed
from gateway.store import open_database, utc_now
from memory.database import Database
from memory.file_schema import summary_blocks
from memory.saved.lineages import lineage_of
from memory.saved.rows import character_list, global_list
from memory.saved.store import insert_new
from memory.saved.writing import New
from memory.saved_schema import memories, memory_journal
from memory.schema import jobs
from tests.harness import Running, eventually, running

GATE = {
    "title": {"en": "The gate", "ja": "門", "zh": "城门"},
    "scenario": {"en": "A guard stands at the gate.", "ja": "門に衛兵がいる。", "zh": "城门口有一名卫兵。"},
    "goal": {"en": "Make the guard open the gate.", "ja": "門を開けさせる。", "zh": "让卫兵打开城门。"},
    "prompt": "You are the guard of a gate. Open it only for a good reason.",
    "criteria": "The guard opened the gate.",
    "difficulty": "hard",
    "turns": 2,
}
# The demo model is never asked to judge; any other account is.
MODEL = {"model": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "scripted"}}


def put(folder: Path, name: str = "gate", **more: Any) -> None:
    (folder / "challenges").mkdir(parents=True, exist_ok=True)
    (folder / "challenges" / f"{name}.json").write_text(json.dumps(GATE | more, ensure_ascii=False), encoding="utf-8")


class Player:
    """A model that plays and judges; the requests of both are kept."""

    def __init__(self, judgement: Reply = '{"score": 85, "verdict": "The gate is open."}') -> None:
        self.judgement: Reply = judgement
        self.model = ScriptedModel(self._answer)

    def _answer(self, request: ModelRequest) -> Reply:
        if request.purpose == "judge":
            return self.judgement
        return "Halt!" if request.purpose == "reply" else "A title"

    def asked(self, purpose: str) -> list[ModelRequest]:
        return [request for request in self.model.requests if request.purpose == purpose]


# -- files ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ('{"title": "x", "goal": "y", "turns": 0}', "line 1, column 29: turns: Input should be greater than or equal to 1"),
        ('{"title": "x", "goal": "y", "difficulty": "mad"}', "difficulty: Input should be 'easy', 'normal' or 'hard'"),
        ('{"title": "x"}', "goal: Field required"),
        ('{"title": "x", "goal": "y", "gaol": "z"}', "gaol: Extra inputs are not permitted"),
        ('{"title": {"de": "x"}, "goal": "y"}', "wanted a text, or texts under en, ja, zh"),
        ('{"title": "x", "goal": "y", "character": "nobody"}', 'there is no character "nobody"; known: default'),
        ("[1]", "the file"),
        ("{", "line 1"),
        ('{"title": "x",\n "title": "y", "goal": "z"}', "line 2"),
    ],
)
async def test_a_faulty_file_is_named_with_its_place_and_the_others_go_on(tmp_path: Path, text: str, told: str) -> None:
    put(tmp_path)
    (tmp_path / "challenges" / "bad.json").write_text(text, encoding="utf-8")
    defined = await ChallengeFiles(tmp_path / "challenges", lambda: ["default"]).all()
    assert list(defined.challenges) == ["gate"]
    (fault,) = defined.faults
    assert fault.startswith("bad.json: ") and told in fault


async def test_without_a_folder_there_are_no_challenges(tmp_path: Path) -> None:
    defined = await ChallengeFiles(tmp_path / "challenges", lambda: ["default"]).all()
    assert (dict(defined.challenges), defined.faults) == ({}, ())


def test_texts_are_in_the_readers_language_and_the_scene_is_one_for_all() -> None:
    found = Challenge.model_validate(GATE | {"prompt": ""})
    assert [in_language(found.title, language) for language in ("en", "ja", "zh")] == ["The gate", "門", "城门"]
    assert in_language({"ja": "門"}, "zh") == "門"
    assert found.scene == "A guard stands at the gate."
    assert Challenge.model_validate(GATE).scene == GATE["prompt"]


# -- the judge's answer ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ('{"score": 0, "verdict": "no"}', 0),
        ('```json\n{"score": 100, "verdict": "门开了"}\n```', 100),
        ('Here it is: {"verdict": "開いた", "score": 79}', 79),
    ],
)
def test_a_judgement_is_read_from_its_json(text: str, score: int) -> None:
    assert parsed(text).score == score


@pytest.mark.parametrize("text", ["", "85", '{"verdict": "yes"}', '{"score": 101}', '{"score": -1}', '{"score": "many"}', "{"])
def test_what_is_no_judgement_is_refused(text: str) -> None:
    with pytest.raises(JudgementUnusable):
        parsed(text)


# -- through the whole gateway ----------------------------------------------------------------------------------------------


@asynccontextmanager
async def house(
    folder: Path,
    player: Player,
    *,
    turns: int = 2,
    clock: Callable[[], datetime] = utc_now,
    database: Callable[[Config], Database] = open_database,
    **more: Any,
) -> AsyncGenerator[Running]:
    put(folder / "workspace" / ".yumegate", turns=turns)
    async with running(folder, player.model, config=MODEL | more, clock=clock, database=database) as gateway:
        yield gateway


async def begin(gateway: Running, challenge: str = "gate") -> str:
    return await gateway.chat(kind="challenge", challenge=challenge)


async def state(gateway: Running, chat_id: str, wanted: str) -> dict[str, Any]:
    async def look() -> dict[str, Any] | None:
        chat = await gateway.get(f"/api/chats/{chat_id}")
        return chat if chat["attempt"]["state"] == wanted else None

    return await eventually(look)


@pytest.mark.rule("WO-16", "WO-51")
async def test_a_challenge_is_listed_played_counted_and_judged(tmp_path: Path) -> None:
    player = Player()
    async with house(tmp_path, player) as gateway:
        (listed,) = (await gateway.get("/api/challenges", headers={"Accept-Language": "ja"}))["challenges"]
        assert (listed["title"], listed["goal"], listed["difficulty"], listed["turns"], listed["attempts"]) == (
            "門",
            "門を開けさせる。",
            "hard",
            2,
            0,
        )
        assert "prompt" not in listed and "criteria" not in listed
        chat_id = await begin(gateway)
        chat = await gateway.get(f"/api/chats/{chat_id}")
        assert (chat["kind"], chat["title"], chat["turns_left"], chat["attempt"]["state"]) == ("challenge", "The gate", 2, "open")
        await gateway.say(chat_id, "Open!")
        await gateway.answers(chat_id, 1)
        assert (await gateway.get(f"/api/chats/{chat_id}"))["turns_left"] == 1
        await gateway.say(chat_id, "I bring bread.")
        chat = await state(gateway, chat_id, "won")
        assert (chat["turns_left"], chat["attempt"]["score"], chat["attempt"]["verdict"]) == (0, 85, "The gate is open.")
        refused = await gateway.post(f"/api/chats/{chat_id}/messages", {"client_id": "late", "text": "And now?"}, status=409)
        assert refused["error"]["code"] == "challenge_over"
        (listed,) = (await gateway.get("/api/challenges"))["challenges"]
        assert (listed["attempts"], listed["won"], listed["best"]) == (1, 1, 85)
    (judged,) = player.asked("judge")
    assert "I bring bread." in judged.messages[-1].text and "The guard opened the gate." in judged.messages[-1].text


@pytest.mark.rule("WO-16")
@pytest.mark.parametrize(("score", "wanted"), [(79, "lost"), (80, "won")])
async def test_80_points_win(tmp_path: Path, score: int, wanted: str) -> None:
    async with house(tmp_path, Player(f'{{"score": {score}}}')) as gateway:
        chat_id = await begin(gateway)
        await gateway.say(chat_id, "Open!")
        await gateway.answers(chat_id, 1)
        await gateway.post(f"/api/chats/{chat_id}/finish")
        assert (await state(gateway, chat_id, wanted))["attempt"]["score"] == score
        await gateway.post(f"/api/chats/{chat_id}/finish", status=409)


@pytest.mark.rule("WO-16")
async def test_a_regenerated_answer_uses_a_turn_and_a_failed_one_none(tmp_path: Path) -> None:
    player = Player()
    async with house(tmp_path, player) as gateway:
        chat_id = await begin(gateway)
        await gateway.say(chat_id, "Open!")
        await gateway.answers(chat_id, 1)
        again = await gateway.post(f"/api/chats/{chat_id}/regenerate")
        await state(gateway, chat_id, "won")
        assert again["turn_id"]
        refused = await gateway.post(f"/api/chats/{chat_id}/regenerate", status=409)
        assert refused["error"]["code"] == "challenge_over"


@pytest.mark.rule("WO-16")
async def test_beginning_anew_gives_the_open_attempt_up_and_counts_on(tmp_path: Path) -> None:
    async with house(tmp_path, Player()) as gateway:
        first = await begin(gateway)
        await gateway.say(first, "Open!")
        await gateway.answers(first, 1)
        second = (await gateway.post(f"/api/chats/{first}/again"))["id"]
        old, new = await gateway.get(f"/api/chats/{first}"), await gateway.get(f"/api/chats/{second}")
        assert (old["attempt"]["state"], old["turns_left"]) == ("given_up", 0)
        assert (new["attempt"]["state"], new["attempt"]["number"], new["turns_left"]) == ("open", 2, 2)
        assert await gateway.messages(second) == []
        ordinary = await gateway.chat()
        await gateway.post(f"/api/chats/{ordinary}/again", status=409)


@pytest.mark.rule("WO-16")
async def test_a_challenge_keeps_the_text_it_began_with_and_its_character(tmp_path: Path) -> None:
    player = Player()
    async with house(tmp_path, player, characters={"hana": {"name": "Hana"}}) as gateway:
        chat_id = await begin(gateway)
        put(tmp_path / "workspace" / ".yumegate", prompt="Let everybody in.")
        await gateway.say(chat_id, "Open!")
        await gateway.answers(chat_id, 1)
        assert "good reason" in player.asked("reply")[0].messages[0].text
        async with gateway.http.patch(f"{gateway.url}/api/chats/{chat_id}", json={"character": "hana"}) as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (409, "challenge_cast")
        missing = await gateway.post("/api/chats", {"kind": "challenge", "challenge": "moon"}, status=404)
        assert missing["error"]["code"] == "unknown_challenge"


@pytest.mark.rule("WO-16")
async def test_without_a_model_that_can_judge_the_attempt_waits(tmp_path: Path) -> None:
    put(tmp_path / "workspace" / ".yumegate", turns=1)
    async with running(tmp_path, Player().model) as gateway:
        chat_id = await begin(gateway)
        await gateway.say(chat_id, "Open!")
        await gateway.answers(chat_id, 1)
        chat = await state(gateway, chat_id, "judging")
        assert chat["turns_left"] == 0


# -- alike for everybody (SM-88) --------------------------------------------------------------------------------------------


def sent(player: Player) -> list[Any]:
    """Messages and tools of every reply request, to the byte."""
    return [(request.messages, request.tools) for request in player.asked("reply")]


@asynccontextmanager
async def another_person(gateway: Running) -> AsyncGenerator[Running]:
    """The gateway as somebody else sees it, who set another language and zone."""
    made = await gateway.post("/api/operator/people", {"name": "Sakura", "role": "user"}, status=201)
    link = (await gateway.post(f"/api/operator/people/{made['id']}/login-link"))["url"]
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as http:
        async with http.get(link, allow_redirects=False) as answer:
            assert answer.status == 303
        async with http.get(f"{gateway.url}/api/me") as answer:
            http.headers["X-CSRF-Token"] = (await answer.json())["csrf"]
        async with http.patch(f"{gateway.url}/api/me", json={"language": "ja", "timezone": "Asia/Tokyo"}) as answer:
            assert answer.status == 200, await answer.text()
        yield replace(gateway, http=http)


WORDS = ("Open!", "I am hungry.", "Here is bread for you.")


async def play(gateway: Running, chat_id: str, words: Sequence[str]) -> None:
    for number, text in enumerate(words, start=1):
        await gateway.say(chat_id, text)
        await gateway.answers(chat_id, number)


@pytest.mark.rule("SM-88", "SM-T20")
async def test_two_attempts_have_prompts_of_equal_bytes_whoever_makes_them_whenever_and_whatever_is_stored(tmp_path: Path) -> None:
    empty, full = Player(), Player()
    async with house(tmp_path / "empty", empty, turns=5) as gateway:
        await play(gateway, await begin(gateway), WORDS)
    opened: list[Database] = []

    def open_it(config: Config) -> Database:
        opened.append(open_database(config))
        return opened[-1]

    clock = lambda: datetime.now(UTC) + timedelta(hours=5)  # noqa: E731
    async with house(tmp_path / "full", full, turns=5, clock=clock, database=open_it) as gateway, another_person(gateway) as other:
        me = (await other.get("/api/me"))["person"]["id"]
        root = tmp_path / "full" / "workspace"
        for folder in (root, root / "people" / me):
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "MEMORY.md").write_text("- Sakura plays the cello.\n", encoding="utf-8")
            (folder / "user.md").write_text("Call her Sakura.\n", encoding="utf-8")
        (root / "knowledge" / "public").mkdir(parents=True, exist_ok=True)
        (root / "knowledge" / "public" / "gate.md").write_text("---\nalways: true\n---\nThe gate opens for bread.\n", encoding="utf-8")

        def fill(connection: sa.Connection) -> None:
            lineage = lineage_of(connection, "default", "Yume", clock())
            for key in (global_list(me), character_list(me, lineage)):
                for pinned in (True, False):
                    new = New(key=key, content=f"Sakura likes bread ({pinned})", origin="panel", author_kind="person", author_id=me, pinned=pinned)
                    insert_new(connection, new, clock())

        await opened[0].write(fill)
        talk = await other.chat()  # what it teaches about the model must not show either
        await other.say(talk, "Good morning")
        await other.answers(talk, 1)
        chat_id = await begin(other)
        async with other.http.patch(f"{other.url}/api/chats/{chat_id}", json={"title": "Mine"}) as answer:
            assert answer.status == 200
        await other.say(chat_id, "/persona Sakura, the queen")
        await play(other, chat_id, WORDS[:2])
        fork = (await other.post(f"/api/chats/{chat_id}/fork"))["id"]
        await other.say(chat_id, WORDS[2])
        await other.answers(chat_id, 3)
        await other.say(fork, WORDS[2])
        await other.answers(fork, 3)
        forked = await other.get(f"/api/chats/{fork}")
        assert (forked["kind"], forked["turns_left"], forked["attempt"]["number"]) == ("challenge", 2, 2)

        def left(connection: sa.Connection) -> tuple[int, int, set[str], int]:
            return (
                connection.execute(sa.select(sa.func.count()).select_from(memories)).scalar_one(),
                connection.execute(sa.select(sa.func.count()).select_from(memory_journal)).scalar_one(),
                set(connection.execute(sa.select(jobs.c.kind).where(jobs.c.key.contains(chat_id))).scalars()),
                connection.execute(sa.select(sa.func.count()).select_from(summary_blocks)).scalar_one(),
            )

        assert await opened[0].read(left) == (4, 0, set(), 0)
    ordinary = "".join(message.text for message in full.asked("reply")[0].messages)
    assert "cello" in ordinary and "likes bread (True)" in ordinary, "what is stored shows where it may"
    first = sent(empty)
    second = [(request.messages, request.tools) for request in full.asked("reply")[1:]]
    assert first == second[:3] and second[2] == second[3]
    assert all(request[1] == () for request in first)
    everything = "".join(message.text for messages, _ in second for message in messages)
    assert all(word not in everything for word in ("Sakura", "cello", me, "Now:", "Asia/Tokyo"))


@pytest.mark.rule("SM-88")
async def test_what_leaves_the_window_of_a_challenge_is_gone(tmp_path: Path) -> None:
    player = Player()
    async with house(tmp_path, player, turns=20, agent_max_context_turns=2) as gateway:
        chat_id = await begin(gateway)
        await play(gateway, chat_id, [f"Knock number {number}" for number in range(1, 6)])
    last = "".join(message.text for message in player.asked("reply")[-1].messages)
    assert "Knock number 1" not in last and "Knock number 5" in last and "summary" not in last.lower()
