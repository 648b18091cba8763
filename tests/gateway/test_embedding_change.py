"""A changed embedding source: the old one serves until the new one has read all, what is paid for waits for a yes, and a model that was swapped
behind its name is never compared with the one before."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
import sqlalchemy as sa

from gateway.embedding import change as embedding_change
from gateway.embedding.change import EmbeddingChange, cut_by
from gateway.embedding.row_vectors import RowVectors
from gateway.embedding.succession import Succession
from gateway.embedding.vector_keeping import shelf_of
from gateway.recall.talk_indexing import TalkIndexing
from memory.database import Database
from memory.embedders import canary
from memory.embedders.endpoint import EndpointEmbedder
from memory.embedders.hashed import hash_embedder
from memory.embedders.resting import RestingEmbedder
from memory.index_errors import EmbedderFailed
from memory.index_kinds import FILES, MESSAGES
from memory.index_schema import vectors as vector_rows
from memory.ports import Embedder, Vector
from memory.saved import row_vectors
from memory.schema import conversations, jobs, people
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.memory.indexed import House, house, until, vectors_ready
from tests.memory.recall.talks import Talks
from tests.memory.saved.stage import Stage
from tests.peers.embeddings import FakeEmbeddings, serving


@dataclass
class Model:
    """A hash embedder that counts, fails after so many texts of ours, and may have another passage size. `salt`: another model under its name."""

    name: str
    dimensions: int = 32
    salt: str = ""
    passage_tokens: int = 0
    most: int | None = None
    given: list[str] = field(default_factory=list[str])
    asked: int = 0
    closed: bool = False

    @property
    def fingerprint(self) -> str:
        return f"model/{self.name}"

    @property
    def label(self) -> str:
        return self.name

    @property
    def batch(self) -> int:
        return 8

    async def dimension(self) -> int:
        return self.dimensions

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        self.asked += len(texts)
        ours = [text for text in texts if "zeppelin" in text]
        if self.most is not None and ours and len(self.given) + len(ours) > self.most:
            raise EmbedderFailed("out of order")
        self.given += ours
        return await self.questions(texts)

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        inner = hash_embedder(self.dimensions)
        rows = await inner.documents([f"{self.salt} {self.salt} {text}" if self.salt else text for text in texts])
        await inner.close()
        return [np.roll(row, len(self.salt)) if row is not None else np.full(self.dimensions, 0.1, dtype=np.float32) for row in rows]

    async def close(self) -> None:
        self.closed = True


async def soon(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 60) / 1000)


def notes(built: House, count: int) -> None:
    built.put(ROOT, "knowledge/n.md", "\n".join(f"## {at}\n\n- note {at} about the zeppelin, number {at * 13}\n" for at in range(count)))


def finder(*models: Model) -> Callable[[str], Embedder | None]:
    return {model.fingerprint: model for model in models}.get


async def answers_with(built: House, fingerprint: str) -> bool:
    serving = built.indexing._keeper.serving()  # pyright: ignore[reportPrivateUsage]
    return serving.vectors == "ok" and serving.embedder is not None and serving.embedder.fingerprint == fingerprint


async def pointer(db: Database) -> str:
    return await db.read(lambda connection: embedding_change.serving(connection, FILES))


async def served(db: Database) -> list[str]:
    """Who serves files, the talk and rows."""
    kinds = [await db.read(lambda connection, kind=kind: embedding_change.serving(connection, kind)) for kind in (FILES, MESSAGES)]
    return [*kinds, await db.read(row_vectors.serving)]


async def read_by(folder: Path, db: Database, model: Model, count: int = 40) -> None:
    """A workspace that `model` has read and serves."""
    async with house(folder, db, embedder=model, run=True) as built:
        notes(built, count)
        await built.indexing.prepare_scope(ROOT)
        await vectors_ready(built)
        await until(lambda: pointer(db))


# -- the old one serves until the swap ---------------------------------------------------------------------------------


@pytest.mark.rule("RS-183", "RS-29", "SM-95", "RS-28")
async def test_the_old_one_answers_until_the_new_one_has_read_all_even_if_that_fails_at_nine_tenths(tmp_path: Path, database: Database) -> None:
    old, new = Model("old", 384), Model("new", 768, most=36)
    await read_by(tmp_path, database, old)
    change = EmbeddingChange(database, FakeClock(), finder(old))
    async with house(tmp_path, database, embedder=new, run=True, change=change, sleep=soon) as built:

        async def stuck() -> bool:
            status = await built.indexing.status()
            return status.vectors == "failed" and status.embedded >= 30

        await until(stuck)
        assert await answers_with(built, old.fingerprint) and (await built.indexing.status()).former == "old"
        assert (await built.look("note 17 about the zeppelin, number 221")).mode == "hybrid"
        built.put(ROOT, "knowledge/late.md", "## late\n\n- the zeppelin froze\n")
        await built.indexing.prepare_scope(ROOT)
        await until(lambda: "late\n- the zeppelin froze" in old.given)  # found by meaning before the swap too
        assert await pointer(database) == old.fingerprint
        new.most = None
        await until(lambda: answers_with(built, new.fingerprint))
        await vectors_ready(built)
        assert await pointer(database) == new.fingerprint and (await built.indexing.status()).dimension == 768
        found = await built.look("note 17 about the zeppelin, number 221")
        assert found.mode == "hybrid" and "number 221" in found.hits[0].snippet
        assert len(new.given) == len(set(new.given)) == 41  # nothing is paid for twice
        assert old.closed


@pytest.mark.rule("RS-183", "SM-95")
async def test_killed_at_half_it_goes_on_where_it_was(tmp_path: Path, sqlite: Database) -> None:
    old, new = Model("old"), Model("new", most=20)
    await read_by(tmp_path, sqlite, old)
    for most in (20, None):
        new.most = most
        change = EmbeddingChange(sqlite, FakeClock(), finder(old))
        async with house(tmp_path, sqlite, embedder=new, run=True, change=change, sleep=soon) as built:
            notes(built, 40)
            if most is not None:

                async def half() -> bool:
                    return (await built.indexing.status()).vectors == "failed"

                await until(half)
                assert await answers_with(built, old.fingerprint)
            else:
                await until(lambda: answers_with(built, new.fingerprint))
    assert len(new.given) == len(set(new.given)) == 40


@pytest.mark.rule("RS-183")
async def test_when_the_old_one_cannot_be_called_words_answer_until_the_swap(tmp_path: Path, sqlite: Database) -> None:
    old, new = Model("old"), Model("new", most=8)
    await read_by(tmp_path, sqlite, old)
    async with house(tmp_path, sqlite, embedder=new, run=True, sleep=soon) as built:
        notes(built, 40)
        await until(lambda: len(new.given) == 8)
        assert (await built.look("note 17 about the zeppelin")).mode == "words"
        new.most = None
        await until(lambda: answers_with(built, new.fingerprint))


@pytest.mark.rule("RS-28", "RS-24")
async def test_files_talk_and_rows_follow_one_source_and_share_what_was_measured(tmp_path: Path, sqlite: Database, clock: FakeClock) -> None:
    stage = Stage.of(sqlite, clock)
    stage.add("plays the cello at the zeppelin")
    talks = Talks(sqlite)
    chat = await talks.chat()
    await talks.say(chat, *(f"the zeppelin in month {number}" for number in range(5)))
    old, new = Model("old"), Model("new")
    for model in (old, new):
        change = EmbeddingChange(sqlite, clock, finder(old))
        talk = TalkIndexing(
            db=sqlite, clock=clock, embedder=model, home=None, gap=lambda: timedelta(hours=6), record=lambda: "full", sleep=soon, change=change
        )
        rows = RowVectors(db=sqlite, clock=clock, embedder=model, sleep=soon, change=change)
        async with house(tmp_path, sqlite, embedder=model, run=True, change=change, sleep=soon, clock=clock) as built:
            notes(built, 3)
            await built.indexing.prepare_scope(ROOT)
            async with asyncio.TaskGroup() as group:
                running = [group.create_task(talk.run()), group.create_task(rows.run())]

                async def all_follow(model: Model = model, rows: RowVectors = rows, talk: TalkIndexing = talk) -> bool:
                    said, saved = talk.serving(), rows.serving()
                    answering = [each.embedder.fingerprint for each in (said, saved) if each.embedder is not None]
                    return answering == [model.fingerprint] * 2 and await served(sqlite) == [model.fingerprint] * 3

                await until(all_follow)
                for task in running:
                    task.cancel()
    assert old.closed  # given back by all three


@pytest.mark.rule("SM-95", "RS-183")
async def test_files_once_finely_cut_stay_so_or_the_old_one_would_find_nothing(tmp_path: Path, sqlite: Database) -> None:
    old, new = Model("old", passage_tokens=20), Model("new", most=0)
    await read_by(tmp_path, sqlite, old)
    before = len(old.given)
    change = EmbeddingChange(sqlite, FakeClock(), finder(old))
    async with house(tmp_path, sqlite, embedder=new, run=True, change=change, sleep=soon) as built:
        notes(built, 40)
        await built.indexing.prepare_scope(ROOT)
        await until(lambda: answers_with(built, old.fingerprint))
        assert (await built.look("note 17 about the zeppelin, number 221")).mode == "hybrid"
    assert len(old.given) == before
    now = FakeClock()()
    cuts = [await sqlite.write(lambda connection, wanted=wanted: cut_by(connection, wanted, now)) for wanted in (0, 50, 10, 0)]
    assert cuts == [20, 20, 10, 10]


# -- what is paid for --------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-29", "RS-183", "SM-95")
async def test_a_paid_source_is_asked_nothing_before_somebody_said_yes_to_the_estimate(tmp_path: Path, database: Database) -> None:
    old, new = Model("old"), Model("new", 48)
    await read_by(tmp_path, database, old)
    change = EmbeddingChange(database, FakeClock(), finder(old), is_paid=True)
    async with house(tmp_path, database, embedder=new, run=True, change=change, sleep=soon) as built:
        built.put(ROOT, "knowledge/late.md", "## late\n\n- the zeppelin froze\n")
        await built.indexing.prepare_scope(ROOT)

        async def waits() -> bool:
            return (await built.indexing.status()).waits_for == new.fingerprint

        await until(waits)
        await until(lambda: "late\n- the zeppelin froze" in old.given)
        assert new.asked == 0 and await answers_with(built, old.fingerprint)
        read = await change.estimate(new.fingerprint)
        assert read.texts == 41 and 41 * 5 < read.tokens < 41 * 40
        await change.confirm("model/another")
        await asyncio.sleep(0.05)
        assert new.asked == 0
        await change.confirm(new.fingerprint)
        await until(lambda: answers_with(built, new.fingerprint))
        assert not await waits() and len(new.given) == 41
    again = EmbeddingChange(database, FakeClock(), finder(old, new), is_paid=True)
    async with house(tmp_path, database, embedder=old, run=True, change=again, sleep=soon) as built:
        await until(lambda: answers_with(built, old.fingerprint))  # what was read before costs nothing
    assert await pointer(database) == old.fingerprint


@pytest.mark.rule("RS-29")
async def test_the_first_source_of_a_new_gateway_needs_no_yes(tmp_path: Path, sqlite: Database) -> None:
    new = Model("new")
    change = EmbeddingChange(sqlite, FakeClock(), is_paid=True)
    async with house(tmp_path, sqlite, embedder=new, run=True, change=change) as built:
        notes(built, 5)
        await built.indexing.prepare_scope(ROOT)
        await until(lambda: answers_with(built, new.fingerprint))


# -- another model behind the same name --------------------------------------------------------------------------------


@pytest.mark.rule("RS-182")
def test_vectors_are_alike_from_a_cosine_of_0_999_for_each_sentence() -> None:
    one = np.tile(np.array([[1.0, 0.0]], dtype=np.float32), (16, 1))

    def turned(cosine: float, sentence: int = 7) -> np.ndarray:  # type: ignore[type-arg]
        other = one.copy()
        other[sentence] = [cosine, np.sqrt(1 - cosine**2)]
        return other

    assert canary.is_alike(one, one) and canary.is_alike(one, turned(0.9995)) and not canary.is_alike(one, turned(0.9985))
    assert not canary.is_alike(one, np.ones((16, 3), dtype=np.float32)) and len(canary.SENTENCES) == 16
    assert [canary.plain(name) for name in ("a#b", "a", canary.name_of("a", 3), canary.name_of("a", 1))] == ["a#b", "a", "a", "a"]


@pytest.mark.rule("RS-182", "RS-29")
async def test_another_model_behind_the_name_is_not_compared_is_built_anew_and_told_once(tmp_path: Path, database: Database) -> None:
    Stage.of(database, FakeClock())
    first, second = Model("local"), Model("local", salt="swapped")
    await read_by(tmp_path, database, first)
    second.most = 8
    async with house(tmp_path, database, embedder=second, run=True, sleep=soon) as built:
        notes(built, 40)
        await until(lambda: len(second.given) == 8)
        assert (await built.look("note 17 about the zeppelin")).mode == "words"
        second.most = None
        await until(lambda: answers_with(built, "model/local#2"))
        assert (await built.look("note 17 about the zeppelin, number 221")).mode == "hybrid"
    names = await database.read(lambda connection: set(connection.execute(sa.select(vector_rows.c.fingerprint)).scalars()))
    assert names == {"model/local", "model/local#2"} and await pointer(database) == "model/local#2"
    read = len(second.given)
    for model, name in ((second, "model/local#2"), (first, "model/local")):  # a model that comes back finds its own again
        first.given.clear()
        async with house(tmp_path, database, embedder=model, run=True, sleep=soon) as built:
            notes(built, 40)
            await until(lambda name=name, built=built: answers_with(built, name))
        assert len(second.given) == read and first.given == []


@pytest.mark.rule("RS-182", "RS-29")
async def test_a_swapped_model_that_is_paid_for_waits_and_its_former_self_never_answers(tmp_path: Path, sqlite: Database) -> None:
    first, second = Model("far"), Model("far", salt="swapped")
    await read_by(tmp_path, sqlite, first)
    change = EmbeddingChange(sqlite, FakeClock(), finder(second), is_paid=True)
    async with house(tmp_path, sqlite, embedder=second, run=True, change=change, sleep=soon) as built:
        notes(built, 40)

        async def waits() -> bool:
            return (await built.indexing.status()).waits_for == "model/far#2"

        await until(waits)
        assert second.asked == len(canary.SENTENCES) and (await built.look("note 17 about the zeppelin")).mode == "words"
        await change.confirm("model/far#2")
        await until(lambda: answers_with(built, "model/far#2"))


@pytest.mark.rule("RS-182", "SM-95")
async def test_a_former_one_whose_model_was_swapped_is_not_called_back(tmp_path: Path, sqlite: Database) -> None:
    old, swapped, new = Model("old"), Model("old", salt="swapped"), Model("new", most=0)
    await read_by(tmp_path, sqlite, old)
    change = EmbeddingChange(sqlite, FakeClock(), finder(swapped))
    async with house(tmp_path, sqlite, embedder=new, run=True, change=change, sleep=soon) as built:
        notes(built, 40)
        await until(lambda: new.asked)
        assert swapped.closed and (await built.look("note 17 about the zeppelin")).mode == "words"


@pytest.mark.rule("RS-182")
async def test_the_owner_is_told_of_a_swapped_model_once(sqlite: Database, clock: FakeClock) -> None:
    owner = {"id": "p-owner", "name": "O", "scope": str(ROOT), "role": "owner", "created_at": clock()}
    await sqlite.write(lambda connection: connection.execute(sa.insert(people), owner))
    chat = await Talks(sqlite).chat()
    await sqlite.write(lambda c: c.execute(sa.update(conversations).where(conversations.c.id == chat).values(person_id="p-owner")))
    await EmbeddingChange(sqlite, clock).known(Model("local"))
    for _start in range(2):
        known = await EmbeddingChange(sqlite, clock).known(Model("local", salt="swapped"))
        assert known.fingerprint == "model/local#2"
    told = await sqlite.read(lambda connection: [row.key for row in connection.execute(sa.select(jobs)) if "embedding:" in row.key])
    assert len(told) == 1


# -- an outage ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-184", "RS-27")
async def test_an_outage_is_not_asked_again_for_a_minute_and_is_logged_once_an_hour(caplog: pytest.LogCaptureFixture) -> None:
    now = [0.0]
    async with serving(FakeEmbeddings(8)) as fake:
        made = RestingEmbedder(EndpointEmbedder(base_url=fake.url, api_key="", model="e"), now=lambda: now[0])
        fake.status = 503
        with caplog.at_level(logging.WARNING):
            for _turn in range(100):
                with pytest.raises(EmbedderFailed):
                    await made.questions(["where is the zeppelin?"])
                now[0] += 30
        assert fake.requests == 50 and len(caplog.records) == 1
        with caplog.at_level(logging.WARNING):
            now[0] = 3_700.0
            with pytest.raises(EmbedderFailed) as raised:
                await made.documents(["x"])
            with pytest.raises(EmbedderFailed) as resting:
                await made.dimension()
        assert len(caplog.records) == 2 and not raised.value.retry_after_s and 0 < resting.value.retry_after_s <= 60
        fake.status = 200
        now[0] += 61
        assert await made.dimension() == 8  # a failure does not stick
        await made.close()


@pytest.mark.rule("RS-184", "RS-36")
async def test_a_hundred_searches_without_an_embedder_write_one_line(tmp_path: Path, sqlite: Database, caplog: pytest.LogCaptureFixture) -> None:
    async with serving(FakeEmbeddings(8)) as fake:
        fake.status = 503
        made = RestingEmbedder(EndpointEmbedder(base_url=fake.url, api_key="", model="e"))
        with caplog.at_level(logging.WARNING):
            async with house(tmp_path, sqlite, embedder=made, run=True, sleep=soon) as built:
                notes(built, 5)
                await built.indexing.prepare_scope(ROOT)
                await until(lambda: fake.requests)
                for _turn in range(100):
                    assert (await built.look("zeppelin")).mode == "words"
        assert fake.requests == 1 and len([each for each in caplog.records if each.levelno >= logging.WARNING]) == 1


@pytest.mark.rule("SM-95", "RS-183")
async def test_an_old_one_that_does_not_answer_now_is_called_again_later(tmp_path: Path, sqlite: Database) -> None:
    old, new = Model("old"), Model("new")
    await read_by(tmp_path, sqlite, old)
    tries = 0

    class Flaky(Model):
        async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
            nonlocal tries
            tries += 1
            if tries == 1:
                raise EmbedderFailed("asleep")
            return await super().documents(texts)

    change = EmbeddingChange(sqlite, FakeClock(), lambda _name: Flaky("old"), is_paid=True)
    succession = Succession(shelf_of(FILES), db=sqlite, clock=FakeClock(), change=change, embedder=new, pages=2)
    with pytest.raises(EmbedderFailed):
        await succession.round()
    assert succession.answering is None and succession.waits_for == new.fingerprint
    await succession.round()
    assert succession.answering is not None and succession.answering.fingerprint == old.fingerprint and new.asked == 0
    await succession.release()
