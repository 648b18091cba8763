"""What a new scope's files begin as, so that whoever opens the folder sees what each is for; and whether a file has got content of its own.

One template per role in English, Japanese and Chinese under `templates/`. `system.md` says in each language that everybody is served by it (WD-11).
"""

from __future__ import annotations

import re
from functools import cache
from importlib.resources import files

from memory.languages import LANGUAGES
from memory.markdown_lines import has_content, plain
from memory.scopes import ROOT, SYSTEM, Scope

NAMES = (SYSTEM, "user.md", "space.md", "MEMORY.md")


def names_for(scope: Scope) -> tuple[str, ...]:
    """The files that `scope` begins with."""
    return tuple(name for name in NAMES if name in (scope.about, "MEMORY.md") or (name == SYSTEM and scope == ROOT))


@cache
def template(name: str, language: str) -> str:
    """The template of the file `name`; English for a language we have none in. KeyError for a file without template."""
    if name not in NAMES:
        raise KeyError(name)
    folder = language if language in LANGUAGES else "en"
    return (files("memory") / "templates" / folder / name).read_text(encoding="utf-8")


def has_own_content(name: str, text: str) -> bool:
    """Whether somebody wrote something into the file `name`: more than headings (WD-2), and not the template as it came (WD-6)."""
    return has_content(text) and not (name in NAMES and any(_same(text, template(name, language)) for language in LANGUAGES))


def for_prompt(name: str, text: str) -> str:
    """`text` as the model gets it: without byte order mark, with \\n only, without the hints for people that our template brought."""
    text = plain(text)
    for hint in _hints(name):
        text = text.replace(hint, "")
    return text.strip("\n")


@cache
def _hints(name: str) -> tuple[str, ...]:
    found = (re.findall(r"<!--.*?-->\n*", template(name, language), re.DOTALL) for language in LANGUAGES if name in NAMES)
    return tuple(hint for hints in found for hint in hints)


def _same(text: str, other: str) -> bool:
    return [line.rstrip() for line in plain(text).split("\n")] == [line.rstrip() for line in plain(other).split("\n")]
