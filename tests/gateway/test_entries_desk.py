"""Entries as people look after them: ranges, switches, approval, settings of a chat, templates (RS-81 to RS-95)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agent.errors import ModelBusy
from agent.llm.scripted import Fail, Reply
from gateway.entries import settings as entry_settings
from gateway.entries.desk import Changed, NoSuchEntry, NoSuchTemplate, NotPossible, RangeRefused, SettingRefused
from gateway.entries.live import HEAD
from memory import conversations
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State
from tests.conftest import FakeClock
from tests.gateway.entry_house import EntryHouse, living
from tests.gateway.nights import OWNER
from tests.gateway.rows_house import said, utc_now_at

BOB = "p-bobbobbobb"


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(database, tmp_path, clock) as made:
        yield made


@pytest.fixture
async def lite(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[EntryHouse]:
    async with living(sqlite, tmp_path, clock) as made:
        yield made


@pytest.mark.rule("RS-82")
@pytest.mark.parametrize(
    ("asked", "fault"),
    [
        ({"last": 4}, "too_few"),
        ({"last": 501}, "too_many"),
        ({"last": 5}, ""),
        ({"last": 500}, ""),
        ({"first": 9, "to": 8}, "backwards"),
        ({"first": 1, "to": 501}, "too_many"),
        ({"first": 1, "to": 500}, ""),
        ({"first": 500, "to": 502}, "no_such_messages"),
        ({"first": 0, "to": 3}, "no_such_messages"),
        ({"first": 3, "to": 3}, ""),
    ],
)
async def test_four_and_five_hundred_and_one_are_refused(lite: EntryHouse, asked: dict[str, int], fault: str) -> None:
    chat = await lite.made()

    def talk(c: Any) -> None:
        for n in range(501):
            conversations.add_message(
                c, now=lite.clock(), conversation_id=chat, role="user", origin="person", scope="root", author_person_id=OWNER, text=f"word{n}"
            )  # fmt: skip

    await lite.db.write(talk)
    if fault:
        with pytest.raises(RangeRefused) as refused:
            await lite.desk.generate(chat, OWNER, **asked)
        assert refused.value.key == fault
        assert refused.value.values == {"least": 5, "most": 500, "last": 501}
        assert await lite.job_keys("chat-entries") == []
    else:
        await lite.desk.generate(chat, OWNER, **asked)
        assert len(await lite.job_keys("chat-entries")) == 1


@pytest.mark.rule("RS-82")
async def test_an_entry_that_could_not_be_made_is_told_until_the_next_is(sqlite: Database, tmp_path: Path, clock: FakeClock) -> None:
    clock.now = utc_now_at("2026-03-09T12:00")
    formless = True
    house = EntryHouse(sqlite, tmp_path, clock, lambda request: "They talked about tea." if formless else said(request))
    await house.person()
    chat = await house.made()
    await house.talk(chat, 12)
    assert not (await house.listing(chat)).failed
    await house.desk.generate(chat, OWNER, last=5)
    await house.make()
    found = await house.listing(chat)
    assert (found.failed, found.making, found.entries) == (True, 0, ())
    formless = False
    await house.desk.generate(chat, OWNER, last=6)
    await house.make()
    assert not (await house.listing(chat)).failed
    await house.close()


@pytest.mark.rule("RS-82", "RS-83")
async def test_generate_asks_the_helper_once_and_write_never(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 12)
    await house.desk.generate(chat, OWNER, last=5)
    await house.desk.generate(chat, OWNER, last=5)
    assert (await house.listing(chat)).making == 1
    assert await house.make() == ["asked"]
    assert house.calls == 1
    empty = await house.desk.write(chat, OWNER, title="", text="", first=2, to=4)
    assert house.calls == 1
    found = await house.listing(chat)
    assert found.making == 0
    assert [(each.id == empty.id, each.origin, each.first, each.last, each.messages) for each in found.entries] == [
        (True, "written", 2, 4, 3),
        (False, "asked", 8, 12, 5),
    ]
    made = found.entries[1]
    assert (made.text, made.enabled, made.tokens > 0) == (" / ".join(f"word{n}" for n in range(8, 13)), True, True)
    assert made.said_from is not None
    assert found.messages == 12


@pytest.mark.rule("RS-83", "RS-195")
async def test_an_entry_is_edited_toggled_and_deleted_and_a_late_edit_is_refused(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 6)
    number = await house.write(chat, 1, 3)
    seen = (await house.listing(chat)).entries[0]
    house.clock.advance(seconds=1)
    edited = await house.desk.change(chat, OWNER, number, title="The  first\nday", text="They met.", based_on=seen.updated_at.isoformat())
    assert (edited.title, edited.text, edited.hand_edited) == ("The first day", "They met.", True)
    with pytest.raises(Changed):
        await house.desk.change(chat, OWNER, number, title="x", text="x", based_on=seen.updated_at.isoformat())
    assert await house.desk.switch(chat, OWNER, [number], enabled=False) == 1
    assert not (await house.listing(chat)).entries[0].enabled
    assert await house.desk.delete(chat, OWNER, [number]) == 1
    assert (await house.listing(chat)).entries == ()
    with pytest.raises(NoSuchEntry):
        await house.desk.change(chat, OWNER, number, title="x", text="x")


@pytest.mark.rule("RS-84")
async def test_three_of_ten_are_switched_in_one_request_and_all_in_another(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 20)
    made = [await house.write(chat, n, n + 1) for n in range(1, 20, 2)]
    other = await house.made()
    await house.talk(other, 4)
    strange = await house.write(other, 1, 2)
    assert await house.desk.switch(chat, OWNER, [*made[2:5], strange], enabled=False) == 3
    assert [each.id for each in (await house.listing(chat)).entries if not each.enabled] == made[2:5]
    assert (await house.listing(other)).entries[0].enabled
    assert await house.desk.switch(chat, OWNER, None, enabled=False) == 7
    assert await house.desk.switch(chat, OWNER, None, enabled=True) == 10


@pytest.mark.rule("RS-85")
async def test_with_review_on_an_entry_counts_only_after_the_yes_and_a_second_click_does_nothing(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 12)
    await house.configure(chat, review=True, hide=True, tail=0)
    for last in (6, 5):
        await house.desk.generate(chat, OWNER, last=last)
        await house.make()
    first, second = (each.id for each in (await house.listing(chat)).entries)
    seen = await house.listing(chat)
    assert (seen.waiting, seen.uncovered) == (2, 12)
    assert await house.words_sent(chat) == list(range(1, 13)), "nothing is hidden"
    assert HEAD not in await house.stands(chat)
    assert await house.desk.switch(chat, OWNER, [first], enabled=True) == 0, "a switch is no yes"
    assert await house.desk.decide(chat, OWNER, first, accept=True)
    assert not await house.desk.decide(chat, OWNER, first, accept=False)
    assert await house.desk.decide(chat, OWNER, second, accept=False)
    assert not await house.desk.decide(chat, OWNER, second, accept=True)
    assert [each.id for each in (await house.listing(chat)).entries] == [first]
    assert await house.words_sent(chat) == list(range(1, 7))
    assert "word7 / word8" in await house.stands(chat)


@pytest.mark.rule("RS-185", "RS-188")
async def test_entries_and_messages_for_others_are_neither_seen_nor_summarised(house: EntryHouse) -> None:
    chat = await house.made()
    await house.talk(chat, 6)
    await house.says(chat, "whisper for Bob", audience_people=[BOB])
    await house.talk(chat, 4, first=7)
    secret = NewSummary(conversation_id=chat, kind=Kind.ENTRY, text="Bob's secret", sources=[1], audience=f"p:{BOB}", origin="asked")
    number = await house.db.write(lambda c: summary_rows.add(c, secret, house.clock()))
    await house.desk.generate(chat, OWNER, last=20)
    await house.make()
    assert all("whisper" not in message.text for request in house.model.requests for message in request.messages)
    assert [each.id for each in (await house.listing(chat)).entries if each.id == number] == []
    assert [each.id for each in (await house.listing(chat, BOB)).entries if each.id == number] == [number]
    with pytest.raises(NoSuchEntry):
        await house.desk.change(chat, OWNER, number, title="x", text="x")
    assert await house.desk.switch(chat, OWNER, [number], enabled=False) == 0
    assert await house.desk.delete(chat, OWNER, [number]) == 0
    await house.configure(chat, hide=True, tail=0)
    assert "secret" not in await house.prompt(chat)


@pytest.mark.rule("RS-12")
@pytest.mark.parametrize("record", ["none", "recall_only"])
async def test_where_no_summary_may_be_stored_none_is_asked_for_or_written(lite: EntryHouse, record: str) -> None:
    chat = await lite.made(record=record)
    await lite.talk(chat, 12)
    for ask in (lite.desk.generate(chat, OWNER), lite.desk.backfill(chat), lite.desk.write(chat, OWNER, title="", text="x", last=5)):
        with pytest.raises(NotPossible, match="record_rule"):
            await ask
    await lite.configure(chat, automatic=True, every=1)
    await lite.turn(chat, "one")
    await lite.turn(chat, "two")
    assert await lite.job_keys("chat-entries") == []
    assert not (await lite.listing(chat)).allowed


@pytest.mark.rule("RS-12")
async def test_the_rule_is_looked_at_again_before_anything_is_stored(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 12)
    await lite.desk.generate(chat, OWNER)
    await lite.change(chat, record="none")
    assert await lite.make() == ["asked"]
    assert (lite.calls, (await lite.listing(chat)).entries) == (0, ())


@pytest.mark.rule("RS-60", "RS-89")
async def test_without_a_model_that_can_write_the_person_is_told(lite: EntryHouse) -> None:
    await lite.set(model={"provider": "demo"})
    chat = await lite.made()
    await lite.talk(chat, 12)
    with pytest.raises(NotPossible, match="no_model"):
        await lite.desk.generate(chat, OWNER)
    assert not (await lite.listing(chat)).has_model


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("RS-82", "RS-86", "RS-89", "RS-90")
@pytest.mark.parametrize(
    ("name", "good", "bad"),
    [
        ("last_n", (5, 500), (4, 501)),
        ("every", (1, 200), (0, 201)),
        ("max_output", (1, 32_768), (0, 32_769)),
        ("tail", (0, 5000), (-1,)),
        ("hide", (True,), (1, "yes")),
        ("automatic", (True,), ("on",)),
        ("review", (True,), (0,)),
        ("collapse", (True,), (1,)),
        ("colour", (), ("red",)),
        ("prompt_override", ("Tell it briefly.",), ("x" * 8_001, 5)),
    ],
)
async def test_a_value_outside_its_bounds_is_refused_and_nothing_changes(lite: EntryHouse, name: str, good: tuple[Any], bad: tuple[Any]) -> None:
    chat = await lite.made(settings={"days.tail": 7, "window.jump": {"before": 1, "edge": 2}})
    for value in good:
        assert (await lite.configure(chat, **{name: value}))[name] == value
    before = (await lite.conversation(chat)).settings
    for value in bad:
        with pytest.raises(SettingRefused):
            await lite.configure(chat, **{name: value})
    assert (await lite.conversation(chat)).settings == before
    assert before["days.tail"] == 7
    assert before["window.jump"] == {"before": 1, "edge": 2}


@pytest.mark.rule("RS-82")
async def test_a_value_that_is_taken_back_is_the_gateways_again(lite: EntryHouse) -> None:
    await lite.set(entries={"tail": 4, "last_n": 60})
    chat = await lite.made()
    assert (await lite.configure(chat, tail=2, last_n=9))["tail"] == 2
    again = await lite.configure(chat, tail=None)
    assert (again["tail"], again["last_n"]) == (4, 9)


@pytest.mark.rule("RS-88")
async def test_templates_are_shared_copied_changed_and_deleted_and_only_chats_without_their_own_words_follow(house: EntryHouse) -> None:
    shared = await house.desk.add_template("Terse", "One line.")
    copy = await house.desk.copy_template(shared.id)
    assert (copy.name, copy.text, copy.builtin) == ("Terse 2", "One line.", False)
    assert [each.name for each in await house.desk.templates()] == ["", "Terse", "Terse 2"]
    follows, stubborn = await house.made(), await house.made()
    for chat in (follows, stubborn):
        await house.talk(chat, 6)
        await house.configure(chat, template_id=shared.id)
    assert (await house.configure(stubborn, prompt_override="As a poem."))["prompt_override"] == "As a poem."
    await house.desk.change_template(shared.id, text="Two lines.")

    async def instruction(chat: str) -> str:
        await house.desk.generate(chat, OWNER, last=5)
        await house.make()
        return house.model.requests[-1].messages[0].text

    assert (await instruction(follows)).startswith("Two lines.")
    assert (await instruction(stubborn)).startswith("As a poem.")
    await house.desk.delete_template(shared.id)
    assert "Two lines." not in await instruction(follows)
    for change in (house.desk.change_template(0, text="x"), house.desk.delete_template(0), house.desk.copy_template(99)):
        with pytest.raises(NoSuchTemplate):
            await change
    with pytest.raises(SettingRefused):
        await house.desk.add_template(" ", "x")
    with pytest.raises(NoSuchTemplate):
        await house.configure(follows, template_id=shared.id)


@pytest.mark.rule("RS-89")
async def test_the_model_is_the_named_one_the_helper_the_chats_the_stand_in_and_the_most_output_reaches_it(lite: EntryHouse) -> None:
    account = lite.config.model.model_dump()
    others = {name: {**account, "name": name} for name in ("named", "helper", "own", "standin")}
    chat = await lite.made(character="mira")
    await lite.talk(chat, 6)
    settings: dict[str, Any] = {
        "models": others, "entries": {"model": "named"}, "helper_model": "helper", "characters": {"mira": {"model": "own"}},
        "fallback_model": "standin", "model": {"provider": "demo"},
    }  # fmt: skip
    without: dict[str, Any] = {"entries": {}, "characters": {"mira": {}}}
    found: list[str] = []
    for gone in ("", "entries", "helper_model", "characters", "fallback_model"):
        if gone:
            settings[gone] = without.get(gone, "")
        await lite.set(**settings)
        found.append(lite.summarist.entry_account(await lite.conversation(chat)))
    assert found == ["named", "helper", "own", "standin", ""]
    await lite.set(model=account, characters={"mira": {}}, entries={"max_output": 777})
    await lite.desk.generate(chat, OWNER, last=5)
    await lite.make()
    assert [request.max_output_tokens for request in lite.model.requests] == [777]
    await lite.configure(chat, max_output=99)
    await lite.desk.generate(chat, OWNER, last=6)
    await lite.make()
    assert lite.model.requests[-1].max_output_tokens == 99


@pytest.mark.rule("RS-86")
async def test_entries_that_are_merged_or_withheld_are_not_switched_on_with_all(lite: EntryHouse) -> None:
    chat = await lite.made()
    await lite.talk(chat, 8)
    made = [await lite.write(chat, 1, 4), await lite.write(chat, 5, 8)]
    numbers = list((await lite.numbers(chat)).values())
    whole = NewSummary(conversation_id=chat, kind=Kind.ENTRY, text="both", sources=numbers, inputs=made, origin="automatic")
    merged = await lite.db.write(lambda c: summary_rows.add(c, whole, lite.clock()))
    assert [each.replaced for each in (await lite.listing(chat)).entries if each.id in made] == [True, True]
    assert await lite.desk.switch(chat, OWNER, None, enabled=True) == 0
    assert await lite.desk.switch(chat, OWNER, made[:1], enabled=True) == 1, "but by itself it can be"
    assert await lite.desk.delete(chat, OWNER, [merged]) == 1
    states = {each.id: each.state for each in await lite.rows(chat, Kind.ENTRY, states=tuple(State))}
    assert states == {made[0]: State.ACTIVE, made[1]: State.INACTIVE}
    assert [each.replaced for each in (await lite.listing(chat)).entries] == [False, False]


@pytest.mark.rule("RS-88")
async def test_the_number_of_a_deleted_template_stands_in_no_chat_and_one_that_is_unknown_reads_as_the_built_in_one(house: EntryHouse) -> None:
    gone, kept = await house.desk.add_template("Terse", "One line."), await house.desk.add_template("Long", "Many lines.")
    chats = [await house.made() for _ in range(4)]
    for chat, chosen in zip(chats, (gone, gone, kept, kept), strict=True):
        await house.configure(chat, template_id=chosen.id)
    await house.change(chats[3], settings={"entries.template_id": 4711, "entries.tail": 3})
    await house.desk.delete_template(gone.id)
    assert ["entries.template_id" in (await house.conversation(chat)).settings for chat in chats] == [False, False, True, True]
    assert [(await house.listing(chat)).settings.template_id for chat in (chats[0], *chats[2:])] == [None, kept.id, None]
    assert (await house.configure(chats[3], tail=4))["template_id"] is None
    await house.talk(chats[3], 6)
    await house.desk.generate(chats[3], OWNER, last=5)
    await house.make()
    assert house.model.requests[-1].messages[0].text.startswith(entry_settings.builtin()[:60])


@pytest.mark.rule("RS-86", "RS-192")
async def test_what_nobody_asked_for_and_could_not_be_made_is_told(house: EntryHouse) -> None:
    answers: list[Reply] = [[Fail(ModelBusy("down"))]]
    house.script = lambda request: answers.pop() if answers else "They talked about tea."
    chat = await house.made()
    await house.configure(chat, automatic=True, every=2)
    await house.turn(chat, "one")
    await house.turn(chat, "two")
    assert (await house.listing(chat)).stuck == ()
    await house.make()
    assert [(each.what, each.state, each.reason) for each in (await house.listing(chat)).stuck] == [("automatic", "waiting", "ModelBusy")]
    house.clock.advance(hours=1)
    await house.make()
    assert [(each.what, each.state, each.reason) for each in (await house.listing(chat)).stuck] == [("automatic", "failed", "InvalidOutput")]
    house.script = said
    house.clock.advance(hours=25)
    await house.make()
    found = await house.listing(chat)
    assert (found.stuck, len(found.entries)) == ((), 1)
