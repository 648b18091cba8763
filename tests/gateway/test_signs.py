"""What a chat app shows while a turn runs: typing and a growing preview, never at the expense of the answer (CH-37, CH-92, CH-95 to CH-98)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, Address
from channels.port import Capabilities, Markup, OutboundPart, SendOutcome
from channels.units import graphemes, measure
from gateway.delivery.gate import Gates
from gateway.delivery.previews import NO_PREVIEW, Preview, Tried
from gateway.delivery.signs import FIRST_AFTER_S, FIRST_CHARACTERS, Signs
from gateway.stages import shorten
from memory.errors import StoreUnavailable
from tests.quick import clock, quick

CAN = replace(CAPABILITIES, edit_interval_s=1.2, group_edit_interval_s=3.0, typing_refresh_s=4.0, resend_key_s=None)
ADDRESS = Address(account=Account(channel="loopback"), chat_id="c1")
KEYED = replace(CAN, resend_key_s=120.0)
ON_SHOW = Preview(id="b1")
LONG = "This is the beginning of an answer that goes on."
TICK = 0.25  # what a preview may come late


def now() -> float:
    return asyncio.get_running_loop().time()


@dataclass
class Scene:
    platform: LoopbackPlatform
    gates: Gates
    signs: Signs
    noted: list[Preview] = field(default_factory=list[Preview])

    @property
    def texts(self) -> list[str]:
        return self.platform.texts()

    def say(self, text: str) -> None:
        self.signs.draft.say(text)

    def called(self, *names: str) -> list[float]:
        """When the platform was called, in seconds since the start."""
        began = clock() - timedelta(seconds=now())
        return [round((call.at - began).total_seconds(), 2) for call in self.platform.calls if not names or call.name in names]


@asynccontextmanager
async def scene(can: Capabilities = CAN, *, in_group: bool = False, **more: Any) -> AsyncGenerator[Scene]:
    platform = LoopbackPlatform(clock=clock)
    gates = Gates()
    noted: list[Preview] = []

    async def note(preview: Preview) -> None:
        noted.append(preview)

    options: dict[str, Any] = {
        "channel": LoopbackChannel(platform, capabilities=can), "note_preview": note, "part_id": "t1.preview", "reply_to": "m1",
    }  # fmt: skip
    signs = Signs(address=ADDRESS, in_group=in_group, gates=gates, clock=clock, shorten=shorten, **(options | more))
    async with asyncio.TaskGroup() as group:
        task = group.create_task(signs.run())
        await asyncio.sleep(0)
        yield Scene(platform, gates, signs, noted)
        task.cancel()


# The first preview and its edits


@pytest.mark.rule("CH-95")
@quick
async def test_the_first_preview_appears_with_forty_characters() -> None:
    async with scene() as seen:
        seen.say("x" * (FIRST_CHARACTERS - 1))
        await asyncio.sleep(1)
        assert seen.texts == []
        seen.say("x")
        await asyncio.sleep(TICK)
        assert seen.texts == ["x" * FIRST_CHARACTERS]
        assert seen.platform.shown[0].reply_to == "m1"


@pytest.mark.rule("CH-95")
@quick
async def test_a_single_character_is_shown_after_a_second_and_a_half() -> None:
    async with scene() as seen:
        await asyncio.sleep(10)
        seen.say("Y")
        await asyncio.sleep(FIRST_AFTER_S - 0.1)
        assert seen.texts == []
        await asyncio.sleep(0.1 + 2 * TICK)
        assert seen.texts == ["Y"]


@pytest.mark.rule("CH-95")
@pytest.mark.parametrize(("in_group", "interval"), [(False, 1.2), (True, 3.0)])
@quick
async def test_edits_keep_their_interval_and_the_latest_text_wins(in_group: bool, interval: float) -> None:
    async with scene(in_group=in_group) as seen:
        seen.say(LONG)
        for n in range(100):
            await asyncio.sleep(0.1)
            seen.say(f" {n}")
        times = seen.called("send", "edit")
        assert len(times) == pytest.approx(10 / (interval + 0.2), abs=1)
        assert all(after - before >= interval for before, after in pairwise(times))
        await asyncio.sleep(interval + TICK)
        assert seen.texts == [LONG + "".join(f" {n}" for n in range(100))]


@pytest.mark.rule("CH-95")
@quick
async def test_what_has_not_changed_is_not_sent_again_and_blanks_never() -> None:
    async with scene() as seen:
        for blank in (" ", "\n", "\u200b"):
            seen.say(blank)
        await asyncio.sleep(10)
        assert seen.called("send", "edit") == []
        seen.say(LONG)
        await asyncio.sleep(60)
        seen.say("  \n")
        await asyncio.sleep(60)
        assert len(seen.called("send", "edit")) == 1


@pytest.mark.rule("CH-144")
@quick
async def test_the_word_that_says_nothing_is_never_on_show() -> None:
    async with scene() as seen:
        for piece in ("[si", "lent", "]"):
            seen.say(piece)
            await asyncio.sleep(5)
        assert seen.texts == []
        seen.say(" is a word of mine")
        await asyncio.sleep(5)
        assert seen.texts == ["[silent] is a word of mine"]


@pytest.mark.rule("CH-98")
@quick
async def test_a_draft_that_starts_again_is_shown_anew_in_the_same_message() -> None:
    async with scene() as seen:
        seen.say(LONG)
        await asyncio.sleep(2)
        seen.signs.draft.reset()
        await asyncio.sleep(5)
        assert seen.texts == [LONG], "nothing is blanked"
        seen.say("Another try")
        await asyncio.sleep(2)
        assert seen.texts == ["Another try"]


WHOLE = ["a", "é", "你", "😀", "👍🏽", "👨\u200d👩\u200d👧", "🇩🇪", "1\ufe0f\u20e3", "من"]


@pytest.mark.rule("CH-98", "CH-96")
@given(characters=st.lists(st.sampled_from(WHOLE), max_size=40), limit=st.integers(12, 60))
def test_a_preview_shows_whole_characters_within_the_limit(characters: list[str], limit: int) -> None:
    can = replace(CAN, text_max=limit, markup=Markup.PLAIN)
    text = "".join(characters)
    for cut in range(len(text) + 1):
        shown = shorten(text[:cut], can)
        assert measure(shown, can.text_unit) <= limit
        assert text.startswith(shown)
        *before, last = graphemes(shown) or [""]
        assert before == graphemes(text)[: len(before)]
        assert not last.endswith("\u200d")
        assert not (len(last) == 1 and "\U0001f1e6" <= last <= "\U0001f1ff"), "half a flag"


@pytest.mark.rule("CH-98")
def test_open_marks_are_closed_for_display() -> None:
    assert shorten("Look: ```python\nprint(1)", replace(CAN, markup=Markup.PLAIN)).count("```") != 1
    assert shorten("some **bold", CAN) == "some **bold**"
    assert shorten("a\n```py\nx = 1", CAN).endswith("```")


# The gate


@pytest.mark.rule("CH-91", "CH-90")
@pytest.mark.case("DL-18")
@quick
async def test_while_the_gate_is_closed_there_is_not_a_single_call() -> None:
    async with scene() as seen:
        seen.gates.close(ADDRESS, clock(), 50)
        began = now()
        for n in range(49):
            seen.say(f"{LONG} {n}")
            await asyncio.sleep(1)
        assert [at for at in seen.called() if at > began] == []
        await asyncio.sleep(3)
        assert seen.texts[0].startswith(LONG)


@pytest.mark.rule("CH-91", "CH-92")
@pytest.mark.case("DL-18")
@quick
async def test_an_order_to_wait_given_to_a_preview_silences_everything_for_that_long() -> None:
    async with scene() as seen:
        seen.say(LONG)
        await asyncio.sleep(TICK)
        seen.platform.fail_next({"later": 50})
        seen.say(" More.")
        await asyncio.sleep(2)
        refused_at = seen.called("edit")[-1]
        for _ in range(60):
            seen.say(" More.")
            await asyncio.sleep(1)
        later = [at for at in seen.called() if at > refused_at]
        assert later[0] - refused_at >= 50.5
        assert not seen.platform.faults


@pytest.mark.rule("CH-91")
@quick
async def test_a_stopped_account_gets_no_signs() -> None:
    async with scene() as seen:
        before = len(seen.platform.calls)
        seen.gates.stop_account(ADDRESS.account, "a new token is needed")
        seen.say(LONG)
        await asyncio.sleep(20)
        assert len(seen.platform.calls) == before


# The id of the preview


@pytest.mark.rule("CH-97")
@quick
async def test_the_id_is_stored_before_the_next_edit() -> None:
    storing = asyncio.Event()

    async def note(preview: Preview) -> None:
        if preview.id:
            await storing.wait()

    async with scene(note_preview=note) as seen:
        seen.say(LONG)
        await asyncio.sleep(5)
        seen.say(" More.")
        await asyncio.sleep(20)
        assert seen.called("edit") == []
        storing.set()
        await asyncio.sleep(3)
        assert seen.texts == [f"{LONG} More."]


@pytest.mark.rule("CH-97", "CH-92")
@quick
async def test_a_store_that_fails_costs_edits_and_never_the_turn() -> None:
    tries: list[float] = []

    async def note(preview: Preview) -> None:
        tries.append(now())
        if len(tries) < 4:
            raise StoreUnavailable("the disk is full")

    async with scene(note_preview=note) as seen:
        seen.say(LONG)
        await asyncio.sleep(2)
        seen.say(" More.")
        assert seen.called("edit") == []
        await asyncio.sleep(10)
        assert seen.texts == [f"{LONG} More."]
        assert await seen.signs.settle() == ON_SHOW


@pytest.mark.rule("CH-97")
@quick
async def test_after_a_restart_the_preview_on_show_goes_on() -> None:
    async with scene(preview=ON_SHOW) as seen:
        part = OutboundPart(part_id="t1.preview", address=ADDRESS, text="This is the beg")
        seen.platform.show(part)
        seen.say(LONG)
        await asyncio.sleep(1)
        assert seen.texts == [LONG]
        assert seen.called("send") == []
        assert seen.noted == []


@pytest.mark.rule("CH-96")
@quick
async def test_when_the_words_are_final_the_preview_on_its_way_is_waited_for() -> None:
    async with scene() as seen:
        seen.say(LONG)
        await asyncio.sleep(TICK)
        assert await seen.signs.settle() == ON_SHOW
        assert seen.noted[1:] == [ON_SHOW]
        seen.say(" Too late.")
        await asyncio.sleep(20)
        assert seen.texts == [LONG]


@pytest.mark.rule("CH-96")
@quick
async def test_a_preview_that_is_just_being_sent_is_not_overtaken_by_the_final() -> None:
    class Slow(LoopbackChannel):
        async def send(self, part: OutboundPart) -> SendOutcome:
            await asyncio.sleep(5)
            return await super().send(part)

    platform = LoopbackPlatform(clock=clock)
    async with scene(channel=Slow(platform, capabilities=CAN)) as seen:
        seen.say(LONG)
        await asyncio.sleep(1)
        assert platform.texts() == []
        assert await seen.signs.settle() == ON_SHOW
        assert platform.texts() == [LONG]


@pytest.mark.rule("CH-97", "CH-36")
@quick
async def test_a_preview_that_somebody_deleted_is_not_made_again() -> None:
    async with scene() as seen:
        seen.say(LONG)
        await asyncio.sleep(TICK)
        seen.platform.shown.clear()
        seen.say(" More.")
        await asyncio.sleep(20)
        assert seen.texts == []
        assert await seen.signs.settle() == NO_PREVIEW, "the final is sent as a new message"


@pytest.mark.rule("CH-92", "CH-96")
@pytest.mark.parametrize("fault", [{"unknown": "after"}, {"unknown": "before"}, {"refuse": "no"}, {"operator": "x"}, {"raise": RuntimeError("bug")}])
@quick
async def test_a_first_preview_that_failed_is_not_tried_again(fault: dict[str, Any]) -> None:
    async with scene() as seen:
        seen.platform.fail_next(fault)
        seen.say(LONG)
        await asyncio.sleep(5)
        seen.say(LONG)
        await asyncio.sleep(20)
        assert len(seen.called("send")) == 1
        left = await seen.signs.settle()
        doubtful = "unknown" in fault or "raise" in fault
        assert (left.id, left.tried is not None) == ("", doubtful), "what may be on show is settled with the answer"
        assert seen.noted[-1] == left


@pytest.mark.rule("CH-97", "CH-80")
@quick
async def test_that_a_first_preview_leaves_is_noted_before_it_does() -> None:
    async with scene() as seen:
        seen.platform.fail_next({"later": 0})
        seen.say(LONG)
        await asyncio.sleep(TICK)
        (before, after) = seen.noted
        assert before.tried is not None
        assert (before.tried.part.text, before.tried.part.part_id) == (LONG, "t1.preview")
        assert after == NO_PREVIEW, "it provably did not leave"


@pytest.mark.rule("CH-97", "CH-92")
@pytest.mark.parametrize(("can", "ahead_s", "sends"), [(CAN, 0, 0), (KEYED, 0, 1), (KEYED, 120, 0)])
@quick
async def test_a_first_preview_of_another_run_is_sent_again_only_where_it_is_shown_once(can: Capabilities, ahead_s: float, sends: int) -> None:
    part = OutboundPart(part_id="t1.preview", address=ADDRESS, text=LONG, preview=True)
    tried = Preview(tried=Tried(part=part, at=clock() - timedelta(seconds=ahead_s)))
    async with scene(can, preview=tried) as seen:
        seen.platform.show(part)
        seen.say(f"{LONG} More.")
        await asyncio.sleep(5)
        assert len(seen.called("send")) == sends
        assert await seen.signs.settle() == (tried if sends == 0 else ON_SHOW)


@pytest.mark.rule("CH-35", "CH-96")
@quick
async def test_with_a_resend_key_a_lost_first_preview_is_found_again() -> None:
    async with scene(replace(CAN, resend_key_s=120.0)) as seen:
        seen.platform.fail_next({"unknown": "after"})
        seen.say(LONG)
        await asyncio.sleep(3)
        seen.say(" More.")
        await asyncio.sleep(3)
        assert seen.texts == [f"{LONG} More."]
        assert await seen.signs.settle() == ON_SHOW


@pytest.mark.rule("CH-92")
@pytest.mark.parametrize("fault", [{"unknown": "after"}, {"unknown": "before"}, {"refuse": "no"}, {"later": 0}, {"raise": RuntimeError("bug")}])
@quick
async def test_an_edit_that_failed_is_made_up_for_by_the_next(fault: dict[str, Any]) -> None:
    async with scene() as seen:
        seen.say(LONG)
        await asyncio.sleep(2)
        seen.platform.fail_next(fault)
        seen.say(" More.")
        await asyncio.sleep(3)
        seen.say(" And more.")
        await asyncio.sleep(3)
        assert seen.texts == [f"{LONG} More. And more."]


# Typing


@pytest.mark.rule("CH-37")
@pytest.mark.case("DL-09")
@quick
async def test_typing_is_shown_at_once_kept_alive_and_taken_away() -> None:
    async with scene(replace(CAN, edit_interval_s=None)) as seen:
        seen.say(LONG)
        await asyncio.sleep(41)
        assert seen.called("typing") == [0, 4, 8, 12, 16, 20, 24, 28, 32, 36, 40]
        assert seen.platform.typing == {"loopback:main:c1": True}
        assert seen.texts == []
    assert seen.platform.typing == {"loopback:main:c1": False}


@pytest.mark.rule("CH-37")
@quick
async def test_typing_is_not_renewed_once_there_is_a_preview() -> None:
    async with scene() as seen:
        await asyncio.sleep(9)
        seen.say(LONG)
        await asyncio.sleep(20)
        assert seen.called("typing") == [0, 4, 8]


@pytest.mark.rule("CH-37", "CH-92")
@quick
async def test_failing_typing_changes_nothing_else() -> None:
    async with scene() as seen:
        seen.platform.typing_fails = True
        seen.say(LONG)
        await asyncio.sleep(6)
        assert seen.texts == [LONG]


@pytest.mark.rule("CH-8")
@quick
async def test_what_a_platform_does_not_declare_is_not_called() -> None:
    async with scene(replace(CAN, edit_interval_s=None, group_edit_interval_s=None, typing_refresh_s=None)) as seen:
        seen.say(LONG)
        await asyncio.sleep(20)
    assert seen.platform.calls == []


@pytest.mark.rule("CH-81")
@quick
async def test_no_preview_overtakes_what_is_still_to_be_sent() -> None:
    async with scene(may_preview=False) as seen:
        seen.say(LONG)
        await asyncio.sleep(20)
        assert seen.texts == []
        assert seen.called("typing")
