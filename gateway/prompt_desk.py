"""What was sent to the model for a reply, and what would be sent now, for the person of the chat (RS-78).

Looking starts nothing: no model is called, nothing is recalled or searched, and no memory ages (RS-15).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from zoneinfo import ZoneInfo

from agent.llm import estimate
from agent.llm.port import ModelMessage, ToolSpec
from agent.prompt import ANSWER_RESERVE, ANSWER_RESERVE_MAX, assemble, room_for_prompt
from agent.tools.port import Tool, spec_of
from agent.turn import Said, Section, Turn
from gateway import casting, turn_store
from gateway.config import Config, secret_values
from gateway.equipping import Equipping
from gateway.language import say
from gateway.logs import Redactor
from gateway.models import Models
from gateway.person import Person
from gateway.prompt_shelf import PromptShelf, is_private
from gateway.talk import history
from gateway.turn_store import TurnStart
from gateway.zones import first_known
from memory import conversations, tokens
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.ids import MessageId, TurnId
from memory.recall import budget
from memory.scopes import scope_of, scope_or_none

ADVISED_SHARE = 0.1  # of the ceiling, which the memory budget should not fall below (RS-64)
_NEXT = "preview"  # in the place of ids that a real message would have


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
class Preview:
    """What would be sent now, before recall: the last message stands for the person's next one."""

    model: str
    provider: str
    messages: tuple[Shown, ...]
    tools: tuple[ToolSpec, ...]
    sections: tuple[Section, ...]
    tokens: int
    left_out: int
    room: Room


class PromptDesk:
    """`tools`: those of every turn, beside the ones that `equipping` gives."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        models: Models,
        equipping: Equipping,
        shelf: PromptShelf,
        tools: Sequence[Tool] = (),
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._equipping = equipping
        self._shelf = shelf
        self._tools = tools

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
        config, now = self._config(), self._clock()
        asker = {name: getattr(person, name) for name in ("id", "name", "role", "scope", "language", "timezone")}
        question = _question(chat, person, now)
        start = await self._db.read(partial(turn_store.would_begin, chat=chat, person=asker, question=question, now=now, config=config))
        character = casting.who_answers(config, chat, start.questions, start.history)
        async with self._models.for_reply(character.model) as models:
            model = models[0]
            equipment = await self._equipping.standing(start, character, model, language=language)
            character = casting.named(character, equipment.system)
            zone = first_known(chat.timezone, person.timezone, config.timezone)
            turn = Turn(
                character=character,
                persona=chat.persona,
                system_text=equipment.system,
                head_notes=(*casting.head_notes(config, chat, character), *equipment.head_notes),
                saved=equipment.saved.shown,
                standing_notes=equipment.standing_notes,
                newest=Said(text=say(language, "preview_message"), by_us=False),
                history=self._history(start, language, casting.one_of_several(chat, character)),
                now=now.astimezone(ZoneInfo(zone) if zone else None),
                zone=zone or "local",
            )
            specs = tuple(spec_of(tool) for tool in (*equipment.tools, *self._tools)) if model.supports_tools else ()
            room = room_for_prompt(model.context_window, config.agent_max_context_tokens)
            prompt = assemble(turn, room=room, small=model.provider == "demo", tools=estimate.tool_tokens(specs, tokens.count))
            clean = self._cleaner()
            return Preview(
                model=model.name,
                provider=model.provider,
                messages=tuple(_shown(each, 0, clean) for each in prompt.messages),
                tools=specs,
                sections=prompt.sections,
                tokens=prompt.tokens,
                left_out=prompt.left_out,
                room=room_of(config, model.context_window, room),
            )

    def _history(self, start: TurnStart, language: str, answering: str) -> tuple[Said, ...]:
        return history(start.history, language=language, in_group=False, answering=answering, dates=start.dates)

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


def room_of(config: Config, window: int, prompt: int) -> Room:
    """`window`: tokens of the model; `prompt`: what a prompt may take by the other limits."""
    given = config.context
    ceiling = min(prompt, budget.effective_ceiling(given.ceiling, window, min(ANSWER_RESERVE_MAX, int(window * ANSWER_RESERVE))))
    return Room(
        prompt=ceiling,
        memory=budget.memory_budget(given.memory_budget, ceiling),
        ceiling=given.ceiling,
        budget=given.memory_budget,
        advised=given.memory_budget < given.ceiling * ADVISED_SHARE,
    )


def _question(chat: Conversation, person: Person, now: datetime) -> Message:
    """Stands for what the person writes next; its memory is settled as that of a real one (WD-9)."""
    access = scope_of(chat.kind, person=scope_or_none(person.scope), space=None, memory_on=chat.memory_on, known=person.may("user"))
    return Message(
        seq=2**62,
        id=MessageId(_NEXT),
        conversation_id=chat.id,
        turn_id=TurnId(_NEXT),
        role="user",
        author_person_id=person.id,
        author_name=person.name,
        text="",
        state="live",
        origin="person",
        attempt=1,
        outcome="",
        attachments=(),
        reply_to=None,
        created_at=now,
        scope=str(access.scope) if access.scope else "",
    )


def _shown(message: ModelMessage, pictures: int, clean: Callable[[str], str]) -> Shown:
    calls = tuple((call.name, clean(call.arguments)) for call in message.tool_calls)
    size = tokens.MESSAGE_TOKENS + tokens.count(message.text) + tokens.IMAGE_TOKENS * pictures + sum(tokens.count(given) for _, given in calls)
    return Shown(role=message.role.value, text=clean(message.text), tokens=size, pictures=pictures, calls=calls)
