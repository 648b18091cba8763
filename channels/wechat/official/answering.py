"""The answer in the reply: what each try of a delivery is answered with, and when (3.2). It has the windows of all people.

Deciding what fits one reply is in `passive`; storing what arrives and sending by the API are the adapter's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import datetime
from weakref import WeakValueDictionary

from channels.errors import ChannelError
from channels.message import InboundEvent, clean
from channels.port import Accepted, Deliver, OutboundPart, Sent, SettlePart, TakePart, TextUnit, TryLater, WebhookResponse
from channels.units import measure
from channels.wechat.official import convert, passive, xml
from channels.wechat.official.envelope import Envelope
from channels.wechat.official.passive import Reply, Window
from channels.wechat.official.sending import UNTIL_WRITTEN
from channels.wechat.official.settings import EARLY_S, QUIET_S, READY_S, TEXT_MAX, TRY_S, OfficialSettings
from channels.wechat.words import Say

FINAL_STATES = frozenset({"done", "ignored", "dead"})
DRAIN_S = 0.05  # parts of one answer are stored together: the next one is there at once, or not at all
PARTS_MAX = 20  # of one reply
WINDOWS_MAX = 2_000
SUCCESS = WebhookResponse(body=b"success")
NOTHING = WebhookResponse()
SILENCE = WebhookResponse(silent=True)


class Answering:
    """`take` and `settle` are the gateway's, once connected; `deliver` and `group` those of the present run, None while there is none.

    `owed`: people who were told to ask again.
    """

    def __init__(
        self, settings: OfficialSettings, envelope: Envelope, *, say: Say, clock: Callable[[], datetime], second: float, by_api: Callable[[], bool]
    ) -> None:
        """`by_api`: whether what finds no room, or is late, goes out by the API."""
        self.take: TakePart | None = None
        self.settle: SettlePart | None = None
        self.deliver: Deliver | None = None
        self.group: asyncio.TaskGroup | None = None
        self.windows: dict[str, Window] = {}
        self.owed: set[str] = set()
        self._settings = settings
        self._envelope = envelope
        self._say = say
        self._clock = clock
        self._second = second
        self._by_api = by_api
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()  # one call at a time takes a person's parts

    def window(self, fields: Mapping[str, str], began: float) -> Window:
        key = convert.event_id(fields)
        window = self.windows.get(key)
        if window is None:
            window = self.windows[key] = Window(
                key=key, person=fields.get("FromUserName", ""), us=fields.get("ToUserName", ""), question=clean(fields.get("Content", "")),
                stored_at=self._clock(), last=began,
            )  # fmt: skip
            while len(self.windows) > WINDOWS_MAX:
                del self.windows[next(iter(self.windows))]
        window.tries += 1
        window.last = began
        return window

    async def answered(
        self, window: Window, event: InboundEvent, accepted: Accepted, *, waiting: OutboundPart | None = None, fetch: bool = False
    ) -> WebhookResponse:
        if self.take is None or self.settle is None:
            return self.over(window)
        brief = accepted.state == "ignored" and not fetch
        ends = window.last + (EARLY_S if brief else READY_S) * self._second
        parts = await self._gathered(self.take, self.settle, window, event, ends, [waiting] if waiting else [], fetch=fetch)
        if parts:
            return await self._replied(self.settle, window, parts)
        if window.document is not None:
            return self.given(window)  # an earlier try that had lost its connection took them
        if brief or (not fetch and await self._finished(event)):
            return self.over(window)  # there is nothing to say, or another call has said it
        if window.tries >= min(max(self._settings.passive_tries, 1), 3):
            return self._given_up(window)
        await self.rest(window)
        return SILENCE

    async def _gathered(
        self, take: TakePart, settle: SettlePart, window: Window, event: InboundEvent, ends: float, taken: list[OutboundPart], *, fetch: bool
    ) -> list[OutboundPart]:
        """The parts that wait, and those of this question's own answer once it is ready; none when nothing was ready in time."""
        loop = asyncio.get_running_loop()
        turn = self._turns.setdefault(window.person, asyncio.Lock())
        try:
            async with asyncio.timeout_at(ends):
                await turn.acquire()
        except TimeoutError:
            return taken
        try:
            draining = bool(taken)
            while len(taken) < PARTS_MAX:
                left = max(ends - loop.time(), 0)
                part = await take(event.address, min(left, DRAIN_S) if draining else left)
                if part is not None:
                    taken.append(part)
                    draining = True
                elif not draining or fetch or left <= 0 or self._complete(taken, event) or await self._finished(event):
                    break
                else:
                    draining = False  # what waited from before is here; the answer itself may still come
        except BaseException:
            for part in taken:
                await settle(part, TryLater())
            raise
        finally:
            turn.release()
        return taken

    def _complete(self, taken: list[OutboundPart], event: InboundEvent) -> bool:
        full = sum(measure(part.text, TextUnit.BYTES) + 2 for part in taken) > TEXT_MAX
        return full or any(part.reply_to == event.platform_message_id for part in taken)

    async def _finished(self, event: InboundEvent) -> bool:
        """Is everything said that there is to say? Asked by delivering once more, which starts nothing (CH-52)."""
        if self.deliver is None:
            return False
        try:
            (accepted,) = await self.deliver([event])
        except ChannelError:
            return False
        return accepted.state in FINAL_STATES

    async def _replied(self, settle: SettlePart, window: Window, parts: list[OutboundPart]) -> WebhookResponse:
        """One reply with as many parts as it holds; the others go by the API, or wait for the person's next message (WX-71)."""
        by_api = self._by_api()
        if by_api:  # a reply is words alone: from the first file on the API sends what it can show (WX-83)
            first = next((at for at, part in enumerate(parts) if part.attachments), len(parts))
            parts, later = parts[:first], parts[first:]
            for part in later:
                await settle(part, TryLater())
        reply = passive.compose(
            [_worded(part) for part in parts],
            limit=TEXT_MAX,
            head_of=self._heads(window, parts),
            note=lambda count: "" if by_api else self._say(window.question, "wechat_more", count=count),
        )
        for part in reply.over:
            await settle(part, TryLater() if by_api else UNTIL_WRITTEN)
        if not reply.parts:
            return self.over(window)
        self.owed.discard(window.person)
        window.document = self.text(window, reply.text)
        if self.group is not None:
            self.group.create_task(self._confirmed(settle, window, reply), name=f"reply {window.key}")
        return self.given(window)

    def _heads(self, window: Window, parts: list[OutboundPart]) -> Callable[[OutboundPart], str]:
        """Before an answer that is not this question's stands the start of its own, where that is known (WX-72)."""
        others = {part.reply_to for part in parts if part.reply_to and part.reply_to != window.key}

        def head_of(part: OutboundPart) -> str:
            asked = self.windows.get(part.reply_to)
            if asked is not None:
                return passive.head(asked.question) if others and not passive.is_continue(asked.question) else ""
            return f"{part.earlier_note}\n" if part.earlier_note and not passive.is_continue(window.question) else ""

        return head_of

    async def _confirmed(self, settle: SettlePart, window: Window, reply: Reply) -> None:
        """A reply has arrived when the vendor does not try again (WX-70). At the end of the adapter what is known so far is told."""
        try:
            quiet = False
            while not quiet:
                window.again.clear()
                try:
                    async with asyncio.timeout(QUIET_S * self._second):
                        await window.again.wait()
                except TimeoutError:
                    quiet = True
        finally:
            for number, part in enumerate(reply.parts):
                await settle(part, Sent((f"{window.key}:{number}",)) if window.took else TryLater())

    def given(self, window: Window) -> WebhookResponse:
        """The window's reply, to this try as to the one before. It arrived if the connection took it in time."""
        began, loop = window.last, asyncio.get_running_loop()

        def written(took: bool) -> None:
            window.took = window.took or (took and loop.time() - began < TRY_S * self._second)

        return replace(self.answer(window.document or ""), written=written)

    def over(self, window: Window) -> WebhookResponse:
        """Nothing is shown, and the vendor does not try again."""
        window.closed = True
        return SUCCESS

    def _given_up(self, window: Window) -> WebhookResponse:
        """The last try, and nothing is ready: the API takes over, or the person is told to ask again (WX-69)."""
        window.closed = True
        if self._by_api():
            return NOTHING
        self.owed.add(window.person)
        window.document = self.text(window, self._say(window.question, "wechat_thinking"))
        return self.given(window)

    async def rest(self, window: Window) -> None:
        """Hold a call until the vendor has let go of it."""
        await asyncio.sleep(max(window.last + (TRY_S + 0.2) * self._second - asyncio.get_running_loop().time(), 0))

    def text(self, window: Window, text: str) -> str:
        stamp = int(self._clock().timestamp())
        return xml.write({"ToUserName": window.person, "FromUserName": window.us, "CreateTime": stamp, "MsgType": "text", "Content": text})

    def answer(self, document: str) -> WebhookResponse:
        return WebhookResponse(body=self._envelope.sealed(document).encode(), content_type="application/xml")

    def expects_a_try(self, person: str) -> bool:
        now, tries = asyncio.get_running_loop().time(), self._settings.passive_tries
        return any(window.person == person and window.expects_a_try(now, tries, self._second) for window in self.windows.values())


def _worded(part: OutboundPart) -> OutboundPart:
    """A reply to a call is words alone: in the place of each file stands the sentence that says so (WX-83)."""
    words = [clean(part.text), *(part.file_note or f"[{file.name}]" for file in part.attachments)]
    return replace(part, text="\n".join(word for word in words if word.strip()))
