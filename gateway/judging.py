"""The judge of a challenge: a model reads the attempt once and says how far its goal was met, in points of 100 (WO-16)."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Annotated

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError

from agent.llm.port import Finish, ModelMessage, ModelRequest, Role
from agent.prompt import words
from gateway import attempts
from gateway.attempts import Attempt
from gateway.background import Background
from gateway.cast import character_of
from gateway.challenges import Challenge, in_language, played
from gateway.config import Config
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.parts import input_hash
from gateway.jobs.table import Job
from gateway.models import Models
from memory import conversations
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.lenient_json import object_in

DEMO = "demo"  # a provider whose model cannot judge
TALK_MAX = 60_000  # characters of the attempt that the judge reads, its end
VERDICT_MAX = 600  # characters


class JudgementUnusable(Exception):
    """The model did not answer in form; it is asked again later."""

    foreseen = True


class NoJudge(Exception):
    """Only the demo model is there: the attempt waits for a model that can judge."""

    retry_after_s = 3600.0


class Judgement(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    score: Annotated[int, Field(ge=0, le=100)]
    verdict: Annotated[str, StringConstraints(strip_whitespace=True)] = ""


def parsed(text: str) -> Judgement:
    """From an answer that holds one JSON object. Raises JudgementUnusable."""
    found = object_in(text)
    if found is None:
        raise JudgementUnusable("the answer holds no JSON object")
    try:
        return Judgement.model_validate(found)
    except ValidationError as error:
        raise JudgementUnusable(f"the answer has another form: {error.errors(include_input=False, include_url=False)[0]['msg']}") from error


def asked_of(challenge: Challenge, log: Sequence[Message], *, name: str) -> str:
    """What the judge reads: the challenge, then who said what, as JSON lines so that no word of the talk passes for a part of the form."""
    lines = [json.dumps({"by": "person" if message.role == "user" else name, "text": message.text}, ensure_ascii=False) for message in log]
    talk = "\n".join(lines)
    facts = {"scenario": challenge.scene, "goal": in_language(challenge.goal, "en"), "criteria": challenge.measure, "turns": challenge.turns}
    return f"{json.dumps(facts, ensure_ascii=False)}\n\n{talk[-TALK_MAX:]}"


class Judging:
    """The job's handler. `told` hears of every judged chat, after the commit."""

    def __init__(
        self,
        *,
        db: Database,
        models: Models,
        background: Background,
        config: Callable[[], Config],
        clock: Callable[[], datetime],
        told: Callable[[Conversation, Attempt], None],
    ) -> None:
        self._db = db
        self._models = models
        self._background = background
        self._config = config
        self._clock = clock
        self._told = told

    async def run(self, job: Job, context: JobContext) -> JobResult:
        """Raises NoJudge, JudgementUnusable, ModelError and BudgetSpent: the attempt waits, and chatting goes on (RS-60)."""
        chat_id = str(job.payload["conversation"])
        chat, log = await self._db.read(lambda connection: _attempt(connection, chat_id))
        challenge = played(chat) if chat else None
        if chat is None or challenge is None:
            return JobResult(skipped="the attempt is gone")
        found = await self._judgement(context, chat, challenge, log) if any(message.role == "user" for message in log) else Judgement(score=0)
        verdict = found.verdict[:VERDICT_MAX]

        def work(connection: sa.Connection) -> Attempt | None:
            attempts.judged(connection, chat_id, found.score, verdict, self._clock())
            return attempts.of_chats(connection, [chat_id]).get(chat_id)

        done = await context.write(work)
        if done is not None:
            self._told(chat, done)
        return JobResult(output={"score": found.score})

    async def _judgement(self, context: JobContext, chat: Conversation, challenge: Challenge, log: Sequence[Message]) -> Judgement:
        character = character_of(self._config(), chat.character)
        if self._models.helper_account(character.model).provider == DEMO:
            raise NoJudge("the demo model cannot judge a challenge: set up a model, or helper_model")
        system, text = words("judge"), asked_of(challenge, log, name=character.name)
        async with self._models.helper(character.model) as model:
            request = ModelRequest(
                messages=(ModelMessage(role=Role.SYSTEM, text=system), ModelMessage(role=Role.USER, text=text)), purpose=attempts.JUDGE
            )

            async def make() -> dict[str, object]:
                answer, end = await self._background.ask(model, request, {"conversation_id": chat.id, "person_id": chat.person_id or ""})
                if end.reason is not Finish.STOP:
                    raise JudgementUnusable(f"the answer ended with {end.reason.value}")
                return parsed(answer).model_dump()

            return Judgement.model_validate(await context.paid("judgement", input_hash(model.name, system, text), make))


def _attempt(connection: sa.Connection, chat_id: str) -> tuple[Conversation | None, list[Message]]:
    chat = conversations.conversation(connection, chat_id)
    return chat, conversations.window(connection, chat_id, 0) if chat else []
