"""Areas of the index: whose chunks a search compares (WD-10, WD-127). Pure.

An area is one scope, or the pages that everyone may read, which lie in the root and are kept apart from it. Every query of the index names areas; an
access that reads a part of a scope in another way than these reads nothing here.
"""

from __future__ import annotations

from typing import NewType

from memory.layout import Role
from memory.scopes import PUBLIC, ROOT, Access, Scope

IndexArea = NewType("IndexArea", str)

EVERYONE = IndexArea("public")


def area_of(scope: Scope, role: Role) -> IndexArea:
    """Where the chunks of a file belong."""
    return EVERYONE if role is Role.PUBLIC else IndexArea(str(scope))


def areas_of(access: Access) -> tuple[IndexArea, ...]:
    """What a search with `access` may compare; empty for none."""
    found: list[IndexArea] = []
    for part in access.reads:
        if not part.under:
            found.append(IndexArea(str(part.scope)))
        if part.scope == ROOT and part.under in ("", PUBLIC):
            found.append(EVERYONE)
    return tuple(dict.fromkeys(found))
