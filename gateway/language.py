"""Every sentence the gateway says to a person, in English, Japanese and Chinese: one catalogue per language under `texts/`.

A test holds the catalogues complete and their placeholders equal. The language of a chat is the person's setting, else the client's, else
guessed from the script of what they wrote.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files

LANGUAGES = ("en", "ja", "zh")

_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")


def say(language: str, key: str, **values: object) -> str:
    """The sentence `key` in `language` (English for an unknown one). KeyError for an unknown key: that is a fault of ours, not of the person."""
    return catalogue(language if language in LANGUAGES else "en")[key].format_map(values)


def guess(text: str, otherwise: str = "en") -> str:
    """The language of `text` by its script: kana is Japanese, Han without kana Chinese, Latin letters English, anything else `otherwise`."""
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "zh"
    return "en" if re.search("[A-Za-z]{2}", text) else otherwise


def from_tag(tag: str) -> str:
    """`ja-JP`, `zh-Hans-CN` or an Accept-Language header, reduced to one of ours; empty when none fits."""
    for choice in tag.split(","):
        primary = choice.split(";")[0].strip().split("-")[0].lower()
        if primary in LANGUAGES:
            return primary
    return ""


@cache
def catalogue(language: str) -> dict[str, str]:
    return json.loads((files("gateway") / "texts" / f"{language}.json").read_text(encoding="utf-8"))
