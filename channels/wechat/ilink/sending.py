"""Out: one part as messages within the budget of its person, each call ending in one outcome (CH-11, WX-36 to WX-46).

What was used is counted before a request leaves: after a crash too little may go out, never too much.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime
from typing import Any, TypeVar

from channels.errors import ConnectionLost
from channels.given import ReadFile
from channels.message import Attachment, clean, safe_name
from channels.port import Capabilities, OutboundPart, Refused, SendOutcome, Sent, TryLater, Unknown
from channels.units import measure
from channels.wechat.ilink import files, media, outgoing
from channels.wechat.ilink.api import GONE, INVALID, LIMITED, Api, AskedToWait, Declined, NoAnswer, NotSent
from channels.wechat.ilink.contexts import Context, Contexts, Verdict, verdict
from channels.wechat.ilink.media import Upload
from channels.wechat.ilink.outgoing import Step
from channels.wechat.ilink.tickets import Tickets

T = TypeVar("T")
log = logging.getLogger(__name__)

UNANSWERED_MAX = 2  # WX-37: a message that got no answer is sent once more, with the same client id
REMEMBERED_MAX = 500

UNTIL_WRITTEN = TryLater(until_written=True)


class Sender:
    """Sends for one bot, as long as its connection lives. `lost`: the outcome of a send that the vendor answered with -14."""

    def __init__(
        self,
        api: Api,
        contexts: Contexts,
        *,
        capabilities: Capabilities,
        clock: Callable[[], datetime],
        read_file: ReadFile,
        lost: Callable[[], SendOutcome],
        pace_s: float,
    ) -> None:
        self._api = api
        self._contexts = contexts
        self._can = capabilities
        self._clock = clock
        self._read_file = read_file
        self._lost = lost
        self._pace_s = pace_s
        self._tickets = Tickets(clock)
        self._typing: set[str] = set()  # who sees the sign
        self._shown: dict[str, str] = {}  # platform id by client id, of what a try of a part has shown
        self._unanswered: dict[str, int] = {}  # tries by client id
        self._last: dict[str, datetime] = {}  # when we last wrote to a person

    async def send(self, part: OutboundPart) -> SendOutcome:
        todo = outgoing.steps(part)
        if reason := self._unsendable(part, todo):
            return Refused(reason)
        ids: list[str] = []
        for place, step in enumerate(todo):
            if step.client_id not in self._shown:
                outcome = await self._one(part, step, left=len(todo) - place)
                if not isinstance(outcome, Sent):
                    return outcome
                _remember(self._shown, step.client_id, outcome.platform_ids[0])
            ids.append(self._shown[step.client_id])
        return Sent(tuple(ids))

    async def typing(self, person: str, *, on: bool) -> None:
        """Nothing without a ticket: nobody is waiting for an answer that we could give. Raises ChannelError when the call failed."""
        context = await self._contexts.of(person)
        if context is None or not (on or person in self._typing):
            return
        if self._tickets.of(person) is None:
            await self._checked(person, context)
        ticket = self._tickets.of(person)
        if ticket is None or not ticket.text:
            return
        (self._typing.add if on else self._typing.discard)(person)
        try:
            await self._api.typing(person, ticket.text, on=on)
        except Declined:
            self._tickets.failed(person)
            raise

    # One message

    async def _one(self, part: OutboundPart, step: Step, *, left: int) -> SendOutcome:
        if self._unanswered.get(step.client_id, 0) >= UNANSWERED_MAX:
            return Refused("no answer came twice, so nobody can tell whether it arrived")
        person, now = part.address.chat_id, self._clock()
        context = await self._contexts.of(person)
        decided = verdict(context, part, now, messages_left=left)
        if context is None or decided is Verdict.WAIT:
            return UNTIL_WRITTEN
        if (last := self._last.get(person)) is not None and 0 <= (passed := (now - last).total_seconds()) < self._pace_s:
            return TryLater(self._pace_s - passed)
        if step.file is not None:
            item = await self._uploaded(step.file, person, part.file_note)
            if not isinstance(item, dict):
                return item
        else:
            before = f"{part.earlier_note}\n" if part.earlier_note else ""
            after = f"\n\n{part.more_note}" if part.more_note and decided is Verdict.SEND_WITH_NOTE else ""
            item = outgoing.text_item(clean(f"{before}{step.text}{after}"))
        was_old = context.is_old(self._clock())
        if context.wants_check(self._clock()):
            context = await self._checked(person, context)
        return await self._called(person, step.client_id, item, context, was_old=was_old)

    async def _called(self, person: str, client_id: str, item: dict[str, Any], context: Context, *, was_old: bool) -> SendOutcome:
        """`was_old`: the token had waited before it was asked about, so a limit is worth one more token (WX-45)."""
        context = await self._contexts.of(person) or context  # an upload takes its time: the person may have written
        used = context.used()
        await self._contexts.keep(person, used, instead_of=context)
        _remember(self._last, person, self._clock())
        try:
            shown = await self._api.send(outgoing.message(person, item, client_id=client_id, context_token=context.token))
        except (NotSent, AskedToWait) as error:
            await self._contexts.keep(person, used.unused(), instead_of=used)
            return TryLater(error.after_s if isinstance(error, AskedToWait) else 0.0)
        except NoAnswer as error:
            if not error.failed:
                _remember(self._unanswered, client_id, self._unanswered.get(client_id, 0) + 1)
            return Unknown(str(error))
        except Declined as error:
            return await self._declined(error, person, client_id, item, used, was_old=was_old)
        return Sent((shown.message_id or client_id,))

    async def _declined(
        self, error: Declined, person: str, client_id: str, item: dict[str, Any], context: Context, *, was_old: bool
    ) -> SendOutcome:
        match error.code:
            case code if code == GONE:
                await self._contexts.keep(person, context.unused(), instead_of=context)
                return self._lost()
            case code if code == LIMITED:
                if was_old:
                    fresh = await self._checked(person, context)
                    if fresh.token != context.token:  # with the same one a repeat would only prolong the limit (WX-45)
                        return await self._called(person, client_id, item, fresh, was_old=False)
                await self._contexts.keep(person, context.spent(), instead_of=context)
                return UNTIL_WRITTEN
            case code if code == INVALID:
                return Refused("the vendor finds the message invalid (-3)")
            case _:
                return Refused(f"the vendor refuses the message ({error})")

    async def _checked(self, person: str, context: Context) -> Context:
        """Ask whether the token still stands, and for a ticket; a failure is ignored (WX-42)."""
        now = self._clock()
        checked = replace(context, checked_at=now)
        try:
            config = await self._api.config(person, context.token)
        except (ConnectionLost, Declined) as error:
            log.info("nothing is known of a context: %s", error)
            self._tickets.failed(person)
        else:
            if config.typing_ticket:
                self._tickets.got(person, config.typing_ticket)
            else:
                self._tickets.failed(person)
            if config.context_token and config.context_token != context.token:
                checked = context.renewed(config.context_token, now)
        await self._contexts.keep(person, checked, instead_of=context)
        return checked

    # Files

    async def _uploaded(self, file: Attachment, person: str, note: str) -> dict[str, Any] | SendOutcome:
        """The item that shows a file, or the words in its place, or why neither (CH-7)."""
        try:
            plain = await self._read_file(file)
            if len(plain) > self._can.media_max_bytes:
                raise Declined(0, f"{len(plain)} bytes are more than the vendor takes")
            upload = Upload(
                name=safe_name(file.name), media_type=media.media_type(file), plain=plain, key=secrets.token_bytes(16), filekey=secrets.token_hex(16)
            )
            return await files.upload(self._api, upload, person)
        except OSError as error:
            reason = f"a file cannot be read: {error.strerror or type(error).__name__}"
        except Declined as error:
            if error.code == GONE:
                return self._lost()
            if error.code == LIMITED:
                return UNTIL_WRITTEN
            reason = f"a file is not taken: {error}"
        except ConnectionLost:
            return TryLater()  # nothing was shown yet
        log.warning("%s", reason)
        return outgoing.text_item(clean(note)) if note else Refused(reason)

    def _unsendable(self, part: OutboundPart, todo: list[Step]) -> str:
        """Why not even to try; empty when there is no reason."""
        if not todo:
            return "there is nothing to show"
        return "message is too long" if measure(clean(part.text), self._can.text_unit) > self._can.text_max else ""


def _remember(kept: dict[str, T], key: str, value: T) -> None:
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > REMEMBERED_MAX:
        del kept[next(iter(kept))]
