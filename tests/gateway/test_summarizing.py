"""The jobs that write the day's files: every message once, under its own date, whatever is killed, late, cut off or broken."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.errors import ContextOverflow, ModelBusy, ModelMisconfigured, NoRoom
from agent.llm.port import Finish, ModelRequest
from agent.llm.scripted import End, Fail, Reply, Say
from gateway import trimming
from memory import blocks, conversations, message_changes
from memory.database import Database
from memory.provenance import Origin
from memory.schema import model_calls
from memory.scopes import ROOT
from tests.conftest import FakeClock
from tests.gateway.nights import Night, answer, each_said, shown, utc


@pytest.fixture
async def night(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Night]:
    clock.now = utc("2026-03-08T20:00")
    made = Night(database, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[Night]:
    """The same on SQLite alone, where the store is not the subject."""
    clock.now = utc("2026-03-08T20:00")
    made = Night(sqlite, tmp_path, clock)
    await made.person()
    yield made
    await made.close()


async def at(night: Night, text: str) -> None:
    """It is `text` o'clock; what is due runs."""
    night.clock.now = utc(text)
    await night.look()
    await night.run()


# -- the daily summary -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-48", "WD-49", "WD-50", "WD-52", "WD-53")
async def test_all_talk_of_the_day_is_summarised_once_under_its_labels_after_a_restart_and_silence(night: Night) -> None:
    """Three platforms, one scope; nobody writes after the restart at 22:00 (A6)."""
    for channel, title in (("telegram", ""), ("discord", ""), ("web", "Tulips")):
        chat = await night.chat(channel, title=title)
        await night.says(chat, f"Something on {channel}")
        await night.answers(chat, f"An answer on {channel}")
    night.clock.now = utc("2026-03-08T22:00")
    night.nightly = night.nightly_anew()
    await at(night, "2026-03-08T23:54:59")
    assert night.calls == 0
    await at(night, "2026-03-08T23:59:30")
    text = night.day("2026-03-08")
    assert text.startswith("# Daily Memory: 2026-03-08\n")
    assert text.count("## Daily Summary") == 1
    assert [line for line in text.splitlines() if line.startswith("### ")] == ["### 20:00 telegram", "### 20:00 discord", "### 20:00 Tulips"]
    assert len(night.bullets("2026-03-08")) == 6
    assert set((await night.times_covered()).values()) == {1}
    assert night.written == [("root", "memory/2026-03-08.md")] * 3
    before, calls = night.day("2026-03-08"), night.calls
    night.nightly = night.nightly_anew()
    await at(night, "2026-03-08T23:59:59")
    assert (night.day("2026-03-08"), night.calls, len(night.written)) == (before, calls, 3)


@pytest.mark.rule("WD-2", "WD-52")
async def test_without_uncovered_talk_there_is_no_call_and_no_write(house: Night) -> None:
    chat = await house.chat()
    await house.says(chat, "Once")
    await at(house, "2026-03-08T23:59:30")
    calls, written = house.calls, list(house.written)
    await house.db.write(lambda c: trimming.enqueue(c, house_job("2026-03-09")))
    await house.run()
    row = await house.job("daily-summary", "root:2026-03-09")
    assert (row.state, row.result) == ("done", {"skipped": "unchanged"})
    assert (house.calls, house.written, house.day("2026-03-09")) == (calls, written, "")


@pytest.mark.rule("WD-2", "WD-44")
async def test_a_talk_with_nothing_worth_keeping_writes_nothing_and_counts_as_covered(house: Night) -> None:
    house.script = lambda _request: answer()
    await house.says(await house.chat(), "Hi!")
    await at(house, "2026-03-08T23:59:30")
    assert house.day("2026-03-08") == ""
    assert not (house.workspace.files(ROOT))
    assert set((await house.times_covered()).values()) == {1}


@pytest.mark.rule("WD-2", "WD-52")
async def test_a_day_with_headings_only_is_no_content_and_calls_no_model(house: Night) -> None:
    """N11: the file is there, so the night looks at it, and does nothing."""
    house.workspace.append(ROOT, "memory/2026-03-08.md", "# Daily Memory: 2026-03-08\n\n## Daily Summary")
    await at(house, "2026-03-08T23:59:30")
    assert (await house.job("daily-summary", "root:2026-03-08")).result == {"skipped": "unchanged"}
    assert house.calls == 0
    assert house.dreams == [("root", "2026-03-08")]


@pytest.mark.rule("WD-51", "WD-138")
@pytest.mark.case("SC-18")
async def test_only_what_people_said_and_the_bot_answered_is_summarised(house: Night) -> None:
    chat = await house.chat()
    await house.says(chat, "A real question")
    for origin, role in (("scheduled", "assistant"), ("notice", "notice"), ("command", "user"), ("imported", "user")):
        await house.says(chat, f"Of origin {origin}", role=role, origin=origin)
    await house.says(chat, "In a chat without memory", scope="")
    hidden = await house.says(chat, "Taken back")
    await house.db.write(lambda c: message_changes.rewind(c, chat, hidden.seq))
    await at(house, "2026-03-08T23:59:30")
    assert [words for request in house.model.requests for _, words in shown(request)] == ["A real question"]


@pytest.mark.rule("WD-51")
async def test_in_spaces_people_with_full_privacy_are_left_out_and_partial_ones_are_no_evidence(house: Night) -> None:
    scope = f"spaces/{await house.space('s-gardenaaaa', 'Garden club')}"
    for name, privacy in (("p-openaaaaaa", ""), ("p-halfaaaaaa", "partial"), ("p-fullaaaaaa", "full")):
        await house.person(name, scope=f"people/{name}", privacy=privacy)
    chat = await house.chat("discord", kind="group", space_id="s-gardenaaaa")
    await house.says(chat, "I grow roses", scope=scope, by="p-openaaaaaa", turn_id="t1")
    await house.says(chat, "I grow leeks", scope=scope, by="p-halfaaaaaa", turn_id="t2")
    await house.says(chat, "I grow secrets", scope=scope, by="p-fullaaaaaa", turn_id="t3")
    await house.answers(chat, "Secrets need water", scope=scope, turn_id="t3")
    await at(house, "2026-03-08T23:59:30")
    assert house.bullets("2026-03-08", scope) == ["Said: I grow roses", "Said: I grow leeks"]
    assert "### 20:00 Garden club" in house.day("2026-03-08", scope)
    rows = {row.speakers: row.origin for row in (await house.lines("2026-03-08", scope)).values()}
    assert rows == {("p-openaaaaaa",): Origin.PERSON, ("p-halfaaaaaa",): Origin.UNSOURCED}
    assert house.day("2026-03-08") == ""


@pytest.mark.rule("WD-53", "WD-54")
async def test_each_message_goes_to_its_own_date_and_what_came_after_the_run_follows_as_late(night: Night) -> None:
    """A message at 23:58, a run that ends at 00:07 (A8, N2)."""
    chat = await night.chat()
    await night.says(chat, "Of the evening")
    night.clock.now = utc("2026-03-08T23:59:20")
    await night.look()
    await night.says(chat, "Of the night", at=utc("2026-03-09T00:01"))
    night.clock.now = utc("2026-03-09T00:07")
    await night.run("daily-summary")
    assert night.bullets("2026-03-08") == ["Said: Of the evening"]
    assert night.bullets("2026-03-09") == []
    await night.says(chat, "Late on the eighth", at=utc("2026-03-08T23:59:40"))
    await at(night, "2026-03-09T23:54")
    assert night.calls == 1
    await at(night, "2026-03-09T23:59:30")
    assert night.bullets("2026-03-08") == ["Said: Of the evening", "Said: Late on the eighth"]
    assert "## Daily Summary (late)" in night.day("2026-03-08")
    assert night.bullets("2026-03-09") == ["Said: Of the night"]
    assert "late" not in night.day("2026-03-09")
    assert set((await night.times_covered()).values()) == {1}


@pytest.mark.rule("WD-18")
@pytest.mark.case("SC-22")
async def test_a_second_summary_keeps_every_byte_of_the_first_and_of_people(house: Night) -> None:
    house.workspace.append(ROOT, "memory/2026-03-08.md", "A line of mine.\r\n")
    chat = await house.chat()
    first = await house.says(chat, "First")
    await house.leaves(chat, 1, first.seq)
    await house.run()
    once = house.day("2026-03-08")
    await house.says(chat, "Second")
    await at(house, "2026-03-08T23:59:30")
    assert house.day("2026-03-08").startswith(once)
    assert "A line of mine." in once
    assert house.bullets("2026-03-08") == ["Said: First", "Said: Second"]


# -- what may be kept --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-44", "WD-70")
async def test_a_bullet_with_a_number_or_link_that_was_never_said_is_left_out_and_counted(house: Night) -> None:
    house.script = lambda _request: answer(
        ("The rent is 640 euros", ["m1"]),
        ("The rent is 740 euros", ["m1"]),
        ("家賃は640ユーロです", ["m1"]),
        ("房租是 650 欧元", ["m1"]),
        ("See https://example.org/rent", ["m1"]),
    )
    await house.says(await house.chat(), "My rent is 640 euros")
    await at(house, "2026-03-08T23:59:30")
    assert house.bullets("2026-03-08") == ["The rent is 640 euros", "家賃は640ユーロです"]
    result = (await house.job("daily-summary", "root:2026-03-08")).result
    assert result is not None
    assert result["unsupported"] == 3


@pytest.mark.rule("WD-22", "WD-44")
async def test_a_secret_in_an_answer_is_not_written_and_not_logged(house: Night, caplog: pytest.LogCaptureFixture) -> None:
    house.script = lambda _request: answer(("The password is hunter2x!", ["m1"]), ("Ana has a cat", ["m1"]))
    await house.says(await house.chat(), "My password is hunter2x! and I have a cat")
    await at(house, "2026-03-08T23:59:30")
    assert house.bullets("2026-03-08") == ["Ana has a cat"]
    assert "hunter2x" not in caplog.text
    assert "password" in caplog.text


@pytest.mark.rule("WD-44", "WD-67")
async def test_whose_words_a_bullet_rests_on_is_settled_by_the_messages_it_cites(house: Night) -> None:
    chat = await house.chat()
    mine = await house.says(chat, "I moved to Lyon")
    theirs = await house.answers(chat, "Lyon has two rivers")
    await house.says(chat, "A forwarded text", foreign_text=True)
    house.script = lambda _request: answer(
        ("Ana lives in Lyon", ["m1", "m2", "m99"]),
        ("Lyon has rivers", ["m2"]),
        ("Something was forwarded", ["m1", "m3"]),
        ("Out of thin air", ["m77"]),
    )
    await at(house, "2026-03-08T23:59:30")
    rows = {row.origin: row for row in (await house.lines("2026-03-08")).values()}
    assert set(rows) == {Origin.PERSON, Origin.ASSISTANT, Origin.MIXED, Origin.UNSOURCED}
    assert rows[Origin.PERSON].sources == (mine.id, theirs.id)
    assert (rows[Origin.PERSON].author, rows[Origin.PERSON].local_date) == ("summary", "2026-03-08")
    assert rows[Origin.UNSOURCED].sources == ()


@pytest.mark.rule("WD-45")
async def test_long_talk_is_summarised_in_pieces_and_no_message_is_left_out(house: Night) -> None:
    chat = await house.chat()
    for n in range(60):
        await house.says(chat, f"Message {'alpha beta gamma delta '[n % 4 :]}" + "word " * 380 + f"end{n}")
    await house.says(chat, "開始" + "あ" * 5_000 + "終わり")
    await at(house, "2026-03-08T23:59:30")
    assert house.calls > 1
    seen = [words for request in house.model.requests for _, words in shown(request)]
    assert len(seen) == 61
    assert all(any(f"end{n}" in words for words in seen) for n in range(60))
    last = house.model.requests[-1].messages[-1].text
    assert "開始" in last
    assert "終わり" in last
    assert "あ" * 2_000 not in last


@pytest.mark.rule("WD-45", "WD-79")
@pytest.mark.case("SC-21")
@pytest.mark.parametrize(
    "ending", [End(Finish.LENGTH), End(Finish.FILTER), End(Finish.TOOL_CALLS), Fail(ContextOverflow("too long")), Fail(NoRoom("all thought"))]
)
async def test_an_answer_that_did_not_end_normally_is_tried_in_smaller_pieces_and_never_written(house: Night, ending: End | Fail) -> None:
    """N4 for summaries: what was cut off reads like a memory, and is none."""

    def script(request: ModelRequest) -> Reply:
        return [Say(answer(("Cut off in the middle", ["m1"]))), ending] if len(shown(request)) > 1 else each_said(request)

    house.script = script
    chat = await house.chat()
    for n in ("one", "two", "three", "four"):
        await house.says(chat, n)
    await at(house, "2026-03-08T23:59:30")
    assert house.bullets("2026-03-08") == [f"Said: {n}" for n in ("one", "two", "three", "four")]


@pytest.mark.rule("WD-45", "WD-60", "WD-100")
async def test_after_the_last_attempt_the_extract_stands_as_fallback_until_a_later_one_works(night: Night) -> None:
    broken = True
    night.script = lambda request: "I am sorry, I cannot." if broken else each_said(request)
    chat = await night.chat()
    await night.says(chat, "The boiler is repaired on Monday")
    night.clock.now = utc("2026-03-08T23:59:30")
    await night.look()
    for attempt in range(8):
        await night.run("daily-summary")
        row = await night.job("daily-summary", "root:2026-03-08")
        assert (row.attempts, row.error_class) == (attempt + 1, "AnswerUnusable")
        assert bool(night.bullets("2026-03-08")) == (attempt == 7)
        night.clock.advance(hours=1)
    assert row.state == "parked"
    assert night.dreams == []
    assert night.bullets("2026-03-08") == ["Ana: The boiler is repaired on Monday"]
    assert [each.fallback for each in await night.covered()] == [True]
    once = night.day("2026-03-08")
    night.clock.advance(hours=24)
    await night.run("daily-summary")
    assert night.day("2026-03-08") == once
    broken = False
    night.clock.advance(hours=24)
    await night.run()
    assert night.bullets("2026-03-08") == ["Said: The boiler is repaired on Monday"]
    assert [(each.fallback, each.stale) for each in await night.covered()] == [(False, False)]
    assert [row.origin for row in (await night.lines("2026-03-08")).values()] == [Origin.PERSON]
    assert (await night.job("daily-summary", "root:2026-03-08")).state == "done"


@pytest.mark.rule("WD-45", "WD-60", "WD-100")
async def test_a_wrong_key_leaves_the_extract_at_once_and_asks_the_provider_only_once(house: Night) -> None:
    house.script = lambda _request: Fail(ModelMisconfigured("no key"))
    for channel in ("telegram", "discord", "web"):
        await house.says(await house.chat(channel), f"On {channel}")
    await at(house, "2026-03-08T23:59:30")
    assert house.calls == 1
    assert (await house.job("daily-summary", "root:2026-03-08")).state == "parked"
    assert house.bullets("2026-03-08") == ["Ana: On telegram", "Ana: On discord", "Ana: On web"]


@pytest.mark.rule("WD-60")
async def test_a_retry_pays_for_no_piece_again_and_one_chat_holds_up_no_other(house: Night) -> None:
    failing = {"discord"}

    def script(request: ModelRequest) -> Reply:
        chat = request.messages[-1].text.split("\n", 1)[0].removeprefix("Conversation: ")
        return Fail(ModelBusy("later", retry_after_s=30)) if chat in failing else each_said(request)

    house.script = script
    for channel in ("telegram", "discord", "web"):
        await house.says(await house.chat(channel), f"On {channel}")
    await at(house, "2026-03-08T23:59:30")
    assert house.bullets("2026-03-08") == ["Said: On telegram", "Said: On web"]
    row = await house.job("daily-summary", "root:2026-03-08")
    assert (row.state, row.attempts, row.error_class) == ("waiting", 1, "ModelBusy")
    failing.clear()
    house.clock.advance(minutes=2)
    await house.run()
    assert house.bullets("2026-03-08") == ["Said: On telegram", "Said: On web", "Said: On discord"]
    assert house.calls == 4


@pytest.mark.rule("WD-45")
async def test_the_demo_model_is_not_asked_and_the_extract_stands_for_good(house: Night, tmp_path: Path) -> None:
    demo = Night(house.db, tmp_path / "demo", house.clock, model={"provider": "demo"})
    chat = await demo.chat()
    said = await demo.says(chat, "A quiet day")
    await demo.leaves(chat, 1, said.seq)
    await demo.run()
    assert demo.calls == 0
    assert demo.bullets("2026-03-08") == ["Ana: A quiet day"]
    assert [row.fallback for row in await demo.covered()] == [False]
    result = (await demo.job("trim-summary", f"{chat}:{said.seq}")).result
    assert result is not None
    assert result["model"] == "demo"
    await demo.close()


@pytest.mark.rule("WD-87", "WD-99")
async def test_background_work_waits_for_tomorrow_when_its_tokens_are_used_up(house: Night, tmp_path: Path) -> None:
    poor = Night(house.db, tmp_path / "poor", house.clock, background={"daily_token_budget": 1000})
    spent = {"purpose": "dream", "outcome": "ok", "input_tokens": 900, "output_tokens": 100, "at": house.clock()}
    await house.db.write(lambda c: c.execute(sa.insert(model_calls), [spent, {**spent, "purpose": "reply"}]))
    await poor.says(await poor.chat(), "Words")
    await at(poor, "2026-03-08T23:59:30")
    row = await poor.job("daily-summary", "root:2026-03-08")
    assert (poor.calls, row.state, row.error_class) == (0, "waiting", "BudgetSpent")
    poor.clock.advance(minutes=2)
    await poor.run("daily-summary")
    assert poor.bullets("2026-03-08") == ["Said: Words"]
    await poor.close()


# -- turns that left the context ---------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-42", "WD-43", "WD-47", "WD-50")
async def test_a_trim_leaves_an_extract_at_once_and_one_summary_serves_context_and_day(night: Night) -> None:
    """A5 without the kill: replies have the extract, later the block; one section in the file, nothing twice."""
    chat = await night.chat()
    mine = await night.says(chat, "The keys are under the pot")
    last = await night.answers(chat, "Noted")
    await night.leaves(chat, 1, last.seq)
    text = await night.db.read(lambda c: blocks.standing(c, chat).text)
    assert text.startswith(blocks.HEAD)
    assert "- Ana: The keys are under the pot" in text
    assert night.calls == 0
    await night.run()
    text = await night.db.read(lambda c: blocks.standing(c, chat).text)
    assert text == f"{blocks.HEAD}\n- Said: The keys are under the pot\n- Said: Noted"
    assert night.day("2026-03-08").count("## Trimmed Context") == 1
    assert night.bullets("2026-03-08") == ["Said: The keys are under the pot", "Said: Noted"]
    calls = night.calls
    await at(night, "2026-03-08T23:59:30")
    assert night.calls == calls
    assert night.day("2026-03-08").count("\n## ") == 1
    stored = await night.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=50))
    assert [message.id for message in stored] == [mine.id, last.id]


@pytest.mark.rule("WD-43", "WD-51")
async def test_a_block_is_never_anybodys_words_and_never_summarised(house: Night) -> None:
    """N26."""
    chat = await house.chat()
    said = await house.says(chat, "One")
    await house.leaves(chat, 1, said.seq)
    await house.run()
    await house.says(chat, "Two")
    await at(house, "2026-03-08T23:59:30")
    assert [words for request in house.model.requests for _, words in shown(request)] == ["One", "Two"]


@pytest.mark.rule("WD-50")
async def test_a_trim_of_a_covered_range_makes_only_the_block(house: Night) -> None:
    chat = await house.chat()
    first = await house.says(chat, "Before the night")
    await at(house, "2026-03-08T23:59:30")
    house.clock.now = utc("2026-03-09T10:00")
    last = await house.says(chat, "After the night")
    before = house.day("2026-03-08")
    await house.leaves(chat, first.seq, last.seq)
    await house.run()
    assert house.day("2026-03-08") == before
    assert house.bullets("2026-03-09") == ["Said: After the night"]
    text = await house.db.read(lambda c: blocks.standing(c, chat).text)
    assert text.split("\n")[1:] == ["- Said: Before the night", "- Said: After the night"]
    assert set((await house.times_covered()).values()) == {1}


@pytest.mark.rule("WD-42", "WD-50")
async def test_a_trim_over_midnight_goes_to_both_days(house: Night) -> None:
    chat = await house.chat()
    first = await house.says(chat, "On Sunday", at=utc("2026-03-08T23:50"))
    last = await house.says(chat, "On Monday", at=utc("2026-03-09T00:10"))
    await house.leaves(chat, first.seq, last.seq)
    await house.run()
    assert (house.bullets("2026-03-08"), house.bullets("2026-03-09")) == (["Said: On Sunday"], ["Said: On Monday"])
    assert "### 23:50 telegram" in house.day("2026-03-08")


@pytest.mark.rule("WD-50")
async def test_two_jobs_never_take_the_same_messages(night: Night) -> None:
    """The trim is waiting on a busy model when the night comes."""
    busy = True
    night.script = lambda request: Fail(ModelBusy("busy")) if busy else each_said(request)
    chat = await night.chat()
    first = await night.says(chat, "Trimmed")
    await night.leaves(chat, 1, first.seq)
    await night.run()
    await night.says(chat, "Not trimmed")
    busy = False
    night.clock.now = utc("2026-03-08T20:00:30")
    await at(night, "2026-03-08T20:00:40")
    night.clock.now = utc("2026-03-08T23:59:30")
    await night.look()
    await night.run("daily-summary")
    assert night.bullets("2026-03-08") == ["Said: Not trimmed"]
    await night.run()
    assert sorted(night.bullets("2026-03-08")) == ["Said: Not trimmed", "Said: Trimmed"]
    assert set((await night.times_covered()).values()) == {1}


@pytest.mark.rule("WD-46")
async def test_blocks_above_their_room_are_merged_for_the_context_only(house: Night) -> None:
    long = "The roof was looked at and the second beam needs new wood before the winter comes " * 3
    short = answer(("Everything in short", []))
    house.script = lambda request: short if "You shorten" in request.messages[0].text else each_said(request)
    chat = await house.chat()
    first = 1
    for turn in ("spring", "summer", "autumn"):
        for n in range(12):
            last = await house.says(chat, f"{long} {turn} {'abcdefghijkl'[n]}")
        await house.leaves(chat, first, last.seq)
        await house.run()
        first = last.seq + 1
    text = await house.db.read(lambda c: blocks.standing(c, chat).text)
    assert "Everything in short" in text
    assert len(house.bullets("2026-03-08")) == 36
    assert "Everything in short" not in house.day("2026-03-08")


@pytest.mark.rule("WD-43", "WD-46")
async def test_what_stands_in_the_context_never_passes_its_room(house: Night) -> None:
    chat = await house.chat()
    for n in range(12):
        for _ in range(10):
            said = await house.says(chat, "話" * 200)
        await house.leaves(chat, said.seq - 9, said.seq)
        text = await house.db.read(lambda c: blocks.standing(c, chat).text)
        assert blocks.tokens.count(text) <= blocks.TOKENS_MAX * 1.02, n


async def test_a_cleared_context_has_no_block_and_a_late_summary_brings_none_back(house: Night) -> None:
    chat = await house.chat()
    said = await house.says(chat, "To be cleared")
    await house.leaves(chat, 1, said.seq)
    await house.db.write(lambda c: blocks.drop(c, chat))
    await house.run()
    assert await house.db.read(lambda c: blocks.standing(c, chat).text) == ""
    assert house.bullets("2026-03-08") == ["Said: To be cleared"]


async def test_talk_without_a_scope_leaves_nothing_behind(house: Night) -> None:
    chat = await house.chat("web", kind="challenge")
    said = await house.says(chat, "A try", scope="")
    await house.leaves(chat, 1, said.seq, scope="")
    await house.leaves(chat, 1, said.seq, scope="root")
    assert await house.run() == []
    assert await house.db.read(lambda c: blocks.standing(c, chat).text) == ""


@pytest.mark.rule("WD-94", "WD-96")
async def test_what_a_model_refused_gets_a_durable_summary_of_its_own_and_stays_in_the_log(house: Night) -> None:
    """A12, N16: no model call is needed for the step itself, and no row of the log changes."""
    chat = await house.chat()
    for n in ("one", "two", "three"):
        said = await house.says(chat, n)
    log = await house.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=50))
    await house.leaves(chat, 1, said.seq, overflow=True)
    assert house.calls == 0
    assert await house.job_keys("overflow-summary") == [f"{chat}:{said.seq}"]
    await house.run()
    assert "## Context Overflow Recovery" in house.day("2026-03-08")
    assert await house.db.read(lambda c: conversations.page(c, chat, before=2**62, limit=50)) == log


@pytest.mark.rule("WD-94")
@pytest.mark.parametrize(("left_out", "last"), [(0, None), (1, "q1b"), (2, "a1"), (3, "q2"), (4, "a2"), (9, "a2")])
async def test_the_messages_that_a_prompt_left_out_are_found_in_the_log(house: Night, left_out: int, last: str | None) -> None:
    """Several messages of one side count as one, as the prompt joins them."""
    chat = await house.chat()
    found: dict[str, conversations.Message] = {}
    for name, turn in (("q1a", "t1"), ("q1b", "t1"), ("a1", "t1"), ("q2", "t2"), ("a2", "t2")):
        found[name] = await house.says(chat, name, turn_id=turn, role="assistant" if name[0] == "a" else "user")
    edge = trimming.edge_of_left_out(list(found.values()), left_out)
    assert edge == (found[last].seq if last else None)


@pytest.mark.rule("WD-40", "WD-42")
async def test_compact_keeps_the_last_two_turns(house: Night) -> None:
    chat = await house.chat()
    sizes: list[trimming.TurnSize] = []
    for n in range(5):
        said = await house.says(chat, f"turn {'abcde'[n]}", turn_id=f"t{n}")
        sizes.append(trimming.TurnSize(last_seq=said.seq, tokens=5))

    def work(c: sa.Connection) -> int:
        found = conversations.conversation(c, chat)
        assert found is not None
        return trimming.compact(c, found, "root", sizes, house.clock())

    assert await house.db.write(work) == 3
    window = await house.db.read(lambda c: conversations.window(c, chat, sizes[2].last_seq))
    assert [message.text for message in window] == ["turn d", "turn e"]
    assert await house.job_keys("trim-summary") == [f"{chat}:{sizes[2].last_seq}"]


# -- edited and deleted messages ---------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-59")
async def test_lines_of_edited_and_deleted_messages_are_made_anew_and_peoples_lines_are_listed(night: Night) -> None:
    chat = await night.chat()
    kept = await night.says(chat, "We meet at the station")
    edited = await night.says(chat, "Bring the blue bag")
    deleted = await night.says(chat, "I am ill")
    await at(night, "2026-03-08T23:59:30")
    night.workspace.append(ROOT, "memory/2026-03-08.md", "- A line of mine")
    night.clock.now = utc("2026-03-09T09:00")

    def change(c: sa.Connection) -> None:
        message_changes.correct(c, edited, "Bring the red bag", night.clock())
        message_changes.forget(c, deleted.id)
        for message in (edited, deleted):
            trimming.changed(c, chat, message.seq, message.seq, night.clock())

    await night.db.write(change)
    await at(night, "2026-03-09T23:59:30")
    assert night.bullets("2026-03-08") == ["Said: We meet at the station", "Said: Bring the red bag", "A line of mine"]
    assert "ill" not in night.model.requests[-1].messages[-1].text
    assert kept.text not in night.model.requests[-1].messages[-1].text
    result = (await night.job("daily-summary", "root:2026-03-09")).result
    assert result is not None
    assert result["restated"] == 1
    assert len(result["review"]["2026-03-08"]) == 1
    assert not any(row.stale for row in await night.covered())
    calls = night.calls
    await at(night, "2026-03-10T23:59:30")
    assert night.calls == calls


@pytest.mark.rule("WD-59")
async def test_a_deleted_message_leaves_the_context_with_its_words_at_once(house: Night) -> None:
    chat = await house.chat()
    kept = await house.says(chat, "Kept")
    gone = await house.says(chat, "To be deleted")
    await house.leaves(chat, kept.seq, gone.seq)
    await house.run()

    def delete(c: sa.Connection) -> None:
        message_changes.forget(c, gone.id)
        trimming.changed(c, chat, gone.seq, gone.seq, house.clock())

    await house.db.write(delete)
    assert await house.db.read(lambda c: blocks.standing(c, chat).text) == f"{blocks.HEAD}\n- Ana: Kept"
    await house.run()
    assert await house.db.read(lambda c: blocks.standing(c, chat).text) == f"{blocks.HEAD}\n- Said: Kept"


@pytest.mark.rule("WD-59")
async def test_a_message_edited_while_it_is_being_summarised_is_stale_from_the_start(house: Night) -> None:
    chat = await house.chat()
    said = await house.says(chat, "At noon")

    def script(request: ModelRequest) -> Reply:
        if not edited:
            edited.append(1)
            house.clock.advance(seconds=5)
            house.db.write_now(lambda c: message_changes.correct(c, said, "At midnight", house.clock()))
        return each_said(request)

    edited: list[int] = []
    house.script = script
    await at(house, "2026-03-08T23:58:50")
    await at(house, "2026-03-08T23:59:10")
    assert [row.stale for row in await house.covered()] == [True]
    await at(house, "2026-03-09T23:59:30")
    assert house.bullets("2026-03-08") == ["Said: At midnight"]


def house_job(day: str) -> trimming.Job:
    return trimming.Job(kind="daily-summary", key=f"root:{day}", scope="root", local_date=day, payload={"date": day, "zone": "UTC"})
