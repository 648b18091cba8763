"""The first-start questions: who is asked, when, how often, and where the answers go (WD-30 to WD-35)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.errors import ModelBroken
from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Fail, Reply, Say, ScriptedModel
from gateway.language import say
from gateway.onboarding import NOTHING
from gateway.people import UNNAMED
from memory import tokens
from memory.database import Database
from memory.lines import line_hash
from memory.onboarding import State, progress
from memory.provenance import LineRow, Origin, put_lines
from memory.schema import people
from memory.scope_templates import template
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.gateway.memory_desk import Desk, desk, scope, use

ANNA = scope("people/p-aaaaaaaaab")
OWNER = "p-aaaaaaaaaa"
LANGUAGES = ("en", "ja", "zh")


@pytest.fixture
async def house(sqlite: Database, clock: FakeClock, tmp_path: Path) -> AsyncIterator[Desk]:
    async with desk(sqlite, clock, tmp_path) as house:
        await house.person()
        await house.person(ANNA.id, scope=str(ANNA))
        yield house


async def state(house: Desk, person_id: str = OWNER) -> State:
    return (await house.db.read(lambda connection: progress(connection, person_id))).state


def notes(request: ModelRequest) -> str:
    newest = next(message.text for message in request.messages if message.role is Role.USER)
    return newest.partition("[end of notes]")[0]


# -- A1


@pytest.mark.rule("WD-32", "WD-34", "WD-35", "WD-31")
async def test_the_task_is_done_first_the_answers_reach_their_files_and_nobody_asks_again(
    house: Desk, sqlite: Database, clock: FakeClock, tmp_path: Path
) -> None:
    asked: list[ModelRequest] = []

    def script(request: ModelRequest) -> Reply:
        asked.append(request)
        if len(asked) == 1:
            return "Bonjour.\n\nWhat may I be called, what shall I call you, and which style do you like?"
        if len(asked) == 2:
            return Call("profile_set", {"bot_name": "Yume", "address": "Ada", "style": "short", "timezone": "Europe/Lyon"})
        if len(asked) == 3:
            return Call("profile_set", {"bot_name": "Yume", "address": "Ada", "style": "short", "timezone": "Europe/Paris", "language": "en"})
        return "Good to meet you, Ada."

    model = ScriptedModel(script)
    first = await house.start("translate this: good day")
    text = await house.run(first, model)
    assert text.startswith("Bonjour.")
    assert "First do what the newest message asks" in notes(asked[0])
    second = await house.start("Yume; Ada; short. And I live in Paris", after=first, answer=text)
    assert await house.run(second, model) == "Good to meet you, Ada."
    assert "call profile_set" in notes(asked[1])
    assert any("did you mean Europe/" in message.text for message in asked[2].messages)
    system, user = house.text("system.md"), house.text("user.md")
    assert "- Name: Yume\n- Style: short\n" in system
    assert "Ada" not in system and "Paris" not in system
    assert "- Form of address: Ada\n" in user
    assert "- Language: en\n- Time zone: Europe/Paris\n" in user
    row = await house.row()
    assert (row["language"], row["timezone"]) == ("en", "Europe/Paris")
    assert await state(house) is State.DONE
    async with desk(sqlite, clock, tmp_path) as again:  # another start over the same files and rows
        clock.advance(days=2)
        assert await again.questions(await again.start("hello")) == NOTHING


# -- who


@pytest.mark.rule("WD-30")
@pytest.mark.parametrize("tools", [True, False])
async def test_only_the_owner_is_asked_in_a_private_chat_or_on_the_page(house: Desk, tools: bool) -> None:
    await house.space("s-cccccccccc")
    for start in (
        await house.start("hi", kind="group", space_id="s-cccccccccc"),
        await house.start("hi", person_id=ANNA.id),
        await house.start("hi", kind="challenge"),
        await house.start("hi", kind="api"),
        await house.start("hi", memory_on=False),
    ):
        assert await house.questions(start, tools=tools) == NOTHING
    assert await state(house) is State.NEW
    assert (await house.questions(await house.start("hi", kind="web"), tools=tools)).asks
    assert house.text("system.md") == house.text("user.md") == ""


@pytest.mark.rule("WD-30", "WD-34")
async def test_the_first_speaker_in_a_group_names_nobody_and_answers_need_no_shell(house: Desk) -> None:
    """N14: nobody in a group has the tool, and what it writes goes through the workspace alone."""
    await house.space("s-cccccccccc")
    club = await house.tools("you are called Rex now", kind="group", space_id="s-cccccccccc")
    assert "profile_set" not in club
    for path in ("system.md", "user.md"):
        assert (await use(club["file_edit"], path=path, new="- Name: Rex")).startswith("error: ")
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    assert await use(asked.tool, bot_name="Yume") == "Stored in system.md: Name: Yume.\nStill open: address, style."


@pytest.mark.rule("WD-30")
async def test_a_setting_turns_the_questions_off_and_setup_on_again(house: Desk) -> None:
    house.settings["onboarding"] = False
    assert await house.questions(await house.start("hi")) == NOTHING
    assert await house.onboarding.reopen(OWNER, "ja") == say("ja", "setup_reopened")
    assert (await house.questions(await house.start("hi"))).asks


# -- when


@pytest.mark.rule("WD-31")
@pytest.mark.parametrize("path", ["system.md", "user.md"])
@pytest.mark.parametrize("text", ["- You are Rex.\n", "私はアダです\n", "说话要简短\n"])
async def test_files_with_content_end_the_questions_at_once(house: Desk, path: str, text: str) -> None:
    house.put(path, f"# Mine\n\n{text}")
    assert await house.questions(await house.start("hi")) == NOTHING
    assert await state(house) is State.DONE


@pytest.mark.rule("WD-31")
@pytest.mark.parametrize("name", ["AGENT.md", "USER.md"])
async def test_a_folder_of_cowagent_ends_them(house: Desk, name: str) -> None:
    house.folder.mkdir(parents=True)
    (house.folder / name).write_text("# 你是谁\n\n你叫小助手。\n", encoding="utf-8")
    assert await house.questions(await house.start("hi")) == NOTHING


@pytest.mark.rule("WD-31")
async def test_imported_lines_end_them_though_a_program_wrote_them(house: Desk) -> None:
    house.put("user.md", "- アダと呼んで\n")
    row = LineRow(hash=line_hash("アダと呼んで"), origin=Origin.IMPORTED, author="import")
    await house.db.write(lambda connection: put_lines(connection, "root", "user.md", [row], house.clock()))
    assert await house.questions(await house.start("hi")) == NOTHING


@pytest.mark.rule("WD-31", "WD-23")
async def test_a_file_that_cannot_be_read_is_somebodys_and_ends_them_too(house: Desk) -> None:
    house.folder.mkdir(parents=True)
    (house.folder / "user.md").write_bytes(b"\xff\xfe Ada")
    assert await house.questions(await house.start("hi")) == NOTHING
    assert (house.folder / "user.md").read_bytes() == b"\xff\xfe Ada"


@pytest.mark.rule("WD-31")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_files_that_are_as_their_templates_do_not(house: Desk, language: str) -> None:
    for name in ("system.md", "user.md"):
        house.put(name, template(name, language))
    assert (await house.questions(await house.start("hi"))).asks


@pytest.mark.rule("WD-31")
async def test_a_hand_edit_between_question_and_answer_ends_them_and_our_own_line_does_not(house: Desk) -> None:
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    await use(asked.tool, bot_name="Yume")
    again = await house.questions(await house.start("more"))
    assert again.tool is not None and not again.asks
    house.put("user.md", "Ada\n")
    assert await house.questions(await house.start("more")) == NOTHING
    assert await state(house) is State.DONE


@pytest.mark.rule("WD-35")
async def test_two_first_messages_at_once_cause_one_set_of_questions(database: Database, clock: FakeClock, tmp_path: Path) -> None:
    async with desk(database, clock, tmp_path) as house:
        await house.person()
        starts = [await house.start(text) for text in ("hi", "hello", "good day")]
        turns = await asyncio.gather(*(house.questions(start) for start in starts))
        assert sum(turn.asks for turn in turns) == 1
        clock.advance(days=1)
        starts = [await house.start(text) for text in ("hi", "hello", "good day")]
        turns = await asyncio.gather(*(house.questions(start) for start in starts))
        assert sum(turn.asks for turn in turns) == 1


@pytest.mark.rule("WD-35")
async def test_the_open_rest_is_asked_once_more_on_another_day_and_then_never(house: Desk, clock: FakeClock) -> None:
    first = await house.questions(await house.start("hi"))
    assert first.asks and first.tool is not None
    await use(first.tool, bot_name="Yume")
    later = await house.questions(await house.start("more"))
    assert not later.asks and "still open: how to address the person, the style" in later.note
    clock.advance(days=1)
    second = await house.questions(await house.start("good morning"))
    assert second.asks and "a name for you" not in second.note and "how to address the person" in second.note
    assert not (await house.questions(await house.start("more"))).asks
    clock.advance(days=1)
    assert await house.questions(await house.start("good morning")) == NOTHING
    assert await state(house) is State.DONE


@pytest.mark.rule("WD-35")
async def test_another_day_is_one_of_the_persons_own_zone(house: Desk, clock: FakeClock) -> None:
    house.settings["timezone"] = "Asia/Tokyo"  # 18:26 there
    assert (await house.questions(await house.start("hi"))).asks
    clock.advance(hours=5)
    assert not (await house.questions(await house.start("hi"))).asks
    clock.advance(hours=1)
    assert (await house.questions(await house.start("hi"))).asks


@pytest.mark.rule("WD-35")
async def test_a_turn_that_fails_has_not_asked(house: Desk) -> None:
    broken = ScriptedModel(lambda _request: Fail(ModelBroken("no")), sleep=_no_wait)
    assert await house.run(await house.start("hi"), broken) == ""
    assert await state(house) is State.NEW
    again = await house.start("hi")
    assert (await house.questions(again)).asks
    assert (await house.questions(again)).asks  # the same turn, begun again after a kill


@pytest.mark.rule("WD-35")
@pytest.mark.parametrize("tools", [True, False])
@pytest.mark.parametrize(
    ("text", "language"), [("skip", "en"), ("No thanks!", "en"), ("スキップ", "ja"), ("あとで。", "ja"), ("跳过", "zh"), ("不用了", "zh")]
)
async def test_skip_ends_the_questions_and_setup_reopens_them(house: Desk, text: str, language: str, tools: bool) -> None:
    first = await house.start("hi")
    asked = await house.questions(first, language=language, tools=tools)
    skipped = await house.questions(await house.start(text, after=first, answer=asked.append), language=language, tools=tools)
    assert (skipped.tool, skipped.asks) == (None, False)
    assert skipped.append == ("" if tools else say(language, "onboarding_skipped"))
    assert bool(skipped.note) is tools
    assert await state(house) is State.DISMISSED
    assert await house.questions(await house.start("hi"), tools=tools) == NOTHING
    house.put("user.md", "Ada, by hand\n")
    await house.onboarding.reopen(OWNER, language)
    reopened = await house.questions(await house.start("hi"), tools=tools)
    assert reopened.asks
    assert not (await house.questions(await house.start("more"), tools=tools)).asks
    assert await state(house) is State.ASKED


@pytest.mark.rule("WD-35")
async def test_later_said_to_something_else_does_not_end_them_and_the_model_may(house: Desk) -> None:
    first = await house.start("hi")
    asked = await house.questions(first)
    second = await house.start("more", after=first, answer="May I? And what is your name?")
    await house.questions(second)
    third = await house.start("later", after=second, answer="Shall I do it now?")
    assert (await house.questions(third)).tool is not None
    assert asked.tool is not None
    assert "/setup" in await use(asked.tool, skip=True)
    assert await state(house) is State.DISMISSED


# -- the name of the account


@pytest.mark.rule("WD-33", "WD-34")
@pytest.mark.parametrize(
    ("language", "hello", "known"),
    [
        ("en", "hi", "How may I address you? I know you as Ada."),
        ("ja", "こんにちは", "あなたを何とお呼びしましょう？いまは「Ada」さんと存じています。"),
        ("zh", "你好", "我该怎么称呼你？我现在知道你叫Ada。"),
    ],
)
async def test_a_name_that_the_account_has_is_known_and_a_yes_takes_it(house: Desk, language: str, hello: str, known: str) -> None:
    await house.db.write(lambda connection: connection.execute(sa.update(people).values(name="Ada")))
    first = await house.start(hello)
    asked = await house.questions(first, language=language, tools=False)
    assert known in asked.append
    answered = await house.questions(await house.start("ok", after=first, answer=asked.append), language=language, tools=False)
    assert "Ada" in answered.append
    assert "Ada" in house.text("user.md")


@pytest.mark.rule("WD-33")
async def test_the_model_is_told_the_name_of_the_account_and_none_of_who_has_none(house: Desk) -> None:
    await house.db.write(lambda connection: connection.execute(sa.update(people).values(name=UNNAMED)))
    assert "the account says" not in (await house.questions(await house.start("hi"))).note
    await house.db.write(lambda connection: connection.execute(sa.update(people).values(name="Ada")))
    assert "(the account says Ada: propose that)" in (await house.questions(await house.start("more"))).note


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize("name", ["Ada", "アダさん", "阿达"])
async def test_the_form_of_address_names_the_account(house: Desk, name: str) -> None:
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    await use(asked.tool, address=name)
    assert (await house.row())["name"] == name


# -- the model that calls tools


@pytest.mark.rule("WD-32", "WD-33")
@pytest.mark.parametrize(("language", "name"), [("en", "English"), ("ja", "Japanese"), ("zh", "Chinese")])
async def test_the_note_asks_for_short_questions_and_proposes_language_and_zone(house: Desk, language: str, name: str) -> None:
    house.settings["timezone"] = "Asia/Tokyo"
    texts = {"en": "hi there", "ja": "こんにちは", "zh": "你好"}
    asked = await house.questions(await house.start(texts[language]), language=language)
    assert f"ask in {name}" in asked.note
    assert "at most 100 words" in asked.note
    assert f"language {name}; time zone Asia/Tokyo" in asked.note
    assert "in one line what you can do" in asked.note
    assert tokens.count(asked.note) < 250


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    ("language", "name", "address"),
    [("en", "- Name: Yume", "- Form of address: Ada"), ("ja", "- 名前：ゆめ", "- 呼び方：アダさん"), ("zh", "- 名字：小梦", "- 称呼：阿达")],
)
async def test_answers_stand_as_readable_lines_in_the_owners_language(house: Desk, language: str, name: str, address: str) -> None:
    for file in ("system.md", "user.md"):
        house.put(file, template(file, language))
    asked = await house.questions(await house.start("hi"), language=language)
    assert asked.tool is not None
    bot, person = (line.partition("：")[2] or line.partition(": ")[2] for line in (name, address))
    await use(asked.tool, bot_name=bot, address=person, facts=["plays the cello", "チェロを弾く"])
    assert f"\n{name}\n" in house.text("system.md")
    assert f"\n{address}\n" in house.text("user.md")
    assert house.text("user.md").endswith("\n- plays the cello\n- チェロを弾く\n")
    assert "チェロ" not in house.text("system.md")
    row = (await house.lines("system.md"))[line_hash(name)]
    assert (row.origin, row.author) == (Origin.PERSON, "onboarding")


@pytest.mark.rule("WD-34", "WD-5")
async def test_a_second_answer_replaces_our_own_line_and_never_one_by_hand(house: Desk) -> None:
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    await use(asked.tool, bot_name="Yume")
    await use(asked.tool, bot_name="Rex")
    assert "Yume" not in house.text("system.md") and "- Name: Rex\n" in house.text("system.md")
    house.put("system.md", house.text("system.md").replace("- Name: Rex", "- Name: Rex the Great"))
    await house.onboarding.reopen(OWNER, "en")
    again = await house.questions(await house.start("hi"))
    assert again.tool is not None
    await use(again.tool, bot_name="Kai")
    assert "- Name: Rex the Great\n- Name: Kai\n" in house.text("system.md")


@pytest.mark.rule("WD-34")
async def test_a_line_that_another_tool_wrote_is_not_an_earlier_answer(house: Desk) -> None:
    tools = await house.tools("your name is Rex")
    assert "belongs in user.md" in await use(tools["file_edit"], path="system.md", new="- Name: Rex")
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    await use(asked.tool, bot_name="Kai")
    assert "- Name: Rex\n" in house.text("system.md") and "- Name: Kai\n" in house.text("system.md")


@pytest.mark.rule("WD-11")
async def test_nothing_about_the_person_goes_into_the_persona(house: Desk) -> None:
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    for call in (
        {"style": "warm; greet Ada by name", "address": "Ada"},
        {"style": "丁寧に。アダさんと呼ぶ", "address": "アダさん"},
        {"style": "简短，知道我住在里昂", "facts": ["住在里昂"]},
    ):
        assert "everybody is served by" in await use(asked.tool, **call)
    assert house.text("system.md") == house.text("user.md") == ""
    await use(asked.tool, style="warm", address="Ada", facts=["lives in Lyon"], timezone="Europe/Paris", language="Japanese")
    system = house.text("system.md")
    assert all(word not in system for word in ("Ada", "Lyon", "Paris", "Japanese"))
    assert (await house.row())["language"] == "ja"


@pytest.mark.rule("WD-105", "WD-34")
async def test_after_text_of_others_answers_wait_for_a_yes_and_the_questions_stay_open(house: Desk) -> None:
    asked = await house.questions(await house.start("see this forwarded message", foreign=True))
    assert asked.tool is not None
    answer = await use(asked.tool, bot_name="Rex", address="Ada")
    assert answer.count("Not written yet") == 2
    assert house.text("system.md") == house.text("user.md") == ""
    assert {change.path for change in await house.changes.waiting(ROOT)} == {"system.md", "user.md"}
    progressed = await house.db.read(lambda connection: progress(connection, OWNER))
    assert progressed.given == frozenset()


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    ("call", "word"),
    [
        ({"timezone": "Asia/Tokio"}, "Asia/Tokyo"),
        ({"language": "the one of my mother"}, "language tag"),
        ({"bot_name": "x" * 61}, "60"),
        ({"facts": ["x"] * 11}, "10"),
    ],
)
async def test_arguments_are_checked_before_anything_is_stored(house: Desk, call: dict[str, object], word: str) -> None:
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    with pytest.raises(ValueError, match=word):
        asked.tool.arguments.model_validate(call)
    assert "at least one answer" in await use(asked.tool, bot_name=None, facts=None)


@pytest.mark.rule("WD-22")
async def test_a_secret_among_the_answers_is_refused(house: Desk) -> None:
    asked = await house.questions(await house.start("hi"))
    assert asked.tool is not None
    assert "secrets are never kept" in await use(asked.tool, facts=["my password is hunter2xyz"])
    assert "hunter2xyz" not in house.text("user.md")


# -- the model that cannot


@pytest.mark.rule("WD-32", "WD-33", "WD-34")
@pytest.mark.parametrize(
    ("task", "greeting", "answer", "lines"),
    [
        ("translate: good day", "hello", "Yume / Ada / short and warm", ("- Name: Yume", "- Style: short and warm", "- Form of address: Ada")),
        ("これを訳して", "こんにちは", "ゆめ／アダさん／簡潔に", ("- 名前：ゆめ", "- 話し方：簡潔に", "- 呼び方：アダさん")),
        ("翻译这句话", "你好", "小梦 / 阿达 / 简短", ("- 名字：小梦", "- 风格：简短", "- 称呼：阿达")),
    ],
)
async def test_without_tools_the_program_asks_below_the_answer_and_stores_what_comes(
    house: Desk, task: str, greeting: str, answer: str, lines: tuple[str, ...]
) -> None:
    language = LANGUAGES[["- Name: Yume", "- 名前：ゆめ", "- 名字：小梦"].index(lines[0])]
    model = ScriptedModel(lambda _request: Say("Fine."), supports_tools=False)
    first = await house.start(task)
    text = await house.run(first, model, language=language)
    assert text.startswith("Fine.\n\n")
    assert len(text.split()) <= 100 and len(text) <= 420
    assert say(language, "onboarding_ask_bot_name") in text and say(language, "onboarding_hello") not in text
    second = await house.start(answer, after=first, answer=text)
    assert lines[0].removeprefix("- ") in await house.run(second, model, language=language)
    files = house.text("system.md") + house.text("user.md")
    assert all(f"{line}\n" in files for line in lines)
    assert await state(house) is State.DONE
    assert model.requests[-1].tools == ()
    await house.onboarding.reopen(OWNER, language)
    greeted = await house.run(await house.start(greeting), model, language=language)
    assert say(language, "onboarding_hello") in greeted


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    ("task", "answer", "line"),
    [
        ("good day", "Luna / 山田さん / short and warm", "- Name: Luna"), ("これを訳して", "Luna / Ken / friendly", "- 名前：Luna"),
        ("翻译这句话", "Luna / やまだ / short", "- 名字：Luna"), ("good day", "ゆめ／アダさん／簡潔に", "- 名前：ゆめ"),
    ],
)  # fmt: skip
async def test_a_name_in_another_script_changes_no_language(house: Desk, task: str, answer: str, line: str) -> None:
    model = ScriptedModel(lambda _request: Say("Fine."), supports_tools=False)
    first = await house.start(task)
    text = await house.run(first, model, language="")
    said = await house.run(await house.start(answer, after=first, answer=text), model, language="")
    assert line.removeprefix("- ") in said
    assert f"{line}\n" in house.text("system.md")


@pytest.mark.rule("WD-35", "WD-33")
async def test_without_tools_partial_answers_are_stored_and_talk_is_not_taken_for_one(house: Desk, clock: FakeClock) -> None:
    first = await house.start("hi")
    asked = await house.questions(first, tools=False)
    talk = await house.start("what is the weather like?", after=first, answer=asked.append)
    quiet = await house.questions(talk, tools=False)
    assert (quiet.append, quiet.note, quiet.asks) == ("", "", False)
    second = await house.start("- / Ada", after=first, answer=asked.append)
    stored = await house.questions(second, tools=False)
    assert stored.append == say("en", "onboarding_stored", what="Form of address: Ada")
    clock.advance(days=1)
    third = await house.start("morning")
    again = await house.questions(third, tools=False)
    assert say("en", "onboarding_ask_address") not in again.append
    assert say("en", "onboarding_ask_style") in again.append
    yes = await house.start("Yes!", after=third, answer=again.append)
    await house.questions(yes, tools=False)
    assert (await house.row())["timezone"] == "UTC"
    assert "- Time zone: UTC\n" in house.text("user.md")


@pytest.mark.rule("WD-34", "WD-35")
@pytest.mark.parametrize(
    ("language", "said"),
    [("en", "I have a cat called Ash."), ("ja", "灰音という猫を飼っています。"), ("zh", "我养了一只猫，叫小雾。")],
)
async def test_without_tools_a_plain_sentence_instead_of_an_answer_is_kept_and_said_back(house: Desk, language: str, said: str) -> None:
    first = await house.start("hi")
    asked = await house.questions(first, language=language, tools=False)
    stored = await house.questions(await house.start(said, after=first, answer=asked.append), language=language, tools=False)
    assert said.rstrip(".。") in stored.append and "/setup" in stored.append
    assert f"- {said}\n" in house.text("user.md")
    assert await state(house) is State.ASKED


async def _no_wait(_seconds: float) -> None:
    return None
