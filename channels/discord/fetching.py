"""Files that people sent: asked for anew, since their addresses are signed and soon void, and taken in up to a size (CH-7)."""

from __future__ import annotations

from typing import Any

import aiohttp
import discord

from channels.discord.client import GatewayClient
from channels.discord.outcomes import TRANSPORT
from channels.discord.payloads import File, Message
from channels.errors import AttachmentRefused
from channels.message import Attachment

OK = 200
LIMIT_S = 60.0


async def download(client: GatewayClient, session: aiohttp.ClientSession, attachment: Attachment, max_bytes: int) -> bytes:
    """The bytes of a file. AttachmentRefused when it is too large or not there; the library's errors when Discord cannot be asked."""
    file = await _found(client, attachment)
    if file.size > max_bytes:
        raise AttachmentRefused(f"the file is larger than {max_bytes} bytes")
    kept = bytearray()
    fault = ""
    try:
        async with session.get(file.url) as answer:
            if answer.status != OK:
                raise AttachmentRefused(f"Discord does not give the file out: status {answer.status}")
            async for piece in answer.content.iter_any():
                kept += piece
                if len(kept) > max_bytes:
                    raise AttachmentRefused(f"the file is larger than {max_bytes} bytes")
    except TRANSPORT as error:
        fault = type(error).__name__
    if fault:
        raise AttachmentRefused(f"the file did not arrive: {fault}")  # outside: the error names the address, which is signed
    return bytes(kept)


async def _found(client: GatewayClient, attachment: Attachment) -> File:
    channel_id, message_id, file_id = [*attachment.fetch_ref.split("/"), "", ""][:3]
    if not (channel_id.isdigit() and message_id.isdigit()):
        raise AttachmentRefused("the file has no place on Discord")
    try:
        answer: Any = await client.http.get_message(int(channel_id), int(message_id))
        message = Message.model_validate(answer)
    except (discord.NotFound, discord.Forbidden, ValueError) as error:
        raise AttachmentRefused("the message of the file is gone") from error
    held = [*message.attachments, *(file for snapshot in message.message_snapshots for file in snapshot.message.attachments)]
    for file in held:
        if file.id == file_id:
            return file
    raise AttachmentRefused("the file was taken out of its message")
