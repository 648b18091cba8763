"""Keeps one account of a channel alive, and knows its state from the last proven event, never from a flag (CH-210 to CH-213).

The adapter connects and raises; every retry is here. One sick channel never takes another down.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum

from channels.errors import ChannelError, CredentialRefused
from channels.message import Account
from channels.port import Channel, Deliver
from gateway import channel_words
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

BACKOFF_S = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0, 300.0)
PROOF_RESETS_BACKOFF = timedelta(minutes=10)
REBUILDS_PER_HOUR = 6
CHECK_S = 5.0
FIRST_CHECK_S = 1.0  # until the first proof: what waits to be sent need not wait longer

Clock = Callable[[], datetime]


class ChannelState(StrEnum):
    STARTING = "starting"
    READY = "ready"
    DEGRADED = "degraded"
    AUTH_REQUIRED = "auth_required"
    STOPPED = "stopped"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChannelStatus:
    account: Account
    state: ChannelState
    reason: str = ""
    code: str = ""  # the kind of fault, for a reader of another language; empty when the reason is all there is
    proven_at: datetime | None = None
    last_in: datetime | None = None
    last_out: datetime | None = None
    last_error: str = ""
    last_error_code: str = ""
    last_error_delivery: str = ""  # the delivery that the error was about, empty when it was about none


class Supervisor:
    """One account: builds the adapter, runs it, builds it anew when it fails or goes deaf."""

    def __init__(
        self,
        account: Account,
        build: Callable[[], Channel],
        *,
        clock: Clock,
        on_change: Callable[[ChannelStatus], None] = lambda _status: None,
        on_proven: Callable[[Account], None] = lambda _account: None,
        backoff_s: tuple[float, ...] = BACKOFF_S,
        check_s: float = CHECK_S,
    ) -> None:
        """`on_proven` is told once in each life of the adapter, when it is first proven to hear. `channel` is None between two lives."""
        self.account = account
        self.channel: Channel | None = None
        self.last_in: datetime | None = None
        self.last_out: datetime | None = None
        self.last_error = ""
        self.last_error_code = ""
        self.last_error_delivery = ""
        self._build = build
        self._clock = clock
        self._on_change = on_change
        self._on_proven = on_proven
        self._proven_at: datetime | None = None
        self._backoff_s = backoff_s
        self._check_s = check_s
        self._started = clock()
        self._rebuilds: deque[datetime] = deque()
        self._failures = 0
        self._refused: CredentialRefused | None = None  # why a send found the account unusable
        self._auth_probe_s: float | None = None
        self._held: tuple[ChannelState, str] | None = (ChannelState.STARTING, "")
        self._code = ""  # of the fault that it is held for
        self._told = ChannelState.STARTING

    def status(self) -> ChannelStatus:
        """The state now. `ready` needs a proof within the channel's limit; more than six rebuilds in an hour show as degraded."""
        state, reason = self._state()
        return ChannelStatus(
            account=self.account,
            state=state,
            reason=reason,
            code=self._code if self._held is not None else "",
            proven_at=self._proof(),
            last_in=self.last_in,
            last_out=self.last_out,
            last_error=self.last_error,
            last_error_code=self.last_error_code,
            last_error_delivery=self.last_error_delivery,
        )

    def stop_account(self, reason: str, code: str = "") -> None:
        """A send found that the account itself is the problem: no further attempt until the operator acts (CH-212)."""
        self._refused = CredentialRefused(reason, code=code)
        self._needs_operator(self._refused)

    def not_sent(self, reason: str, delivery_id: str) -> None:
        """A part for somebody was given up."""
        self.last_error, self.last_error_code, self.last_error_delivery = reason, "", delivery_id

    async def run(self, deliver: Deliver) -> None:
        """Until cancelled, or until the credential is refused: then only the operator's act starts it again, or a slow probe where there is one."""
        try:
            while True:
                try:
                    await self._once(deliver)
                except CredentialRefused as error:
                    self._needs_operator(error)
                    if self._auth_probe_s is None:
                        return
                    await asyncio.sleep(self._auth_probe_s)
                    self._refused = None
                    continue
                except ChannelError as error:
                    self._failed(str(error), error.code)
                except StoreUnavailable as error:
                    self._failed(str(error))
                except Exception as error:  # one of the four homes (STYLE): whatever an adapter raises, the others go on
                    log.exception("channel %s failed", self.account)
                    self._failed(f"{type(error).__name__}: {error}", "fault")
                if self._refused is not None:
                    self._needs_operator(self._refused)
                    return
                await asyncio.sleep(self._backoff_s[min(self._failures, len(self._backoff_s)) - 1])
        except asyncio.CancelledError:
            self._hold(ChannelState.STOPPED, "")
            raise

    async def _once(self, deliver: Deliver) -> None:
        """One life of the adapter; raises when it ends, and when it went deaf."""
        channel = self.channel = self._build()
        self._auth_probe_s = channel.capabilities.auth_probe_s
        self._started = self._clock()
        self._held = None
        self._tell()
        deaf = proven = False
        try:
            async with asyncio.TaskGroup() as group:
                running = group.create_task(_life(channel, deliver), name=f"channel {self.account}")
                while not running.done():
                    await asyncio.wait([running], timeout=self._check_s if proven else min(self._check_s, FIRST_CHECK_S))
                    self._tell()
                    if not proven and channel.proven_at is not None:
                        proven = True
                        self._on_proven(self.account)
                    if self._failures and self._clock() - self._started > PROOF_RESETS_BACKOFF:
                        self._failures = 0
                    if not running.done() and self._deaf(channel):
                        deaf = running.cancel()
        finally:
            self._proven_at, self.channel = self._proof(), None  # an adapter that does not run is not to be used
        if deaf:
            raise ChannelError(f"heard nothing for {channel.capabilities.liveness_s:g} s")
        raise running.result()

    def _proof(self) -> datetime | None:
        """The last time that it was proven to hear, in this life of the adapter or an earlier one."""
        return (self.channel.proven_at if self.channel else None) or self._proven_at

    def _deaf(self, channel: Channel) -> bool:
        heard = max(channel.proven_at or self._started, self._started)
        return self._clock() - heard > timedelta(seconds=channel.capabilities.liveness_s)

    def _failed(self, reason: str, code: str = "") -> None:
        self._failures += 1
        self._rebuilds.append(self._clock())
        log.warning("channel %s: %s; trying again (%d)", self.account, reason, self._failures)
        self._hold(ChannelState.DEGRADED, self._note(reason, code), code)

    def _needs_operator(self, error: CredentialRefused) -> None:
        if error.code:  # people get a sentence in its place
            log.warning("channel %s: %s", self.account, error)
        self._hold(ChannelState.AUTH_REQUIRED, self._note(str(error), error.code), error.code)

    def _state(self) -> tuple[ChannelState, str]:
        if self._held is not None:
            return self._held
        assert self.channel is not None, "a channel that is not held has been built"
        while self._rebuilds and self._clock() - self._rebuilds[0] > timedelta(hours=1):
            self._rebuilds.popleft()
        if self.channel.proven_at is None:
            return (ChannelState.READY, "unproven") if self.channel.capabilities.called else (ChannelState.STARTING, "")
        if self._deaf(self.channel):
            return ChannelState.DEGRADED, "heard nothing for too long"
        if len(self._rebuilds) > REBUILDS_PER_HOUR:
            return ChannelState.DEGRADED, f"started {len(self._rebuilds)} times within an hour"
        return ChannelState.READY, ""

    def _note(self, reason: str, code: str = "") -> str:
        """What people are told of a fault: the particulars are in the log."""
        self.last_error = channel_words.reason(self.account.channel, code, reason)
        self.last_error_code, self.last_error_delivery = code, ""
        return self.last_error

    def _hold(self, state: ChannelState, reason: str, code: str = "") -> None:
        self._held, self._code = (state, reason), code
        self._tell()

    def _tell(self) -> None:
        status = self.status()
        if status.state != self._told:
            self._told = status.state
            log.info("channel %s is %s %s", self.account, status.state.value, status.reason)
            self._on_change(status)


async def _life(channel: Channel, deliver: Deliver) -> Exception:
    """How one life of an adapter ended; returned, not raised, for a task group would wrap it."""
    try:
        await channel.run(deliver)
    except Exception as error:  # handed to `run` of the supervisor, which logs it and decides
        return error
    return ChannelError("the adapter ended by itself")
