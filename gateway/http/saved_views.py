"""Saved memories in JSON: how a request names a list, what is shown of rows, lists and programs' changes, which refusal follows what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, Literal

from aiohttp import web
from pydantic import StringConstraints

from gateway.config import DEFAULT_CHARACTER
from gateway.http.base import Body, HttpFault, answer, language_of, not_found
from gateway.saved.shelves import Shelf, Wish
from memory.saved.journal import Entry
from memory.saved.rows import ListKey, ListKind, Memory
from memory.saved.writing import Batch, Limits, Outcome, Result

Short = Annotated[str, StringConstraints(max_length=200)]
ListName = Literal["global", "character", "space"]


class Named(Body):
    """A body about one list. Without a character the default one is meant."""

    list: ListName
    character: Short = DEFAULT_CHARACTER
    space: Short = ""

    @property
    def wish(self) -> Wish:
        return Wish(kind=ListKind(self.list), character=self.character or DEFAULT_CHARACTER, space=self.space)


@dataclass(frozen=True, slots=True, kw_only=True)
class Faces:
    """Who is who in rows: id in the configuration and name of characters by lineage, names of people by id, and the one who looks."""

    viewer: str
    characters: Mapping[str, tuple[str, str]] = field(default_factory=dict[str, tuple[str, str]])
    people: Mapping[str, str] = field(default_factory=dict[str, str])


def wish_of(request: web.Request) -> Wish | None:
    """The list that a query names; None when it names none. 400 for a kind that there is not."""
    kind = request.query.get("list", "")
    if not kind:
        return None
    if kind not in list(ListKind):
        raise HttpFault(400, "bad_field", "error_bad_field", param="list", field="list", reason=f"Input should be one of {', '.join(ListKind)}")
    return Wish(kind=ListKind(kind), character=request.query.get("character") or DEFAULT_CHARACTER, space=request.query.get("space", ""))


def place(key: ListKey, faces: Faces) -> dict[str, str]:
    """The list of a row, as a request names it."""
    shown = {"list": key.kind.value}
    if key.character:
        character, name = faces.characters.get(key.character, (key.character, key.character))
        shown |= {"character": character, "character_name": name}
    return {**shown, "space": key.owner} if key.kind is ListKind.SPACE else shown


def state_of(memory: Memory, *, ageing_on: bool = True) -> str:
    """archived, dormant or active. While ageing is off nothing sleeps (SM-98)."""
    if memory.archived:
        return "archived"
    return "dormant" if memory.dormant and ageing_on else "active"


def item(memory: Memory, faces: Faces, *, ageing_on: bool = True) -> dict[str, Any]:
    author = {"kind": memory.author_kind, "name": faces.people.get(memory.author_id, ""), "you": memory.author_id == faces.viewer}
    return {
        "id": memory.id,
        **place(memory.key, faces),
        "content": memory.content,
        "pinned": memory.pinned,
        "protected": memory.protected,
        "state": state_of(memory, ageing_on=ageing_on),
        "unused_days": memory.unused_days,
        "last_matched_at": memory.last_matched_at,
        "created_at": memory.created_at,
        "updated_at": memory.updated_at,
        "origin": memory.origin,
        "author": author,
        "tags": memory.tags,
        "channel_ids": memory.channel_ids,
        "private": memory.private_origin,
        "was_of": faces.characters.get(memory.origin_character, ("", ""))[1],
        "revision": memory.revision,
    }


def count(rows: Sequence[Memory], key: ListKey) -> dict[str, int]:
    """How many rows of each side a list has; dormant and hidden ones count (SM-2)."""
    pinned = sum(1 for row in rows if row.key == key and row.pinned)
    return {"unpinned": sum(1 for row in rows if row.key == key) - pinned, "pinned": pinned}


def shelf(each: Shelf, rows: Sequence[Memory], *, saves: bool) -> dict[str, Any]:
    """`saves`: whether a model that answers there can save by itself."""
    shown: dict[str, Any] = {"list": each.key.kind.value, "manages": each.manages, "saves": saves, **count(rows, each.key)}
    if each.key.character:
        shown |= {"character": each.character, "character_name": each.character_name}
    if each.key.kind is ListKind.SPACE:
        shown |= {"space": each.key.owner, "space_title": each.space_title, "channel": each.channel}
    return shown


def limits(found: Limits, *, tags_max: int, dormant_after_days: int, ageing_on: bool) -> dict[str, Any]:
    return {
        "unpinned_max": found.unpinned,
        "pinned_max": found.pinned,
        "content_max": found.content,
        "tags_max": tags_max,
        "dormant_after_days": dormant_after_days,
        "ageing": ageing_on,
    }


def entry(each: Entry, faces: Faces) -> dict[str, Any]:
    """One operation of a program: what stood there before and after."""
    return {
        "id": each.id,
        "op": each.op.value,
        "actor": each.actor,
        "memory": each.memory_id,
        **place(each.key, faces),
        "before": each.before.content if each.before else None,
        "after": each.after.content if each.after else None,
        "at": each.created_at,
    }


# -- refusals ----------------------------------------------------------------------------------------------------------


def refused(
    request: web.Request, result: Result, limits: Limits, faces: Faces, *, duplicate: bool = False, pins: bool = False
) -> web.Response | None:
    """The answer to what was not done; None when it was. `duplicate`: an unchanged save is refused, with the row that says the same (SM-4);
    `pins`: it was about a place among the pins. Raises the 404."""
    match result.outcome:
        case Outcome.UNKNOWN_ID:
            raise not_found()
        case Outcome.TOO_LONG:
            return _told(request, HttpFault(422, "too_long", "saved_too_long", param="content", length=result.length, limit=result.limit))
        case Outcome.EMPTY:
            return _told(request, HttpFault(422, "empty", "saved_empty", param="content"))
        case Outcome.CHANGED:
            return _told(request, HttpFault(409, "changed", "saved_changed", param="based_on"), memory=_shown(result.memory, faces))
        case Outcome.LIST_FULL if pins:
            return _told(request, HttpFault(409, "pins_full", "saved_pins_full", limit=limits.pinned))
        case Outcome.LIST_FULL:
            key = "saved_list_full_candidate" if result.victim else "saved_list_full"
            return _told(request, HttpFault(409, "list_full", key, limit=limits.unpinned), candidate=_shown(result.victim, faces))
        case Outcome.UNCHANGED if duplicate:
            return _told(request, HttpFault(409, "duplicate", "saved_duplicate", param="content"), memory=_shown(result.memory, faces))
        case _:
            return None


def batch_refused(request: web.Request, batch: Batch, limits: Limits, *, pinned: bool) -> web.Response | None:
    """Drafts are saved all or none (SM-60)."""
    match batch.outcome:
        case Outcome.LIST_FULL:
            key = "saved_drafts_pins_full" if pinned else "saved_drafts_full"
            return _told(request, HttpFault(409, "list_full", key, fits=batch.fits), fits=batch.fits)
        case Outcome.TOO_LONG:
            return _told(request, HttpFault(422, "too_long", "saved_draft_long", param="drafts", limit=limits.content), draft=batch.fault)
        case Outcome.EMPTY:
            return _told(request, HttpFault(422, "empty", "saved_empty", param="drafts"), draft=batch.fault)
        case _:
            return None


def _told(request: web.Request, fault: HttpFault, **more: object) -> web.Response:
    return answer({**fault.shown(language_of(request)), **more}, status=fault.status)


def _shown(memory: Memory | None, faces: Faces) -> dict[str, Any] | None:
    return None if memory is None else item(memory, faces)
