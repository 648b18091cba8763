"""What a plain answer to the first-start questions is taken for, and what is left as talk."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.onboarding import ASKED_FIELDS, Answers, Step, language_tag, next_step, note, open_fields, zone_name
from agent.plain_answers import VALUE_MAX, is_greeting, is_skip, is_yes, parse
from memory.onboarding import Progress, State

TODAY = date(2026, 3, 14)


def read(text: str, fields: tuple[str, ...] = ASKED_FIELDS) -> Answers | None:
    return parse(text, fields, language="ja", zone="Asia/Tokyo")


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("Yume / Ada / short and warm", Answers(bot_name="Yume", address="Ada", style="short and warm")),
        ("Yume/Ada/short", Answers(bot_name="Yume", address="Ada", style="short")),
        ("ゆめ／アダさん／丁寧に", Answers(bot_name="ゆめ", address="アダさん", style="丁寧に")),
        ("小梦 / 阿达 / 简短", Answers(bot_name="小梦", address="阿达", style="简短")),
        ("Yume\nAda\nshort", Answers(bot_name="Yume", address="Ada", style="short")),
        ("- / Ada / -", Answers(address="Ada")),
        ("Yume / skip / short", Answers(bot_name="Yume", style="short")),
        ("Yume / Ada / short / yes", Answers(bot_name="Yume", address="Ada", style="short", language="ja", timezone="Asia/Tokyo")),
        ("1. Yume\n2. Ada\n3. short", Answers(bot_name="Yume", address="Ada", style="short")),
        ("1、小梦\n3、简短", Answers(bot_name="小梦", style="简短")),
        ("Name: Yume\nMy name: Ada\nStyle: short: two lines", Answers(bot_name="Yume", address="Ada", style="short: two lines")),
        (
            "名前：ゆめ\n呼び方：アダさん\nタイムゾーン：Asia/Tokyo\n言語：日本語",
            Answers(bot_name="ゆめ", address="アダさん", language="ja", timezone="Asia/Tokyo"),
        ),
        ("名字：“小梦”\n称呼：阿达\n语言：中文", Answers(bot_name="小梦", address="阿达", language="zh")),
        ("Call me Ada.", Answers(address="Ada")),
        ("Call me Dr. Smith", Answers(address="Dr. Smith")),
        ("アダと呼んでください", Answers(address="アダ")),
        ("叫我阿达", Answers(address="阿达")),
        ("I'll call you Yume!", Answers(bot_name="Yume")),
        ("Time zone: Mars/Base", None),
        ("Yes!", Answers(language="ja", timezone="Asia/Tokyo")),
        ("はい。", Answers(language="ja", timezone="Asia/Tokyo")),
        ("好的", Answers(language="ja", timezone="Asia/Tokyo")),
    ],
)
def test_answers_are_read_in_many_forms(text: str, answers: Answers | None) -> None:
    assert read(text) == answers


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    "text",
    [
        "translate this: good day", "what is the weather like?", "3/8/2026", "see https://example.org/a/b", "これを訳して", "翻译这句话",
        "tea and/or coffee", "Yume", "/why", "", "   ", "fix this:\nfoo = bar\nbaz = 1", "9. go", "Is it a / b / c?",
        "Roses are red,\nviolets are blue,\nand this is a poem\nof four lines",
    ],
)  # fmt: skip
def test_talk_is_not_taken_for_an_answer(text: str) -> None:
    assert read(text) is None


LONG = "Answer at length, with examples from the garden and the kitchen, and never with a list"


@pytest.mark.rule("WD-34", "WD-35")
@pytest.mark.parametrize(
    ("text", "answers"),
    [
        ("I am allergic to shellfish and have a cat.", Answers(facts=("I am allergic to shellfish and have a cat.",))),
        ("My wife is a doctor! What do cats eat?", Answers(facts=("My wife is a doctor!",))),
        ("I have a cat\nI live in Kyoto", Answers(facts=("I have a cat", "I live in Kyoto"))),
        ("I get up at 7:00", Answers(facts=("I get up at 7:00",))),
        ("猫を飼っています。おすすめの本はありますか。", Answers(facts=("猫を飼っています。",))),
        ("静かな場所が好きです", Answers(facts=("静かな場所が好きです",))),
        ("我对虾过敏，养了一只猫。你喜欢猫吗？", Answers(facts=("我对虾过敏，养了一只猫。",))),
        ("Call me Mira. I like tea.", Answers(address="Mira", facts=("I like tea.",))),
        ("叫我晓晓。我养了一只猫。", Answers(address="晓晓", facts=("我养了一只猫。",))),
        ("Style: warm\nI have a dog", Answers(style="warm", facts=("I have a dog",))),
        (f"1. Yume\n3. {LONG}", Answers(bot_name="Yume", facts=(LONG,))),
    ],
)
def test_a_sentence_about_oneself_and_too_long_an_answer_are_facts_word_for_word(text: str, answers: Answers) -> None:
    assert read(text) == answers


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    "text",
    [
        "Tell me a joke", "I want a recipe for pancakes", "I'd like a poem", "translate this:\nI am a cat.", "translate this: I am a cat",
        "おすすめの本を教えてください", "私は何を食べましょうか", "帮我写一封信，我妈妈生病了", "我想要一首诗", "今天天气很好", "I went out. " * 40,
    ],
)  # fmt: skip
def test_what_is_asked_of_the_model_is_no_fact(text: str) -> None:
    assert read(text) is None


@given(st.text(max_size=200))
def test_no_text_breaks_the_reader_and_no_value_is_too_long(text: str) -> None:
    found = read(text)
    assert found is None or all(0 < len(value) <= VALUE_MAX for value in found.values.values())


@pytest.mark.rule("WD-35")
@pytest.mark.parametrize("text", ["skip", "Skip!", "ＳＫＩＰ", "skip it.", "スキップ", "スキップして。", "跳过", "跳過", "先跳过～"])
def test_skip_is_understood_whenever_it_is_said(text: str) -> None:
    assert is_skip(text, just_asked=False)


@pytest.mark.rule("WD-35")
@pytest.mark.parametrize("text", ["No, thanks", "later", "I'd rather not", "I’d rather not.", "あとで", "結構です", "不用了！", "以后再说"])
def test_a_softer_no_counts_right_after_the_questions_alone(text: str) -> None:
    assert is_skip(text, just_asked=True)
    assert not is_skip(text, just_asked=False)


@pytest.mark.rule("WD-35")
@pytest.mark.parametrize("text", ["skip the second verse in the song", "スキップの意味は", "跳过第二章", "no problem with that", ""])
def test_other_words_are_no_skip(text: str) -> None:
    assert not is_skip(text, just_asked=True)


@pytest.mark.rule("WD-32")
@pytest.mark.parametrize(
    ("text", "greets"),
    [("Hello!", True), ("こんにちは〜", True), ("你好👋", True), ("おはよう", True), ("hello, translate this", False), ("你好吗是什么意思", False)],
)
def test_a_greeting_is_told_from_a_task(text: str, greets: bool) -> None:
    assert is_greeting(text) is greets
    assert is_yes("OK.") and not is_yes(text)


# -- what to do


@pytest.mark.rule("WD-31", "WD-35")
@pytest.mark.parametrize(
    ("progress", "by_hand", "step"),
    [
        (Progress(), False, Step.ASK),
        (Progress(), True, Step.FINISH),
        (Progress(reopened=True), True, Step.ASK),
        (Progress(state=State.DONE), False, Step.CLOSED),
        (Progress(state=State.DISMISSED), False, Step.CLOSED),
        (Progress(state=State.ASKED, asked=1, asked_on=TODAY, turn="t-1"), False, Step.ASK),
        (Progress(state=State.ASKED, asked=1, asked_on=TODAY, turn="t-2"), False, Step.LISTEN),
        (Progress(state=State.ASKED, asked=1, asked_on=TODAY, turn="t-2"), True, Step.FINISH),
        (Progress(state=State.ASKED, asked=1, asked_on=TODAY - timedelta(1), turn="t-2"), False, Step.ASK),
        (Progress(state=State.ASKED, asked=1, asked_on=None), False, Step.ASK),
        (Progress(state=State.ASKED, asked=2, asked_on=TODAY, turn="t-2"), False, Step.LISTEN),
        (Progress(state=State.ASKED, asked=2, asked_on=TODAY - timedelta(1), turn="t-2"), False, Step.FINISH),
        (Progress(state=State.ASKED, asked=1, asked_on=TODAY - timedelta(1), given=frozenset(ASKED_FIELDS)), False, Step.FINISH),
    ],
)
def test_the_next_step_follows_from_what_was_asked_and_given(progress: Progress, by_hand: bool, step: Step) -> None:
    assert next_step(progress, today=TODAY, turn_id="t-1", by_hand=by_hand) is step


@pytest.mark.rule("WD-33", "WD-35")
def test_only_what_is_open_is_asked_in_the_order_of_the_questions() -> None:
    progress = Progress(given=frozenset({"address", "timezone"}))
    assert open_fields(progress) == ("bot_name", "style")
    asked = note(Step.ASK, open_fields(progress), language="de", zone="")
    assert "a name for you, the style" in asked and "how to address" not in asked
    assert "ask in de" in asked and "which you do not know yet" in asked
    assert note(Step.FINISH, (), language="en", zone="") == ""


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    ("text", "tag"),
    [("ja", "ja"), ("Japanese", "ja"), ("日本語", "ja"), ("中文", "zh"), ("zh-Hant-TW", "zh-Hant-TW"), ("pt-BR", "pt-BR"), ("my own", ""), ("", "")],
)
def test_a_language_is_a_tag_or_a_name_we_know(text: str, tag: str) -> None:
    assert language_tag(text) == tag


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize(
    ("text", "zone"), [("Asia/Tokyo", "Asia/Tokyo"), (" UTC ", "UTC"), ("Asia/Tokio", ""), ("../etc/passwd", ""), ("/etc/localtime", ""), ("", "")]
)
def test_a_zone_is_one_of_the_iana_names(text: str, zone: str) -> None:
    assert zone_name(text) == zone
