"""A helper that spends its answer on thinking, is cut off, or says nothing: nothing of it is stored as a summary (AT-28)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agent.llm.port import Finish
from agent.llm.scripted import End, Reply, Say, Think
from gateway.jobs.table import run_parked
from memory.database import Database
from memory.recall.summary_rows import State
from memory.schema import job_parts
from tests.acceptance.test_killed_and_again import KINDS, Kind, living
from tests.conftest import FakeClock
from tests.gateway.rows_house import RowsHouse, utc_now_at

GOOD = '{"text": "They talked.", "details": []}'
SHORT: dict[str, Reply] = {
    "thinking alone": [Think("hmm " * 2_000), End(Finish.LENGTH)],
    "thinking, then stop": [Think("hmm " * 2_000), Say(""), End(Finish.STOP)],
    "cut in the middle": [Say(GOOD[:20]), End(Finish.LENGTH)],
    "whole, but cut": [Say(GOOD), End(Finish.LENGTH)],
    "empty": "",
    "an empty object": "{}",
}


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[RowsHouse]:
    clock.now = utc_now_at("2026-03-09T12:00")
    async with living(sqlite, tmp_path, clock, "companion") as made:
        await made.person()
        yield made


@pytest.mark.rule("RS-168", "RS-192", "RS-191")
@pytest.mark.case("AT-28", "K22", "K23", "K24")
@pytest.mark.parametrize(
    "kind", [pytest.param(KINDS["rolling"], id="rolling"), pytest.param(KINDS["days and folds"], id="days", marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("answer", SHORT.values(), ids=SHORT)
async def test_what_was_cut_short_is_no_summary_and_is_kept_nowhere_until_a_whole_one_comes(house: RowsHouse, kind: Kind, answer: Reply) -> None:
    house.profile = kind.profile
    chat = await house.made()
    await kind.talk(house, chat)
    replies = [answer]
    house.script = lambda _request: replies[0]
    await kind.work(house)
    assert house.calls >= 2, "it was asked once more"
    assert await house.rows(chat, states=tuple(State)) == []
    assert await house.count(job_parts) == 0, "a failure is no part that is used again"
    replies[0] = GOOD
    await house.db.write(lambda c: run_parked(c, now=house.clock()))
    await kind.work(house)
    assert {row.text.split(":")[-1].strip() for row in await house.rows(chat)} == {"They talked."}
