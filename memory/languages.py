"""The languages that the program speaks, and which of them a text is in."""

from __future__ import annotations

import re

LANGUAGES = ("en", "ja", "zh")

_KANA = re.compile("[\u3040-\u30ff]")
_HAN = re.compile("[\u3400-\u9fff]")


def guess(text: str) -> str:
    """The language of `text` by its script: kana is Japanese, Han without kana Chinese, anything else English."""
    if _KANA.search(text):
        return "ja"
    if _HAN.search(text):
        return "zh"
    return "en"
