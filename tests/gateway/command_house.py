"""Commands over everything they reach, without a web server: real database, files, jobs and services, and lanes with a turn that runs."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.errors import ModelMisconfigured
from channels.loopback import CAPABILITIES
from channels.message import Account, Address, ChatType, EventKind, InboundEvent
from channels.port import Capabilities
from gateway import buttons, followups, index_rebuild, link_files, memory_export, notices, scope_removal
from gateway.access import Rules
from gateway.arrivals import inbox
from gateway.arrivals.intake import CommandCall, Received, Setting, receive
from gateway.attachments import Attachments
from gateway.background import Background
from gateway.commands import Asked, Commands, needed_role, opens_groups
from gateway.commands.desks import Desks
from gateway.commands.results import Results
from gateway.company import Company
from gateway.config import Config
from gateway.delivery import outbox_store
from gateway.delivery.gate import Gates
from gateway.delivery.outbox import Outbox
from gateway.delivery.replies import Replies
from gateway.entries.desk import EntryDesk
from gateway.entries.jobs import EntryJobs
from gateway.file_changes import FileChanges
from gateway.followups import Followups
from gateway.foretelling import Foretold
from gateway.indexing import Indexing, IndexSettings
from gateway.jobs.table import JobRow
from gateway.lanes import Holding, Lanes, RunningTurn
from gateway.language import from_tag, guess
from gateway.link_files import LinkFiles
from gateway.linking import Linking
from gateway.log_tail import LogTail
from gateway.memory_export import MemoryExport
from gateway.memory_status import MemoryStatus
from gateway.onboarding import Onboarding
from gateway.overrides import Overrides, applied
from gateway.pairing import Pairing
from gateway.passwords import Passwords
from gateway.people import People
from gateway.places import Places
from gateway.profile import Profile
from gateway.recall.desk import RecallDesk
from gateway.recall.talk_indexing import TalkIndexing
from gateway.saved.desk import SavedDesk
from gateway.saved.shelves import Shelves
from gateway.saved.turn import limits_of
from gateway.scope_removal import ScopeRemoval
from gateway.streams import Streams
from gateway.summaries.desk import SummaryDesk
from gateway.summaries.summarist import Summarist
from gateway.supervise import ChannelState, ChannelStatus
from gateway.tasks.desk import Tasks
from memory import conversations, provenance
from memory.columns import metadata
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.ids import PersonId, SpaceId
from memory.provenance import LineRow
from memory.schema import identities, people
from memory.scopes import ROOT, Scope, person_scope, space_scope
from tests.conftest import FakeClock
from tests.gateway.dreams import Dreamer
from tests.patience import patience


async def no_foretelling(chat: Conversation, person: Mapping[str, Any], *, language: str) -> Foretold:
    """No model answers in this house."""
    raise ModelMisconfigured("there is no model")


ACCOUNT = Account(channel="loopback", name="main")
WEB = Account(channel="web")
ROLES = {"gus": "guest", "uma": "user", "ada": "admin", "owen": "owner"}
MANAGERS = frozenset({"mia"})
PAGE = "http://127.0.0.1:8420"


@dataclass
class FakeHouse:
    """What commands ask of the running gateway, over a configuration that `/config` really changes."""

    file: Config
    overrides: Overrides
    started_at: datetime
    version: str = "0.0"
    reloads: int = 0
    now: Config = field(init=False)

    def __post_init__(self) -> None:
        self.now = self.file

    def config(self) -> Config:
        return self.now

    def channel_states(self) -> list[ChannelStatus]:
        return [ChannelStatus(account=ACCOUNT, state=ChannelState.READY)]

    def model_name(self) -> str:
        return "scripted"

    async def job_rows(self, limit: int) -> list[JobRow]:
        return []

    async def job_counts(self) -> dict[str, int]:
        return {"waiting": 7}

    async def reload(self) -> tuple[list[str], list[str]]:
        self.reloads += 1
        self.now, _ = applied(self.file, await self.overrides.all())
        return ["summary"], []


class CommandHouse(Dreamer):
    def __init__(self, db: Database, folder: Path, clock: FakeClock, group: asyncio.TaskGroup, **config: Any) -> None:
        super().__init__(db, folder, clock, **config)
        self.restarts: list[bool] = []
        self.woken = 0
        self.asked_platform = 0
        self.rules = Rules(groups=frozenset({"*"}))
        self._numbers = itertools.count(1)
        self.go = asyncio.Event()
        self.lanes = Lanes(group, self._turn)
        self.streams = Streams()
        self.outbox = Outbox(
            db=db, clock=clock, gates=Gates(), find_channel=lambda _account: None, group=group, marked_text=lambda part: part.part.text
        )
        self.replies = Replies(self.outbox, can=self._can, limits=lambda: self.config.delivery)
        self.attachments = Attachments(folder / "attachments", db)
        self.overrides = Overrides(db)
        self.house = FakeHouse(self.config, self.overrides, clock())
        changes = FileChanges(db=db, files=self.files, writer=self.writer, clock=clock)
        self.changes = changes
        profile = Profile(db=db, files=self.files, writer=self.writer, changes=changes, change_person=self._change_person, clock=clock)
        self.indexing = Indexing(
            db=db, files=self.files, clock=clock, today=lambda: clock().date(), list_scopes=self._scopes, embedder=None, home=None,
            settings=IndexSettings(chunk_tokens=500, chunk_overlap=50),
        )  # fmt: skip
        self.status = MemoryStatus(db=db, files=self.files, index=self.indexing, config=self.house.config, clock=clock)
        self.logs = LogTail()
        self.tasks = Tasks(db=db, clock=clock, config=self.house.config, can=self._can, wake=lambda: None, wake_jobs=self._wake)
        passwords = Passwords()
        self.persons = People(db, clock, passwords)
        linking = Linking(db=db, files=self.files, people=self.persons, clock=clock, wake_jobs=self._wake)
        self.company = Company(
            people=self.persons, linking=linking, places=Places(db, clock, lambda _address: self.rules),
            pairing=Pairing(db=db, clock=clock, people=self.persons, linking=linking, replies=self.replies),
        )  # fmt: skip
        self.talk_index = TalkIndexing(
            db=db, clock=clock, embedder=None, home=None, gap=lambda: timedelta(hours=6), record=lambda: self.house.config().recall.record
        )
        background = Background(db=db, models=self.models, config=self.house.config, clock=clock)
        self.summarist = Summarist(models=self.models, background=background, config=self.house.config)
        self.shelves = Shelves(db=db, clock=clock, config=self.house.config, managers=self._managers_among)
        self.desks = Desks(
            files=self.files, wake_jobs=self._wake, search=self.indexing.search, status=self.status, dreams=self.dreaming, changes=changes,
            undoing=self.undoing, whys=self.whys, forgetting=self.forgetting, tasks=self.tasks,
            onboarding=Onboarding(db=db, profile=profile, config=self.house.config, clock=clock), overrides=self.overrides, logs=self.logs,
            restart=lambda: self.restarts.append(True), company=self.company, shelves=self.shelves,
            saved=SavedDesk(
                db=db, clock=clock, limits=lambda: limits_of(self.house.config()), ageing_on=lambda: True, on_written=lambda: None
            ),
            recall=RecallDesk(db=db, clock=clock, config=self.house.config, indexing=self.talk_index),
            summaries=SummaryDesk(db=db, clock=clock, config=self.house.config, summarist=self.summarist, wake=self._wake),
            entries=EntryDesk(db=db, clock=clock, config=self.house.config, summarist=self.summarist, wake=self._wake),
            foretell=no_foretelling,
        )  # fmt: skip
        self.commands = Commands(
            db=db, clock=clock, lanes=self.lanes, replies=self.replies, house=self.house, manages=self._manages, desks=self.desks
        )
        self.results_words = Results(db=db, dreams=self.dreaming, attachments=self.attachments, page=lambda: PAGE, can=self._can).words
        words = {**self.results_words, notices.WHAT: notices.words}
        following = Followups(db=db, clock=clock, replies=self.replies, streams=self.streams, words=words)
        exporting = MemoryExport(db=db, files=self.files, attachments=self.attachments, timezone=lambda: self.config.timezone, clock=clock)
        self.handlers |= {
            followups.KIND: following.run,
            memory_export.KIND: exporting.run,
            link_files.KIND: LinkFiles(files=self.files, on_written=lambda _scope, _path: None).run,
            scope_removal.KIND: ScopeRemoval(files=self.files, forget_index=self.indexing.forget_scope, clock=clock).run,
            index_rebuild.KIND: index_rebuild.IndexRebuild(self.indexing).run,
            **EntryJobs(db=db, summarist=self.summarist, config=self.house.config, clock=clock).handlers,
        }

    # -- the world around

    def _can(self, account: Account) -> Capabilities | None:
        on_page = account.channel == "web"
        return replace(CAPABILITIES, buttons=not on_page, log_is_delivery=on_page, senders_are_people=on_page)

    async def _manages(self, _address: Address, sender_id: str) -> bool:
        self.asked_platform += 1
        return sender_id in MANAGERS

    async def _managers_among(self, _scope: Scope, ids: frozenset[str]) -> frozenset[str]:
        return ids & {person_id(name) for name in MANAGERS}

    async def _scopes(self) -> list[Scope]:
        return []

    async def _change_person(self, person_id: str, values: Mapping[str, str]) -> None:
        raise AssertionError("no command changes a person")

    def _wake(self) -> None:
        self.woken += 1

    async def _turn(self, turn: RunningTurn) -> None:
        """A turn that only ends when it is let go, or interrupted."""
        try:
            async with asyncio.timeout(None) as turn.scope:
                await self.go.wait()
        except TimeoutError:
            pass

    async def people(self) -> None:
        """One person for each role, known on the loopback platform, and a manager of groups who is a guest elsewhere."""
        for name, role in {**ROLES, "mia": "guest"}.items():
            scope = str(ROOT) if role == "owner" else str(person_scope(PersonId(person_id(name))))
            values = {"id": person_id(name), "name": name.title(), "role": role, "scope": scope, "created_at": self.clock()}
            known = {"person_id": values["id"], "platform_user_id": name, "created_at": self.clock()}
            known |= {"channel": ACCOUNT.channel, "account": ACCOUNT.name}
            await self.db.write(lambda c, values=values: c.execute(sa.insert(people), values))
            await self.db.write(lambda c, known=known: c.execute(sa.insert(identities), known))

    # -- what people do

    def event(self, text: str, *, by: str = "owen", chat: str = "", group: bool = False, **more: Any) -> InboundEvent:
        number = next(self._numbers)
        base = InboundEvent(
            account=ACCOUNT, kind=EventKind.MESSAGE, platform_event_id=f"e{number}", platform_message_id=f"m{number}",
            chat_id=chat or ("g1" if group else f"dm-{by}"), chat_type=ChatType.GROUP if group else ChatType.DM, sender_id=by,
            sender_name=by.title(), mentioned=True, text=text, received_at=self.clock(),
        )  # fmt: skip
        return replace(base, **more)

    async def receive(self, event: InboundEvent) -> Received:
        setting = Setting(
            now=self.clock(),
            capabilities=CAPABILITIES,
            rules=self.rules,
            prefixes=tuple(self.house.config().command_prefixes),
            needed_role=needed_role,
            opens_groups=opens_groups,
        )
        (received,) = await self.db.write(lambda c: receive(c, ACCOUNT, [event], None, setting))
        return received

    async def says(self, text: str, **who: Any) -> str:  # pyright: ignore[reportIncompatibleMethodOverride]  # here people speak through the door
        """A command, carried out; what it answers. A refusal at the door is `door: RULE`."""
        received = await self.receive(self.event(text, **who))
        if received.command is None:
            return f"door: {received.accepted.rule or 'no command'}"
        return await self.carried_out(received.command)

    async def carried_out(self, call: CommandCall) -> str:
        chat = await self.db.read(lambda c: conversations.conversation(c, call.conversation_id))
        assert chat is not None
        language = call.sender.language or from_tag(call.event.language) or guess(call.event.text)
        answer = await self.commands.run(Asked(call=call, chat=chat, language=language, now=self.clock(), desk=self))
        now, drawn = self.clock(), buttons.draw(answer.questions)

        def finish(c: sa.Connection) -> None:
            inbox.finish(c, [call.row_id], now=now, state="done")
            of, rows = call.event.delivery_id, buttons.rows(drawn)
            reply = self.replies.notice(call.event.address, answer.text, part_id=f"{of}.a", now=now, delivery_id=of, actions=rows)
            outbox_store.put(c, (*reply.parts, *answer.parts), now)
            buttons.keep(c, drawn, person_id=call.sender.id, conversation_id=chat.id, now=now)
            conversations.add_message(c, now=now, conversation_id=chat.id, role="notice", origin="command", text=answer.text)

        await self.db.write(finish)
        return answer.text

    async def end_rows(self, items: Any, rule: str) -> None:
        rows = [item.row_id for item in items]
        await self.db.write(lambda c: inbox.finish(c, rows, now=self.clock(), state="ignored", rule=rule))

    async def hand_on(self, call: CommandCall, text: str) -> None:
        await self.receive(self.event(text, by=call.event.sender_id, chat=call.event.chat_id))

    async def talk(self, text: str, answer: str = "", **who: Any) -> Message:
        """A message of somebody, and what was answered."""
        received = await self.receive(self.event(text, **who))
        assert received.message is not None, received.accepted.rule
        message = received.message
        rows = [received.waiting.row_id] if received.waiting else []
        await self.db.write(lambda c: inbox.finish(c, rows, now=self.clock()))
        if answer:
            values = {"conversation_id": message.conversation_id, "turn_id": message.turn_id, "role": "assistant", "origin": "assistant"}
            await self.db.write(partial(conversations.add_message, now=self.clock(), text=answer, scope=message.scope, **values))
        self.clock.advance(seconds=1)
        return message

    async def begin_turn(self, **who: Any) -> RunningTurn:
        """A turn that runs until it is stopped."""
        received = await self.receive(self.event("think about it", **who))
        assert received.waiting is not None
        if (running := self.lanes.running(received.waiting.address)) is not None and not running.stopped:
            return running
        self.lanes.put(received.waiting, Holding(quiet_s=0, text_max=4096), may_steer=False)
        async with asyncio.timeout(patience(5)):
            while (running := self.lanes.running(received.waiting.address)) is None:  # noqa: ASYNC110  # the lane begins by itself
                await asyncio.sleep(0.001)
        return running

    async def know(self, path: str, *rows: LineRow, scope: Scope = ROOT) -> None:
        """Provenance of lines that stand in a file."""
        await self.db.write(lambda c: provenance.put_lines(c, str(scope), path, rows, self.clock()))

    # -- what came of it

    async def chat_of(self, *, by: str = "owen", group: bool = False) -> Conversation:
        address = str(Address(account=ACCOUNT, chat_id="g1" if group else f"dm-{by}"))
        found = await self.db.read(lambda c: conversations.conversation_by_key(c, address))
        assert found is not None
        return found

    async def results(self) -> None:
        """Run the jobs, and the waiting for them, until nothing is left."""
        for _ in range(20):
            await self.run()
            self.clock.advance(seconds=40)
            if not await self.run_one():
                return

    async def do(self, work: Callable[[sa.Connection], Any]) -> Any:
        return await self.db.write(work)

    async def notices(self, chat: Conversation) -> list[str]:
        """The notices in a chat's log, oldest first."""
        table = metadata.tables["messages"]
        shown = (table.c.conversation_id == chat.id) & (table.c.role == "notice") & (table.c.state == "live")
        return await self.db.read(lambda c: list(c.execute(sa.select(table.c.text).where(shown).order_by(table.c.seq)).scalars()))

    async def space(self, space_id: str = "", title: str = "") -> Any:
        if space_id:
            return await super().space(space_id, title)
        chat = await self.chat_of(group=True)
        return space_scope(SpaceId(str(chat.space_id)))


def person_id(name: str) -> str:
    return f"p-{name:a<10}"


def scope_of_person(name: str) -> Scope:
    return person_scope(PersonId(person_id(name)))


@asynccontextmanager
async def command_house(db: Database, folder: Path, clock: FakeClock, **config: Any) -> AsyncGenerator[CommandHouse]:
    async with asyncio.TaskGroup() as group:
        house = CommandHouse(db, folder, clock, group, **config)
        await house.people()
        yield house
        house.go.set()
        house.lanes.close()
        house.outbox.close()
        await house.close()
