"""Vectors of saved memories: made behind, kept with their rows, and a change of the embedder."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

import numpy as np
import pytest
import sqlalchemy as sa

from gateway.embedding.row_vectors import RowVectors
from memory import vectors as passages
from memory.database import Database
from memory.embedders import calibration, canary
from memory.embedders.hashed import hash_embedder
from memory.embedders.local import LocalEmbedder
from memory.index_errors import EmbedderFailed
from memory.index_schema import file_chunks, file_passages
from memory.index_schema import vectors as vector_rows
from memory.ports import Embedder, Vector
from memory.saved import row_vectors
from memory.saved.found import Searched
from memory.saved.rows import content_hash
from memory.saved.searching import SavedSearch, SearchSettings
from memory.saved.stored import rows_of
from tests.conftest import FakeClock
from tests.memory.indexed import until
from tests.memory.saved.stage import MINE, Stage

LOW = {"old": -1.0, "new": -1.0}  # a fake knows no meaning: whatever is compared, matches


class Broken:
    """An embedder that fails until it is mended; its model is the same."""

    def __init__(self, inner: LocalEmbedder) -> None:
        self._inner = inner
        self.fingerprint, self.label, self.batch, self.passage_tokens = inner.fingerprint, inner.label, 4, 0
        self.broken = True
        self.closed = False

    async def dimension(self) -> int:
        return await self._inner.dimension()

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        if self.broken and tuple(texts) != canary.SENTENCES:
            raise EmbedderFailed("out of order")
        return await self._inner.documents(texts)

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._inner.questions(texts)

    async def close(self) -> None:
        self.closed = True
        await self._inner.close()


class House:
    """Rows with whoever makes their vectors; `at_rest` says how they stand."""

    def __init__(self, stage: Stage, embedder: Embedder | None, former: Callable[[str], Embedder | None] = lambda fingerprint: None) -> None:
        self.stage = stage
        self.vectors = RowVectors(db=stage.db, clock=stage.clock, embedder=embedder, former=former)
        self.search = SavedSearch(
            stage.db, serving=self.vectors.serving, settings=lambda: SearchSettings(match_floor=LOW), spoiled=self.vectors.spoiled
        )

    async def compared(self, text: str = "cello") -> list[str]:
        rows = await self.stage.db.read(lambda connection: rows_of(connection, [MINE]))
        return sorted(each.content for each in (await self.search.search(rows, text)).compared)

    async def held(self) -> set[tuple[str, str]]:
        """Fingerprint and hash of every vector."""

        def read(connection: sa.Connection) -> set[tuple[str, str]]:
            return {(row.fingerprint, row.text_hash) for row in connection.execute(sa.select(vector_rows))}

        return await self.stage.db.read(read)


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


def of(fingerprint: str, *texts: str) -> set[tuple[str, str]]:
    return {(fingerprint, content_hash(text)) for text in texts}


def embedder(name: str, dimension: int = 32) -> LocalEmbedder:
    made = hash_embedder(dimension, name)
    made.label = name
    return made


@pytest.mark.rule("SM-96", "SM-94")
async def test_missing_vectors_are_made_behind_and_a_changed_text_gets_its_own(stage: Stage) -> None:
    serving = embedder("new")
    house = House(stage, serving)
    memory = stage.add("plays the cello").memory
    assert memory is not None and (await house.search.search([memory], "cello")).mode is Searched.FAILED
    await house.vectors.settle()
    assert await house.compared() == ["plays the cello"]
    stage.edit(memory.id, "plays the violin")
    assert await house.compared() == [] and await house.held() == set()
    await house.vectors.settle()
    assert await house.compared() == ["plays the violin"]
    assert await house.held() == of(serving.fingerprint, "plays the violin")
    await serving.close()


@pytest.mark.rule("SM-94", "SM-73")
async def test_at_rest_there_are_vectors_of_the_rows_and_no_others(stage: Stage) -> None:
    serving = embedder("new")
    house = House(stage, serving)
    rows = [stage.add(text).memory for text in ("one of three", "two of three", "three of three")]
    pin = stage.add("a pin", pinned=True).memory
    await house.vectors.settle()
    assert rows[0] is not None and pin is not None
    stage.remove(rows[0].id)
    await house.vectors.settle()
    assert await house.held() == of(serving.fingerprint, "two of three", "three of three", "a pin")
    await serving.close()


@pytest.mark.rule("SM-96")
async def test_a_row_deleted_while_it_is_embedded_leaves_no_vector(stage: Stage) -> None:
    memory = stage.add("gone soon").memory
    assert memory is not None
    made = {memory.content_hash: np.ones(32, dtype=np.float32)}
    stage.remove(memory.id)
    stage.do(lambda connection: row_vectors.keep(connection, "new/1/32", made))
    assert await House(stage, None).held() == set()


@pytest.mark.rule("SM-94")
async def test_a_text_that_a_file_says_too_keeps_its_vector_when_the_row_goes(stage: Stage) -> None:
    memory = stage.add("said twice").memory
    assert memory is not None
    key = memory.content_hash

    def say_it_in_a_file(connection: sa.Connection) -> None:
        values = {"key": "k", "scope": "root", "path": "MEMORY.md", "area": "root", "text_hash": "whole"}
        chunk = connection.execute(sa.insert(file_chunks).returning(file_chunks.c.id), values).scalar_one()
        connection.execute(sa.insert(file_passages), {"chunk_id": chunk, "position": 0, "text_hash": key, "text": "said twice"})
        row_vectors.keep(connection, "old/1/32", {key: np.ones(32, dtype=np.float32)})

    stage.do(say_it_in_a_file)
    stage.do(lambda connection: row_vectors.serve(connection, "old/1/32", 32, stage.clock()))
    stage.do(lambda connection: row_vectors.serve(connection, "new/1/32", 32, stage.clock()))
    stage.remove(memory.id)
    assert await House(stage, None).held() == {("old/1/32", key)}
    stage.do(lambda connection: connection.execute(sa.delete(file_passages)) and passages.drop_orphans(connection, [key]))
    assert await House(stage, None).held() == set()


@pytest.mark.rule("SM-94")
async def test_spoiled_vectors_are_made_again(stage: Stage) -> None:
    serving = embedder("new")
    house = House(stage, serving)
    memory = stage.add("plays the cello").memory
    assert memory is not None
    stage.do(lambda connection: row_vectors.keep(connection, serving.fingerprint, {memory.content_hash: np.ones(7, dtype=np.float32)}))
    await house.vectors.settle()
    assert (await house.search.search([memory], "cello")).mode is Searched.FAILED
    await house.vectors.settle()
    assert await house.compared() == ["plays the cello"]
    await serving.close()


@pytest.mark.rule("SM-96", "SM-34")
async def test_an_embedder_that_fails_is_tried_again_and_says_why_meanwhile(stage: Stage) -> None:
    serving = Broken(embedder("new"))
    waits: list[float] = []
    tried = asyncio.Event()

    async def sleep(seconds: float) -> None:
        if seconds == 60:
            await asyncio.Event().wait()
        waits.append(seconds)
        serving.broken = False
        tried.set()

    stage.add("plays the cello")
    vectors = RowVectors(db=stage.db, clock=stage.clock, embedder=serving, sleep=sleep)

    async def embedded() -> bool:
        return (await vectors.status()).embedded == 1

    async with asyncio.TaskGroup() as group:
        running = group.create_task(vectors.run())
        await tried.wait()
        await until(embedded)
        running.cancel()
    assert waits == [10.0] and (await vectors.status()).texts == 1
    await serving.close()


@pytest.mark.rule("SM-33", "SM-98")
async def test_nothing_is_loaded_where_there_are_no_rows(stage: Stage) -> None:
    serving = Broken(embedder("new"))
    house = House(stage, serving)
    await house.vectors.settle()  # would fail, were it asked for anything
    assert (await house.search.search([], "a message")).mode is Searched.NONE
    assert house.search.ageing_on
    assert House(stage, None).search.ageing_on is False


# -- a change of the embedder ------------------------------------------------------------------------------------------


async def served_by_the_old(stage: Stage, *texts: str) -> LocalEmbedder:
    old = embedder("old")
    house = House(stage, old)
    for text in texts:
        stage.add(text)
    await house.vectors.settle()
    assert await house.compared() == sorted(texts)
    return old


@pytest.mark.rule("SM-95", "T24")
async def test_the_old_embedder_serves_until_every_row_is_covered_and_then_goes(stage: Stage) -> None:
    old = await served_by_the_old(stage, "plays the cello", "hates cilantro")
    new = Broken(embedder("new"))
    house = House(stage, new, lambda fingerprint: old if fingerprint == old.fingerprint else None)
    stage.add("a row of today")  # is read by the old one too, or nobody would find it before the change
    with pytest.raises(EmbedderFailed):
        await house.vectors.settle()
    assert await house.compared() == ["a row of today", "hates cilantro", "plays the cello"]
    assert house.vectors.serving().embedder is old
    new.broken = False
    await house.vectors.settle()
    assert house.vectors.serving().embedder is new
    assert await house.compared() == ["a row of today", "hates cilantro", "plays the cello"]
    assert await house.held() == of(new.fingerprint, "a row of today", "hates cilantro", "plays the cello")
    await new.close()


@pytest.mark.rule("SM-95", "SM-34", "T24")
async def test_when_the_old_one_cannot_be_called_every_search_fails_until_the_switch(stage: Stage) -> None:
    await (await served_by_the_old(stage, "plays the cello")).close()
    new = Broken(embedder("new"))
    house = House(stage, new)
    rows = await stage.db.read(lambda connection: rows_of(connection, [MINE]))
    with pytest.raises(EmbedderFailed):
        await house.vectors.settle()
    found = await house.search.search(rows, "cello")
    assert found.mode is Searched.FAILED and found.compared == () and house.search.ageing_on
    new.broken = False
    await house.vectors.settle()
    assert await house.compared() == ["plays the cello"]
    await new.close()


@pytest.mark.rule("SM-95")
async def test_after_a_restart_the_same_embedder_serves_at_once_whatever_is_missing(stage: Stage) -> None:
    old = await served_by_the_old(stage, "plays the cello")
    await old.close()
    again = Broken(embedder("old"))
    stage.add("not embedded yet")
    house = House(stage, again)
    with pytest.raises(EmbedderFailed):
        await house.vectors.settle()
    assert await house.compared() == ["plays the cello"]
    await again.close()


@pytest.mark.rule("SM-95", "SM-33")
async def test_an_old_embedder_that_was_never_measured_does_not_serve(stage: Stage) -> None:
    old = await served_by_the_old(stage, "plays the cello")
    stage.do(lambda connection: connection.execute(sa.delete(calibration.calibrations)))
    new = Broken(embedder("new"))
    house = House(stage, new, lambda fingerprint: old)
    with pytest.raises(EmbedderFailed):
        await house.vectors.settle()
    assert house.vectors.serving().state == "building"
    await old.close()
    await new.close()
