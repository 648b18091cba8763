"""Summaries of a chat asked of the helper model: of talk, and of summaries that become one (RS-55, RS-163, RS-168, RS-191 to RS-193).

Each good answer is a paid part of the job that asked for it; what cannot be read is stored nowhere.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any
from zoneinfo import ZoneInfo

from agent.llm.port import ChatModel, Finish, ModelMessage, ModelRequest, Role
from agent.prompt import words
from gateway import windows
from gateway.background import Background
from gateway.cast import character_of
from gateway.config import MAIN_ACCOUNT, Config
from gateway.entries import refused_merges
from gateway.entries.refused_merges import MergeRefused, Merging
from gateway.jobs.handling import JobContext
from gateway.jobs.parts import input_hash
from gateway.models import Models
from gateway.summaries.digesting import DEMO
from memory.conversations import Conversation
from memory.recall import answers
from memory.recall.answers import Answer, InvalidOutput, Piece
from memory.recall.chunks import Spoken
from memory.recall.private_parts import without_macros

PURPOSE = "chat-summary"
ROOM_SHARE = 0.5  # of the model's window, for what one request shows
HALF_LEAST = 40  # words of a summary that is half as long as what it was made of
_TRIES = 2
_TOKENS_PER_WORD = 1.4  # models keep to a number of words, and do not know tokens
OUTPUT_MOST = 32_768  # tokens
GONE, RULE, NO_MODEL = "the chat is gone", "record rule", "no model"


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """How entries are asked for otherwise than the other summaries (RS-88, RS-89). `account`: of the model, as `entry_account` names it;
    `max_output`: tokens of one answer; `instruction`: in the place of the named one."""

    account: str
    max_output: int
    instruction: str = ""


class Summarist:
    """Every method raises ModelError, BudgetSpent and InvalidOutput."""

    def __init__(self, *, models: Models, background: Background, config: Callable[[], Config]) -> None:
        self._models = models
        self._background = background
        self._config = config

    def can(self, chat: Conversation) -> bool:
        """Whether the model that would be asked can write summaries at all (RS-60)."""
        return self._models.helper_account(self._character_model(chat), chosen=self._config().summary.model).provider != DEMO

    def why_not(self, chat: Conversation | None) -> str:
        """Why nothing may be made for a chat, as a job that skips says it; empty when something may."""
        if chat is None:
            return GONE
        if not windows.keeps_summaries(self._config(), chat):
            return RULE
        return "" if self.can(chat) else NO_MODEL

    def entry_account(self, chat: Conversation) -> str:
        """The account that writes the entries of a chat: the one named for summaries, that of helpers, the chat's own, the stand-in; the first that
        can write at all (RS-89). Empty when none can."""
        config = self._config()
        own = self._character_model(chat) or MAIN_ACCOUNT
        named = [config.entries.model or config.summary.model, config.helper_model, own, config.fallback_model]
        return next((name for name in named if name and config.account(name).provider != DEMO), "")

    def model_of(self, chat: Conversation) -> str:
        """The name of the model that is asked, empty for the default account's."""
        return self._models.helper_account(self._character_model(chat), chosen=self._config().summary.model).name

    async def of_talk(
        self,
        context: JobContext,
        chat: Conversation,
        talk: Sequence[Spoken],
        authors: Mapping[int, str],
        zone: ZoneInfo,
        *,
        prompt: str,
        merge: str,
        wish: Wish | None = None,
    ) -> Answer:
        """One summary of these messages, however long they are: in pieces that are joined as a tree. `prompt`, `merge`: names of instructions."""
        if not talk:
            return Answer(text="")
        async with self._helper(chat, wish) as model:
            level = [await self._of_piece(context, model, chat, piece, zone, prompt, wish) for piece in _pieces(model, talk, authors, zone)]
            while len(level) > 1:
                level = [await self._join(context, model, chat, level[begin:end], merge, wish) for begin, end in answers.groups(len(level))]
            return level[0]

    async def ahead(
        self,
        context: JobContext,
        chat: Conversation,
        talk: Sequence[Spoken],
        authors: Mapping[int, str],
        zone: ZoneInfo,
        *,
        prompt: str,
        last: int,
        made: Callable[[Sequence[Spoken], Answer], Awaitable[None]],
    ) -> None:
        """The pieces that `of_talk` will ask about and that more talk behind them does not change, up to the one with message number `last`: they are
        paid for then (RS-162). `made` hears of each: its messages and its answer."""
        async with self._helper(chat) as model:
            for piece in _pieces(model, talk, authors, zone)[:-1]:
                if talk[piece.first].seq > last:
                    return
                await made(talk[piece.first : piece.last + 1], await self._of_piece(context, model, chat, piece, zone, prompt))

    async def of_summaries(
        self,
        context: JobContext,
        chat: Conversation,
        shown: Sequence[str],
        *,
        prompt: str,
        values: Mapping[str, object],
        merging: Merging,
        wish: Wish | None = None,
    ) -> Answer:
        """One summary of several, as they are shown, and of it what is stored. `values`: what the instruction called `prompt` names in braces. Raises
        MergeRefused, and InvalidOutput never: an answer that cannot be read is refused too (RS-111)."""
        async with self._helper(chat, wish) as model:
            return await self._ask(context, model, chat, _filled(words(prompt), values), "\n\n".join(shown), wish, merging)

    async def _of_piece(
        self, context: JobContext, model: ChatModel, chat: Conversation, piece: Piece, zone: ZoneInfo, prompt: str, wish: Wish | None = None
    ) -> Answer:
        system = (wish.instruction if wish is not None else "") or words(prompt)
        return await self._ask(context, model, chat, system, f"Time zone: {zone.key or 'local'}\n\n{piece.text}", wish)

    async def _join(
        self, context: JobContext, model: ChatModel, chat: Conversation, parts: Sequence[Answer], merge: str, wish: Wish | None
    ) -> Answer:
        if len(parts) == 1:
            return parts[0]
        system = _filled(words(merge), {"words": 200})
        shown = "\n\n".join(f"[part {n}]\n{part.shown}" for n, part in enumerate(parts, 1))
        merged = await self._ask(context, model, chat, system, shown, wish)
        return answers.all_details(merged, parts)

    async def _ask(
        self,
        context: JobContext,
        model: ChatModel,
        chat: Conversation,
        system: str,
        text: str,
        wish: Wish | None = None,
        merging: Merging | None = None,
    ) -> Answer:
        most = wish.max_output if wish is not None else None
        hashed = input_hash(PURPOSE, model.name, system, text, *([most] if most else []))

        if merging is not None and refused_merges.is_known(chat, hashed):
            raise MergeRefused(known=True)

        async def make() -> dict[str, Any]:
            if merging is None:
                return (await self._answer(model, chat, system, text, most)).as_json()
            found, _ = await self._once(model, chat, system, text, most)
            told = None if found is None else merging.kept(found)
            if told is None or not merging.good(told, text):
                await context.write(lambda connection: refused_merges.note(connection, chat.id, hashed))
                raise MergeRefused(known=False)
            return told.as_json()

        found = Answer.of_json(await context.paid(f"answer {hashed[:24]}", hashed, make))
        return found if wish is None else replace(found, text=without_macros(found.text), title=without_macros(found.title))

    async def _answer(self, model: ChatModel, chat: Conversation, system: str, text: str, most: int | None) -> Answer:
        for _ in range(_TRIES):
            found, reason = await self._once(model, chat, system, text, most)
            if found is not None:
                return found
            if reason is Finish.LENGTH and most is not None:  # once more with more room (RS-192)
                most = min(2 * most, max(most, OUTPUT_MOST))
        raise InvalidOutput("the model's answer cannot be read as a summary: it was asked twice")

    async def _once(self, model: ChatModel, chat: Conversation, system: str, text: str, most: int | None) -> tuple[Answer | None, Finish]:
        """What one call gave, None for what is no summary; and how the call ended."""
        talk = (ModelMessage(role=Role.SYSTEM, text=system), ModelMessage(role=Role.USER, text=text))
        request = ModelRequest(messages=talk, purpose=PURPOSE, max_output_tokens=most)
        answer, end = await self._background.ask(model, request, {"conversation_id": chat.id})
        return (answers.parsed(answer) if end.reason is Finish.STOP else None), end.reason

    def _helper(self, chat: Conversation, wish: Wish | None = None) -> AbstractAsyncContextManager[ChatModel]:
        if wish is not None:
            return self._models.exactly(wish.account)
        return self._models.helper(self._character_model(chat), chosen=self._config().summary.model)

    def _character_model(self, chat: Conversation) -> str:
        return character_of(self._config(), chat.members[0]).model


def half_in_words(tokens: int) -> int:
    """About how many words half of so many tokens are."""
    return words_in(tokens / 2)


def words_in(tokens: float) -> int:
    """About how many words so many tokens are."""
    return round(tokens / _TOKENS_PER_WORD)


def _pieces(model: ChatModel, talk: Sequence[Spoken], authors: Mapping[int, str], zone: ZoneInfo) -> list[Piece]:
    room = min(answers.PIECE, max(400, int(model.context_window * ROOM_SHARE)))
    return answers.pieces(answers.rendered(talk, authors, zone), room)


def _filled(text: str, values: Mapping[str, object]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", str(value))
    return text
