"""The composition root: the one file that picks concrete classes and ties them together. What then happens is in `running.py`."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from agent.llm.port import ChatModel
from agent.runtime import Sleep
from agent.tools.port import Tool
from channels.message import Account, Address
from channels.web.adapter import CAPABILITIES, WebChannel
from gateway import attempts, entries, housekeeping, notices, previews, senders, task_jobs, titles
from gateway.access import Rules
from gateway.app_channels import Outside, channel_plans, find_login
from gateway.app_memory import MemoryParts, Surroundings, build_memory
from gateway.app_site import SiteNeeds, build_site
from gateway.app_tasks import TaskParts, build_tasks
from gateway.attachments import Attachments
from gateway.background import Background
from gateway.budgets import Budgets
from gateway.channel_set import ChannelSet, Plan
from gateway.commands import Commands
from gateway.company import Company
from gateway.config import Config, ModelAccount
from gateway.dispatch import Dispatcher
from gateway.embedder_making import make_embedder
from gateway.foretelling import Foretelling
from gateway.gate import Gates
from gateway.house import House
from gateway.http.model_setup import Probe
from gateway.jobs import JobRunner
from gateway.judging import Judging
from gateway.lanes import Lanes
from gateway.language import guess, say
from gateway.linking import Linking
from gateway.log_tail import LogTail
from gateway.login_links import LoginLinks
from gateway.logins import Logins
from gateway.managing import Managing
from gateway.memory_notices import MemoryNotices
from gateway.metrics import new_metrics
from gateway.models import Models
from gateway.observer import Observer
from gateway.outbox import Outbox
from gateway.outbox_rules import PartState
from gateway.outbox_store import OpenPart
from gateway.pairing import Pairing
from gateway.passwords import Passwords
from gateway.people import People
from gateway.places import Places
from gateway.prompt_desk import PromptDesk
from gateway.prompt_shelf import PromptShelf
from gateway.pulling import Pulling
from gateway.rates import Rates
from gateway.replies import Replies
from gateway.reports import Reports
from gateway.saved_api import ApiMemories
from gateway.shapes import judged_json
from gateway.site import Site
from gateway.stages import Stages
from gateway.standing import Standing
from gateway.stateless import Stateless
from gateway.store import open_database, utc_now
from gateway.streams import Streams
from gateway.tally import Tally
from gateway.transcribing import Transcriber, Transcribing
from gateway.turn_store import TurnEnd, TurnStart
from gateway.turns import Turns
from gateway.version import VERSION
from gateway.webhooks import WebhookListener
from memory import tokens as counting
from memory.database import Database
from memory.ports import Embedder
from memory.scopes import ROOT


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
        answer_tokens=account.answer_tokens,
        first_byte_s=account.first_byte_s,
        stall_s=account.stall_s,
        timeout_s=account.timeout_s,
    )


def make_transcriber(config: Config) -> Transcriber | None:
    """Who writes voice notes down; None when nobody does."""
    wanted = config.transcription
    if wanted.provider == "none":
        return None
    from agent.llm.transcription import EndpointTranscriber

    return EndpointTranscriber(base_url=wanted.base_url, api_key=wanted.api_key.get_secret_value(), model=wanted.model)


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

    db: Database
    streams: Streams
    stateless: Stateless
    channels: ChannelSet
    outbox: Outbox
    lanes: Lanes
    dispatcher: Dispatcher
    models: Models
    jobs: JobRunner
    errands: JobRunner  # what people wait for: reminders, results of commands; never behind a dream
    budgets: Budgets
    people: People
    links: LoginLinks
    tally: Tally
    reports: Reports
    site: Site
    memory: MemoryParts
    tasks: TaskParts
    outside: Outside
    webhooks: WebhookListener


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
    logs: LogTail,
    restart: Callable[[], None],
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

    def sent(part: OpenPart, state: PartState) -> None:
        tally.sent(part, state)
        if part.kind == "reminder":
            tasks.loop.wake()

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
    replies = Replies(outbox, can=channels.capabilities, limits=lambda: standing.config.delivery)
    attachments = Attachments(standing.config.data_dir / "attachments", db)
    outside = Outside(db=db, clock=clock, read_file=attachments.read)
    people = People(db, clock, stack.enter_context(Passwords()))

    def wake_jobs() -> None:  # the runner is made last, for it holds the handlers of all
        jobs.wake()
        errands.wake()

    managing = Managing(channels.find, clock, db=db, group=group)
    prompts = PromptShelf(db=db, clock=clock, config=config)
    people.watch(prompts.forget_person)
    around = Surroundings(
        db=db,
        config=config,
        clock=clock,
        models=models,
        replies=replies,
        streams=streams,
        attachments=attachments,
        people=people,
        can=channels.capabilities,
        page=lambda: site.page,
        wake_jobs=wake_jobs,
        managers=managing.among,
        prompts=prompts,
    )
    memory = build_memory(stack, around, choices.make_embedder(standing.config))
    spending = Budgets(db, clock=clock, config=config)
    naming = titles.Titles(
        db=db, models=models, streams=streams, config=config, clock=clock, is_running=lambda address: lanes.running(address) is not None
    )
    sweeping = housekeeping.Housekeeping(db=db, attachments_folder=attachments.folder, clock=clock, journal_days=lambda: config().saved.journal_days)
    tasks = build_tasks(around, heads=memory.heads, saved=memory.saved.turns, budgets=spending, wake_outbox=outbox.wake, sleep=choices.sleep)
    judging = Judging(
        db=db,
        models=models,
        background=Background(db=db, models=models, config=config, clock=clock),
        config=config,
        clock=clock,
        told=lambda chat, attempt: streams.publish(chat.id, "chat", judged_json(chat.id, attempt)),
    )
    handlers = {titles.KIND: naming.run, housekeeping.KIND: sweeping.run, attempts.JUDGE: judging.run, **memory.handlers}
    jobs = JobRunner(db, handlers, concurrency=standing.config.background.concurrency, grace_s=standing.config.delivery.drain_s)
    errands = JobRunner(db, {task_jobs.KIND: tasks.runs.run, **memory.errands}, grace_s=standing.config.delivery.drain_s)
    stages = Stages(
        streams=streams,
        gates=gates,
        clock=clock,
        note_preview=lambda turn_id, preview: db.write(partial(previews.note, turn_id=turn_id, preview=preview)),
        older_parts=outbox.busy_at,
    )

    def follow_up(connection: sa.Connection, start: TurnStart, ending: TurnEnd) -> None:
        now, chat = clock(), start.conversation
        attempts.after_turn(connection, chat, answered=bool(ending.answer))
        titles.after_turn(connection, start, ending, with_model=_names_well(models, standing.config, start), now=now)
        entries.after_turn(connection, standing.config, chat.id, ending.scope)
        if ending.scope == str(ROOT) and ending.state == "answered" and chat.kind in ("dm", "web"):
            language = turns.language(start)
            for number, text in enumerate(memory.adoption.notices(connection, language, now)):
                once = f"{ending.turn_id}:{number}"
                notices.tell_here(connection, chat.id, ending.scope, text, once=once, language=language, now=now)

    equip = memory.equipping(tasks.tools)
    turns = Turns(
        db=db,
        clock=clock,
        config=config,
        models=models,
        attachments=attachments,
        equip=equip,
        onboarding=memory.onboarding,
        replies=replies,
        find_channel=channels.find,
        make_stage=stages,
        observer=Observer(
            streams=streams,
            tally=tally,
            budgets=spending,
            models=models,
            standing=standing,
            wake_jobs=wake_jobs,
            talked=memory.recall.indexing.changed,
            prompts=prompts,
        ),
        follow_up=follow_up,
        budget_used=spending.used_up,
        notices=MemoryNotices(db=db, clock=clock, replies=replies, streams=streams),
        transcribing=Transcribing(db=db, attachments=attachments, make=lambda: make_transcriber(standing.config)),
        tools=choices.more_tools,
        sleep=choices.sleep,
    )
    foretelling = Foretelling(db=db, clock=clock, config=config, models=models, equipping=equip, runtime=turns.runtime, tools=choices.more_tools)
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
        logs_in=lambda account: find_login(standing.config, outside, account) is not None,
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
        memories=ApiMemories(db=db, clock=clock, turns=memory.saved.turns, limits=memory.saved.limits),
        concurrency=standing.config.delivery.concurrency,
    )
    linking = Linking(db=db, files=memory.files, people=people, clock=clock, wake_jobs=wake_jobs)
    company = Company(
        people=people,
        linking=linking,
        pairing=Pairing(db=db, clock=clock, people=people, linking=linking, replies=replies),
        places=Places(db, clock, lambda address: channels.rules(address.account)),
    )
    dispatcher = Dispatcher(
        db=db,
        clock=clock,
        config=config,
        lanes=lanes,
        commands=Commands(
            db=db,
            clock=clock,
            lanes=lanes,
            replies=replies,
            house=house,
            manages=managing.manages,
            desks=memory.desks(db, tasks=tasks.tasks, company=company, logs=logs, restart=restart, wake_jobs=wake_jobs, foretell=foretelling.of),
        ),
        replies=replies,
        streams=streams,
        group=group,
        rates=rates,
        on_event=tally.heard,
        greet=company.pairing.greet,
    )

    def ready(account: Account) -> None:
        gates.prove(account)
        outbox.wake_account(account)

    channels.connect(dispatcher.add_door, ready, pulling.connect)
    logins = Logins(group=group, find=lambda account: find_login(standing.config, outside, account), company=company, channels=channels)
    site, links = build_site(
        SiteNeeds(
            around=around,
            standing=standing,
            channels=channels,
            lanes=lanes,
            dispatcher=dispatcher,
            stateless=stateless,
            house=house,
            reports=reports,
            tally=tally,
            company=company,
            logins=logins,
            memory=memory,
            prompts=PromptDesk(db=db, config=config, shelf=prompts, foretelling=foretelling),
            release=release,
            restart=restart,
            probe=probe,
            control_secret=control_secret,
        )
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
        errands=errands,
        budgets=spending,
        people=people,
        links=links,
        tally=tally,
        reports=reports,
        site=site,
        memory=memory,
        tasks=tasks,
        outside=outside,
        webhooks=WebhookListener(channels.webhooks, lambda: standing.config.webhooks),
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


def _marked(part: OpenPart) -> str:
    return f"{part.part.text}\n{say(guess(part.part.text), 'sent_again')}"  # at the end: formatting is counted from the start


def _names_well(models: Models, config: Config, start: TurnStart) -> bool:
    """The tiny demo model names nothing well, and asking it would keep people waiting."""
    character = config.characters.get(start.conversation.character, config.characters["default"])
    return models.helper_account(character.model).provider != "demo"
