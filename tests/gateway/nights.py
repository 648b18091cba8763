"""Files, a log and the night's jobs without the rest of the gateway: real database, real files, a scripted model, a clock that stands."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from gateway import nightly, trimming
from gateway.background import Background
from gateway.config import Config
from gateway.day_files import DayFiles
from gateway.jobs import claims
from gateway.jobs.claims import Claim
from gateway.jobs.failures import after_failure
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.table import Job, JobRow, find_job
from gateway.models import Models
from gateway.nightly import Nightly
from gateway.summaries.digesting import Digester
from gateway.summaries.summarizing import Summarizing
from memory import conversations, coverage, provenance
from memory.coverage import Covered
from memory.database import Database
from memory.file_schema import coverage as coverage_table
from memory.schema import jobs, messages, people, spaces
from memory.scopes import ROOT, Scope, parse_scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads
from tests.conftest import FakeClock

MODEL = {"model": {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "scripted"}}
OWNER = "p-owneraaaaa"


def labels(request: ModelRequest) -> list[str]:
    """The labels of the messages that a summary request shows."""
    return re.findall(r"^(m\d+) \[", request.messages[-1].text, re.MULTILINE)


def shown(request: ModelRequest) -> list[tuple[str, str]]:
    """Label and words of each message of a summary request, one line each."""
    return re.findall(r"^(m\d+) \[[^\]]*\] [^:\n]*: (.*)$", request.messages[-1].text, re.MULTILINE)


def answer(*bullets: tuple[str, Sequence[str]]) -> str:
    return json.dumps({"bullets": [{"text": text, "sources": list(sources)} for text, sources in bullets]}, ensure_ascii=False)


def each_said(request: ModelRequest) -> str:
    """A bullet for each message: what was said, word for word."""
    return answer(*[(f"Said: {words}", [label]) for label, words in shown(request)])


class Night:
    def __init__(
        self,
        db: Database,
        folder: Path,
        clock: FakeClock,
        script: Callable[[ModelRequest], Reply] = each_said,
        *,
        make_files: Callable[[Workspace], WorkspaceThreads] = WorkspaceThreads,
        **config: Any,
    ) -> None:
        self.db, self.clock = db, clock
        self.config = Config.model_validate({"timezone": "UTC", **MODEL, **config})
        self.workspace = Workspace(folder / "workspace", folder / "workspace" / ".yumegate", clock)
        self.files = make_files(self.workspace)
        self.script = script
        self.model = ScriptedModel(self._played)
        self.models = Models(lambda _account: self.model, self.config)
        self.written: list[tuple[str, str]] = []
        self.background = Background(db=db, models=self.models, config=lambda: self.config, clock=clock)
        self.day_files = DayFiles(files=self.files, clock=clock, on_written=lambda scope, path: self.written.append((str(scope), path)))
        self.digester = Digester(models=self.models, background=self.background, config=lambda: self.config)
        self.summarizing = Summarizing(db=db, digester=self.digester, day_files=self.day_files, config=lambda: self.config, clock=clock)
        self.handlers: dict[str, Handler] = {**self.summarizing.handlers, "dream": self._dream}
        self.dreams: list[tuple[str, str]] = []
        self.nightly = self.nightly_anew()
        self._tokens = 0

    def _played(self, request: ModelRequest) -> Reply:
        return self.script(request)

    def nightly_anew(self) -> Nightly:
        """As after a restart: what a process remembers is gone."""
        return Nightly(db=self.db, files=self.files, config=lambda: self.config, clock=self.clock, on_enqueued=lambda: None)

    async def close(self) -> None:
        await self.files.close()
        await self.models.close()

    # -- talk

    async def person(self, person_id: str = OWNER, *, scope: str = "root", **more: Any) -> str:
        values = {"id": person_id, "name": "Ana", "role": "owner", "scope": scope, "created_at": self.clock(), **more}
        await self.db.write(lambda c: c.execute(sa.insert(people), values))
        return person_id

    async def space(self, space_id: str, title: str) -> str:
        values = {"id": space_id, "channel": "discord", "account": "main", "platform_space_id": space_id, "title": title, "created_at": self.clock()}
        await self.db.write(lambda c: c.execute(sa.insert(spaces), values))
        return space_id

    async def chat(self, channel: str = "telegram", *, title: str = "", kind: str = "dm", space_id: str | None = None) -> str:
        key = f"{channel}:main:{self.clock():%H%M%S}-{title}-{await self.count(conversations.conversations)}"
        return await self.db.write(
            lambda c: conversations.create_conversation(
                c, now=self.clock(), key=key, channel=channel, account="main", kind=kind, title=title, space_id=space_id
            )
        )

    async def says(
        self, chat: str, text: str, *, at: datetime | None = None, scope: str = "root", by: str = OWNER, role: str = "user", **more: Any
    ) -> conversations.Message:
        """One message; `role="assistant"` for an answer."""
        person = role == "user"
        values = {"role": role, "origin": "person" if person else "assistant", "scope": scope}
        values |= {"author_person_id": by if person else "", "author_name": "Ana" if person else "Yume"}
        work = partial(conversations.add_message, now=at or self.clock(), conversation_id=chat, text=text, **(values | more))
        return await self.db.write(work)

    async def answers(self, chat: str, text: str, **more: Any) -> conversations.Message:
        return await self.says(chat, text, role="assistant", **more)

    async def leaves(self, chat: str, first: int, last: int, *, scope: str = "root", overflow: bool = False) -> None:
        """A trim, as the end of a turn makes it."""

        def work(c: sa.Connection) -> None:
            found = conversations.conversation(c, chat)
            assert found is not None
            trimming.left(c, found, scope, first, last, self.clock(), overflow=overflow)
            conversations.move_edge(c, chat, last)

        await self.db.write(work)

    # -- jobs

    async def look(self) -> int:
        return await self.nightly.look()

    async def run(self, *kinds: str, limit: int = 100) -> list[str]:
        """Run what is due, one job after the other, as the runner would; the keys in that order."""
        ran: list[str] = []
        while len(ran) < limit and await self.run_one(*kinds, ran=ran):
            pass
        return ran

    async def run_one(self, *kinds: str, ran: list[str] | None = None) -> bool:
        self._tokens += 1
        token = f"worker:{self._tokens}"
        claim = await self.db.write(lambda c: claims.claim(c, token, kinds or tuple(self.handlers), now=self.clock()))
        if claim is None:
            return False
        if ran is not None:
            ran.append(f"{claim.row.job.kind} {claim.row.job.key}")
        try:
            result = await self.handlers[claim.row.job.kind](claim.row.job, JobContext(self.db, claim, self.clock))
        except Exception as error:
            state, wait = after_failure(claim.row.attempts, error)
            name, text = type(error).__name__, str(error)
            await self.db.write(
                lambda c: claims.fail(c, claim, state=state, wait=wait, error_class=name, error=text, now=self.clock())
            )
            return True
        await self.db.write(lambda c: self._finish(c, claim, result))
        return True

    def _finish(self, c: sa.Connection, claim: Claim, result: JobResult) -> None:
        claims.finish(c, claim, {"skipped": result.skipped} if result.skipped else result.output, now=self.clock())
        if result.commit is not None:
            result.commit(c)

    async def _dream(self, job: Job, _context: JobContext) -> JobResult:
        self.dreams.append((job.scope, job.local_date))
        return JobResult(skipped="nothing new")

    async def job(self, kind: str, key: str) -> JobRow:
        row = await self.db.read(lambda c: find_job(c, kind, key))
        assert row is not None, f"no job {kind} {key}"
        return row

    async def job_keys(self, kind: str) -> list[str]:
        return await self.db.read(lambda c: list(c.execute(sa.select(jobs.c.key).where(jobs.c.kind == kind).order_by(jobs.c.id)).scalars()))

    # -- what came of it

    def day(self, date: str, scope: Scope | str = ROOT) -> str:
        found = self.workspace.read(parse_scope(str(scope)), f"memory/{date}.md")
        return found.content if found else ""

    def bullets(self, date: str, scope: Scope | str = ROOT) -> list[str]:
        return [line[2:] for line in self.day(date, scope).splitlines() if line.startswith("- ")]

    async def lines(self, date: str, scope: str = "root") -> dict[str, provenance.LineRow]:
        return await self.db.read(lambda c: provenance.lines_of(c, scope, f"memory/{date}.md"))

    async def covered(self) -> list[Covered]:
        return await self.db.read(lambda c: [Covered(**row._mapping) for row in c.execute(sa.select(coverage_table).order_by(coverage_table.c.id))])

    async def times_covered(self, scope: str = "root") -> dict[str, int]:
        """How often each message that counts stands in a file."""
        rows = await self.covered()
        talk = await self.db.read(lambda c: c.execute(sa.select(messages.c.text, messages.c.seq, messages.c.conversation_id)).all())
        return {text: sum(row.conversation_id == of and coverage.within(seq, [row.range]) for row in rows) for text, seq, of in talk}

    async def count(self, table: sa.Table) -> int:
        return await self.db.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())

    @property
    def calls(self) -> int:
        return len(self.model.requests)


def utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


__all__ = ["MODEL", "Night", "answer", "each_said", "labels", "nightly", "shown", "utc"]
