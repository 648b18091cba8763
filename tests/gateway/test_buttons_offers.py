"""Buttons below what waits for a yes for longer: links of two accounts, and what dreams and tools proposed (CH-159, WD-13, WD-81)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from datetime import timedelta
from functools import partial
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway import buttons, notices
from gateway.buttons import Choice, Question
from gateway.dreams.night import question_of_refused
from gateway.language import LANGUAGES, say
from memory.database import Database
from memory.layout import CURATED
from memory.proposed_changes import Passage, ProposedChange
from memory.schema import people
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id
from tests.gateway.nights import utc
from tests.gateway.test_buttons import data_of, labels, press
from tests.gateway.test_linking import accounts, code_of


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    clock.now = utc("2026-03-08T20:00")
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


async def called(house: CommandHouse, who: str, **columns: str) -> None:
    await house.do(lambda c: c.execute(sa.update(people).where(people.c.id == person_id(who)).values(**columns)))


# -- two accounts that are to be one ------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-13", "CH-159")
async def test_a_link_is_agreed_to_by_a_button_on_either_side(house: CommandHouse) -> None:
    code = await code_of(house, "uma")
    await house.says(f"/link {code}", by="ada")
    assert await labels(house) == [["Link with Uma", "Drop the link with Uma"]]
    assert (await press(house, await data_of(house, "Link with Uma"), by="ada")).answer.startswith("Noted.")
    await house.results()
    assert await labels(house) == [["Link with Ada", "Drop the link with Ada"]], "who asked has them below the news"
    assert (await press(house, await data_of(house, "Link with Ada"), by="uma")).answer.startswith("Linked.")
    assert await accounts(house, "uma") | await accounts(house, "ada") == {"uma", "ada"}
    assert not (await accounts(house, "uma") and await accounts(house, "ada")), "one person has both"


@pytest.mark.rule("WD-13", "CH-159", "CH-111")
async def test_a_buttons_yes_counts_for_its_own_link_and_its_own_person(house: CommandHouse) -> None:
    await house.says(f"/link {await code_of(house, 'uma')}", by="ada")
    first = await data_of(house, "Link with Uma")
    assert (await press(house, first, by="uma", chat="dm-ada")).accepted.rule == "not-yours"
    await house.says(f"/link {await code_of(house, 'owen')}", by="ada")
    await house.says("/link yes", by="ada")
    assert await labels(house) == [[f"Link with {name}", f"Drop the link with {name}"] for name in ("Owen", "Uma")], "more than one: each has its own"
    assert (await press(house, await data_of(house, "Drop the link with Owen"), by="ada")).answer.startswith("Dropped.")
    assert (await press(house, first, by="ada")).answer.startswith("Noted."), "the other is as it was"


@pytest.mark.rule("WD-13", "CH-159")
async def test_a_links_buttons_are_open_as_long_as_the_link(house: CommandHouse) -> None:
    await house.says(f"/link {await code_of(house, 'uma')}", by="ada")
    data = await data_of(house, "Link with Uma")
    house.clock.advance(minutes=10)
    heard = await press(house, data, by="ada")
    assert (heard.accepted.rule, heard.accepted.spent) == ("no-such-action", True)


@pytest.mark.rule("UX-1", "WD-13")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_a_links_buttons_speak_the_language_of_their_side_and_keep_long_names_short(house: CommandHouse, language: str) -> None:
    await called(house, "ada", language=language)
    await called(house, "uma", name="梅" * 90 + "\n")
    await house.says(f"/link {await code_of(house, 'uma')}", by="ada")
    name = "梅" * (buttons.NAME_SHOWN - 1) + "…"
    assert await labels(house) == [[say(language, key, name=name) for key in ("button_link", "button_link_no")]]


# -- what dreams and tools proposed -------------------------------------------------------------------------------------------


async def proposed(house: CommandHouse, *facts: str) -> list[str]:
    ids: list[str] = []
    for fact in facts:
        about = ProposedChange(person_id=person_id("owen"))
        made = await house.changes.propose(ROOT, CURATED, lambda before, fact=fact: f"{before}- {fact}\n", Passage(old="", new=f"- {fact}"), about)
        assert made is not None
        ids.append(made.id)
    return ids


@pytest.mark.rule("WD-81", "WD-105", "CH-159")
async def test_what_waits_is_taken_or_dropped_by_a_button_each(house: CommandHouse) -> None:
    tea, coffee = await proposed(house, "Likes tea", "Likes coffee")
    await house.says("/memory dream show")
    assert sorted(await labels(house)) == sorted([f"Approve {each}", f"Decline {each}"] for each in (tea, coffee))  # of one instant: in any order
    take, drop = await data_of(house, f"Approve {tea}"), await data_of(house, f"Decline {coffee}")
    house.clock.advance(hours=23)
    assert "+ Likes tea" in (await press(house, take)).answer
    assert (await press(house, drop)).answer == f"`{coffee}` is dropped."
    assert (await press(house, take)).accepted.rule == "no-such-action", "once"
    assert house.memory_lines() == ["Likes tea"]


@pytest.mark.rule("WD-80", "WD-81", "CH-159")
async def test_the_news_of_a_refused_dream_has_buttons_and_stays_as_it_was_written(house: CommandHouse) -> None:
    [tea] = await proposed(house, "Likes tea")
    await house.talk("Hello")
    ask = partial(question_of_refused, tea)
    values = {"lost": 9, "total": 10, "limit": 3, "id": tea}
    await house.do(lambda c: notices.tell(c, str(ROOT), "dream_refused_lines", values, once="x", now=house.clock(), ask=ask))
    await house.results()
    assert await labels(house) == [[f"Show {tea}", f"Approve {tea}", f"Decline {tea}"]]
    assert "+ Likes tea" in (await press(house, await data_of(house, f"Show {tea}"))).answer
    assert await labels(house) == [[f"Approve {tea}", f"Decline {tea}"]], "what is shown can be decided"


# -- what is stored -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-159")
def test_a_question_survives_the_way_through_a_job() -> None:
    question = Question(choices=(Choice("Ja", "/link yes 7"), Choice("No")), language="ja", open_for=timedelta(minutes=10))
    assert Question.of_json(question.as_json()) == question
