"""Entries that the model makes: by themselves, for a whole old chat, many merged into one; what is kept when something goes wrong."""

from __future__ import annotations

import json
import random
import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.errors import ModelBusy
from agent.llm.port import Finish, ModelRequest
from agent.llm.scripted import End, Fail, Reply, Say
from gateway.entries import jobs as entries
from gateway.entries import view as entry_view
from gateway.jobs.table import cancel_job
from memory import conversations, message_changes, whole_conversations
from memory.database import Database
from memory.recall import entry_rows, summary_rows
from memory.recall.entry_plan import ACTIVE_MOST
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State
from memory.schema import job_parts
from tests.conftest import FakeClock
from tests.gateway.entry_house import EntryHouse, living
from tests.gateway.nights import OWNER
from tests.gateway.rows_house import lines, said


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(database, tmp_path, clock) as made:
        yield made


@pytest.fixture
async def lite(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(sqlite, tmp_path, clock) as made:
        yield made


async def spans(house: EntryHouse, chat: str) -> list[tuple[int, int, str]]:
    return [(each.first, each.last, each.origin) for each in (await house.listing(chat)).entries]


# -- by themselves -----------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-86")
async def test_the_fifth_own_message_after_switching_on_makes_an_entry_and_no_answer_counts(house: EntryHouse) -> None:
    chat = await house.made()
    for n in range(3):
        await house.turn(chat, f"before {n}")
    await house.configure(chat, automatic=True)
    for n in range(4):
        await house.turn(chat, f"turn {n}")
        assert await house.job_keys(entries.KIND) == []
    await house.turn(chat, "turn 4")
    assert await house.make() == ["automatic"]
    assert await spans(house, chat) == [(7, 16, "automatic")], "of what was said since"
    for n in range(5, 9):
        await house.turn(chat, f"turn {n}")
        assert await house.make() == []
    await house.turn(chat, "turn 9")
    assert await house.make() == ["automatic"]
    assert await spans(house, chat) == [(7, 16, "automatic"), (17, 26, "automatic")]


@pytest.mark.rule("RS-86")
async def test_the_very_first_message_never_makes_one_and_off_makes_none(lite: EntryHouse) -> None:
    await lite.set(entries={"automatic": True, "every": 1})
    chat = await lite.made()
    await lite.turn(chat, "hello")
    assert await lite.make() == []
    await lite.turn(chat, "again")
    assert await lite.make() == ["automatic"]
    other = await lite.made()
    await lite.configure(other, automatic=False)
    for n in range(8):
        await lite.turn(other, f"turn {n}")
    assert await lite.make() == []


@pytest.mark.rule("RS-86")
async def test_a_setting_of_the_gateway_counts_an_old_chat_from_its_next_message(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 40)
    await lite.set(entries={"automatic": True, "every": 3})
    for n in range(2):
        await lite.turn(chat, f"turn {n}")
    assert await lite.make() == []
    await lite.turn(chat, "turn 2")
    assert await lite.make() == ["automatic"]
    assert await spans(lite, chat) == [(41, 46, "automatic")]


@pytest.mark.rule("RS-86")
async def test_a_deleted_automatic_entry_is_not_made_again_at_once_and_switching_on_anew_counts_anew(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.configure(chat, automatic=True, every=2)
    for n in range(2):
        await lite.turn(chat, f"turn {n}")
    assert await lite.make() == ["automatic"]
    await lite.desk.delete(chat, OWNER, [each.id for each in (await lite.listing(chat)).entries])
    await lite.turn(chat, "turn 2")
    assert await lite.make() == []
    await lite.configure(chat, automatic=False)
    await lite.configure(chat, automatic=True)
    await lite.turn(chat, "turn 3")
    assert await lite.make() == []


@pytest.mark.rule("RS-86", "RS-49")
async def test_a_helper_that_fails_loses_nothing_and_the_entry_covers_what_came_meanwhile(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.configure(chat, automatic=True)
    lite.script = lambda _request: Fail(ModelBusy("busy"))
    for n in range(7):
        await lite.turn(chat, f"turn {n}")
        await lite.make()
    assert (await lite.listing(chat)).uncovered == 14
    lite.script = said
    lite.clock.advance(hours=3)
    await lite.make()
    assert await spans(lite, chat) == [(1, 14, "automatic")]


@pytest.mark.rule("RS-194")
async def test_an_edit_while_the_model_is_asked_saves_no_entry_of_the_old_words(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 10)
    found = await lite.db.read(lambda c: conversations.window(c, chat, 0))

    def edits(request: ModelRequest) -> Reply:
        lite.db.write_now(lambda c: message_changes.correct(c, found[4], "corrected", lite.clock()))
        return said(request)

    lite.script = edits
    await lite.desk.generate(chat, OWNER, last=10)
    await lite.make()
    assert await spans(lite, chat) == []


@pytest.mark.rule("RS-192", "RS-101")
async def test_an_answer_that_was_cut_off_is_asked_for_once_more_with_more_room_and_never_stored(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 10)
    await lite.configure(chat, max_output=500)
    lite.script = lambda request: [Say(said(request)[:20]), End(Finish.LENGTH)]
    await lite.desk.generate(chat, OWNER)
    await lite.make()
    assert [request.max_output_tokens for request in lite.model.requests] == [500, 1_000]
    assert await spans(lite, chat) == []
    assert await lite.count(job_parts) == 0


@pytest.mark.rule("RS-85", "RS-86")
async def test_automatic_entries_wait_too_and_no_second_one_is_made_of_the_same_talk(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.configure(chat, automatic=True, every=2, review=True)
    for n in range(4):
        await lite.turn(chat, f"turn {n}")
        await lite.make()
    seen = await lite.listing(chat)
    assert (seen.waiting, seen.uncovered) == (2, 8)
    assert [(each.first, each.last, each.enabled) for each in seen.entries] == [(1, 4, False), (5, 8, False)]


@pytest.mark.rule("RS-86")
async def test_a_copy_of_a_chat_keeps_its_settings_and_counts_anew(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.configure(chat, automatic=True, every=3)
    for n in range(2):
        await lite.turn(chat, f"turn {n}")
    source = await lite.conversation(chat)
    of = conversations.ConversationId("c-copycopycopy")
    await lite.db.write(lambda c: whole_conversations.fork(c, source, key="web::copy", new_id=of, up_to_seq=2**40, title="", now=lite.clock()))
    await lite.turn(of, "turn 2")
    assert (await lite.listing(of)).settings.every == 3
    assert await lite.make() == []
    for n in (3, 4):
        await lite.turn(of, f"turn {n}")
    assert await lite.make() == ["automatic"]


# -- a whole old chat --------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-87", "RS-106")
async def test_a_backfill_covers_all_in_batches_and_tells_how_far_it_is(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 33)
    await house.configure(chat, last_n=10)
    await house.write(chat, 5, 8)
    await house.desk.switch(chat, OWNER, None, enabled=False)
    seen: list[tuple[int, int, str]] = []

    def watched(request: ModelRequest) -> Reply:
        seen.append(how_far(house, chat))
        return said(request)

    house.script = watched
    await house.desk.backfill(chat)
    await house.make()
    made = [each for each in await spans(house, chat) if each[2] == "automatic"]
    assert made == [(1, 4, "automatic"), (9, 18, "automatic"), (19, 28, "automatic"), (29, 33, "automatic")]
    assert seen == [(0, 4, "running"), (1, 4, "running"), (2, 4, "running"), (3, 4, "running")]
    done = await house.listing(chat)
    assert done.progress is not None
    assert (done.progress.done, done.progress.total, done.progress.state) == (4, 4, "done")
    assert done.uncovered == 4, "of the entry that is off"
    calls = house.calls
    await house.desk.backfill(chat)
    await house.make()
    assert house.calls == calls, "a second run is free"


def how_far(house: EntryHouse, chat: str) -> tuple[int, int, str]:
    found = house.db.write_now(lambda c: entry_view.progress(c, chat))
    assert found is not None
    return found.done, found.total, found.state


@pytest.mark.rule("RS-87")
async def test_stopped_after_two_batches_the_done_work_stays_and_going_on_pays_for_nothing_twice(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 50)
    await house.configure(chat, last_n=10)
    await house.desk.backfill(chat)

    def stops(request: ModelRequest) -> Reply:
        if house.calls == 3:  # while the third is asked
            job = house.db.write_now(lambda c: entry_view.backfill_job(c, chat))
            assert job is not None
            house.db.write_now(lambda c: cancel_job(c, job.id))
        return said(request)

    house.script = stops
    await house.make()
    seen = (await house.listing(chat)).progress
    assert seen is not None
    assert (seen.done, seen.total, seen.state) == (2, 5, "stopped")
    assert len(await spans(house, chat)) == 2
    house.script = said
    await house.desk.backfill(chat)
    await house.make()
    assert len(await spans(house, chat)) == 5
    assert house.calls == 5, "what was paid for when it stopped is used"
    assert await house.count(job_parts) == 0


@pytest.mark.rule("RS-87")
async def test_a_running_backfill_can_be_stopped_by_its_button_and_nothing_else_is(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 20)
    assert not await lite.desk.stop(chat)
    await lite.desk.backfill(chat)
    assert await lite.desk.stop(chat)
    assert not await lite.desk.stop(chat)
    assert await lite.make() == []


# -- many become one ---------------------------------------------------------------------------------------------------


def recaps(request: ModelRequest) -> str:
    """Of talk as `said`; of recaps their first words, which is shorter."""
    if lines(request):
        return said(request)
    return json.dumps({"title": "merged", "text": "m(" + ",".join(re.findall(r"word\d+", request.messages[-1].text)) + ")"})


async def automatic(house: EntryHouse, chat: str, count: int) -> dict[int, list[int]]:
    """`count` automatic entries of two messages each, stored in one go; what each stands for."""
    first = len(await house.numbers(chat)) + 1
    await house.talk(chat, 2 * count, first=first)
    at = await house.numbers(chat)

    def work(c: sa.Connection) -> dict[int, list[int]]:
        made: dict[int, list[int]] = {}
        for n in range(first, first + 2 * count, 2):
            seqs = [at[f"word{n}"], at[f"word{n + 1}"]]
            text = f"They spoke of word{n} and word{n + 1}."
            new = NewSummary(conversation_id=chat, kind=Kind.ENTRY, text=text, sources=seqs, origin=entry_rows.AUTOMATIC)
            made[summary_rows.add(c, new, house.clock())] = seqs
        return made

    return await house.db.write(work)


@pytest.mark.rule("RS-95", "RS-108")
async def test_beyond_two_hundred_the_oldest_are_merged_never_dropped_and_can_come_back(house: EntryHouse) -> None:
    house.script = recaps
    chat = await house.made()
    made = await automatic(house, chat, ACTIVE_MOST)
    await house.desk.switch(chat, OWNER, list(made)[:1], enabled=True)
    assert await house.make() == []
    await house.configure(chat, automatic=True, every=1)
    await house.turn(chat, "one more")
    assert await house.make() == ["automatic", "merge"]
    active = await house.rows(chat, Kind.ENTRY)
    assert len(active) <= ACTIVE_MOST
    merged = next(row for row in active if row.title == "merged")
    inputs = [row.id for row in await house.db.read(lambda c: summary_rows.inputs_of(c, merged.id))]
    assert inputs == list(made)[:8]
    assert merged.text == "m(" + ",".join(f"word{n}" for n in range(1, 17)) + ")"
    assert set(await house.stood_for(chat, Kind.ENTRY)) >= {seq for seqs in made.values() for seq in seqs}
    assert await house.desk.switch(chat, OWNER, inputs[:1], enabled=True) == 1


@pytest.mark.rule("RS-110", "RS-188")
async def test_merging_shows_no_request_both_sides_of_a_secret_and_puts_it_back_under_its_condition(lite: EntryHouse) -> None:
    long = "and the rest of it " * 40
    texts = [
        f'Rain fell. {{{{#if char == "Mira"}}}}Mira hid the key. {long}{{{{/if}}}}',
        f'They left. {{{{#if char == "Mira"}}}}Mira wept. {long}{{{{/if}}}}{{{{#if char == "Ren"}}}}Ren knows the spy.{{{{/if}}}}',
    ]
    lite.script = lambda request: json.dumps({"text": f"[{len(lite.model.requests)}]"})
    chat = await lite.made()
    await lite.talk(chat, 10)
    at = list((await lite.numbers(chat)).values())
    await lite.set(context={"memory_budget": 64, "memory_overrun": 0})
    for n, text in enumerate(texts):
        new = NewSummary(conversation_id=chat, kind=Kind.ENTRY, text=text, sources=at[5 * n : 5 * n + 5], origin=entry_rows.AUTOMATIC)
        await lite.db.write(lambda c, new=new: summary_rows.add(c, new, lite.clock()))
    await lite.desk.switch(chat, OWNER, [], enabled=True)
    assert await lite.make() == ["merge"]
    asked = [request.messages[-1].text for request in lite.model.requests]
    assert len(asked) == 2
    assert "Rain fell." in asked[0]
    assert not any(secret in asked[0] for secret in ("key", "wept", "spy", "{{"))
    assert "hid the key" in asked[1]
    assert not any(secret in asked[1] for secret in ("Rain", "spy", "{{"))
    merged = (await lite.rows(chat, Kind.ENTRY))[0].text
    assert merged == '[1]\n{{#if char == "Mira"}}[2]{{/if}}\n{{#if char == "Ren"}}Ren knows the spy.{{/if}}'


@pytest.mark.rule("RS-95", "RS-166")
async def test_an_entry_that_was_merged_from_a_forgotten_message_is_made_anew_from_what_is_left(lite: EntryHouse) -> None:
    lite.script = recaps
    chat = await lite.made()
    await automatic(lite, chat, ACTIVE_MOST + 1)
    await lite.desk.switch(chat, OWNER, [], enabled=True)
    assert await lite.make() == ["merge"]
    found = await lite.db.read(lambda c: conversations.window(c, chat, 0))
    await lite.db.write(lambda c: message_changes.forget(c, found[2].id))
    await lite.plan()
    await lite.run("restate-summaries")
    texts = [row.text for row in await lite.rows(chat, Kind.ENTRY, states=tuple(State))]
    assert not any(re.search(r"\bword3\b", text) for text in texts)
    anew = [row for row in await lite.rows(chat, Kind.ENTRY) if re.search(r"\bword4\b", row.text)]
    assert len(anew) == 1
    assert "word1," in anew[0].text


@pytest.mark.case("AT-35")
@pytest.mark.rule("RS-95", "RS-94", "RS-92", "RS-72")
async def test_every_message_is_sent_summarised_or_counted_whatever_happens_to_two_hundred_and_fifty_entries(lite: EntryHouse) -> None:
    lite.script = recaps
    chance = random.Random(35)
    chat = await lite.made()
    await lite.configure(chat, hide=True)
    await automatic(lite, chat, 250)
    await lite.talk(chat, 20, first=501)
    await lite.desk.switch(chat, OWNER, [], enabled=True)
    await lite.make()
    assert len(await lite.rows(chat, Kind.ENTRY)) <= ACTIVE_MOST
    await accounted(lite, chat)
    for step in range(14):
        ids = [each.id for each in (await lite.listing(chat)).entries]
        match step % 5:
            case 0:
                first = chance.randrange(1, 480)
                await lite.write(chat, first, first + chance.randrange(0, 40))
            case 1:
                await lite.desk.delete(chat, OWNER, chance.sample(ids, 6))
            case 2:
                await lite.configure(chat, tail=chance.choice([0, 3, 10, 60]))
            case 3:
                await lite.desk.switch(chat, OWNER, chance.sample(ids, 9), enabled=chance.random() < 0.5)
            case _:
                at = await lite.numbers(chat)
                edge = sorted(at.values())[chance.randrange(0, 300)]
                await lite.db.write(lambda c, edge=edge: conversations.move_edge(c, chat, edge))
        await lite.make()
        await accounted(lite, chat)
    await lite.configure(chat, hide=False)
    await accounted(lite, chat)


async def accounted(house: EntryHouse, chat: str) -> None:
    """Every message is in the prompt, told by an entry that is, or stood for by one that is in force; the rest is the number."""
    at = await house.numbers(chat)
    sent = {at[f"word{n}"] for n in await house.words_sent(chat)}
    stood = set(await house.stood_for(chat, Kind.ENTRY))
    seen = await house.listing(chat)
    assert seen.uncovered == len(set(at.values()) - stood)
    edge = (await house.conversation(chat)).window_edge
    behind = {seq for seq in at.values() if seq > edge}
    rows = await house.rows(chat, Kind.ENTRY)
    sources = await house.db.read(lambda c: summary_rows.sources_of(c, [row.id for row in rows]))
    out = {each.id for each in seen.entries if each.left_out}
    told = {seq for row in rows if row.id not in out for seq in sources[row.id]}
    assert behind <= sent | told, "what is hidden is told by an entry that is sent"
    assert behind - stood <= sent, "what no entry stands for is sent"
