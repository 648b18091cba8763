"""The part of the composition root that is about what comes in: who may talk here, and the dispatcher that hears them (see `gateway/app.py`)."""

from __future__ import annotations

import asyncio

from gateway.arrivals.dispatch import Dispatcher
from gateway.channel_set import ChannelSet
from gateway.commands import Commands
from gateway.commands.desks import Desks
from gateway.company import Company
from gateway.house import House
from gateway.linking import Linking
from gateway.managing import Managing
from gateway.pairing import Pairing
from gateway.places import Places
from gateway.rates import Rates
from gateway.wiring.delivery import DeliveryParts
from gateway.wiring.memory import MemoryParts
from gateway.wiring.surroundings import Surroundings
from gateway.wiring.turns import TurnParts


def build_company(around: Surroundings, channels: ChannelSet, memory: MemoryParts) -> Company:
    db, clock, people = around.db, around.clock, around.people
    linking = Linking(db=db, files=memory.files, people=people, clock=clock, wake_jobs=around.wake_jobs)
    return Company(
        people=people,
        linking=linking,
        pairing=Pairing(db=db, clock=clock, people=people, linking=linking, replies=around.replies),
        places=Places(db, clock, lambda address: channels.rules(address.account)),
    )


def build_intake(
    group: asyncio.TaskGroup,
    around: Surroundings,
    delivery: DeliveryParts,
    turns: TurnParts,
    company: Company,
    *,
    house: House,
    managing: Managing,
    desks: Desks,
    rates: Rates,
) -> Dispatcher:
    """The dispatcher, connected to the channels: every account that is started from now on hands its events to it."""
    db, clock, replies = around.db, around.clock, around.replies
    dispatcher = Dispatcher(
        db=db,
        clock=clock,
        config=around.config,
        lanes=turns.lanes,
        commands=Commands(db=db, clock=clock, lanes=turns.lanes, replies=replies, house=house, manages=managing.manages, desks=desks),
        replies=replies,
        streams=around.streams,
        group=group,
        rates=rates,
        on_event=delivery.tally.heard,
        greet=company.pairing.greet,
    )
    delivery.channels.connect(dispatcher.add_door, delivery.proven, delivery.pulling.connect)
    return dispatcher
