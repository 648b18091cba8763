"""Files of a message, brought from their platform after the message is stored and before its turn begins, off every receive loop (CH-7)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from channels.message import Account, Attachment, from_json, to_json
from channels.port import Channel, Fetching, Unknown
from gateway.attachments import Attachments
from gateway.outbox import asked
from memory import conversations
from memory.conversations import Message
from memory.database import Database
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

FETCH_MAX = 20_000_000  # bytes of one file
FETCH_LIMIT_S = 60.0


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

    async def files(self, message: Message, account: Account) -> tuple[Mapping[str, Any], ...]:
        """The files of `message`, those that the platform still holds fetched and kept. What cannot be fetched stays without a stored path."""
        channel = self._find_channel(account)
        if not isinstance(channel, Fetching) or not any(map(_is_elsewhere, message.attachments)):
            return message.attachments
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._fetched(item, message, channel)) for item in message.attachments]
        files = [task.result() for task in tasks]
        if any(map(_is_kept, files)):
            await self._db.write(lambda connection: conversations.set_attachments(connection, message.id, files))
        return tuple(files)

    async def _fetched(self, item: Mapping[str, Any], message: Message, channel: Fetching) -> Mapping[str, Any]:
        if not _is_elsewhere(item):
            return item
        wanted = from_json(Attachment, item)
        data = await asked(channel.fetch(wanted, FETCH_MAX), FETCH_LIMIT_S, f"fetching a file of message {message.id}")
        if isinstance(data, Unknown):
            return item
        try:
            kept = await self._attachments.keep(data, name=wanted.name, person_id=message.author_person_id, now=self._clock())
        except (StoreUnavailable, OSError) as error:
            log.warning("a file of message %s cannot be kept: %s", message.id, error)
            return item
        return {**item, **to_json(kept.attachment), "kind": wanted.kind}


def _is_kept(item: Mapping[str, Any]) -> bool:
    return bool(item.get("stored_path"))


def _is_elsewhere(item: Mapping[str, Any]) -> bool:
    return bool(item.get("fetch_ref")) and not _is_kept(item)
