"""Out: answers as streams on the frame of their question, everything else as messages; each call ends in one outcome (WX-104 to WX-112)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from channels.errors import ConnectionLost
from channels.given import ReadFile
from channels.message import Address, Attachment, ChatType, InboundEvent, clean, is_blank
from channels.newest import keep_newest
from channels.port import Capabilities, Markup, NeedsOperator, OutboundPart, Refused, SendOutcome, Sent, TextUnit, TryLater, Unknown, Vault
from channels.render import render
from channels.units import measure
from channels.wechat.wecom import convert, files
from channels.wechat.wecom.connection import Ack, Connection, NoAck, NotWritten, new_req_id
from channels.wechat.wecom.settings import ACK_S, CAPABILITIES, CONFLICT_WAITS_S, LATE_ACK_S, SENT_MAX, SNAPSHOT_S, STREAM_S
from channels.wechat.wecom.streams import Stream, Streams, req_id_of, rest, shown_as
from channels.wechat.words import Say

OK, CONFLICT, UNKNOWN_FRAME, STREAM_DIED = 0, 6000, 846605, 846608
REMEMBERED_MAX = 500

log = logging.getLogger(__name__)

_SENT = replace(CAPABILITIES, text_unit=TextUnit.CODEPOINTS, text_max=SENT_MAX, markup=Markup.MARKDOWN)
GONE = Refused("the platform knows the question no longer", gone=True)


@dataclass(slots=True)
class Unacked:
    """An end of a stream, or a message, of which nobody knows yet. `until`: an acknowledgement may still come, on the loop's clock."""

    late: asyncio.Future[Ack]
    until: float
    ids: tuple[str, ...]


class Sender:
    """Sends for one bot. `connection` and `group` are those of the present connection, None while there is none; `refused` is why the bot may not."""

    def __init__(
        self, *, account: str, capabilities: Capabilities, vault: Vault, say: Say, read_file: ReadFile, second: float
    ) -> None:
        self.connection: Connection | None = None
        self.group: asyncio.TaskGroup | None = None
        self.refused: NeedsOperator | None = None
        self._account = account
        self._can = capabilities
        self._vault = vault
        self._say = say
        self._read_file = read_file
        self._second = second
        self._streams = Streams()
        self._groups: set[str] = set()
        self._unacked: dict[str, Unacked] = {}  # by part
        self._shown: dict[str, tuple[str, ...]] = {}  # what a try of a part has shown already

    async def know_groups(self, events: list[InboundEvent]) -> None:
        fresh = {event.chat_id for event in events if event.chat_type is ChatType.GROUP} - self._groups
        if fresh:
            self._groups |= fresh
            await self._vault.put({f"group/{chat}": b"1" for chat in fresh})

    async def send(self, part: OutboundPart) -> SendOutcome:
        if (outcome := self._unsendable(part)) is not None:
            return outcome
        req_id = convert.req_id_of(part.reply_to)
        known = self._streams.get(req_id) if req_id else None
        if (waiting := self._unacked.get(part.part_id)) is not None:
            return await self._again(part, waiting, part.text)
        if part.preview:
            return await self._opened(part, req_id) if req_id and known is None else TryLater()
        if req_id and (known is None or not known.ended) and not is_blank(part.text):
            stream = known or self._streams.open(req_id, part.address.chat_id)
            outcome = await self._ended(part, req_id, stream)
            if isinstance(outcome, Sent) and part.attachments:
                return await self._messages(part, "", outcome.platform_ids)
            return outcome
        return await self._messages(part, part.text)

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome:
        """The next snapshot of a growing answer, or its end: that is the part which takes its place (`edit_of`)."""
        if (outcome := self._unsendable(part)) is not None:
            return outcome
        req_id = req_id_of(message_id)
        if not req_id:
            return Refused("the message cannot be changed any more", gone=True)
        stream = self._streams.get(req_id) or self._streams.open(req_id, address.chat_id, inherited=True)
        if (waiting := self._unacked.get(part.part_id)) is not None:
            return await self._again(part, waiting, f"{part.text}\n\n{self._say(part.text, 'sent_again')}")
        if part.edit_of:
            outcome = await self._ended(part, req_id, stream)
            if isinstance(outcome, Sent) and part.attachments:
                return await self._messages(part, "", outcome.platform_ids)
            return outcome
        return await self._snapshot(req_id, stream, part.text)

    def _unsendable(self, part: OutboundPart) -> SendOutcome | None:
        if self.refused is not None:
            return self.refused
        if is_blank(part.text) and not part.attachments:
            return Refused("there is nothing to show")
        if measure(clean(part.text), self._can.text_unit) > self._can.text_max:
            return Refused("message is too long")
        return TryLater() if self.connection is None and part.part_id not in self._unacked else None

    async def _opened(self, part: OutboundPart, req_id: str) -> SendOutcome:
        stream = self._streams.open(req_id, part.address.chat_id)
        outcome = await self._snapshot(req_id, stream, part.text)
        if self.group is not None and isinstance(outcome, Sent):
            self.group.create_task(self._watch(req_id, stream), name=f"stream {req_id}")
        return outcome

    async def _snapshot(self, req_id: str, stream: Stream, text: str) -> SendOutcome:
        """One frame a second at most; a stream that is old is ended by `_watch`, and what comes after is not shown as a snapshot."""
        now = asyncio.get_running_loop().time()
        if stream.ended:
            return Sent((shown_as(req_id),))
        if stream.speaking.locked() or now - stream.sent < SNAPSHOT_S * self._second * 0.9:
            return TryLater()
        async with stream.speaking:
            outcome = await self._frame(req_id, stream, text, finish=False)
            if isinstance(outcome, Sent | Unknown):
                stream.shown = text
            return Sent((shown_as(req_id),)) if isinstance(outcome, Unknown) else outcome

    async def _watch(self, req_id: str, stream: Stream) -> None:
        """End a stream before the platform does (WX-106)."""
        await asyncio.sleep(STREAM_S * self._second)
        async with stream.speaking:
            if not stream.ended:
                stream.kept = stream.shown
                note = self._say(stream.shown, "wecom_continued")
                await self._frame(req_id, stream, f"{stream.shown}\n\n{note}".strip(), finish=True)
                stream.ended = True

    async def _ended(self, part: OutboundPart, req_id: str, stream: Stream) -> SendOutcome:
        """The end of a stream with the whole answer; what it cannot show any more follows as a message."""
        async with stream.speaking:
            if stream.ended:
                left = rest(part.text, stream.kept) if stream.kept is not None else part.text
                return await self._messages(part, left) if not is_blank(left) else Sent((shown_as(req_id),))
            outcome = await self._frame(req_id, stream, part.text, finish=True, part=part)
            if outcome is not GONE:
                stream.ended = stream.ended or isinstance(outcome, Sent | Unknown | Refused)
                return outcome
            stream.ended, stream.kept = True, stream.shown
        left = rest(part.text, stream.kept) if stream.kept else part.text
        if stream.inherited:  # something of it is on show, perhaps all
            left = f"{left}\n\n{self._say(left, 'sent_again')}"
        return await self._messages(part, left)

    async def _frame(self, req_id: str, stream: Stream, text: str, *, finish: bool, part: OutboundPart | None = None) -> SendOutcome:
        """One frame of a stream. `GONE`: the platform knows the question or the stream no longer, and nothing was shown."""
        connection = self.connection
        if connection is None:
            return TryLater()
        body = {"msgtype": "stream", "stream": {"id": stream.id, "finish": finish, "content": clean(text)}}
        loop = asyncio.get_running_loop()
        stream.opened = stream.opened or loop.time()
        stream.sent = loop.time()
        for wait_s in (*CONFLICT_WAITS_S, None):
            try:
                ack = await connection.call("aibot_respond_msg", body, req_id=req_id, within_s=ACK_S * self._second)
            except NotWritten:
                return TryLater()
            except NoAck as error:
                if finish and part is not None:
                    self._remember(part, error.late, (shown_as(req_id),))
                return Unknown(str(error))
            if ack.code != CONFLICT or wait_s is None:
                return _stream_outcome(ack, req_id)
            await asyncio.sleep(wait_s * self._second)
        return TryLater(CONFLICT_WAITS_S[-1])

    async def _messages(self, part: OutboundPart, text: str, done: tuple[str, ...] = ()) -> SendOutcome:
        """Words and files as messages of their own (WX-112); a part that was stopped between two goes on where it stopped."""
        pieces: list[str | Attachment] = [piece.text for piece in render(text, _SENT)] if text else []
        ids = [*done, *self._shown.pop(part.part_id, ())]
        for step in [*pieces, *part.attachments][len(ids) - len(done) :]:
            outcome = await self._message(part, step)
            if not isinstance(outcome, Sent):
                self._shown[part.part_id] = tuple(ids[len(done) :])
                keep_newest(self._shown, REMEMBERED_MAX)
                return outcome
            ids += outcome.platform_ids
        return Sent(tuple(ids)) if ids else Refused("there is nothing to show")

    async def _message(self, part: OutboundPart, step: str | Attachment) -> SendOutcome:
        connection = self.connection
        if connection is None:
            return TryLater()
        try:
            content = {"msgtype": "markdown", "markdown": {"content": step}} if isinstance(step, str) else await self._uploaded(connection, step)
        except files.NotTaken as error:
            log.warning("%s: a file is not taken: %s", self._account, error)
            if not part.file_note:
                return Refused(f"a file is not taken: {error}")
            content = {"msgtype": "markdown", "markdown": {"content": clean(part.file_note)}}
        except OSError as error:
            return Refused(f"a file cannot be read: {error.strerror or type(error).__name__}")
        except ConnectionLost:
            return TryLater()  # nothing was shown yet
        chat = part.address.chat_id
        body = {"chatid": chat, "chat_type": 2 if await self._is_group(chat) else 1, **content}
        req_id = new_req_id("aibot_send_msg")
        try:
            ack = await connection.call("aibot_send_msg", body, req_id=req_id, within_s=ACK_S * self._second)
        except NotWritten:
            return TryLater()
        except NoAck as error:
            self._remember(part, error.late, (req_id,))
            return Unknown(str(error))
        if ack.code == CONFLICT:
            return TryLater(CONFLICT_WAITS_S[-1])
        return Sent((req_id,)) if ack.code == OK else Refused(f"WeCom refuses the message ({ack})")

    async def _again(self, part: OutboundPart, waiting: Unacked, text: str) -> SendOutcome:
        """Nobody acknowledged the first try: it is waited for up to 30 s in all, and then the words go out once more, marked (WX-108)."""
        left = waiting.until - asyncio.get_running_loop().time()
        if left > 0 and not waiting.late.done():
            await asyncio.wait([waiting.late], timeout=left)
        if waiting.late.done() and not waiting.late.cancelled() and waiting.late.result().code == OK:
            outcome: SendOutcome = Sent(waiting.ids)
        else:
            outcome = await self._messages(part, text)
        if not isinstance(outcome, TryLater | Unknown):
            self._unacked.pop(part.part_id, None)
        return outcome

    def _remember(self, part: OutboundPart, late: asyncio.Future[Ack], ids: tuple[str, ...]) -> None:
        until = asyncio.get_running_loop().time() + (LATE_ACK_S - ACK_S) * self._second
        self._unacked[part.part_id] = Unacked(late, until, ids)
        keep_newest(self._unacked, REMEMBERED_MAX)

    async def _uploaded(self, connection: Connection, file: Attachment) -> dict[str, Any]:
        data = await self._read_file(file)
        kind = files.medium(file, len(data))

        async def ask(cmd: str, body: Mapping[str, Any]) -> Mapping[str, Any]:
            ack = await connection.call(cmd, body, req_id=new_req_id(cmd), within_s=ACK_S * self._second * 2)
            if ack.code != OK:
                raise files.NotTaken(str(ack))
            return ack.body or {}

        return {"msgtype": kind, kind: {"media_id": await files.upload(ask, kind, file, data)}}

    async def _is_group(self, chat: str) -> bool:
        if chat not in self._groups and await self._vault.get(f"group/{chat}") is not None:
            self._groups.add(chat)
        return chat in self._groups


def _stream_outcome(ack: Ack, req_id: str) -> SendOutcome:
    match ack.code:
        case code if code == OK:
            return Sent((shown_as(req_id),))
        case code if code in (UNKNOWN_FRAME, STREAM_DIED):
            return GONE
        case code if code == CONFLICT:
            return TryLater(CONFLICT_WAITS_S[-1])
        case _:
            return Refused(f"WeCom refuses the answer ({ack})")
