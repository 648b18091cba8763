"""People on both databases: roles, the owner who stays, names and passwords."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from functools import partial

import pytest
from argon2.exceptions import InvalidHashError

from gateway import audit
from gateway.audit import CONSOLE, Actor, masked
from gateway.passwords import Passwords
from gateway.people import LastOwner, NameTaken, NoSuchPerson, PasswordUnfit, People
from gateway.person import Identity, Person, Role, may_change, may_create, sign_in_name
from memory.database import Database
from memory.ids import PersonId
from tests.conftest import FakeClock
from tests.gateway.web_house import quick_passwords


@pytest.fixture
def passwords() -> Iterator[Passwords]:
    with quick_passwords() as passwords:
        yield passwords


@pytest.fixture
def people(database: Database, clock: FakeClock, passwords: Passwords) -> People:
    return People(database, clock, passwords)


async def entries(database: Database) -> list[audit.Entry]:
    return await database.read(partial(audit.newest, limit=50))


@pytest.mark.rule("CH-114")
async def test_the_first_start_makes_one_owner_and_no_later_one_does(people: People, database: Database) -> None:
    owners = await asyncio.gather(*(people.ensure_owner() for _ in range(8)))
    assert len({owner.id for owner in owners}) == 1
    assert (owners[0].role, owners[0].scope, owners[0].has_password) == ("owner", "root", False)
    assert len(await people.everybody()) == 1
    await people.create(CONSOLE, name="Second", role="owner")
    await people.change(CONSOLE, owners[0].id, role="user")
    assert (await people.ensure_owner()).role == "user"  # what an operator decided stays


@pytest.mark.rule("CH-118")
async def test_a_new_person_has_a_scope_of_their_own(people: People) -> None:
    ben = await people.create(CONSOLE, name="Ben", role="user")
    assert ben.scope == f"people/{ben.id}"
    assert await people.person(ben.id) == ben
    assert await people.person("p-nobody") is None


@pytest.mark.rule("CH-118")
@pytest.mark.parametrize("change", [{"role": "admin"}, {"role": "guest"}, {"blocked": True}])
async def test_the_last_owner_stays(people: People, change: dict[str, object]) -> None:
    owner = await people.ensure_owner()
    with pytest.raises(LastOwner):
        await people.change(CONSOLE, owner.id, **change)  # type: ignore[arg-type]
    assert await people.person(owner.id) == owner
    blocked = await people.create(CONSOLE, name="Blocked", role="owner")
    await people.change(CONSOLE, blocked.id, blocked=True)
    with pytest.raises(LastOwner):  # a blocked owner cannot change roles, so they do not count
        await people.change(CONSOLE, owner.id, **change)  # type: ignore[arg-type]
    await people.create(CONSOLE, name="Cara", role="owner")
    assert await people.change(CONSOLE, owner.id, **change) != owner  # type: ignore[arg-type]


@pytest.mark.rule("CH-118")
async def test_two_owners_who_remove_each_other_at_once_leave_one(people: People) -> None:
    ada = await people.ensure_owner()
    for round_number in range(5):
        ben = await people.create(CONSOLE, name=f"Ben {round_number}", role="owner")
        results = await asyncio.gather(
            people.change(Actor(id=ada.id), ben.id, role="user"), people.change(Actor(id=ben.id), ada.id, role="user"), return_exceptions=True
        )
        assert [type(result) for result in results].count(LastOwner) == 1
        owners = [person for person, _ in await people.everybody() if person.role == "owner"]
        assert len(owners) == 1
        await people.change(CONSOLE, ada.id, role="owner")
        for person in owners:
            if person.id != ada.id:
                await people.change(CONSOLE, person.id, role="user")


@pytest.mark.rule("WD-34")
@pytest.mark.parametrize("name", ["Ada", "アダさん", "阿达"])
async def test_the_name_told_in_talk_is_the_accounts_where_nobody_chose_one(people: People, name: str) -> None:
    owner = await people.ensure_owner()
    me = Actor(id=owner.id)
    await people.call(me, owner.id, name)
    assert (await people.ensure_owner()).name == name
    await people.call(me, owner.id, "Another")
    assert (await people.ensure_owner()).name == name, "somebody chose it"


@pytest.mark.rule("WD-34")
async def test_a_name_to_sign_in_with_is_not_changed_by_talk(people: People) -> None:
    owner = await people.ensure_owner()
    await people.change(CONSOLE, owner.id, password="correct horse")
    await people.call(Actor(id=owner.id), owner.id, "Ada")
    assert await people.sign_in("Owner", "correct horse") is not None


@pytest.mark.rule("WO-60")
async def test_only_the_right_password_signs_in(people: People) -> None:
    await people.ensure_owner()
    assert not await people.has_accounts()
    ada = await people.create(CONSOLE, name="Ada", role="user", password="correct horse")
    assert ada.has_password
    assert await people.has_accounts()
    assert await people.sign_in("Ada", "correct horse") == ada
    assert await people.sign_in(" ａＤＡ ", "correct horse") == ada
    for name, password in [("Ada", "wrong horse"), ("Ada", ""), ("Nobody", "correct horse"), ("Owner", ""), ("", ""), ("Ada\0", "\ud800")]:
        assert await people.sign_in(name.replace("\0", ""), password) is None
    await people.change(CONSOLE, ada.id, blocked=True)
    assert await people.sign_in("Ada", "correct horse") is None
    assert not await people.has_accounts()  # nobody could sign in


async def test_a_password_typed_on_another_keyboard_is_the_same(people: People) -> None:
    await people.create(CONSOLE, name="Ada", role="user", password="café ｶﾞ 12")
    assert await people.sign_in("ada", "cafe\u0301 ガ 12") is not None


class CountingHasher:
    """Argon2's face, counting the costly calls."""

    def __init__(self) -> None:
        self.verified = 0

    def hash(self, password: str) -> str:
        return f"hash of {password}"

    def verify(self, stored: str, password: str) -> bool:
        if not stored.startswith("hash of "):
            raise InvalidHashError
        self.verified += 1
        return stored == self.hash(password)


@pytest.mark.rule("WO-61")
async def test_an_unknown_name_costs_as_much_as_a_known_one(database: Database, clock: FakeClock) -> None:
    hasher = CountingHasher()
    with Passwords(hasher) as passwords:  # type: ignore[arg-type]
        people = People(database, clock, passwords)
        await people.ensure_owner()
        await people.create(CONSOLE, name="Ada", role="user", password="correct horse")
        for name in ("Ada", "Nobody", "Owner"):
            before = hasher.verified
            assert await people.sign_in(name, "wrong horse") is None
            assert hasher.verified == before + 1


@pytest.mark.parametrize("password", ["", "1234567", "x" * 1025])
async def test_a_password_too_short_or_too_long_changes_nothing(people: People, password: str) -> None:
    ada = await people.create(CONSOLE, name="Ada", role="user", password="correct horse")
    with pytest.raises(PasswordUnfit):
        await people.change(CONSOLE, ada.id, name="Eve", password=password)
    assert await people.sign_in("Ada", "correct horse") == ada


async def test_names_are_unique_only_among_those_who_sign_in(people: People) -> None:
    ada = await people.create(CONSOLE, name="Ada", role="user", password="correct horse")
    for name in ("ada", "ＡＤＡ", "ADA "):
        with pytest.raises(NameTaken):
            await people.create(CONSOLE, name=name, role="user", password="battery staple")
    other = await people.create(CONSOLE, name="Ada", role="user")
    with pytest.raises(NameTaken):
        await people.change(CONSOLE, other.id, password="battery staple")
    await people.change(CONSOLE, other.id, name="Ada B.", password="battery staple")
    with pytest.raises(NameTaken):
        await people.change(CONSOLE, other.id, name="ada")
    assert await people.sign_in("ada", "correct horse") == ada


def test_sign_in_names_fold_what_looks_the_same() -> None:
    assert sign_in_name("Straße") == sign_in_name("STRASSE ")
    assert sign_in_name("ｿﾗ") == sign_in_name("ソラ")
    assert sign_in_name("Ada") != sign_in_name("Adá")


@pytest.mark.case("WP-13")
async def test_a_password_survives_restarts(database: Database, clock: FakeClock) -> None:
    for start in range(3):
        with quick_passwords() as passwords:
            people = People(database, clock, passwords)
            owner = await people.ensure_owner()
            if start == 0:
                await people.change(CONSOLE, owner.id, name="Ada", password="correct horse")
            assert await people.sign_in("Ada", "correct horse") == await people.person(owner.id)


async def test_a_person_is_found_by_identity_and_an_identity_can_move(people: People) -> None:
    ada = await people.create(CONSOLE, name="Ada", role="user")
    ben = await people.create(CONSOLE, name="Ben", role="user")
    identity = Identity(channel="telegram", account="main", platform_user_id="700666", name="ada_l")
    assert await people.find_by_identity("telegram", "main", "700666") is None
    await people.link(CONSOLE, ada.id, identity)
    assert await people.find_by_identity("telegram", "main", "700666") == ada
    assert await people.find_by_identity("telegram", "second", "700666") is None
    assert await people.find_by_identity("discord", "main", "700666") is None
    await people.link(CONSOLE, ben.id, identity)
    assert await people.find_by_identity("telegram", "main", "700666") == ben
    assert dict(await people.everybody()) == {ada: (), ben: (identity,)}
    with pytest.raises(NoSuchPerson):
        await people.link(CONSOLE, "p-nobody", identity)


@pytest.mark.rule("WO-64", "CH-121")
async def test_each_change_is_in_the_audit_log_without_its_secrets(people: People, database: Database, clock: FakeClock) -> None:
    by = Actor(id="p-boss", address="203.0.113.7")
    ada = await people.create(by, name="Ada", role="user", password="correct horse")
    clock.advance(minutes=1)
    await people.change(by, ada.id, role="admin", subscriber_until=date(2027, 1, 31), name="Ada")
    await people.change(by, ada.id, password="battery staple")
    await people.change(by, ada.id, role="admin")  # nothing changes
    newest = await entries(database)
    assert [(entry.action, entry.target, entry.actor, entry.address) for entry in newest] == [
        ("person.change", ada.id, "p-boss", "203.0.113.7"),
        ("person.change", ada.id, "p-boss", "203.0.113.7"),
        ("person.create", ada.id, "p-boss", "203.0.113.7"),
    ]
    assert newest[0].before == newest[0].after == {"password_hash": "***"}
    assert newest[1].before == {"role": "user", "subscriber_until": None}
    assert newest[1].after == {"role": "admin", "subscriber_until": "2027-01-31"}
    assert newest[1].at == clock.now
    assert newest[2].before is None
    assert newest[2].after == {"name": "Ada", "role": "user", "password_hash": "***"}


async def test_a_refused_change_leaves_no_trace(people: People, database: Database) -> None:
    owner = await people.ensure_owner()
    with pytest.raises(LastOwner):
        await people.change(CONSOLE, owner.id, role="user")
    with pytest.raises(NoSuchPerson):
        await people.change(CONSOLE, "p-nobody", role="user")
    assert await entries(database) == []


async def test_whoever_watches_is_told_of_each_change(people: People) -> None:
    told: list[str] = []
    people.watch(told.append)
    ada = await people.create(CONSOLE, name="Ada", role="user")
    await people.change(CONSOLE, ada.id, role="admin")
    assert told == [ada.id]


PERSON = Person(
    id=PersonId("p-1"), name="", role="user", scope="", language="", timezone="", privacy="", has_password=False, blocked=False,
    subscriber_until=None, created_at=FakeClock().now,
)  # fmt: skip


@pytest.mark.rule("CH-118")
@pytest.mark.parametrize(
    ("asker", "target", "change", "role_change", "create"),
    [
        ("owner", "owner", True, True, True),
        ("owner", "guest", True, True, True),
        ("admin", "owner", False, False, False),
        ("admin", "admin", False, False, False),
        ("admin", "user", True, False, True),
        ("admin", "guest", True, False, True),
        ("user", "guest", False, False, False),
        ("guest", "guest", False, False, False),
    ],
)
def test_nobody_rises_by_changing_others(asker: Role, target: Role, change: bool, role_change: bool, create: bool) -> None:
    one, other = replace(PERSON, role=asker), replace(PERSON, id=PersonId("p-2"), role=target)
    assert may_change(one, other) is change
    assert may_change(one, other, role=True) is role_change
    assert may_create(one, target) is create
    blocked = replace(one, blocked=True)
    assert not may_change(blocked, other)
    assert not may_create(blocked, target)


def test_an_admin_may_change_themself_but_not_their_role() -> None:
    admin = replace(PERSON, role="admin")
    assert may_change(admin, admin)
    assert not may_change(admin, admin, role=True)


@pytest.mark.rule("WO-64")
def test_secrets_are_masked_however_deep_they_lie() -> None:
    shown = masked({"api_key": "k", "a": [{"password": "p", "empty_token": ""}], "secret_name": "NAME", "name": "Ada", "has_token": True})
    assert shown == {"api_key": "***", "a": [{"password": "***", "empty_token": ""}], "secret_name": "NAME", "name": "Ada", "has_token": True}
