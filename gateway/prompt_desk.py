"""What was sent to the model for a reply, and what would be sent now, for the person of the chat (RS-78).

Looking starts nothing: no model is called, nothing is recalled or searched, and no memory ages (RS-15).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial

from agent.llm.port import ModelMessage, ToolSpec
from agent.prompt import reserve_of
from agent.turn import Section
from gateway import too_large
from gateway.config import Config, secret_values
from gateway.foretelling import Foretelling, Foretold
from gateway.logs import Redactor
from gateway.person import Person
from gateway.prompt_shelf import PromptShelf, is_private
from memory import conversations, tokens
from memory.conversations import Conversation
from memory.database import Database
from memory.extract import shortened
from memory.markdown_lines import one_line
from memory.recall import budget

ADVISED_SHARE = 0.1  # of the ceiling, which the memory budget should not fall below (RS-64)
BEGIN_SHOWN = 80  # characters of the message with which the talk would begin


class NoSuchChat(LookupError):
    """There is no such chat, or it is not this person's alone; the two are never told apart."""


class NotKept(LookupError):
    """Nothing is kept of what was sent for this reply, or no longer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """One message of a prompt. `calls`: tools that the model asked for, with their arguments; `tokens` is an estimate."""

    role: str
    text: str
    tokens: int
    pictures: int = 0
    calls: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspected:
    """What was sent: request `number` of `requests`, counted from 1. It is let go at `until` at the latest."""

    turn_id: str
    attempt: int
    at: datetime
    until: datetime
    number: int
    requests: int
    model: str
    provider: str
    messages: tuple[Shown, ...]
    tools: tuple[ToolSpec, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """How much room there is, in estimated tokens. `prompt`: for everything that is sent; `memory`: what summaries and recall may take of it;
    `ceiling` and `budget`: as they are set; `advised`: whether the budget is small for its ceiling (RS-64)."""

    prompt: int
    memory: int
    ceiling: int
    budget: int
    advised: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """The message with which the talk would begin in a prompt, as it is shown. `seq`: as the log numbers it."""

    seq: int
    id: str
    at: datetime
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leap:
    """The jump that the window would make before the next message. `before`, `edge`: numbers of the last message that is not sent, now and then;
    `messages`: how many would leave; `begins`: with what the talk would begin then, None when all of it would leave."""

    before: int
    edge: int
    messages: int
    begins: Begin | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """Why nothing could be sent: the code of the error, the sentence that the person would be told, tokens needed and there."""

    code: str
    message: str
    needed: int
    room: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Preview:
    """What would be sent now, before recall: the last message stands for the person's next one. `jump`: made before it; the prompt is the one after;
    `fault`: nothing would be sent, and the prompt is what alone does not fit."""

    model: str
    provider: str
    messages: tuple[Shown, ...]
    tools: tuple[ToolSpec, ...]
    sections: tuple[Section, ...]
    tokens: int
    left_out: int
    room: Room
    jump: Leap | None = None
    fault: Stop | None = None


class PromptDesk:
    def __init__(self, *, db: Database, config: Callable[[], Config], shelf: PromptShelf, foretelling: Foretelling) -> None:
        self._db = db
        self._config = config
        self._shelf = shelf
        self._foretelling = foretelling

    async def sent(self, person: Person, chat_id: str, turn_id: str, number: int | None = None) -> Inspected:
        """Request `number` of a reply, else the last one: the prompt that the reply came from. Raises NoSuchChat, NotKept."""
        chat = await self._own(person, chat_id)
        kept = await self._shelf.of(str(chat.id), turn_id)
        if kept is None or kept.person_id != person.id or not 1 <= (number or 1) <= len(kept.sent):
            raise NotKept(turn_id)
        at = (number or len(kept.sent)) - 1
        request, pictures, clean = kept.sent[at].request, kept.pictures[at], self._cleaner()
        return Inspected(
            turn_id=turn_id,
            attempt=kept.attempt,
            at=kept.at,
            until=kept.at + timedelta(minutes=self._config().inspector.minutes),
            number=at + 1,
            requests=len(kept.sent),
            model=kept.sent[at].model,
            provider=kept.sent[at].provider,
            messages=tuple(_shown(each, many, clean) for each, many in zip(request.messages, pictures, strict=True)),
            tools=request.tools,
        )

    async def preview(self, person: Person, chat_id: str, *, language: str) -> Preview:
        """Raises NoSuchChat; ModelError when the model of the chat cannot be made."""
        chat = await self._own(person, chat_id)
        asker = {name: getattr(person, name) for name in ("id", "name", "role", "scope", "language", "timezone")}
        found = await self._foretelling.of(chat, asker, language=language)
        config, clean, prompt, fault = self._config(), self._cleaner(), found.prompt, found.fault
        return Preview(
            model=found.model,
            provider=found.provider,
            messages=tuple(_shown(each, 0, clean) for each in prompt.messages),
            tools=found.tools,
            sections=prompt.sections,
            tokens=prompt.tokens,
            left_out=prompt.left_out,
            room=room_of(config, found.window, found.room, found.answer),
            jump=_leap(found, clean),
            fault=fault and Stop(code=fault.code, message=too_large.told(fault, config, chat, language), needed=fault.needed, room=fault.room),
        )

    async def _own(self, person: Person, chat_id: str) -> Conversation:
        chat = await self._db.read(partial(conversations.conversation, conversation_id=chat_id))
        if chat is None or chat.person_id != person.id or not is_private(chat):
            raise NoSuchChat(chat_id)
        return chat

    def _cleaner(self) -> Callable[[str], str]:
        """Takes out what is a secret of the configuration, should somebody have written it into a chat or a file (RL-32)."""
        redactor = Redactor()
        redactor.know(secret_values(self._config()))
        return redactor.clean


def room_of(config: Config, window: int, prompt: int, answer: int = 0) -> Room:
    """`window`: tokens of the model, `answer`: of its longest answer, 0 for none set; `prompt`: what a prompt may take by the other limits."""
    given = config.context
    ceiling = min(prompt, budget.effective_ceiling(given.ceiling, window, reserve_of(window, answer)))
    return Room(
        prompt=ceiling,
        memory=budget.memory_budget(given.memory_budget, ceiling),
        ceiling=given.ceiling,
        budget=given.memory_budget,
        advised=given.memory_budget < given.ceiling * ADVISED_SHARE,
    )


def _leap(found: Foretold, clean: Callable[[str], str]) -> Leap | None:
    if found.jump is None:
        return None
    first = found.begins
    begins = first and Begin(seq=first.seq, id=str(first.id), at=first.created_at, text=shortened(clean(one_line(first.text)), BEGIN_SHOWN))
    return Leap(before=found.jump.before, edge=found.jump.edge, messages=found.left, begins=begins)


def _shown(message: ModelMessage, pictures: int, clean: Callable[[str], str]) -> Shown:
    calls = tuple((call.name, clean(call.arguments)) for call in message.tool_calls)
    size = tokens.MESSAGE_TOKENS + tokens.count(message.text) + tokens.IMAGE_TOKENS * pictures + sum(tokens.count(given) for _, given in calls)
    return Shown(role=message.role.value, text=clean(message.text), tokens=size, pictures=pictures, calls=calls)
