"""How a part becomes messages on Discord, and what is done when it refuses a detail of one (the table of CH-180 to CH-190)."""

from __future__ import annotations

import hashlib
import io
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import discord
from discord.http import handle_message_parameters

from channels.discord.buttons import view_of
from channels.discord.client import GatewayClient
from channels.discord.interactions import Pending
from channels.discord.outcomes import ARCHIVED, EMPTY, INTERACTION_GONE, LOCKED, MALFORMED, code_of, is_message_gone, is_too_large
from channels.discord.settings import CAPABILITIES
from channels.message import Action, clean, is_blank
from channels.port import Capabilities, OutboundPart
from channels.render import render
from channels.units import measure

log = logging.getLogger(__name__)

SHORTER = 1800  # units of a piece, should the platform count otherwise than we do
UPLOAD_MAX = 10_000_000  # bytes, where the server says nothing else
FILES_MAX = 10

NoteKey: TypeAlias = Literal["sent_outside_thread", "file_too_large"]
Note: TypeAlias = Callable[[NoteKey, str], str]
_NOTES: dict[NoteKey, str] = {
    "sent_outside_thread": "(The thread is closed, so the answer is here.)",
    "file_too_large": "(The file was too large to be sent here.)",
}


def english_note(key: NoteKey, _text: str) -> str:
    return _NOTES[key]


@dataclass(frozen=True, slots=True, kw_only=True)
class Post:
    """One message: `key` makes its nonce, so that the platform shows it once however often it is sent (CH-185)."""

    channel_id: str
    key: str
    text: str
    reply_to: str = ""
    files: tuple[tuple[str, bytes], ...] = ()
    actions: tuple[tuple[Action, ...], ...] = ()


def nonce(key: str) -> str:
    """24 characters; the platform takes 25."""
    return hashlib.sha256(key.encode()).hexdigest()[:24]


def channel_id(part: OutboundPart) -> str:
    return part.address.thread_id or part.address.chat_id


def unsendable(part: OutboundPart, capabilities: Capabilities = CAPABILITIES) -> str:
    """Why not even to try; empty when there is no reason."""
    if is_blank(part.text) and not part.attachments:
        return "there is nothing to show"
    if measure(clean(part.text), capabilities.text_unit) > capabilities.text_max:
        return "message is too long"
    if len(part.attachments) > FILES_MAX:
        return f"a message holds at most {FILES_MAX} files"
    where = channel_id(part)
    return "" if where.isdigit() else f"{where!r} is no channel"


class Courier:
    """Makes the calls. Raises the library's errors; `outcomes` says what they mean."""

    def __init__(self, client: GatewayClient, pending: Pending, *, note: Note) -> None:
        self._client = client
        self._pending = pending
        self._note = note

    async def send(self, part: OutboundPart, data: Sequence[bytes]) -> tuple[str, ...]:
        """The ids of the messages that are on show for this part. `data`: the bytes of its files."""
        post = Post(
            channel_id=channel_id(part),
            key=part.part_id,
            text=clean(part.text),
            reply_to=part.reply_to if part.reply_to.isdigit() else "",
            files=tuple((file.name, each) for file, each in zip(part.attachments, data, strict=True)),
            actions=part.actions,
        )
        if any(len(data) > self._upload_max(post.channel_id) for _, data in post.files):
            post = self._without_files(post)
        interaction = await self._pending.take(part.part_id)
        if interaction is not None and (answered := await self._answer(interaction, post)):
            return answered
        return await self._deliver(post)

    async def edit(self, part: OutboundPart, message_id: str) -> None:
        with handle_message_parameters(
            content=clean(part.text), allowed_mentions=discord.AllowedMentions.none(), flags=discord.MessageFlags(suppress_embeds=True)
        ) as params:
            await self._client.http.edit_message(int(channel_id(part)), int(message_id), params=params)

    async def _answer(self, interaction: discord.Interaction, post: Post) -> tuple[str, ...]:
        """As the answer to a slash command; nothing when that is not possible any more."""
        try:
            shown = await interaction.edit_original_response(
                content=post.text,
                attachments=_files(post),
                allowed_mentions=discord.AllowedMentions.none(),
                view=view_of(post.actions) or discord.utils.MISSING,
            )
        except discord.HTTPException as error:
            if error.code not in INTERACTION_GONE and error.status not in (401, 404):
                raise
            log.info("a slash command can be answered no more: the answer goes as a message of its own")
            self._pending.drop(interaction)
            return ()
        return (str(shown.id),)

    async def _deliver(self, post: Post) -> tuple[str, ...]:
        """With one remedy for each thing that a server may refuse."""
        try:
            return (await self._post(post),)
        except discord.HTTPException as error:
            match code_of(error):
                case code if code in (ARCHIVED, LOCKED):
                    return await self._past_the_archive(post)
                case _ if post.files and is_too_large(error):
                    return (await self._post(self._without_files(post)),)
                case _ if post.reply_to and is_message_gone(error):  # a server that does not heed `fail_if_not_exists`
                    return (await self._post(replace(post, reply_to="")),)
                case code if code in (MALFORMED, EMPTY):
                    return await self._plainer(post)
                case _:
                    raise

    async def _past_the_archive(self, post: Post) -> tuple[str, ...]:
        """A thread that is archived or locked is opened once, where we may; else the channel it hangs on gets the answer, and a note (CH-183)."""
        try:
            await self._client.http.edit_channel(int(post.channel_id), archived=False)
            return (await self._post(post),)
        except discord.HTTPException as error:
            log.info("a closed thread cannot be opened: %s", error.status)
        thread = self._client.get_channel(int(post.channel_id))
        parent_id = str(thread.parent_id) if isinstance(thread, discord.Thread) else ""
        parent_id = parent_id or await self._parent(post.channel_id)
        bare = replace(post, actions=())
        note = replace(bare, channel_id=parent_id, key=f"{post.key}#note", text=self._note("sent_outside_thread", post.text), reply_to="", files=())
        return (await self._post(note), await self._post(replace(post, channel_id=parent_id, key=f"{post.key}#parent", reply_to="")))

    async def _parent(self, thread_id: str) -> str:
        answer: Any = await self._client.http.get_channel(int(thread_id))
        return str(answer["parent_id"])

    async def _plainer(self, post: Post) -> tuple[str, ...]:
        """The server takes the message for malformed: once more in shorter pieces, in answer to nothing and without buttons."""
        log.error("Discord refuses a message of %d units as malformed: it is cut again", measure(post.text, CAPABILITIES.text_unit))
        pieces = render(post.text, replace(CAPABILITIES, text_max=SHORTER)) or [None]
        ids: list[str] = []
        for number, piece in enumerate(pieces):
            text, files = (piece.text if piece else "", post.files if number == 0 else ())
            ids.append(await self._post(replace(post, key=f"{post.key}#{number}", text=text, files=files, actions=(), reply_to="")))
        return tuple(ids)

    async def _post(self, post: Post) -> str:
        reference: Any = discord.utils.MISSING
        if post.reply_to:
            reference = discord.MessageReference(
                message_id=int(post.reply_to), channel_id=int(post.channel_id), fail_if_not_exists=False
            ).to_message_reference_dict()
        files = _files(post)
        with handle_message_parameters(
            content=post.text or None,
            files=files or discord.utils.MISSING,
            view=view_of(post.actions) or discord.utils.MISSING,
            nonce=nonce(post.key),
            allowed_mentions=discord.AllowedMentions.none(),
            message_reference=reference,
            mention_author=False,
            flags=discord.MessageFlags(suppress_embeds=True),
        ) as params:
            answer: Any = await self._client.http.send_message(int(post.channel_id), params=params)
        return str(answer["id"])

    def _without_files(self, post: Post) -> Post:
        note = self._note("file_too_large", post.text)
        text = "\n".join(line for line in (post.text, note) if line)
        fits = measure(text, CAPABILITIES.text_unit) <= CAPABILITIES.text_max
        return replace(post, text=text if fits else post.text, files=(), key=f"{post.key}#text")

    def _upload_max(self, channel: str) -> int:
        """What the server of a channel takes."""
        guild = getattr(self._client.get_channel(int(channel)), "guild", None)
        return guild.filesize_limit if isinstance(guild, discord.Guild) else UPLOAD_MAX


def _files(post: Post) -> Sequence[discord.File]:
    return [discord.File(io.BytesIO(data), filename=name) for name, data in post.files]
