"""The answer of a dream: one JSON object, read strictly, and checked against what was given (WD-71, WD-72, WD-74). Pure.

What is checked here is the form: a fault makes the whole answer invalid, and is told to the model once. What the lines say is judged in
`dream_rules`, where one bad line costs only itself.
"""

from __future__ import annotations

import re
from collections import Counter
from typing import Literal, get_args

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from memory.dream_input import Material
from memory.lines import as_bullet, entries
from memory.markdown_lines import CONTROL, unix

Reason = Literal["outdated", "duplicate", "temporary", "contradicted"]
MERGED_MAX = 4
TEXT_MAX = 3_900  # characters of one entry: the bullet must fit into a line too
_FAULTS_TOLD = 20

_FENCE = re.compile(r"\s*(`{3,})[a-zA-Z0-9]*[ \t]*\n(.*)\n[ \t]*\1[ \t]*\s*", re.DOTALL)


class ContractBroken(ValueError):
    """The answer is not what was asked for. `faults`: one sentence each, for the repair call; ids and counts only, no words of people's."""

    def __init__(self, faults: list[str]) -> None:
        super().__init__("; ".join(faults))
        self.faults = tuple(faults[:_FAULTS_TOLD])


class _Part(BaseModel):
    model_config = ConfigDict(strict=True, frozen=True, populate_by_name=True)


class Entry(_Part):
    """`sources`: ids of the old lines it stands for (`from` in JSON); `evidence`: ids of daily lines."""

    text: str
    section: str = ""
    sources: list[str] = Field(default=[], alias="from")
    evidence: list[str] = []


class Drop(_Part):
    id: str
    reason: Reason


class Answer(_Part):
    entries: list[Entry]
    dropped: list[Drop]
    diary: str


def parse(text: str) -> Answer:
    """The object in `text`; a code fence around it is accepted, other words are not. ContractBroken."""
    fenced = _FENCE.fullmatch(text)
    bare = (fenced[2] if fenced else text).strip()
    if not bare:
        raise ContractBroken(["the answer is empty"])
    try:
        return Answer.model_validate_json(bare)
    except ValidationError as error:
        raise ContractBroken([_fault(each["loc"], each["type"]) for each in error.errors(include_input=False, include_url=False)]) from None


def check(answer: Answer, given: Material) -> None:
    """Whether each old line is accounted for exactly once, and each id is one that was given, in its place (WD-72). ContractBroken."""
    ids = given.ids
    old = {ids[line.hash] for line in given.old}
    fixed = {ids[entry.hash] for entry in given.fixed} - old
    daily = {ids[line.hash] for line in given.day_lines}
    named = Counter([id_ for entry in answer.entries for id_ in entry.sources] + [drop.id for drop in answer.dropped])
    faults = [f"{_id(id_)} is a fixed line and must not appear" for id_ in named if id_ in fixed and id_ not in old]
    faults += [f"{_id(id_)} is no id of an old line" for id_ in named if id_ not in old | fixed]
    faults += [f"{id_} appears {times} times in `from` and `dropped`, and must once" for id_, times in named.items() if times > 1 and id_ in old]
    faults += [f"{id_} is missing: each old line stands in one `from` or in `dropped`" for id_ in sorted(old - set(named))]
    seen: set[str] = set()
    for at, entry in enumerate(answer.entries):
        where = f"entries[{at}]"
        faults += [f"{where}: {_id(id_)} in `evidence` is no id of a daily line" for id_ in entry.evidence if id_ not in daily]
        if len(set(entry.evidence)) < len(entry.evidence):
            faults.append(f"{where} names a daily line twice")
        if len(entry.sources) > MERGED_MAX:
            faults.append(f"{where} merges {len(entry.sources)} old lines, and may merge {MERGED_MAX}")
        if not entry.sources and not entry.evidence:
            faults.append(f"{where} has neither `from` nor `evidence`")
        faults += [f"{where}: {fault}" for fault in _text_faults(entry)]
        if (text := clean(entry.text)) in seen:
            faults.append(f"{where} says the same as another entry")
        seen.add(text)
    if faults:
        raise ContractBroken(faults)


def clean(text: str) -> str:
    """An entry's text as it will stand in the file: all of it but control characters, and blank lines around (WD-74)."""
    return CONTROL.sub("", unix(text)).strip("\n").rstrip()


def _id(given: str) -> str:
    """An id as a fault names it: what is none may be anybody's words, and faults are shown to operators."""
    return given if re.fullmatch("[0-9a-f]{1,64}", given) else "something else"


def _text_faults(entry: Entry) -> list[str]:
    text = clean(entry.text)
    if not text.strip():
        return ["`text` is empty"]
    if len(text) > TEXT_MAX:
        return [f"`text` has more than {TEXT_MAX} characters"]
    if len(entries(as_bullet(text))) != 1:
        return ["`text` is more than one line of the file: one fact each, no blank lines, no bullets inside"]
    return []


def _fault(where: tuple[int | str, ...], kind: str) -> str:
    """What pydantic found, without the words that it found it in."""
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in where).lstrip(".") or "the answer"
    told = {
        "json_invalid": "is no JSON object, or has other text around it",
        "missing": "is missing",
        "literal_error": f"is none of {', '.join(get_args(Reason))}",
    }
    return f"{path} {told.get(kind, 'has the wrong type')}"
