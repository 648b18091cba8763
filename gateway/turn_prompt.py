"""What a turn is made of before any model is asked: the newest messages with their files and voices, the talk, and what stands around them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from agent.characters import Character
from agent.llm.port import Image
from agent.turn import Said, Turn
from channels.message import Account
from gateway import casting
from gateway.arrivals.fetching import Fetcher
from gateway.attachments import Attachments
from gateway.config import Config
from gateway.equipping import Equipment
from gateway.sitting import Sitting
from gateway.talk import history, late_note, spoken
from gateway.transcribing import Transcribing
from gateway.turn_store import TurnStart
from gateway.zone_names import first_known


class TurnPrompts:
    def __init__(
        self,
        *,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        attachments: Attachments,
        fetcher: Fetcher,
        transcribing: Transcribing,
    ) -> None:
        self._clock = clock
        self._config = config
        self._attachments = attachments
        self._fetcher = fetcher
        self._transcribing = transcribing

    async def of(self, sitting: Sitting, character: Character, equipment: Equipment, *, sees_images: bool) -> Turn:
        start, chat, config = sitting.start, sitting.start.conversation, self._config()
        alike = chat.kind == "challenge"
        newest = await self._newest(start, sees_images=sees_images)
        now = self._clock()
        zone = first_known(chat.timezone, str(start.person.get("timezone") or ""), config.timezone)
        stale = timedelta(seconds=config.delivery.stale_s)
        late = late_note(min(item.since for item in sitting.running.items), now, late_after=stale, language=start.prompt_language)
        return Turn(
            character=character,
            persona="" if alike else chat.persona,
            system_text=equipment.system,
            head_notes=(*casting.head_notes(config, chat, character), *equipment.head_notes),
            saved=equipment.saved.shown,
            standing_notes=equipment.standing_notes,
            recalled=equipment.recalled,
            newest=newest,
            history=told_talk(start, character),
            now=now.astimezone(ZoneInfo(zone)) if zone else now.astimezone(),
            zone=zone or "local",
            tail_notes=(*equipment.tail_notes, *([late] if late and not alike else [])),
            clock=not alike,
        )

    async def _newest(self, start: TurnStart, *, sees_images: bool) -> Said:
        chat, language = start.conversation, start.prompt_language
        account = Account(channel=chat.channel, name=chat.account)
        words: list[str] = []
        images: list[Image] = []
        attached: list[str] = []
        for question in start.questions:
            held = await self._transcribing.words(question, await self._fetcher.files(question, account))
            shown = await self._attachments.for_prompt(held, sees_images=sees_images, language=language)
            words.append(spoken(question, language=language, files=shown.words, in_group=chat.space_id is not None))
            images += shown.images
            attached += shown.texts
        return Said(text="\n".join(words), by_us=False, images=tuple(images), attached=tuple(attached))


def told_talk(start: TurnStart, character: Character) -> tuple[Said, ...]:
    """The talk before the newest messages, as `character` hears it."""
    chat = start.conversation
    return history(
        start.history,
        language=start.prompt_language,
        in_group=chat.space_id is not None,
        answering=casting.one_of_several(chat, character),
        dates=start.dates,
    )
