"""The part of the composition root that is about the page, its API and the operators' (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Protocol

from aiohttp import web

from channels.errors import ConnectionLost
from channels.message import Account
from channels.web.adapter import WebChannel
from gateway import importing
from gateway.admin import Admin
from gateway.arrivals.dispatch import Dispatcher
from gateway.challenge_files import FOLDER, ChallengeFiles
from gateway.chat_answers import ChatAnswers
from gateway.company import Company
from gateway.config.env import SECRETS_FILE
from gateway.credentials import VisitCache
from gateway.forget_me import ForgetMe
from gateway.house import House
from gateway.http.account import AccountRoutes
from gateway.http.account_links import AccountLinkRoutes
from gateway.http.auth import Door
from gateway.http.base import new_app
from gateway.http.challenges import ChallengeRoutes
from gateway.http.chats import ChatRoutes
from gateway.http.control import ControlRoutes
from gateway.http.entries import EntryRoutes
from gateway.http.files import FileRoutes
from gateway.http.guest import GuestRoutes
from gateway.http.health import HealthRoutes
from gateway.http.held import HeldRoutes
from gateway.http.limits import LimitRoutes
from gateway.http.memories import MemoryRoutes
from gateway.http.memory_batches import MemoryBatchRoutes
from gateway.http.memory_chat import MemoryChatRoutes
from gateway.http.memory_days import MemoryDayRoutes
from gateway.http.memory_dreams import MemoryDreamRoutes
from gateway.http.memory_files import MemoryFileRoutes
from gateway.http.memory_scope import MemoryScopes
from gateway.http.memory_status import MemoryStatusRoutes
from gateway.http.memory_switches import MemorySwitchRoutes
from gateway.http.model_setup import ModelRoutes
from gateway.http.openai_api import OpenAIRoutes
from gateway.http.operator import OperatorRoutes
from gateway.http.operator_access import AccessRoutes
from gateway.http.operator_embeddings import EmbeddingRoutes
from gateway.http.operator_people import PeopleRoutes
from gateway.http.own_chats import OwnChats
from gateway.http.prompts import PromptRoutes
from gateway.http.recall_chats import RecallChatRoutes
from gateway.http.recall_chunks import RecallChunkRoutes
from gateway.http.recall_summaries import RecallSummaryRoutes
from gateway.http.talk import TalkRoutes
from gateway.login_admin import LoginAdmin
from gateway.login_links import LoginLinks
from gateway.logins import Logins
from gateway.pairing_admin import PairingAdmin
from gateway.prompt_desk import PromptDesk
from gateway.reports import Reports
from gateway.sessions import Sessions
from gateway.site import Site
from gateway.standing import Standing
from gateway.stateless import Stateless
from gateway.tokens import ApiTokens
from gateway.wiring.controls import Controls
from gateway.wiring.delivery import DeliveryParts
from gateway.wiring.memory import MemoryParts
from gateway.wiring.surroundings import Surroundings
from gateway.wiring.turns import TurnParts
from memory import tokens as counting

BODY_MAX = 2_000_000  # bytes of a JSON body; a message of 100,000 characters fits in any script


class Routes(Protocol):
    """A group of routes of one subject."""

    def routes(self) -> Sequence[web.RouteDef]: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNeeds:
    """What the page reaches."""

    around: Surroundings
    standing: Standing
    controls: Controls
    delivery: DeliveryParts
    memory: MemoryParts
    turns: TurnParts
    dispatcher: Dispatcher
    stateless: Stateless
    house: House
    reports: Reports
    company: Company
    logins: Logins
    links: LoginLinks

    def page_channel(self) -> WebChannel:
        channel = self.delivery.channels.find(Account(channel="web"))
        if not isinstance(channel, WebChannel):
            raise ConnectionLost("the page has no channel: it is starting, stopping or switched off")
        return channel

    async def stop_chat(self, address: str, *, drop_waiting: bool) -> bool:
        """End what runs in a chat, and what waits too when asked; whether there was anything."""
        lanes = self.turns.lanes
        running = lanes.running(address)
        dropped = lanes.drop_waiting(address) if drop_waiting else []
        if dropped:
            await self.dispatcher.end_rows(dropped, "stopped")
        if running is not None:
            running.interrupt()
        return running is not None or bool(dropped)


def build_site(needs: SiteNeeds) -> Site:
    """The server, not yet listening."""
    around, config = needs.around, needs.around.config
    cache = VisitCache(around.clock)
    around.people.watch(cache.forget_person)
    sessions, tokens = Sessions(around.db, around.clock, cache), ApiTokens(around.db, around.clock, cache)
    groups = (*_account(needs, sessions, tokens), *_talk(needs), *_memory(needs), *_recall(needs), *_operators(needs, tokens))
    app = new_app(Door(lambda: config().channels.web, around.people, sessions, tokens, cache), body_max=BODY_MAX)
    return Site(app, lambda: config().channels.web, [route for group in groups for route in group.routes()])


def _account(needs: SiteNeeds, sessions: Sessions, tokens: ApiTokens) -> tuple[Routes, ...]:
    """Signing in, and what is one's own."""
    db, clock, config, people = needs.around.db, needs.around.clock, needs.around.config, needs.around.people
    return (
        AccountRoutes(people=people, sessions=sessions, links=needs.links, tokens=tokens, page=needs.house, clock=clock),
        AccountLinkRoutes(linking=needs.company.linking, people=people, config=config, clock=clock),
        HeldRoutes(
            db=db,
            files=needs.memory.files,
            shelves=needs.memory.panel.shelves,
            forget_me=ForgetMe(
                db=db,
                clock=clock,
                stop=partial(needs.stop_chat, drop_waiting=True),
                changed=people.changed,
                wake_jobs=needs.around.wake_jobs,
            ),
        ),
    )


def _talk(needs: SiteNeeds) -> tuple[Routes, ...]:
    """Chats of the page, the OpenAI API, guests, and the prompts that were sent."""
    around = needs.around
    db, clock, config = around.db, around.clock, around.config
    chats = OwnChats(db, needs.turns.lanes)
    challenges = ChallengeRoutes(
        db=db,
        clock=clock,
        config=config,
        chats=chats,
        files=ChallengeFiles(config().data_dir / FOLDER, lambda: config().characters),
        stop=needs.stop_chat,
        wake_jobs=around.wake_jobs,
    )
    return (
        ChatRoutes(db=db, clock=clock, config=config, chats=chats, challenges=challenges, streams=around.streams, stop=needs.stop_chat),
        challenges,
        TalkRoutes(
            db=db,
            config=config,
            chats=chats,
            channel=needs.page_channel,
            streams=around.streams,
            lanes=needs.turns.lanes,
            attachments=around.attachments,
            stop=needs.stop_chat,
        ),
        PromptRoutes(desk=PromptDesk(db=db, config=config, shelf=around.prompts, foretelling=needs.turns.foretelling), config=config),
        OpenAIRoutes(
            db=db,
            clock=clock,
            config=config,
            channel=needs.page_channel,
            attachments=around.attachments,
            stateless=needs.stateless,
            answers=ChatAnswers(db, around.streams),
        ),
        GuestRoutes(config=config, stateless=needs.stateless),
        FileRoutes(attachments=around.attachments, config=config, clock=clock),
        LimitRoutes(config),
        MemoryChatRoutes(db=db, clock=clock, config=config),
    )


def _memory(needs: SiteNeeds) -> tuple[Routes, ...]:
    """Memory files, days, dreams and saved memories."""
    memory, db, clock, config = needs.memory, needs.around.db, needs.around.clock, needs.around.config
    scopes, panel = MemoryScopes(db=db), memory.panel
    return (
        scopes,
        MemoryFileRoutes(
            scopes=scopes,
            db=db,
            files=memory.files,
            head_files=memory.head_files,
            writer=memory.writer,
            prompt_max=lambda: config().memory.prompt_max_tokens,
            knowledge=lambda: config().knowledge,
            count_tokens=counting.count,
        ),
        MemoryDayRoutes(scopes=scopes, db=db, files=memory.files, clock=clock),
        MemoryDreamRoutes(scopes=scopes, desk=memory.dreams.desk),
        MemoryBatchRoutes(db=db, desk=panel.desk, shelves=panel.shelves, drafting=panel.drafting, config=config, clock=clock),
        MemoryRoutes(desk=panel.desk, shelves=panel.shelves, config=config),  # behind those whose addresses are no ids
        MemoryStatusRoutes(scopes=scopes, status=memory.status),
        MemorySwitchRoutes(db=db, config=config, clock=clock, people=needs.around.people),
    )


def _recall(needs: SiteNeeds) -> tuple[Routes, ...]:
    """The past of a chat: its chunks, summaries and entries."""
    tending = needs.memory.tending
    return (
        RecallChatRoutes(desk=tending.recall, reach=tending.reach),
        RecallChunkRoutes(desk=tending.recall, reach=tending.reach),
        RecallSummaryRoutes(desk=tending.summaries, reach=tending.reach),
        EntryRoutes(desk=tending.entries, reach=tending.reach),
    )


def _operators(needs: SiteNeeds, tokens: ApiTokens) -> tuple[Routes, ...]:
    """The operators' page, health, and the command line's way in."""
    db, clock, config, people = needs.around.db, needs.around.clock, needs.around.config, needs.around.people
    house, metrics = needs.house, needs.delivery.tally.metrics
    secrets_file = Path(needs.standing.config_path).parent / SECRETS_FILE
    return (
        OperatorRoutes(db=db, clock=clock, view=house, reports=needs.reports),
        PeopleRoutes(people=people, links=needs.links, settings=lambda: config().channels.web),
        AccessRoutes(company=needs.company, logins=needs.logins),
        EmbeddingRoutes(desk=needs.memory.embeddings, secrets_file=secrets_file, db=db, clock=clock),
        ModelRoutes(probe=needs.controls.probe, secrets_file=secrets_file, db=db, clock=clock),
        HealthRoutes(readiness=house.readiness, metrics=metrics, clock=clock, look=partial(house.measure, metrics)),
        ControlRoutes(_admin(needs, tokens), needs.controls.secret),
    )


def _admin(needs: SiteNeeds, tokens: ApiTokens) -> Admin:
    around, memory = needs.around, needs.memory
    return Admin(
        db=around.db,
        clock=around.clock,
        people=around.people,
        links=needs.links,
        tokens=tokens,
        page=around.page,
        wake_jobs=around.wake_jobs,
        release=needs.controls.release,
        restart=needs.controls.restart,
        more={
            importing.COMMAND: memory.importing.run,
            **PairingAdmin(needs.company.pairing).commands,
            **LoginAdmin(needs.logins).commands,
            **memory.embeddings.commands,
        },
        config=around.config,
    )
