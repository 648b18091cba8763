"""Who may give a command, and where (section 9 of the workspace rules, CH-118, WD-115). Pure: the table says it, this decides it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from gateway.access import includes


class Who(StrEnum):
    """Each role includes the ones before it. In a group `PERSON` is a manager of that space; `MEMBER` is a user, or a manager there. `MAKER` began
    what the command is about (a turn, a task) or manages the place: the handler looks, for only it knows what is meant."""

    ALL = "all"
    MAKER = "maker"
    USER = "user"
    MEMBER = "member"
    PERSON = "person"
    ADMIN = "role admin"
    OWNER = "owner"


@dataclass(frozen=True, slots=True, kw_only=True)
class Caller:
    """`manages`: the platform names them an administrator of the group; every admin and the owner manages every group."""

    role: str
    in_group: bool
    manages: bool = False


# The role in a private chat, and the one in a group that needs no manager's right; None: only that right counts.
_ROLES: dict[Who, tuple[str, str | None]] = {
    Who.ALL: ("guest", "guest"),
    Who.MAKER: ("guest", "guest"),
    Who.USER: ("user", "user"),
    Who.MEMBER: ("user", "user"),
    Who.PERSON: ("user", None),
    Who.ADMIN: ("admin", "admin"),
    Who.OWNER: ("owner", "owner"),
}
_BY_MANAGERS = (Who.MEMBER, Who.PERSON)


def role_at_the_door(who: Who) -> str:
    """The least role with which a command may pass intake, where nobody has asked the platform yet who manages a group."""
    return "guest" if who in _BY_MANAGERS else _ROLES[who][0]


def asks_managers(who: Who, caller: Caller) -> bool:
    """Whether the answer hangs on who manages the group."""
    return caller.in_group and who in _BY_MANAGERS and not includes(caller.role, "admin")


def may(who: Who, caller: Caller) -> bool:
    alone, in_group = _ROLES[who]
    if not caller.in_group:
        return includes(caller.role, alone)
    if in_group is not None and includes(caller.role, in_group):
        return True
    return who in _BY_MANAGERS and (caller.manages or includes(caller.role, "admin"))


def refusal(who: Who, caller: Caller, *, private: bool) -> str:
    """The sentence that says who may, as a key of the catalogue; empty when the caller may. `private`: only in a private chat."""
    if not may(who, caller):
        return "only_managers" if caller.in_group and who in _BY_MANAGERS else "not_allowed"
    return "only_private" if private and caller.in_group else ""


def role_named(who: Who) -> str:
    """The role that `not_allowed` names."""
    return _ROLES[who][0]
