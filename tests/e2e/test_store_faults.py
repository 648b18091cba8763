"""The store or the model fails under a running gateway: people get a clear sentence, the operator a clear line, and work goes on by itself (RL-4)."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from tests.e2e.child import FULL
from tests.e2e.conftest import Household, until
from tests.e2e.mounts import FILLER, fill, small_disk
from tests.e2e.peer import Peer
from tests.e2e.peer_channel import EDITS
from tests.e2e.test_crash_matrix import BEGINNING, STALLED, asked, echo
from tests.peers.model.replies import Until, delta, stream
from tests.peers.model.server import FakeModel
from tests.ports import free_port

LOCKER = """
import sqlite3, sys, time
database = sqlite3.connect(sys.argv[1], isolation_level=None)
database.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
"""
CANNOT_STORE = "I cannot store anything right now. Please try again in a moment."


@contextmanager
def held_by_another_process(database: Path, seconds: float) -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", LOCKER, str(database), str(seconds)], stdout=subprocess.PIPE, text=True) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        yield holder


@pytest.mark.rule("RL-4", "RL-5")
@pytest.mark.case("CF-15")
async def test_twenty_conversations_are_stored_though_another_process_holds_the_database_for_seconds(household: Household) -> None:
    running = await household.start()
    chats = [await household.web.chat() for _ in range(20)]
    with held_by_another_process(household.web.data_dir / "yumegate.db", 6) as holder:
        await asyncio.gather(*(household.web.say(chat, f"question {number}") for number, chat in enumerate(chats)))
        assert holder.wait(1) == 0  # nothing could be stored before it let go
        for number, chat in enumerate(chats):
            await household.web.answers(chat)
            assert await household.said(chat) == [("user", f"question {number}"), ("assistant", f"re: question {number}")]
    assert "locked" not in running.log


# -- no room -----------------------------------------------------------------------------------------------------------


Room = tuple[Callable[[], object], Callable[[], object]]  # what uses it up, and what gives it back


@contextmanager
def on_a_small_disk(home: Household) -> Iterator[Room]:
    kept = home.web.data_dir.rename(home.folder / "data")
    with small_disk(home.web.data_dir, "size=16m,mode=700") as disk:
        shutil.copytree(kept, disk, dirs_exist_ok=True)
        yield partial(fill, disk), (disk / FILLER).unlink


@contextmanager
def with_sqlites_own_limit(home: Household) -> Iterator[Room]:
    """Stands in for the disk's, where nothing can be mounted."""
    yield (home.folder / FULL).touch, (home.folder / FULL).unlink


@pytest.mark.rule("RL-4", "CH-24", "CH-92")
@pytest.mark.parametrize("room", [on_a_small_disk, with_sqlites_own_limit])
async def test_a_full_disk_is_said_and_waited_for_and_loses_nothing(
    household: Household, peer: Peer, model: FakeModel, room: Callable[[Household], AbstractContextManager[Room]]
) -> None:
    household.speak_to(model)
    long = "words " * 3_000  # so that they need room
    go = asyncio.Event()
    model.respond = lambda _: stream(delta(BEGINNING), Until(go), delta(f"{long}end"), delta(finish="stop"))
    with room(household) as (fill_up, make_room):
        running = await household.start(model="", peer=peer.port, abilities=(EDITS,))
        await household.web.say(household.chat, "acknowledged")
        await peer.says("chat", "acknowledged")
        await until(lambda: len(asked(model)) == 2)
        fill_up()
        async with household.web.http.post(
            f"{household.web.url}/api/chats/{household.chat}/messages", json={"client_id": "later", "text": long}
        ) as refused:
            assert refused.status == 503
            assert (await refused.json())["error"]["message"] == CANNOT_STORE
            assert int(refused.headers["Retry-After"]) > 0
        go.set()
        await peer.says("other", long)
        await until(lambda: "cannot be stored now" in running.log)
        await until(lambda: "channel peer:main: the database cannot be used now" in running.log)
        assert peer.acknowledged == 1
        assert "Traceback" not in running.log, running.log

        make_room()
        await household.web.say(household.chat, long, client_id="later")
        await until(lambda: peer.acknowledged == 2, within_s=20)
        await household.settled()
        said = await household.said(household.chat)
        assert [words for role, words in said if role == "user"] == ["acknowledged", long]
        assert [words[-3:] for role, words in said if role != "user"] == ["end", "end"]
        assert len(asked(model)) == 4
        for chat in ("chat", "other"):
            assert peer.texts(chat)[-1].endswith("end")
            assert sum(words.startswith(BEGINNING) for words in peer.texts(chat)) == 1
        await running.stop()


@pytest.mark.rule("RL-2", "RL-4", "CH-100")
async def test_a_drain_on_a_full_disk_ends_in_time_and_well_and_loses_nothing(household: Household, model: FakeModel) -> None:
    household.speak_to(model, delivery={"drain_s": 1})
    model.will(STALLED)
    model.respond = echo
    with on_a_small_disk(household) as (fill_up, make_room):
        draining = await household.start(model="")
        await household.web.say(household.chat, "hello")
        await until(lambda: asked(model) == ["hello"])
        fill_up()
        await draining.stop(within_s=10)
        assert "cannot be stored" in draining.log
        assert "Traceback" not in draining.log
        make_room()
        await household.start(model="")
        await household.web.answers(household.chat)
        assert await household.said(household.chat) == [("user", "hello"), ("assistant", "re: hello")]


@pytest.mark.rule("RL-4", "WD-1")
async def test_a_workspace_that_cannot_be_written_is_one_sentence_at_the_start(household: Household) -> None:
    with small_disk(household.folder / "read-only", "size=1m,ro") as disk:
        household.configure(agent_workspace=str(disk))
        refused = household.launch(command=("run", "--config", str(household.web.config_path)))
        assert await refused.end() == 1
    assert f"Yumegate does not start: {disk} cannot be written (Read-only file system)" in refused.log
    assert "set another folder" in refused.log
    assert "Traceback" not in refused.log


# -- other databases than ours -----------------------------------------------------------------------------------------


@pytest.mark.rule("RL-5")
async def test_a_newer_database_is_refused_and_not_touched(household: Household) -> None:
    database = household.web.data_dir / "yumegate.db"
    household.change("UPDATE alembic_version SET version_num = '9999'")
    before = hashlib.sha256(database.read_bytes()).hexdigest()
    refused = household.launch(command=("run", "--config", str(household.web.config_path)))
    assert await refused.end() == 1
    assert "9999" in refused.log
    assert "start the newer version" in refused.log
    assert "Traceback" not in refused.log
    assert hashlib.sha256(database.read_bytes()).hexdigest() == before
    assert not (household.web.data_dir / "backups").exists()


@pytest.mark.rule("RL-4", "RL-5")
async def test_a_file_that_is_no_database_is_one_sentence(household: Household) -> None:
    database = household.web.data_dir / "yumegate.db"
    database.write_bytes(b"not a database at all, " * 1000)
    refused = household.launch(command=("run", "--config", str(household.web.config_path)))
    assert await refused.end() == 1
    assert "Yumegate does not start" in refused.log
    assert "Traceback" not in refused.log


@pytest.mark.rule("RL-5")
async def test_the_database_is_whole_after_a_kill(household: Household) -> None:
    killed = await household.start()
    await asyncio.gather(*(household.web.say(household.chat, f"question {number}") for number in range(10)))
    await killed.kill()
    with closing(sqlite3.connect(household.web.data_dir / "yumegate.db")) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert database.execute("PRAGMA journal_mode").fetchall() == [("wal",)]
        assert database.execute("SELECT count(*) FROM messages WHERE role = 'user'").fetchall() == [(10,)]


# -- the model ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RL-4", "RL-21")
async def test_a_model_that_is_down_is_told_in_a_sentence_and_answers_when_it_is_back(household: Household, peer: Peer) -> None:
    port = free_port()
    away = FakeModel(echo, port=port)
    household.configure(model={"provider": "openai", "base_url": f"http://127.0.0.1:{port}/v1", "name": "fake"})
    running = await household.start(model="", peer=peer.port)
    await household.web.say(household.chat, "hello")
    await peer.says("chat", "hello")
    await household.settled()
    sentence = "The model is busy right now. Your message is kept; please try again in a moment."
    assert await household.said(household.chat) == [("user", "hello"), ("notice", sentence)]
    assert peer.texts() == [sentence]
    assert "model fake failed" in running.log
    assert "Traceback" not in running.log
    async with away:
        await household.web.post(f"/api/chats/{household.chat}/regenerate", {"client_id": "again"}, status=202)
        await peer.says("chat", "still there?")
        await until(lambda: len(peer.shown) == 2)
        await household.settled()
        assert peer.texts()[1] == "re: still there?"
        assert (await household.said(household.chat))[-1] == ("assistant", "re: hello")
