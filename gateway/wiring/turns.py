"""The part of the composition root that is about answering: a lane for each chat, the turns in it, and what follows one (see `gateway/app.py`)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import sqlalchemy as sa

from agent.runtime import Sleep
from agent.tools.port import Tool
from gateway import attempts, notices, titles
from gateway.arrivals.fetching import Fetcher
from gateway.budgets import Budgets
from gateway.delivery import previews
from gateway.entries import jobs as entries
from gateway.foretelling import Foretelling
from gateway.lanes import Lanes
from gateway.memory_notices import MemoryNotices
from gateway.model_making import make_transcriber
from gateway.observer import Observer
from gateway.runtimes import Runtimes
from gateway.stages import Stages
from gateway.standing import Standing
from gateway.transcribing import Transcribing
from gateway.turn_ending import FollowUp, TurnEndings
from gateway.turn_prompt import TurnPrompts
from gateway.turn_store import TurnEnd, TurnStart
from gateway.turns import Turns
from gateway.wiring.delivery import DeliveryParts
from gateway.wiring.memory import MemoryParts
from gateway.wiring.surroundings import Surroundings
from gateway.wiring.tasks import TaskParts
from memory.scopes import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnParts:
    """`lanes` run the turns, one at a time in each chat; `foretelling`: what would be sent now."""

    lanes: Lanes
    foretelling: Foretelling


def build_turns(
    group: asyncio.TaskGroup,
    around: Surroundings,
    delivery: DeliveryParts,
    memory: MemoryParts,
    tasks: TaskParts,
    budgets: Budgets,
    standing: Standing,
    *,
    tools: Sequence[Tool],
    sleep: Sleep,
) -> TurnParts:
    """`tools`: beside our own; `sleep`: the wait between two tries of a model."""
    db, clock, config, models, streams = around.db, around.clock, around.config, around.models, around.streams
    attachments, equipping, runtimes = around.attachments, memory.equipping(tasks.tools), Runtimes(config, sleep)
    observer = Observer(
        streams=streams,
        tally=delivery.tally,
        budgets=budgets,
        models=models,
        standing=standing,
        wake_jobs=around.wake_jobs,
        talked=memory.recall.indexing.changed,
        prompts=around.prompts,
    )
    turns = Turns(
        db=db,
        clock=clock,
        config=config,
        models=models,
        equip=equipping,
        prompts=TurnPrompts(
            clock=clock,
            config=config,
            attachments=attachments,
            fetcher=Fetcher(db=db, attachments=attachments, find_channel=delivery.channels.find, clock=clock),
            transcribing=Transcribing(db=db, attachments=attachments, make=lambda: make_transcriber(config())),
        ),
        runtimes=runtimes,
        make_stage=Stages(
            streams=streams,
            gates=delivery.gates,
            clock=clock,
            note_preview=lambda turn_id, preview: db.write(partial(previews.note, turn_id=turn_id, preview=preview)),
            older_parts=delivery.outbox.busy_at,
        ),
        endings=TurnEndings(
            db=db,
            clock=clock,
            config=config,
            models=models,
            onboarding=memory.onboarding,
            replies=around.replies,
            observer=observer,
            notices=MemoryNotices(db=db, clock=clock, replies=around.replies, streams=streams),
            follow_up=_follow_up(around, memory),
        ),
        find_channel=delivery.channels.find,
        budget_used=budgets.used_up,
        tools=tools,
    )
    return TurnParts(
        lanes=Lanes(group, turns.run, concurrency=config().delivery.concurrency),
        foretelling=Foretelling(db=db, clock=clock, config=config, models=models, equipping=equipping, runtimes=runtimes, tools=tools),
    )


def _follow_up(around: Surroundings, memory: MemoryParts) -> FollowUp:
    """The jobs and notices that a turn makes necessary, in its last transaction."""

    def follow_up(connection: sa.Connection, start: TurnStart, ending: TurnEnd) -> None:
        now, config, chat = around.clock(), around.config(), start.conversation
        helper = around.models.helper_account(config.characters.get(chat.character, config.characters["default"]).model)
        attempts.after_turn(connection, chat, answered=bool(ending.answer))
        titles.after_turn(connection, start, ending, with_model=helper.provider != "demo")  # the tiny model names nothing well, and people would wait
        entries.after_turn(connection, config, chat.id, ending.scope)
        if ending.scope == str(ROOT) and ending.state == "answered" and chat.kind in ("dm", "web"):
            for number, text in enumerate(memory.dreams.adoption.notices(connection, start.language, now)):
                once = f"{ending.turn_id}:{number}"
                notices.tell_here(connection, chat.id, ending.scope, text, once=once, language=start.language, now=now)

    return follow_up
