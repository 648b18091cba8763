"""Two accounts of one human: linked by a code and two yeses, with everything that is theirs, and parted again (WD-13)."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gateway import link_files, tries
from gateway.audit import CONSOLE
from gateway.language import say
from gateway.link_files import block
from memory import conversations, provenance
from memory.columns import metadata
from memory.conversations import Conversation
from memory.database import Database
from memory.layout import Role, daily_path
from memory.lines import entries, line_hash
from memory.provenance import LineRow, Origin
from memory.schema import people, sessions, settings
from memory.scope_templates import template
from memory.scopes import ROOT, Scope
from memory.task_schema import tasks
from memory.texts import Author
from tests.conftest import FakeClock
from tests.gateway.command_house import CommandHouse, command_house, person_id, scope_of_person

CODE = re.compile(r"[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}")
DAY = date(2026, 3, 12)
LIN = "lin"  # another user, with little in memory


@pytest.fixture
async def house(database: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(database, tmp_path, clock) as made:
        values = {"id": person_id(LIN), "name": "Lin", "role": "user", "scope": str(scope_of_person(LIN)), "created_at": clock()}
        await made.do(lambda c: c.execute(sa.insert(people), values))
        known = {"person_id": person_id(LIN), "channel": "loopback", "account": "main", "platform_user_id": LIN, "created_at": clock()}
        await made.do(lambda c: c.execute(sa.insert(metadata.tables["identities"]), known))
        yield made


async def write(house: CommandHouse, scope: Scope, path: str, text: str) -> None:
    await house.files.write(scope, lambda ws: ws.append(scope, path, text, by=Author.PERSON))


async def read(house: CommandHouse, scope: Scope, path: str) -> str:
    found = await house.files.read(lambda ws: ws.read(scope, path))
    return found.content if found else ""


async def code_of(house: CommandHouse, who: str) -> str:
    found = CODE.search(await house.says("/link", by=who))
    assert found
    return found[0]


async def link(house: CommandHouse, asker: str, giver: str) -> None:
    """The whole way, by commands, until the files have moved."""
    offer = await house.says(f"/link {await code_of(house, asker)}", by=giver)
    assert asker in offer.lower()
    assert (await house.says("/link yes", by=giver)).startswith("Noted.")
    assert (await house.says("/link yes", by=asker)).startswith("Linked.")
    await house.results()


async def rows(house: CommandHouse, table: str, *columns: str) -> list[Any]:
    source = metadata.tables[table]
    found = await house.db.read(lambda c: c.execute(sa.select(*(source.c[name] for name in columns))).all())
    return [row[0] if len(columns) == 1 else tuple(row) for row in found]


async def accounts(house: CommandHouse, name: str) -> set[str]:
    return {each.platform_user_id for each in await house.persons.identities(person_id(name))}


# -- a yes from both --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-13")
async def test_a_code_links_nobody_before_both_sides_agreed(house: CommandHouse) -> None:
    code = await code_of(house, "uma")
    offer = await house.says(f"/link {code.lower()}", by=LIN)
    assert "Uma (loopback:main uma)" in offer
    assert await accounts(house, "uma") == {"uma"}
    await house.results()
    told = await house.notices(await house.chat_of(by="uma"))
    assert any("Lin (loopback:main lin) has used your code" in text for text in told), "the asker hears who it was"
    assert (await house.says("/link yes", by="uma")).startswith("Noted.")
    assert (await house.says("/link yes", by="uma")).startswith("Noted."), "one side alone is one side, however often"
    assert await accounts(house, "uma") == {"uma"}
    assert (await house.says("/link yes", by=LIN)).startswith("Linked.")
    assert await accounts(house, "uma") == {"uma", LIN}


@pytest.mark.rule("WD-13")
async def test_a_no_of_either_side_ends_it(house: CommandHouse) -> None:
    for refuses in ("uma", LIN):
        await house.says(f"/link {await code_of(house, 'uma')}", by=LIN)
        await house.says("/link yes", by="uma")
        assert await house.says("/link no", by=refuses) == "Dropped. Nothing was linked."
        assert (await house.says("/link yes", by=LIN)).startswith("Nothing waits to be linked.")
    assert await accounts(house, "uma") == {"uma"}


@pytest.mark.rule("WD-13")
async def test_a_code_works_once_for_ten_minutes_and_is_kept_as_a_hash(house: CommandHouse) -> None:
    code = await code_of(house, "uma")
    kept = str(await rows(house, "account_links", "code_hash"))
    assert code not in kept
    assert code.replace("-", "") not in kept
    house.clock.advance(minutes=10)
    assert "unknown" in await house.says(f"/link {code}", by=LIN)
    code = await code_of(house, "uma")
    await house.says(f"/link {code}", by=LIN)
    assert "unknown" in await house.says(f"/link {code}", by="ada"), "nobody else can take it over"
    house.clock.advance(minutes=10)
    assert (await house.says("/link yes", by="uma")).startswith("Nothing waits")
    old = await code_of(house, "uma")
    await code_of(house, "uma")
    assert "unknown" in await house.says(f"/link {old}", by=LIN), "a new code ends the old"


async def test_who_guesses_codes_is_not_heard_for_an_hour(house: CommandHouse) -> None:
    code = await code_of(house, "uma")
    for _ in range(5):
        assert "unknown" in await house.says("/link ABCD-EFGH", by=LIN)
    assert "unknown" in await house.says(f"/link {code}", by=LIN)
    house.clock.advance(hours=1)
    assert "This code comes from" in await house.says(f"/link {await code_of(house, 'uma')}", by=LIN)


@pytest.mark.rule("WD-13")
async def test_who_guessed_longest_ago_is_forgotten_when_too_many_do(house: CommandHouse) -> None:
    def many(connection: sa.Connection) -> int:
        for number in range(tries.KEYS_MAX + 50):
            tries.take(connection, "tried", f"p{number}", house.clock(), limit=1, window=timedelta(hours=1))
        return len(connection.execute(sa.select(settings.c.value).where(settings.c.key == "tried")).scalar_one())

    assert await house.do(many) == tries.KEYS_MAX


@pytest.mark.rule("WD-13")
@pytest.mark.parametrize(("language", "words"), [("en", "More than one link is open"), ("ja", "複数"), ("zh", "多个关联")])
async def test_with_two_links_open_a_yes_says_which(house: CommandHouse, language: str, words: str) -> None:
    await house.says(f"/link {await code_of(house, 'ada')}", by="uma", language=language)
    await house.says(f"/link {await code_of(house, 'uma')}", by=LIN, language=language)
    which = await house.says("/link yes", by="uma", language=language)
    assert words in which
    number = {name.lower(): found for found, name in re.findall(r"/link yes (\d+).*?(Ada|Lin)", which)}
    assert set(number) == {"ada", LIN}
    assert words in await house.says("/link yes 4711", by="uma", language=language)
    assert words in await house.says("/link yes please", by="uma", language=language)
    assert await house.says(f"/link yes {number['ada']}", by="uma", language=language) == say(language, "link_waits")
    assert await house.says("/link yes", by=LIN, language=language) == say(language, "link_waits"), "one side of another link"
    assert await accounts(house, "uma") == {"uma"}
    assert words in await house.says("/link yes", by="uma", language=language), "also when one has its yes already"
    assert await house.says(f"/link no {number[LIN]}", by="uma", language=language) == say(language, "link_dropped")
    await house.says("/link yes", by="ada", language=language)
    assert {len(await accounts(house, "uma")), len(await accounts(house, "ada"))} == {0, 2}
    assert await accounts(house, LIN) == {LIN}


async def test_one_person_is_not_linked_with_themself(house: CommandHouse) -> None:
    assert "same person already" in await house.says(f"/link {await code_of(house, 'uma')}", by="uma")


@pytest.mark.parametrize(("language", "words"), [("ja", "結び付け"), ("zh", "关联")])
async def test_linking_speaks_the_language_of_the_chat(house: CommandHouse, language: str, words: str) -> None:
    offer = await house.says(f"/link {await code_of(house, 'uma')}", by=LIN, language=language)
    assert words in offer


# -- what comes along -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-13")
async def test_the_smaller_memory_stands_behind_the_bigger_with_its_provenance_and_nothing_is_overwritten(house: CommandHouse) -> None:
    uma, lin = scope_of_person("uma"), scope_of_person(LIN)
    await write(house, uma, "MEMORY.md", "# Memory\n\n- Uma lives in Bern\n- Uma likes tea\n" + "- more\n" * 20)
    await write(house, lin, "MEMORY.md", "# Memory\n\n- 紅茶が好き\n- 喜欢下棋\n")
    await write(house, uma, daily_path(DAY), f"# Daily Memory: {DAY}\n\n## Trimmed Context\n\n### 09:00 chat\n\n- Uma bought a bike\n")
    await write(house, lin, daily_path(DAY), f"# Daily Memory: {DAY}\n\n## Trimmed Context\n\n### 10:00 chat\n\n- Lin sold a bike\n")
    await write(house, lin, "memory/2026-03-13.md", "# Daily Memory: 2026-03-13\n\n- a day of Lin's alone\n")
    await write(house, lin, "knowledge/chess.md", "# Chess\n\nOpenings.\n")
    await house.know("MEMORY.md", LineRow(hash=line_hash("紅茶が好き"), origin=Origin.PERSON, author="dream", sources=("m-1",)), scope=lin)
    daily = LineRow(hash=line_hash("Lin sold a bike"), origin=Origin.MIXED, author="summary", local_date=str(DAY), speakers=(person_id(LIN),))
    await house.know(daily_path(DAY), daily, scope=lin)
    before = await read(house, uma, "MEMORY.md")

    await link(house, LIN, "uma")

    curated = await read(house, uma, "MEMORY.md")
    assert curated.startswith(before), "every byte of the kept memory stays"
    assert curated[len(before) :].split("\n") == ["", "## From the linked account (2026-03-14)", "", "- 紅茶が好き", "- 喜欢下棋", ""]
    day = await read(house, uma, daily_path(DAY))
    assert day.index("Uma bought a bike") < day.index("Lin sold a bike")
    assert day.count("# Daily Memory") == 1
    assert "a day of Lin's alone" in await read(house, uma, "memory/2026-03-13.md")
    assert await read(house, uma, "knowledge/chess.md") == "# Chess\n\nOpenings.\n"
    known = await house.db.read(lambda c: provenance.lines_of(c, str(uma), "MEMORY.md"))
    (tea, chess) = [entry for entry in entries(curated) if entry.section.startswith("From the linked")]
    assert provenance.origin_of(tea, known) is Origin.PERSON
    assert known[tea.hash].sources == ("m-1",)
    assert provenance.origin_of(chess, known) is Origin.HUMAN
    daily_known = await house.db.read(lambda c: provenance.lines_of(c, str(uma), daily_path(DAY)))
    assert daily_known[line_hash("Lin sold a bike")].speakers == (person_id("uma"),)
    scopes = await house.files.read(lambda ws: ws.scopes())
    assert lin not in scopes, "the emptied folder goes"


@pytest.mark.rule("WD-13", "WD-9")
async def test_chats_tasks_and_what_was_said_come_along_and_every_account_reads_the_one_memory(house: CommandHouse) -> None:
    await house.talk("Lin said this", "noted", by=LIN)
    chat = await house.chat_of(by=LIN)
    await house.do(lambda c: c.execute(sa.insert(tasks), _task(house, chat)))
    await house.do(lambda c: c.execute(sa.insert(sessions), _session(house)))
    await write(house, scope_of_person("uma"), "MEMORY.md", "- Uma\n")
    await link(house, "uma", LIN)
    uma, keep = person_id("uma"), str(scope_of_person("uma"))
    assert (await house.chat_of(by=LIN)).person_id == uma
    assert await rows(house, "tasks", "person_id", "scope") == [(uma, keep)]
    assert await rows(house, "sessions", "person_id") == [uma]
    said = [row for row in await rows(house, "messages", "text", "scope", "author_person_id") if row[0] == "Lin said this"]
    assert said == [("Lin said this", keep, uma)]
    for table in metadata.tables.values():
        if table.name in ("audit", "jobs", "job_parts", "inbox", "outbox"):  # what happened, and when
            continue
        kept = str(await house.db.read(lambda c, table=table: c.execute(sa.select(table)).all()))
        assert person_id(LIN) not in kept, f"{table.name} still knows the one who joined"
    again = await house.talk("after", by=LIN)
    assert (again.scope, again.author_person_id) == (keep, uma)
    (entry,) = [row for row in await rows(house, "audit", "action", "target") if row[0] == "person.join"]
    assert entry == ("person.join", uma)


def _task(house: CommandHouse, chat: Conversation) -> dict[str, Any]:
    now = house.clock()
    return {
        "person_id": chat.person_id, "address": chat.key, "scope": str(scope_of_person(LIN)), "kind": "say", "text": "pills", "rule": "0 9 * * *",
        "next_run": now + timedelta(days=1), "created_at": now, "updated_at": now,
    }  # fmt: skip


def _session(house: CommandHouse) -> dict[str, Any]:
    now = house.clock()
    return {
        "token_hash": "x", "person_id": person_id(LIN), "csrf": "y", "created_at": now, "seen_at": now, "expires_at": now + timedelta(days=1),
    }  # fmt: skip


@pytest.mark.rule("WD-13")
@pytest.mark.parametrize("asker", ["owen", "uma"])
async def test_the_owners_memory_always_stays_and_the_one_person_is_the_owner(house: CommandHouse, asker: str) -> None:
    giver = "uma" if asker == "owen" else "owen"
    await write(house, scope_of_person("uma"), "MEMORY.md", "- much of Uma\n" * 200)
    await link(house, asker, giver)
    owner = await house.persons.person(person_id("owen"))
    assert owner is not None
    assert (owner.scope, owner.role) == (str(ROOT), "owner")
    assert await accounts(house, "owen") == {"owen", "uma"}
    assert "much of Uma" in await read(house, ROOT, "MEMORY.md")


@pytest.mark.rule("WD-13")
async def test_who_signs_in_by_name_still_does(house: CommandHouse) -> None:
    await house.persons.change(CONSOLE, person_id(LIN), password="correct horse")
    await write(house, scope_of_person("uma"), "MEMORY.md", "- Uma\n")
    await link(house, "uma", LIN)
    found = await house.persons.sign_in("lin", "correct horse")
    assert found is not None
    assert found.id == person_id("uma")


@pytest.mark.rule("WD-13")
async def test_files_that_moved_already_are_not_added_twice(house: CommandHouse) -> None:
    await write(house, scope_of_person("uma"), "MEMORY.md", "- Uma\n" * 5)
    await write(house, scope_of_person(LIN), "MEMORY.md", "- Lin\n")
    await link(house, "uma", LIN)
    once = await read(house, scope_of_person("uma"), "MEMORY.md")
    await write(house, scope_of_person(LIN), "MEMORY.md", "- Lin\n")  # as if it had been killed before the folder went
    heading = "From the linked account (2026-03-14)"
    await house.do(lambda c: link_files.order(c, keep=str(scope_of_person("uma")), gone=str(scope_of_person(LIN)), heading=heading))
    await house.results()
    assert await read(house, scope_of_person("uma"), "MEMORY.md") == once


@pytest.mark.rule("WD-13")
@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_a_file_that_nobody_wrote_into_adds_nothing(language: str) -> None:
    for name in ("user.md", "MEMORY.md"):
        assert block(name, Role.ABOUT, template(name, language), "Linked") == ""
    own = template("user.md", language) + "\n- 名前: 林\n"
    assert block("user.md", Role.ABOUT, own, "Linked").startswith("## Linked\n\n")
    assert "<!--" not in block("user.md", Role.ABOUT, own, "Linked")


# -- parted -----------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-13", "WD-10")
async def test_an_account_parts_with_an_empty_memory_and_sees_nothing_of_the_other(house: CommandHouse) -> None:
    await write(house, scope_of_person("uma"), "MEMORY.md", "- a secret of Uma\n")
    await link(house, "uma", LIN)
    await house.talk("before we part", "yes", by=LIN)
    assert (await house.says("/link off", by=LIN)).startswith("This account is a person of its own again")
    assert await accounts(house, "uma") == {"uma"}
    after = await house.talk("and now", by=LIN)
    chat = await house.chat_of(by=LIN)
    parted = await house.persons.find_by_identity("loopback", "main", LIN)
    assert parted is not None
    assert chat.person_id == parted.id == after.author_person_id
    assert parted.id not in (person_id("uma"), person_id(LIN))
    assert (after.scope, parted.role) == (parted.scope, "user")
    shown = await house.db.read(lambda c: [each.text for each in conversations.window(c, chat.id, 0)])
    assert shown == ["and now"]
    assert "secret" not in await house.says("/memory search secret", by=LIN)
    assert "person.part" in await rows(house, "audit", "action")


@pytest.mark.rule("WD-13")
async def test_an_account_alone_has_nothing_to_part_from(house: CommandHouse) -> None:
    assert await house.says("/link off", by="uma") == "No other account is linked with this one."
    assert await accounts(house, "uma") == {"uma"}


@pytest.mark.rule("WD-13")
@pytest.mark.parametrize(("words", "language"), [("昨日はありがとう。", "ja"), ("谢谢你昨天的帮助。", "zh"), ("Thank you for yesterday.", "en")])
async def test_who_asked_is_told_in_the_language_they_spoke_in(house: CommandHouse, words: str, language: str) -> None:
    await house.talk(words, by="uma")
    code = await code_of(house, "uma")
    await house.says(f"/link {code}", by=LIN, language="en")
    await house.results()
    told = (await house.notices(await house.chat_of(by="uma")))[-1]
    assert told == say(language, "link_given", name="Lin", accounts="loopback:main lin")
