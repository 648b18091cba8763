"""Two accounts of one human become one person: a one-time code from the one, given in the other, and a yes in both (WD-13).

A side is a chat, where it is told how things stand, or the page itself (`PAGE`), which looks.

Nobody is linked by a name or a guess. The bigger memory stays where it is, the owner's always; the other's lines are put behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias

import sqlalchemy as sa

from channels.message import Address
from gateway import buttons, joining, link_files, notices, people, tries
from gateway.arrivals import inbox
from gateway.audit import Actor
from gateway.buttons import Question
from gateway.delivery import outbox_store
from gateway.language import guess, say
from gateway.pairing_codes import code_hash, new_code
from gateway.people import People
from gateway.person import Identity
from memory.conversations import Conversation, last_words
from memory.database import Database
from memory.pairing_schema import account_links
from memory.schema import conversations, identities
from memory.scopes import ROOT, scope_or_none
from memory.workspace_threads import WorkspaceThreads

LIFETIME = timedelta(minutes=10)
TRIED = "linking.tries"
TRIES, TRIES_IN = 5, timedelta(hours=1)  # codes that one person may give; right ones count too: a guesser always has one of their own

PAGE = ""  # in place of a chat

Agreed: TypeAlias = Literal["none", "which", "waits", "joined"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the two, as the other is shown it. `accounts`: `telegram:main` and so on, or `web` for one who has none."""

    person_id: str
    chat_id: str
    name: str
    accounts: str
    language: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending:
    """How a link of somebody stands: its number, until when, with whom (None: nobody has given the code yet), and whether they said yes already."""

    id: int
    until: datetime
    other: Side | None
    agreed: bool


class Linking:
    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        people: People,
        clock: Callable[[], datetime],
        wake_jobs: Callable[[], None] = lambda: None,
    ) -> None:
        self._db = db
        self._files = files
        self._people = people
        self._clock = clock
        self._wake_jobs = wake_jobs

    async def begin(self, person_id: str, chat_id: str) -> str:
        """A code for the other account; an earlier one of this person is dead."""
        now, code = self._clock(), new_code()

        def work(connection: sa.Connection) -> None:
            connection.execute(_PRUNE, {"now": now})
            connection.execute(sa.delete(account_links).where(account_links.c.asker_id == person_id))
            values = {"code_hash": code_hash(connection, code, now), "asker_id": person_id, "asker_chat": chat_id}
            connection.execute(sa.insert(account_links), {**values, "expires_at": now + LIFETIME})

        await self._db.write(work)
        return code

    async def pending(self, person_id: str) -> Pending | None:
        """What waits for this person's yes or their code, that first which they can do something about; None when nothing does."""
        links = await self._db.read(partial(_links, person_id=person_id, now=self._clock()))
        return min(links, key=lambda each: (each.other is None, each.agreed), default=None)

    async def offers(self, person_id: str) -> list[Pending]:
        """The links of this person whose code was given, newest first: each ends with two yeses, or one no."""
        links = await self._db.read(partial(_links, person_id=person_id, now=self._clock()))
        return [each for each in links if each.other is not None]

    async def give(self, code: str, person_id: str, chat_id: str) -> Side | None:
        """The code was given in another chat: whose it is, and that side is told. None for a wrong one; the same person for both is no fault here."""
        now = self._clock()

        def work(connection: sa.Connection) -> Side | None:
            if not tries.take(connection, TRIED, person_id, now, limit=TRIES, window=TRIES_IN):
                return None
            hashed = code_hash(connection, code, now)
            row = connection.execute(_BY_CODE, {"code": hashed, "now": now}).first() if hashed else None
            if row is None or row.giver_id not in (None, person_id):
                return None
            asker = _side(connection, row.asker_id, row.asker_chat)
            if asker is not None and row.asker_id != person_id:
                values = {"giver_id": person_id, "giver_chat": chat_id, "code_hash": "", "expires_at": now + LIFETIME}
                connection.execute(sa.update(account_links).where(account_links.c.id == row.id).values(**values))
                giver = _side(connection, person_id, chat_id)
                if giver is not None:
                    text = say(asker.language, "link_given", name=giver.name, accounts=giver.accounts)
                    _tell(connection, asker, text, once=f"link-{row.id}", now=now, question=question(asker.language, row.id, giver))
            return asker

        found = await self._db.write(work)
        self._wake_jobs()
        return found

    async def agree(self, by: Actor, person_id: str, *, link_id: int | None) -> Agreed:
        """A yes from one of the two; with the second they are one person. `link_id`: which link is meant; without it a yes counts only while there is
        one, and for a link that is not there it is "which" as long as there are others."""
        now = self._clock()
        links = await self._db.read(partial(_open, person_id=person_id, now=now))
        meant = [row for row in links if link_id in (None, row.id)]
        if len(meant) != 1:
            return "which" if links else "none"
        link_id = meant[0].id
        keep, gone = await self._keeper(meant[0].asker_id, meant[0].giver_id)

        def work(connection: sa.Connection) -> Agreed:
            row = next((each for each in _open(connection, person_id, now) if each.id == link_id), None)
            if row is None or {row.asker_id, row.giver_id} != {keep, gone}:
                return "none"
            mine = "asker_agreed" if row.asker_id == person_id else "giver_agreed"
            theirs = row.giver_agreed if mine == "asker_agreed" else row.asker_agreed
            if not theirs:
                connection.execute(sa.update(account_links).where(account_links.c.id == row.id).values({mine: True}))
                return "waits"
            other = _side(connection, *((row.giver_id, row.giver_chat) if mine == "asker_agreed" else (row.asker_id, row.asker_chat)))
            self.join_now(connection, keep=keep, gone=gone, by=by, language=other.language if other else "en")
            connection.execute(sa.delete(account_links).where(account_links.c.id == row.id))
            if other is not None:
                _tell(connection, other, say(other.language, "link_done"), once=f"linked-{row.id}", now=now)
            return "joined"

        became = await self._db.write(work)
        if became == "joined":
            self.told(keep, gone)
        return became

    async def refuse(self, person_id: str, *, link_id: int | None = None) -> bool:
        """A no from one of the two ends the link `link_id`, or all that are theirs; whether there was anything."""
        mine = sa.or_(account_links.c.asker_id == person_id, account_links.c.giver_id == person_id)
        if link_id is not None:
            mine &= account_links.c.id == link_id
        ended = await self._db.write(lambda connection: connection.execute(sa.delete(account_links).where(mine)).rowcount)
        return ended > 0

    async def join(self, by: Actor, one: str, other: str) -> None:
        """Both are one person, at once: each has just been proven by another way."""
        keep, gone = await self._keeper(one, other)

        def work(connection: sa.Connection) -> None:
            kept = people.find(connection, keep)
            self.join_now(connection, keep=keep, gone=gone, by=by, language=kept.language if kept and kept.language else "en")

        await self._db.write(work)
        self.told(keep, gone)

    def join_now(self, connection: sa.Connection, *, keep: str, gone: str, by: Actor, language: str) -> None:
        """The two are one, in the caller's transaction; `told` comes after its commit."""
        now = self._clock()
        scopes = joining.join(connection, keep=keep, gone=gone, by=by, now=now)
        heading = say(language, "link_heading", date=f"{now:%Y-%m-%d}")
        link_files.order(connection, keep=scopes[0], gone=scopes[1], heading=heading)

    def told(self, *person_ids: str) -> None:
        """Whoever keeps copies of these people hears of the change, and the files begin to move."""
        for person_id in person_ids:
            self._people.changed(person_id)
        self._wake_jobs()

    async def unlink(self, by: Actor, chat: Conversation, sender_id: str, *, before: int) -> bool:
        """The account of this chat becomes a person of its own; False when nothing else belongs to its person. `before`: the row of the command."""
        now = self._clock()

        def work(connection: sa.Connection) -> str:
            who = _account(connection, chat, sender_id)
            person = people.find(connection, chat.person_id or "")
            if who is None or person is None or (len(_identities(connection, person.id)) < 2 and not person.has_password):
                return ""
            inbox.end_open(connection, chat.id, before, now=now)
            outbox_store.cancel(connection, chat.key, now)
            return joining.part(connection, who, chat, by=by, now=now)

        new = await self._db.write(work)
        if new:
            self.told(new, str(chat.person_id))
        return bool(new)

    async def _keeper(self, asker_id: str, giver_id: str) -> tuple[str, str]:
        """Who stays and who joins: the owner of the root scope stays, else whoever has more in files, else the one who asked."""
        sizes = [await self._size(each) for each in (asker_id, giver_id)]
        return (asker_id, giver_id) if sizes[0] >= sizes[1] else (giver_id, asker_id)

    async def _size(self, person_id: str) -> float:
        person = await self._people.person(person_id)
        scope = scope_or_none(person.scope) if person else None
        if scope is None:
            return -1
        if scope == ROOT:
            return float("inf")
        return sum(info.size for info in await self._files.read(lambda workspace: workspace.files(scope)))


_PRUNE = sa.delete(account_links).where(account_links.c.expires_at <= sa.bindparam("now"))
_BY_CODE = sa.select(account_links).where(account_links.c.code_hash == sa.bindparam("code"), account_links.c.expires_at > sa.bindparam("now"))
_MINE = (
    sa.select(account_links)
    .where(
        sa.or_(account_links.c.asker_id == sa.bindparam("me"), account_links.c.giver_id == sa.bindparam("me")),
        account_links.c.expires_at > sa.bindparam("now"),
    )
    .order_by(account_links.c.id.desc())
)
_OPEN = _MINE.where(account_links.c.giver_id.is_not(None))
_ACCOUNTS = sa.select(identities).where(identities.c.person_id == sa.bindparam("person")).order_by(identities.c.id)
_CHAT = sa.select(conversations.c.key).where(conversations.c.id == sa.bindparam("chat"))


def _open(connection: sa.Connection, person_id: str, now: datetime) -> Sequence[sa.Row[Any]]:
    return connection.execute(_OPEN, {"me": person_id, "now": now}).all()


def _links(connection: sa.Connection, person_id: str, now: datetime) -> list[Pending]:
    found: list[Pending] = []
    for row in connection.execute(_MINE, {"me": person_id, "now": now}).all():
        asked = row.asker_id == person_id
        theirs = (row.giver_id, row.giver_chat) if asked else (row.asker_id, row.asker_chat)
        other = _side(connection, *theirs) if row.giver_id is not None else None
        found.append(Pending(id=row.id, until=row.expires_at, other=other, agreed=row.asker_agreed if asked else row.giver_agreed))
    return found


def _identities(connection: sa.Connection, person_id: str) -> list[Identity]:
    return [
        Identity(channel=row.channel, account=row.account, platform_user_id=row.platform_user_id, name=row.name)
        for row in connection.execute(_ACCOUNTS, {"person": person_id})
    ]


def _side(connection: sa.Connection, person_id: str, chat_id: str) -> Side | None:
    person = people.find(connection, person_id)
    if person is None:
        return None
    known = ", ".join(f"{each.channel}:{each.account} {each.platform_user_id}" for each in _identities(connection, person_id))
    key = connection.execute(_CHAT, {"chat": chat_id}).scalar()
    where = known or (Address.parse(key).account.channel if key else "web" if chat_id == PAGE else "")
    language = person.language or guess(last_words(connection, chat_id))
    return Side(person_id=person_id, chat_id=chat_id, name=person.name, accounts=where, language=language)


def question(language: str, link_id: int, other: Side, command: str = "/link") -> Question:
    """Whether to be one person with `other`, as buttons: for as long as the link is open."""
    return buttons.linking(language, link_id, other.name, accept=f"{command} yes", refuse=f"{command} no", open_for=LIFETIME)


def _tell(connection: sa.Connection, side: Side, text: str, *, once: str, now: datetime, question: Question | None = None) -> None:
    if side.chat_id != PAGE:
        notices.tell_here(
            connection, side.chat_id, "", text, once=f"{once}-{now.isoformat()}", language=side.language, now=now, question=question,
            person=side.person_id,
        )  # fmt: skip


def _account(connection: sa.Connection, chat: Conversation, sender_id: str) -> Identity | None:
    """How the platform of this chat knows the one who writes; None on the page, where people sign in."""
    mine = _identities(connection, chat.person_id or "")
    return next((each for each in mine if (each.channel, each.account, each.platform_user_id) == (chat.channel, chat.account, sender_id)), None)
