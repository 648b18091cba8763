"""A scope that dreams, without the rest of the gateway: real files, a real database, the real job, a model that answers by what it is shown."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply
from gateway.dreams.asking import DreamAsking
from gateway.dreams.job import DreamJob
from gateway.dreams.reading import DreamReading, FindManagers
from gateway.dreams.wishes import Dreaming
from gateway.dreams.writing import DreamWriting
from gateway.file_writer import FileWriter
from gateway.forgetting import Forgetting
from gateway.jobs.table import Job, JobRow, enqueue, read_job
from gateway.undoing import Undoing
from gateway.whys import Whys
from memory import dream_store, proposal_store, provenance
from memory.database import Database
from memory.dream_store import Dream
from memory.layout import CURATED
from memory.lines import as_bullet, entries, line_hash
from memory.proposal_store import Proposal
from memory.provenance import LineRow, Origin
from memory.scopes import ROOT, Scope
from memory.workspace_threads import WorkspaceThreads
from tests.conftest import FakeClock
from tests.gateway.nights import OWNER, Night


@dataclass(slots=True)
class Shown:
    """What a request gave: old and fixed lines by id, the days' notes by id with all their fields."""

    old: dict[str, str] = field(default_factory=dict[str, str])
    fixed: dict[str, str] = field(default_factory=dict[str, str])
    notes: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    dates: list[str] = field(default_factory=list[str])

    def note(self, words: str) -> str:
        return next(id_ for id_, note in self.notes.items() if words in note["text"])

    def line(self, words: str) -> str:
        return next(id_ for id_, text in self.old.items() if words in text)


def shown(request: ModelRequest) -> Shown:
    found, part = Shown(), ""
    text = next(message.text for message in request.messages if message.role == "user")
    for line in text.splitlines():
        if line.startswith("{"):
            value: dict[str, str] = json.loads(line)
            if part.startswith("MEMORY.md, your"):
                found.old[value["id"]] = value["text"]
            elif part.startswith("MEMORY.md, lines by people"):
                found.fixed[value["id"]] = value["text"]
            elif "id" in value:
                found.notes[value["id"]] = value
        elif line:
            part = line
            if line[:4].isdigit():
                found.dates.append(line)
    return found


def entry(text: str, *, old: Sequence[str] = (), evidence: Sequence[str] = (), section: str = "") -> dict[str, Any]:
    return {"text": text, "section": section, "from": list(old), "evidence": list(evidence)}


def answer(
    *entries: Mapping[str, Any], dropped: Mapping[str, str] | None = None, diary: str = "A quiet night.", keep: Shown | None = None
) -> str:
    """The JSON of an answer; `keep` adds every old line that is nowhere else, unchanged."""
    listed = list(entries)
    if keep is not None:
        named = {id_ for each in listed for id_ in each["from"]} | set(dropped or {})
        listed += [entry(text, old=[id_]) for id_, text in keep.old.items() if id_ not in named]
    gone = [{"id": id_, "reason": reason} for id_, reason in (dropped or {}).items()]
    return json.dumps({"entries": listed, "dropped": gone, "diary": diary}, ensure_ascii=False)


def promote(request: ModelRequest) -> str:
    """Every note that is not in the memory becomes a line, word for word."""
    seen = shown(request)
    known = set(seen.old.values()) | set(seen.fixed.values())
    new = [entry(note["text"], evidence=[id_]) for id_, note in seen.notes.items() if note["text"] not in known]
    return answer(*new, keep=seen)


class Dreamer(Night):
    script: Callable[[ModelRequest], Reply]
    managers: FindManagers | None = None

    def __init__(self, db: Database, folder: Path, clock: FakeClock, script: Callable[[ModelRequest], Reply] = promote, **config: Any) -> None:
        super().__init__(db, folder, clock, script, **config)
        self.told: list[tuple[str, str, dict[str, object]]] = []
        self.tie(db, self.files)

    def tie(self, db: Database, files: WorkspaceThreads) -> None:
        """All parts over this database and these files; again with others for a crash."""

        def written(scope: Scope, path: str) -> None:
            self.written.append((str(scope), path))

        self.reading = DreamReading(db=db, files=files, clock=self.clock, config=lambda: self.config, managers=self.managers)
        self.writing = DreamWriting(db=db, files=files, clock=self.clock, on_written=written)
        self.dreamt = DreamJob(
            db=db,
            models=self.models,
            config=lambda: self.config,
            clock=self.clock,
            reading=self.reading,
            asking=DreamAsking(self.background),
            writing=self.writing,
            notify=lambda _connection, scope, key, values: self.told.append((scope, key, dict(values))),
        )
        self.handlers["dream"] = self.dreamt.run
        self.writer = FileWriter(db=db, files=files, clock=self.clock, on_written=written)
        self.dreaming = Dreaming(
            db=db, files=files, clock=self.clock, config=lambda: self.config, reading=self.reading, writing=self.writing
        )
        self.undoing = Undoing(db=db, files=files, clock=self.clock, writer=self.writer)
        self.forgetting = Forgetting(db=db, files=files, clock=self.clock, writing=self.writing, on_written=written)
        self.whys = Whys(db, files)

    # -- what is there

    def memory(self, scope: Scope = ROOT) -> str:
        found = self.workspace.read(scope, CURATED)
        return found.content if found else ""

    def memory_lines(self, scope: Scope = ROOT) -> list[str]:
        return [each.text for each in entries(self.memory(scope))]

    def diary(self, day: str, scope: Scope = ROOT) -> str:
        found = self.workspace.read(scope, f"memory/dreams/{day}.md")
        return found.content if found else ""

    def write(self, path: str, text: str, scope: Scope = ROOT) -> None:
        """As a person with an editor."""
        place = self.workspace.read(scope, path)
        self.workspace.replace(scope, path, text, based_on=place.hash if place else None)

    async def remembers(self, *texts: str, scope: Scope = ROOT, origin: Origin = Origin.PERSON, evidence: Sequence[str] = ()) -> None:
        """Lines of MEMORY.md that a dream wrote before."""
        before = self.memory(scope)
        self.write(CURATED, before + "".join(as_bullet(text) + "\n" for text in texts), scope)
        rows = [LineRow(hash=line_hash(text), origin=origin, author="dream", evidence=tuple(map(line_hash, evidence))) for text in texts]
        await self.db.write(lambda c: provenance.put_lines(c, str(scope), CURATED, rows, self.clock() - timedelta(days=1)))

    async def notes(
        self, day: str, *texts: str, scope: Scope = ROOT, origin: Origin = Origin.PERSON, sources: Sequence[str] = ("m-1",), by: str = OWNER
    ) -> None:
        """Lines of a daily file that a summary wrote."""
        path = f"memory/{day}.md"
        rows = [
            LineRow(hash=line_hash(text), origin=origin, author="summary", sources=tuple(sources), speakers=(by,), local_date=day) for text in texts
        ]
        await self.db.write(lambda c: provenance.put_lines(c, str(scope), path, rows, self.clock()))
        self.workspace.append(scope, path, "\n".join(map(as_bullet, texts)), title=f"# Daily Memory: {day}")

    async def dream(self, day: str, scope: Scope = ROOT, *, keys: int = 0) -> JobRow:
        """The dream of the night of `day`, run to its end."""
        key = f"{scope}:{day}" + (f":{keys}" if keys else "")
        job = Job(kind="dream", key=key, scope=str(scope), local_date=day, payload={"date": day, "zone": "UTC"})
        await self.db.write(lambda c: enqueue(c, job, now=self.clock()))
        await self.run("dream")
        self.clock.advance(minutes=1)
        row = await self.job("dream", key)
        sys.stderr.write(f"{row.state} {row.error_class}: {row.error}\n" if row.error else "")  # pytest shows it where a test fails
        return row

    async def manual(self, days: int = 3, *, force: bool = False, scope: Scope = ROOT, person: str = OWNER) -> JobRow:
        asked = await self.db.write(lambda c: self.dreaming.request(c, scope, days=days, force=force, person=person, now=self.clock()))
        await self.run("dream")
        self.clock.advance(minutes=1)
        row = await self.db.read(lambda c: read_job(c, asked.job_id))
        assert row is not None
        return row

    async def rows(self, scope: Scope = ROOT) -> dict[str, LineRow]:
        return await self.db.read(lambda c: provenance.lines_of(c, str(scope), CURATED))

    async def dreams_of(self, scope: Scope = ROOT) -> list[Dream]:
        return await self.db.read(lambda c: dream_store.all_of(c, str(scope)))

    async def open(self, scope: Scope = ROOT) -> list[Proposal]:
        return await self.db.read(lambda c: proposal_store.open_proposals(c, str(scope), self.clock()))

    async def values(self, table: sa.Table) -> list[dict[str, Any]]:
        return [dict(row) for row in await self.db.read(lambda c: c.execute(sa.select(table)).mappings().all())]


def day(text: str) -> date:
    return date.fromisoformat(text)
