"""Files of a message, brought from their platform after the message is stored and before its turn begins, off every receive loop (CH-7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from channels.message import Account, Attachment, from_json, to_json
from channels.port import Channel, Fetching, Unknown
from gateway.attachments import UNKNOWN, Attachments, StoredFile
from gateway.outbox import asked
from memory import message_changes
from memory.conversations import Message
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

FETCH_LIMIT_S = 60.0
AT_ONCE = 8  # files that may be on their way at a time: each lies in memory until it is kept


class Fetcher:
    def __init__(
        self,
        *,
        db: Database,
        attachments: Attachments,
        find_channel: Callable[[Account], Channel | None],
        clock: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._attachments = attachments
        self._find_channel = find_channel
        self._clock = clock
        self._few = asyncio.Semaphore(AT_ONCE)

    async def files(self, message: Message, account: Account) -> tuple[Mapping[str, Any], ...]:
        """The files of `message`, those that the platform still holds fetched and kept, and readable ones with their words. What cannot be fetched
        stays without a stored path."""
        channel = self._find_channel(account)
        files = message.attachments
        if isinstance(channel, Fetching) and any(map(_is_elsewhere, files)):
            most = channel.capabilities.fetch_max_bytes
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._fetched(item, message, channel, most)) for item in files]
            files = tuple(task.result() for task in tasks)
        files = tuple([await self._read(item) for item in files])
        if files != message.attachments:
            await self._db.write(lambda connection: message_changes.set_attachments(connection, message.id, files))
        return files

    async def _read(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        words = "" if item.get("words") else await self._attachments.words(item)
        return {**item, "words": words} if words else item

    async def _fetched(self, item: Mapping[str, Any], message: Message, channel: Fetching, most: int) -> Mapping[str, Any]:
        if not _is_elsewhere(item):
            return item
        wanted = from_json(Attachment, item)
        if wanted.size > most:
            log.info("a file of message %s is left where it is: %s bytes, and %s are taken", message.id, wanted.size, most)
            return item
        async with self._few:
            data = await asked(channel.fetch(wanted, most), FETCH_LIMIT_S, f"fetching a file of message {message.id}")
            if isinstance(data, Unknown):
                return item
            try:
                kept = await self._attachments.keep(data, name=wanted.name, person_id=message.author_person_id, now=self._clock())
            except (StoreUnavailable, OSError) as error:
                log.warning("a file of message %s cannot be kept: %s", message.id, error)
                return item
        words = {"transcript": wanted.transcript, "transcript_origin": wanted.transcript_origin}
        return {**item, **to_json(kept.attachment), "kind": _kind(wanted.kind, kept), **words}


def _kind(told: str, kept: StoredFile) -> str:
    """What the sender called it, unless its bytes are of another kind: a text is no picture, and no recording to be written down."""
    return kept.kind if told in ("image", "audio", "video") and kept.mime != UNKNOWN and kept.kind != told else told


def _is_elsewhere(item: Mapping[str, Any]) -> bool:
    return bool(item.get("fetch_ref")) and not item.get("stored_path")
