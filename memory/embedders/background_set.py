"""The bundled passages in three languages that say what is common: for centring and floors of embedders (SM-33), and for rare words (RS-175)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, zip_longest
from pathlib import Path

from memory import words
from memory.languages import LANGUAGES

VERSION = "1"
_FOLDER = Path(__file__).parent / "background"


@dataclass(frozen=True, slots=True)
class Background:
    """`passages`: as people's memories and messages are; `questions`: messages that none of them answers; `pairs`: a passage and a message that it
    does answer. Languages take turns, so that the first n of anything hold all of them."""

    passages: tuple[str, ...]
    questions: tuple[str, ...]
    pairs: tuple[tuple[str, str], ...]


@cache
def background() -> Background:
    """The set, read once."""
    kinds: dict[str, list[list[str]]] = {"p": [], "q": [], "r": []}
    for language in LANGUAGES:
        lines = _lines(language)
        for kind, texts in kinds.items():
            texts.append([line[2:] for line in lines if line.startswith(f"{kind} ")])
    taken = {kind: tuple(text for text in chain.from_iterable(zip_longest(*texts)) if text) for kind, texts in kinds.items()}
    pairs = ((passage, question) for passage, _, question in (text.partition("\t") for text in taken["r"]))
    return Background(taken["p"], taken["q"], tuple(pairs))


def language_of(passage: str) -> str:
    """Of a passage of the set; KeyError for another text."""
    return _languages()[passage]


@cache
def _languages() -> Mapping[str, str]:
    return {line[2:]: language for language in LANGUAGES for line in _lines(language)}


def _lines(language: str) -> list[str]:
    return (_FOLDER / f"{language}.txt").read_text(encoding="utf-8").splitlines()


@cache
def holding() -> Mapping[str, int]:
    """In how many of the passages each token would stand, were all of them of the language and kind that use it most: a particle of one language is
    no rare word because there are two more, nor are the words that every question is asked with, which no passage holds."""
    kinds: dict[tuple[str, bool], list[set[str]]] = {}
    for language in LANGUAGES:
        for line in _lines(language):
            is_passage = line.startswith("p ")
            text = line[2:] if is_passage or line.startswith("q ") else line.rpartition("\t")[2]
            kinds.setdefault((language, is_passage), []).append(set(words.tokens(text)))
    most: dict[str, float] = {}
    for sets in kinds.values():
        for token, count in Counter(chain.from_iterable(sets)).items():
            most[token] = max(most.get(token, 0.0), count / len(sets))
    return {token: round(share * len(background().passages)) for token, share in most.items()}
