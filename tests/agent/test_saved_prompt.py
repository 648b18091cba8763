"""Saved memories in the prompt: where they stand, which give way, and what their tools cost (SM-25, SM-28, WD-6)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent.errors import PinsTooLarge
from agent.least import Room, check
from agent.llm import estimate
from agent.llm.port import ToolSpec
from agent.llm.scripted import ScriptedModel
from agent.prompt import assemble, least_of, words
from agent.runtime import Runtime
from agent.tools.file_write import FileEdit, FileWrite
from agent.tools.memory_delete import MemoryDelete
from agent.tools.memory_get import MemoryGet
from agent.tools.memory_save import MemorySave
from agent.tools.memory_search import MemorySearch
from agent.tools.memory_update import MemoryUpdate
from agent.tools.port import Tool, spec_of
from agent.tools.profile_set import ProfileSet
from agent.tools.tasks import TaskCancel, TaskCreate, TaskList
from agent.turn import Budget, Record
from memory import tokens
from memory.saved.rows import Memory
from memory.saved.shown import Shown
from tests.agent.turns import NOON, Page, turn
from tests.memory.saved.places import row

ROOM = 50_000
LATER = NOON + timedelta(days=30)


def shown(head: Sequence[Memory] = (), tail: Sequence[Memory] = ()) -> Shown:
    return Shown(head=tuple(head), tail=tuple(tail), now=LATER)


def aged(number: int, text: str = "", *, pinned: bool = False) -> Memory:
    """The higher the number, the newer."""
    return row(number, text or f"fact number {number} about tea", updated_at=NOON + timedelta(hours=number), pinned=pinned)


@pytest.mark.rule("WD-6", "SM-25")
def test_rows_stand_between_files_and_summaries_and_recalled_ones_between_documents_and_time() -> None:
    asked = turn(
        "good evening",
        head_notes=("[file MEMORY.md]",),
        saved=shown([aged(1, "likes tea")], [aged(2, "plays the cello")]),
        standing_notes=("Earlier: a summary.",),
        recalled=("[recalled from knowledge/x.md]",),
        tail_notes=("This answer comes late.",),
    )
    prompt = assemble(asked, room=ROOM)
    head, newest = prompt.messages[0].text, prompt.messages[-1].text
    in_head = (head, ("[file MEMORY.md]", "likes tea", "Earlier: a summary."))
    in_newest = (newest, ("x.md]", "cello", "comes late", "Now:", "good evening"))
    for text, parts in (in_head, in_newest):
        places = [text.index(part) for part in parts]
        assert places == sorted(places)
    assert "cello" not in head and "tea" not in newest
    by_name = {section.name: section.tokens for section in prompt.sections}
    assert by_name["saved"] == sum(map(tokens.count, asked.saved.texts()))


@pytest.mark.rule("SM-27")
def test_the_same_rows_give_the_same_head_and_no_rows_give_no_block() -> None:
    rows = [aged(number) for number in range(1, 6)]
    one, other = (assemble(turn("hi", saved=shown(order)), room=ROOM).messages[0].text for order in (rows, rows[::-1]))
    assert one == other
    assert assemble(turn("hi", saved=shown()), room=ROOM).messages == assemble(turn("hi"), room=ROOM).messages


@pytest.mark.rule("SM-28", "RS-70")
def test_the_window_gives_way_first_then_the_oldest_rows_and_the_newest_message_never() -> None:
    rows = [aged(number) for number in range(1, 41)]
    asked = turn("a question " * 30, *["words of the talk " * 20] * 10, saved=shown(rows[:30], rows[30:]))
    whole = assemble(asked, room=ROOM)
    assert (whole.left_out, whole.rows_left_out) == (0, ())
    tight = assemble(asked, room=500)
    assert tight.left_out == 10, "the whole talk before"
    gone = tight.rows_left_out
    assert gone == tuple(range(1, len(gone) + 1)) and 0 < len(gone) < 40
    assert not tight.shortened and tight.tokens <= 500
    text = "".join(message.text for message in tight.messages)
    assert [f"- {number}: " in text for number in (gone[-1], gone[-1] + 1)] == [False, True]


@pytest.mark.rule("SM-28", "SM-20")
@given(pins=st.integers(0, 12), plain=st.integers(0, 30), room=st.integers(500, 2_000))
def test_pins_stay_whole_or_the_turn_says_how_much_they_need(pins: int, plain: int, room: int) -> None:
    rows = [aged(number, pinned=number <= pins) for number in range(1, pins + plain + 1)]
    asked = turn("hi", saved=shown(rows))
    try:
        check(least_of(asked), Room(tokens=room, by_setting=True, with_short_answers=room, answer=0, window=room))
    except PinsTooLarge as error:
        assert pins and error.needed > room == error.room
        assert assemble(asked, room=error.needed).rows_left_out == tuple(range(pins + 1, pins + plain + 1))
        return
    prompt = assemble(asked, room=room)
    assert prompt.tokens <= room
    head = prompt.messages[0].text
    assert all(f"- {number}: " in head for number in range(1, pins + 1))
    assert not set(prompt.rows_left_out) & set(range(1, pins + 1))


@pytest.mark.rule("SM-28")
async def test_a_turn_whose_pins_do_not_fit_asks_no_model_and_a_small_model_notes_what_gave_way() -> None:
    rows = [aged(number) for number in range(1, 200)]
    model = ScriptedModel(["yes"], context_window=2_000)
    record = Record()
    await Runtime([model], budget=Budget(), max_prompt=ROOM).run(turn("hi", saved=shown(rows)), sink=Page(), record=record, steering=tuple)
    assert 0 < len(record.rows_left_out) < 199
    pinned = [aged(number, pinned=True) for number in range(1, 200)]
    silent = ScriptedModel([], context_window=2_000)
    with pytest.raises(PinsTooLarge):
        await Runtime([silent], budget=Budget(), max_prompt=ROOM).run(turn("hi", saved=shown(pinned)), sink=Page(), record=Record(), steering=tuple)
    assert silent.requests == []


ALL_TOOLS = (
    MemorySave, MemoryUpdate, MemoryDelete, MemorySearch, MemoryGet, FileWrite, FileEdit, TaskCreate, TaskList, TaskCancel, ProfileSet,
)  # fmt: skip


def spec(tool: type[object]) -> ToolSpec:
    return spec_of(cast("Tool", tool))


@pytest.mark.rule("MD-20")
def test_the_fixed_prompt_and_all_tools_stay_below_three_thousand_tokens() -> None:
    fixed = assemble(turn("x", head_notes=(words("memory"),)), room=ROOM).tokens
    assert fixed + estimate.tool_tokens(map(spec, ALL_TOOLS), tokens.count) < 3_000


@pytest.mark.rule("SM-7")
def test_the_description_says_what_belongs_elsewhere() -> None:
    said = spec(MemorySave).description
    for part in ("weeks", "story", "moods", "summaries", "standing orders", "character", "memory_update"):
        assert part in said
