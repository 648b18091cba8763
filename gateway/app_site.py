"""The part of the composition root that is about the page, its API and the operators' (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from channels.errors import ConnectionLost
from channels.message import Account
from channels.web.adapter import WebChannel
from gateway import importing
from gateway.admin import Admin
from gateway.app_memory import MemoryParts, Surroundings
from gateway.challenge_files import FOLDER, ChallengeFiles
from gateway.channel_set import ChannelSet
from gateway.chat_answers import ChatAnswers
from gateway.company import Company
from gateway.config_env import SECRETS_FILE
from gateway.credentials import VisitCache
from gateway.dispatch import Dispatcher
from gateway.forget_me import ForgetMe
from gateway.house import House
from gateway.http.account import AccountRoutes
from gateway.http.account_links import AccountLinkRoutes
from gateway.http.auth import Door
from gateway.http.base import new_app
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
from gateway.http.model_setup import ModelRoutes, Probe
from gateway.http.openai_api import OpenAIRoutes
from gateway.http.operator import OperatorRoutes
from gateway.http.operator_access import AccessRoutes
from gateway.http.operator_embeddings import EmbeddingRoutes
from gateway.http.operator_people import PeopleRoutes
from gateway.http.prompts import PromptRoutes
from gateway.http.recall_chats import RecallChatRoutes
from gateway.http.recall_chunks import RecallChunkRoutes
from gateway.http.recall_summaries import RecallSummaryRoutes
from gateway.lanes import Lanes
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
from gateway.tally import Tally
from gateway.tokens import ApiTokens
from memory import tokens as counting

BODY_MAX = 2_000_000  # bytes of a JSON body; a message of 100,000 characters fits in any script


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNeeds:
    """What the page reaches. `release`: sends what an unclean start parked; `restart`: drains and begins again; `probe`: asks a model that is being
    set up; `control_secret`: known to the command line alone."""

    around: Surroundings
    standing: Standing
    channels: ChannelSet
    lanes: Lanes
    dispatcher: Dispatcher
    stateless: Stateless
    house: House
    reports: Reports
    tally: Tally
    company: Company
    logins: Logins
    memory: MemoryParts
    prompts: PromptDesk
    release: Callable[[], Awaitable[int]]
    restart: Callable[[], None]
    probe: Probe
    control_secret: str


def build_site(needs: SiteNeeds) -> tuple[Site, LoginLinks]:
    """The server, not yet listening, and the one-time links that it takes."""
    around, standing, memory = needs.around, needs.standing, needs.memory
    db, clock, config, people = around.db, around.clock, around.config, around.people
    cache = VisitCache(clock)
    people.watch(cache.forget_person)
    sessions, links, tokens = Sessions(db, clock, cache), LoginLinks(db, clock), ApiTokens(db, clock, cache)
    scopes = MemoryScopes(db=db)
    admin = Admin(
        db=db,
        clock=clock,
        people=people,
        links=links,
        tokens=tokens,
        page=around.page,
        wake_jobs=around.wake_jobs,
        release=needs.release,
        restart=needs.restart,
        more={
            importing.COMMAND: memory.importing.run,
            **PairingAdmin(needs.company.pairing).commands,
            **LoginAdmin(needs.logins).commands,
            **memory.embeddings.commands,
        },
        config=config,
    )
    groups = (
        AccountRoutes(people=people, sessions=sessions, links=links, tokens=tokens, page=needs.house, clock=clock),
        AccountLinkRoutes(linking=needs.company.linking, people=people, config=config, clock=clock),
        ChatRoutes(
            db=db,
            clock=clock,
            config=config,
            channel=lambda: _page_of(needs.channels),
            streams=around.streams,
            lanes=needs.lanes,
            attachments=around.attachments,
            stop=partial(_stop_chat, needs.lanes, needs.dispatcher),
            challenge_files=ChallengeFiles(config().data_dir / FOLDER, lambda: config().characters),
            wake_jobs=around.wake_jobs,
        ),
        PromptRoutes(desk=needs.prompts, config=config),
        OpenAIRoutes(
            db=db,
            clock=clock,
            config=config,
            channel=lambda: _page_of(needs.channels),
            attachments=around.attachments,
            stateless=needs.stateless,
            answers=ChatAnswers(db, around.streams),
        ),
        GuestRoutes(config=config, stateless=needs.stateless),
        FileRoutes(attachments=around.attachments, config=config, clock=clock),
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
        MemoryDreamRoutes(scopes=scopes, desk=memory.desk),
        MemoryBatchRoutes(
            db=db,
            desk=memory.panel.desk,
            shelves=memory.panel.shelves,
            drafting=memory.panel.drafting,
            config=config,
            clock=clock,
        ),
        MemoryRoutes(desk=memory.panel.desk, shelves=memory.panel.shelves, config=config),  # behind those whose addresses are no ids
        HeldRoutes(
            db=db,
            files=memory.files,
            shelves=memory.panel.shelves,
            forget_me=ForgetMe(
                db=db,
                clock=clock,
                stop=partial(_stop_chat, needs.lanes, needs.dispatcher, drop_waiting=True),
                changed=people.changed,
                wake_jobs=around.wake_jobs,
            ),
        ),
        LimitRoutes(config),
        MemoryChatRoutes(db=db, clock=clock, config=config),
        RecallChatRoutes(desk=memory.tending.recall, reach=memory.tending.reach),
        RecallChunkRoutes(desk=memory.tending.recall, reach=memory.tending.reach),
        RecallSummaryRoutes(desk=memory.tending.summaries, reach=memory.tending.reach),
        EntryRoutes(desk=memory.tending.entries, reach=memory.tending.reach),
        MemoryStatusRoutes(scopes=scopes, status=memory.status),
        MemorySwitchRoutes(db=db, config=config, clock=clock, people=people),
        OperatorRoutes(db=db, clock=clock, view=needs.house, reports=needs.reports),
        PeopleRoutes(people=people, links=links, settings=lambda: config().channels.web),
        AccessRoutes(company=needs.company, logins=needs.logins),
        EmbeddingRoutes(desk=memory.embeddings, secrets_file=Path(standing.config_path).parent / SECRETS_FILE, db=db, clock=clock),
        ModelRoutes(probe=needs.probe, secrets_file=Path(standing.config_path).parent / SECRETS_FILE, db=db, clock=clock),
        HealthRoutes(
            readiness=needs.house.readiness,
            metrics=needs.tally.metrics,
            clock=clock,
            look=partial(needs.house.measure, needs.tally.metrics),
        ),
        ControlRoutes(admin, needs.control_secret),
    )
    door = Door(lambda: config().channels.web, people, sessions, tokens, cache)
    app = new_app(door, body_max=BODY_MAX)
    return Site(app, lambda: config().channels.web, [route for group in groups for route in group.routes()]), links


def _page_of(channels: ChannelSet) -> WebChannel:
    channel = channels.find(Account(channel="web"))
    if not isinstance(channel, WebChannel):
        raise ConnectionLost("the page has no channel: it is starting, stopping or switched off")
    return channel


async def _stop_chat(lanes: Lanes, dispatcher: Dispatcher, address: str, *, drop_waiting: bool) -> bool:
    """End what runs in a chat, and what waits too when asked; whether there was anything."""
    running = lanes.running(address)
    dropped = lanes.drop_waiting(address) if drop_waiting else []
    if dropped:
        await dispatcher.end_rows(dropped, "stopped")
    if running is not None:
        running.interrupt()
    return running is not None or bool(dropped)
