"""The workspace from the event loop: scopes do not wait for each other, writers of one do, and a slow disk leaves threads for the rest."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path

import pytest

from memory.file_errors import PathRefused
from memory.ids import PersonId
from memory.scopes import ROOT, person_scope
from memory.texts import Text
from memory.workspace import Workspace
from memory.workspace_threads import THREADS, WorkspaceThreads
from tests.conftest import FakeClock
from tests.patience import patience

ANNA = person_scope(PersonId("p-aaaaaaaaaa"))


@pytest.fixture
async def files(tmp_path: Path, clock: FakeClock) -> AsyncIterator[WorkspaceThreads]:
    threads = WorkspaceThreads(Workspace(tmp_path / "w", tmp_path / "data", clock))
    yield threads
    await threads.close()


def add(line: str, workspace: Workspace) -> Text | None:
    return workspace.append(ANNA, "MEMORY.md", line).text


def look(workspace: Workspace) -> Text | None:
    return workspace.read(ANNA, "MEMORY.md")


@pytest.mark.rule("WD-17", "WD-97")
async def test_many_waiting_writers_of_one_scope_leave_threads_for_everybody_else(files: WorkspaceThreads) -> None:
    stuck, inside = threading.Event(), threading.Event()

    def slow(_: Workspace) -> None:
        inside.set()
        assert stuck.wait(20)

    async with asyncio.timeout(patience(20)), asyncio.TaskGroup() as group:
        for _ in range(3 * THREADS):
            group.create_task(files.write(ROOT, slow))
        await asyncio.to_thread(inside.wait, 10)
        written = await files.write(ANNA, partial(add, "- tea"))
        assert await files.read(look) == written
        stuck.set()


@pytest.mark.rule("WD-17")
async def test_writers_of_one_scope_take_turns(files: WorkspaceThreads) -> None:
    async with asyncio.timeout(patience(20)), asyncio.TaskGroup() as group:
        for n in range(20):
            group.create_task(files.write(ANNA, partial(add, f"- {n}.")))
    text = await files.read(look)
    assert text is not None
    assert sorted(text.content.split()) == sorted(["-"] * 20 + [f"{n}." for n in range(20)])


async def test_a_cancelled_caller_leaves_a_whole_file(files: WorkspaceThreads) -> None:
    inside, go = threading.Event(), threading.Event()

    def slow(workspace: Workspace) -> None:
        inside.set()
        assert go.wait(10)
        add("- written all the same", workspace)

    async with asyncio.timeout(patience(20)), asyncio.TaskGroup() as group:
        task = group.create_task(files.write(ANNA, slow))
        await asyncio.to_thread(inside.wait, 10)
        task.cancel()
        await asyncio.wait([task])
        go.set()
        await files.write(ANNA, partial(add, "- next"))
    text = await files.read(look)
    assert text is not None
    assert "- next" in text.content


async def test_a_refusal_reaches_the_caller(files: WorkspaceThreads) -> None:
    with pytest.raises(PathRefused):
        await files.read(lambda workspace: workspace.read(ROOT, "../x.md"))
