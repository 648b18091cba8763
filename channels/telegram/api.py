"""The Bot API as the adapter calls it: three pools (polling, sending, files), so that none can use up another's connections (CH-152).

Errors are the library's own; `outcomes` says what they mean.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any, cast
from urllib.parse import urlencode

import aiohttp
import httpx
from telegram import (
    Bot,
    InputMediaAudio,
    InputMediaDocument,
    InputMediaPhoto,
    LinkPreviewOptions,
    Message,
    MessageEntity,
    ReplyParameters,
)
from telegram.error import BadRequest
from yarl import URL

from channels.errors import AttachmentRefused, ConnectionLost
from channels.message import Entity
from channels.telegram.buttons import keyboard
from channels.telegram.outgoing import Step
from channels.telegram.settings import TelegramSettings
from channels.telegram.updates import User
from channels.telegram.wire import ANSWER_S, CONNECT_S, Wire

OK = 200
HOLD_S = 30  # how long the platform may hold a poll without news
POLL_S = 40.0
NO_PREVIEW = LinkPreviewOptions(is_disabled=True)  # CH-137

DOWNLOAD = aiohttp.ClientTimeout(connect=CONNECT_S, sock_read=ANSWER_S)

logging.getLogger("telegram").setLevel(logging.WARNING)  # it logs addresses with the token in them (CH-160)


class _Answers(Wire):
    """Leaves of a message that we sent only what we need of it. Else a field that the library cannot parse would make it unknown what was shown."""

    @staticmethod
    def parse_json_payload(payload: bytes) -> dict[str, Any]:
        answer = Wire.parse_json_payload(payload)
        result: object = answer.get("result")
        bare = [_bare(each) for each in cast("list[object]", result)] if isinstance(result, list) else _bare(result)
        return answer | {"result": bare}


def _bare(result: object) -> object:
    if result is None:
        return True  # some servers say nothing when all went well
    if not isinstance(result, dict) or "message_id" not in result:
        return cast("object", result)
    return {"message_id": cast("object", result["message_id"]), "date": 0, "chat": {"id": 0, "type": "private"}}


class Api:
    """One bot, connected. `sends` and `polls` are closed by `connected`."""

    def __init__(self, bot: Bot, poll: Wire, files: Wire) -> None:
        self.bot = bot
        self._poll = poll
        self._files = files

    async def me(self) -> User:
        """Who we are. ValueError when the answer names nobody."""
        return User.model_validate(await self._poll.post(f"{self.bot.base_url}/getMe"))

    async def updates(self, offset: int | None, kinds: Sequence[str], *, hold_s: int = HOLD_S) -> list[object]:
        """Raw updates from `offset` on, or all that nobody confirmed. The library's own method would give none if it cannot parse one (CH-150)."""
        asked: dict[str, object] = {"timeout": hold_s, "allowed_updates": json.dumps(kinds)}
        if offset is not None:
            asked["offset"] = offset
        answer: object = await self._poll.post(f"{self.bot.base_url}/getUpdates?{urlencode(asked)}", read_timeout=POLL_S)
        if not isinstance(answer, list):
            raise ConnectionLost("Telegram's answer is no list of updates: is the address really that of a Bot API?", code="no_api")
        return cast("list[object]", answer)

    async def perform(self, step: Step, data: Sequence[bytes]) -> tuple[str, ...]:
        """Make the call of a step; `data` are the bytes of its files. Returns the ids of the messages that are on show for it."""
        thread = int(step.thread_id) if step.thread_id else None
        reply = ReplyParameters(int(step.reply_to), allow_sending_without_reply=True) if step.reply_to.isdigit() else None
        entities, markup = _entities(step.entities), keyboard(step.actions)
        if step.edit_of:
            await self.bot.edit_message_text(
                step.text,
                chat_id=step.chat_id,
                message_id=int(step.edit_of),
                entities=entities,
                link_preview_options=NO_PREVIEW,
                reply_markup=markup,
            )
            return (step.edit_of,)
        if not step.files:
            sent = await self.bot.send_message(
                step.chat_id,
                step.text,
                entities=entities,
                message_thread_id=thread,
                reply_parameters=reply,
                link_preview_options=NO_PREVIEW,
                reply_markup=markup,
            )
            return _ids([sent])
        if len(step.files) > 1:
            kind = {"photo": InputMediaPhoto, "audio": InputMediaAudio, "document": InputMediaDocument}[step.medium]
            media = [
                kind(each, filename=file.name, caption=step.text or None, caption_entities=entities)
                if number == 0
                else kind(each, filename=file.name)
                for number, (file, each) in enumerate(zip(step.files, data, strict=True))
            ]
            return _ids(await self.bot.send_media_group(step.chat_id, media, message_thread_id=thread, reply_parameters=reply))
        names = [file.name for file in step.files]
        call = {"photo": self.bot.send_photo, "audio": self.bot.send_audio, "document": self.bot.send_document}[step.medium]
        sent = await call(
            step.chat_id,
            data[0],
            filename=names[0],
            caption=step.text or None,
            caption_entities=entities,
            message_thread_id=thread,
            reply_parameters=reply,
            reply_markup=markup,
        )
        return _ids([sent])

    async def download(self, file_id: str, max_bytes: int) -> bytes:
        """A file's bytes. AttachmentRefused when it is too large or not there. Its address holds the token and is named nowhere (CH-160)."""
        try:
            file = await self.bot.get_file(file_id)
        except BadRequest as error:  # also "file is too big"
            raise AttachmentRefused(f"Telegram does not give the file out: {error}") from error
        if not file.file_path:
            raise AttachmentRefused("Telegram does not say where the file is")
        if (file.file_size or 0) > max_bytes:
            raise AttachmentRefused(f"the file is larger than {max_bytes} bytes")
        kept = bytearray()
        fault = ""
        try:
            async with self._files.opened("GET", URL(file.file_path, encoded=True), timeout=DOWNLOAD) as answer:
                if answer.status != OK:
                    raise AttachmentRefused(f"Telegram does not give the file out: status {answer.status}")
                async for piece in answer.content.iter_any():
                    kept += piece
                    if len(kept) > max_bytes:
                        raise AttachmentRefused(f"the file is larger than {max_bytes} bytes")
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            fault = type(error).__name__
        if fault:
            raise AttachmentRefused(f"the file did not arrive: {fault}")  # outside: the error names the address
        return bytes(kept)


@asynccontextmanager
async def connected(settings: TelegramSettings) -> AsyncGenerator[Api]:
    """New pools, closed at the end. Nothing is asked of the platform yet."""
    base = settings.base_url.rstrip("/")
    async with AsyncExitStack() as stack:
        trust = await asyncio.to_thread(httpx.create_ssl_context)  # reads all the certificates: once, and beside the event loop
        poll, send, files = Wire(4, trust), _Answers(32, trust), Wire(4, trust)
        for wire in (poll, send, files):
            stack.push_async_callback(wire.shutdown)
        bot = Bot(settings.token, base_url=f"{base}/bot", base_file_url=f"{base}/file/bot", request=send, get_updates_request=poll)
        yield Api(bot, poll, files)


def _entities(entities: Sequence[Entity]) -> list[MessageEntity] | None:
    return [
        MessageEntity(entity.type, entity.offset, entity.length, url=entity.url or None, language=entity.language or None) for entity in entities
    ] or None


def _ids(messages: Sequence[Message]) -> tuple[str, ...]:
    return tuple(str(message.message_id) for message in messages)
