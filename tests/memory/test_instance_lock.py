"""One process per data directory, told by name; a dead holder is no obstacle."""

from __future__ import annotations

import json
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from memory.errors import StoreHeld, StoreUnavailable
from memory.instance_lock import FILE, InstanceLock, read_info

HOLD = """
import sys
from pathlib import Path
from memory.instance_lock import InstanceLock
lock = InstanceLock(Path(sys.argv[1]))
lock.take()
lock.write_info({"address": "127.0.0.1:8420", "secret": "s3cret"})
print("held", flush=True)
sys.stdin.read()
"""


@contextmanager
def another_process(data_dir: Path) -> Generator[subprocess.Popen[str]]:
    """A child that holds the lock until it is killed or its input ends."""
    command = [sys.executable, "-c", HOLD, str(data_dir)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        yield child
        child.kill()


@pytest.mark.rule("WD-120", "CH-104")
def test_a_second_process_is_refused_and_learns_the_holder_s_process_id(tmp_path: Path) -> None:
    with another_process(tmp_path) as child:
        with pytest.raises(StoreHeld, match=rf"process {child.pid}\b"):
            InstanceLock(tmp_path).take()
        assert read_info(tmp_path) == {"pid": child.pid, "address": "127.0.0.1:8420", "secret": "s3cret"}


@pytest.mark.rule("WD-120", "RL-1")
def test_a_killed_holder_leaves_no_obstacle_and_no_trace(tmp_path: Path) -> None:
    with another_process(tmp_path) as child:
        child.send_signal(signal.SIGKILL)
        child.wait()
        assert "s3cret" in (tmp_path / FILE).read_text()
        assert read_info(tmp_path) is None
        with InstanceLock(tmp_path):
            assert read_info(tmp_path) == {"pid": os.getpid()}


@pytest.mark.rule("WD-120")
def test_a_second_lock_in_the_same_process_is_refused_until_the_first_is_released(tmp_path: Path) -> None:
    first, second = InstanceLock(tmp_path), InstanceLock(tmp_path)
    first.take()
    with pytest.raises(StoreHeld, match=f"process {os.getpid()}"):
        second.take()
    first.release()
    first.release()  # twice is once
    with second:
        assert read_info(tmp_path) == {"pid": os.getpid()}
    assert read_info(tmp_path) is None


@pytest.mark.rule("WD-120")
def test_two_directories_have_two_holders(tmp_path: Path) -> None:
    with ExitStack() as stack:
        for name in ("one", "two/deep"):
            stack.enter_context(InstanceLock(tmp_path / name))
        assert read_info(tmp_path / "one") == read_info(tmp_path / "two/deep") == {"pid": os.getpid()}


@pytest.mark.rule("WD-120")
def test_looking_who_holds_it_never_keeps_a_start_from_taking_it(tmp_path: Path) -> None:
    done = threading.Event()

    def look() -> None:
        while not done.is_set():
            read_info(tmp_path)

    lookers = [threading.Thread(target=look) for _ in range(2)]
    for looker in lookers:
        looker.start()
    try:
        for _ in range(300):
            InstanceLock(tmp_path).__enter__().release()
    finally:
        done.set()
        for looker in lookers:
            looker.join()


@pytest.mark.rule("WD-120")
def test_a_reader_never_finds_half_of_what_the_holder_says(tmp_path: Path) -> None:
    with InstanceLock(tmp_path) as lock:
        for secret in ("x" * 500, "日本" * 40, "", "short"):
            lock.write_info({"address": "127.0.0.1:8420", "secret": secret, "pid": 1})
            info = read_info(tmp_path)
            assert info == {"address": "127.0.0.1:8420", "secret": secret, "pid": os.getpid()}
            json.loads((tmp_path / FILE).read_bytes())


@pytest.mark.rule("WD-120", "RL-32")
def test_only_the_owner_can_read_the_file_whatever_it_was_before(tmp_path: Path) -> None:
    (tmp_path / FILE).write_text("left by an older version, or a person")
    (tmp_path / FILE).chmod(0o644)
    with InstanceLock(tmp_path):
        assert stat.S_IMODE((tmp_path / FILE).stat().st_mode) == 0o600
    with InstanceLock(tmp_path / "new"):
        assert stat.S_IMODE((tmp_path / "new" / FILE).stat().st_mode) == 0o600
        assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == 0o700


@pytest.mark.rule("WD-120")
def test_without_a_lock_there_is_nothing_to_say(tmp_path: Path) -> None:
    assert read_info(tmp_path) is None
    assert read_info(tmp_path / "nowhere") is None
    with pytest.raises(RuntimeError, match="not held"):
        InstanceLock(tmp_path).write_info({})


@pytest.mark.rule("WD-120")
@pytest.mark.parametrize("content", ["", "17", "[1]", '{"pid": [1]}', "\x00\xff"])
def test_nonsense_in_the_file_of_a_running_holder_is_an_unknown_process(tmp_path: Path, content: str) -> None:
    with InstanceLock(tmp_path):
        (tmp_path / FILE).write_text(content)
        assert read_info(tmp_path) == {}
        with pytest.raises(StoreHeld, match="process unknown"):
            InstanceLock(tmp_path).take()


@pytest.mark.rule("RL-4")
def test_a_directory_that_cannot_be_made_is_said_plainly(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreUnavailable, match="the lock of the data directory cannot be made"):
        InstanceLock(tmp_path / "file" / "data").take()
