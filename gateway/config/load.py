"""From the bytes of config.json to a `Config`, or to every fault in it at once (WO-31 to WO-33, WD-119).

The order: strict JSON, variables, types, then what keys say about one another. A faulty value is noted, taken out and the rest looked at again
with the default in its place, so that one look shows all. Then: a fault in a channel's section switches that channel off, a fault anywhere else
means no configuration (the caller exits with `EXIT_CONFIG`), an unknown key is left out and warned of. The file is only ever read.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from gateway.config import Channels, Config
from gateway.config.checks import CHECKS, Finding, accounts_of
from gateway.config.env import SECRETS_FILE, Variables, open_regular, read_secrets
from gateway.config.faults import Fault, Loaded, found, slip
from gateway.config.saved import decay_switch
from gateway.config.walk import ROOT, dotted, nearest, spot_at
from gateway.jsonfile import Document, Json, JsonFileError, KeyPath, read_json
from gateway.jsontext import veil

__all__ = ["EXIT_CONFIG", "Fault", "Loaded", "load", "section_of"]

EXIT_CONFIG = 78
MAX_BYTES = 1_000_000


BUILT = ("web", "telegram", "discord", "wechat_ilink", "wechat_official", "wecom")  # the channels that this build has adapters for


def load(path: Path, env: Mapping[str, str], *, available: Collection[str] = BUILT) -> Loaded:
    """Reads the configuration at `path`, and `secrets.env` beside it. `available` are the channels this build has adapters for.

    Never raises for anything that is in the file or wrong with it, never writes (WO-32, WD-119).
    """
    try:
        document = read_json(_read(path))
    except JsonFileError as error:
        faults = (
            Fault(file=path.name, message=f.message, line=f.line, column=f.column, hint=f.hint, excerpt=f.excerpt) for f in error.faults
        )
        return Loaded(file=path, config=None, faults=tuple(faults))
    except FileNotFoundError:
        fault = Fault(file=path.name, message="there is no such file", hint="make one from config.json.example")
        return Loaded(file=path, config=None, faults=(fault,))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        return Loaded(file=path, config=None, faults=(Fault(file=path.name, message=f"the file cannot be read: {reason}"),))
    return _Reading(path, document, env, available).result()


def _read(path: Path) -> bytes:
    with open_regular(path) as opened:
        data = opened.read(MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise ValueError(f"it is larger than {MAX_BYTES // 1_000_000} MB")
    return data


def section_of(path: KeyPath) -> str:
    """The section that a key belongs to, as `changed_sections` names them."""
    return f"channels.{path[1]}" if len(path) > 1 and path[0] == "channels" else str(path[0]) if path else ""


class _Reading:
    """One reading of one file."""

    def __init__(self, path: Path, document: Document, env: Mapping[str, str], available: Collection[str]) -> None:
        self._path = path
        self._document = document
        self._available = available
        self._faults: list[Fault] = []
        self._faulty: set[KeyPath] = set()
        secrets, faults = read_secrets(path.parent / SECRETS_FILE)
        self._variables = Variables(env=env, secrets=secrets)
        for f in faults:
            self._faults.append(Fault(file=SECRETS_FILE, message=f.message, line=f.line, column=min(f.line, 1), hint=f.hint, severity="warning"))

    def result(self) -> Loaded:
        raw = self._variables.expand(self._document.value)
        if not isinstance(raw, dict):
            self._note(Finding(path=(), message=f"found {found(raw, ROOT)}, wanted an object in braces"))
            return self._loaded(None, set())
        self._folders(raw)
        self._ageing(raw)
        for finding in self._variables.findings:
            if spot_at(finding.path):
                off = finding.path[0] == "channels" and len(finding.path) > 2 and not _switched_on(raw, str(finding.path[1]))
                self._note(replace(finding, severity="warning") if off else finding)
                _delete(raw, finding.path)
        config = self._typed(raw)
        for check in CHECKS:
            for finding in check(config):
                if not any(finding.path[: len(path)] == path for path in self._faulty):
                    self._note(finding)
        return self._effective(raw, config)

    def _folders(self, raw: dict[str, Json]) -> None:
        """Makes the paths absolute, the default ones too. What is no text is left for the types to refuse."""
        base = self._path.absolute().parent
        if raw.get("agent_workspace") == "":
            self._note(Finding(path=("agent_workspace",), message="found an empty text, wanted a folder", hint="delete the key for the default"))
        workspace = raw.get("agent_workspace") if raw.get("agent_workspace", "") != "" else str(Config().agent_workspace)
        if isinstance(workspace, str):
            raw["agent_workspace"] = workspace = self._variables.folder(workspace, base, ("agent_workspace",))
        data = raw.get("data_dir", "")
        if data == "" and isinstance(workspace, str):
            raw["data_dir"] = str(Path(workspace, ".yumegate"))
        elif isinstance(data, str):
            raw["data_dir"] = self._variables.folder(data, base, ("data_dir",))

    def _ageing(self, raw: dict[str, Json]) -> None:
        """The environment's switch goes before the file's (SM-97)."""
        try:
            ageing = decay_switch(self._variables.env)
        except ValueError as error:
            self._note(Finding(path=("saved", "ageing"), message=str(error), hint="set it to true or false, or unset it"))
            return
        if ageing is not None and isinstance(raw.setdefault("saved", {}), dict):
            _assign(raw, ("saved", "ageing"), ageing)

    def _typed(self, raw: dict[str, Json]) -> Config:
        """The tree with every faulty value noted and taken out of `raw`."""
        while True:
            try:
                return _validated(raw)
            except ValidationError as error:
                noted: set[KeyPath] = set()
                for details in error.errors(include_url=False):
                    path, value = _existing(raw, details["loc"])
                    finding = self._finding(path, details, value)
                    if path[:1] == ("profiles",) and len(path) > 1:  # one bad profile is left out, the others load (RS-2)
                        message = f"{finding.message.partition(': it is ignored')[0]}: the profile is left out"
                        finding = replace(finding, message=message, severity="warning", fails_check=True)
                        path = path[:2]
                    if path not in noted:
                        self._note(finding)
                        noted.add(path)
                # Within a list the last goes first, so that the others keep their numbers.
                gone = [_delete(raw, path) for path in sorted(noted, key=lambda path: [str(key).zfill(9) for key in path], reverse=True)]
                if not any(gone):
                    raise  # a fault of ours, never of the file

    def _finding(self, path: KeyPath, details: ErrorDetails, value: Json) -> Finding:
        name, spot = veil(str(path[-1])) if path else "", spot_at(path)
        if details["type"] == "extra_forbidden" or spot is None:
            message, hint = f'unknown key "{name}": it is ignored', nearest(path)
            return Finding(path=path, message=message, hint=hint, severity="warning", fails_check=True, at_key=True)
        if details["loc"][-1] == "[key]":
            hint = "1 to 64 letters, digits, _ . - of which the first is a letter or digit"
            return Finding(path=path, message=f'"{name}" cannot be an id', hint=hint, at_key=True)
        variable = self._variables.used.get(path)
        what = f"the value of ${{{variable}}}" if variable else found(value, spot)
        reason = details.get("ctx", {}).get("error")
        if isinstance(reason, ValueError):
            return Finding(path=path, message=f"found {what}: {reason}", hint=f"wanted {spot.wanted()}")
        return Finding(path=path, message=f"found {what}, wanted {spot.wanted()}", hint=slip(value, spot))

    def _effective(self, raw: dict[str, Json], config: Config) -> Loaded:
        """Switches off the channels that have a fault or no adapter; no configuration when anything else has a fault."""
        broken = {fault.section for fault in self._faults if fault.severity == "error"}
        disabled = {name for name in Channels.model_fields if f"channels.{name}" in broken}
        for name in disabled:
            _assign(raw, ("channels", name), {"enabled": False})
        for name in Channels.model_fields:
            running = [path for path, keys in accounts_of(config.channels, name) if keys.enabled]
            if running and name not in self._available and name not in disabled:
                self._note(Finding(path=(*running[0], "enabled"), message=f"this build has no {name} adapter yet", severity="warning"))
                disabled.add(name)
                for path in running:
                    _assign(raw, (*path, "enabled"), False)
        core = broken - {f"channels.{name}" for name in disabled}
        return self._loaded(None if core else _validated(raw), disabled)

    def _note(self, finding: Finding) -> None:
        places, at = self._document.places, finding.path
        while at not in places:  # a key that is missing is told where it belongs
            at = at[:-1]
        key, value = places[at].key, places[at].value
        line, column = key if key and (finding.at_key or at != finding.path) else value
        self._faulty.add(finding.path)
        self._faults.append(
            Fault(
                file=self._path.name,
                message=finding.message,
                path=dotted(finding.path),
                line=line,
                column=column,
                hint=finding.hint,
                severity=finding.severity,
                section=section_of(finding.path),
                fails_check=finding.fails_check or finding.severity == "error",
                excerpt=self._shown.excerpt(line, column),
            )
        )

    @cached_property
    def _shown(self) -> Document:
        return self._document.covered(filter(_hidden, self._document.places))

    def _loaded(self, config: Config | None, disabled: set[str]) -> Loaded:
        faults = sorted(self._faults, key=lambda fault: (fault.file == SECRETS_FILE, fault.line, fault.column))
        return Loaded(file=self._path, config=config, faults=tuple(faults), disabled=frozenset(disabled))


def _hidden(path: KeyPath) -> bool:
    """Whether the value may be a secret: a secret's own, one below it, one of an unknown key that may be a secret's name misspelt."""
    spots = [spot_at(path[: depth + 1]) for depth in range(len(path))]
    return any(spot is None or spot.is_secret for spot in spots)


def _validated(raw: dict[str, Json]) -> Config:
    # By way of JSON text: only there do pydantic's strict types take a list for a tuple and a text for a path or a secret.
    return Config.model_validate_json(json.dumps(raw))


def _switched_on(raw: Json, channel: str) -> bool:
    _, section = _existing(raw, ("channels", channel))
    _, accounts = _existing(section, ("accounts",))
    parts = [section, *(accounts.values() if isinstance(accounts, dict) else ())]
    return any(isinstance(part, dict) and part.get("enabled", channel == "web") is not False for part in parts)


def _existing(raw: Json, location: tuple[int | str, ...]) -> tuple[KeyPath, Json]:
    """The part of pydantic's location that is in the file, and the value there; the rest of it names branches of a type."""
    value = raw
    for depth, key in enumerate(location):
        match value, key:
            case dict(), str() if key in value:
                value = value[key]
            case list(), int() if key < len(value):
                value = value[key]
            case _:
                return location[:depth], value
    return location, value


def _delete(raw: Json, path: KeyPath) -> bool:
    """Takes a value out; False when there is none."""
    if not path or _existing(raw, path)[0] != path:
        return False
    _, parent = _existing(raw, path[:-1])
    match parent, path[-1]:
        case dict(), str(key):
            del parent[key]
        case list(), int(index):
            del parent[index]
        case _:
            return False
    return True


def _assign(raw: dict[str, Json], path: tuple[str | int, ...], value: Json) -> None:
    """Sets a value, making the objects on the way."""
    inside = raw
    for key in path[:-1]:
        step = inside.setdefault(str(key), {})
        assert isinstance(step, dict)  # the types were looked at before
        inside = step
    inside[str(path[-1])] = value
