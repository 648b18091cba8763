"""Out by the customer-service API: one part as messages, each call ending in one outcome (WX-80 to WX-83, the table of 3.3)."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from typing import Any

from channels.errors import ConnectionLost, CredentialRefused
from channels.given import ReadFile
from channels.message import Attachment, clean, is_blank
from channels.port import NeedsOperator, OutboundPart, Refused, SendOutcome, Sent, TryLater, Unknown
from channels.wechat.official.api import AskedToWait, Declined, NoAnswer, OfficialApi
from channels.wechat.official.people import People
from channels.wechat.official.settings import BUSY_MAX, BUSY_S, IMAGE_MAX, PACE_S, VIDEO_MAX, VOICE_MAX

BUSY, OUTSIDE_WINDOW, TOO_MANY, QUOTA, NOT_AUTHORISED = -1, 45015, 45047, 45009, 48001
UNTIL_WRITTEN = TryLater(until_written=True)
REMEMBERED_MAX = 500
CHINA = timezone(timedelta(hours=8))

log = logging.getLogger(__name__)


def medium(file: Attachment) -> tuple[str, int] | None:
    """The vendor's kind of a file and its limit in bytes; None for what cannot be shown there (section 6)."""
    match file.mime:
        case "image/jpeg" | "image/png":
            return "image", IMAGE_MAX
        case "audio/amr" | "audio/mpeg":
            return "voice", VOICE_MAX
        case "video/mp4":
            return "video", VIDEO_MAX
        case _:
            return None


class Sender:
    """Sends for one account, as long as its session lives. `off`: the vendor does not let this account use the API."""

    def __init__(
        self, api: OfficialApi, people: People, *, account: str, clock: Callable[[], datetime], read_file: ReadFile, pace_s: float = PACE_S
    ) -> None:
        self.off = False
        self.refused: NeedsOperator | None = None
        self._api = api
        self._people = people
        self._account = account
        self._clock = clock
        self._read_file = read_file
        self._pace_s = pace_s
        self._closed_until: datetime | None = None  # the daily quota is used up
        self._last: dict[str, datetime] = {}
        self._busy: dict[str, int] = {}  # tries by part
        self._shown: dict[str, tuple[str, ...]] = {}  # what a try of a part has shown already

    async def send(self, part: OutboundPart) -> SendOutcome:
        """Text first, then each file; a part that was stopped between two goes on where it stopped."""
        ids = list(self._shown.pop(part.part_id, ()))
        texts = [] if is_blank(part.text) else [clean(part.text)]
        todo: list[str | Attachment] = [*texts, *part.attachments]
        for step in todo[len(ids) :]:
            outcome = await self._one(part, step)
            if not isinstance(outcome, Sent):
                _remember(self._shown, part.part_id, tuple(ids))
                return outcome
            ids += outcome.platform_ids or (f"{part.part_id}:{len(ids)}",)
        self._busy.pop(part.part_id, None)
        return Sent(tuple(ids))

    async def _one(self, part: OutboundPart, step: str | Attachment) -> SendOutcome:
        person, now = part.address.chat_id, self._clock()
        standing = await self._people.of(person)
        if standing.gone:
            return Refused("the person does not follow the account any more")
        if not standing.may_be_sent(now):
            return UNTIL_WRITTEN
        if self._closed_until is not None and now < self._closed_until:
            return TryLater((self._closed_until - now).total_seconds())
        if (last := self._last.get(person)) is not None and 0 <= (passed := (now - last).total_seconds()) < self._pace_s:
            return TryLater(self._pace_s - passed)
        try:
            content = {"msgtype": "text", "text": {"content": step}} if isinstance(step, str) else await self._shown_as(step, part.file_note)
            await self._people.keep(person, standing.used())  # counted before it leaves: after a crash too little goes out, never too much
            _remember(self._last, person, now)
            shown = await self._api.send({"touser": person, **content})
        except Declined as error:
            return await self._declined(error, part)
        except AskedToWait as error:
            return TryLater(error.after_s)
        except CredentialRefused as error:
            self.refused = NeedsOperator(str(error), error.code)
            return self.refused
        except NoAnswer as error:
            return Unknown(str(error))
        except ConnectionLost:
            await self._people.keep(person, standing)
            return TryLater()
        except OSError as error:
            return Refused(f"a file cannot be read: {error.strerror or type(error).__name__}")
        return Sent((shown,) if shown else ())

    async def _shown_as(self, file: Attachment, note: str) -> dict[str, Any]:
        """The message that shows a file, or the words in its place."""
        kind = medium(file)
        data = await self._read_file(file) if kind is not None else b""
        if kind is not None and len(data) <= kind[1]:
            try:
                return {"msgtype": kind[0], kind[0]: {"media_id": await self._api.upload(kind[0], file, data)}}
            except NoAnswer as error:
                raise ConnectionLost(str(error)) from error  # nothing was shown by that
            except Declined as error:
                log.warning("%s: a file is not taken: %s", self._account, error)
        if not note:
            raise Declined(0, "the account cannot show this file")
        return {"msgtype": "text", "text": {"content": clean(note)}}

    async def _declined(self, error: Declined, part: OutboundPart) -> SendOutcome:
        person = part.address.chat_id
        match error.code:
            case code if code in (OUTSIDE_WINDOW, TOO_MANY):
                await self._people.keep(person, (await self._people.of(person)).spent())
                why = "48 hours passed since the person last acted" if code == OUTSIDE_WINDOW else "no more messages fit before the person acts"
                log.info("%s: %s (%d): it waits for the person", self._account, why, code)
                return UNTIL_WRITTEN
            case code if code == QUOTA:
                self._closed_until = _next_day(self._clock())
                log.error("%s: the day's quota of the API is used up (45009); it goes on tomorrow, China time", self._account)
                return TryLater((self._closed_until - self._clock()).total_seconds())
            case code if code == NOT_AUTHORISED:
                self.off = True
                log.error("%s: this account may not use the customer-service API (48001): it answers passively; turn the setting off", self._account)
                return UNTIL_WRITTEN
            case code if code == BUSY and self._busy.get(part.part_id, 0) < BUSY_MAX:
                _remember(self._busy, part.part_id, self._busy.get(part.part_id, 0) + 1)
                return TryLater(BUSY_S)
            case _:
                return Refused(f"the vendor refuses the message ({error})")


def _next_day(now: datetime) -> datetime:
    """The next midnight in UTC+8."""
    there = now.astimezone(CHINA)
    return there.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)


def _remember(kept: dict[str, Any], name: str, value: object) -> None:
    kept.pop(name, None)
    kept[name] = value
    while len(kept) > REMEMBERED_MAX:
        del kept[next(iter(kept))]
