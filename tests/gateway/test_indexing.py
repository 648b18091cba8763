"""The index while the gateway runs: it follows the files, never holds anybody up, survives every fault beneath it, and says how it stands."""

from __future__ import annotations

import asyncio
import shutil
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from gateway.indexing import IndexSettings
from memory import chroma_folder, collection_rows
from memory.chroma_check import Verdict
from memory.chroma_home import ChromaHome
from memory.chunk_rows import totals
from memory.database import Database
from memory.embedders import canary
from memory.embedders.hashed import hash_embedder
from memory.embedders.local import LocalEmbedder
from memory.hot_areas import HotAreas
from memory.index_errors import EmbedderFailed, IndexFailed
from memory.index_kinds import FILES
from memory.ports import Embedder, Matrix, Vector
from memory.scopes import ROOT
from tests.memory.indexed import House, access_of, house, lines, person, until, vectors_ready
from tests.patience import patience


async def finds(built: House, query: str, path: str) -> bool:
    return path in await built.paths(query)


def notes(built: House, count: int) -> None:
    for file in range((count + 49) // 50):
        sections = [f"## {at}\n\n- note {at} about the harbour, number {at * 13}\n" for at in range(file * 50, min(count, file * 50 + 50))]
        built.put(ROOT, f"knowledge/n{file}.md", "\n".join(sections))


class Counting:
    """A hash embedder that counts the documents it is given beside the sentences that show its model, and fails on demand."""

    def __init__(self, dimension: int = 32, name: str = "hash") -> None:
        self._inner = hash_embedder(dimension, name)
        self.fingerprint, self.label, self.batch, self.passage_tokens = self._inner.fingerprint, name, 16, 0
        self.given: list[str] = []
        self.fault: EmbedderFailed | None = None
        self.wait = asyncio.Event()
        self.wait.set()

    async def dimension(self) -> int:
        if self.fault is not None:
            raise self.fault
        return await self._inner.dimension()

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        await self.wait.wait()
        if self.fault is not None:
            raise self.fault
        self.given += [text for text in texts if text not in canary.SENTENCES]
        return [None if "unfit" in text else row for text, row in zip(texts, await self._inner.documents(texts), strict=True)]

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        if self.fault is not None:
            raise self.fault
        return await self._inner.questions(texts)

    async def close(self) -> None:
        await self._inner.close()


# -- following the files -----------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-112")
@pytest.mark.case("VX-23")
async def test_a_page_is_found_a_moment_after_it_was_written(tmp_path: Path, sqlite: Database) -> None:
    async with house(tmp_path, sqlite, run=True) as built:
        await until(built.indexing.status)
        page = "# Acme Works\n\nMakes anvils.\n"
        await built.files.write(ROOT, lambda workspace: workspace.replace(ROOT, "knowledge/entities/acme.md", page, based_on=None))
        began = time.monotonic()
        built.indexing.changed(ROOT, "knowledge/entities/acme.md")
        await until(lambda: finds(built, "anvils acme", "knowledge/entities/acme.md"))
        assert time.monotonic() - began < patience(2)


@pytest.mark.rule("WD-112", "WD-113")
async def test_an_edit_from_outside_is_seen_by_the_next_scan(tmp_path: Path, sqlite: Database) -> None:
    async with house(tmp_path, sqlite, run=True, scan_every_s=0.1) as built:
        built.put(ROOT, "MEMORY.md", "- the heron sleeps\n")
        await until(lambda: finds(built, "heron", "MEMORY.md"))
        built.put(ROOT, "MEMORY.md", "- the stork wakes up\n")
        await until(lambda: finds(built, "stork", "MEMORY.md"))
        built.path(ROOT, "MEMORY.md").unlink()

        async def empty() -> bool:
            return await sqlite.read(totals) == (0, 0)

        await until(empty)


@pytest.mark.rule("WD-112")
async def test_an_edit_by_hand_in_a_memory_in_use_is_found_within_seconds(tmp_path: Path, sqlite: Database) -> None:
    """Long before the scan of everything: the owner's memory always, another one once it was asked."""
    async with house(tmp_path, sqlite, run=True) as built:
        ann = person("ann")
        built.scopes.append(ann)
        for scope in (ROOT, ann):
            built.put(scope, "MEMORY.md", "- the heron sleeps\n")
        await built.indexing.prepare_scope(ann)
        await until(lambda: finds(built, "heron", "MEMORY.md"))
        assert await built.paths("heron", access_of(ann)) == ["MEMORY.md"]
        began = time.monotonic()
        for scope in (ROOT, ann):
            built.put(scope, "MEMORY.md", "- the heron sleeps\n- the stork wakes up\n")
        await until(lambda: finds(built, "stork", "MEMORY.md"))
        await until(lambda: built.paths("stork", access_of(ann)))
        assert time.monotonic() - began < patience(15)


@pytest.mark.rule("WD-112")
async def test_files_whose_stamp_is_unchanged_are_not_read_again(tmp_path: Path, sqlite: Database) -> None:
    async with house(tmp_path, sqlite) as built:
        built.put(ROOT, "MEMORY.md", "- heron\n")
        await built.indexing.prepare_scope(ROOT)
        heard: list[int] = []
        await built.indexing.rebuild(lambda _scope, done, _total: heard.append(done))
        assert heard == [1]
        assert not (await built.indexing.prepare_scope(ROOT)).changed


async def test_a_path_that_is_no_file_of_ours_stops_nothing(tmp_path: Path, sqlite: Database) -> None:
    async with house(tmp_path, sqlite, run=True) as built:
        built.put(ROOT, "MEMORY.md", "- heron\n")
        for path in ("../x.md", "nothing.txt", "memory/dreams/2026-01-01.md", "MEMORY.md"):
            built.indexing.changed(ROOT, path)
        await until(lambda: finds(built, "heron", "MEMORY.md"))


@pytest.mark.rule("WD-111")
async def test_another_way_of_cutting_makes_the_index_anew(tmp_path: Path, sqlite: Database) -> None:
    async with house(tmp_path, sqlite) as built:
        built.put(ROOT, "MEMORY.md", lines([f"line {number} about the harbour and the boats in it" for number in range(40)]))
        await built.indexing.prepare_scope(ROOT)
        one = await sqlite.read(totals)
    async with house(tmp_path, sqlite, settings=IndexSettings(chunk_tokens=100, chunk_overlap=10)) as again:
        await again.indexing.prepare_scope(ROOT)
        assert (await sqlite.read(totals))[1] > one[1]


@pytest.mark.rule("WD-15", "WD-92")
async def test_a_scope_that_goes_leaves_nothing_behind_not_even_vectors(tmp_path: Path, database: Database) -> None:
    async with house(tmp_path, database, embedder=hash_embedder(16), run=True) as built:
        built.put(ROOT, "MEMORY.md", "- the heron is a secret\n- and more of it\n")
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
        shutil.rmtree(built.root)
        await built.indexing.forget_scope(ROOT)
        await built.indexing.forget_scope(ROOT)
        for table in ("file_chunks", "file_passages", "file_words", "indexed_files", "vectors"):
            left = await database.read(lambda connection, table=table: connection.exec_driver_sql(f"SELECT count(*) FROM {table}").scalar_one())
            assert left == 0, table


# -- with and without an embedder --------------------------------------------------------------------------------------


@pytest.mark.rule("WD-108")
@pytest.mark.case("VX-04")
async def test_without_an_embedder_everything_works_and_the_status_says_so(tmp_path: Path, sqlite: Database) -> None:
    async with house(tmp_path, sqlite, run=True) as built:
        await built.know(MEMORY="- heron\n")
        status = await built.indexing.status()
        assert (status.files, status.chunks, status.words, status.vectors) == (1, 1, "ok", "off")
        assert (await built.look("heron")).note == "off"


@pytest.mark.case("VX-04")
@pytest.mark.rule("WD-122")
async def test_an_embedder_that_fails_leaves_words_and_says_why(tmp_path: Path, sqlite: Database) -> None:
    embedder = Counting()
    embedder.fault = EmbedderFailed("no such model", permanent=True)
    async with house(tmp_path, sqlite, embedder=embedder, run=True) as built:
        await built.know(MEMORY="- heron\n")

        async def failed() -> bool:
            return (await built.indexing.status()).vectors == "failed"

        await until(failed)
        assert "no such model" in (await built.indexing.status()).reason
        found = await built.look("heron")
        assert (found.mode, found.note, len(found.hits)) == ("words", "failed", 1)


@pytest.mark.rule("WD-101", "WD-122")
@pytest.mark.case("VX-26")
async def test_the_first_search_waits_for_no_index(tmp_path: Path, sqlite: Database) -> None:
    embedder = Counting()
    embedder.wait.clear()  # an embedder that is never done
    async with house(tmp_path, sqlite, embedder=embedder, run=True) as built:
        notes(built, 400)
        await built.indexing.prepare_scope(ROOT)
        began = time.monotonic()
        found = await built.look("harbour 390")
        assert time.monotonic() - began < patience(2)
        assert found.hits and (found.mode, found.note) == ("words", "building")
        assert (await built.indexing.status()).vectors == "building"


async def test_a_question_whose_vector_takes_too_long_is_answered_by_words(tmp_path: Path, sqlite: Database) -> None:
    class Slow:
        dimension = 4

        def documents(self, texts: list[str]) -> Matrix:
            return np.random.default_rng(1).normal(size=(len(texts), 4)).astype(np.float32)

        def questions(self, texts: list[str]) -> Matrix:
            if len(texts) == 1:
                time.sleep(1.5)
            return self.documents(texts)

    async with house(tmp_path, sqlite, embedder=LocalEmbedder(Slow, fingerprint="slow", label="slow"), run=True) as built:
        await built.know(MEMORY="- heron\n")
        await vectors_ready(built)
        found = await built.look("heron")
        assert (found.mode, found.note, len(found.hits)) == ("words", "slow", 1)


@pytest.mark.rule("WD-124")
async def test_a_rebuild_pays_for_no_embedding_twice(tmp_path: Path, database: Database) -> None:
    embedder = Counting()
    async with house(tmp_path, database, embedder=embedder, run=True) as built:
        notes(built, 60)
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
        paid = len(embedder.given)
        notes_given = [text for text in embedder.given if "harbour, number" in text]
        assert len(set(notes_given)) == len(notes_given) == 60
        done = await built.indexing.rebuild()
        await vectors_ready(built)
        assert (done.files_before, done.chunks_before, done.files, done.chunks) == (2, 60, 2, 60)
        assert embedder.given[paid:] == ["The quick brown fox"]  # the test of the embedder
        built.put(ROOT, "knowledge/n0.md", "## 0\n\n- note 0 about the harbour, number 0\n\n## new\n\n- something new\n")
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
        assert len(embedder.given) == paid + 2


@pytest.mark.rule("WD-126")
async def test_a_text_that_has_no_vector_holds_up_no_other(tmp_path: Path, sqlite: Database) -> None:
    embedder = Counting()
    async with house(tmp_path, sqlite, embedder=embedder, run=True) as built:
        built.put(ROOT, "MEMORY.md", "# A\n- unfit for vectors\n# B\n- the heron\n")
        await built.indexing.prepare_scope(ROOT)

        async def one() -> bool:
            return (await built.indexing.status()).embedded == 1

        await until(one)
        assert await built.paths("unfit") and await built.paths("heron")
        await asyncio.sleep(0.1)
        assert embedder.given.count("A\n- unfit for vectors") == 1


@pytest.mark.rule("WD-123", "SM-95")
@pytest.mark.case("VX-01")
async def test_another_model_builds_its_own_vectors_while_words_answer(tmp_path: Path, database: Database) -> None:
    async with house(tmp_path, database, embedder=Counting(8), run=True) as built:
        notes(built, 30)
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
    other = Counting(16, "other")
    other.wait.clear()
    async with house(tmp_path, database, embedder=other, run=True) as built:
        found = await built.look("harbour 13")
        assert found.hits and (found.mode, found.note) == ("words", "building")
        other.wait.set()
        await vectors_ready(built)
        assert (await built.indexing.status()).dimension == 16
        assert (await built.look("harbour 13")).mode == "hybrid"


# -- the vector index --------------------------------------------------------------------------------------------------


class Broken:
    """A home whose index fails at every call."""

    @property
    def index(self) -> Broken:
        return self

    async def check(self, *_: object) -> Verdict:
        return Verdict(passed=True)

    async def start_anew(self) -> None:
        pass

    async def _fail(self, *_: object) -> None:
        raise IndexFailed("no Chroma", missing="chromadb")

    upsert = delete = query = keys = drop = close = _fail


@pytest.mark.rule("WD-128", "WD-122")
@pytest.mark.case("VX-02")
async def test_without_chroma_vectors_are_compared_one_by_one_and_the_status_says_what_is_missing(tmp_path: Path, sqlite: Database) -> None:
    hot = HotAreas(limit_bytes=1, area_bytes=1)
    async with house(tmp_path, sqlite, embedder=hash_embedder(64), home=Broken(), hot=hot, run=True) as built:  # type: ignore[arg-type]
        notes(built, 30)
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)

        async def named() -> bool:
            return (await built.indexing.status()).missing == "chromadb"

        await until(named)
        assert (await built.indexing.status()).mirror == "off"
        found = await built.look("note 17 about the harbour, number 221")
        assert found.mode == "hybrid" and "number 221" in found.hits[0].snippet


async def serving(built: House) -> None:
    async def ready() -> bool:
        status = await built.indexing.status()
        pending = "SELECT count(*) FROM file_passages WHERE collection = ''"
        left = await built.db.read(lambda connection: connection.exec_driver_sql(pending).scalar_one())
        return status.mirror == "ok" and left == 0

    await until(ready, 60)


def large() -> HotAreas:
    return HotAreas(limit_bytes=1, area_bytes=1)


async def known(built: House) -> set[str]:
    """Keys that the serving collection holds."""
    mirror = built.indexing._keeper._mirror  # pyright: ignore[reportPrivateUsage]
    assert mirror is not None
    return await mirror.index.keys(mirror.serving)


@pytest.mark.rule("WD-121", "RL-6", "WD-124", "WD-113", "WD-127")
@pytest.mark.case("VX-11", "VX-22", "VX-25")
async def test_a_large_area_is_served_by_chroma_through_every_change(tmp_path: Path, database: Database) -> None:
    home = ChromaHome(tmp_path / "chroma")
    async with house(tmp_path, database, embedder=hash_embedder(64), home=home, hot=large(), run=True) as built:
        notes(built, 200)
        await built.indexing.prepare_scope(ROOT)
        await serving(built)
        found = await built.look("note 117 about the harbour, number 1521")
        assert found.mode == "hybrid" and "number 1521" in found.hits[0].snippet
        assert len(await known(built)) == 200
        built.path(ROOT, "knowledge/n0.md").unlink()  # what goes leaves Chroma too
        await built.indexing.prepare_scope(ROOT)

        async def fewer() -> bool:
            return len(await known(built)) == 150

        await until(fewer)
        generation = await database.read(lambda connection: collection_rows.in_state(connection, FILES, hash_embedder(64).fingerprint, "serving"))
        await built.indexing.rebuild()

        async def swapped() -> bool:
            now = await database.read(lambda connection: collection_rows.in_state(connection, FILES, hash_embedder(64).fingerprint, "serving"))
            return now not in ("", generation)

        await until(swapped, 60)
        await serving(built)
        assert len(await known(built)) == 150
        shutil.rmtree(chroma_folder.current(tmp_path / "chroma"))  # by hand, while it is open
        built.put(ROOT, "knowledge/late.md", "## late\n\n- the heron came late\n")
        await built.indexing.prepare_scope(ROOT)
        found = await built.look("the heron came late")
        assert found.hits[0].path == "knowledge/late.md"
    await home.close()


@pytest.mark.rule("WD-121", "WD-122")
@pytest.mark.case("VX-06")
async def test_a_damaged_index_is_put_aside_rebuilt_and_never_asked_meanwhile(tmp_path: Path, sqlite: Database) -> None:
    base = tmp_path / "chroma"
    home = ChromaHome(base)
    async with house(tmp_path, sqlite, embedder=hash_embedder(64), home=home, run=True) as built:
        notes(built, 1_200)
        await built.indexing.prepare_scope(ROOT)
        await serving(built)
    await home.close()
    for folder in [path for path in chroma_folder.current(base).iterdir() if path.is_dir()]:
        shutil.rmtree(folder)
    again = ChromaHome(base)
    embedder = Counting(64)
    async with house(tmp_path, sqlite, embedder=embedder, home=again, hot=large(), run=True) as built:
        found = await built.look("note 117 about the harbour, number 1521")  # at once, by words or one by one
        assert "number 1521" in found.hits[0].snippet
        await serving(built)
        assert len(await known(built)) == 1_200
        assert embedder.given == []  # no embedding was paid for
        assert [path.name for path in base.iterdir() if path.name.startswith("aside")] or chroma_folder.current(base).name == "store-1"
    await again.close()


class Stingy(Broken):
    """A home whose index takes everything and finds nothing."""

    async def query(self, *_: object) -> dict[str, float]:
        return {}

    async def _done(self, *_: object) -> None:
        return None

    async def keys(self, *_: object) -> set[str]:
        return set()

    upsert = delete = drop = close = _done


class Fickle(Stingy):
    """Its first `failures` checks fail, and so do the first `stuck` tries to put it aside."""

    def __init__(self, failures: int, stuck: int = 0) -> None:
        self._failures, self._stuck = failures, stuck
        self.begun = 0

    async def check(self, *_: object) -> Verdict:
        self._failures -= 1
        return Verdict(passed=self._failures < 0, reason="only 62 of 64 stored vectors find themselves")

    async def start_anew(self) -> None:
        self._stuck -= 1
        if self._stuck >= 0:
            raise IndexFailed("the damaged vector index cannot be put aside: Permission denied")
        self.begun += 1


async def shorter(seconds: float) -> None:
    await asyncio.sleep(seconds / 100)


@pytest.mark.rule("WD-121", "WD-124")
async def test_a_fresh_index_that_fails_its_check_is_built_again_until_one_passes(tmp_path: Path, sqlite: Database) -> None:
    home = Fickle(3)
    async with house(tmp_path, sqlite, embedder=hash_embedder(64), home=home, hot=large(), run=True, sleep=shorter) as built:  # type: ignore[arg-type]
        notes(built, 40)
        await built.indexing.prepare_scope(ROOT)
        await serving(built)  # an index of nothing is not checked
        await built.indexing.rebuild()
        await until(lambda: home.begun == 3)
        await serving(built)


@pytest.mark.rule("WD-121")
async def test_an_index_that_cannot_be_put_aside_yet_is_tried_again(tmp_path: Path, sqlite: Database) -> None:
    home = Fickle(4, stuck=2)
    async with house(tmp_path, sqlite, embedder=hash_embedder(64), home=home, hot=large(), run=True, sleep=shorter) as built:  # type: ignore[arg-type]
        notes(built, 40)
        await built.indexing.prepare_scope(ROOT)
        await serving(built)
        await built.indexing.rebuild()
        await until(lambda: home.begun == 2)
        await serving(built)


@pytest.mark.rule("WD-127")
async def test_a_filtered_query_that_finds_too_few_is_answered_exactly(tmp_path: Path, sqlite: Database) -> None:
    async with house(tmp_path, sqlite, embedder=hash_embedder(64), home=Stingy(), hot=large(), run=True) as built:  # type: ignore[arg-type]
        notes(built, 40)
        await built.indexing.prepare_scope(ROOT)
        await serving(built)
        found = await built.look("note 17 about the harbour, number 221")
        assert found.mode == "hybrid" and "number 221" in found.hits[0].snippet


@pytest.mark.case("VX-24")
@pytest.mark.rule("RS-181")
async def test_a_warm_search_reads_no_vector_from_the_database(tmp_path: Path, sqlite: Database) -> None:
    embedder: Embedder = hash_embedder(1536)
    async with house(tmp_path, sqlite, embedder=embedder, run=True) as built:
        notes(built, 300)
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
        await asyncio.sleep(2.1)
        await built.look("harbour")
        statements: list[str] = []
        engine = sqlite._read_engine  # pyright: ignore[reportPrivateUsage]
        sa.event.listen(engine, "before_cursor_execute", lambda _c, _cursor, statement, *_rest: statements.append(statement))
        found = await built.look("note 17 about the harbour, number 221")
        assert found.mode == "hybrid"
        assert statements and not [each for each in statements if "vectors" in each]
