"""The composition root: ties everything together, part by part (`gateway/wiring/`). What then happens is in `running.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime

from agent.llm.port import ChatModel
from agent.runtime import Sleep
from agent.tools.port import Tool
from channels.message import Account
from channels.port import QrLogin
from channels.web.adapter import CAPABILITIES, WebChannel
from gateway.access import Rules
from gateway.arrivals.dispatch import Dispatcher
from gateway.attachments import Attachments
from gateway.budgets import Budgets
from gateway.channel_set import Plan
from gateway.config import Config, ModelAccount
from gateway.delivery.answer_files import OutgoingFiles
from gateway.embedding.making import make_embedder
from gateway.house import House
from gateway.login_links import LoginLinks
from gateway.logins import Logins
from gateway.managing import Managing
from gateway.model_making import make_model
from gateway.models import Models
from gateway.passwords import Passwords
from gateway.people import People
from gateway.prompt_shelf import PromptShelf
from gateway.rates import Rates
from gateway.reports import Reports
from gateway.saved.api import ApiMemories
from gateway.site import Site
from gateway.standing import Standing
from gateway.stateless import Stateless
from gateway.store import open_database, utc_now
from gateway.streams import Streams
from gateway.version import VERSION
from gateway.webhooks import WebhookListener
from gateway.wiring.channels import Outside, channel_plans, find_login
from gateway.wiring.controls import Controls
from gateway.wiring.delivery import DeliveryParts, build_delivery
from gateway.wiring.intake import build_company, build_intake
from gateway.wiring.jobs import Runners, build_runners
from gateway.wiring.memory import MemoryParts, build_memory
from gateway.wiring.site import SiteNeeds, build_site
from gateway.wiring.surroundings import Surroundings
from gateway.wiring.tasks import TaskParts, build_tasks
from gateway.wiring.turns import TurnParts, build_turns
from memory.database import Database
from memory.ports import Embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Choices:
    """What tests replace: time, models, the database; channels and tools beside our own. `sleep` is the wait between two tries of a model."""

    clock: Callable[[], datetime] = utc_now
    make_model: Callable[[ModelAccount], ChatModel] = make_model
    open_database: Callable[[Config], Database] = open_database
    more_channels: Sequence[Plan] = ()
    more_tools: Sequence[Tool] = ()
    sleep: Sleep = asyncio.sleep
    make_embedder: Callable[[Config], Embedder | None] = make_embedder


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything that was built, for the one that runs it."""

    around: Surroundings
    delivery: DeliveryParts
    memory: MemoryParts
    tasks: TaskParts
    runners: Runners
    turns: TurnParts
    dispatcher: Dispatcher
    stateless: Stateless
    budgets: Budgets
    links: LoginLinks
    reports: Reports
    site: Site
    outside: Outside
    webhooks: WebhookListener


def build(group: asyncio.TaskGroup, stack: AsyncExitStack, db: Database, standing: Standing, choices: Choices, controls: Controls) -> Parts:
    """Tie the parts together; nothing runs yet. What must be closed is on `stack`.

    A message meets the parts in the opposite order: the intake hears it, a turn answers it with what the memory gives, the delivery sends the answer.
    Each is made before those that lean on it; the four functions that follow `config` are the few looks the other way.
    """
    clock = choices.clock

    def config() -> Config:
        return standing.named

    def wake_tasks() -> None:
        tasks.loop.wake()

    def wake_jobs() -> None:
        runners.wake()

    def page() -> str:
        return site.page

    def is_running(address: str) -> bool:
        return turns.lanes.running(address) is not None

    streams = Streams()
    models = Models(choices.make_model, config())
    stack.push_async_callback(models.close)
    delivery = build_delivery(group, db, clock=clock, config=config, on_reminder=wake_tasks)
    channels = delivery.channels
    attachments = Attachments(config().data_dir / "attachments", db)
    people = People(db, clock, stack.enter_context(Passwords()))
    managing = Managing(channels.find, clock, db=db, group=group)
    prompts = PromptShelf(db=db, clock=clock, config=config)
    people.watch(prompts.forget_person)
    around = Surroundings(
        db=db,
        config=config,
        clock=clock,
        models=models,
        replies=delivery.replies,
        streams=streams,
        attachments=attachments,
        people=people,
        can=channels.capabilities,
        page=page,
        wake_jobs=wake_jobs,
        managers=managing.among,
        prompts=prompts,
    )
    memory = build_memory(stack, around, choices.make_embedder(config()))
    budgets = Budgets(db, clock=clock, config=config)
    tasks = build_tasks(around, heads=memory.heads, saved=memory.saved.turns, budgets=budgets, wake_outbox=delivery.outbox.wake, sleep=choices.sleep)
    runners = build_runners(around, memory, tasks, is_running=is_running)
    turns = build_turns(group, around, delivery, memory, tasks, budgets, standing, tools=choices.more_tools, sleep=choices.sleep)

    reports, rates, links = Reports(db, clock), Rates(clock, config), LoginLinks(db, clock)
    outside = Outside(db=db, clock=clock, read_file=OutgoingFiles(db, attachments).read)

    def login(account: Account) -> QrLogin | None:
        return find_login(config(), outside, account)

    house = House(
        version=VERSION,
        started_at=clock(),
        clock=clock,
        db=db,
        standing=standing,
        channels=channels,
        lanes=turns.lanes,
        gates=delivery.gates,
        reports=reports,
        wake_jobs=wake_jobs,
        read_again=controls.reload,
        logs_in=lambda account: login(account) is not None,
    )
    company = build_company(around, channels, memory)
    desks = memory.desks(around, tasks=tasks.tasks, company=company, logs=controls.logs, restart=controls.restart, foretell=turns.foretelling.of)
    dispatcher = build_intake(group, around, delivery, turns, company, house=house, managing=managing, desks=desks, rates=rates)
    stateless = Stateless(
        db=db,
        clock=clock,
        config=config,
        models=models,
        budgets=budgets,
        rates=rates,
        tally=delivery.tally,
        memories=ApiMemories(db=db, clock=clock, turns=memory.saved.turns, limits=memory.saved.limits),
        concurrency=config().delivery.concurrency,
    )
    site = build_site(
        SiteNeeds(
            around=around,
            standing=standing,
            controls=controls,
            delivery=delivery,
            memory=memory,
            turns=turns,
            dispatcher=dispatcher,
            stateless=stateless,
            house=house,
            reports=reports,
            company=company,
            logins=Logins(group=group, find=login, company=company, channels=channels),
            links=links,
        )
    )
    return Parts(
        around=around,
        delivery=delivery,
        memory=memory,
        tasks=tasks,
        runners=runners,
        turns=turns,
        dispatcher=dispatcher,
        stateless=stateless,
        budgets=budgets,
        links=links,
        reports=reports,
        site=site,
        outside=outside,
        webhooks=WebhookListener(channels.webhooks, lambda: config().webhooks),
    )


def plans(config: Config, parts: Parts, choices: Choices) -> list[Plan]:
    """The accounts that `config` wants to run."""
    page = Plan(
        account=Account(channel="web"),
        settings=config.channels.web.enabled,
        capabilities=CAPABILITIES,
        build=lambda: WebChannel(parts.site.answers, clock=choices.clock),
        rules=Rules,
    )
    return [*([page] if config.channels.web.enabled else []), *channel_plans(config, parts.outside), *choices.more_channels]
