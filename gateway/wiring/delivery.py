"""The part of the composition root that is about what goes out: replies, the outbox, the channels that it sends through (see `gateway/app.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

import sqlalchemy as sa

from channels.message import Account, Address
from gateway.arrivals import senders
from gateway.channel_set import ChannelSet
from gateway.config import Config
from gateway.delivery.gate import Gates
from gateway.delivery.outbox import Outbox
from gateway.delivery.outbox_store import OpenPart
from gateway.delivery.pulling import Pulling
from gateway.delivery.replies import Replies
from gateway.delivery.rules import PartState
from gateway.language import guess, say
from gateway.metrics import new_metrics
from gateway.tally import Tally
from memory.database import Database


@dataclass(frozen=True, slots=True, kw_only=True)
class DeliveryParts:
    """`replies` makes parts of words, `outbox` sends them, `pulling` hands them to channels that fetch for themselves."""

    channels: ChannelSet
    gates: Gates
    tally: Tally
    replies: Replies
    outbox: Outbox
    pulling: Pulling

    def proven(self, account: Account) -> None:
        """An account works: what waited for it may leave."""
        self.gates.prove(account)
        self.outbox.wake_account(account)


def build_delivery(
    group: asyncio.TaskGroup, db: Database, *, clock: Callable[[], datetime], config: Callable[[], Config], on_reminder: Callable[[], None]
) -> DeliveryParts:
    """`on_reminder`: something became of a reminder that was sent."""
    channels, gates = ChannelSet(group=group, clock=clock), Gates()
    tally = Tally(new_metrics(), channels, clock)

    def sent(part: OpenPart, state: PartState) -> None:
        tally.sent(part, state)
        if part.kind == "reminder":
            on_reminder()

    def revoked(connection: sa.Connection, address: Address) -> bool:
        rules = channels.rules(address.account)
        return rules is not None and senders.lost_access(connection, address, rules)

    pulling = Pulling(db=db, clock=clock, find_channel=channels.find, marked_text=_marked, on_outcome=sent, revoked=revoked)
    outbox = Outbox(
        db=db,
        clock=clock,
        gates=gates,
        find_channel=pulling.find,
        group=group,
        marked_text=_marked,
        rules=channels.rules,
        on_outcome=sent,
        on_given_up=tally.given_up,
        on_account_stopped=tally.halted,
        revoked=revoked,
    )
    pulling.wake = outbox.wake
    replies = Replies(outbox, can=channels.capabilities, limits=lambda: config().delivery)
    return DeliveryParts(channels=channels, gates=gates, tally=tally, replies=replies, outbox=outbox, pulling=pulling)


def _marked(part: OpenPart) -> str:
    return f"{part.part.text}\n{say(guess(part.part.text), 'sent_again')}"  # at the end: formatting is counted from the start
