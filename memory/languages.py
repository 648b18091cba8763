"""The languages that the program speaks, and which of them a text is in."""

from __future__ import annotations

import re

LANGUAGES = ("en", "ja", "zh")

_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")


def guess(text: str, otherwise: str = "en") -> str:
    """The language of `text` by its script: kana is Japanese, Han without kana Chinese, Latin letters English, anything else `otherwise`."""
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "zh"
    return "en" if re.search("[A-Za-z]{2}", text) else otherwise
