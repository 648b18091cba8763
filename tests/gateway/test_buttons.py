"""Buttons: every question that can be typed an answer to can be pressed one; once, in time, by whom it was put to, where it was (AT-31, CH-159)."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from channels.message import Action, EventKind, from_json
from channels.port import Accepted, OutboundPart
from gateway import buttons
from gateway.buttons import Choice, Question
from gateway.delivery import outbox_store
from gateway.language import LANGUAGES, say
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary, State
from memory.saved.rows import ListKind
from memory.saved_schema import memories
from memory.schema import outbox, people
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id
from tests.gateway.nights import utc

DATA_MAX = 64  # bytes that Telegram takes


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    clock.now = utc("2026-03-08T20:00")
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


@dataclass(frozen=True, slots=True)
class Heard:
    """What became of a press: what the platform is told, and what the chat is."""

    accepted: Accepted
    answer: str = ""


async def shown(house: CommandHouse) -> list[list[Action]]:
    """The buttons below the newest message that has any, row by row."""
    stored = await house.db.read(lambda c: c.execute(sa.select(outbox.c.part).order_by(outbox.c.id.desc())).scalars().all())
    parts = [from_json(OutboundPart, part) for part in stored]
    return [list(row) for row in next((part.actions for part in parts if part.actions), ())]


async def labels(house: CommandHouse) -> list[list[str]]:
    return [[action.label for action in row] for row in await shown(house)]


async def data_of(house: CommandHouse, label: str) -> str:
    return next(action.data for row in await shown(house) for action in row if action.label == label)


async def press(house: CommandHouse, data: str, **who: Any) -> Heard:
    event = house.event("", kind=EventKind.ACTION, hint=buttons.BUTTON, target=data, platform_message_id="shown-1", **who)
    received = await house.receive(event)
    if received.command is None:
        return Heard(received.accepted)
    return Heard(received.accepted, await house.carried_out(received.command))


# -- every question -----------------------------------------------------------------------------------------------------------


async def chatted(house: CommandHouse, **who: Any) -> Conversation:
    for at in range(5):
        await house.talk(f"Question {at}", f"Answer {at}", **who)
    chat = await house.chat_of(**{key: value for key, value in who.items() if key in ("by", "group")})
    await house.talk_index.follow(chat.id)
    return chat


async def passages(house: CommandHouse) -> int:
    return (await house.desks.recall.overview(await house.chat_of(), person_id("owen"))).totals.chunks


async def saved(house: CommandHouse) -> int:
    return await house.db.read(lambda c: c.execute(sa.select(sa.func.count()).select_from(memories)).scalar_one())


async def summaries(house: CommandHouse) -> int:
    chat = await house.chat_of()
    return len(await house.do(lambda c: summary_rows.of_chat(c, chat.id)))


async def summary(house: CommandHouse, kind: Kind, **more: Any) -> int:
    chat = await house.chat_of()
    seqs = [message.seq for message in await house.do(lambda c: conversations.window(c, chat.id, 0))][:5]
    row = NewSummary(conversation_id=chat.id, kind=kind, title="Tea", text="They spoke of tea.", sources=seqs, origin="asked", **more)
    return await house.do(lambda c: summary_rows.add(c, row, house.clock()))


async def one_passage(house: CommandHouse) -> str:
    chat = await chatted(house)
    found = await house.desks.recall.chunks(chat.id, person_id("owen"), limit=1)
    return f"/memory chunks forget {found.rows[0].id}"


async def all_passages(house: CommandHouse) -> str:
    await chatted(house)
    return "/memory chunks clear"


async def the_record(house: CommandHouse) -> str:
    await chatted(house)
    return "/memory record none"


async def one_memory(house: CommandHouse) -> str:
    await house.says("/remember Owen drinks green tea")
    number = await house.db.read(lambda c: c.execute(sa.select(memories.c.id)).scalar_one())
    return f"/memory delete {number}"


async def a_list(house: CommandHouse) -> str:
    await house.says("/remember Owen drinks green tea")
    return "/memory clear default"


async def an_entry(house: CommandHouse) -> str:
    await chatted(house)
    return f"/summary entries delete {await summary(house, Kind.ENTRY)}"


async def a_summary(house: CommandHouse) -> str:
    await chatted(house)
    return f"/summary forget {await summary(house, Kind.RECENT)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Asks:
    """A command that asks first, the label of the yes, and what there is until then."""

    begin: Callable[[CommandHouse], Awaitable[str]]
    label: str
    count: Callable[[CommandHouse], Awaitable[int]]
    minutes: int = 5  # that it is open, as its words say


ASKING: Mapping[str, Asks] = {
    "forget a passage": Asks(begin=one_passage, label="button_forget", count=passages),
    "clear passages": Asks(begin=all_passages, label="button_forget", count=passages),
    "keep nothing any more": Asks(begin=the_record, label="button_forget", count=passages),
    "delete a memory": Asks(begin=one_memory, label="button_delete", count=saved),
    "clear a list": Asks(begin=a_list, label="button_delete", count=saved, minutes=10),
    "delete an entry": Asks(begin=an_entry, label="button_delete", count=summaries),
    "forget a summary": Asks(begin=a_summary, label="button_forget", count=summaries),
}
every_question = pytest.mark.parametrize("asking", ASKING.values(), ids=ASKING)


async def put(house: CommandHouse, asking: Asks, **who: Any) -> tuple[str, int]:
    """The question is put: the data of its yes, and how much there is."""
    await house.says(await asking.begin(house), **who)
    return await data_of(house, say("en", asking.label)), await asking.count(house)


@pytest.mark.rule("RS-42", "CH-159")
@every_question
async def test_a_question_is_answered_by_its_button_as_by_typing(house: CommandHouse, asking: Asks) -> None:
    data, before = await put(house, asking)
    assert await labels(house) == [[say("en", asking.label), say("en", "button_no")]]
    assert len(data.encode()) <= DATA_MAX
    heard = await press(house, data)
    assert heard.accepted.state == "new"
    assert heard.accepted.spent
    assert heard.answer
    assert await asking.count(house) < before


@pytest.mark.rule("RS-42", "CH-159")
@every_question
async def test_a_button_stands_for_what_the_words_say_to_type_for_as_long_as_they_say(house: CommandHouse, asking: Asks) -> None:
    said = await house.says(await asking.begin(house))
    data = await data_of(house, say("en", asking.label))
    house.clock.advance(minutes=asking.minutes, seconds=-1)
    pressed = await house.db.read(lambda c: buttons.find(c, data, house.clock()))
    assert pressed is not None
    assert pressed.line in said
    house.clock.advance(seconds=1)
    assert await house.db.read(lambda c: buttons.find(c, data, house.clock())) is None


@pytest.mark.rule("WD-92", "CH-159")
@pytest.mark.parametrize(("label", "left"), [("button_forget", 1), ("button_forget_messages", 0)])
async def test_forgetting_offers_both_ways(house: CommandHouse, label: str, left: int) -> None:
    await house.remembers("Likes marmalade", "Likes tea")
    await house.talk("Owen once ate marmalade")
    await house.says("/memory forget marmalade")
    assert await labels(house) == [[say("en", key) for key in ("button_forget", "button_forget_messages", "button_no")]]
    assert (await press(house, await data_of(house, say("en", label)))).answer
    chat = await house.chat_of()
    kept = [row for row in await house.do(lambda c: conversations.window(c, chat.id, 0)) if row.text == "Owen once ate marmalade"]
    assert len(kept) == left


@pytest.mark.rule("SM-77", "CH-159")
async def test_pins_are_asked_about_with_a_button_of_their_own(house: CommandHouse) -> None:
    await house.says(await one_memory(house))
    number = await house.db.read(lambda c: c.execute(sa.select(memories.c.id)).scalar_one())
    await house.says(f"/memory pin {number}")
    await house.says("/memory clear default")
    await press(house, await data_of(house, say("en", "button_delete")))
    assert await saved(house) == 1
    await press(house, await data_of(house, say("en", "button_delete_pins")))
    assert await saved(house) == 0


@pytest.mark.rule("RS-48", "CH-159")
async def test_what_a_person_wrote_is_replaced_by_a_button(house: CommandHouse) -> None:
    await chatted(house)
    number = await summary(house, Kind.RECENT)
    await house.do(lambda c: summary_rows.edit(c, number, house.clock(), text="They spoke of islands."))
    assert f"/summary rebuild {number} yes" in await house.says(f"/summary rebuild {number}")
    heard = await press(house, await data_of(house, say("en", "button_rebuild")))
    assert heard.answer == say("en", "summary_rebuilding")


# -- AT-31: nothing is deleted ------------------------------------------------------------------------------------------------


async def _too_late(house: CommandHouse, data: str) -> Heard:
    house.clock.advance(minutes=10)
    return await press(house, data)


async def _somebody_else(house: CommandHouse, data: str) -> Heard:
    await house.says("/help", by="ada")
    return await press(house, data, by="ada", chat="dm-owen")


async def _somebody_unknown(house: CommandHouse, data: str) -> Heard:
    return await press(house, data, by="zoe", chat="dm-owen")


async def _elsewhere(house: CommandHouse, data: str) -> Heard:
    await house.says("/help", group=True)
    return await press(house, data, group=True)


async def _nowhere(house: CommandHouse, data: str) -> Heard:
    return await press(house, data, chat="a chat that nobody knows")


async def _altered(house: CommandHouse, data: str) -> Heard:
    return await press(house, f"{'B' if data[0] == 'A' else 'A'}{data[1:]}")


async def _another_number(house: CommandHouse, data: str) -> Heard:
    return await press(house, data.replace(".0", ".7"))


async def _a_command(house: CommandHouse, _data: str) -> Heard:
    return await press(house, "/memory chunks clear")


async def _answered_no(house: CommandHouse, data: str) -> Heard:
    assert (await press(house, data.replace(".0", ".1"))).accepted.aside == say("en", "button_left")
    return await press(house, data)


@dataclass(frozen=True, slots=True, kw_only=True)
class Wrong:
    does: Callable[[CommandHouse, str], Awaitable[Heard]]
    told: str = "button_over"
    spent: bool = True


WRONG: Mapping[str, Wrong] = {
    "expired": Wrong(does=_too_late),
    "by somebody else": Wrong(does=_somebody_else, told="button_not_yours", spent=False),
    "by somebody unknown": Wrong(does=_somebody_unknown, told="button_not_yours", spent=False),
    "in another chat": Wrong(does=_elsewhere),
    "in a chat that is not known": Wrong(does=_nowhere),
    "with another key": Wrong(does=_altered),
    "with a number that there is not": Wrong(does=_another_number),
    "with a command in it": Wrong(does=_a_command),
    "after a no": Wrong(does=_answered_no),
}


@pytest.mark.rule("RS-42", "CH-159")
@pytest.mark.case("AT-31")
@every_question
@pytest.mark.parametrize("wrong", WRONG.values(), ids=WRONG)
async def test_a_wrong_press_deletes_nothing_and_is_answered(house: CommandHouse, asking: Asks, wrong: Wrong) -> None:
    data, before = await put(house, asking)
    heard = await wrong.does(house, data)
    assert (heard.accepted.aside, heard.accepted.spent, heard.answer) == (say("en", wrong.told), wrong.spent, "")
    assert await asking.count(house) == before


@pytest.mark.rule("RS-42", "CH-159")
@pytest.mark.case("AT-31")
@every_question
async def test_a_second_press_does_nothing_more(house: CommandHouse, asking: Asks) -> None:
    data, _ = await put(house, asking)
    await press(house, data)
    after = await asking.count(house)
    heard = await press(house, data)
    assert (heard.accepted.aside, heard.accepted.spent, heard.answer) == (say("en", "button_over"), True, "")
    assert await asking.count(house) == after


@pytest.mark.rule("RS-42", "CH-51")
async def test_a_press_that_the_platform_delivers_again_is_one_press(house: CommandHouse) -> None:
    data, _ = await put(house, ASKING["clear passages"])
    event = house.event("", kind=EventKind.ACTION, hint=buttons.BUTTON, target=data, platform_message_id="shown-1")
    first, again = await house.receive(event), await house.receive(event)
    assert (first.command is not None, again.command, again.accepted.delivery_id) == (True, None, first.accepted.delivery_id)


@pytest.mark.rule("RS-42")
@pytest.mark.case("AT-31")
async def test_a_button_is_good_for_nothing_once_its_code_was_typed(house: CommandHouse) -> None:
    said = await house.says(await all_passages(house))
    data = await data_of(house, say("en", "button_forget"))
    await house.says(said.rpartition(": ")[2])
    assert await passages(house) == 0
    await house.says("/memory chunks rebuild")
    heard = await press(house, data)
    assert heard.answer == say("en", "recall_code_over")
    assert await passages(house) > 0


@pytest.mark.rule("CH-118", "CH-159")
async def test_who_lost_the_right_meanwhile_presses_in_vain_and_it_is_not_used_up(house: CommandHouse) -> None:
    data, before = await put(house, ASKING["delete a memory"])
    change = sa.update(people).where(people.c.id == person_id("owen"))
    await house.do(lambda c: c.execute(change.values(blocked=True)))
    heard = await press(house, data)
    assert (heard.accepted.state, heard.accepted.spent, await saved(house)) == ("ignored", False, before)
    await house.do(lambda c: c.execute(change.values(blocked=False)))
    await press(house, data)
    assert await saved(house) == before - 1


@pytest.mark.rule("CH-118", "RS-85")
@pytest.mark.case("AT-31")
async def test_in_a_group_only_who_was_asked_can_press(house: CommandHouse) -> None:
    who: dict[str, Any] = {"by": "mia", "group": True}
    await house.talk("Hello all", "Hello", by="uma", group=True)
    await house.says("/remember We meet on Mondays", **who)
    number = await house.db.read(lambda c: c.execute(sa.select(memories.c.id).where(memories.c.list_kind == ListKind.SPACE.value)).scalar_one())
    await house.says(f"/memory delete {number}", **who)
    data = await data_of(house, say("en", "button_delete"))
    for other in ("uma", "ada", "owen"):
        heard = await press(house, data, by=other, group=True)
        assert (heard.accepted.aside, heard.accepted.spent) == (say("en", "button_not_yours"), False), other
    assert await saved(house) == 1
    assert "deleted" in (await press(house, data, **who)).answer.lower()
    assert await saved(house) == 0


# -- entries that wait for a yes ----------------------------------------------------------------------------------------------


async def states(house: CommandHouse, chat: Conversation, by: str = "owen") -> dict[int, bool]:
    found = await house.desks.entries.listing(chat.id, person_id(by))
    return {each.id: each.enabled for each in found.entries}


@pytest.mark.rule("RS-85", "RS-197")
@pytest.mark.parametrize("group", [False, True])
@pytest.mark.parametrize(("label", "left"), [("button_approve", True), ("button_decline", False)])
async def test_an_entry_that_was_made_is_settled_by_its_button_once(house: CommandHouse, label: str, left: bool, group: bool) -> None:
    house.script = lambda _request: '{"title": "Tea", "text": "They drink tea."}'
    who: dict[str, Any] = {"by": "mia", "group": True} if group else {}
    chat = await chatted(house, **who)
    for command in ("review on", "make 8"):
        await house.says(f"/summary entries {command}", **who)
    await house.results()
    [number] = await states(house, chat, who.get("by", "owen"))
    assert await labels(house) == [[say("en", "button_approve", id=number), say("en", "button_decline", id=number)]]
    data = await data_of(house, say("en", label, id=number))
    house.clock.advance(hours=23)
    if group:
        assert (await press(house, data, by="uma", group=True)).accepted.aside == say("en", "button_not_yours")
    assert (await press(house, data, **who)).accepted.spent
    other = data[:-1] + ("1" if data.endswith("0") else "0")
    assert (await press(house, other, **who)).accepted.aside == say("en", "button_over"), "one of the two, once"
    assert await states(house, chat, who.get("by", "owen")) == ({number: True} if left else {})


@pytest.mark.rule("RS-85")
async def test_the_list_has_buttons_for_what_waits_as_far_as_there_is_room(house: CommandHouse) -> None:
    chat = await chatted(house)
    numbers = [await summary(house, Kind.ENTRY, state=State.WAITING) for _ in range(7)]
    said = await house.says("/summary entries")
    assert all(f"#{number} " in said for number in numbers), "the words name all of them"
    rows = await labels(house)
    assert rows == [[say("en", key, id=number) for key in ("button_approve", "button_decline")] for number in numbers[:5]]
    await press(house, await data_of(house, say("en", "button_approve", id=numbers[1])))
    await press(house, await data_of(house, say("en", "button_decline", id=numbers[0])))
    assert {number for number, on in (await states(house, chat)).items() if on} == {numbers[1]}
    assert numbers[0] not in await states(house, chat)


@pytest.mark.rule("RS-85", "CH-118")
async def test_who_may_not_decide_gets_a_list_without_buttons(house: CommandHouse) -> None:
    await chatted(house, by="uma", group=True)
    chat = await house.chat_of(by="uma", group=True)
    seqs = [message.seq for message in await house.do(lambda c: conversations.window(c, chat.id, 0))][:5]
    row = NewSummary(conversation_id=chat.id, kind=Kind.ENTRY, title="Tea", text="Tea.", sources=seqs, origin="asked", state=State.WAITING)
    await house.do(lambda c: summary_rows.add(c, row, house.clock()))
    await house.says("/summary entries", by="uma", group=True)
    assert await shown(house) == []


# -- words, rows and what is kept ---------------------------------------------------------------------------------------------


@pytest.mark.rule("UX-1", "CH-159")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_labels_and_what_a_press_is_told_are_in_the_language_of_the_question(house: CommandHouse, language: str) -> None:
    await house.do(lambda c: c.execute(sa.update(people).where(people.c.id == person_id("owen")).values(language=language)))
    await house.says(await all_passages(house))
    assert await labels(house) == [[say(language, "button_forget"), say(language, "button_no")]]
    no = await data_of(house, say(language, "button_no"))
    assert (await press(house, no.replace(".1", ".0"), by="ada", chat="dm-owen")).accepted.aside == say(language, "button_not_yours")
    assert (await press(house, no)).accepted.aside == say(language, "button_left")


@pytest.mark.rule("CH-159", "CH-80")
def test_keys_are_short_random_and_say_nothing() -> None:
    question = Question(choices=(Choice("Forget", "/memory chunks clear yes 4821"), Choice("Leave it")), language="en")
    drawn = buttons.draw([question] * 9)
    data = [action.data for row in buttons.rows(drawn) for action in row]
    assert len(set(data)) == len(data) == 2 * buttons.QUESTIONS_MAX
    assert all(len(each.encode()) <= DATA_MAX and "4821" not in each and "memory" not in each for each in data)


@pytest.mark.rule("CH-80", "CH-82")
async def test_buttons_are_stored_with_their_message_and_come_with_every_try(house: CommandHouse) -> None:
    await put(house, ASKING["clear passages"])
    wanted = await shown(house)
    now = house.clock()

    def tried(connection: sa.Connection) -> Sequence[Sequence[Action]]:
        address = str(house.event("").address)
        opened = outbox_store.next_open(connection, address)
        while opened is not None and not opened.part.actions:
            opened = outbox_store.next_open(connection, address, after=opened.row_id)
        assert opened is not None
        outbox_store.mark_sending(connection, opened.row_id, opened.part, now)
        outbox_store.recover(connection, now)  # killed while it was sent
        again = outbox_store.next_open(connection, address, after=opened.row_id - 1)
        assert again is not None
        return again.part.actions

    assert [list(row) for row in await house.do(tried)] == wanted


@pytest.mark.rule("CH-159")
async def test_what_is_over_is_swept_and_somebody_who_is_gone_gets_none(house: CommandHouse) -> None:
    [drawn] = buttons.draw([Question(choices=(Choice("Go on", "/help"),), language="en", open_for=timedelta(minutes=1))])
    key, now = drawn.actions[0].data, house.clock()
    await house.do(lambda c: buttons.keep(c, [drawn], person_id=person_id("owen"), conversation_id="c", now=now))
    assert await house.db.read(lambda c: buttons.find(c, key, now)) is not None
    house.clock.advance(minutes=1)
    await house.do(lambda c: buttons.keep(c, [], person_id=person_id("owen"), conversation_id="c", now=house.clock()))
    assert await house.db.read(lambda c: buttons.find(c, key, now)) is None
    await house.do(lambda c: buttons.keep(c, [drawn], person_id="p-nobody", conversation_id="c", now=now))
    assert await house.db.read(lambda c: buttons.find(c, key, now)) is None
