"""What would become of a chat's next message: the prompt, the jump of the window before it, or why nothing could be sent (RS-70, RS-78).

Looking starts nothing: no model is called, nothing is recalled, searched or written (RS-15).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any
from zoneinfo import ZoneInfo

from agent.characters import Character
from agent.errors import TooLarge
from agent.llm.port import ToolSpec
from agent.prompt import Prompt
from agent.tools.port import Tool
from agent.turn import Said, Turn
from gateway import casting, turn_store
from gateway.access import includes
from gateway.ceiling import Ceiling, Held
from gateway.chat_scope import access_in
from gateway.config import Config
from gateway.equipping import Equipment, Equipping
from gateway.language import say
from gateway.models import Models
from gateway.runtimes import Runtimes
from gateway.talk import history
from gateway.turn_store import TurnStart
from gateway.zone_names import first_known
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.ids import MessageId, PersonId, TurnId
from memory.recall.edge_jump import Jump

_NEXT = "preview"  # in the place of ids that a real message would have


@dataclass(frozen=True, slots=True, kw_only=True)
class Foretold:
    """`prompt`: as it would be sent before recall, its last message standing for the person's next one; where `fault` says why nothing would be,
    what alone does not fit. `room`: tokens that a prompt may take; `ceiling`: at how many the edge jumps, as calibrated by now, 0 with a `fault`;
    `window`, `answer`: of the model. `jump`: of the edge before it, None for none; `left`: messages that would leave by it; `begins`: the oldest
    message that would be sent then, None when only the next one would."""

    model: str
    provider: str
    window: int
    answer: int
    prompt: Prompt
    tools: tuple[ToolSpec, ...]
    room: int
    ceiling: int = 0
    fault: TooLarge | None = None
    jump: Jump | None = None
    left: int = 0
    begins: Message | None = None


class Foretelling:
    """`tools`: those of every turn, beside the ones that `equipping` gives."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        models: Models,
        equipping: Equipping,
        runtimes: Runtimes,
        tools: Sequence[Tool],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._equipping = equipping
        self._runtimes = runtimes
        self._ceiling = Ceiling(db=db, config=config, clock=clock)
        self._tools = tools

    async def of(self, chat: Conversation, person: Mapping[str, Any], *, language: str) -> Foretold:
        """If `person` wrote in `chat` now. `person`: id, name, role, scope, language and timezone. Raises ModelError when the chat's model cannot be
        made."""
        config, now = self._config(), self._clock()
        question = _question(chat, person, now)
        start = await self._db.read(partial(turn_store.would_begin, chat=chat, person=person, question=question, now=now, config=config))
        character = casting.who_answers(config, chat, start.questions, start.history)
        async with self._models.for_reply(character.model) as models:
            model, runtime = models[0], self._runtimes.of(models, chat)
            equipment = await self._equipping.standing(start, character, model, language=language)
            character = casting.named(character, equipment.system)
            answering = casting.one_of_several(chat, character)
            turn = self._turn(start, character, equipment, person, language=language, answering=answering)
            tools = (*equipment.tools, *self._tools)
            fault, held, ceiling = None, Held(start=start), 0
            try:
                weight = runtime.weigh(turn, ceiling=config.context.ceiling, tools=tools)
            except TooLarge as error:
                fault, prompt = error, runtime.whole(replace(turn, history=(), standing_notes=()), tools=tools)
            else:
                ceiling = weight.ceiling
                reserve = self._equipping.reserve(start, character, equipment, weight.ceiling)
                held = await self._ceiling.foresee(start, weight, answering=answering, language=language, reserve=reserve)
                after = held.start
                turn = replace(turn, history=_history(after, language, answering), standing_notes=tuple(filter(None, (after.blocks,))))
                prompt = runtime.first(turn, tools=tools)
            return Foretold(
                model=model.name,
                provider=model.provider,
                window=model.context_window,
                answer=model.answer_tokens,
                prompt=prompt,
                tools=runtime.specs(tools),
                room=runtime.room,
                ceiling=ceiling,
                fault=fault,
                jump=held.jump,
                left=held.left,
                begins=min(held.start.history, key=lambda message: message.seq, default=None),
            )

    def _turn(
        self, start: TurnStart, character: Character, equipment: Equipment, person: Mapping[str, Any], *, language: str, answering: str
    ) -> Turn:
        chat, config = start.conversation, self._config()
        zone = first_known(chat.timezone, str(person.get("timezone") or ""), config.timezone)
        return Turn(
            character=character,
            persona=chat.persona,
            system_text=equipment.system,
            head_notes=(*casting.head_notes(config, chat, character), *equipment.head_notes),
            saved=equipment.saved.shown,
            standing_notes=equipment.standing_notes,
            newest=Said(text=say(language, "preview_message"), by_us=False),
            history=_history(start, language, answering),
            now=self._clock().astimezone(ZoneInfo(zone) if zone else None),
            zone=zone or "local",
        )


def _history(start: TurnStart, language: str, answering: str) -> tuple[Said, ...]:
    in_group = start.conversation.space_id is not None
    return history(start.history, language=language, in_group=in_group, answering=answering, dates=start.dates)


def _question(chat: Conversation, person: Mapping[str, Any], now: datetime) -> Message:
    """Stands for what the person writes next; its memory is settled as that of a real one (WD-9)."""
    access = access_in(chat, person["scope"], known=includes(person["role"], "user"))
    return Message(
        seq=2**62,
        id=MessageId(_NEXT),
        conversation_id=chat.id,
        turn_id=TurnId(_NEXT),
        role="user",
        author_person_id=PersonId(person["id"]),
        author_name=person["name"],
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
