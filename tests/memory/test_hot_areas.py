"""Areas held in memory: after every change what is held equals what a fresh look would read, within its limit."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from memory import vectors
from memory.areas import EVERYONE, IndexArea
from memory.database import Database
from memory.embedders.calibration import Calibration, calibrate
from memory.embedders.hashed import hash_embedder
from memory.hot_areas import AreaRows, HotAreas
from memory.index_kinds import FILES
from memory.scopes import ROOT
from tests.memory.indexed import House, house, lines

HOME = IndexArea("root")


class Time:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def embed_all(built: House) -> None:
    embedder = hash_embedder(16)
    found = await built.db.read(lambda connection: vectors.missing(connection, FILES, embedder.fingerprint, 10_000))
    rows = await embedder.documents([each.text for each in found])
    made = {each.text_hash: row for each, row in zip(found, rows, strict=True) if row is not None}
    await built.db.write(lambda connection: vectors.put(connection, embedder.fingerprint, made))
    await embedder.close()


async def look(built: House, hot: HotAreas, calibration: Calibration) -> AreaRows:
    return await built.db.read(lambda connection: hot.rows(connection, HOME, hash_embedder(16).fingerprint, calibration))


def same(one: AreaRows, other: AreaRows) -> bool:
    assert one.vectors is not None and other.vectors is not None
    pairs = [(getattr(one, name), getattr(other, name)) for name in ("ids", "words", "days", "pages", "matching", "owners", "passages", "vectors")]
    return all(np.array_equal(left, right) for left, right in pairs) and one.total_passages == other.total_passages


@pytest.mark.rule("SM-31", "RS-181")
async def test_what_is_held_equals_a_fresh_look_after_every_change(tmp_path: Path, database: Database) -> None:
    embedder, clock, chooser = hash_embedder(16), Time(), random.Random(3)
    calibration = await calibrate(embedder)
    await embedder.close()
    hot = HotAreas(monotonic=clock)
    async with house(tmp_path, database) as built:
        for step in range(12):
            for path in chooser.sample(["MEMORY.md", "user.md", "knowledge/a.md", "memory/2026-01-01.md", "knowledge/b.md"], 2):
                if chooser.random() < 0.25 and built.path(ROOT, path).exists():
                    built.path(ROOT, path).unlink()
                else:
                    facts = [f"fact {chooser.randrange(40)} of the harbour" for _ in range(chooser.randrange(1, 6))]
                    built.put(ROOT, path, f"# {path}\n{lines(facts)}")
            await built.indexing.prepare_scope(ROOT)
            await look(built, hot, calibration)  # between the words and their vectors
            if step % 3:
                await embed_all(built)
                hot.vectors_changed()
            clock.now += 3
            held = await look(built, hot, calibration)
            assert same(held, await look(built, HotAreas(), calibration))
            question = calibration.question(np.random.default_rng(step).normal(size=16).astype(np.float32))
            near = held.nearest(held.similar(question))
            assert held.vectors is not None
            for at, chunk_id in enumerate(held.ids):
                mine = held.vectors[held.owners == chunk_id] @ question
                assert near[at] == pytest.approx(mine.max(), abs=1e-6) if len(mine) else np.isnan(near[at])


async def test_areas_together_keep_to_their_limit_and_one_too_large_has_no_vectors_in_memory(tmp_path: Path, sqlite: Database) -> None:
    embedder = hash_embedder(16)
    calibration = await calibrate(embedder)
    await embedder.close()
    async with house(tmp_path, sqlite) as built:
        built.put(ROOT, "MEMORY.md", lines(["a fact"] * 3))
        built.put(ROOT, "knowledge/public/x.md", "a page\n")
        await built.indexing.prepare_scope(ROOT)
        await embed_all(built)
        tight = HotAreas(limit_bytes=1)
        for area in (HOME, EVERYONE):
            await sqlite.read(lambda connection, area=area: tight.rows(connection, area, embedder.fingerprint, calibration))
        assert [key[0] for key in tight._kept] == [EVERYONE]  # pyright: ignore[reportPrivateUsage]
        assert (await look(built, HotAreas(area_bytes=1), calibration)).vectors is None


@pytest.mark.rule("RS-181")
async def test_areas_that_hold_nothing_keep_to_the_limit_too(sqlite: Database) -> None:
    """A chat that is asked before it has a chunk takes memory as well: 100,000 of them must not."""
    hot = HotAreas(limit_bytes=30_000)
    for number in [*range(100), *range(100)]:
        area = IndexArea(f"talk/{number}")
        await sqlite.read(lambda connection, area=area: hot.rows(connection, area, "", None))
    kept = [each.rows.bytes for each in hot._kept.values()]  # pyright: ignore[reportPrivateUsage]
    assert 1 < len(kept) < 20 and sum(kept) <= 30_000
