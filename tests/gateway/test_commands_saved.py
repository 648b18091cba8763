"""`/remember` and `/memory list`, `pin`, `unpin`, `wake`, `edit`, `delete`, `clear`: saved memories in chats (section 9, SM-56, SM-74 to SM-77)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
import sqlalchemy as sa

from gateway.language import LANGUAGES
from gateway.memory_notices import SETTING
from memory.database import Database
from memory.saved.lineages import lineages
from memory.saved.rows import ListKey, Memory, character_list, global_list, space_list
from memory.saved.stored import rows_of
from memory.saved_schema import memories, memory_decay
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id

WORDS = {"en": "Likes barley tea", "ja": "麦茶が好き", "zh": "喜欢喝大麦茶"}


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


@pytest.fixture
async def both(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    """On both databases."""
    async with command_house(database, tmp_path, clock) as made:
        yield made


async def rows(house: CommandHouse, key: ListKey) -> list[Memory]:
    return await house.do(lambda connection: rows_of(connection, [key]))


async def lineage(house: CommandHouse) -> str:
    return (await house.do(lineages))["default"]


async def own(house: CommandHouse, by: str = "owen") -> ListKey:
    return character_list(person_id(by), await lineage(house))


async def sleep(house: CommandHouse, *, protected: bool = True) -> None:
    """All memories, as if nobody had needed them; `protected` False as if a program had made them."""
    await house.do(lambda c: c.execute(sa.update(memory_decay).values(dormant=True, unused_days=7)))
    await house.do(lambda c: c.execute(sa.update(memories).values(protected=protected)))


# -- remembering -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-56", "SM-15")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_remember_adds_a_protected_memory_between_the_person_and_the_character(house: CommandHouse, language: str) -> None:
    said = await house.says(f"/remember {WORDS[language]}", language=language)
    (made,) = await rows(house, await own(house))
    assert WORDS[language] in said
    assert f"`{made.id}`" in said
    assert (made.content, made.protected, made.pinned, made.origin, made.author_id, made.private_origin) == (
        WORDS[language], True, False, "panel", person_id("owen"), True,
    )  # fmt: skip


@pytest.mark.rule("SM-56")
@pytest.mark.parametrize("word", ["everywhere:", "Everywhere: ", "どこでも：", "どこでも:", "所有角色："])
async def test_a_word_in_front_makes_it_known_to_every_character(house: CommandHouse, word: str) -> None:
    await house.says(f"/remember {word}Is called Momo")
    assert [row.content for row in await rows(house, global_list(person_id("owen")))] == ["Is called Momo"]


@pytest.mark.rule("SM-3", "SM-4", "SM-49")
async def test_remember_refuses_what_cannot_be_kept_and_says_why(house: CommandHouse) -> None:
    assert "501" in await house.says(f"/remember {'x' * 501}")
    assert "/remember TEXT" in await house.says("/remember")
    assert "/remember TEXT" in await house.says("/remember everywhere: ")
    first = await house.says("/remember Likes tea")
    number = re.findall(r"`(\d+)`", first)[0]
    again = await house.says("/remember likes  TEA")
    assert "already" in again
    assert f"`{number}`" in again
    house.house.now = house.house.now.model_copy(update={"saved": house.house.now.saved.model_copy(update={"unpinned_max": 1})})
    assert "nothing in it may be let go" in await house.says("/remember Likes cake")
    await sleep(house, protected=False)
    full = await house.says("/remember Likes cake")
    assert f"/memory delete {number}" in full
    assert [row.content for row in await rows(house, await own(house))] == ["Likes tea"], "nothing went by itself"


# -- whose -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-56", "SM-74", "WD-115")
async def test_in_a_group_only_managers_command_its_memories_and_no_private_one_shows_there(both: CommandHouse) -> None:
    await both.says("/remember The safe code is tulip-seven")
    (secret,) = await rows(both, await own(both))
    said = await both.says("/remember The circle meets on Fridays", by="mia", group=True)
    assert "Remembered" in said
    for by in ("mia", "owen", "ada"):
        listed = await both.says("/memory list", by=by, group=True)
        assert "Fridays" in listed
        assert "tulip" not in listed
        for command in (f"pin {secret.id}", f"delete {secret.id}", f"edit {secret.id} x", f"wake {secret.id}"):
            assert "tulip" not in await both.says(f"/memory {command}", by=by, group=True)
    for command in ("/memory list", "/remember x", "/memory delete 1", "/memory clear"):
        assert "Only a manager" in await both.says(command, by="uma", group=True)
    assert "Fridays" not in await both.says("/memory list", by="owen")
    assert [row.content for row in await rows(both, await own(both))] == ["The safe code is tulip-seven"]


@pytest.mark.rule("SM-15", "SM-16")
async def test_what_is_remembered_where_not_all_can_read_counts_in_that_channel_alone(house: CommandHouse) -> None:
    await house.says("/remember open to all", by="mia", group=True)
    chat = await house.chat_of(group=True)
    assert chat.space_id is not None
    key = space_list(chat.space_id, await lineage(house))
    await house.says("/remember for a few", by="mia", group=True, space_id="a-server")  # of which not all read this channel
    made = {row.content: row for row in await rows(house, key)}
    assert (made["open to all"].private_origin, made["open to all"].channel_ids) == (False, ())
    assert made["for a few"].channel_ids == (":".join(chat.key.split(":")[:3]),)


@pytest.mark.rule("SM-88")
async def test_a_challenge_remembers_nothing(house: CommandHouse) -> None:
    await house.says("/remember x")
    chat = await house.chat_of()
    await house.do(lambda c: c.execute(sa.text("update conversations set kind = 'challenge' where id = :id"), {"id": chat.id}))
    for command in ("/remember y", "/memory list", "/memory clear everywhere"):
        assert await house.says(command) == await house.says("/memory on")


# -- one memory --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-44", "SM-74", "SM-75", "SM-5")
async def test_a_memory_is_pinned_unpinned_woken_and_edited_by_its_number(both: CommandHouse) -> None:
    await both.says("/remember Plays the cello")
    key = await own(both)
    (made,) = await rows(both, key)
    assert "Plays the cello" in await both.says(f"/memory pin {made.id}")
    assert "already" in await both.says(f"/memory pin #{made.id}")
    assert (await rows(both, key))[0].pinned
    assert "No longer" in await both.says(f"/memory unpin {made.id}")
    assert "not pinned" in await both.says(f"/memory unpin {made.id}")
    await sleep(both)
    assert "asleep" in await both.says("/memory list")
    assert "Awake" in await both.says(f"/memory wake {made.id}")
    assert "awake" in await both.says(f"/memory wake {made.id}")
    assert "Changed: Plays the viola" in await both.says(f"/memory edit {made.id} Plays the viola")
    assert "already" in await both.says(f"/memory edit {made.id} Plays the viola")
    (now,) = await rows(both, key)
    assert (now.content, now.dormant, now.protected) == ("Plays the viola", False, True)
    for command in ("pin", "pin x", "pin 99", "unpin 99", "wake 99", "edit 99 x", "edit 1", "delete 99", "delete x", "delete 1 no"):
        said = await both.says(f"/memory {command}")
        assert "/memory" in said, command
    assert len(await rows(both, key)) == 1


@pytest.mark.rule("WO-21", "SM-78")
async def test_a_memory_is_deleted_only_after_a_yes(house: CommandHouse) -> None:
    await house.says("/remember Plays the cello")
    key = await own(house)
    (made,) = await rows(house, key)
    asked = await house.says(f"/memory delete {made.id}")
    assert "Plays the cello" in asked
    assert f"/memory delete {made.id} yes" in asked
    assert await rows(house, key)
    assert "Deleted for good: Plays the cello" in await house.says(f"/memory delete {made.id} yes")
    assert not await rows(house, key)


# -- the list ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-21", "SM-56")
@pytest.mark.parametrize(("language", "words"), [("en", ("20 of 100", "asleep")), ("ja", ("20/100件", "眠り中")), ("zh", ("20/100 条", "沉睡"))])
async def test_the_list_is_paged_with_ids_states_and_limits(house: CommandHouse, language: str, words: tuple[str, str]) -> None:
    for number in range(20):
        await house.says(f"/remember fact {number}")
    await house.says("/remember everywhere: Is called Momo")
    await sleep(house)
    first = await house.says("/memory list", language=language)
    assert words[0] in first
    assert words[1] in first
    assert "Is called Momo" in first
    assert "/memory list 2" in first
    assert "fact 19" not in first
    second = await house.says("/memory list 2", language=language)
    assert "fact 19" in second
    assert "/memory list 3" not in second
    for wrong in ("3", "0", "x"):
        assert "/memory list" in await house.says(f"/memory list {wrong}", language=language)


async def test_an_empty_list_says_how_to_fill_it(house: CommandHouse) -> None:
    assert "/remember" in await house.says("/memory list")


# -- clearing ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-76", "SM-77")
@pytest.mark.case("T18")
async def test_clearing_by_command_asks_twice_and_each_code_counts_once(both: CommandHouse) -> None:
    for text in ("plain", "pinned"):
        await both.says(f"/remember everywhere: {text}")
    await both.says("/remember in another list")
    key = global_list(person_id("owen"))
    pin = next(row for row in await rows(both, key) if row.content == "pinned")
    await both.says(f"/memory pin {pin.id}")
    assert "/memory clear everywhere" in await both.says("/memory clear")
    code = (await both.says("/memory clear everywhere")).split()[-1]
    assert "no longer open" in await both.says(f"/memory clear everywhere pins {code}")
    assert "no longer open" in await both.says(f"/memory clear default yes {code}")
    first = await both.says(f"/memory clear everywhere yes {code}")
    assert "Deleted for good: 1" in first
    assert "pinned" in first
    assert "no longer open" in await both.says(f"/memory clear everywhere yes {code}")
    assert [row.content for row in await rows(both, key)] == ["pinned"]
    second = re.findall(r"pins (\S+)", first)[-1]
    assert "Deleted for good: 1" in await both.says(f"/memory clear everywhere pins {second}")
    assert not await rows(both, key)
    assert [row.content for row in await rows(both, await own(both))] == ["in another list"]


@pytest.mark.rule("SM-76")
async def test_in_a_group_its_one_list_needs_no_name(house: CommandHouse) -> None:
    await house.says("/remember The circle meets on Fridays", by="mia", group=True)
    asked = await house.says("/memory clear", by="mia", group=True)
    assert "1 memory" in asked
    assert "Deleted for good: 1" in await house.says(re.findall(r"/memory clear \S+ yes \S+", asked)[0], by="mia", group=True)


# -- notices -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-61", "WO-20")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_each_chat_says_how_much_it_is_told(house: CommandHouse, language: str) -> None:
    said = [await house.says(f"/memory notices{word}", language=language) for word in ("", " full", " short", " Hidden", "")]
    assert said[3] == said[4]
    assert len(set(said)) == 4
    assert (await house.chat_of()).settings == {SETTING: "hidden"}
    assert "full" in await house.says("/memory notices loud", language=language)
    assert "Only a manager" in await house.says("/memory notices full", by="uma", group=True)
    await house.says("/memory notices full", by="mia", group=True)
    assert (await house.chat_of(group=True)).settings == {SETTING: "full"}
    assert (await house.chat_of()).settings == {SETTING: "hidden"}
