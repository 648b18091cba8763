"""The one JSON object of a model's answer, read leniently: words and a fence around it, commas too many (RS-168).

For answers that are checked afterwards. The file summaries and dreams do not read so: there, other text around the object makes an answer invalid
(WD-72).
"""

from __future__ import annotations

import json
import re
from typing import Any, cast

_UNKEPT = re.compile("[\0\ud800-\udfff]")
_TRAILING = re.compile(r",(\s*[}\]])")


def object_in(answer: str) -> dict[str, Any] | None:
    """None where there is no object that can be read."""
    begin, end = answer.find("{"), answer.rfind("}")
    if begin < 0 or end < begin:
        return None
    inside = answer[begin : end + 1]
    for text in (inside, _TRAILING.sub(r"\1", inside)):
        try:
            value: object = json.loads(text, strict=False)
        except (ValueError, RecursionError):
            continue
        return cast("dict[str, Any]", _clean(cast("object", value))) if isinstance(value, dict) else None
    return None


def _clean(value: object) -> object:
    """Without what no database stores: halves of a sign, and NUL, which escapes bring in."""
    match value:
        case str():
            return _UNKEPT.sub("", value)
        case list():
            return [_clean(each) for each in cast("list[object]", value)]
        case dict():
            return {_UNKEPT.sub("", key): _clean(each) for key, each in cast("dict[str, object]", value).items()}
        case _:
            return value
