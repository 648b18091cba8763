"""People in JSON, in and out: what a name and a password may be, what is shown of a person, and which refusal follows which error."""

from __future__ import annotations

import re
from typing import Annotated, TypeAlias

from pydantic import AfterValidator, StringConstraints

from channels.message import clean, is_blank
from gateway.http.fault import HttpFault, not_found
from gateway.passwords import LONGEST, SHORTEST
from gateway.people import LastOwner, NameTaken, NoSuchPerson, PasswordUnfit, PeopleError
from gateway.person import Identity, Person

_DIRECTIONS = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069]")


def _name(text: str) -> str:
    """One line without direction marks, so that a name on an operator's page is what it looks like (WP-16)."""
    name = " ".join(_DIRECTIONS.sub("", clean(text)).split())
    if is_blank(name):
        raise ValueError("a name has at least one visible character")
    return name


Name: TypeAlias = Annotated[str, StringConstraints(max_length=80), AfterValidator(_name)]
GivenPassword: TypeAlias = Annotated[str, StringConstraints(max_length=LONGEST)]


def shown(person: Person) -> dict[str, object]:
    """What a person sees of themself."""
    return {
        "id": person.id,
        "name": person.name,
        "role": person.role,
        "language": person.language,
        "timezone": person.timezone,
        "has_password": person.has_password,
    }


def listed(person: Person, identities: tuple[Identity, ...] = ()) -> dict[str, object]:
    """What operators see of a person."""
    return {
        "id": person.id,
        "name": person.name,
        "role": person.role,
        "blocked": person.blocked,
        "has_password": person.has_password,
        "subscriber_until": person.subscriber_until,
        "identities": list(identities),
        "created_at": person.created_at,
    }


def refusal(error: PeopleError) -> HttpFault:
    match error:
        case NoSuchPerson():
            return not_found()
        case LastOwner():
            return HttpFault(409, "last_owner", "error_last_owner")
        case NameTaken():
            return HttpFault(409, "name_taken", "error_name_taken", param="name")
        case PasswordUnfit():
            return HttpFault(400, "password_short", "error_password_short", param="password", limit=SHORTEST)
        case _:
            raise error
