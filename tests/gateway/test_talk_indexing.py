"""The index of the talk while the gateway runs: chunks behind the replies, vectors behind the chunks, everything made anew after a change."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from gateway.recall.talk_indexing import TalkIndexing, record_rule
from memory import conversations, message_changes, vectors, whole_conversations
from memory.chroma_home import ChromaHome
from memory.database import Database
from memory.embedders.hashed import hash_embedder
from memory.index_errors import EmbedderFailed
from memory.index_kinds import MESSAGES
from memory.ports import Embedder, Vector
from memory.query import Query
from memory.recall import chunk_store
from memory.recall.chunk_store import Stored
from memory.recall.reach import Reach
from memory.recall.talk_search import Asked, Recalled, TalkSearch
from tests.conftest import FakeClock
from tests.memory.indexed import until
from tests.memory.recall.talks import Talks


class Counting:
    """A hash embedder that counts, waits and fails on demand."""

    def __init__(self) -> None:
        self._inner = hash_embedder(32)
        self.fingerprint, self.label, self.batch, self.passage_tokens = self._inner.fingerprint, "counting", 16, 0
        self.given: list[str] = []
        self.fault: EmbedderFailed | None = None

    async def dimension(self) -> int:
        return await self._inner.dimension()

    async def documents(self, texts: list[str]) -> list[Vector | None]:
        if self.fault is not None:
            raise self.fault
        self.given += texts
        return await self._inner.documents(texts)

    async def questions(self, texts: list[str]) -> list[Vector | None]:
        return await self._inner.questions(texts)

    async def close(self) -> None:
        await self._inner.close()


async def soon(seconds: float) -> None:
    await asyncio.sleep(min(seconds, 0.05))


@asynccontextmanager
async def indexing(
    db: Database,
    embedder: Embedder | None = None,
    *,
    record: str = "full",
    run: bool = True,
    home: ChromaHome | None = None,
    mirror_above: int = 0,
) -> AsyncIterator[TalkIndexing]:
    made = TalkIndexing(
        db=db, clock=FakeClock(), embedder=embedder, home=home, gap=lambda: timedelta(hours=6), record=lambda: record, sleep=soon,
        mirror_above=mirror_above,
    )  # fmt: skip
    async with asyncio.TaskGroup() as group:
        running = group.create_task(made.run()) if run else None
        yield made
        if running is not None:
            running.cancel()
    if embedder is not None:
        await embedder.close()


async def stored(db: Database, of: str) -> list[Stored]:
    return await db.read(lambda c: chunk_store.of_chat(c, of))


@pytest.mark.rule("RS-16", "RS-11", "RS-20")
async def test_chunks_are_made_behind_what_is_said_and_at_the_start_what_was_missed(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    await talks.say(of, *(f"missed {n}" for n in range(9)))
    async with indexing(database) as made:

        async def count() -> int:
            return len(await stored(database, of))

        await until(count)
        assert await count() == 1
        await talks.say(of, "the tenth")
        made.changed(of)

        async def two() -> bool:
            return await count() == 2

        await until(two)


@pytest.mark.rule("RS-34", "RS-181")
@pytest.mark.case("AT-3")
@pytest.mark.parametrize("indexed", [True, False])
async def test_the_first_reply_of_a_large_chat_does_not_wait_for_its_vectors_and_the_next_one_has_them(
    tmp_path: Path, sqlite: Database, indexed: bool
) -> None:
    talks = Talks(sqlite)
    of = await talks.chat()
    await talks.say(of, *(f"the heron number {n} sleeps by the lake" for n in range(50)))
    home = ChromaHome(tmp_path / "chroma") if indexed else None
    async with indexing(sqlite, hash_embedder(64), home=home, mirror_above=9) as made:

        async def ready() -> bool:
            status = await made.status()
            return status.vectors == "ok" and status.passages == 10 and (home is None or status.mirror == "ok")

        await until(ready, 60)
        search = TalkSearch(
            sqlite, made.hot, serving=made.serving, words_weight=lambda: 0.5, name_weight=lambda: 8.0, floor_percentile=lambda: 97.0,
            text_share=lambda: 0.55, warm=made.warm, at_once=9,
        )  # fmt: skip
        asked = Asked(text="where does the heron number 17 sleep", names=(), query=Query("where does the heron number 17 sleep", time_limit_s=60))

        async def found() -> Recalled:
            return await search.search(asked, [Reach(conversation_id=of, audiences=("",), edge=10**9)])

        async def held() -> bool:
            serving = made.serving()
            assert serving.embedder is not None
            area, prints = chunk_store.area_of(of), serving.embedder.fingerprint
            return not (await sqlite.read(lambda c: made.hot.rows(c, area, prints, serving.calibration, at_once=0))).cold

        first = await found()
        assert first.passages and first.mode == ("hybrid" if indexed else "text")
        await until(held)
        assert (await found()).mode == "hybrid"
    if home is not None:
        await home.close()


@pytest.mark.rule("RS-181")
@pytest.mark.case("AT-3")
async def test_only_chats_too_large_to_be_read_while_a_reply_waits_are_in_the_vector_index(tmp_path: Path, database: Database) -> None:
    talks, home = Talks(database), ChromaHome(tmp_path / "chroma")
    small, large = await talks.chat("web::small"), await talks.chat("web::large")
    for of, chunks in ((small, 3), (large, 3)):
        await talks.say(of, *(f"the heron number {n} sleeps by the lake" for n in range(5 * chunks)))
    async with indexing(database, hash_embedder(64), home=home, mirror_above=3) as made:

        async def indexed() -> set[str]:
            serving = made.serving()
            return set() if serving.index is None else {key.partition(":")[0] for key in await serving.index.keys(serving.collection)}

        async def ready() -> bool:
            status = await made.status()
            return status.passages == status.embedded == 6 and status.mirror == "ok"

        await until(ready, 60)
        assert await indexed() == set()
        await talks.say(large, *(f"the crane number {n} stands in the reeds" for n in range(5)))
        made.changed(large)

        async def grown() -> bool:
            return len(await indexed()) == 4

        await until(grown, 60)
        assert await indexed() == {str(each.id) for each in await stored(database, large)}
    await home.close()


@pytest.mark.rule("RS-12")
@pytest.mark.parametrize("platform", ["full", "recall_only", "none"])
@pytest.mark.parametrize("chat", ["", "full", "recall_only", "none"])
async def test_the_stricter_record_rule_wins_before_anything_is_stored(sqlite: Database, platform: str, chat: str) -> None:
    talks = Talks(sqlite)
    of = await talks.chat()
    await sqlite.write(lambda c: conversations.change(c, of, record=chat))
    await talks.say(of, *(f"line {n}" for n in range(5)))
    async with indexing(sqlite, record=platform, run=False) as made:
        await made.follow(of)
    strict = "none" in (platform, chat)
    assert (record_rule(platform, chat) == "none") is strict
    assert (await stored(sqlite, of) == []) is strict


@pytest.mark.rule("RS-21", "RS-189")
async def test_a_deleted_message_costs_one_embedding_and_its_chunk_alone_is_made_anew(database: Database) -> None:
    talks, embedder = Talks(database), Counting()
    of = await talks.chat()
    said = await talks.say(of, *(f"line number {n} of the talk" for n in range(60)))
    async with indexing(database, embedder) as made:

        async def embedded() -> bool:
            done, all_ = await database.read(lambda c: vectors.coverage(c, MESSAGES, embedder.fingerprint))
            return done == all_ == 12

        await until(embedded)
        before = {chunk.id: chunk.seqs for chunk in await stored(database, of)}
        paid = len(embedder.given)
        await database.write(lambda c: message_changes.forget(c, said[2].id))
        made.changed(of)

        async def again() -> bool:
            return {chunk.seqs for chunk in await stored(database, of) if chunk.id not in before} == {
                tuple(m.seq for m in said[:5] if m is not said[2])
            }

        await until(again)
        await until(embedded)
        assert len(embedder.given) == paid + 1
        kept = {chunk.id: chunk.seqs for chunk in await stored(database, of) if chunk.id in before}
        assert len(kept) == 11
        assert not any("number 2 " in chunk.text for chunk in await stored(database, of))


@pytest.mark.rule("RS-41", "RS-40")
async def test_a_rebuild_makes_native_chunks_anew_from_what_is_said_now(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    said = await talks.say(of, *(f"old words {n}" for n in range(10)))
    async with indexing(database, run=False) as made:
        await made.follow(of)
        await database.write(lambda c: message_changes.correct(c, said[0], "new words", FakeClock()()))
        progress: list[tuple[int, int]] = []
        assert await made.rebuild(of, lambda done, total: progress.append((done, total))) == 2
        assert progress[-1] == (2, 2)
    texts = [chunk.text for chunk in await stored(database, of)]
    assert any("new words" in text for text in texts)
    assert not any("old words 0" in text for text in texts)


@pytest.mark.rule("RS-184", "RS-38")
async def test_without_vectors_there_are_words_and_a_reason(sqlite: Database) -> None:
    talks, embedder = Talks(sqlite), Counting()
    embedder.fault = EmbedderFailed("no such model", permanent=True)
    of = await talks.chat()
    await talks.say(of, "a", "b", "the heron sleeps", "d", "e")
    async with indexing(sqlite, embedder) as made:

        async def failed() -> bool:
            return (await made.status()).vectors == "failed"

        await until(failed)
        assert "no such model" in (await made.status()).reason
        assert (await talks.ask("where does the heron sleep", of)).passages
        embedder.fault = None

        async def mended() -> bool:
            status = await made.status()
            return status.vectors == "ok" and status.embedded == status.passages == 1

        await until(mended)


@pytest.mark.rule("RS-41", "WD-15")
async def test_a_chat_that_goes_takes_its_chunks_and_words_along(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    await talks.say(of, *(f"line {n}" for n in range(5)))
    await talks.cut(of)
    await database.write(lambda c: whole_conversations.delete(c, of))
    left = await database.read(lambda c: c.exec_driver_sql("SELECT count(*) FROM message_words").scalar_one())
    assert (left, await stored(database, of)) == (0, [])
