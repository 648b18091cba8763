"""What happens to a part next, decided purely: the state table of CH-80 and the expiry of CH-82.

The outbox itself only carries these decisions out.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import assert_never

from channels.port import Capabilities, ChatMoved, NeedsOperator, Refused, SendOutcome, Sent, TryLater, Unknown

MARGIN_S = 0.5  # after a platform's wait, beside up to a tenth of jitter (CH-91)
RETRY_S = 1.0  # when nobody names a time to wait; doubled with every try up to:
RETRY_MAX_S = 60.0
PREVIEW_TRIES = 4  # to learn what became of a preview, a second apart: the answer waits behind it


class PartState(StrEnum):
    QUEUED = "queued"
    SENDING = "sending"
    UNKNOWN = "unknown"
    SENT = "sent"
    FAILED = "failed"
    EXPIRED = "expired"


OPEN = (PartState.QUEUED, PartState.SENDING, PartState.UNKNOWN)


@dataclass(frozen=True, slots=True, kw_only=True)
class PartView:
    """What the rules look at. `unknowns` counts the tries of which nobody can tell whether they arrived; `attempted_at` is the first of them."""

    state: PartState
    attempts: int
    unknowns: int
    expires_at: datetime
    not_before: datetime | None = None
    attempted_at: datetime | None = None
    is_edit: bool = False
    sent_again: bool = False
    is_preview: bool = False  # it was on its way when its turn was cut off: it is looked for, and never sent anew


class Step(StrEnum):
    SEND = "send"
    SEND_MARKED = "send_marked"  # the text says that it may be a second copy
    LOOK_UP = "look_up"
    WAIT = "wait"
    EXPIRE = "expire"
    GIVE_UP = "give_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Next:
    step: Step
    until: datetime | None = None


def next_step(part: PartView, now: datetime, can: Capabilities, closed_until: datetime | None = None) -> Next:
    """What to do with the oldest open part of a chat. `closed_until`: the gate's time, None when it is open."""
    if part.expires_at <= now:
        return Next(step=Step.EXPIRE)
    waits = [until for until in (part.not_before, closed_until) if until is not None and until > now]
    if waits:
        return Next(step=Step.WAIT, until=min(max(waits), part.expires_at))
    if part.state is PartState.QUEUED:
        return Next(step=Step.SEND)
    if part.is_edit:
        return Next(step=Step.SEND)  # editing is idempotent: an unanswered edit is repeated (CH-97)
    key_s = preview_key_s(can) if part.is_preview else can.resend_key_s
    if key_s is not None and part.attempted_at is not None and now - part.attempted_at < timedelta(seconds=key_s):
        return Next(step=Step.SEND)
    if can.reconcile:
        return Next(step=Step.LOOK_UP)
    return Next(step=Step.GIVE_UP if part.sent_again or part.is_preview else Step.SEND_MARKED)


def preview_key_s(can: Capabilities) -> float | None:
    """For how many seconds a preview may be sent again and be shown once; None when it cannot."""
    return can.resend_key_s if can.preview_key_s is None else can.preview_key_s


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """How a part's row changes after a try. `gate_s` closes the chat's gate, with `whole_account` that of all its chats; `stop_account` says why
    the account may send nothing, `stop_code` what kind of fault that is."""

    state: PartState
    reason: str = ""
    platform_ids: tuple[str, ...] = ()
    not_before: datetime | None = None
    unknowns: int = 0
    new_chat_id: str = ""
    thread_gone: bool = False  # it went to the chat itself, for its topic exists no longer
    as_new: bool = False  # the edit's target is gone: send the same words as a new message
    gate_s: float = 0.0
    whole_account: bool = False
    stop_account: str = ""
    stop_code: str = ""
    until_written: bool = False  # held until the person writes again (WX-44)
    not_there: bool = False  # the platform says that it never arrived


def backoff_s(tries: int) -> float:
    """Seconds to wait of our own accord after so many tries before: 1, 2, 4 … 60."""
    return min(RETRY_MAX_S, RETRY_S * 2 ** min(tries, 10))


def settle_look_up(part: PartView, found: tuple[str, ...] | Unknown | None, now: datetime) -> Change:
    """The change that a look at the platform makes: the part is there, is not there (then it is sent), or nobody could say."""
    match found:
        case Unknown(reason=reason) if part.is_preview:
            return _still_in_doubt(part, reason, now)
        case Unknown(reason=reason):
            wait = timedelta(seconds=backoff_s(part.unknowns))
            return Change(state=PartState.UNKNOWN, reason=reason, unknowns=part.unknowns, not_before=now + wait)
        case None if part.is_preview:
            return Change(state=PartState.FAILED, reason="it never arrived", unknowns=part.unknowns, not_there=True)
        case None:
            return Change(state=PartState.QUEUED, unknowns=part.unknowns)
        case _:
            return Change(state=PartState.SENT, platform_ids=found, unknowns=part.unknowns)


def _still_in_doubt(part: PartView, reason: str, now: datetime) -> Change:
    """A preview of which a try told nothing. Not for ever: it must not hold the answer back (CH-92)."""
    if part.unknowns >= PREVIEW_TRIES:
        return Change(state=PartState.FAILED, reason=reason, unknowns=part.unknowns)
    return Change(state=PartState.UNKNOWN, reason=reason, unknowns=part.unknowns + 1, not_before=now + timedelta(seconds=RETRY_S))


def settle(part: PartView, outcome: SendOutcome, now: datetime, *, jitter: float) -> Change:
    """The change that `outcome` of one try makes. `jitter`: 0 to 1, chosen by the caller.

    A try that was surely not sent settles nothing about an earlier one of which nobody knows: the part stays `unknown`, unless its words say so.
    """
    waiting = PartState.UNKNOWN if part.unknowns and not part.sent_again else PartState.QUEUED
    match outcome:
        case Sent(platform_ids=ids, thread_gone=gone):
            return Change(state=PartState.SENT, platform_ids=ids, unknowns=part.unknowns, thread_gone=gone)
        case TryLater(until_written=True):
            return Change(state=waiting, unknowns=part.unknowns, until_written=True)
        case TryLater(after_s=after, whole_account=whole):
            wait = (after or backoff_s(part.attempts)) * (1 + 0.1 * jitter) + MARGIN_S
            return Change(
                state=waiting,
                not_before=now + timedelta(seconds=wait),
                unknowns=part.unknowns,
                gate_s=wait if after else 0.0,
                whole_account=whole,
                reason=f"asked to wait {after:g} s" if after else "not reachable",
            )
        case Unknown(reason=reason) if part.is_preview:
            return _still_in_doubt(part, reason, now)
        case Unknown(reason=reason):
            wait = backoff_s(part.unknowns)  # a platform that is down must not be hammered
            return Change(
                state=PartState.UNKNOWN,
                reason=reason or "no answer came",
                unknowns=part.unknowns + 1,
                not_before=now + timedelta(seconds=wait),
            )
        case Refused(gone=True, reason=reason) if part.is_edit:
            return Change(state=PartState.QUEUED, reason=reason, as_new=True)  # nothing of it is on show: the count begins anew
        case Refused(reason=reason):
            return Change(state=PartState.FAILED, reason=reason, unknowns=part.unknowns)
        case NeedsOperator(reason=reason, code=code):
            return Change(state=waiting, reason=reason, unknowns=part.unknowns, stop_account=reason, stop_code=code)
        case ChatMoved(new_chat_id=chat_id):
            later = now + timedelta(seconds=backoff_s(part.attempts)) if part.attempts > 1 else None  # two chats may name each other
            return Change(state=waiting, unknowns=part.unknowns, new_chat_id=chat_id, not_before=later)
        case _ as never:
            assert_never(never)
