"""What a summary request says of a talk, and what of its answer may be kept (WD-44, WD-45, WD-67, WD-70). Pure.

Messages have short labels (m1, m2 …) in the request; what the answer cites is led back to them by code, and whose words a bullet rests on with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from zoneinfo import ZoneInfo

from pydantic import BaseModel, ConfigDict, ValidationError

from memory.coverage import Talk
from memory.daily import bullet as one_bullet
from memory.evidence import unsupported
from memory.extract import Words
from memory.lines import line_hash
from memory.markdown_lines import one_line
from memory.provenance import Origin
from memory.secret_patterns import find_secret

MESSAGE_MAX = 2_000  # characters of one message, head and tail
_HEAD, _TAIL = 1_300, 660
_CUT = "\n[… left out …]\n"
_OBJECT = re.compile(r"\s*(?:```[a-zA-Z]*\s*\n(?P<inside>.*?)\n?\s*```|(?P<bare>\{.*\}))\s*", re.DOTALL)


class AnswerUnusable(Exception):
    """The model's answer keeps not to the form, or did not end normally: smaller pieces may go better (WD-45)."""

    foreseen = True  # weak models do this daily


@dataclass(frozen=True, slots=True, kw_only=True)
class Bullet:
    """One line for a daily file. `sources`: ids of messages; `speakers`: ids of the people among their authors."""

    text: str
    origin: Origin
    sources: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """What of an answer may be kept. `unsupported`: how many bullets said a number, link or date that their messages do not; `secrets`: kinds."""

    bullets: tuple[Bullet, ...]
    unsupported: int = 0
    secrets: tuple[str, ...] = ()


class _Raw(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    text: str
    sources: list[str] = []  # pydantic copies defaults


class _Answer(BaseModel):
    model_config = ConfigDict(strict=True, extra="ignore", frozen=True)

    bullets: list[_Raw]


# -- the request -----------------------------------------------------------------------------------------------------------


def rendered(talk: Sequence[Talk], zone: ZoneInfo) -> str:
    """The messages of one conversation as they stand in a request: `m1 [2026-03-08 Sunday 14:05] Anna: …`.

    Further lines are indented: a label at the start of a line is always ours, whatever words or names play.
    """
    lines = [
        f"m{number} [{_when(message.created_at, zone)}] {_who(message)}: " + "\n  ".join(shown(message).splitlines())
        for number, message in enumerate(talk, start=1)
    ]
    return "\n".join(lines)


def shown(message: Talk) -> str:
    """The words of a message within 2,000 characters, head and tail, and the names of its files."""
    text = message.text
    if len(text) > MESSAGE_MAX:
        text = f"{text[:_HEAD]}{_CUT}{text[-_TAIL:]}"
    return "\n".join(filter(None, [text, *(f"[file: {name}]" for name in message.files)]))


def words_of(talk: Sequence[Talk]) -> list[Words]:
    """The same messages for the extract that needs no model."""
    return [Words(id=each.id, speaker=each.author_name, text=shown(each), by_person=each.role == "user") for each in talk]


def pieces(talk: Sequence[Talk], room: int, size: Callable[[Talk], int]) -> list[list[Talk]]:
    """The talk in order, cut between messages so that each piece has at most `room` tokens, or one message; nothing is left out (WD-45)."""
    found: list[list[Talk]] = []
    left = 0
    for message in talk:
        cost = size(message)
        if not found or cost > left:
            found.append([])
            left = room
        found[-1].append(message)
        left -= cost
    return found


def _when(instant: datetime, zone: ZoneInfo) -> str:
    return f"{instant.astimezone(zone):%Y-%m-%d %A %H:%M}"


def _who(message: Talk) -> str:
    return one_line(message.author_name) or ("person" if message.role == "user" else "assistant")


# -- the answer ------------------------------------------------------------------------------------------------------------


def parsed(text: str) -> list[tuple[str, list[str]]]:
    """Text and labels of each bullet of an answer; a code fence around it is taken off. Raises AnswerUnusable."""
    found = _OBJECT.fullmatch(text)
    if found is None:
        raise AnswerUnusable("the answer is no JSON object")
    try:
        answer = _Answer.model_validate_json(found["inside"] or found["bare"])
    except ValidationError as error:
        raise AnswerUnusable(f"the answer has another form: {error.errors(include_input=False, include_url=False)[0]['msg']}") from error
    return [(raw.text, raw.sources) for raw in answer.bullets]


def checked(raw: Sequence[tuple[str, list[str]]], talk: Sequence[Talk], zone: ZoneInfo, *, reserved: Collection[str] = ()) -> Checked:
    """The bullets that may be kept, each with what it rests on. `talk` is what the request showed, in its order.

    Unknown labels are dropped; a bullet without a valid one has origin `unsourced`. A bullet with a number, link, handle or date that its messages
    do not say is left out (WD-70), as is one with a secret (WD-22). `reserved`: people of whom nothing may be promoted (WD-51); what rests on their
    words counts as unsourced, so that no dream takes it as evidence.
    """
    labels = {f"m{number}": message for number, message in enumerate(talk, start=1)}
    kept: dict[str, Bullet] = {}
    wrong, secrets = 0, list[str]()
    for text, cited in raw:
        line = one_bullet(text)
        if not line:
            continue
        if secret := find_secret(line):
            secrets.append(secret)
            continue
        sources = [labels[label] for label in dict.fromkeys(map(str.strip, cited)) if label in labels]
        if unsupported(line, [_support(message) for message in sources or talk], _dates(sources or talk, zone)):
            wrong += 1
            continue
        kept.setdefault(line_hash(line), bullet_of(line, sources, reserved=reserved))
    return Checked(bullets=tuple(kept.values()), unsupported=wrong, secrets=tuple(secrets))


def bullet_of(line: str, sources: Sequence[Talk], *, reserved: Collection[str] = ()) -> Bullet:
    """A line with its origin, settled by the messages it cites and by nothing that the model said (WD-67)."""
    speakers = tuple(dict.fromkeys(message.author_person_id for message in sources if message.role == "user" and message.author_person_id))
    return Bullet(
        text=line, origin=_origin(sources, speakers, reserved), sources=tuple(message.id for message in sources), speakers=speakers
    )  # fmt: skip


def _origin(sources: Sequence[Talk], speakers: Sequence[str], reserved: Collection[str]) -> Origin:
    if not sources or any(speaker in reserved for speaker in speakers):
        return Origin.UNSOURCED
    if any(message.foreign_text for message in sources):
        return Origin.MIXED
    return Origin.PERSON if any(message.role == "user" for message in sources) else Origin.ASSISTANT


def _support(message: Talk) -> str:
    return "\n".join((message.text, message.author_name, *message.files))


def _dates(talk: Sequence[Talk], zone: ZoneInfo) -> list[date]:
    return sorted({message.created_at.astimezone(zone).date() for message in talk})
