"""The first-start questions: whether to ask, what is still open, and what the model is told of it (WD-30 to WD-35). Pure.

Only the owner is asked, once, and once more on another day for what is open then. A model that calls tools asks in its own words and stores the
answers by `profile_set`; beside one that cannot, the program asks, and `agent.plain_answers` reads what comes back.
"""

from __future__ import annotations

import re
import zoneinfo
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from enum import StrEnum

from memory.onboarding import Progress, State

ASKED_FIELDS = ("bot_name", "address", "style")
"""What is asked for; language and zone are proposed and only need a yes (WD-33)."""

TIMES = 2
LANGUAGE_NAMES: Mapping[str, str] = {
    "english": "en", "englisch": "en", "英語": "en", "英语": "en", "英文": "en",
    "japanese": "ja", "japanisch": "ja", "日本語": "ja", "日语": "ja", "日文": "ja", "日本语": "ja",
    "chinese": "zh", "chinesisch": "zh", "中国語": "zh", "中文": "zh", "汉语": "zh", "漢語": "zh", "简体中文": "zh-Hans", "繁體中文": "zh-Hant",
    "german": "de", "french": "fr", "spanish": "es", "korean": "ko", "russian": "ru",
}  # fmt: skip


class Step(StrEnum):
    CLOSED = "closed"
    FINISH = "finish"  # nothing more will be asked: the state becomes done
    ASK = "ask"
    LISTEN = "listen"  # asked earlier today: answers are taken, nothing is asked


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """What the owner said of bot and self; empty for what was not said."""

    bot_name: str = ""
    style: str = ""
    address: str = ""
    language: str = ""
    timezone: str = ""
    facts: tuple[str, ...] = ()
    skip: bool = False

    @property
    def values(self) -> dict[str, str]:
        """The single answers by name, those that were given."""
        named = {
            "bot_name": self.bot_name,
            "style": self.style,
            "address": self.address,
            "language": self.language,
            "timezone": self.timezone,
        }
        return {name: value for name, value in named.items() if value}


def next_step(progress: Progress, *, today: date, turn_id: str, by_hand: bool) -> Step:
    """What a turn of the owner's does about the questions. `by_hand`: a person or an import wrote into the files the answers go to (WD-31)."""
    if progress.state in (State.DONE, State.DISMISSED):
        return Step.CLOSED
    if (by_hand and not progress.reopened) or not open_fields(progress):
        return Step.FINISH
    if progress.state is State.NEW or progress.asked_on is None:
        return Step.ASK
    if progress.asked_on == today:
        return Step.ASK if progress.turn == turn_id else Step.LISTEN
    return Step.ASK if progress.asked < TIMES else Step.FINISH


def open_fields(progress: Progress) -> tuple[str, ...]:
    """The questions without an answer, in the order in which they are asked."""
    return tuple(field for field in ASKED_FIELDS if field not in progress.given)


def language_tag(text: str) -> str:
    """A language as its tag (BCP 47): `ja`, `zh-Hans`, `de` …; from its name where that is known. Empty for what is none."""
    bare = text.strip()
    named = LANGUAGE_NAMES.get(bare.casefold(), bare)
    return named if re.fullmatch("[A-Za-z]{2,3}(?:-[A-Za-z0-9]{2,8}){0,4}", named) else ""


def zone_name(text: str) -> str:
    """An IANA zone as it is spelled; empty for what is none."""
    try:
        return zoneinfo.ZoneInfo(text.strip()).key if text.strip() else ""
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return ""


_ASK = """[first-start questions]
First do what the newest message asks, whole. If it is only a greeting, greet back and say in one line what you can do.
Then, below it in the same answer, ask in {language}, friendly, in at most 100 words together: {questions}. Propose these and ask for a plain yes: \
language {language}; {zone}. Say that "skip" is a fine answer too.
Whatever of this the person has said already, also in this message, you store with profile_set and do not ask."""
_LISTEN = """[first-start questions]
You asked the person earlier today; still open: {questions}. If the newest message answers some of it, or says yes to the proposed language \
({language}) and {zone}, call profile_set with what was said; if they would rather not, with skip. Do not ask again today."""
_WORDS = {"bot_name": "a name for you", "address": "how to address the person", "style": "the style you should speak in"}
_LANGUAGES = {"en": "English", "ja": "Japanese", "zh": "Chinese"}
SKIPPED_NOTE = "[first-start questions]\nThe person skipped them. Say in half a sentence that this is fine and that /setup brings them back."


def note(step: Step, fields: Sequence[str], *, language: str, zone: str, name: str = "") -> str:
    """The note for a model that calls tools; empty when there is nothing to say. `name`: what the person's account is called, empty for none."""
    if step not in (Step.ASK, Step.LISTEN):
        return ""
    words = {**_WORDS, "address": f"{_WORDS['address']} (the account says {name}: propose that)"} if name else _WORDS
    return (_ASK if step is Step.ASK else _LISTEN).format(
        questions=", ".join(words[field] for field in fields),
        language=_LANGUAGES.get(language, language),
        zone=f"time zone {zone}" if zone else "the time zone of the person's city, which you do not know yet",
    )
