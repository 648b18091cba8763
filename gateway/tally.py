"""Counts what comes in and goes out, and tells each account's supervisor the times that operators see (CH-213, WO-37)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime

from agent.turn import Record
from channels.message import Account
from gateway.arrivals.intake import Received
from gateway.channel_set import ChannelSet
from gateway.delivery.outbox_store import OpenPart
from gateway.delivery.rules import PartState
from gateway.lanes import Lanes
from gateway.metrics import Metrics

log = logging.getLogger(__name__)

BEAT_S = 1.0
LAG_WARNING_S = 1.0
STUCK_S = 600.0  # a turn without progress for this long is an operator's line (CH-216)


class Tally:
    def __init__(self, metrics: Metrics, channels: ChannelSet, clock: Callable[[], datetime]) -> None:
        self.metrics = metrics
        self._channels = channels
        self._clock = clock

    def heard(self, account: Account, received: Received) -> None:
        self.metrics.messages_in.labels(account.channel, received.accepted.rule or received.accepted.arrival.value).inc()
        if (supervisor := self._channels.supervisor(account)) is not None:
            supervisor.last_in = self._clock()

    def sent(self, part: OpenPart, state: PartState) -> None:
        account = part.part.address.account
        self.metrics.messages_out.labels(account.channel, state.value).inc()
        if state is PartState.SENT and (supervisor := self._channels.supervisor(account)) is not None:
            supervisor.last_out = self._clock()

    def given_up(self, part: OpenPart, reason: str) -> None:
        """A part will never be sent: shown with its delivery id (CH-213)."""
        if (supervisor := self._channels.supervisor(part.part.address.account)) is not None:
            supervisor.not_sent(reason, part.delivery_id)

    def stored(self, account: Account) -> None:
        """An answer joined the log: on a channel whose readers see the log itself, that was sending it."""
        can = self._channels.capabilities(account)
        if can is not None and can.log_is_delivery and (supervisor := self._channels.supervisor(account)) is not None:
            supervisor.last_out = self._clock()

    def halted(self, account: Account, reason: str, code: str) -> None:
        if (supervisor := self._channels.supervisor(account)) is not None:
            supervisor.stop_account(reason, code)

    def turned(self, record: Record, seconds: float, *, purpose: str = "reply") -> None:
        """A turn ended."""
        metrics = self.metrics
        metrics.turn_seconds.observe(seconds)
        if record.first_token_ms is not None:
            metrics.first_token_seconds.observe(record.first_token_ms / 1000)
        for call in record.calls:
            metrics.model_calls.labels(purpose, call.outcome).inc()
            usage = call.usage
            for kind, tokens in (("input", usage.input_tokens), ("output", usage.output_tokens), ("cached", usage.cached_tokens)):
                metrics.tokens.labels(kind).inc(tokens)

    async def beat(self, lanes: Lanes) -> None:
        """Until cancelled: how late the event loop comes round, how deep the lanes are, which turn makes no progress (CH-216)."""
        loop = asyncio.get_running_loop()
        told: set[str] = set()
        while True:
            due = loop.time() + BEAT_S
            await asyncio.sleep(BEAT_S)
            lag = max(0.0, loop.time() - due)
            self.metrics.loop_lag_seconds.set(lag)
            self.metrics.lane_depth.set(lanes.depth)
            if lag > LAG_WARNING_S:
                log.warning("the event loop came round %.1f s late", lag)
            stuck = {turn.turn_id for turn in lanes.turns if turn.idle > STUCK_S}
            for turn_id in stuck - told:
                log.error("turn %s has made no progress for %g minutes", turn_id, STUCK_S / 60)
            told = stuck
