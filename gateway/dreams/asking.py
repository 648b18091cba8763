"""The model requests of one dream: asked, repaired once, within what one dream may cost (WD-72, WD-79, WD-87)."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

import sqlalchemy as sa

from agent.llm.port import ChatModel, Finish, ModelMessage, ModelRequest, Role
from agent.prompt import words
from gateway.background import Background
from gateway.dreams.errors import BudgetGone, DreamFailed
from gateway.jobs.handling import JobContext
from gateway.jobs.parts import input_hash
from gateway.leases import NOW
from memory import dream_contract, tokens
from memory.dream_contract import Answer, ContractBroken
from memory.dream_guards import output_tokens
from memory.dream_input import RULES, Material, render
from memory.dream_rules import Policy
from memory.schema import job_parts

PURPOSE = "dream"
_REPAIR = (
    "That answer cannot be used:\n{faults}\n\nAnswer once more: the whole JSON object, with these faults mended, every old line accounted for, "
    "and nothing around it."
)
_REPAIR_TOKENS = 800  # the faults, named


_MADE = sa.select(job_parts.c.output).where(job_parts.c.job_id == sa.bindparam("the_job"), job_parts.c.part == sa.bindparam("the_part"))
_COUNT = sa.insert(job_parts).values(created_at=NOW)


@dataclass(slots=True)
class Budget:
    """One dream's share: model calls, counted with the job so that its other attempts know of them (N10); input tokens; until when (on the loop's
    clock). `name` tells the dreams of one job apart."""

    name: str
    calls: int
    tokens: int
    ends: float
    made: int = 0

    async def take(self, size: int, context: JobContext) -> None:
        """Before a request of `size` tokens. BudgetGone when it is more than is left."""
        if size > self.tokens:
            raise BudgetGone("the input tokens of this dream are used up")
        self.tokens -= size
        self.made = await context.write(lambda connection: _count_call(connection, context.id, f"calls-{self.name}"))
        if self.made > self.calls:
            raise BudgetGone("the model calls of this dream are used up")


def _count_call(connection: sa.Connection, job_id: int, part: str) -> int:
    made = (connection.execute(_MADE, {"the_job": job_id, "the_part": part}).scalar() or 0) + 1
    connection.execute(sa.delete(job_parts).where(job_parts.c.job_id == job_id, job_parts.c.part == part))
    connection.execute(_COUNT, {"job_id": job_id, "part": part, "output": made, "now": None})
    return made


class DreamAsking:
    def __init__(self, background: Background) -> None:
        self._background = background

    def room(self, model: ChatModel, bare: Material, policy: Policy, most: int) -> int:
        """Tokens that the days of one request may have. `bare`: the material without days; `most`: input tokens of a dream. Below 0: none fits.

        A repair call sends everything once more with the answer, so the first may take less than half.
        """
        answer = output_tokens(bare, policy.max_new, tokens.count)
        own = tokens.count(_system(policy)) + tokens.count(render(bare, room=0, add_only=policy.add_only))
        within_budget = (most - answer - _REPAIR_TOKENS) // 2
        return min(within_budget, model.context_window - 2 * answer - _REPAIR_TOKENS) - own

    async def answer(
        self, model: ChatModel, given: Material, policy: Policy, budget: Budget, context: JobContext, *, part: str, person_id: str
    ) -> Answer:
        """The checked answer; one that was paid for in an earlier run of the job is taken as it is (WD-60). DreamFailed, ModelError, BudgetSpent."""
        room = min(policy.max_new, max(0, policy.max_items - len(given.old)))
        asked = render(given, room=room, add_only=policy.add_only)
        messages = (ModelMessage(role=Role.SYSTEM, text=_system(policy)), ModelMessage(role=Role.USER, text=asked))
        most = output_tokens(given, policy.max_new, tokens.count)

        async def make() -> dict[str, str]:
            try:
                async with asyncio.timeout_at(budget.ends):
                    return {"text": await self._ask(model, messages, most, given, budget, context, person_id)}
            except TimeoutError as error:
                raise DreamFailed("the model took longer than dream.max_seconds") from error

        kept = await context.paid(part, input_hash(model.name, RULES, [message.text for message in messages]), make)
        return dream_contract.parse(kept["text"])

    async def _ask(
        self, model: ChatModel, messages: tuple[ModelMessage, ...], most: int, given: Material, budget: Budget, context: JobContext, person_id: str
    ) -> str:
        for last in (False, True):
            await self._background.check()
            await budget.take(sum(tokens.count(message.text) for message in messages), context)
            request = ModelRequest(messages=messages, max_output_tokens=most, purpose=PURPOSE)
            text, end = await self._background.ask(model, request, {"person_id": person_id})
            if end.reason is not Finish.STOP:
                raise DreamFailed(f"the answer ended by {end.reason} and counts for nothing")
            try:
                dream_contract.check(dream_contract.parse(text), given)
                return text
            except ContractBroken as broken:
                if last:
                    raise DreamFailed(f"the answer breaks the contract: {broken}"[:500]) from None
                faults = "\n".join(f"- {fault}" for fault in broken.faults)
                mend = ModelMessage(role=Role.USER, text=_REPAIR.format(faults=faults))
                messages = (*messages, ModelMessage(role=Role.ASSISTANT, text=text), mend)
        raise AssertionError("the second answer was taken or refused")


def _system(policy: Policy) -> str:
    return words("dream").replace("{max_new}", str(policy.max_new))
