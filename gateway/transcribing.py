"""Voice notes as words: they are sent to the configured endpoint, and its words are kept with the file (CH-7).

Ours goes before what the platform has written down, which is poor in some languages (WX-35, docs/decisions/0011); that counts where nobody is
configured, the sound cannot be had or nothing is heard. Without any words the note is named, and the turn goes on.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Protocol

from agent.errors import TranscriptionFailed
from channels.message import Attachment, clean, from_json
from gateway.attachments import Attachments
from memory import message_changes
from memory.conversations import Message
from memory.database import Database

log = logging.getLogger(__name__)

SIZE_MAX = 20_000_000  # bytes; the usual limit of such endpoints is 25 MB
OURS = "ours"
Items = Sequence[Mapping[str, Any]]


class Transcriber(Protocol):
    async def words(self, data: bytes, *, name: str, mime: str) -> str: ...


class Transcribing:
    """`make`: a transcriber by the present configuration; None when there is none."""

    def __init__(self, *, db: Database, attachments: Attachments, make: Callable[[], Transcriber | None]) -> None:
        self._db = db
        self._attachments = attachments
        self._make = make

    async def words(self, message: Message, items: Items) -> tuple[Mapping[str, Any], ...]:
        """The files of `message` with the words of its voice notes, as far as they can be had."""
        if not any(map(_is_to_hear, items)) or (transcriber := self._make()) is None:
            return tuple(items)
        heard = [await self._heard(transcriber, item, message.id) if _is_to_hear(item) else item for item in items]
        if heard != list(items):
            await self._db.write(lambda connection: message_changes.set_attachments(connection, message.id, heard))
        return tuple(heard)

    async def _heard(self, transcriber: Transcriber, item: Mapping[str, Any], message_id: str) -> Mapping[str, Any]:
        file = from_json(Attachment, dict(item))
        try:
            data = await self._attachments.read(file)
            text = clean(await transcriber.words(data, name=_named(file), mime=file.mime)).strip()
        except (TranscriptionFailed, OSError) as error:
            log.warning("a voice note of message %s could not be written down: %s", message_id, error)
            return item
        return {**item, "transcript": text, "transcript_origin": OURS} if text else item


def _is_to_hear(item: Mapping[str, Any]) -> bool:
    """A recording that is here, and that we have not written down."""
    is_sound = str(item.get("kind")) == "audio" or str(item.get("mime", "")).startswith("audio/")
    is_done = bool(item.get("transcript")) and item.get("transcript_origin") == OURS
    return is_sound and bool(item.get("stored_path")) and not is_done and int(item.get("size") or 0) <= SIZE_MAX


def _named(file: Attachment) -> str:
    """Endpoints tell the format by the ending."""
    return file.name if PurePath(file.name).suffix else f"{file.name}.{file.mime.partition('/')[2] or 'ogg'}"
