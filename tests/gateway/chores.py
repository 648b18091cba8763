"""The tasks of one gateway over a real database, outbox and loopback platform, without the rest of the gateway; time moves when told."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.llm.port import ChatModel
from agent.llm.scripted import ScriptedModel
from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, Address
from channels.port import Capabilities
from channels.web.adapter import CAPABILITIES as WEB
from gateway.access import Rules
from gateway.arrivals import senders
from gateway.budgets import Budgets
from gateway.config import Config
from gateway.delivery.gate import Gates
from gateway.delivery.outbox import Outbox
from gateway.delivery.replies import Replies
from gateway.embedding.change import EmbeddingChange
from gateway.heads import Heads
from gateway.jobs.runner import JobRunner
from gateway.models import Models
from gateway.streams import Streams
from gateway.tasks.asking import Asking
from gateway.tasks.desk import Tasks, Wanted
from gateway.tasks.jobs import KIND
from gateway.tasks.loop import TaskLoop
from gateway.tasks.runner import TaskRuns
from gateway.wiring.saved import build_saved
from memory import conversations
from memory import tasks as rows
from memory.columns import metadata
from memory.conversations import Conversation, Message
from memory.database import Database
from memory.head_files import HeadFiles
from memory.lore_pages import LorePages
from memory.schema import people, spaces
from memory.tasks import Task
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads
from tests.conftest import FakeClock
from tests.patience import patience

ACCOUNT = Account(channel="loopback")
PEOPLE = {"ann": "p-aaaaaaaaaa", "bob": "p-bbbbbbbbbb", "own": "p-oooooooooo"}
SPACE = "s-ssssssssss"
ADMITTED = Rules(allow=frozenset({"*"}), groups=frozenset({"*"}))


@dataclass
class Chores:
    """`chats`: `ann`, `bob` and `own` are direct, `group` and `topic` a group and its topic, `web` and `challenge` the page's. `killed`: the process
    ends as soon as a run has stored what it says."""

    db: Database
    clock: FakeClock
    folder: Path
    group: asyncio.TaskGroup
    files: WorkspaceThreads
    workspace: Workspace
    settings: dict[str, Any] = field(default_factory=dict[str, Any])
    capabilities: Capabilities = CAPABILITIES
    platform: LoopbackPlatform = field(default_factory=LoopbackPlatform)
    model: ChatModel = field(default_factory=lambda: ScriptedModel(lambda _request: "an answer"))
    chats: dict[str, Conversation] = field(default_factory=dict[str, Conversation])
    killed: bool = False

    def __post_init__(self) -> None:
        self.platform.clock = self.clock
        self.open()

    @property
    def config(self) -> Config:
        base = {"timezone": "UTC", "agent_workspace": str(self.folder), "data_dir": str(self.folder / "data"), **self.settings}
        return Config.model_validate(base, strict=False)

    def open(self) -> None:
        """What a start builds."""
        channel = LoopbackChannel(self.platform, account=ACCOUNT, capabilities=self.capabilities)
        can: Mapping[str, Capabilities] = {str(ACCOUNT): self.capabilities, "web:main": WEB}
        self.outbox = Outbox(
            db=self.db, clock=self.clock, gates=Gates(), find_channel=lambda account: channel if account == ACCOUNT else None, group=self.group,
            marked_text=lambda part: part.part.text, on_outcome=lambda _part, _state: self.loop.wake(),
            revoked=lambda connection, address: senders.lost_access(connection, address, ADMITTED),
        )  # fmt: skip
        replies = Replies(self.outbox, can=lambda account: can.get(str(account)), limits=lambda: self.config.delivery)
        models = Models(lambda _account: self.model, self.config)
        self.budgets = Budgets(self.db, clock=self.clock, config=lambda: self.config)
        heads = Heads(
            db=self.db, threads=self.files, files=HeadFiles(self.workspace), pages=LorePages(self.workspace), curated_max=lambda: 4000
        )
        self.streams = Streams()
        change = EmbeddingChange(self.db, self.clock)
        saved = build_saved(db=self.db, clock=self.clock, config=lambda: self.config, embedder=None, change=change).turns
        asking = Asking(
            db=self.db, clock=self.clock, config=lambda: self.config, models=models, heads=heads, saved=saved, budgets=self.budgets,
            sleep=_no_wait,
        )  # fmt: skip
        self.loop = TaskLoop(db=self.db, clock=self.clock, config=lambda: self.config, wake_jobs=lambda: None)
        self.runs = TaskRuns(
            db=self.db, clock=self.clock, config=lambda: self.config, replies=replies, streams=self.streams, asking=asking,
            wake_outbox=self.sends, wake=self.loop.wake,
        )  # fmt: skip
        self.tasks = Tasks(
            db=self.db, clock=self.clock, config=lambda: self.config, can=lambda account: can.get(str(account)), wake=self.loop.wake,
            wake_jobs=lambda: None,
        )  # fmt: skip

    async def furnish(self) -> None:
        await self.db.write(self._furnish)

    def _furnish(self, connection: sa.Connection) -> None:
        now = self.clock()
        for name, person in PEOPLE.items():
            role, scope = ("owner", "root") if name == "own" else ("user", f"people/{person}")
            connection.execute(sa.insert(people).values(id=person, name=name.title(), role=role, scope=scope, created_at=now))
        connection.execute(
            sa.insert(spaces).values(id=SPACE, channel="loopback", account="main", platform_space_id="g1", allowed=True, created_at=now)
        )
        places = {
            "ann": ("dm", "loopback:main:ann", PEOPLE["ann"], None), "bob": ("dm", "loopback:main:bob", PEOPLE["bob"], None),
            "own": ("dm", "loopback:main:own", PEOPLE["own"], None), "group": ("group", "loopback:main:g1", None, SPACE),
            "topic": ("group", "loopback:main:g1:42", None, SPACE), "web": ("web", "web:main:w1", PEOPLE["own"], None),
            "challenge": ("challenge", "web:main:w2", PEOPLE["own"], None),
        }  # fmt: skip
        for name, (kind, key, person, space) in places.items():
            account = Address.parse(key).account
            new = conversations.create_conversation(
                connection, now=now, key=key, channel=account.channel, account=account.name, kind=kind, person_id=person, space_id=space
            )
            made = conversations.conversation(connection, new)
            assert made is not None
            self.chats[name] = made

    async def make(
        self, text: str = "drink water", when: str = "0 9 * * *", *, by: str = "own", at: str = "", scope: str | None = None, **more: Any
    ) -> Task:
        """A task of `by` in the chat `at`, their own if not said."""
        chat = self.chats[at or by]
        own = "root" if by == "own" else f"people/{PEOPLE[by]}"
        settled = scope if scope is not None else (f"spaces/{SPACE}" if chat.space_id else own)
        return await self.tasks.create(
            Wanted(**{"chat": chat, "person_id": PEOPLE[by], "scope": settled, "text": text, "when": when, "language": "en", **more})
        )

    async def task(self, task: Task | int) -> Task:
        number = task if isinstance(task, int) else task.id
        found = await self.db.read(lambda connection: rows.read(connection, number))
        assert found is not None
        return found

    async def set(self, task: Task, **values: Any) -> None:
        await self.db.write(lambda connection: rows.change(connection, task.id, self.clock(), **values))

    async def claim(self) -> float:
        """One look of the loop."""
        return await self.loop.tick()

    async def work(self) -> None:
        """Run every job that is due, and let everything leave that can leave now."""
        runner = JobRunner(self.db, {KIND: self.runs.run}, database_clock=self.clock, sleep=_never)
        async with asyncio.TaskGroup() as group:
            task = group.create_task(runner.run())
            await self.until_still()
            runner.close()
            await task
        async with asyncio.timeout(patience(5)):
            await self.outbox.drained()

    def sends(self, address: str) -> None:
        if self.killed:
            raise KeyError("the process ends here, after the message was stored")
        self.outbox.wake(address)

    async def until_still(self) -> None:
        """Until no job is due or running."""
        jobs = metadata.tables["jobs"]
        open_ = sa.select(sa.func.count()).where(
            (jobs.c.state == "running") | ((jobs.c.state == "waiting") & (jobs.c.not_before <= sa.bindparam("now", type_=jobs.c.not_before.type)))
        )
        async with asyncio.timeout(patience(10)):
            while await self.db.read(lambda connection: connection.execute(open_, {"now": self.clock()}).scalar_one()):  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    async def go(self, until: str | None = None, **time: float) -> None:
        """Move the clock, claim what is due, run it, send it, and write down how it went."""
        if until is not None:
            self.clock.now = datetime.fromisoformat(f"{until}+00:00")
        self.clock.advance(**time)
        await self.claim()
        await self.work()
        await self.claim()

    async def log(self, chat: str = "own") -> list[Message]:
        key = self.chats[chat].key

        def work(connection: sa.Connection) -> list[Message]:
            found = conversations.conversation_by_key(connection, key)
            return [] if found is None else conversations.window(connection, found.id, found.window_edge)

        return await self.db.read(work)

    async def rows(self, table: str, *columns: str) -> list[Any]:
        source = metadata.tables[table]
        query = sa.select(*(source.c[name] for name in columns)).order_by(source.c.id)
        found = await self.db.read(lambda connection: connection.execute(query).all())
        return [row[0] if len(columns) == 1 else tuple(row) for row in found]


async def _no_wait(_seconds: float) -> None:
    await asyncio.sleep(0)


async def _never(_seconds: float) -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def chores(
    db: Database, clock: FakeClock, folder: Path, *, answer: Callable[[Any], Any] | None = None, **more: Any
) -> AsyncGenerator[Chores]:
    """Furnished: `own` is the owner, `ann` and `bob` are users, there is one group with a topic, and a chat of the page."""
    workspace = Workspace(folder / "workspace", folder / "data", clock)
    (folder / "workspace").mkdir(parents=True, exist_ok=True)
    files = WorkspaceThreads(workspace)
    if answer is not None:
        more["model"] = ScriptedModel(answer)
    try:
        async with asyncio.TaskGroup() as group:
            made = Chores(db, clock, folder, group, files, workspace, **more)
            await made.furnish()
            yield made
            made.outbox.close()
    finally:
        await files.close()
