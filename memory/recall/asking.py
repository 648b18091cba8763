"""What a reply asks the past: the words of people since the responder last spoke (RS-33), and the names in them (RS-35, RS-177). Pure."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from memory import words

MESSAGES_MAX = 6
CHARACTERS_MAX = 1_000


@dataclass(frozen=True, slots=True)
class Line:
    """A message of the live talk. `responder`: the character that said it, empty for people."""

    text: str
    responder: str = ""


def question_of(talk: Sequence[Line], responder: str) -> str:
    """The people's messages since `responder` last spoke, at most six, else the newest one; the newest 1,000 characters. `talk`: oldest first."""
    last = max((at for at, line in enumerate(talk) if line.responder == responder), default=None)
    since = talk[last + 1 :] if last is not None else talk[-1:]
    asked = [line.text for line in since if not line.responder and line.text.strip()][-MESSAGES_MAX:]
    return unicodedata.normalize("NFC", "\n".join(asked))[-CHARACTERS_MAX:].strip()


def too_short(question: str) -> bool:
    """Fewer than three letters and fewer than two characters of a script without blanks say nothing to search by."""
    return sum(map(str.isalpha, question)) < 3 and len(words.CJK.findall(question)) < 2


def names_in(question: str, known: Iterable[str], not_telling: Iterable[str] = ()) -> tuple[frozenset[str], ...]:
    """Tokens of each known name that stands in the question. `not_telling`: the responder's own names and the persona of who asks, which stand
    everywhere. Names are looked for as the index cuts words, so a Latin name is found as a whole word and a Japanese one inside of a run."""
    asked = set(words.tokens(question))
    never = {_tokens(name) for name in not_telling}
    found = (_tokens(name) for name in known)
    return tuple(dict.fromkeys(name for name in found if name and name <= asked and name not in never))


def _tokens(name: str) -> frozenset[str]:
    """The tokens that tell a name: whole words and pairs; single characters and beginnings of words say less than they do."""
    terms = words.terms(name)
    heaviest = max((term.weight for term in terms), default=0.0)
    return frozenset(term.token for term in terms if term.weight == heaviest)
