"""Parts of a summary that not everybody knows: `{{#if char == "Ana"}}…{{/if}}` (RS-93, RS-110). Pure.

`character` reads as `char`, and several names may be joined by `||` or `or`. What cannot be read is nobody's: an open part reaches to the end of the
text.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

_OPEN = re.compile(r"\{\{\s*#if\b(?P<condition>[^{}]*)\}\}", re.IGNORECASE)
_CLOSE = re.compile(r"\{\{\s*/if\s*\}\}", re.IGNORECASE)
_MARK = re.compile(r"\{\{~?\s*(?:[#/^]\s*(?:if|unless)|else|\^)(?!\w)", re.IGNORECASE)  # how one begins, for what goes wrong behind that is nobody's
_BRACES = re.compile(r"\{(?=\{)|\}(?=\})")
_QUOTES = ('""', "''", "“”")
_EACH = re.compile(r"""\s*(?:char|character)\s*==\s*(?:"(?P<double>[^"]*)"|'(?P<single>[^']*)'|“(?P<curly>[^”]*)”)\s*""")
_OR = re.compile(r"\|\||\bor\b")
_KNOWN_TO = {"en": "[known only to {names}]", "ja": "［{names}だけが知っている］", "zh": "［只有{names}知道］"}
_AND = {"en": " and ", "ja": "と", "zh": "和"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """Who speaks with this text before them. `voices`: names of the characters that one reply speaks for, `several` of them or one under its names;
    `company`: names of the people of the chat, of whom a fact may be known to one alone; `narrator`: reads everything."""

    voices: tuple[str, ...] = ()
    several: bool = False
    company: tuple[str, ...] = ()
    narrator: bool = False
    language: str = "en"


NOBODY = Reader()


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of a text. `names`: who alone knows it; empty for everybody. `known`: False for a condition that cannot be read."""

    text: str
    names: tuple[str, ...] = ()
    known: bool = True


def has_parts(text: str) -> bool:
    return "{{" in text and _MARK.search(text) is not None


def parts(text: str) -> list[Part]:
    """The text in its order, cut into what everybody knows and what some do."""
    found: list[Part] = []
    at = 0
    while (begin := _MARK.search(text, at)) is not None:
        if before := text[at : begin.start()]:
            found.append(Part(before))
        opened = _OPEN.match(text, begin.start())
        end = _CLOSE.search(text, opened.end()) if opened else None
        names = _names(opened["condition"]) if opened else ()
        inner = text[opened.end() : end.start()] if opened and end else ""
        if end is None or not names or has_parts(inner):  # nested, unclosed or unreadable: all that is left is nobody's
            return [*found, Part("", known=False)]
        found.append(Part(inner, names))
        at = end.end()
    if rest := text[at:]:
        found.append(Part(rest))
    return found


def view(text: str, reader: Reader) -> str:
    """The text as `reader` may know it. Where one reply speaks for several, and where a person knows it, the part says who; where a character
    replies singly, its own parts are simply its own. Parts for others, the narrator's too, stay out."""
    if not has_parts(text):
        return text
    own, around = set(map(_key, reader.voices)), set(map(_key, reader.company))
    shown: list[str] = []
    for part in parts(text):
        if part.known and not part.names:
            shown.append(part.text)
            continue
        if not part.known:
            continue
        told = [name for name in part.names if reader.narrator or _key(name) in own | around]
        if not told:
            continue
        alone = not reader.narrator and not reader.several and any(_key(name) in own for name in told)
        shown.append(part.text if alone else f"{_label(told, reader.language)} {part.text.strip()}")
    return _tidy("".join(shown))


def public(text: str) -> str:
    """What everybody knows of it."""
    return view(text, NOBODY)


def private(texts: Iterable[str]) -> dict[tuple[str, ...], list[str]]:
    """The private parts of several texts by who knows them; groups keep the order of their first appearance (RS-110). Whoever is named in another
    order or letter case is the same group."""
    groups: dict[frozenset[str], tuple[tuple[str, ...], list[str]]] = {}
    for text in texts:
        for part in parts(text):
            if part.known and part.names and part.text.strip():
                groups.setdefault(frozenset(map(_key, part.names)), (part.names, []))[1].append(part.text.strip())
    return dict(groups.values())


def wrapped(names: Sequence[str], text: str) -> str:
    """The text put back under its condition."""
    condition = " || ".join(f"char == {_quoted(name)}" for name in names)
    return f"{{{{#if {condition}}}}}{text}{{{{/if}}}}"


def without_macros(text: str) -> str:
    """The text with no double brace left in it, for what a model wrote hides nothing."""
    return _BRACES.sub(lambda brace: f"{brace.group()} ", text)


def _names(condition: str) -> tuple[str, ...]:
    """The names of a condition; none when any of it is not a name."""
    found: list[str] = []
    at, joined = 0, True
    while joined:
        each = _EACH.match(condition, at)
        name = next((value for value in each.groups() if value is not None), "").strip() if each else ""
        if each is None or not name:
            return ()
        found.append(name)
        joint = _OR.match(condition, each.end())
        at, joined = (joint.end(), True) if joint else (each.end(), False)
    return tuple(dict.fromkeys(found)) if not condition[at:].strip() else ()


def _quoted(name: str) -> str:
    """In a pair of marks that the name does not hold: whoever was named in a condition lacks one of them."""
    begin, end = next((pair for pair in _QUOTES if pair[1] not in name), _QUOTES[0])
    return f"{begin}{name}{end}"


def _key(name: str) -> str:
    return unicodedata.normalize("NFKC", name).casefold().strip()


def _label(names: Collection[str], language: str) -> str:
    of = language if language in _KNOWN_TO else "en"
    return _KNOWN_TO[of].format(names=_AND[of].join(names))


def _tidy(text: str) -> str:
    return re.sub(r"\n{3,}", "\n\n", re.sub(r"[ \t]{2,}", " ", text)).strip()
