"""Who answers: the personas of the configuration, and which of several is meant (WO-40)."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Character:
    """`id` is the configuration's key; `model` names a model account, empty for the default one; `profile` a window profile, empty for the
    channel's."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    prompt: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str = ""
    profile: str = ""


def addressed(text: str, members: Sequence[Character], last_spoke: str) -> Character:
    """Of several characters: the one addressed by name or alias, else the one who spoke last, else the first. `members` is not empty.

    Of several names in the text the earliest counts, and the longest of those that begin there (花 is not called when 花子 is).
    """
    called = [
        (found.start(), -len(name), character)
        for character in members
        for name in (character.name, *character.aliases)
        if name.strip() and (found := _call_of(name.strip()).search(_folded(text))) is not None
    ]
    if called:
        return min(called, key=lambda call: call[:2])[2]
    return next((character for character in members if character.id == last_spoke), members[0])


# Letters of scripts that part their words by blanks. The others (kana, Han, Thai …) show no borders, and may stand right beside a name.
_LETTER = r"[0-9A-Za-z_\u00c0-\u0dff\u1e00-\u1fff]"


def _call_of(name: str) -> re.Pattern[str]:
    """Where a name stands as a word: no letter of its own kind of script before or behind it."""
    folded = _folded(name)
    before = f"(?<!{_LETTER})" if re.match(_LETTER, folded) else ""
    behind = f"(?!{_LETTER})" if re.match(_LETTER, folded[-1]) else ""
    return re.compile(f"{before}{re.escape(folded)}{behind}")


def _folded(text: str) -> str:
    """Upper and lower case, full and half width alike."""
    return unicodedata.normalize("NFKC", text).casefold()
