"""One turn of thought against scripted models: retries, fallback, tools, steering, overflow, budgets (RL-20 to RL-23)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from agent.errors import (
    BudgetExceeded,
    ContextOverflow,
    ModelBroken,
    ModelBusy,
    ModelError,
    ModelMisconfigured,
    NoRoom,
)
from agent.llm.port import ChatModel, Finish, ModelMessage, ModelRequest, Role, Usage
from agent.llm.scripted import Call, End, Fail, Reply, Say, ScriptedModel, Think, Until
from agent.runtime import BROKEN_TRIES, BUSY_TRIES, WAIT_TOTAL_S, Runtime
from agent.tools.port import Tool
from agent.tools.toolbox import CALLS_MAX, LEGAL_NAME
from agent.turn import Budget, Record, Said, Turn
from tests.agent.turns import FakeTool, Needs, Page, Sleeper, failing, turn
from tests.quick import quick

CUT = Fail(ModelBusy("the connection was cut"))
SEARCH = Call("search", {"q": "x"})


class Run:
    """A runtime over models, with everything that can be seen of it."""

    def __init__(self, *models: ChatModel, budget: Budget | None = None, **more: Any) -> None:
        self.page, self.record, self.sleep = Page(), Record(), Sleeper()
        self.steering: list[tuple[Said, ...]] = []
        self._runtime = Runtime(models, budget=budget or Budget(), max_prompt=50_000, sleep=self.sleep, **more)

    async def __call__(self, asked: Turn | None = None, tools: Sequence[Tool] = ()) -> str:
        return await self._runtime.run(asked or turn(), sink=self.page, record=self.record, steering=self._steer, tools=tools)

    def _steer(self) -> tuple[Said, ...]:
        return self.steering.pop(0) if self.steering else ()


def roles(request: ModelRequest) -> list[str]:
    return [message.role.value for message in request.messages]


def results(request: ModelRequest) -> list[ModelMessage]:
    return [message for message in request.messages if message.role is Role.TOOL]


def pairs_are_whole(request: ModelRequest) -> bool:
    """Every call has its result right behind it, and no result stands alone (MD-12)."""
    waiting: list[str] = []
    for message in request.messages:
        if message.role is Role.TOOL:
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif waiting:
            return False
        waiting += [call.id for call in message.tool_calls]
    return not waiting


# -- plain answers -----------------------------------------------------------------------------------------------------


async def test_an_answer_is_shown_as_it_comes_and_recorded() -> None:
    model = ScriptedModel([[Say("Hello there.", chars=5), End(usage=Usage(input_tokens=12, output_tokens=3))]])
    run = Run(model)
    assert await run() == "Hello there."
    assert run.page.seen == ["Hello", "Hello ther", "Hello there."]
    (call,) = run.record.calls
    assert (call.model, call.outcome, call.usage.input_tokens, run.record.finish) == ("scripted", "ok", 12, Finish.STOP)
    assert run.record.first_token_ms is not None


async def test_thinking_is_neither_shown_nor_sent_back() -> None:
    model = ScriptedModel([[Think("secret thought"), SEARCH], "Done."])
    run = Run(model)
    assert await run(tools=[FakeTool()]) == "Done."
    assert "secret thought" not in repr(model.requests) + repr(run.page.seen)


@pytest.mark.case("MD-07")
async def test_nothing_after_a_tool_is_an_empty_answer_and_no_error() -> None:
    run = Run(ScriptedModel([[SEARCH], ""]))
    assert await run(tools=[FakeTool()]) == ""


async def test_words_of_two_steps_are_two_paragraphs() -> None:
    run = Run(ScriptedModel([[Say("Let me look."), SEARCH], "  It is there."]))
    assert await run(tools=[FakeTool()]) == "Let me look.\n\nIt is there."


# -- retries -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-20", "RL-21")
@pytest.mark.parametrize(("error", "tries"), [(ModelBusy("busy"), BUSY_TRIES), (ModelBroken("broken"), BROKEN_TRIES), (ModelMisconfigured("no"), 1)])
async def test_a_fault_is_tried_again_only_as_often_as_it_may_help(error: ModelError, tries: int) -> None:
    model = ScriptedModel(lambda _: Fail(error))
    run = Run(model)
    with pytest.raises(type(error)):
        await run()
    assert len(model.requests) == tries == len(run.record.calls)
    assert {call.outcome for call in run.record.calls} == {error.code}
    assert sum(run.sleep.waits) <= WAIT_TOTAL_S


@pytest.mark.rule("RL-21")
@pytest.mark.parametrize(("named", "tries"), [(7.0, 3), (16.0, 2), (31.0, 1), (3600.0, 1)])
async def test_a_named_wait_is_kept_while_all_waits_stay_bounded(named: float, tries: int) -> None:
    model = ScriptedModel(lambda _: Fail(ModelBusy("slow down", retry_after_s=named)))
    run = Run(model)
    with pytest.raises(ModelBusy):
        await run()
    assert len(model.requests) == tries
    assert run.sleep.waits == [named] * (tries - 1)


@pytest.mark.rule("RL-21", "CH-98")
async def test_words_of_a_cut_answer_are_taken_back_before_it_is_said_again() -> None:
    run = Run(ScriptedModel([[Say("The capital "), CUT], "The capital is Bern."]))
    assert await run() == "The capital is Bern."
    assert run.page.seen == ["The capital ", "", "The capital is Bern."]


@pytest.mark.case("MD-08")
@pytest.mark.parametrize("words", ["The capital is Bern.", "首都はベルンです。", "首都是伯尔尼。"])
async def test_the_fallback_model_says_everything_once(words: str) -> None:
    first = ScriptedModel(lambda _: [Say(words[:4]), CUT], name="first")
    second = ScriptedModel([words], name="second")
    run = Run(first, second)
    assert await run() == words
    assert run.page.text == words
    assert (run.record.model, len(first.requests), len(second.requests)) == ("second", BUSY_TRIES, 1)


@pytest.mark.case("MD-08")
async def test_only_the_broken_step_is_taken_back_and_the_model_that_works_stays() -> None:
    first = ScriptedModel([[Say("Let me look."), SEARCH], *([[Say("It is"), CUT]] * BUSY_TRIES)], name="first")
    second = ScriptedModel([[Say("It is"), Call("search", {"q": "y"})], "near."], name="second")
    tool = FakeTool()
    run = Run(first, second)
    assert await run(tools=[tool]) == "Let me look.\n\nIt is\n\nnear."
    assert run.page.text == "Let me look.\n\nIt is\n\nnear."
    assert len(tool.calls) == 2  # no tool runs twice because a model failed


@pytest.mark.rule("RL-21")
async def test_when_all_models_fail_the_first_ones_fault_is_told() -> None:
    run = Run(ScriptedModel(lambda _: Fail(ModelBusy("busy"))), ScriptedModel(lambda _: Fail(ModelMisconfigured("no key")), name="second"))
    with pytest.raises(ModelBusy):
        await run()
    assert run.page.text == "" == run.record.text


async def test_no_model_at_all_is_a_fault_of_the_set_up() -> None:
    with pytest.raises(ModelMisconfigured):
        await Run()()


@pytest.mark.rule("RL-20")
async def test_a_stream_without_an_end_is_a_broken_answer() -> None:
    class Endless(ScriptedModel):
        async def stream(self, request: ModelRequest) -> Any:
            self.requests.append(request)
            for _ in ():
                yield _

    model = Endless([])
    with pytest.raises(ModelBroken):
        await Run(model)()
    assert len(model.requests) == BROKEN_TRIES


@pytest.mark.rule("WO-38")
async def test_words_of_an_answer_that_broke_off_are_paid_for() -> None:
    run = Run(ScriptedModel([[Say("word " * 100), CUT], Fail(ModelMisconfigured("gone"))]))
    with pytest.raises(ModelMisconfigured):
        await run()
    cut, refused = run.record.calls
    assert cut.usage.estimated and cut.usage.output_tokens > 50 and cut.usage.input_tokens > 50
    assert refused.usage == Usage()


@quick
async def test_a_stopped_answer_keeps_its_words_and_its_price() -> None:
    halted = asyncio.Event()
    run = Run(ScriptedModel([[Say("Once upon a time"), Until(halted)]]))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await run()
    assert run.record.text == "Once upon a time"
    (call,) = run.record.calls
    assert (call.outcome, call.usage.estimated) == ("stopped", True)
    assert call.usage.output_tokens > 0


# -- room for the answer -----------------------------------------------------------------------------------------------

THOUGHT_ONLY: Reply = [Think("first I should"), End(Finish.LENGTH, Usage(input_tokens=10, output_tokens=5000))]


@pytest.mark.case("MD-06")
async def test_thinking_that_used_up_the_answer_is_tried_once_more_with_more_room() -> None:
    model = ScriptedModel([THOUGHT_ONLY, "So: 4."])
    assert await Run(model)() == "So: 4."
    assert [request.max_output_tokens for request in model.requests] == [None, 10_000]


@pytest.mark.case("MD-06")
async def test_thinking_that_never_ends_is_told() -> None:
    model = ScriptedModel(lambda _: THOUGHT_ONLY)
    with pytest.raises(NoRoom):
        await Run(model)()
    assert len(model.requests) == 2


@pytest.mark.case("MD-06")
async def test_an_answer_that_was_cut_at_its_length_is_an_answer() -> None:
    run = Run(ScriptedModel([[Say("A long tale"), End(Finish.LENGTH)]]))
    assert await run() == "A long tale"
    assert run.record.finish is Finish.LENGTH


# -- tools -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-20", "RL-23")
async def test_a_tool_runs_and_its_result_reaches_the_model_under_the_calls_id() -> None:
    model = ScriptedModel([[Call("search", {"q": "夢"}, id="call_7")], "Found it."])
    tool = FakeTool(answer="three dreams")
    run = Run(model)
    assert await run(tools=[tool]) == "Found it."
    assert [call.q for call in tool.calls] == ["夢"]
    (result,) = results(model.requests[1])
    assert (result.text, result.tool_call_id) == ("three dreams", "call_7")
    assert run.page.tools == [("search", "started"), ("search", "done")]
    assert [(use.name, use.ok) for use in run.record.tools] == [("search", True)]


@pytest.mark.case("MD-09")
async def test_no_arguments_are_an_empty_object_and_a_missing_one_is_named() -> None:
    model = ScriptedModel([[Call("now", ""), Call("say", "")], "Done."])
    now, say = FakeTool("now", "noon"), FakeTool("say", arguments=Needs)
    await Run(model)(tools=[now, say])
    first, second = results(model.requests[1])
    assert (first.text, len(now.calls), len(say.calls)) == ("noon", 1, 0)
    assert second.text.startswith("error") and "text" in second.text


@pytest.mark.case("MD-10")
@pytest.mark.parametrize("arguments", ['{"q": "x', "[]", '"x"', "null", '{"q": 5}', '{"nope": 1}', '{"q":"\ud83d"}', "\x00", "{}{}"])
async def test_broken_arguments_are_a_result_the_model_can_read(arguments: str) -> None:
    model = ScriptedModel([[Call("search", arguments)], "Sorry."])
    tool = FakeTool()
    run = Run(model)
    assert await run(tools=[tool]) == "Sorry."
    assert tool.calls == []
    assert results(model.requests[1])[0].text.startswith("error: ")
    assert [use.ok for use in run.record.tools] == [False]


@pytest.mark.case("MD-11")
async def test_calls_without_a_legal_name_get_one_and_end_after_a_few_rounds() -> None:
    model = ScriptedModel(lambda request: [Call("" if len(request.messages) % 4 else " ", "{}")] if request.tools else "Plain.")
    run = Run(model)
    assert await run(tools=[FakeTool()]) == "Plain."
    assert len(model.requests) == 4
    names = [call.name for message in model.requests[-1].messages for call in message.tool_calls]
    assert set(names) == {LEGAL_NAME} == {use.name for use in run.record.tools}
    assert all(pairs_are_whole(request) for request in model.requests)


@pytest.mark.rule("RL-20")
async def test_an_unknown_tool_is_answered_with_those_that_exist() -> None:
    model = ScriptedModel([[Call("no_such_tool", "{}", id="c1")], "Ah."])
    assert await Run(model)(tools=[FakeTool(), FakeTool("now")]) == "Ah."
    (result,) = results(model.requests[1])
    assert "search, now" in result.text and result.tool_call_id == "c1"


@pytest.mark.rule("RL-23")
async def test_a_tool_that_takes_too_long_is_ended_and_the_turn_goes_on() -> None:
    cancelled: list[bool] = []

    async def slow(_: Any) -> str:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise
        return "late"

    model = ScriptedModel([[SEARCH], "It took too long."])
    run = Run(model, budget=Budget(tool_seconds=0.02))
    assert await run(tools=[FakeTool(answer=slow)]) == "It took too long."
    assert cancelled == [True]
    assert "0.02 s" in results(model.requests[1])[0].text
    assert run.page.tools[-1] == ("search", "failed")


@pytest.mark.rule("RL-23")
async def test_a_tool_that_says_it_cannot_is_heard() -> None:
    model = ScriptedModel([[SEARCH], "I could not."])
    assert await Run(model)(tools=[failing("the page is gone")]) == "I could not."
    assert results(model.requests[1])[0].text == "error: the page is gone"


@pytest.mark.rule("RL-23")
async def test_a_huge_result_is_cut_before_it_reaches_the_model() -> None:
    model = ScriptedModel([[SEARCH], "Long."])
    await Run(model)(tools=[FakeTool(answer="x" * 3_000_000)])
    assert len(results(model.requests[1])[0].text) < 21_000


async def test_a_model_without_tools_is_offered_none() -> None:
    model = ScriptedModel(["No tools here."], supports_tools=False)
    await Run(model)(tools=[FakeTool()])
    assert model.requests[0].tools == ()


# -- runs that do not end ----------------------------------------------------------------------------------------------


@pytest.mark.case("MD-13")
async def test_the_same_call_three_times_ends_in_one_last_answer_without_tools() -> None:
    model = ScriptedModel(lambda request: [SEARCH] if request.tools else "All I know is x.")
    tool = FakeTool()
    run = Run(model)
    assert await run(tools=[tool]) == "All I know is x."
    assert (len(tool.calls), len(model.requests)) == (3, 4)
    assert model.requests[-1].tools == ()


@pytest.mark.case("MD-13")
async def test_a_model_that_calls_even_without_tools_is_stopped() -> None:
    model = ScriptedModel(lambda _: [SEARCH])
    with pytest.raises(BudgetExceeded):
        await Run(model)(tools=[FakeTool()])
    assert len(model.requests) == 4


@pytest.mark.case("MD-13")
async def test_words_beside_the_last_forbidden_call_are_the_answer() -> None:
    run = Run(ScriptedModel(lambda request: [SEARCH] if request.tools else [Say("It is x."), SEARCH]))
    assert await run(tools=[FakeTool()]) == "It is x."


@pytest.mark.case("MD-14")
async def test_new_arguments_every_time_end_at_the_step_limit() -> None:
    model = ScriptedModel(lambda request: [Call("search", {"q": str(len(request.messages))})] if request.tools else "Enough.")
    tool = FakeTool()
    assert await Run(model, budget=Budget(steps=6))(tools=[tool]) == "Enough."
    assert (len(model.requests), len(tool.calls)) == (6, 5)


@pytest.mark.case("MD-14")
@pytest.mark.rule("RL-23")
async def test_hundreds_of_calls_in_one_answer_are_not_all_run() -> None:
    many = [Call("search", {"q": str(number)}) for number in range(810)]
    model = ScriptedModel(lambda request: many if request.tools else "Too many.")
    tool = FakeTool()
    run = Run(model)
    assert await run(tools=[tool]) == "Too many."
    assert len(tool.calls) == CALLS_MAX
    assert pairs_are_whole(model.requests[-1]) and len(results(model.requests[-1])) == 810


@pytest.mark.case("MD-14")
@pytest.mark.rule("RL-23")
async def test_tokens_of_all_steps_together_have_a_limit() -> None:
    def answer(request: ModelRequest) -> Reply:
        return [Call("search", {"q": str(len(request.messages))}), End(usage=Usage(input_tokens=900, output_tokens=100))]

    model = ScriptedModel(answer)
    with pytest.raises(BudgetExceeded, match="tokens"):
        await Run(model, budget=Budget(tokens=2_500, steps=50))(tools=[FakeTool()])
    assert len(model.requests) == 3


# -- steering ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-70")
async def test_what_a_person_adds_is_heard_at_the_next_tool_boundary() -> None:
    three = [Call("search", {"q": word}, id=f"c{number}") for number, word in enumerate("abc")]
    model = ScriptedModel([three, "As you wish."])
    tool = FakeTool()
    run = Run(model)
    run.steering = [(), (Said(text="no, cats", by_us=False), Said(text="please", by_us=False))]
    assert await run(tools=[tool]) == "As you wish."
    assert [call.q for call in tool.calls] == ["a"]
    asked = model.requests[1]
    assert roles(asked) == ["system", "user", "assistant", "tool", "tool", "tool", "user"]
    assert [message.text.split(":")[0] for message in results(asked)] == ["found", "skipped", "skipped"]
    assert pairs_are_whole(asked)
    assert asked.messages[-1].text == "no, cats\nplease"
    assert run.record.steered == 2


@pytest.mark.rule("CH-70")
async def test_what_comes_during_the_last_tool_is_heard_too() -> None:
    model = ScriptedModel([[SEARCH], "Yes."])
    run = Run(model)
    run.steering = [(), (Said(text="犬のほうで", by_us=False),)]
    await run(tools=[FakeTool()])
    assert roles(model.requests[1])[-2:] == ["tool", "user"]
    assert model.requests[1].messages[-1].text == "犬のほうで"


# -- too long for the model --------------------------------------------------------------------------------------------


def size(request: ModelRequest) -> int:
    return sum(len(message.text) for message in request.messages)


def limited(characters: int, *, named: Callable[[int], tuple[int | None, int | None]], **more: Any) -> ScriptedModel:
    """A model that refuses more than so many characters; `named` makes the limit and the count that it tells."""

    def answer(request: ModelRequest) -> Reply:
        sent = size(request)
        limit, counted = named(sent)
        return Fail(ContextOverflow("too long", limit=limit, sent=counted)) if sent > characters else "fine"

    return ScriptedModel(answer, **more)


LONG = [f"{'question' if at % 2 == 0 else 'answer'} number {at} " + "word " * 60 for at in range(60)]
NAMED: dict[str, Callable[[int], tuple[int | None, int | None]]] = {
    "both": lambda sent: (3000, sent // 4),
    "the limit alone": lambda _: (3000, None),
    "nothing": lambda _: (None, None),
    "a limit above what was sent": lambda sent: (sent, sent // 4),
}


@pytest.mark.rule("RL-22", "WD-95")
@pytest.mark.case("MD-17")
@pytest.mark.parametrize("named", NAMED.values(), ids=NAMED.keys())
async def test_an_overflow_is_shortened_twice_at_most_and_answered(named: Callable[[int], tuple[int | None, int | None]]) -> None:
    model = limited(12_000, named=named)
    run = Run(model)
    assert await run(turn("and now?", *LONG)) == "fine"
    sizes = [size(request) for request in model.requests]
    assert 2 <= len(sizes) <= 3 and sizes == sorted(sizes, reverse=True) and len(set(sizes)) == len(sizes)
    assert model.requests[-1].messages[-1].text.endswith("and now?")
    assert model.requests[-1].messages[0] == model.requests[0].messages[0]
    assert run.record.left_out > 0


@pytest.mark.rule("RL-22", "WD-96")
async def test_what_was_learned_makes_the_next_turn_fit_at_once() -> None:
    learned: dict[str, int] = {}
    model = limited(12_000, named=NAMED["both"])
    await Run(model, learned=learned)(turn("and now?", *LONG))
    tries = len(model.requests)
    assert await Run(model, learned=learned)(turn("and then?", *LONG)) == "fine"
    assert len(model.requests) == tries + 1


@pytest.mark.rule("RL-22")
async def test_what_never_fits_fails_after_three_requests_and_leaves_no_draft() -> None:
    model = ScriptedModel(lambda _: [Say("…"), Fail(ContextOverflow("too long", limit=10, sent=9000))])
    run = Run(model)
    with pytest.raises(ContextOverflow):
        await run(turn("hi", *LONG))
    assert len(model.requests) == 3
    assert run.page.text == "" == run.record.text


@pytest.mark.rule("RL-22")
async def test_a_fallback_with_a_larger_window_answers_what_was_too_long() -> None:
    small = ScriptedModel(lambda _: Fail(ContextOverflow("too long")), name="small")
    large = ScriptedModel(["fine"], name="large")
    assert await Run(small, large)(turn("hi", *LONG)) == "fine"


@pytest.mark.rule("WD-39", "RL-22")
@pytest.mark.case("MD-12")
async def test_long_tool_results_give_way_to_the_window_and_pairs_stay_whole() -> None:
    def answer(request: ModelRequest) -> Reply:
        made = len(results(request))
        return [Call("search", {"q": str(made)})] if made < 6 else "Read it all."

    model = ScriptedModel(answer, context_window=8_192)
    run = Run(model)
    assert await run(turn("read", *LONG), tools=[FakeTool(answer="begin " + "word " * 3_000 + "end")]) == "Read it all."
    last = model.requests[-1]
    assert pairs_are_whole(last) and len(results(last)) == 6
    assert sum(section.tokens for section in run.record.sections) <= 8_192 * 0.75
    assert results(last)[0].text.startswith("begin") and results(last)[0].text.endswith("end")
    assert last.messages[1].text.endswith("read") or last.messages[1].role is Role.USER


@pytest.mark.rule("WD-38")
async def test_the_room_for_the_talk_is_what_the_first_model_leaves() -> None:
    first = ScriptedModel(lambda _: Fail(ModelMisconfigured("no key")), context_window=40_000)
    tiny = ScriptedModel(["hi"], name="tiny", context_window=2_000)
    run = Run(first, tiny)
    await run(turn("hi", *LONG))
    assert run.record.talk_room is not None and 28_000 < run.record.talk_room < 32_000
