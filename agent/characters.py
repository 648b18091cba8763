"""Who answers: the personas of the configuration, and which of several is meant (WO-40)."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class Character:
    """`id` is the configuration's key; `model` names a model account, empty for the default one."""

    id: str
    name: str
    aliases: tuple[str, ...] = ()
    prompt: str = ""
    attributes: Mapping[str, str] = field(default_factory=dict[str, str])
    model: str = ""
    profile: str = "assistant"


def addressed(text: str, members: Sequence[Character], last_spoke: str) -> Character:
    """Of several characters: the one addressed by name or alias, else the one who spoke last, else the first. `members` is not empty."""
    for character in members:
        for name in (character.name, *character.aliases):
            if name and _names(text, name):
                return character
    return next((character for character in members if character.id == last_spoke), members[0])


def _names(text: str, name: str) -> bool:
    """Whole words in scripts with blanks; anywhere in scripts without, where words have no borders to see."""
    edge = r"\b" if re.match(r"[\u0000-\u2fff]", name) else ""
    return re.search(f"{edge}{re.escape(name)}{edge}", text, re.IGNORECASE) is not None
