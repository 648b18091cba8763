"""Two processes over one database with two hundred conversations: each job once, no chunk twice, nobody starves (AT-15)."""

from __future__ import annotations

import asyncio
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import trimming
from memory import conversations
from memory.database import Database
from memory.recall import chunk_store
from memory.recall.kinds import ROLLING
from memory.recall.summary_rows import State
from memory.schema import jobs
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse
from tests.patience import patience

CHATS, BUSY = 200, 45  # messages of the busy chat: three runs of three blocks


@pytest.mark.slow
@pytest.mark.rule("RS-190", "RS-194", "RS-16")
@pytest.mark.case("AT-15")
async def test_each_job_is_done_once_no_chunk_twice_and_a_busy_chat_starves_none(database: Database, tmp_path: Path, clock: FakeClock) -> None:
    if database.is_sqlite:
        pytest.skip("SQLite refuses a second process")
    house = RowsHouse(database, tmp_path, clock, companion={"messages": 10, "block": 5})
    await house.person()
    chats = await database.write(lambda c: [filled(c, clock, number, BUSY if number == 0 else 5) for number in range(CHATS)])
    workers = [await started(database, tmp_path / name) for name in ("one", "two")]
    for each in workers:
        assert each.stdin is not None
        each.stdin.write(b"go\n")
    async with asyncio.timeout(patience(150)):
        told = [out.decode().split("\n") for out, _ in await asyncio.gather(*(each.communicate() for each in workers))]
    assert [each.returncode for each in workers] == [0, 0]
    asked = Counter(line for lines in told for line in lines if line.startswith("asked "))
    assert set(asked.values()) == {1}, "no block was asked for twice"
    assert all(any(line.startswith("done") for line in lines) for lines in told), "both had work"
    for number, chat in enumerate(chats):
        said = BUSY if number == 0 else 5
        covered = await house.stood_for(chat)
        assert len(covered) == len(set(covered)) == said
        held = [seq for chunk in await database.read(lambda c, chat=chat: chunk_store.of_chat(c, chat)) for seq in chunk.seqs]
        assert len(held) == len(set(held)) == said
    assert len(await house.rows(chats[0], *ROLLING, states=tuple(State))) == BUSY // 5 + 2, "nine blocks, merged twice"
    order = await database.read(lambda c: list(c.execute(sa.select(jobs.c.key).order_by(jobs.c.updated_at)).scalars()))
    assert order.index(chats[0]) > CHATS // 2, "the busy chat took its turn behind the others each time"
    await house.close()


def filled(c: sa.Connection, clock: FakeClock, number: int, count: int) -> str:
    """A chat of its own memory, all of whose messages left the window."""
    key, scope = f"telegram:main:{number}", f"people/p-{number:010}"
    chat = conversations.create_conversation(c, now=clock(), key=key, channel="telegram", account="main", kind="dm")
    conversations.change(c, chat, profile="companion")
    values = {"role": "user", "origin": "person", "scope": scope, "author_name": "Ana"}
    seqs = [conversations.add_message(c, now=clock(), conversation_id=chat, text=f"{number} in words {n}", **values).seq for n in range(count)]
    found = conversations.conversation(c, chat)
    assert found is not None
    trimming.left(c, found, scope, seqs[0], seqs[-1], clock(), into="rolling")
    conversations.move_edge(c, chat, seqs[-1])
    return chat


async def started(database: Database, folder: Path) -> Process:
    url = database.url.render_as_string(hide_password=False)
    order = [sys.executable, "-m", "tests.acceptance.memory_worker", url, str(folder)]
    child = await asyncio.create_subprocess_exec(*order, stdin=PIPE, stdout=PIPE)
    assert child.stdout is not None
    assert await child.stdout.readline() == b"ready\n"
    return child
