"""Values that the owner set by `/config`: rows of `settings` which lie over the file, and never in it (WD-119).

Only keys that apply while the gateway runs, never secrets, never what stands under an id of the operator's. A value is held to the same types, ranges
and cross-checks as the file; one that holds no more after an update is left out and named.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Annotated, Any, cast

import sqlalchemy as sa
from pydantic import TypeAdapter, ValidationError

from gateway import audit
from gateway.audit import Actor
from gateway.config import Config, masked
from gateway.config.checks import CHECKS
from gateway.config.faults import found
from gateway.config.types import Section
from gateway.config.walk import ENTRY, Spot, dotted, leaves, nearest, spot_at
from gateway.jsonfile import Json, KeyPath
from gateway.language import Declined
from memory.database import Database
from memory.schema import settings
from memory.upserts import insert_or_change

PREFIX = "config:"


class NotSettable(Declined):
    """Why a key cannot be set here, or a value not taken."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Effective:
    """A key as it counts now. `source`: file, default or override; `value` and `default` as JSON text, secrets as stars."""

    key: str
    value: str
    default: str
    source: str
    live: bool


# -- deciding, pure ---------------------------------------------------------------------------------------------------------


def applied(config: Config, values: Mapping[str, Json]) -> tuple[Config, dict[str, str]]:
    """`config` with the overrides over it, and why some were left out, by key."""
    left_out: dict[str, str] = {}
    for key, value in sorted(values.items()):
        try:
            config = _with(config, key, value)
        except NotSettable as error:
            left_out[key] = str(error.values.get("reason") or error.key)
    return config, left_out


def parsed(text: str) -> Json:
    """What somebody typed as a value: JSON if it is some, else the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def settable(key: str) -> KeyPath:
    """The path of a key that may be set here. Raises NotSettable."""
    path = _path(key)
    spot = spot_at(path)
    if spot is None:
        raise NotSettable("config_unknown", name=key, hint=nearest(path))
    if spot.section is not None:
        raise NotSettable("config_section", name=key)
    if _is_secret(path) or any(_at(path[:end]).is_map for end in range(1, len(path) + 1)):
        raise NotSettable("config_file_only", name=key)
    if spot.needs_restart:
        raise NotSettable("config_restart", name=key)
    return path


def effective(config: Config, overrides: Mapping[str, Json], key: str) -> list[Effective]:
    """The key, or every key of the section of that name; raises NotSettable for a name that is none."""
    path = _path(key)
    spot = spot_at(path)
    if spot is None:
        raise NotSettable("config_unknown", name=key, hint=nearest(path))
    known = {leaf.path: leaf for leaf in leaves()}
    now = {leaf.path: leaf for leaf in leaves(value=config)}
    shown = masked(config)
    chosen = [leaf for leaf in now if leaf[: len(path)] == path and ENTRY not in leaf]
    if not chosen:  # an id of the operator's own, or below one
        raise NotSettable("config_file_only", name=key)
    return [_effective(config, overrides, path, shown, known[path].default, now[path].spot) for path in chosen]


def settled(config: Config, overrides: Mapping[str, Json]) -> tuple[Effective, ...]:
    """Every key that somebody set, in the order of the tree: what counts now, and whether the file or an override says so (CF-12)."""
    known = {leaf.path: leaf for leaf in leaves()}
    shown = masked(config)
    now = [leaf for leaf in leaves(value=config) if ENTRY not in leaf.path]
    every = [_effective(config, overrides, leaf.path, shown, known[leaf.path].default, leaf.spot) for leaf in now]
    return tuple(each for each in every if each.source != "default")


def _effective(config: Config, overrides: Mapping[str, Json], path: tuple[str, ...], shown: Any, default: object, spot: Spot) -> Effective:
    key = dotted(path)
    source = "override" if key in overrides else "file" if _given(config, path) else "default"
    for name in path:
        shown = shown[name]
    return Effective(key=key, value=_json(shown), default=_json(default), source=source, live=not spot.needs_restart)


def _given(config: Config, path: tuple[str, ...]) -> bool:
    """Whether the file names this key."""
    inside: object = config
    for name in path:
        if not isinstance(inside, Section) or name not in inside.model_fields_set:
            return False
        inside = getattr(inside, name)
    return True


def _with(config: Config, key: str, value: Json) -> Config:
    path = settable(key)
    spot = _at(path)
    kind: Any = Annotated[(spot.kind, *spot.marks)] if spot.marks else spot.kind
    adapter: TypeAdapter[Any] = TypeAdapter(kind)
    try:
        checked = adapter.validate_json(json.dumps(value), strict=True)
    except ValidationError as error:
        reason = error.errors(include_url=False)[0].get("ctx", {}).get("error")
        why = f"{reason}; wanted {spot.wanted()}" if isinstance(reason, ValueError) else f"found {found(value, spot)}, wanted {spot.wanted()}"
        raise NotSettable("config_refused", name=key, reason=why) from error
    changed = _replaced(config, cast("tuple[str, ...]", path), checked)
    before = {finding.path: finding.message for check in CHECKS for finding in check(config)}
    for check in CHECKS:
        for finding in check(changed):
            if finding.severity == "error" and before.get(finding.path) != finding.message:
                raise NotSettable("config_refused", name=key, reason=finding.message)
    return changed


def _replaced(section: Any, path: tuple[str, ...], value: object) -> Any:
    name, *rest = path
    inside = value if not rest else _replaced(getattr(section, name), tuple(rest), value)
    return section.model_copy(update={name: inside})


def _path(key: str) -> KeyPath:
    return cast("KeyPath", _texts(key))


def _texts(key: str) -> tuple[str, ...]:
    return tuple(part for part in key.strip().split(".") if part)


def _at(path: KeyPath) -> Spot:
    spot = spot_at(path)
    assert spot is not None, "the caller has looked"
    return spot


def _is_secret(path: KeyPath) -> bool:
    return any(spot is not None and spot.is_secret for spot in (spot_at(path[:end]) for end in range(1, len(path) + 1)))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


# -- rows -------------------------------------------------------------------------------------------------------------------

_ALL = sa.select(settings.c.key, settings.c.value).where(settings.c.key.startswith(PREFIX, autoescape=True))
_PUT = insert_or_change(settings, ["key"], ["value", "updated_at"])


def stored(connection: sa.Connection) -> dict[str, Json]:
    """Every override by its key."""
    return {row.key.removeprefix(PREFIX): row.value["value"] for row in connection.execute(_ALL)}


class Overrides:
    """The service behind `/config KEY VALUE`. What it stored counts with the next reading of the configuration."""

    def __init__(self, db: Database) -> None:
        self._db = db

    async def all(self) -> dict[str, Json]:
        return await self._db.read(stored)

    async def put(self, config: Config, key: str, text: str, *, by: Actor, now: datetime) -> Json:
        """Check and store a value; returns it. `config`: as it counts now. Raises NotSettable."""
        value = parsed(text)
        _with(config, key, value)

        def work(connection: sa.Connection) -> None:
            before = stored(connection).get(key)
            values = {"key": f"{PREFIX}{key}", "value": {"value": value}, "updated_at": now}
            connection.execute(_PUT[connection.dialect.name], values)
            audit.record(connection, by, "config.set", at=now, target=key, before={"value": before}, after={"value": value})

        await self._db.write(work)
        return value

    async def remove(self, key: str, *, by: Actor, now: datetime) -> bool:
        """The file's value counts again; False when there was no override."""

        def work(connection: sa.Connection) -> bool:
            before = stored(connection)
            if key not in before:
                return False
            connection.execute(sa.delete(settings).where(settings.c.key == f"{PREFIX}{key}"))
            audit.record(connection, by, "config.unset", at=now, target=key, before={"value": before[key]})
            return True

        return await self._db.write(work)
