"""A prompt that does not fit, whatever gives way: which part is named, what is never dropped, and what shrinks instead (RS-70, RS-171)."""

from __future__ import annotations

from typing import Any

import pytest

from agent.characters import Character
from agent.errors import AnswerTooLarge, AttachmentsTooLarge, InstructionsTooLarge, PinsTooLarge, TooLarge
from agent.giving_way import CUT
from agent.least import Least, Room, check
from agent.llm.port import Image
from agent.llm.scripted import ScriptedModel
from agent.prompt import assemble, least_of, reserve_of
from agent.runtime import Runtime
from agent.turn import Budget, Record, Said, Turn
from memory import tokens
from memory.extract import borders
from tests.agent.test_saved_prompt import aged, shown
from tests.agent.turns import FakeTool, Page, turn

WORDS = {"en": "The lanterns hang in the shed. ", "ja": "灯籠は物置に掛かっています。", "zh": "灯笼挂在小屋里。", "signs": "👨‍👩‍👧‍👦🇯🇵 "}
ROOM = 4_000
FILE = "[file list.txt a1]\n" + "heron, tern, plover\n" * 800 + "[end of list.txt a1]"
PICTURES = tuple(Image(mime="image/png", data="AAAA") for _ in range(4))


def runtime(model: ScriptedModel, *, most: int = 100_000) -> Runtime:
    return Runtime([model], budget=Budget(), max_prompt=most)


def long(words: str, size: int) -> str:
    return words * (size // tokens.count(words) + 1)


@pytest.mark.rule("RS-70")
@pytest.mark.case("AT-23")
@pytest.mark.parametrize(("asked", "error"), [
    (turn(character=Character(id="a", name="A", prompt=long(WORDS["en"], ROOM))), InstructionsTooLarge),
    (turn(character=Character(id="a", name="A", prompt=long(WORDS["ja"], ROOM))), InstructionsTooLarge),
    (turn(system_text=long(WORDS["zh"], ROOM)), InstructionsTooLarge),
    (turn(head_notes=("[file MEMORY.md]\n" + long(WORDS["en"], ROOM),)), InstructionsTooLarge),
    (turn(tail_notes=(long(WORDS["en"], ROOM),)), InstructionsTooLarge),
    (turn(saved=shown([aged(number, pinned=True) for number in range(1, 700)])), PinsTooLarge),
    (turn(newest=Said(text=f"what is this?\n{FILE}", by_us=False, attached=(FILE,))), AttachmentsTooLarge),
    (turn(newest=Said(text="what is this?", by_us=False, images=PICTURES)), AttachmentsTooLarge),
], ids=["character", "in Japanese", "system.md", "MEMORY.md", "notes", "pins", "file", "pictures"])  # fmt: skip
async def test_what_never_gives_way_is_named_with_its_size_and_no_model_is_asked(asked: Turn, error: type[TooLarge]) -> None:
    silent = ScriptedModel([], supports_tools=False)
    with pytest.raises(error) as raised:
        await runtime(silent, most=ROOM).run(asked, sink=Page(), record=Record(), steering=tuple)
    with pytest.raises(error):
        runtime(silent).weigh(asked, ceiling=ROOM)
    assert silent.requests == []
    assert (raised.value.room, raised.value.by_setting) == (ROOM, True)
    fitting = raised.value.needed  # so much is enough, and no less
    assert runtime(silent).weigh(asked, ceiling=fitting).ceiling == fitting
    with pytest.raises(TooLarge):
        runtime(silent).weigh(asked, ceiling=fitting - 1)


@pytest.mark.rule("RS-70", "RS-63")
@pytest.mark.case("AT-23")
async def test_a_small_model_is_named_instead_of_the_setting_and_tools_count() -> None:
    model = ScriptedModel([], context_window=2_000)
    tools = [FakeTool(f"tool_{number}") for number in range(60)]
    with pytest.raises(InstructionsTooLarge) as raised:
        runtime(model).weigh(turn(), ceiling=65_000, tools=tools)
    assert (raised.value.room, raised.value.by_setting) == (2_000 - 500 - 256, False)
    assert runtime(model).weigh(turn(), ceiling=65_000).tokens < 1_000


@pytest.mark.rule("RS-70", "RS-63")
@pytest.mark.case("AT-23")
@pytest.mark.parametrize(("window", "answer", "fits"), [
    (2_000, 4_000, False), (2_000, 1_600, False), (2_000, 500, True), (2_000, 0, True), (8_192, 8_000, False), (32_768, 16_384, True),
])  # fmt: skip
async def test_a_longest_answer_that_leaves_no_room_for_the_prompt_is_told(window: int, answer: int, fits: bool) -> None:
    model = ScriptedModel(["yes"], context_window=window, answer_tokens=answer)
    asking = runtime(model).run(turn("hi"), sink=Page(), record=Record(), steering=tuple)
    if fits:
        assert await asking == "yes"
        return
    with pytest.raises(AnswerTooLarge) as raised:
        await asking
    assert (raised.value.answer, raised.value.window, model.requests) == (answer, window, [])


def test_the_answer_keeps_what_it_may_take() -> None:
    assert [reserve_of(40_000, answer) for answer in (0, 500, 12_000)] == [8_192, 8_192, 12_000]


@pytest.mark.rule("RS-70")
def test_the_first_part_with_which_it_is_too_much_is_named_and_the_answer_where_that_would_help() -> None:
    least = Least(instructions=100, pins=100, attachments=100, words=10)

    def named(tokens: int, shorter: int = 0) -> str:
        try:
            check(least, Room(tokens=tokens, by_setting=True, with_short_answers=max(tokens, shorter), answer=9, window=99))
        except TooLarge as error:
            return f"{error.code} {error.needed}"
        return ""

    assert [named(room) for room in (310, 309, 210, 209, 110, 109)] == [
        "", "attachments_room 310", "attachments_room 310", "pins_room 210", "pins_room 210", "instructions_room 110",
    ]  # fmt: skip
    assert named(109, shorter=310) == "answer_room 310"


@pytest.mark.rule("RS-70", "WD-95")
@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_beside_a_file_only_what_the_person_wrote_is_shortened(words: str) -> None:
    text = f"BEGIN {words * 2_000} MIDDLE\n{FILE}\nand {words * 2_000} END"
    asked = turn(newest=Said(text=text, by_us=False, attached=(FILE,)))
    prompt = assemble(asked, room=12_000)
    newest = prompt.messages[-1].text
    assert FILE in newest, "whole"
    assert prompt.shortened and newest.count(CUT) == 2 and "BEGIN" in newest and newest.endswith("END")
    assert 10_000 < prompt.tokens <= 12_000
    assert assemble(asked, room=1_000_000).messages[-1].text.endswith(text)


@pytest.mark.rule("RS-70", "RS-171")
@pytest.mark.case("AT-23")
@pytest.mark.parametrize("words", WORDS.values(), ids=WORDS)
def test_standing_text_gives_way_behind_rows_in_a_marked_excerpt_and_the_newest_message_stays(words: str) -> None:
    head = "[summary of earlier talk]\n"
    rows = shown([aged(number) for number in range(1, 41)])
    standing = f"{head}{long(words, 3_000)}newest day"
    asked = turn("a question " * 40, "a question " * 200, "an answer " * 200, saved=rows, standing_notes=(standing,))

    def sent(room: int) -> Any:
        prompt = assemble(asked, room=room)
        assert prompt.messages[-1].text.endswith("a question " * 40) and not prompt.shortened
        assert prompt.tokens <= room
        return prompt

    whole = sent(20_000)
    assert (whole.left_out, whole.rows_left_out, whole.standing_cut) == (0, (), False)
    without_rows = sent(whole.tokens - 1_250)  # what the talk took, and a little
    assert without_rows.rows_left_out and not without_rows.standing_cut, "rows first"
    tight = sent(2_000)
    assert tight.standing_cut and len(tight.rows_left_out) == 40
    shown_text = tight.messages[0].text
    assert head.strip() in shown_text and CUT in shown_text and shown_text.endswith("newest day")
    kept_end = shown_text.partition(CUT)[2]
    assert len(standing) - len(kept_end) in borders(standing), "no sign is broken"
    assert tight.tokens > 1_700


def test_a_message_too_long_by_itself_leaves_a_marked_excerpt_of_the_standing_text() -> None:
    prompt = assemble(turn("word " * 40_000, standing_notes=(long(WORDS["en"], 1_000),)), room=2_000)
    assert prompt.shortened and prompt.standing_cut and prompt.tokens <= 2_000
    assert "lanterns" in prompt.messages[0].text


@pytest.mark.rule("RS-70")
def test_standing_text_and_what_is_recalled_are_no_part_of_what_never_gives_way() -> None:
    bare, full = turn("hi"), turn("hi", "q", "a", standing_notes=("stands " * 500,), recalled=("was said " * 500,), saved=shown([aged(1)]))
    assert least_of(bare) == least_of(full)
