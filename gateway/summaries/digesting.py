"""Talk made into bullets by the helper model, piece by piece (WD-44, WD-45, WD-60); or by a plain extract, where the model cannot do it."""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from agent.errors import ContextOverflow, NoRoom
from agent.llm.port import ChatModel, Finish, ModelMessage, ModelRequest, Role
from agent.prompt import words
from gateway.background import Background
from gateway.cast import character_of
from gateway.config import Config
from gateway.jobs.handling import JobContext
from gateway.jobs.parts import input_hash
from gateway.models import Models
from memory import blocks, tokens
from memory.coverage import Talk
from memory.evidence import unsupported
from memory.extract import extract
from memory.markdown_lines import one_line
from memory.provenance import Origin
from memory.secret_patterns import find_secret
from memory.summaries import AnswerUnusable, Bullet, bullet_of, checked, parsed, pieces, rendered, shown, words_of

PURPOSE = "summary"
DEMO = "demo"  # a provider whose model cannot answer in JSON
ROOM_MAX = 24_000  # tokens of talk in one request
ROOM_SHARE = 0.5  # of the model's window
AROUND = 24  # tokens of label, time and name around each message
HALVINGS = 3  # how often a piece is cut in two after an unusable answer

log = logging.getLogger(__name__)

Raw = list[tuple[str, list[str]]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """Bullets of one stretch of talk, and from when its messages were read. `unsupported`, `secrets`: what was left out (WD-70, WD-22)."""

    bullets: tuple[Bullet, ...]
    read_at: datetime
    unsupported: int = 0
    secrets: tuple[str, ...] = ()

    def resting_on(self, messages: Collection[str]) -> Digest:
        """Only what rests on nothing but these messages: others were deleted or forgotten meanwhile (WD-92)."""
        return replace(self, bullets=tuple(each for each in self.bullets if set(each.sources) <= set(messages)))

    def as_json(self) -> dict[str, Any]:
        bullets = [
            {"text": each.text, "origin": str(each.origin), "sources": list(each.sources), "speakers": list(each.speakers)} for each in self.bullets
        ]
        return {"bullets": bullets, "read_at": self.read_at.isoformat(), "unsupported": self.unsupported, "secrets": list(self.secrets)}

    @staticmethod
    def of_json(value: Mapping[str, Any]) -> Digest:
        bullets = tuple(
            Bullet(text=each["text"], origin=Origin(each["origin"]), sources=tuple(each["sources"]), speakers=tuple(each["speakers"]))
            for each in value["bullets"]
        )
        read_at = datetime.fromisoformat(value["read_at"])
        return Digest(bullets=bullets, read_at=read_at, unsupported=value["unsupported"], secrets=tuple(value["secrets"]))


class Digester:
    def __init__(self, *, models: Models, background: Background, config: Callable[[], Config]) -> None:
        self._models = models
        self._background = background
        self._config = config

    def is_demo(self, character: str = "") -> bool:
        """Whether the model that would be asked cannot do it, so that plain extracts stand for good."""
        return self._models.helper_account(self._character_model(character), chosen=self._config().summary.model).provider == DEMO

    async def digest(
        self,
        context: JobContext,
        talk: Sequence[Talk],
        zone: ZoneInfo,
        *,
        label: str,
        character: str,
        reserved: Collection[str],
        read_at: datetime,
    ) -> Digest:
        """What the model makes of `talk`, all of one conversation and date. Pieces that were paid for in an earlier run cost nothing (WD-60).

        Raises AnswerUnusable when even small pieces are not answered in form, ModelError, BudgetSpent.
        """
        kept: dict[str, Bullet] = {}
        unsupported, secrets = 0, list[str]()
        of = {"conversation_id": talk[0].conversation_id} if talk else {}
        async with self._models.helper(self._character_model(character), chosen=self._config().summary.model) as model:
            room = max(400, min(ROOM_MAX, int(model.context_window * ROOM_SHARE)))
            for piece in pieces(talk, room, lambda message: tokens.count(shown(message)) + AROUND):
                for part, raw in await self._piece(context, model, piece, zone, label, of, HALVINGS):
                    result = checked(raw, part, zone, reserved=reserved)
                    unsupported += result.unsupported
                    secrets += result.secrets
                    for bullet in result.bullets:
                        kept.setdefault(bullet.text, bullet)
        for kind in secrets:
            log.warning("a %s in a summary was not kept", kind)
        return Digest(bullets=tuple(kept.values()), read_at=read_at, unsupported=unsupported, secrets=tuple(secrets))

    async def merged(self, context: JobContext, lines: Sequence[str], *, character: str, conversation_id: str) -> list[str]:
        """Fewer lines that say what matters of `lines`, for the context (WD-46). Raises AnswerUnusable, ModelError, BudgetSpent."""
        async with self._models.helper(self._character_model(character), chosen=self._config().summary.model) as model:
            system = words("summary_merge").replace("{words}", str(blocks.TOKENS_MAX // 4))
            request = _request(system, "\n".join(f"- {line}" for line in lines))
            hashed = input_hash(model.name, system, list(lines))

            async def make() -> Raw:
                return await self._answer(model, request, {"conversation_id": conversation_id})

            raw = await context.paid(f"merge {hashed[:24]}", hashed, make)
        return [text for text, _ in raw if not unsupported(text, lines, ()) and find_secret(text) is None]

    async def _piece(
        self, context: JobContext, model: ChatModel, talk: Sequence[Talk], zone: ZoneInfo, label: str, of: Mapping[str, object], halvings: int
    ) -> list[tuple[Sequence[Talk], Raw]]:
        system, text = words("summary"), f"Conversation: {one_line(label)}\nTime zone: {zone.key or 'local'}\n\n{rendered(talk, zone)}"
        hashed = input_hash(model.name, system, text)

        async def make() -> Raw:
            return await self._answer(model, _request(system, text), of)

        try:
            return [(talk, await context.paid(f"piece {hashed[:24]}", hashed, make))]
        except (AnswerUnusable, ContextOverflow, NoRoom) as error:
            if halvings == 0 or len(talk) < 2:
                raise AnswerUnusable(f"{len(talk)} messages were not summarised in form: {error}") from error
            log.warning("a summary is tried again in smaller pieces: %s", error)
        half = len(talk) // 2
        first = await self._piece(context, model, talk[:half], zone, label, of, halvings - 1)
        return first + await self._piece(context, model, talk[half:], zone, label, of, halvings - 1)

    async def _answer(self, model: ChatModel, request: ModelRequest, of: Mapping[str, object]) -> Raw:
        text, end = await self._background.ask(model, request, of)
        if end.reason is not Finish.STOP:  # cut off, filtered, or a tool called: never accepted as memory
            raise AnswerUnusable(f"the answer ended with {end.reason.value}")
        return parsed(text)

    def _character_model(self, character: str) -> str:
        return character_of(self._config(), character).model


def plain(talk: Sequence[Talk], *, reserved: Collection[str], read_at: datetime) -> Digest:
    """The extract as bullets, each with the one message it was taken from."""
    by_id = {message.id: message for message in talk}
    items = extract(words_of(talk))
    kept = {item.text: bullet_of(item.text, [by_id[item.source]], reserved=reserved) for item in items}
    return Digest(bullets=tuple(kept.values()), read_at=read_at)


def _request(system: str, text: str) -> ModelRequest:
    return ModelRequest(messages=(ModelMessage(role=Role.SYSTEM, text=system), ModelMessage(role=Role.USER, text=text)), purpose=PURPOSE)
