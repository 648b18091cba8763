"""Chroma: what reaches it is cleaned, what is damaged is seen before it is opened, and what it forgets is told by its own vectors."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import numpy as np
import pytest

from memory import chroma_check, chroma_folder, chroma_guard
from memory.areas import IndexArea
from memory.chroma_check import judged
from memory.chroma_client import ChromaIndex, open_client
from memory.chroma_guard import clean_metadata, clean_text, collection_name
from memory.chroma_home import ChromaHome
from memory.errors import StoreHeld
from memory.index_errors import IndexFailed
from memory.instance_lock import InstanceLock
from memory.ports import Vector

ROOT_FOLDER = Path(__file__).resolve().parents[2]
NAME = collection_name("files", "hash/1/8", 8, 1)
HERE, THERE = IndexArea("root"), IndexArea("people/p-annaaaaaaa")


def vectors(count: int, dimension: int = 8, first: int = 0) -> dict[str, Vector]:
    chooser = np.random.default_rng(first)
    rows = chooser.normal(size=(count, dimension)).astype(np.float32)
    return {f"k{first + at}:0": row / np.linalg.norm(row) for at, row in enumerate(rows)}


async def fill(index: ChromaIndex, found: dict[str, Vector], area: IndexArea = HERE, name: str = NAME) -> None:
    await index.upsert(name, dict.fromkeys(found, area), found)


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[ChromaIndex]:
    made = ChromaIndex(folder=tmp_path / "chroma" / "store-1")
    yield made
    await made.close()


# -- what Chroma refuses or misreads -----------------------------------------------------------------------------------


@pytest.mark.rule("WD-125")
@pytest.mark.case("VX-12")
async def test_a_delete_of_nothing_deletes_nothing(index: ChromaIndex) -> None:
    await fill(index, vectors(3))
    await index.delete(NAME, [])
    await index.delete(NAME, [""])
    assert len(await index.keys(NAME)) == 3
    await index.delete(NAME, ["k0:0", "unknown:9"])
    assert len(await index.keys(NAME)) == 2


@pytest.mark.rule("WD-125", "WD-126")
@pytest.mark.case("VX-13")
async def test_an_empty_key_and_a_spoiled_vector_fail_no_batch_and_the_new_text_wins(index: ChromaIndex) -> None:
    bad = {"": np.ones(8, np.float32), "nan:0": np.full(8, np.nan, np.float32), "zero:0": np.zeros(8, np.float32), "odd:0": np.ones(9, np.float32)}
    await fill(index, {**vectors(2), **bad})
    assert await index.keys(NAME) == {"k0:0", "k1:0"}
    changed = {"k0:0": -vectors(1)["k0:0"]}
    await fill(index, changed)
    assert (await index.query(NAME, [HERE], changed["k0:0"], 1)) == pytest.approx({"k0:0": 1.0}, abs=1e-3)
    await fill(index, {})


@pytest.mark.rule("WD-125")
async def test_more_rows_than_one_batch_takes_are_all_stored(index: ChromaIndex) -> None:
    await fill(index, vectors(5_600, 4))
    assert len(await index.keys(NAME)) == 5_600


@pytest.mark.rule("WD-126")
@pytest.mark.case("VX-14", "VX-16")
def test_metadata_and_texts_are_cleaned_in_one_place() -> None:
    assert clean_metadata({}) == {"-": 1} == clean_metadata({"user": None, "deep": {"a": 1}})
    assert clean_metadata({"a": "x\ud83dy\0", "n": 2, "f": True}) == {"a": "x\ufffdy", "n": 2, "f": True}
    assert clean_text("a\0b") == "ab"
    assert list(chroma_guard.batches([], 10)) == [] and [list(part) for part in chroma_guard.batches([1, 2, 3], 2)] == [[1, 2], [3]]


@pytest.mark.rule("WD-126", "WD-127")
@pytest.mark.case("VX-14", "VX-16")
async def test_rows_of_an_odd_area_or_none_fail_no_batch_and_are_found_by_their_area_alone(index: ChromaIndex) -> None:
    found, odd = vectors(3), IndexArea("x\ud83dy\0")
    await index.upsert(NAME, {"k0:0": odd, "k1:0": HERE}, found)
    assert await index.keys(NAME) == {"k0:0", "k1:0", "k2:0"}
    assert set(await index.query(NAME, [odd], found["k0:0"], 9)) == {"k0:0"}
    assert set(await index.query(NAME, [odd, HERE], found["k2:0"], 9)) == {"k0:0", "k1:0"}, "what has no area is nobody's"


@pytest.mark.rule("WD-123")
@pytest.mark.case("VX-15")
async def test_whatever_names_the_scope_or_model_has_chroma_takes_the_collection(index: ChromaIndex) -> None:
    odd = ["tg:-1001234500001#5", "中文名", "ab", "a..b", "192.168.0.1", "x" * 600]
    names = [collection_name(kind, kind, 8, 1) for kind in odd]
    assert len(set(names)) == len(odd)
    assert collection_name("files", "m", 8, 1) != collection_name("files", "m", 8, 2) != collection_name("files", "m", 16, 2)
    for name, area in zip(names, odd, strict=True):
        await fill(index, vectors(1), IndexArea(area), name)
        assert await index.query(name, [IndexArea(area)], vectors(1)["k0:0"], 1)


@pytest.mark.rule("WD-127")
async def test_there_is_no_query_without_an_area_and_none_sees_another(index: ChromaIndex) -> None:
    await fill(index, vectors(20))
    await fill(index, vectors(5, first=100), THERE)
    question = vectors(20)["k3:0"]
    assert await index.query(NAME, [], question, 10) == {}
    assert set(await index.query(NAME, [THERE], question, 10)) == set(vectors(5, first=100))
    assert await index.query(NAME, [HERE], np.full(8, np.nan, np.float32), 10) == {}


async def test_a_missing_collection_is_an_index_that_failed(index: ChromaIndex) -> None:
    with pytest.raises(IndexFailed):
        await index.query(NAME, [HERE], vectors(1)["k0:0"], 1)
    assert await index.keys(NAME) == set()
    await index.drop(NAME)


# -- telemetry, missing parts ------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-128")
@pytest.mark.case("VX-03")
def test_telemetry_is_off_and_nothing_is_connected_to(tmp_path: Path) -> None:
    code = (
        "import sys\n"
        "def hook(event, args):\n"
        "    if event in ('socket.connect', 'socket.getaddrinfo'): print('CONNECTS', args[1:], flush=True)\n"
        "sys.addaudithook(hook)\n"
        "from pathlib import Path\nfrom memory.chroma_client import open_client\n"
        f"client = open_client(Path({str(tmp_path / 'x')!r}), '')\n"
        "client.get_or_create_collection('abc', embedding_function=None).upsert(ids=['a'], embeddings=[[1.0, 0.0]])\n"
        "print(client.get_settings().anonymized_telemetry)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT_FOLDER, capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.split() == ["False"]
    assert "elemetry" not in done.stderr


@pytest.mark.rule("WD-128")
@pytest.mark.case("VX-02")
@pytest.mark.parametrize("fault", ["sqlite3.sqlite_version_info = (3, 34, 0); sqlite3.sqlite_version = '3.34.0'", "sys.modules['chromadb'] = None"])
def test_an_old_sqlite_or_a_missing_chroma_names_what_is_needed(tmp_path: Path, fault: str) -> None:
    code = (
        f"import sys, sqlite3; {fault}\n"
        "from pathlib import Path\nfrom memory.chroma_client import open_client\nfrom memory.index_errors import IndexFailed\n"
        f"try:\n    open_client(Path({str(tmp_path)!r}), '')\nexcept IndexFailed as error:\n    print(error.missing)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT_FOLDER, capture_output=True, text=True, check=True, timeout=120)
    assert "SQLite 3.35" in done.stdout


# -- the check ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-121")
def test_a_right_count_proves_nothing_and_98_of_100_must_find_themselves() -> None:
    assert judged(64, 3_000, 3_000, 64).passed
    assert judged(100, 3_000, 3_000, 98).passed
    assert not judged(100, 3_000, 3_000, 97).passed
    assert not judged(64, 3_000, 3_000, 0).passed
    assert not judged(64, 3_000, 0, 64).passed


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """3,000 vectors, written by a process that has ended."""
    folder = tmp_path_factory.mktemp("filled") / "store-1"
    code = (
        "import asyncio\nfrom pathlib import Path\nfrom tests.memory.test_chroma import *\n"
        f"async def work():\n    index = ChromaIndex(folder=Path({str(folder)!r}))\n    await fill(index, vectors(3_000))\n    await index.close()\n"
        "asyncio.run(work())\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=ROOT_FOLDER, check=True, timeout=300)
    return folder


def segment(folder: Path) -> Path:
    return next(path for path in folder.iterdir() if path.is_dir())


def cut(path: Path, size: int) -> None:
    path.write_bytes(path.read_bytes()[:size])


def garble(path: Path) -> None:
    data = path.read_bytes()
    path.write_bytes(os.urandom(len(data)))


def over_the_head(path: Path) -> None:
    path.write_bytes(b"nonsense nonsens" + path.read_bytes()[16:])


DAMAGE: dict[str, Callable[[Path], object]] = {
    "the index's header cut": lambda folder: cut(segment(folder) / "header.bin", 50),
    "the index's header garbled": lambda folder: garble(segment(folder) / "header.bin"),
    "the vectors garbled": lambda folder: garble(segment(folder) / "data_level0.bin"),
    "the segment removed": lambda folder: shutil.rmtree(segment(folder)),
    "the pickle removed": lambda folder: [path.unlink() for path in segment(folder).glob("*.pickle")],
    "the database emptied": lambda folder: cut(folder / "chroma.sqlite3", 0),
    "half of the database": lambda folder: cut(folder / "chroma.sqlite3", (folder / "chroma.sqlite3").stat().st_size // 2),
    "the database's head overwritten": lambda folder: over_the_head(folder / "chroma.sqlite3"),
    "everything removed": shutil.rmtree,
}


@pytest.mark.rule("WD-121")
@pytest.mark.case("VX-05", "VX-06", "VX-07", "VX-08")
@pytest.mark.parametrize("damage", DAMAGE)
async def test_damage_is_seen_by_a_child_that_may_die_of_it(filled: Path, tmp_path: Path, damage: str) -> None:
    folder = tmp_path / "store-1"
    shutil.copytree(filled, folder)
    samples = dict(list(vectors(3_000).items())[:64])
    DAMAGE[damage](folder)
    verdict = await chroma_check.check(folder, "", NAME, samples, 3_000)
    answers = await answering(folder, samples) if verdict.passed else 0.0
    assert not verdict.passed or answers >= 0.98, verdict


async def answering(folder: Path, samples: dict[str, Vector]) -> float:
    """Of damage that passed: how many vectors find themselves all the same, for Chroma mends some by itself."""
    index = ChromaIndex(folder=folder)
    found = [key in await index.query(NAME, [HERE], vector, 5) for key, vector in samples.items()]
    await index.close()
    return sum(found) / len(found)


@pytest.mark.rule("WD-121")
async def test_what_is_whole_passes_and_what_does_not_answer_in_time_does_not(filled: Path) -> None:
    samples = dict(list(vectors(3_000).items())[:64])
    assert (await chroma_check.check(filled, "", NAME, samples, 3_000)).passed
    slow = await chroma_check.check(filled, "", NAME, samples, 3_000, limit_s=0.05)
    assert not slow.passed and "within" in slow.reason


@pytest.mark.rule("WD-121")
async def test_a_collection_that_is_not_there_is_no_crash_of_the_check(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """As after a restore: the rows know of vectors, the folder is new."""
    verdict = await chroma_check.check(tmp_path / "store-1", "", NAME, vectors(3), 3)
    assert (verdict.passed, verdict.reason, caplog.text) == (False, "0 of 3 vectors are there", "")


@pytest.mark.rule("WD-124")
def test_a_damaged_folder_is_put_aside_and_deleted_at_the_next_start_only(tmp_path: Path) -> None:
    base = tmp_path / "chroma"
    first = chroma_folder.current(base)
    first.mkdir(parents=True)
    (first / "chroma.sqlite3").touch()
    second = chroma_folder.put_aside(base)
    assert chroma_folder.current(base) == second != first
    assert (base / "aside-1" / "chroma.sqlite3").exists()
    chroma_folder.sweep(base)
    assert [path.name for path in base.iterdir()] == [second.name]


@pytest.mark.rule("WD-124")
@pytest.mark.case("VX-11")
async def test_a_folder_deleted_while_it_is_open_is_followed_by_a_new_one(tmp_path: Path) -> None:
    home = ChromaHome(tmp_path / "chroma")
    assert isinstance(home.index, ChromaIndex)
    await fill(home.index, vectors(5))
    shutil.rmtree(chroma_folder.current(tmp_path / "chroma"))
    await home.start_anew()
    assert isinstance(home.index, ChromaIndex)
    await fill(home.index, vectors(7))
    assert len(await home.index.keys(NAME)) == 7
    assert (await home.check(NAME, vectors(7), 7)).passed
    await home.close()


@pytest.mark.rule("WD-120")
@pytest.mark.case("VX-10")
def test_the_folder_lies_under_a_lock_that_a_second_process_does_not_get(tmp_path: Path) -> None:
    with InstanceLock(tmp_path), pytest.raises(StoreHeld, match=str(os.getpid())):
        InstanceLock(tmp_path).__enter__()


WRITER = """
import asyncio, sys
from pathlib import Path
from tests.memory.test_chroma import *

async def work():
    index = ChromaIndex(folder=Path(sys.argv[1]))
    at = int(sys.argv[2])
    while True:
        count = 100 if at % 3 == 0 else 1
        await fill(index, vectors(count, first=at))
        print(at, count, flush=True)
        at += count

asyncio.run(work())
"""


@pytest.mark.rule("WD-121")
@pytest.mark.case("VX-09")
async def test_each_acknowledged_row_is_found_after_a_kill(tmp_path: Path) -> None:
    folder, told, at = tmp_path / "store-1", dict[str, Vector](), 0
    for round_ in range(3):
        command = [sys.executable, "-c", WRITER, str(folder), str(at)]
        child = await asyncio.create_subprocess_exec(*command, cwd=ROOT_FOLDER, stdout=asyncio.subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(3 + round_ * 4):
            first, count = map(int, (await child.stdout.readline()).split())
            told |= vectors(count, first=first)
            at = first + count
        child.send_signal(signal.SIGKILL)
        await child.wait()
        at += 1_000
    samples = dict(list(told.items())[:: max(1, len(told) // 64)])
    assert (await chroma_check.check(folder, "", NAME, samples, len(told))).passed


# -- a server ----------------------------------------------------------------------------------------------------------


async def test_a_server_that_is_not_there_is_an_index_that_failed() -> None:
    made = ChromaIndex(url="http://127.0.0.1:9")
    with pytest.raises(IndexFailed):
        await made.keys(NAME)
    await made.close()


def test_this_python_has_an_sqlite_that_chroma_takes(tmp_path: Path) -> None:
    assert sqlite3.sqlite_version_info >= (3, 35)
    assert open_client(tmp_path, "").get_max_batch_size() > 1_000
