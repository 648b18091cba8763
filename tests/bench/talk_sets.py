"""Long talks with questions whose answers stand in known messages: three scripted ones of ours, and LoCoMo's where a person has them at hand.

A script is scenes, parted by blank lines: `=` a message of the person that holds a fact, `>` another of theirs, `<` one of the companion; `?` asks
for the fact of its scene, first in other words and then in its own; `-` are questions that nothing in the talk answers. The facts are the same in
every language, in the same order.

An archive is a script lost in chatter (AT-1): `{a|b}` are choices and `{name}` one of a list that stands first. Chatter takes them by chance (`c`,
and `<` of the companion), a fact with its two questions (`f`) and an unrelated question (`u`) take the first of each, then the second, and so on.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import chain
from pathlib import Path
from typing import Any, TypeVar

from memory.languages import LANGUAGES

T = TypeVar("T")

SCRIPTS = Path(__file__).parent / "talk"
NAMES = {"en": ("Eliza", "Yume"), "ja": ("美咲", "ユメ"), "zh": ("林夏", "小梦")}
START = datetime(2026, 1, 5, 9, tzinfo=UTC)
ARCHIVE = 10_000  # chunks (AT-1)
SIZE = 5  # messages of a chunk
WITHOUT_ANSWER = 5  # the category of LoCoMo's questions that the talk does not answer


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A message of a scripted talk. `ours`: the companion said it."""

    speaker: str
    text: str
    at: datetime
    ours: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question, and the places in the talk of the messages that answer it."""

    text: str
    evidence: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LongTalk:
    """`unrelated`: questions about nothing in it; `names`: of who speaks."""

    name: str
    lines: tuple[Line, ...]
    asked: tuple[Asked, ...]
    unrelated: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(line.speaker for line in self.lines))


def scripted(language: str) -> LongTalk:
    """Our talk in one language: a scene a day, facts among chatter, in an order that is always the same."""
    scenes, unrelated = _scenes(language)
    random.Random(3).shuffle(scenes)
    person, companion = NAMES[language]
    lines: list[Line] = []
    asked: list[tuple[int, Asked]] = []
    for day, (number, scene) in enumerate(scenes):
        fact = 0
        for minute, line in enumerate(line for line in scene if line[0] != "?"):
            fact = len(lines) if line[0] == "=" else fact
            at = START + timedelta(days=day, minutes=minute)
            lines.append(Line(speaker=companion if line[0] == "<" else person, text=line[2:], at=at, ours=line[0] == "<"))
        asked += [(number, Asked(text=line[2:], evidence=(fact,))) for line in scene if line[0] == "?"]
    ordered = tuple(each for _, each in sorted(asked, key=lambda item: item[0]))
    return LongTalk(name=language, lines=tuple(lines), asked=ordered, unrelated=unrelated)


def archive(language: str, chunks: int = ARCHIVE) -> LongTalk:
    """The scripted talk and 56 facts more, each somewhere in so many chunks of chatter; 200 questions for them and 200 that nothing answers."""
    script, made = scripted(language), _Templates(SCRIPTS / f"archive.{language}.txt")
    chooser = random.Random(7)
    facts = _in_turn([[_filled_in(text, at).split("\t") for at in range(FACT_CHOICES)] for text in made.lines["f"]], 1)
    unrelated = _in_turn([[_filled_in(text, at) for at in range(UNRELATED_CHOICES)] for text in made.lines["u"]], 2)
    person, companion = NAMES[language]
    chatter = chunks * SIZE - len(script.lines) - len(facts)
    lines: list[tuple[bool, str, int]] = [(line.ours, line.text, at) for at, line in enumerate(script.lines)]
    lines += [(False, fact[0], -1 - number) for number, fact in enumerate(facts)]
    places = sorted(chooser.sample(range(chatter + len(lines)), len(lines)))  # the script keeps its order, facts stand anywhere
    order = [*range(len(script.lines))]
    for number in range(len(facts)):
        order.insert(chooser.randrange(len(order) + 1), len(script.lines) + number)
    told: list[Line] = []
    stands: dict[int, int] = {}
    planted = dict(zip(places, order, strict=True))
    for at in range(chatter + len(lines)):
        ours, text, mark = lines[planted[at]] if at in planted else (*made.chatter(chooser), None)
        if mark is not None:
            stands[mark] = at
        told.append(Line(speaker=companion if ours else person, text=text, at=START + timedelta(minutes=7 * at), ours=ours))
    asked = [Asked(text=each.text, evidence=tuple(stands[place] for place in each.evidence)) for each in script.asked]
    asked += [Asked(text=question, evidence=(stands[-1 - number],)) for number, fact in enumerate(facts) for question in fact[1:]]
    return LongTalk(name=f"{language}, {chunks:,} chunks", lines=tuple(told), asked=tuple(asked), unrelated=(*script.unrelated, *unrelated))


FACT_CHOICES, UNRELATED_CHOICES = 4, 5
_INNERMOST = re.compile(r"\{([^{}]*)\}")


class _Templates:
    """The file of an archive. `lines`: by kind, lists put in as choices."""

    def __init__(self, path: Path) -> None:
        self.lines: dict[str, list[str]] = {"c": [], "<": [], "f": [], "u": []}
        lists: dict[str, str] = {}
        for line in filter(None, path.read_text(encoding="utf-8").splitlines()):
            name, is_list, values = line.partition(" = ")
            if is_list:
                lists[f"{{{name}}}"] = f"{{{values}}}"
                continue
            for key, choices in lists.items():
                line = line.replace(key, choices)
            self.lines[line[0]].append(line[2:])

    def chatter(self, chooser: random.Random) -> tuple[bool, str]:
        """Whether the companion says it, and what."""
        ours = chooser.random() < 0.4
        text = chooser.choice(self.lines["<" if ours else "c"])
        while found := _INNERMOST.search(text):
            text = text[: found.start()] + chooser.choice(found[1].split("|")) + text[found.end() :]
        return ours, text


def _filled_in(text: str, at: int) -> str:
    return _INNERMOST.sub(lambda found: found[1].split("|")[at], text)


def _in_turn(made: Sequence[Sequence[T]], together: int) -> list[T]:
    """What the templates made, so many of those with an even number and so many of those with an odd one in turn: halves share no template."""
    halves = [list(chain.from_iterable(made[half::2])) for half in (0, 1)]
    return [each for at in range(0, len(halves[0]), together) for half in halves for each in half[at : at + together]]


def _scenes(language: str) -> tuple[list[tuple[int, list[str]]], tuple[str, ...]]:
    parts = (SCRIPTS / f"{language}.txt").read_text(encoding="utf-8").split("\n\n")
    lines = [part.strip().splitlines() for part in parts]
    return list(enumerate(lines[:-1])), tuple(line[2:] for line in lines[-1])


def all_scripted() -> tuple[LongTalk, ...]:
    return tuple(scripted(language) for language in LANGUAGES)


def locomo(path: Path) -> tuple[LongTalk, ...]:
    """LoCoMo's conversations with the questions that they answer, from its file (CC BY-NC 4.0: for measuring only)."""
    unrelated = _scenes("en")[1]
    return tuple(_conversation(sample, unrelated) for sample in json.loads(path.read_text(encoding="utf-8")))


def _conversation(sample: dict[str, Any], unrelated: Sequence[str]) -> LongTalk:
    talk = sample["conversation"]
    lines: list[Line] = []
    places: dict[str, int] = {}
    for at, message in _messages(talk):
        places[message["dia_id"]] = len(lines)
        lines.append(Line(speaker=message["speaker"], text=message["text"], at=at, ours=message["speaker"] == talk["speaker_b"]))
    asked = [
        Asked(text=each["question"], evidence=tuple(places[turn] for turn in each["evidence"] if turn in places))
        for each in sample["qa"]
        if each["category"] != WITHOUT_ANSWER
    ]
    answered = tuple(each for each in asked if each.evidence)
    return LongTalk(name=str(sample["sample_id"]), lines=tuple(lines), asked=answered, unrelated=tuple(unrelated))


def _messages(talk: dict[str, Any]) -> Iterator[tuple[datetime, dict[str, Any]]]:
    numbers = sorted(int(key.split("_")[1]) for key, value in talk.items() if key.startswith("session_") and isinstance(value, list))
    for number in numbers:
        began = datetime.strptime(talk[f"session_{number}_date_time"], "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for minute, message in enumerate(talk[f"session_{number}"]):
            yield began + timedelta(minutes=minute), message
