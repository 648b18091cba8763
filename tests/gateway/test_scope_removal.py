"""A person's or a space's memory that is removed for good, by a job that survives being cut off."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway.jobs.runner import JobRunner
from gateway.jobs.table import Job, enqueue, find_job
from gateway.scope_removal import KIND, ScopeRemoval, order
from memory.database import Database
from memory.file_errors import FileRefused
from memory.file_schema import coverage, dreams, proposals, scope_settings, summary_blocks
from memory.ids import PersonId
from memory.provenance import Bar, Change, LineRow, Origin, bar, bars_of, changes_of, lines_of, put_lines, record_change
from memory.schema import conversations, jobs, messages
from memory.scopes import ROOT, Scope, person_scope
from memory.texts import Written
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads
from tests.conftest import FakeClock
from tests.harness import eventually

ANNA, BEN = person_scope(PersonId("p-aaaaaaaaaa")), person_scope(PersonId("p-bbbbbbbbbb"))


class Removal:
    """A store with the memories of two people, and the job that removes one."""

    def __init__(self, base: Path, database: Database, clock: FakeClock) -> None:
        self.db, self.clock, self.root = database, clock, base / "yumegate"
        self.workspace = Workspace(self.root, self.root / ".yumegate", clock)
        self.files = WorkspaceThreads(self.workspace)
        self.index: list[Scope] = []
        self.fails = 0

    async def forget_index(self, scope: Scope) -> None:
        if self.fails:
            self.fails -= 1
            raise OSError("the index is away")
        self.index.append(scope)

    async def fill(self, scope: Scope) -> None:
        made = self.workspace.replace(scope, "MEMORY.md", "- old\n", based_on=None)
        assert isinstance(made, Written) and made.text is not None
        self.workspace.replace(scope, "MEMORY.md", "- tea\n", based_on=made.text.hash)
        now, of, talk = self.clock(), str(scope), f"c-{scope.id}"

        def rows(connection: sa.Connection) -> None:
            put_lines(connection, of, "MEMORY.md", [LineRow(hash="h", origin=Origin.PERSON, author="dream")], now)
            bar(connection, of, [Bar(reason="undone", hash="h")], now)
            record_change(connection, Change(scope=of, path="MEMORY.md", cause="dream"), now)
            chat = {"id": talk, "key": f"web:main:{talk}", "channel": "web", "account": "main", "kind": "web"}
            connection.execute(sa.insert(conversations), {**chat, "created_at": now, "updated_at": now})
            message = {"id": f"m-{talk}", "conversation_id": talk, "role": "user", "scope": of, "created_at": now}
            connection.execute(sa.insert(messages), message)
            reach: dict[str, object] = {"conversation_id": talk, "first_seq": 1, "last_seq": 1, "created_at": now}
            connection.execute(sa.insert(coverage), {**reach, "scope": of, "local_date": "2026-03-14", "section": "summary"})
            connection.execute(sa.insert(summary_blocks), {**reach, "kind": "summary", "text": "tea", "updated_at": now})
            dream = {"id": f"d-{talk}", "scope": of, "local_date": "2026-03-14", "state": "refused", "trigger": "night", "staged": "- tea"}
            connection.execute(sa.insert(dreams), {**dream, "created_at": now})
            asked = {"id": f"a-{talk}", "scope": of, "kind": "candidate", "created_at": now, "expires_at": now + timedelta(days=30)}
            connection.execute(sa.insert(proposals), asked)
            connection.execute(sa.insert(scope_settings), {"scope": of, "timezone": "Asia/Tokyo", "updated_at": now})
            enqueue(connection, Job(kind="dream", key=f"{of} 2026-03-14", scope=of, payload={"about": "tea"}))

        await self.db.write(rows)

    async def kept(self, scope: Scope) -> dict[str, int]:
        of = str(scope)

        def count(connection: sa.Connection) -> dict[str, int]:
            tables = [coverage, dreams, proposals, scope_settings, messages, jobs]
            found = {
                table.name: connection.execute(sa.select(sa.func.count()).select_from(table).where(table.c.scope == of)).scalar_one()
                for table in tables
            }
            blocks = sa.select(sa.func.count()).select_from(summary_blocks).where(summary_blocks.c.conversation_id == f"c-{scope.id}")
            rows = (lines_of(connection, of, "MEMORY.md"), bars_of(connection, of), changes_of(connection, of))
            return {**found, "blocks": connection.execute(blocks).scalar_one(), "rows": sum(map(len, rows))}

        return await self.db.read(count)


@pytest.fixture
async def removal(tmp_path: Path, database: Database, clock: FakeClock) -> AsyncIterator[Removal]:
    removal = Removal(tmp_path, database, clock)
    await removal.fill(ANNA)
    await removal.fill(BEN)
    yield removal
    await removal.files.close()


async def run_until(removal: Removal, state: str, key: str = str(ANNA)) -> None:
    async def forever(_seconds: float) -> None:
        await asyncio.Event().wait()

    async def there() -> bool:
        row = await removal.db.read(lambda connection: find_job(connection, KIND, key))
        return row is not None and row.state == state and (state != "waiting" or row.attempts > 0)

    handler = ScopeRemoval(files=removal.files, forget_index=removal.forget_index, clock=removal.clock)
    runner = JobRunner(removal.db, {KIND: handler.run}, grace_s=0, database_clock=removal.clock, sleep=forever)
    async with asyncio.TaskGroup() as group:
        group.create_task(runner.run())
        await eventually(there)
        runner.close()  # not cancelled: a claim on its way to the database would go on, and take what the next runner is to find


@pytest.mark.rule("WD-15")
async def test_a_removed_persons_folder_rows_and_revisions_go_and_nobody_elses(removal: Removal) -> None:
    before = await removal.kept(BEN)
    assert all((await removal.kept(ANNA)).values()) and all(before.values())
    await removal.db.write(lambda connection: order(connection, ANNA))
    await run_until(removal, "done")
    left = await removal.kept(ANNA)
    assert left.pop("jobs") == 2  # this one, and the one that looks again
    assert not any(left.values()), left
    assert not (removal.root / "people" / ANNA.id).exists()
    assert not any(ANNA.id in path.as_posix() for path in removal.root.rglob("*"))
    assert removal.index == [ANNA]
    assert await removal.kept(BEN) == before
    assert removal.workspace.revisions(BEN, "MEMORY.md") and removal.workspace.read(BEN, "MEMORY.md")
    log = await removal.db.read(lambda connection: connection.execute(sa.select(messages.c.scope)).scalars().all())
    assert sorted(log) == ["", str(BEN)]  # the log is kept, and is nobody's memory any more


@pytest.mark.rule("WD-15")
async def test_a_removal_that_was_cut_off_goes_on_where_it_was(removal: Removal) -> None:
    removal.fails = 1
    await removal.db.write(lambda connection: order(connection, ANNA))
    await run_until(removal, "waiting")
    assert not (removal.root / "people" / ANNA.id).exists() and removal.index == []
    removal.clock.advance(minutes=10)
    await run_until(removal, "done")
    assert removal.index == [ANNA]


@pytest.mark.rule("WD-15")
async def test_what_a_turn_was_just_writing_goes_an_hour_later(removal: Removal) -> None:
    await removal.db.write(lambda connection: order(connection, ANNA))
    await run_until(removal, "done")
    late = [LineRow(hash="late", origin=Origin.PERSON, author="tool")]
    await removal.db.write(lambda connection: put_lines(connection, str(ANNA), "MEMORY.md", late, removal.clock()))
    removal.workspace.append(ANNA, "MEMORY.md", "- late")
    removal.clock.advance(hours=1)
    await run_until(removal, "done", f"{ANNA} again")
    assert removal.workspace.read(ANNA, "MEMORY.md") is None and (await removal.kept(ANNA))["rows"] == 0
    assert (await removal.kept(ANNA))["jobs"] == 2


@pytest.mark.rule("WD-15")
async def test_the_owners_memory_is_not_removed_by_the_program(removal: Removal) -> None:
    with pytest.raises(FileRefused):
        await removal.db.write(lambda connection: order(connection, ROOT))
