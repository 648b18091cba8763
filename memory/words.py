"""The one tokeniser: what a text is found by when words are searched (WD-109, WD-110, RS-176). The same for what is stored and what is asked. Pure.

Scripts that put no blanks between words (Han, kana, Hangul, Thai, Lao, Khmer) give overlapping pairs and single characters, all others Unicode words.
Tokens hold letters, digits, marks and signs alone, so neither index cuts or misreads them.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import regex

VERSION = 1
"""Of what is cut and how. Another number makes every index anew: raise it with any change below, the weights apart, which questions alone have."""

PREFIX = "¬"  # before the first letters of a longer word; a sign that no word holds
PREFIX_LETTERS = 4
TERMS_MAX = 64  # of one question; pairs and whole words first
_TOKEN_MAX = 64  # characters: a line of base64 is no word

CJK = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}]")
SPACELESS = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Hangul}\p{Thai}\p{Lao}\p{Khmer}ー"
_PIECE = regex.compile(rf"(?V1)(?P<run>[{SPACELESS}]+)|(?P<word>[[\p{{L}}\p{{M}}\p{{N}}]--[{SPACELESS}]]+)|(?P<sign>\p{{So}})")
_RUN_PAIR = regex.compile(rf"[{SPACELESS}]{{2}}")
_KATAKANA_PAIR = regex.compile(r"[\p{Katakana}ー]{2}")
_HIRAGANA_PAIR = regex.compile(r"\p{Hiragana}{2}")
_PLAIN = regex.compile("[\x00-\x7f]*")
_UNSEEN = regex.compile(r"[\p{Cf}\u0640]+")  # joiners, soft hyphens, marks of direction, the Arabic stretch
_LETTERS = str.maketrans({"ø": "o", "ł": "l", "đ": "d", "ð": "d", "ı": "i", "ħ": "h", "æ": "ae", "œ": "oe", "þ": "th"})  # no accent to take off
_ACCENT = 10  # combining class from which a mark is an accent; below are the parts of letters: voicing of kana, Indic vowels and virama
_THAI_LAO = range(0x0E00, 0x0F00)  # their tone marks are classed as accents, and tell words apart

_WORD, _PAIR, _ENDING, _START, _SINGLE = 1.0, 1.0, 0.5, 0.5, 0.3


@dataclass(frozen=True, slots=True)
class Term:
    """One token of a question. `weight`: how much it says beside the others; the start of a word, a single character of a longer run and a pair of
    hiragana, most often an ending, say less."""

    token: str
    weight: float


def folded(text: str) -> str:
    """`text` with compatibility forms, case and accents folded; ё is е (WD-110)."""
    if _PLAIN.fullmatch(text):
        return text.casefold()
    text = unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", _UNSEEN.sub("", text)).casefold())
    apart = unicodedata.normalize("NFD", text)
    bare = "".join(sign for sign in apart if unicodedata.combining(sign) < _ACCENT or ord(sign) in _THAI_LAO)
    return unicodedata.normalize("NFC", bare).translate(_LETTERS)


def tokens(text: str) -> list[str]:
    """Every token of `text` in order, repeated ones too. Empty when it holds nothing that can be searched."""
    return [term.token for term in _cut(text)]


def terms(question: str) -> tuple[Term, ...]:
    """The different tokens of a question, at most TERMS_MAX; those that say most come first."""
    weights: dict[str, float] = {}
    for term in _cut(question):
        weights[term.token] = max(term.weight, weights.get(term.token, 0.0))
    ordered = sorted(weights.items(), key=lambda item: -item[1])  # stable: equal ones keep their order
    return tuple(Term(token, weight) for token, weight in ordered[:TERMS_MAX])


def beside(tokens: Sequence[str]) -> list[tuple[int, ...]]:
    """For each of a question's tokens the places of the pairs that share a character with it; only pairs of a script without blanks have such.

    A word in katakana has no borders in it: its pairs have themselves alone.
    """
    pairs = [at for at, token in enumerate(tokens) if _RUN_PAIR.fullmatch(token)]
    whole = {at for at in pairs if _KATAKANA_PAIR.fullmatch(tokens[at])}
    found: list[list[int]] = [[] for _ in tokens]
    for at in pairs:
        near = [other for other in pairs if other != at and (tokens[at][1] == tokens[other][0] or tokens[at][0] == tokens[other][1])]
        found[at] = [other for other in near if other not in whole] or [at] if at in whole else near
    return [tuple(each) for each in found]


def _cut(text: str) -> Iterator[Term]:
    for found in _PIECE.finditer(folded(text)):
        piece = found[0]
        if found.lastgroup == "run":
            yield from _pairs(piece)
        elif found.lastgroup == "word":
            yield Term(piece[:_TOKEN_MAX], _WORD)
            if len(piece) >= PREFIX_LETTERS and not any(map(str.isdigit, piece)):
                yield Term(PREFIX + piece[:PREFIX_LETTERS], _START)
        else:
            yield Term(piece, _WORD)


def _pairs(run: str) -> Iterator[Term]:
    alone = _WORD if len(run) == 1 else _SINGLE
    for at, sign in enumerate(run):
        if at + 1 < len(run):
            pair = run[at : at + 2]
            yield Term(pair, _ENDING if _HIRAGANA_PAIR.fullmatch(pair) else _PAIR)
        if not unicodedata.category(sign).startswith("M"):  # a vowel sign by itself says nothing
            yield Term(sign, alone)
