"""The owner's answers as lines of `system.md` and `user.md`: readable bullets under the headings of the templates (WD-34). Pure.

Name and style of the bot go to `system.md`, which everybody is served by; what is about the person goes to `user.md` alone (WD-11).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import cache

from memory.languages import LANGUAGES
from memory.lines import entries, line_hash
from memory.markdown_lines import appended, heading_of, in_style_of, one_line, unix
from memory.scope_templates import template

FACTS = "facts"

# Where each answer stands: the file, which of the headings of its template, and its label in each language.
PLACES: Mapping[str, tuple[str, int]] = {
    "bot_name": ("system.md", 0),
    "style": ("system.md", 0),
    "address": ("user.md", 0),
    "language": ("user.md", 1),
    "timezone": ("user.md", 1),
    FACTS: ("user.md", 2),
}
LABELS: Mapping[str, Mapping[str, str]] = {
    "bot_name": {"en": "Name", "ja": "名前", "zh": "名字"},
    "style": {"en": "Style", "ja": "話し方", "zh": "风格"},
    "address": {"en": "Form of address", "ja": "呼び方", "zh": "称呼"},
    "language": {"en": "Language", "ja": "言語", "zh": "语言"},
    "timezone": {"en": "Time zone", "ja": "タイムゾーン", "zh": "时区"},
}
_COLON = {"en": ": ", "ja": "：", "zh": "："}


def labelled(field: str, value: str, language: str) -> str:
    """An answer as words, such as "Name: Yume"."""
    language = language if language in LANGUAGES else "en"
    return f"{LABELS[field][language]}{_COLON[language]}{one_line(value)}"


def files_of(fields: Collection[str]) -> tuple[str, ...]:
    """The files that answers of these names go to."""
    return tuple(name for name in ("system.md", "user.md") if any(PLACES[field][0] == name for field in fields))


def with_answers(before: str, name: str, answers: Mapping[str, str], facts: Sequence[str], language: str, own: Collection[str]) -> str:
    """The file `name` with those of the answers that belong there; an empty file begins as its template.

    `own`: hashes of the lines that earlier answers left. Such a line with the same label is said anew; what a person wrote is never touched.
    """
    language = language if language in LANGUAGES else "en"
    text = unix(before or template(name, language))
    for field, value in answers.items():
        if PLACES[field][0] == name and one_line(value):
            text = _said(text, field, f"- {labelled(field, value, language)}", own)
    if PLACES[FACTS][0] == name:
        for fact in map(one_line, facts):
            if fact and line_hash(fact) not in {entry.hash for entry in entries(text)}:
                text = _under_heading(text, FACTS, f"- {fact}")
    return in_style_of(before, text) if before else text


def answered(text: str, field: str) -> str:
    """What a file says for this answer, by its label in any language; empty for nothing."""
    found = next((entry.text for entry in entries(text) if _has_label(entry.text, field)), "")
    return found.partition("：" if "：" in found else ":")[2].strip()


def _said(text: str, field: str, line: str, own: Collection[str]) -> str:
    earlier = [entry for entry in entries(text) if entry.hash in own and _has_label(entry.text, field)]
    if not earlier:
        already = line_hash(line) in {entry.hash for entry in entries(text)}
        return text if already else _under_heading(text, field, line)
    lines = text.split("\n")
    for entry in reversed(earlier[1:]):
        del lines[entry.first - 1 : entry.last]
    lines[earlier[0].first - 1 : earlier[0].last] = [line]
    return "\n".join(lines)


def _has_label(words: str, field: str) -> bool:
    return any(words.startswith((f"{label}:", f"{label}：")) for label in LABELS[field].values())


def _under_heading(text: str, field: str, line: str) -> str:
    """`line` as the last of its section; at the end of a file that has none of our headings."""
    lines = text.split("\n")
    at = next((number for number, each in enumerate(lines) if _heading(each) in _headings(*PLACES[field])), None)
    if at is None:
        return appended(text, line)
    end = next((number for number in range(at + 1, len(lines)) if _heading(lines[number])), len(lines))
    last = next((number for number in range(end - 1, at, -1) if lines[number].strip()), at)
    bullet_before = lines[last].lstrip().startswith(("- ", "* ", "+ "))
    new = [line] if bullet_before else ["", line]
    rest = lines[last + 1 :]
    return "\n".join([*lines[: last + 1], *new, *(rest if not rest or not rest[0].strip() else ["", *rest])])


def _heading(line: str) -> str:
    found = heading_of(line)
    return found.words if found else ""


@cache
def _headings(name: str, number: int) -> frozenset[str]:
    return frozenset(headings[number] for headings in _sections(name))


def _sections(name: str) -> Iterator[list[str]]:
    for language in LANGUAGES:
        yield [line.removeprefix("## ").strip() for line in template(name, language).split("\n") if line.startswith("## ")]
