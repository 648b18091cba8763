"""A person, how platforms know them, and what admin and owner may do to others (CH-118). Values and pure rules; `gateway.people` keeps them."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from datetime import date, datetime
from typing import Literal, TypeAlias

from gateway.access import includes
from memory.ids import PersonId

Role: TypeAlias = Literal["guest", "user", "admin", "owner"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Person:
    """One human. `scope` is where their files lie: "root", or "people/<id>" (WD-9). `subscriber_until` is the last day of it."""

    id: PersonId
    name: str
    role: Role
    scope: str
    language: str
    timezone: str
    privacy: str
    has_password: bool
    blocked: bool
    subscriber_until: date | None
    created_at: datetime

    def may(self, needed: Role) -> bool:
        """Each role includes the ones before it; a blocked person may nothing."""
        return not self.blocked and includes(self.role, needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Identity:
    """How a platform knows a person. `name` is what it shows there, never a reason to admit anybody (CH-111)."""

    channel: str
    account: str
    platform_user_id: str
    name: str = ""


def sign_in_name(name: str) -> str:
    """The form under which a name is unique among those who sign in: `Ａda`, `ada` and `ADA ` are one."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold()).strip()


def may_create(asker: Person, role: Role) -> bool:
    """An owner gives any role; an admin adds users and guests."""
    return asker.may("owner") or (asker.may("admin") and not includes(role, "admin"))


def may_change(asker: Person, target: Person, *, role: bool = False) -> bool:
    """An owner changes everybody. An admin changes users, guests and themself, and no role (`role` says that one is to change).

    Passwords and login links count as changes: whoever could give an owner a new one would be an owner.
    """
    if asker.may("owner"):
        return True
    return asker.may("admin") and not role and (target.id == asker.id or not includes(target.role, "admin"))
