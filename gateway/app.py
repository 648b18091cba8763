"""The composition root: the one file that picks concrete classes and ties them together. What then happens is in `running.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from agent.llm.port import ChatModel
from agent.runtime import Sleep
from agent.tools.port import Tool
from channels.errors import ConnectionLost
from channels.message import Account
from channels.port import Channel
from channels.web.adapter import CAPABILITIES, WebChannel
from gateway import housekeeping, senders, titles, turn_store
from gateway.access import Rules
from gateway.admin import Admin
from gateway.attachments import Attachments
from gateway.budgets import Budgets
from gateway.channel_set import ChannelSet, Plan
from gateway.chat_answers import ChatAnswers
from gateway.commands import Commands
from gateway.config import Config, ModelAccount
from gateway.config_env import SECRETS_FILE
from gateway.credentials import VisitCache
from gateway.dispatch import Dispatcher
from gateway.gate import Gates
from gateway.heads import Heads
from gateway.house import House
from gateway.http.account import AccountRoutes
from gateway.http.auth import Door
from gateway.http.base import new_app
from gateway.http.chats import ChatRoutes
from gateway.http.control import ControlRoutes
from gateway.http.files import FileRoutes
from gateway.http.guest import GuestRoutes
from gateway.http.health import HealthRoutes
from gateway.http.model_setup import ModelRoutes, Probe
from gateway.http.openai_api import OpenAIRoutes
from gateway.http.operator import OperatorRoutes
from gateway.http.operator_people import PeopleRoutes
from gateway.jobs import JobRunner
from gateway.lanes import Lanes
from gateway.language import guess, say
from gateway.login_links import LoginLinks
from gateway.managing import Managing
from gateway.metrics import new_metrics
from gateway.models import Models
from gateway.observer import Observer
from gateway.outbox import Outbox
from gateway.outbox_store import OpenPart
from gateway.passwords import Passwords
from gateway.people import People
from gateway.rates import Rates
from gateway.replies import Replies
from gateway.reports import Reports
from gateway.sessions import Sessions
from gateway.site import Site
from gateway.stages import Stages
from gateway.standing import Standing
from gateway.stateless import Stateless
from gateway.store import open_database, utc_now
from gateway.streams import Streams
from gateway.tally import Tally
from gateway.tokens import ApiTokens
from gateway.turn_store import TurnEnd, TurnStart
from gateway.turns import Turns
from memory import tokens as counting
from memory.database import Database
from memory.head_files import HeadFiles
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

VERSION = "0.1.0"
BODY_MAX = 2_000_000  # bytes of a JSON body; a message of 100,000 characters fits in any script


def make_model(account: ModelAccount) -> ChatModel:
    """The real thing for a model account. Imported here: the SDK costs two seconds, and the demo model needs none until its first use."""
    if account.provider == "demo":
        from agent.llm.demo import DemoModel

        return DemoModel(count_tokens=counting.count)
    from agent.llm.openai_client import OpenAIModel

    return OpenAIModel(
        base_url=account.base_url,
        model=account.name,
        api_key=account.api_key.get_secret_value(),
        context_window=account.window_tokens,
        count_tokens=counting.count,
        supports_tools=account.supports_tools,
        sees_images=account.sees_images,
        temperature=account.temperature,
        max_output_tokens=account.max_output_tokens or None,
        first_byte_s=account.first_byte_s,
        stall_s=account.stall_s,
        timeout_s=account.timeout_s,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What tests replace: time, models, the database; channels and tools beside our own. `sleep` is the wait between two tries of a model."""

    clock: Callable[[], datetime] = utc_now
    make_model: Callable[[ModelAccount], ChatModel] = make_model
    open_database: Callable[[Config], Database] = open_database
    more_channels: Sequence[Plan] = ()
    more_tools: Sequence[Tool] = ()
    sleep: Sleep = asyncio.sleep


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that was built, for the one that runs it."""

    db: Database
    streams: Streams
    stateless: Stateless
    channels: ChannelSet
    outbox: Outbox
    lanes: Lanes
    dispatcher: Dispatcher
    models: Models
    jobs: JobRunner
    budgets: Budgets
    people: People
    links: LoginLinks
    tally: Tally
    reports: Reports
    site: Site


def build(
    group: asyncio.TaskGroup,
    stack: AsyncExitStack,
    db: Database,
    standing: Standing,
    choices: Choices,
    *,
    reload: Callable[[], Awaitable[tuple[list[str], list[str]]]],
    release: Callable[[], Awaitable[int]],
    probe: Probe,
    control_secret: str,
) -> Parts:
    """Tie the parts together; nothing runs yet. What must be closed is on `stack`. `reload` and `release` are the runner's own (see `running.py`)."""
    clock = choices.clock

    def config() -> Config:
        return standing.config

    streams, gates = Streams(), Gates()
    models = Models(choices.make_model, standing.config)
    stack.push_async_callback(models.close)
    channels = ChannelSet(group=group, clock=clock)
    tally = Tally(new_metrics(), channels, clock)
    outbox = Outbox(
        db=db,
        clock=clock,
        gates=gates,
        find_channel=channels.find,
        group=group,
        marked_text=_marked,
        on_outcome=tally.sent,
        on_account_stopped=tally.halted,
        revoked=lambda connection, address: (
            (rules := channels.rules(address.account)) is not None and senders.lost_access(connection, address, rules)
        ),
    )
    replies = Replies(outbox, can=channels.capabilities, limits=lambda: standing.config.delivery)
    attachments = Attachments(standing.config.data_dir / "attachments", db)
    workspace = Workspace(standing.config.agent_workspace, standing.config.data_dir, clock)
    files = WorkspaceThreads(workspace)
    stack.push_async_callback(files.close)
    spending = Budgets(db, clock=clock, config=config)
    naming = titles.Titles(
        db=db, models=models, streams=streams, config=config, clock=clock, is_running=lambda address: lanes.running(address) is not None
    )
    sweeping = housekeeping.Housekeeping(db=db, attachments_folder=attachments.folder, clock=clock)
    handlers = {titles.KIND: naming.run, housekeeping.KIND: sweeping.run}
    jobs = JobRunner(db, handlers, grace_s=standing.config.delivery.drain_s)
    stages = Stages(
        streams=streams,
        gates=gates,
        clock=clock,
        store_preview=lambda turn_id, ids: db.write(partial(turn_store.store_preview, turn_id=turn_id, ids=ids)),
        older_parts=outbox.busy_at,
    )

    def follow_up(connection: sa.Connection, start: TurnStart, ending: TurnEnd) -> None:
        titles.after_turn(connection, start, ending, with_model=_names_well(models, standing.config, start), now=clock())

    turns = Turns(
        db=db,
        clock=clock,
        config=config,
        models=models,
        attachments=attachments,
        heads=Heads(files, HeadFiles(workspace)),
        replies=replies,
        find_channel=channels.find,
        make_stage=stages,
        observer=Observer(streams=streams, tally=tally, budgets=spending, models=models, standing=standing, wake_jobs=jobs.wake),
        follow_up=follow_up,
        budget_used=spending.used_up,
        tools=choices.more_tools,
        sleep=choices.sleep,
    )
    lanes = Lanes(group, turns.run, concurrency=standing.config.delivery.concurrency)
    reports = Reports(db, clock)
    house = House(
        version=VERSION,
        started_at=clock(),
        clock=clock,
        db=db,
        standing=standing,
        channels=channels,
        lanes=lanes,
        gates=gates,
        reports=reports,
        jobs=jobs,
        read_again=reload,
    )
    rates = Rates(clock, config)
    stateless = Stateless(
        db=db,
        clock=clock,
        config=config,
        models=models,
        budgets=spending,
        rates=rates,
        tally=tally,
        concurrency=standing.config.delivery.concurrency,
    )
    dispatcher = Dispatcher(
        db=db,
        clock=clock,
        config=config,
        lanes=lanes,
        commands=Commands(db=db, clock=clock, lanes=lanes, replies=replies, house=house, manages=Managing(channels.find, clock).manages),
        replies=replies,
        streams=streams,
        group=group,
        rates=rates,
        on_event=tally.heard,
    )

    def ready(account: Account) -> None:
        gates.prove(account)
        outbox.wake_account(account)

    channels.connect(dispatcher.add_door, ready)
    people = People(db, clock, stack.enter_context(Passwords()))
    cache = VisitCache(clock)
    people.watch(cache.forget_person)
    sessions, links, tokens = Sessions(db, clock, cache), LoginLinks(db, clock), ApiTokens(db, clock, cache)
    admin = Admin(
        db=db,
        clock=clock,
        people=people,
        links=links,
        tokens=tokens,
        page=lambda: site.page,
        wake_jobs=jobs.wake,
        release=release,
    )
    door = Door(lambda: standing.config.channels.web, people, sessions, tokens, cache)
    chat_routes = ChatRoutes(
        db=db,
        clock=clock,
        config=config,
        channel=lambda: _page_of(channels),
        streams=streams,
        lanes=lanes,
        attachments=attachments,
        stop=partial(stop_chat, lanes, dispatcher),
    )
    openai_routes = OpenAIRoutes(
        db=db,
        clock=clock,
        config=config,
        channel=lambda: _page_of(channels),
        attachments=attachments,
        stateless=stateless,
        answers=ChatAnswers(db, streams),
    )
    site = Site(
        new_app(door, body_max=BODY_MAX),
        lambda: standing.config.channels.web,
        [
            *AccountRoutes(people=people, sessions=sessions, links=links, tokens=tokens, page=house, clock=clock).routes(),
            *chat_routes.routes(),
            *openai_routes.routes(),
            *GuestRoutes(config=config, stateless=stateless).routes(),
            *FileRoutes(attachments=attachments, config=config, clock=clock).routes(),
            *OperatorRoutes(db=db, clock=clock, view=house, reports=reports).routes(),
            *PeopleRoutes(people=people, links=links, settings=lambda: standing.config.channels.web).routes(),
            *ModelRoutes(probe=probe, secrets_file=Path(standing.config_path).parent / SECRETS_FILE, db=db, clock=clock).routes(),
            *HealthRoutes(
                readiness=house.readiness, metrics=tally.metrics, clock=clock, look=partial(house.measure, tally.metrics)
            ).routes(),
            *ControlRoutes(admin, control_secret).routes(),
        ],
    )
    return Parts(
        db=db,
        streams=streams,
        stateless=stateless,
        channels=channels,
        outbox=outbox,
        lanes=lanes,
        dispatcher=dispatcher,
        models=models,
        jobs=jobs,
        budgets=spending,
        people=people,
        links=links,
        tally=tally,
        reports=reports,
        site=site,
    )


def plans(config: Config, site: Site, choices: Choices) -> list[Plan]:
    """The accounts that `config` wants to run."""
    page = Plan(
        account=Account(channel="web"),
        settings=config.channels.web.enabled,
        capabilities=CAPABILITIES,
        build=lambda: WebChannel(site.answers, clock=choices.clock),
        rules=Rules,
    )
    return [*([page] if config.channels.web.enabled else []), *choices.more_channels]


def _marked(part: OpenPart) -> str:
    return f"{part.part.text}\n{say(guess(part.part.text), 'sent_again')}"  # at the end: formatting is counted from the start


def _names_well(models: Models, config: Config, start: TurnStart) -> bool:
    """The tiny demo model names nothing well, and asking it would keep people waiting."""
    character = config.characters.get(start.conversation.character, config.characters["default"])
    return models.helper_account(character.model).provider != "demo"


def _page_of(channels: ChannelSet) -> WebChannel:
    channel: Channel | None = channels.find(Account(channel="web"))
    if not isinstance(channel, WebChannel):
        raise ConnectionLost("the page has no channel: it is starting, stopping or switched off")
    return channel


async def stop_chat(lanes: Lanes, dispatcher: Dispatcher, address: str, *, drop_waiting: bool) -> bool:
    """End what runs in a chat, and what waits too when asked; whether there was anything."""
    running = lanes.running(address)
    dropped = lanes.drop_waiting(address) if drop_waiting else []
    if dropped:
        await dispatcher.end_rows(dropped, "stopped")
    if running is not None:
        running.interrupt()
    return running is not None or bool(dropped)
