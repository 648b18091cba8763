"""One turn of thought: ask the model, run its tools, ask again, until it has answered or its budget is spent.

Retries happen here and nowhere below (RL-21): only for faults that may pass, within a bounded total wait, and with the draft taken back
first, so that a person never sees the same words twice. What happened is written into the turn's `Record` as it happens, so that a stopped
or failed turn has its receipt too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing

from agent.asking import Asking
from agent.errors import BudgetExceeded, ContextOverflow, ModelBroken, ModelBusy, ModelError, ModelMisconfigured, NoRoom
from agent.least import Room, check
from agent.llm import estimate
from agent.llm.calibration import Calibration
from agent.llm.port import ChatModel, Finish, Finished, ModelMessage, ModelRequest, Role, TextDelta, ToolSpec, Usage
from agent.prompt import Prompt, assemble, least_of, reserve_of, room_for_prompt
from agent.tools.port import Tool
from agent.tools.toolbox import Toolbox, skipped
from agent.turn import Budget, ModelCall, Record, Said, Sent, Sink, Steering, Turn, Weight
from memory import tokens as counting
from memory.recall.budget import effective_ceiling, largest_prompt

log = logging.getLogger(__name__)

BUSY_TRIES = 3
BROKEN_TRIES = 2
WAIT_TOTAL_S = 30.0  # over all retries of one request; a longer wait is told to the person instead
FIRST_WAIT_S = 1.0
OVERFLOW_SHARES = (0.9, 0.5)  # of the limit that the provider named; without one below it, of 0.7 of what was sent (WD-95)
UNNAMED_LIMIT = 0.7
UNLIMITED = 2**40  # tokens
NO_ROOM_OUTPUT = 8_192  # output tokens of the one more try when thinking used up all the room

Sleep = Callable[[float], Awaitable[None]]


class Runtime:
    """Answers turns with `models`: the first is asked, the others stand in when it fails. Holds no state of any conversation."""

    def __init__(
        self,
        models: Sequence[ChatModel],
        *,
        budget: Budget,
        max_prompt: int,
        learned: dict[str, int] | None = None,
        calibration: Calibration | None = None,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """`max_prompt`: tokens a prompt may have at most, whatever the model's window. `learned`: windows by model name that providers named when
        they refused, in our own count; written here and kept by the owner for the next turn (WD-96), as is `calibration` (WD-41)."""
        self._models = models
        self._budget = budget
        self._max_prompt = max_prompt
        self._sleep = sleep
        self._learned: dict[str, int] = {} if learned is None else learned
        self._calibration = calibration or Calibration()

    def weigh(self, turn: Turn, *, ceiling: int, tools: Sequence[Tool] = ()) -> Weight:
        """What the first request of `turn` to the first model takes, before anything gives way. `ceiling`: the setting (RS-63). Raises TooLarge when
        what never gives way does not fit below it (RS-70)."""
        model = self._models[0]
        window, factor = self._window(model)
        limit = int(ceiling / factor)
        self._check(turn, tools, limit)
        prompt = self.whole(turn, tools=tools)
        return Weight(
            tokens=prompt.tokens,
            talk=next(section.tokens for section in prompt.sections if section.name == "history"),
            ceiling=effective_ceiling(limit, window, reserve_of(window, int(model.answer_tokens / factor))),
        )

    def whole(self, turn: Turn, *, tools: Sequence[Tool] = ()) -> Prompt:
        """The first request of `turn` to the first model, if everything had room."""
        return self._first(turn, tools, UNLIMITED)

    def first(self, turn: Turn, *, tools: Sequence[Tool] = ()) -> Prompt:
        """The same in the room that there is: what `run` sends first."""
        return self._first(turn, tools, self.room)

    @property
    def room(self) -> int:
        """Tokens that a prompt for the first model may take (WD-38)."""
        return self._room(self._models[0])

    def specs(self, tools: Sequence[Tool]) -> tuple[ToolSpec, ...]:
        """The tools as the first model is told of them."""
        return Toolbox(tools, seconds=self._budget.tool_seconds).specs if self._models[0].supports_tools else ()

    def _first(self, turn: Turn, tools: Sequence[Tool], room: int) -> Prompt:
        return assemble(turn, room=room, small=_is_small(self._models[0]), tools=_cost(self.specs(tools)))

    def _check(self, turn: Turn, tools: Sequence[Tool], limit: int) -> None:
        """Raises TooLarge. `limit`: of the whole prompt beside our own, in our count. By the stated window: one learned from refusals shortens
        the talk and stops nothing, for the next message must work (WD-96)."""
        model = self._models[0]
        factor = self._calibration.factor(model.name)
        window = int(model.context_window / factor)
        limit = min(limit, self._setting(factor))
        room, wider = (largest_prompt(limit, window, reserve_of(window, answer)) for answer in (int(model.answer_tokens / factor), 0))
        check(
            least_of(turn, small=_is_small(model), tools=_cost(self.specs(tools))),
            Room(tokens=room, by_setting=room == limit, with_short_answers=wider, answer=model.answer_tokens, window=model.context_window),
        )

    async def run(self, turn: Turn, *, sink: Sink, record: Record, steering: Steering, tools: Sequence[Tool] = ()) -> str:
        """The answer's text, possibly empty. Raises AgentError, TooLarge before any call; `record` then holds what was said and tried so far."""
        if self._models:
            self._check(turn, tools, UNLIMITED)
        asking = Asking(turn=turn, sink=sink, record=record, toolbox=Toolbox(tools, seconds=self._budget.tool_seconds))
        for step in range(self._budget.steps):
            if sum(call.usage.input_tokens + call.usage.output_tokens for call in record.calls) > self._budget.tokens:
                raise BudgetExceeded("tokens")
            last = step == self._budget.steps - 1 or asking.toolbox.stuck
            finished = await self._answered(asking, tools=not last)
            if not finished.tool_calls or (last and asking.step_text):
                record.finish = finished.reason
                return record.text
            if last:
                raise BudgetExceeded("steps")
            await self._use_tools(asking, finished, steering)
        raise BudgetExceeded("steps")

    async def _use_tools(self, asking: Asking, finished: Finished, steering: Steering) -> None:
        calls = [asking.toolbox.legal(call) for call in finished.tool_calls]
        asking.traffic.append(ModelMessage(role=Role.ASSISTANT, text=asking.step_text, tool_calls=tuple(calls)))
        added: tuple[Said, ...] = ()
        for asked, legal in zip(finished.tool_calls, calls, strict=True):
            added = added or steering()
            if added:
                asking.traffic.append(skipped(legal))
                continue
            asking.sink.tool(legal.name, "started")
            result, use = await asking.toolbox.run(asked)
            asking.sink.tool(legal.name, "done" if use.ok else "failed")
            asking.record.tools.append(use)
            asking.traffic.append(result)
        added += steering()
        asking.record.steered += len(added)
        if added:
            images = tuple(image for said in added for image in said.images)
            asking.traffic.append(ModelMessage(role=Role.USER, text="\n".join(said.text for said in added), images=images))

    async def _answered(self, asking: Asking, *, tools: bool) -> Finished:
        """One step: the first model that answers, or the error of the first one that failed for good. The one that answered stays first."""
        first_error: ModelError | None = None
        asking.begin_step()
        for number in range(asking.first, asking.first + len(self._models)):
            model = self._models[number % len(self._models)]
            try:
                finished = await self._fitted(model, asking, tools=tools)
                cut = finished.reason is Finish.LENGTH and not asking.step_text and not finished.tool_calls
                if cut and asking.turn.max_output_tokens is None:  # a limit of the asker's own is kept, even when nothing fits into it
                    asking.take_back()
                    finished = await self._fitted(model, asking, tools=tools, max_output=_more_room(model, finished))
                    if not asking.step_text and not finished.tool_calls:
                        raise NoRoom("the answer ran out of room before its first word")
                asking.first = number % len(self._models)
                return finished
            except ModelError as error:
                log.warning("model %s failed: %s %s", model.name, error, error.excerpt)
                first_error = first_error or error
                asking.take_back()
        raise first_error or ModelMisconfigured("no model is configured")

    async def _fitted(self, model: ChatModel, asking: Asking, *, tools: bool, max_output: int | None = None) -> Finished:
        """Ask; when the provider says the prompt is too long, shorten it twice at most, never wiping anything stored (RL-22)."""
        specs = asking.toolbox.specs if tools and model.supports_tools else ()
        prompt = self._prompt(model, asking, specs)
        for share in (*OVERFLOW_SHARES, None):
            request = ModelRequest(
                messages=prompt.messages,
                tools=specs,
                temperature=asking.turn.temperature,
                max_output_tokens=max_output or asking.turn.max_output_tokens,
                purpose=asking.turn.purpose,
            )
            try:
                return await self._patient(model, asking, request, prompt.tokens)
            except ContextOverflow as error:
                if share is None:
                    raise
                limit = _refused_limit(error, prompt.tokens)
                if max_output is None:
                    self._learned[model.name] = limit
                asking.take_back()
                prompt = self._prompt(model, asking, specs, room=int(limit * share))
                if not asking.traffic:  # what tools brought is no reason for the talk to leave
                    asking.record.refused = prompt.left_out
        raise AssertionError("unreachable: the last try returns or raises")

    def _prompt(self, model: ChatModel, asking: Asking, specs: tuple[ToolSpec, ...], room: int | None = None) -> Prompt:
        prompt = assemble(
            asking.turn,
            room=self._room(model) if room is None else room,
            small=_is_small(model),
            traffic=asking.traffic if model.supports_tools else (),
            tools=_cost(specs),
        )
        record = asking.record
        record.sections, record.left_out, record.shortened = prompt.sections, prompt.left_out, prompt.shortened
        record.rows_left_out, record.standing_cut = prompt.rows_left_out, prompt.standing_cut
        if model is self._models[0]:
            record.talk_room = prompt.talk_room
        return prompt

    def _room(self, model: ChatModel) -> int:
        window, factor = self._window(model)
        return room_for_prompt(window, self._setting(factor), int(model.answer_tokens / factor))

    def _setting(self, factor: float) -> int:
        """What a prompt may have by the setting, in our own count."""
        return int(self._max_prompt / factor)

    def _window(self, model: ChatModel) -> tuple[int, float]:
        """The window of a model in our own count, as far as it is known, and the factor of that count (WD-41, WD-96)."""
        factor = self._calibration.factor(model.name)
        window = int(model.context_window / factor)
        return min(window, self._learned.get(model.name, window)), factor

    async def _patient(self, model: ChatModel, asking: Asking, request: ModelRequest, sent: int) -> Finished:
        """Ask, and again while the fault may pass and the waits stay bounded. `sent`: estimated tokens of the request."""
        waited, tries = 0.0, 0
        while True:
            try:
                return await self._once(model, asking, request, sent)
            except (ModelBusy, ModelBroken) as error:
                tries += 1
                named = error.retry_after_s if isinstance(error, ModelBusy) else None
                wait = FIRST_WAIT_S * 2 ** (tries - 1) if named is None else named
                if tries >= (BUSY_TRIES if isinstance(error, ModelBusy) else BROKEN_TRIES) or waited + wait > WAIT_TOTAL_S:
                    raise
                waited += wait
            asking.take_back()
            await self._sleep(wait)

    async def _once(self, model: ChatModel, asking: Asking, request: ModelRequest, sent: int) -> Finished:
        started = time.monotonic()
        record = asking.record
        record.model, record.provider = model.name, model.provider
        record.sent.append(Sent(model=model.name, provider=model.provider, request=request))
        outcome, usage = "stopped", Usage()
        try:
            async with aclosing(model.stream(request)) as events:
                async for event in events:
                    if isinstance(event, TextDelta) and event.text:
                        if record.first_token_ms is None:
                            record.first_token_ms = round((time.monotonic() - asking.started) * 1000)
                        asking.say(event.text)
                    elif isinstance(event, Finished):
                        outcome, usage = "ok", event.usage
                        if not usage.estimated:
                            self._calibration.learn(model.name, counted=sent, reported=usage.input_tokens)
                        return event
            raise ModelBroken("the answer ended without an end")
        except ModelError as error:
            outcome = error.code
            raise
        finally:
            if outcome != "ok" and asking.step_text:  # words came, so it costs, whatever became of it
                usage = Usage(input_tokens=sent, output_tokens=counting.count(asking.step_text), estimated=True)
            milliseconds = round((time.monotonic() - started) * 1000)
            record.calls.append(ModelCall(model=model.name, provider=model.provider, outcome=outcome, usage=usage, milliseconds=milliseconds))


def _refused_limit(error: ContextOverflow, sent: int) -> int:
    """What the model takes, in tokens as we count them, whatever the provider counts: always less than what it refused. `sent`: our count of that."""
    counted = error.sent or sent
    named = min(error.limit or counted, counted)
    return max(1, int(sent * (named / counted if named < counted else UNNAMED_LIMIT)))


def _more_room(model: ChatModel, finished: Finished) -> int:
    """Output tokens for one more try when thinking used up the whole answer (MD-06)."""
    return max(min(NO_ROOM_OUTPUT, model.context_window // 2), 2 * finished.usage.output_tokens)


def _is_small(model: ChatModel) -> bool:
    return model.provider == "demo"


def _cost(specs: Sequence[ToolSpec]) -> int:
    """Tokens of what the model is told of its tools."""
    return estimate.tool_tokens(specs, counting.count)
