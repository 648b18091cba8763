"""Commands: who may give which where, that none waits, and that what they say is of this place alone (section 9 of the workspace rules)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from functools import partial
from pathlib import Path

import pytest

from gateway.commands.table import TABLE, every_row, find, nearest, needed_role, slip, usable
from gateway.commands.who import Caller
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.runner import JobRunner
from gateway.jobs.table import Job, enqueue
from gateway.language import LANGUAGES, say
from memory import conversations
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.command_house import ROLES, CommandHouse, command_house
from tests.patience import patience


@pytest.fixture
async def house(sqlite: Database, tmp_path: Path, clock: FakeClock) -> AsyncGenerator[CommandHouse]:
    async with command_house(sqlite, tmp_path, clock) as made:
        yield made


# The table of section 9 as it is written there: lane, and who may. "person, admin" is P: a user in the own private chat, a manager in a group.
ALL, USER, PERSON, MEMBER, ADMIN, OWNER = "all", "user", "person", "member", "admin", "owner"
RULES: dict[str, tuple[str, str, str]] = {
    "help": (ALL, "C", ""), "version": (USER, "C", ""), "status": (USER, "C", ""), "whoami": (ALL, "C", ""), "setup": (OWNER, "C", "private"),
    "context": (PERSON, "C", ""), "compact": (PERSON, "N", ""), "clear": (PERSON, "C", ""), "new": (PERSON, "C", ""), "stop": (ALL, "C", ""),
    "steer": (ALL, "C", ""), "memory": (PERSON, "C", ""), "memory status": (PERSON, "C", ""), "memory search": (PERSON, "C", ""),
    "memory rebuild-index": (OWNER, "B", ""), "memory dream": (PERSON, "B", ""), "memory dream show": (PERSON, "C", ""),
    "memory dream apply": (PERSON, "C", ""), "memory dream discard": (PERSON, "C", ""), "memory diary": (PERSON, "C", ""),
    "memory undo": (PERSON, "C", ""), "memory why": (PERSON, "C", ""), "memory forget": (MEMBER, "C", ""),
    "memory export": (PERSON, "B", "private"), "memory on": (PERSON, "C", ""), "memory off": (PERSON, "C", ""), "forget": (MEMBER, "C", ""),
    "memory list": (PERSON, "C", ""), "memory pin": (PERSON, "C", ""), "memory unpin": (PERSON, "C", ""), "memory wake": (PERSON, "C", ""),
    "memory edit": (PERSON, "C", ""), "memory delete": (PERSON, "C", ""), "memory clear": (PERSON, "C", ""), "memory notices": (PERSON, "C", ""),
    "remember": (PERSON, "C", ""), "memory recall": (PERSON, "C", ""), "memory record": (PERSON, "C", ""), "memory chunks": (MEMBER, "C", ""),
    "memory chunks forget": (PERSON, "C", ""), "memory chunks clear": (PERSON, "C", ""), "memory chunks rebuild": (PERSON, "C", ""),
    "memory jobs": (MEMBER, "C", ""), "memory doctor": (MEMBER, "C", ""), "context undo": (PERSON, "N", ""),
    "summary list": (MEMBER, "C", ""), "summary read": (MEMBER, "C", ""), "summary forget": (PERSON, "C", ""), "summary rebuild": (PERSON, "B", ""),
    "summary entries": (MEMBER, "C", ""), "summary entries make": (PERSON, "B", ""), "summary entries on": (PERSON, "C", ""),
    "summary entries off": (PERSON, "C", ""), "summary entries delete": (PERSON, "C", ""), "summary entries approve": (PERSON, "C", ""),
    "summary entries decline": (PERSON, "C", ""), "summary entries auto": (PERSON, "C", ""), "summary entries hide": (PERSON, "C", ""),
    "summary entries review": (PERSON, "C", ""), "summary entries backfill": (PERSON, "B", ""), "summary entries stop": (PERSON, "C", ""),
    "memory learn": (PERSON, "C", ""), "memory privacy": (USER, "C", "private"), "memory share": (USER, "C", "private"),
    "memory blacklist": (PERSON, "C", ""),
    "memory apply": (PERSON, "C", ""), "memory discard": (PERSON, "C", ""),  # short forms, named to the person by the model (WD-105)
    "character": (PERSON, "N", ""), "persona": (PERSON, "N", ""), "knowledge": (PERSON, "C", ""), "knowledge list": (PERSON, "C", ""),
    "knowledge on": (PERSON, "C", ""), "knowledge off": (PERSON, "C", ""), "tasks": (PERSON, "C", ""), "tasks pause": (ALL, "C", ""),
    "tasks resume": (ALL, "C", ""), "tasks delete": (ALL, "C", ""), "tasks run": (ALL, "B", ""), "summary": (PERSON, "C", ""),
    "summary now": (PERSON, "B", ""), "summary backfill": (PERSON, "B", ""), "config": (OWNER, "C", "private"), "logs": (OWNER, "C", "private"),
    "why": (ALL, "C", ""), "busy": (USER, "C", ""), "last": (USER, "C", ""), "channels": (ADMIN, "C", ""), "jobs": (ADMIN, "C", ""),
    "reload": (ADMIN, "C", ""), "restart": (OWNER, "C", ""), "link": (USER, "C", "private"), "link yes": (USER, "C", "private"),
    "link no": (USER, "C", "private"), "link off": (USER, "C", "private"), "pair": (ADMIN, "C", "private"), "pair list": (ADMIN, "C", "private"),
    "pair approve": (ADMIN, "C", "private"), "pair decline": (ADMIN, "C", "private"), "allow": (ADMIN, "C", ""),
    "allow mention": (ADMIN, "C", ""), "block": (ADMIN, "C", ""), "unblock": (ADMIN, "C", ""), "role": (OWNER, "C", ""),
}  # fmt: skip
RANKS = ("guest", "user", "admin", "owner")
CALLERS = {**ROLES, "mia": "guest"}  # mia manages the group and is a guest elsewhere


def allowed(rule: str, place: str, caller: str, *, in_group: bool) -> bool:
    """What section 9 says, in its own words and apart from the code."""
    role, manages = CALLERS[caller], in_group and (caller == "mia" or CALLERS[caller] in ("admin", "owner"))
    if in_group and place == "private":
        return False
    least = {ALL: "guest", USER: "user", MEMBER: "user", PERSON: "user", ADMIN: "admin", OWNER: "owner"}[rule]
    if in_group and rule == PERSON:
        return manages
    if in_group and rule == MEMBER and manages:
        return True
    return RANKS.index(role) >= RANKS.index(least)


def test_the_table_names_the_commands_of_the_rules_and_no_other() -> None:
    assert {" ".join(path): command.lane for path, command in every_row()} == {name: lane for name, (_, lane, _) in RULES.items()}


def test_every_command_has_its_help_in_every_language() -> None:
    for _, command in every_row():
        assert all(say(language, command.help) for language in LANGUAGES)


REFUSALS = ("Only a manager", "This needs the role", "works in a private chat", "door: role")


PLACES = ("dm", "web", "challenge", "group")


@pytest.mark.rule("WD-115", "WD-118")
@pytest.mark.case("A14", "N18")
@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("caller", list(CALLERS))
async def test_every_command_is_for_whom_the_rules_say_and_is_answered_at_once(house: CommandHouse, caller: str, place: str) -> None:
    """Every command × role × kind of chat, while a turn runs that nobody ends and no worker looks at a job."""
    in_group = place == "group"
    if CALLERS[caller] == "guest" and not in_group:
        assert await house.says("/help", by=caller) == "door: dm-unpaired", "a guest has no private chat"
        return
    if CALLERS[caller] != "guest":  # to be told there what is not the group's
        await house.talk("hello", "hi", by=caller)
    await house.talk("hello", "hi", by=caller, group=in_group)
    chat = await house.chat_of(by=caller, group=in_group)
    await house.do(lambda connection: conversations.change(connection, chat.id, kind=place))
    for path, _ in every_row():
        name = " ".join(path)
        await house.begin_turn(by=caller, group=in_group)
        said = await asyncio.wait_for(house.says(f"/{name}", by=caller, group=in_group), 30)  # it waits for nothing that never ends
        may = not any(words in said for words in REFUSALS)
        assert may is allowed(RULES[name][0], RULES[name][2], caller, in_group=in_group), f"/{name} by {caller}: {said}"


@pytest.mark.rule("WD-115")
async def test_a_refusal_says_who_may(house: CommandHouse) -> None:
    assert await house.says("/clear", by="uma", group=True) == "Only a manager of this group, an admin or the owner may use /clear here."
    assert await house.says("/memory rebuild-index", by="uma") == "This needs the role owner."
    assert await house.says("/config", by="owen", group=True) == "/config works in a private chat with me only."
    assert "グループの管理者" in await house.says("/clear", by="uma", group=True, language="ja")
    assert "所有者" in await house.says("/clear", by="uma", group=True, language="zh")


async def test_the_platform_is_asked_only_when_that_decides(house: CommandHouse) -> None:
    await house.says("/memory", by="owen", group=True)
    await house.says("/version", by="uma", group=True)
    await house.says("/clear", by="uma")
    assert house.asked_platform == 0
    await house.says("/memory", by="mia", group=True)
    assert house.asked_platform == 1


@pytest.mark.rule("CH-118")
async def test_help_lists_what_the_asker_may_use_here(house: CommandHouse) -> None:
    guest, manager = [await house.says("/help", by=who, group=True) for who in ("gus2", "mia")]
    assert "/clear" not in guest
    assert "/stop" in guest
    assert "/clear" in manager
    owner, owner_in_group = await house.says("/help"), await house.says("/help", group=True)
    assert "/config" in owner
    assert "/config" not in owner_in_group
    assert {command.name for command in usable(Caller(role="owner", in_group=False))} == {command.name for command in TABLE}


# -- slips ------------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-116")
@pytest.mark.parametrize(
    ("line", "meant"),
    [
        ("/memory serach cats", "/memory search"), ("/memroy", "/memory"), ("/memory dream aply", "/memory dream apply"),
        ("/knowledge lst", "/knowledge list"), ("/summary backfil", "/summary backfill"), ("/tasks pasue 3", "/tasks pause"), ("/contxt", "/context"),
    ],
)  # fmt: skip
async def test_a_near_miss_gets_a_suggestion_and_does_not_run(house: CommandHouse, line: str, meant: str) -> None:
    said = await house.says(line)
    assert said.endswith(f"Did you mean {meant}?"), said


@pytest.mark.rule("WD-116")
async def test_a_slip_of_forget_forgets_nothing_and_runs_nothing(house: CommandHouse) -> None:
    await house.remembers("Likes tea")
    assert "Did you mean /memory forget?" in await house.says("/memory forgt tea")
    assert house.memory_lines() == ["Likes tea"]


async def test_an_unknown_word_lists_what_there_is(house: CommandHouse) -> None:
    for line in ("/memory", "/memory xyzzy"):
        said = await house.says(line)
        assert "- /memory status:" in said
        assert "- /memory dream [N] [force]:" in said


@pytest.mark.rule("WD-116")
async def test_a_word_as_prefix_reaches_subcommands(house: CommandHouse) -> None:
    house.house.now = house.house.now.model_copy(update={"command_prefixes": ("/", "cow ")})
    assert "- cow memory status:" in await house.says("cow memory")
    assert "Did you mean cow memory search?" in await house.says("cow memory serach x")
    assert await house.says("cowmemory") == "door: no command"


def test_the_words_behind_a_command_are_kept_as_written() -> None:
    found = find("memory", "search  two\n lines Here")
    assert found is not None
    assert (found.path, found.rest) == (("memory", "search"), "two\n lines Here")
    assert find("memory", "DREAM Show q-1") is not None
    assert slip(find("memory", "dream 5 force") or found) == ""
    assert find("cancel", "all") is not None
    assert find("nothing") is None
    assert nearest("qqqqqq") == ""
    assert needed_role("nothing") == ""


# -- private and shared places ------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-115")
@pytest.mark.case("N13")
async def test_what_is_not_the_groups_is_told_in_the_private_chat(house: CommandHouse) -> None:
    assert "works in a private chat" in await house.says("/jobs", group=True), "there is none yet"
    await house.talk("hello", by="owen")
    assert await house.says("/jobs", group=True) == "I answered in our private chat."
    assert (await house.notices(await house.chat_of()))[-1] == "No background jobs are waiting."
    assert "No background jobs" not in "".join(await house.notices(await house.chat_of(group=True)))


@pytest.mark.rule("WD-115")
async def test_the_owner_hears_of_the_whole_house_in_private_only(house: CommandHouse) -> None:
    private, in_group = await house.says("/status"), await house.says("/status", group=True)
    assert "scripted" in private
    assert "Index:" in private
    assert "scripted" not in in_group
    assert "7" not in in_group.splitlines()[-1], "jobs of the whole house"


async def test_whoami_names_accounts_in_private_only(house: CommandHouse) -> None:
    assert "Linked accounts: loopback:main." in await house.says("/whoami")
    assert "the owner's" in await house.says("/whoami")
    said = await house.says("/whoami", group=True)
    assert "Linked" not in said
    assert "this group's memory" in said
    assert "your own memory" in await house.says("/whoami", by="uma")


# -- nothing waits -----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WD-97", "WD-118")
@pytest.mark.case("N18")
async def test_a_command_of_lane_c_waits_neither_for_a_turn_nor_for_a_worker(house: CommandHouse) -> None:
    begun: list[int] = []

    async def slow(_job: Job, context: JobContext) -> JobResult:
        begun.append(context.id)
        await asyncio.Event().wait()
        raise AssertionError("nobody ends it")

    runner = JobRunner(house.db, {"slow": slow}, grace_s=0, database_clock=house.clock)
    for number in range(5):
        await house.do(partial(enqueue, job=Job(kind="slow", key=str(number), scope=f"s{number}")))
    async with asyncio.TaskGroup() as group:
        working = group.create_task(runner.run())
        async with asyncio.timeout(patience(5)):
            while len(begun) < 2:  # noqa: ASYNC110  # every worker has its job then
                await asyncio.sleep(0.01)
        running = await house.begin_turn()
        for path, command in every_row():
            if command.lane == "C" and path[0] not in ("stop", "clear", "new"):
                assert await asyncio.wait_for(house.says(f"/{' '.join(path)}"), 30), path
        assert not running.stopped
        working.cancel()


@pytest.mark.rule("WD-117")
async def test_commands_and_their_answers_are_no_turns(house: CommandHouse) -> None:
    await house.talk("I live in Kyoto", "Noted.")
    for line in ("/memory status", "/summary", "/whoami"):
        await house.says(line)
    assert "1 of 20 turns" in await house.says("/context")
    await house.says("/summary now")
    await house.results()
    assert "memory status" not in house.day("2026-03-14")
    assert "Kyoto" in house.day("2026-03-14") or house.calls
