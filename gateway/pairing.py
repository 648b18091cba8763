"""Letting people in: a stranger gets a code in their own chat, an admin says it, and they are told (CH-113, CH-114).

    PairingError        a code was not taken, and nobody was let in
    ├── WrongCode
    └── Locked          too many wrong ones: nobody is let in for an hour
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from functools import partial

import sqlalchemy as sa

from channels.message import Address, InboundEvent
from gateway import audit, pairings
from gateway import people as persons
from gateway.access import includes
from gateway.arrivals.senders import NAME_MAX
from gateway.audit import Actor
from gateway.delivery import outbox_store
from gateway.delivery.replies import Replies, Reply
from gateway.language import language_for, say
from gateway.linking import Linking
from gateway.pairings import AGAIN_AFTER, Request
from gateway.people import People
from gateway.person import Identity, Person, Role
from gateway.throttle import Throttle
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.ids import new_person, opaque
from memory.schema import identities, people
from memory.scopes import ROOT, person_scope


class PairingError(Exception):
    pass


class WrongCode(PairingError):
    pass


class Locked(PairingError):
    def __init__(self, until: datetime) -> None:
        super().__init__(f"too many wrong codes: nobody is let in until {until:%H:%M} UTC")
        self.until = until


@dataclass(frozen=True, slots=True, kw_only=True)
class LetIn:
    person: Person
    identity: Identity


class Pairing:
    """`replies` is None while no gateway runs: then nobody is told."""

    def __init__(
        self, *, db: Database, clock: Callable[[], datetime], people: People, linking: Linking, replies: Replies | None = None
    ) -> None:
        self._db = db
        self._clock = clock
        self._people = people
        self._linking = linking
        self._replies = replies
        self._lately = Throttle(1, AGAIN_AFTER)

    async def greet(self, event: InboundEvent) -> None:
        """Answer a stranger's private message with a code, at most once in ten minutes; a flood costs no look into the database."""
        now, who = self._clock(), _identity(event)
        key = f"{event.account}:{who.platform_user_id}"
        if self._lately.take(key, now) > 0:
            return
        language = language_for(event.language, event.text)

        def work(connection: sa.Connection) -> Reply:
            code = pairings.ask(connection, who, address=str(event.address), language=language, now=now)
            return self._say(connection, event.address, say(language, "pair_code", code=code), now, outbox_store.CODE_PART) if code else Reply()

        try:
            reply = await self._db.write(work)
        except StoreUnavailable:
            self._lately.forget(key)
            raise
        self._stored(event.address, reply)

    async def waiting(self) -> list[Request]:
        return await self._db.read(partial(pairings.waiting, now=self._clock()))

    async def approve(self, by: Actor, code: str, *, role: Role = "user") -> LetIn:
        """Let in the one who was given `code`, with at least `role`; as owner they become one with the owner. Raises WrongCode and Locked."""
        now = self._clock()

        def work(connection: sa.Connection) -> tuple[LetIn, str, Address, Reply] | datetime | None:
            if until := pairings.locked_until(connection, now):
                return until
            request = pairings.by_code(connection, code, now)
            if request is None:
                pairings.count_wrong(connection, now)
                return None
            pairings.forget_wrong(connection, now)
            person, gone = self._admit(connection, by, request.identity, role, request.language, now)
            address = Address.parse(request.address)
            reply = self._say(connection, address, say(request.language or "en", "pair_welcome"), now)
            return LetIn(person=person, identity=request.identity), gone, address, reply

        became = await self._db.write(work)
        if became is None:
            raise WrongCode("this code is unknown or older than an hour")
        if isinstance(became, datetime):
            raise Locked(became)
        let_in, gone, address, reply = became
        self._linking.told(let_in.person.id, *([gone] if gone else []))
        self._stored(address, reply)
        return let_in

    async def admit(self, by: Actor, who: Identity, *, role: Role = "user") -> Person:
        """Let in an account that is known without a code: the operator typed its id, or its owner has just logged in by scanning (WX-24)."""
        now = self._clock()
        person, gone = await self._db.write(lambda connection: self._admit(connection, by, who, role, "", now))
        self._linking.told(person.id, *([gone] if gone else []))
        return person

    async def decline(self, by: Actor, request_id: int) -> bool:
        """Turn somebody away, silently; they hear nothing for a day. False when nobody waits under this number."""
        now = self._clock()

        def work(connection: sa.Connection) -> bool:
            request = pairings.turn_away(connection, request_id, now)
            if request is not None:
                audit.record(connection, by, "pairing.decline", at=now, before=_plain(request.identity))
            return request is not None

        return await self._db.write(work)

    def _admit(
        self, connection: sa.Connection, by: Actor, who: Identity, role: Role, language: str, now: datetime
    ) -> tuple[Person, str]:
        """The person, and the id of one who became them."""
        pairings.drop(connection, who)
        known = persons.find_by_identity(connection, who)
        owner = persons.find_by_scope(connection, str(ROOT)) if role == "owner" else None
        gone = ""
        if owner is not None and known is not None and known.id != owner.id:
            self._linking.join_now(connection, keep=owner.id, gone=known.id, by=by, language=owner.language or language or "en")
            gone, known = known.id, owner
        elif owner is not None and known is None:
            _recognise(connection, owner.id, who, now)
            known = owner
        elif known is None:
            known = _new(connection, who, role, now)
        before = {"role": known.role}
        if not includes(known.role, role):
            connection.execute(sa.update(people).where(people.c.id == known.id).values(role=role))
        person = persons.find(connection, known.id) or known
        audit.record(connection, by, "pairing.approve", at=now, target=person.id, before=before, after={"role": person.role, **_plain(who)})
        return person, gone

    def _say(self, connection: sa.Connection, address: Address, text: str, now: datetime, prefix: str = "") -> Reply:
        if self._replies is None:
            return Reply()
        reply = self._replies.notice(address, text, part_id=f"{prefix}{opaque('n')}", now=now)
        outbox_store.put(connection, reply.parts, now)
        return reply

    def _stored(self, address: Address, reply: Reply) -> None:
        if self._replies is not None:
            self._replies.stored(str(address), reply)


def _identity(event: InboundEvent) -> Identity:
    name = event.sender_name[:NAME_MAX]
    return Identity(channel=event.account.channel, account=event.account.name, platform_user_id=event.sender_id, name=name)


def _plain(who: Identity) -> dict[str, object]:
    return {"channel": who.channel, "account": who.account, "platform_user_id": who.platform_user_id}


def _new(connection: sa.Connection, who: Identity, role: Role, now: datetime) -> Person:
    person_id = new_person()
    values = {"id": person_id, "name": who.name, "role": role, "scope": str(person_scope(person_id)), "created_at": now}
    connection.execute(sa.insert(people), values)
    _recognise(connection, person_id, who, now)
    made = persons.find(connection, person_id)
    assert made is not None, "it was inserted a line above"
    return made


def _recognise(connection: sa.Connection, person_id: str, who: Identity, now: datetime) -> None:
    connection.execute(sa.insert(identities), {"person_id": person_id, "name": who.name, "created_at": now, **_plain(who)})
