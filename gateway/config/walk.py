"""Finding a key in the tree of the configuration, and saying in words what it takes. Pure; used by faults and by the documentation alike."""

from __future__ import annotations

import difflib
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import SecretStr

from gateway.config import Config
from gateway.config.types import Restart, SameAs, Section, Wants
from gateway.jsonfile import KeyPath

ENTRY = "<ID>"
_NAMES: Mapping[Any, str] = {
    bool: "true or false", int: "a whole number", float: "a number", str: "a text", Path: "a path", SecretStr: "a secret", type(None): "null",
}  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Spot:
    """One place of the tree: the type of its value, and the marks and limits beside it."""

    kind: Any
    marks: tuple[Any, ...] = ()
    description: str = ""

    @property
    def section(self) -> type[Section] | None:
        return self.kind if isinstance(self.kind, type) and issubclass(self.kind, Section) else None

    @property
    def entry(self) -> Spot | None:
        """What the values of a map or the items of a list are; None for everything else."""
        args = get_args(self.kind)
        return _spot(args[{Mapping: 1, tuple: 0}[get_origin(self.kind)]]) if get_origin(self.kind) in (Mapping, tuple) else None

    @property
    def is_map(self) -> bool:
        return get_origin(self.kind) is Mapping

    @property
    def is_list(self) -> bool:
        return get_origin(self.kind) is tuple

    @property
    def is_secret(self) -> bool:
        return self.kind is SecretStr

    @property
    def needs_restart(self) -> bool:
        return any(isinstance(mark, Restart) for mark in self.marks)

    @property
    def same_as(self) -> str:
        return next((mark.section for mark in self.marks if isinstance(mark, SameAs)), "")

    def child(self, key: str | int) -> Spot | None:
        if self.section is None:
            return self.entry
        field = self.section.model_fields.get(str(key))
        return None if field is None else _spot(field.annotation, tuple(field.metadata), field.description or "")

    def what(self) -> str:
        """The type in words: "a whole number", "a list of texts" …"""
        for mark in self.marks:
            if isinstance(mark, Wants):
                return mark.text
        if get_origin(self.kind) is Literal:
            *most, last = (f'"{value}"' for value in get_args(self.kind))
            return f"{', '.join(most)} or {last}" if most else last
        if get_origin(self.kind) in (Union, types.UnionType):
            return " or ".join(_spot(part).what() for part in get_args(self.kind))
        if self.section or self.entry is None:
            return _NAMES.get(self.kind, "an object of keys in braces")
        return f"{'an object of ids, each with' if self.is_map else 'a list, each item'} {self.entry.what()}"

    def limits(self) -> str:
        """The range in words, "" if there is none."""
        low, high = self._limit("ge"), self._limit("le")
        if low is not None and high is not None:
            return f"from {low} to {high}"
        words = (("{} or more", low), ("more than {}", self._limit("gt")), ("at most {}", high))
        sizes = (("at least {} long", self._limit("min_length")), ("at most {} long", self._limit("max_length")))
        return ", ".join(text.format(value) for text, value in (*words, *sizes) if value is not None)

    def wanted(self) -> str:
        joint = " " if self.limits().startswith("from") else ", "
        return f"{self.what()}{joint}{self.limits()}" if self.limits() else self.what()

    def _limit(self, name: str) -> object:
        return next((value for mark in self.marks if (value := getattr(mark, name, None)) is not None), None)


def _spot(kind: Any, marks: tuple[Any, ...] = (), description: str = "") -> Spot:
    if get_origin(kind) is Annotated:
        kind, *more = get_args(kind)
        return _spot(kind, (*more, *marks), description)
    return Spot(kind=kind, marks=marks, description=description)


ROOT = Spot(kind=Config)


def spot_at(path: KeyPath) -> Spot | None:
    """The place at `path`, None for an unknown key."""
    spot: Spot | None = ROOT
    for key in path:
        spot = spot.child(key) if spot else None
    return spot


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """One key to document. Its path has `ENTRY` where an operator's own id stands."""

    path: tuple[str, ...]
    spot: Spot
    default: object


def leaves(path: tuple[str, ...] = (), spot: Spot = ROOT, value: object = None) -> Iterator[Leaf]:
    """Every key with its default, in the order of the tree. Maps that repeat another section are one leaf."""
    if spot.section:
        defaults = spot.section() if value is None else value
        for name in spot.section.model_fields:
            child = spot.child(name)
            assert child is not None
            yield from leaves((*path, name), child, getattr(defaults, name))
    elif spot.is_map and spot.entry and spot.entry.section and not spot.same_as:
        yield from leaves((*path, ENTRY), spot.entry)
    else:
        yield Leaf(path=path, spot=spot, default=value)


def restart_keys(old: Config, new: Config) -> set[str]:
    """The keys that differ and are taken up by the next start only (WO-31); everything else in `changed_sections` applies live."""
    pairs = zip(leaves(value=old), leaves(value=new), strict=True)
    return {dotted(before.path) for before, after in pairs if before.spot.needs_restart and before.default != after.default}


def dotted(path: KeyPath) -> str:
    """A path as people read it: `channels.telegram.allow[0]`; an id with a dot or blank stands in quotes."""
    text = ""
    for key in path:
        part = f"[{key}]" if isinstance(key, int) else key if re.fullmatch(r"[\w<>-]+", key) else f'"{key}"'
        text += part if isinstance(key, int) or not text else f".{part}"
    return text


def nearest(path: KeyPath) -> str:
    """A hint for an unknown key: the nearest known one beside it, else one anywhere, else all that are known there (WO-32)."""
    name, parent = str(path[-1]), spot_at(path[:-1])
    beside = list(parent.section.model_fields) if parent and parent.section else []
    if near := _closest(name, beside):
        return f'did you mean "{near}"?'
    everywhere: dict[str, str] = {}
    for leaf in sorted(leaves(), key=lambda leaf: leaf.path[0] != "channels"):  # a channel without its `channels` is the usual slip
        if leaf.path[0] != "policies":
            for end, key in enumerate(leaf.path, 1):
                everywhere.setdefault(key, dotted(leaf.path[:end]))
    if near := _closest(name, list(everywhere)):
        return f'did you mean "{everywhere[near]}"?'
    return f"known here: {', '.join(beside)}" if beside else ""


def _closest(name: str, known: list[str]) -> str:
    by_fold = {re.sub(r"[-_ ]", "", key).lower(): key for key in known}
    found = difflib.get_close_matches(re.sub(r"[-_ ]", "", name).lower(), by_fold, 1, 0.7)
    return by_fold[found[0]] if found else ""
