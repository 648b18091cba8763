"""Files of a message, brought from their platform after the message is stored and before its turn begins, off every receive loop (CH-7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

from channels.errors import AttachmentRefused, ConnectionLost
from channels.message import Account, Attachment, from_json, to_json
from channels.port import Channel, Fetching, Unknown
from gateway.attachments import UNKNOWN, Attachments, StoredFile
from gateway.delivery.outbox import asked
from memory import message_changes
from memory.conversations import Message
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

FETCH_LIMIT_S = 60.0
PAUSES_S = (0.5, 1.0, 2.0, 4.0)  # "not now" is asked again: a turn that goes on after a start may be there before its account is connected
AT_ONCE = 8  # files that may be on their way at a time: each lies in memory until it is kept


class Fetcher:
    def __init__(
        self,
        *,
        db: Database,
        attachments: Attachments,
        find_channel: Callable[[Account], Channel | None],
        clock: Callable[[], datetime],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._db = db
        self._attachments = attachments
        self._find_channel = find_channel
        self._clock = clock
        self._sleep = sleep
        self._few = asyncio.Semaphore(AT_ONCE)

    async def files(self, message: Message, account: Account) -> tuple[Mapping[str, Any], ...]:
        """The files of `message`, those that the platform still holds fetched and kept, and readable ones with their words. What cannot be fetched
        stays without a stored path."""
        files = message.attachments
        if any(map(_is_elsewhere, files)):
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(self._fetched(item, message, account)) for item in files]
            files = tuple(task.result() for task in tasks)
        files = tuple([await self._read(item) for item in files])
        if files != message.attachments:
            await self._db.write(lambda connection: message_changes.set_attachments(connection, message.id, files))
        return files

    async def _read(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        words = "" if item.get("words") else await self._attachments.words(item)
        return {**item, "words": words} if words else item

    async def _fetched(self, item: Mapping[str, Any], message: Message, account: Account) -> Mapping[str, Any]:
        if not _is_elsewhere(item):
            return item
        wanted, pauses = from_json(Attachment, item), iter(PAUSES_S)
        while True:
            async with self._few:
                data = await asked(self._brought(wanted, account), FETCH_LIMIT_S, f"fetching a file of message {message.id}")
                if isinstance(data, bytes):
                    return await self._kept(data, item, wanted, message)
            pause = next(pauses, None)
            if isinstance(data, Unknown) or pause is None:
                return item
            log.info("a file of message %s is asked for again in %g s: %s", message.id, pause, data)
            await self._sleep(pause)

    async def _brought(self, wanted: Attachment, account: Account) -> bytes | ConnectionLost:
        """The bytes, or why they cannot be had just now. AttachmentRefused: never."""
        channel = self._find_channel(account)
        if channel is None:
            return ConnectionLost("the account is not there yet")
        if not isinstance(channel, Fetching):
            raise AttachmentRefused("nothing can be fetched there")
        most = channel.capabilities.fetch_max_bytes
        if wanted.size > most:
            raise AttachmentRefused(f"it stays where it is: {wanted.size} bytes, and {most} are taken")
        try:
            return await channel.fetch(wanted, most)
        except ConnectionLost as error:
            return error

    async def _kept(self, data: bytes, item: Mapping[str, Any], wanted: Attachment, message: Message) -> Mapping[str, Any]:
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
