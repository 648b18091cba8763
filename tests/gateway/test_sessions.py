"""Sessions, login links and API tokens on both databases: what is stored, when they end, what a look-up costs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import pytest
import sqlalchemy as sa

from gateway import login_links, sessions
from gateway.audit import CONSOLE
from gateway.credentials import Visit, VisitCache, Way
from gateway.login_links import LoginLinks
from gateway.people import People
from gateway.person import Person
from gateway.sessions import Sessions
from gateway.tokens import ApiTokens
from memory.columns import metadata
from memory.database import Database
from tests.conftest import FakeClock
from tests.gateway.web_house import quick_passwords

T = TypeVar("T")


class Counted:
    """A database that counts its transactions."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.reads = 0
        self.writes = 0

    async def read(self, work: Callable[[sa.Connection], T]) -> T:
        self.reads += 1
        return await self._database.read(work)

    async def write(self, work: Callable[[sa.Connection], T]) -> T:
        self.writes += 1
        return await self._database.write(work)


class Keys:
    """Everything that recognises people, on one database."""

    def __init__(self, database: Database, clock: FakeClock, people: People) -> None:
        self.db = Counted(database)
        db: Any = self.db
        self.people = people
        self.cache = VisitCache(clock)
        self.people.watch(self.cache.forget_person)
        self.sessions = Sessions(db, clock, self.cache)
        self.tokens = ApiTokens(db, clock, self.cache)
        self.links = LoginLinks(db, clock)


@pytest.fixture
def keys(database: Database, clock: FakeClock) -> Iterator[Keys]:
    with quick_passwords() as passwords:
        yield Keys(database, clock, People(database, clock, passwords))


@pytest.fixture
async def ada(keys: Keys) -> Person:
    return await keys.people.create(CONSOLE, name="Ada", role="user")


async def stored_texts(database: Database) -> str:
    """Everything that is in the database, as one text."""

    def work(connection: sa.Connection) -> str:
        return "\n".join(str(row) for table in metadata.sorted_tables for row in connection.execute(sa.select(table)))

    return await database.read(work)


async def test_a_session_is_its_persons_until_it_ends(keys: Keys, ada: Person) -> None:
    opened = await keys.sessions.open(ada.id, "a browser\0\udcff")
    visit = await keys.sessions.find(opened.token)
    assert visit is not None
    assert (visit.person, visit.way, visit.csrf) == (ada, Way.SESSION, opened.csrf)
    assert await keys.sessions.find(opened.token + "x") is None
    assert await keys.sessions.find("\udcff") is None
    await keys.sessions.end(visit.key)
    assert await keys.sessions.find(opened.token) is None


@pytest.mark.rule("WO-61")
async def test_nothing_that_opens_a_door_is_stored(keys: Keys, ada: Person, database: Database) -> None:
    opened = await keys.sessions.open(ada.id)
    code = await keys.links.make(CONSOLE, ada.id)
    _, token = await keys.tokens.make(CONSOLE, ada.id, "a program")
    await keys.people.change(CONSOLE, ada.id, spare_session="", password="correct horse")
    everything = await stored_texts(database)
    for secret in (opened.token, code, token, "correct horse"):
        assert secret not in everything


@pytest.mark.rule("WO-61")
async def test_a_session_lives_thirty_days_after_its_last_use(keys: Keys, ada: Person, clock: FakeClock) -> None:
    used, unused = await keys.sessions.open(ada.id), await keys.sessions.open(ada.id)
    clock.advance(days=29)
    assert await keys.sessions.find(used.token)
    clock.advance(days=1)
    assert await keys.sessions.find(unused.token) is None
    assert await keys.sessions.find(used.token)
    clock.advance(sessions.LIFETIME)
    assert await keys.sessions.find(used.token) is None


@pytest.mark.rule("WO-61")
async def test_a_second_look_within_thirty_seconds_costs_no_statement(keys: Keys, ada: Person, clock: FakeClock) -> None:
    opened = await keys.sessions.open(ada.id)
    _, token = await keys.tokens.make(CONSOLE, ada.id, "a program")
    finds = [lambda: keys.sessions.find(opened.token), lambda: keys.tokens.find(token)]
    for find in finds:
        await find()
        before = keys.db.reads, keys.db.writes
        for _ in range(100):
            clock.advance(milliseconds=200)
            assert await find()
        assert (keys.db.reads, keys.db.writes) == before
        clock.advance(seconds=30)
        assert await find()
        assert keys.db.reads == before[0] + 1


async def test_last_seen_is_written_once_an_hour(keys: Keys, ada: Person, clock: FakeClock) -> None:
    opened = await keys.sessions.open(ada.id)
    before = keys.db.writes
    for _ in range(180):
        clock.advance(minutes=1)
        assert await keys.sessions.find(opened.token)
    assert keys.db.writes == before + 3


@pytest.mark.rule("CH-121")
@pytest.mark.parametrize("change", [{"blocked": True}, {"password": "correct horse"}], ids=str)
async def test_a_block_and_a_new_password_end_what_was_open(keys: Keys, ada: Person, change: dict[str, Any]) -> None:
    opened, spared = await keys.sessions.open(ada.id), await keys.sessions.open(ada.id)
    _, token = await keys.tokens.make(CONSOLE, ada.id, "a program")
    code = await keys.links.make(CONSOLE, ada.id)
    keeping = await keys.sessions.find(spared.token)
    assert keeping
    assert await keys.sessions.find(opened.token)
    assert await keys.tokens.find(token)
    await keys.people.change(CONSOLE, ada.id, spare_session=keeping.key, **change)
    assert await keys.sessions.find(opened.token) is None
    assert await keys.links.use(code) is None
    blocked = "blocked" in change
    assert (await keys.sessions.find(spared.token) is None) == blocked
    assert (await keys.tokens.find(token) is None) == blocked


@pytest.mark.rule("CH-121")
async def test_a_new_role_holds_from_the_next_request_on(keys: Keys, ada: Person) -> None:
    opened = await keys.sessions.open(ada.id)
    for role in ("admin", "guest"):
        await keys.people.change(CONSOLE, ada.id, role=role)
        visit = await keys.sessions.find(opened.token)
        assert visit
        assert visit.person.role == role


async def test_what_is_revoked_during_a_look_up_is_not_remembered(ada: Person, clock: FakeClock) -> None:
    cache = VisitCache(clock)
    visit = Visit(person=ada, way=Way.SESSION, key="k")
    looking, go_on = asyncio.Event(), asyncio.Event()

    async def slow() -> Visit | None:
        looking.set()
        await go_on.wait()
        return visit

    async def gone() -> Visit | None:
        return None

    async with asyncio.TaskGroup() as group:
        first = group.create_task(cache.find("k", slow))
        await looking.wait()
        cache.forget("k")
        go_on.set()
    assert first.result() == visit  # it was asked before
    assert await cache.find("k", gone) is None


async def test_the_memory_of_visits_is_bounded(ada: Person, clock: FakeClock) -> None:
    cache = VisitCache(clock, size=10)
    asked: list[int] = []

    async def visit(number: int) -> Visit:
        asked.append(number)
        return Visit(person=ada, way=Way.TOKEN, key=str(number))

    for number in [*range(100), *range(100)]:
        await cache.find(str(number), lambda number=number: visit(number))
    assert len(asked) == 200
    await cache.find("99", lambda: visit(99))
    assert len(asked) == 200


# -- login links -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-61")
async def test_a_login_link_works_once_however_many_try_at_once(keys: Keys, ada: Person) -> None:
    code = await keys.links.make(CONSOLE, ada.id)
    results = await asyncio.gather(*(keys.links.use(code) for _ in range(20)))
    assert sorted(results, key=str) == [None] * 19 + [ada.id]
    assert await keys.links.use(code) is None


@pytest.mark.rule("WO-61")
async def test_a_login_link_is_dead_after_ten_minutes(keys: Keys, ada: Person, clock: FakeClock) -> None:
    early, late = await keys.links.make(CONSOLE, ada.id), await keys.links.make(CONSOLE, ada.id)
    clock.advance(minutes=9, seconds=59)
    assert await keys.links.use(early) == ada.id
    clock.advance(seconds=1)
    assert await keys.links.use(late) is None
    assert login_links.LIFETIME.total_seconds() == 600


async def test_a_login_link_of_a_blocked_person_opens_nothing(keys: Keys, ada: Person) -> None:
    await keys.people.change(CONSOLE, ada.id, blocked=True)
    assert await keys.links.use(await keys.links.make(CONSOLE, ada.id)) is None


@pytest.mark.parametrize("code", ["", "x", "\udcff", "x" * 10_000])
async def test_an_unknown_login_link_opens_nothing(keys: Keys, ada: Person, code: str) -> None:
    await keys.links.make(CONSOLE, ada.id)
    assert await keys.links.use(code) is None


# -- API tokens --------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-50")
async def test_a_token_is_its_persons_until_they_drop_it(keys: Keys, ada: Person, clock: FakeClock) -> None:
    ben = await keys.people.create(CONSOLE, name="Ben", role="user")
    token, text = await keys.tokens.make(CONSOLE, ada.id, "a program")
    assert text.startswith("yg_")
    visit = await keys.tokens.find(text)
    assert visit is not None
    assert (visit.person, visit.way, visit.csrf) == (ada, Way.TOKEN, "")
    assert [one.used_at for one in await keys.tokens.of(ada.id)] == [clock.now]
    assert await keys.tokens.of(ben.id) == []
    assert not await keys.tokens.drop(CONSOLE, ben.id, token.id)
    assert await keys.tokens.find(text)
    assert await keys.tokens.drop(CONSOLE, ada.id, token.id)
    assert await keys.tokens.find(text) is None
    assert not await keys.tokens.drop(CONSOLE, ada.id, token.id)


async def test_a_token_is_no_session_and_a_session_no_token(keys: Keys, ada: Person) -> None:
    opened = await keys.sessions.open(ada.id)
    _, text = await keys.tokens.make(CONSOLE, ada.id, "a program")
    assert await keys.sessions.find(text) is None
    assert await keys.tokens.find(opened.token) is None
