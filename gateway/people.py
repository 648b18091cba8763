"""People: who exists, how they are recognised, how they sign in and what changes about them (CH-114, CH-118, CH-121).

PeopleError
├── NoSuchPerson
├── LastOwner           the change would leave nobody who may change roles
├── NameTaken           somebody with a password already signs in with that name
└── PasswordUnfit       too short or too long
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import date, datetime
from functools import partial
from typing import Any, TypedDict, Unpack

import sqlalchemy as sa
from sqlalchemy.exc import IntegrityError

from gateway import audit
from gateway.audit import Actor
from gateway.passwords import LONGEST, SHORTEST, Passwords
from gateway.person import Identity, Person, Role, sign_in_name
from memory.database import Database
from memory.ids import PersonId, new_person
from memory.schema import identities, login_links, people, sessions

ROOT_SCOPE = "root"
UNNAMED = "Owner"  # what the first owner is called until somebody says otherwise


class PeopleError(Exception):
    pass


class NoSuchPerson(PeopleError):
    pass


class LastOwner(PeopleError):
    pass


class NameTaken(PeopleError):
    pass


class PasswordUnfit(PeopleError):
    pass


class Changes(TypedDict, total=False):
    """What may be changed of a person; a missing key stays as it is."""

    name: str
    role: Role
    language: str
    timezone: str
    password: str
    blocked: bool
    subscriber_until: date | None


_BY_ID = sa.select(people).where(people.c.id == sa.bindparam("id"))
_BY_SCOPE = sa.select(people).where(people.c.scope == sa.bindparam("scope"))
_BY_SIGN_IN = sa.select(people).where(people.c.sign_in == sa.bindparam("sign_in"))
_BY_IDENTITY = (
    sa.select(people)
    .join(identities, identities.c.person_id == people.c.id)
    .where(
        identities.c.channel == sa.bindparam("channel"),
        identities.c.account == sa.bindparam("account"),
        identities.c.platform_user_id == sa.bindparam("platform_user_id"),
    )
)
_ALL = sa.select(people).order_by(people.c.created_at, people.c.id)
_IDENTITIES = sa.select(identities).order_by(identities.c.id)
_IDENTITIES_OF = _IDENTITIES.where(identities.c.person_id == sa.bindparam("of"))
_WITH_PASSWORD = sa.select(sa.exists().where(people.c.password_hash != "", sa.not_(people.c.blocked)))
_OWNERS = sa.select(people.c.id).where(people.c.role == "owner", sa.not_(people.c.blocked)).order_by(people.c.id).with_for_update()
_ADD = sa.insert(people)
_ADD_IDENTITY = sa.insert(identities)
_SESSIONS_BUT = sa.delete(sessions).where(sessions.c.person_id == sa.bindparam("of"), sessions.c.token_hash != sa.bindparam("spare"))
_LINKS_OF = sa.delete(login_links).where(login_links.c.person_id == sa.bindparam("of"))


def find(connection: sa.Connection, person_id: str) -> Person | None:
    return _one(connection.execute(_BY_ID, {"id": person_id}))


def find_by_identity(connection: sa.Connection, identity: Identity) -> Person | None:
    keys = {"channel": identity.channel, "account": identity.account, "platform_user_id": identity.platform_user_id}
    return _one(connection.execute(_BY_IDENTITY, keys))


def find_by_scope(connection: sa.Connection, scope: str) -> Person | None:
    return _one(connection.execute(_BY_SCOPE, {"scope": scope}))


class People:
    """The people of one database. Whoever keeps copies of a `Person` asks to be told of changes with `watch`."""

    def __init__(self, db: Database, clock: Callable[[], datetime], passwords: Passwords) -> None:
        self._db = db
        self._clock = clock
        self._passwords = passwords
        self._watchers: list[Callable[[PersonId], None]] = []

    def watch(self, changed: Callable[[PersonId], None]) -> None:
        """`changed(person_id)` is called after every committed change of that person, before the change returns (CH-121)."""
        self._watchers.append(changed)

    def changed(self, person_id: str) -> None:
        """Somebody else's transaction changed this person, and is committed."""
        self._tell(PersonId(person_id))

    async def ensure_owner(self) -> Person:
        """The person of the root scope, made as the first owner when there is none; left as it is otherwise (CH-114, WP-13)."""
        if root := await self._db.read(partial(_root)):
            return root
        try:
            return await self._db.write(partial(_add, name=UNNAMED, role="owner", scope=ROOT_SCOPE, at=self._clock()))
        except IntegrityError:  # another process was first
            return await self.ensure_owner()

    async def has_accounts(self) -> bool:
        """Whether anybody can sign in with a password (WO-60)."""
        return bool(await self._db.read(lambda connection: connection.execute(_WITH_PASSWORD).scalar()))

    async def person(self, person_id: str) -> Person | None:
        return await self._db.read(partial(find, person_id=person_id))

    async def find_by_identity(self, channel: str, account: str, platform_user_id: str) -> Person | None:
        identity = Identity(channel=channel, account=account, platform_user_id=platform_user_id)
        return await self._db.read(partial(find_by_identity, identity=identity))

    async def find_by_sign_in(self, name: str) -> Person | None:
        return await self._db.read(lambda connection: _one(connection.execute(_BY_SIGN_IN, {"sign_in": sign_in_name(name)})))

    async def everybody(self) -> list[tuple[Person, tuple[Identity, ...]]]:
        """All people with their identities, in the order in which they came."""
        return await self._db.read(_everybody)

    async def identities(self, person_id: str) -> tuple[Identity, ...]:
        return await self._db.read(partial(_identities_of, person_id=person_id))

    async def create(self, by: Actor, *, name: str, role: Role, password: str = "") -> Person:
        """A new person. Raises NameTaken and PasswordUnfit."""
        hashed = await self._hash(password) if password else ""
        return await self._write(partial(_create, by=by, at=self._clock(), name=name, role=role, hashed=hashed))

    async def link(self, by: Actor, person_id: str, identity: Identity) -> None:
        """`identity` is this person from now on, whoever it was before. Raises NoSuchPerson."""
        await self._write(partial(_link, by=by, at=self._clock(), person_id=person_id, identity=identity))
        self._tell(PersonId(person_id))

    async def change(self, by: Actor, person_id: str, *, spare_session: str = "", **changes: Unpack[Changes]) -> Person:
        """Change what is named. Raises NoSuchPerson, LastOwner, NameTaken and PasswordUnfit; then nothing has changed.

        A new password and a block end the person's sessions and login links; the session whose key is `spare_session` survives a new password.
        """
        values: dict[str, Any] = {**changes}
        if "password" in changes:
            values["password_hash"] = await self._hash(values.pop("password"))
        person = await self._write(partial(_change, by=by, at=self._clock(), person_id=person_id, values=values, spare=spare_session))
        self._tell(person.id)
        return person

    async def call(self, by: Actor, person_id: str, name: str) -> None:
        """The name a person gave in talk is the account's from now on, where nobody chose one; one that somebody chose or signs in with stays."""
        person = await self.person(person_id)
        if person is not None and person.name == UNNAMED and not person.has_password:
            await self.change(by, person_id, name=name)

    async def sign_in(self, name: str, password: str) -> Person | None:
        """The person with that name and password; None for a wrong one, an unknown name and a blocked person, all after the same work."""
        found = await self._db.read(lambda connection: connection.execute(_BY_SIGN_IN, {"sign_in": sign_in_name(name)}).one_or_none())
        fits = await self._passwords.fits(found.password_hash if found else "", password)
        return _person(found) if found and fits and not found.blocked else None

    async def knows_password(self, person_id: str, password: str) -> bool:
        found = await self._db.read(lambda connection: connection.execute(_BY_ID, {"id": person_id}).one_or_none())
        return await self._passwords.fits(found.password_hash if found else "", password)

    async def _hash(self, password: str) -> str:
        if not SHORTEST <= len(password) <= LONGEST:
            raise PasswordUnfit(f"a password has {SHORTEST} to {LONGEST} characters")
        return await self._passwords.hash(password)

    async def _write(self, work: Callable[[sa.Connection], Any]) -> Any:
        try:
            return await self._db.write(work)
        except IntegrityError as error:
            if "sign_in" in str(error.orig):
                raise NameTaken("somebody already signs in with that name") from error
            raise

    def _tell(self, person_id: PersonId) -> None:
        for changed in self._watchers:
            changed(person_id)


# -- transactions ------------------------------------------------------------------------------------------------------


def _root(connection: sa.Connection) -> Person | None:
    return _one(connection.execute(_BY_SCOPE, {"scope": ROOT_SCOPE}))


def _everybody(connection: sa.Connection) -> list[tuple[Person, tuple[Identity, ...]]]:
    known: dict[str, list[Identity]] = {}
    for row in connection.execute(_IDENTITIES):
        known.setdefault(row.person_id, []).append(_identity(row))
    return [(_person(row), tuple(known.get(row.id, ()))) for row in connection.execute(_ALL)]


def _identities_of(connection: sa.Connection, person_id: str) -> tuple[Identity, ...]:
    return tuple(_identity(row) for row in connection.execute(_IDENTITIES_OF, {"of": person_id}))


def _add(connection: sa.Connection, *, name: str, role: Role, at: datetime, scope: str = "", hashed: str = "") -> Person:
    person_id = new_person()
    values = {"id": person_id, "name": name, "role": role, "scope": scope or f"people/{person_id}", "created_at": at}
    connection.execute(_ADD, {**values, "password_hash": hashed, "sign_in": sign_in_name(name) if hashed else None})
    return _existing(connection, person_id)


def _create(connection: sa.Connection, *, by: Actor, at: datetime, name: str, role: Role, hashed: str) -> Person:
    person = _add(connection, name=name, role=role, at=at, hashed=hashed)
    after = {"name": name, "role": role, "password_hash": hashed}
    audit.record(connection, by, "person.create", at=at, target=person.id, after=after)
    return person


def _link(connection: sa.Connection, *, by: Actor, at: datetime, person_id: str, identity: Identity) -> None:
    person = _existing(connection, person_id)
    keys = {"channel": identity.channel, "account": identity.account, "platform_user_id": identity.platform_user_id}
    before = find_by_identity(connection, identity)
    connection.execute(sa.delete(identities).filter_by(**keys))
    connection.execute(_ADD_IDENTITY, {**keys, "person_id": person.id, "name": identity.name, "created_at": at})
    audit.record(
        connection, by, "person.link", at=at, target=person.id, before={"person": before.id} if before else None, after={**keys, "person": person.id}
    )


def _change(connection: sa.Connection, *, by: Actor, at: datetime, person_id: str, values: dict[str, Any], spare: str) -> Person:
    if "role" in values or values.get("blocked"):
        owners = set(connection.execute(_OWNERS).scalars())  # locked: two owners cannot remove each other at once
        if owners == {person_id} and (values.get("role", "owner") != "owner" or values.get("blocked")):
            raise LastOwner("the last owner stays the owner")
    row = connection.execute(_BY_ID, {"id": person_id}).one_or_none()
    if row is None:
        raise NoSuchPerson(person_id)
    differing = {key: value for key, value in values.items() if getattr(row, key) != value}
    if not differing:
        return _person(row)
    hashed = differing.get("password_hash", row.password_hash)
    sign_in = sign_in_name(differing.get("name", row.name)) if hashed else None
    connection.execute(sa.update(people).where(people.c.id == person_id).values(**differing, sign_in=sign_in))
    if "password_hash" in differing or differing.get("blocked"):
        connection.execute(_SESSIONS_BUT, {"of": person_id, "spare": "" if differing.get("blocked") else spare})
        connection.execute(_LINKS_OF, {"of": person_id})
    before = {key: getattr(row, key) for key in differing}
    audit.record(connection, by, "person.change", at=at, target=person_id, before=_plain(before), after=_plain(differing))
    return _existing(connection, person_id)


def _plain(values: Mapping[str, object]) -> dict[str, object]:
    return {key: value.isoformat() if isinstance(value, date) else value for key, value in values.items()}


def _existing(connection: sa.Connection, person_id: str) -> Person:
    if person := find(connection, person_id):
        return person
    raise NoSuchPerson(person_id)


def _one(result: sa.CursorResult[Any]) -> Person | None:
    row = result.one_or_none()
    return None if row is None else _person(row)


def _identity(row: Any) -> Identity:
    return Identity(channel=row.channel, account=row.account, platform_user_id=row.platform_user_id, name=row.name)


def _person(row: Any) -> Person:
    return Person(
        id=PersonId(row.id),
        name=row.name,
        role=row.role,
        scope=row.scope,
        language=row.language,
        timezone=row.timezone,
        privacy=row.privacy,
        has_password=bool(row.password_hash),
        blocked=row.blocked,
        subscriber_until=row.subscriber_until,
        created_at=row.created_at,
    )
