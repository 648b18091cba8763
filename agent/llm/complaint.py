"""What a provider says when it refuses, read from the many shapes of an error body into one.

`{"error": {…}}`, `{"error": "text"}`, `[{"error": {…}}]` (Gemini), `{"object": "error", …}` (vLLM), `{"detail": …}` (FastAPI), HTML, plain text.
"""

from __future__ import annotations

import html
import json
import re
from typing import cast

from pydantic import Field, ValidationError

from agent.llm.lenient import Count, Lenient, Many, Maybe, Text
from agent.llm.surrogates import mend

EXCERPT_CHARS = 300


class _Place(Lenient):
    msg: Text = ""
    loc: Text = ""


class _Detail(Lenient):
    retryDelay: Text = ""  # Google's own name and form: "35.2s"


class _Metadata(Lenient):
    raw: Text = ""


class Complaint(Lenient):
    """`code` and `kind` in lower case; `retry_delay` is Google's text such as `35s`; counts in tokens."""

    message: Text = ""
    code: Text = ""
    type: Text = ""
    status: Text = ""
    n_ctx: Count = None
    n_prompt_tokens: Count = None
    details: Many[_Detail] = Field(default_factory=list[_Detail])
    metadata: Maybe[_Metadata] = None

    @property
    def kind(self) -> str:
        return self.type or self.status

    @property
    def http_status(self) -> int | None:
        """Some write the status of the provider behind them as the code."""
        return int(self.code) if re.fullmatch(r"[45]\d\d", self.code) else None

    @property
    def retry_delay(self) -> str:
        return next((detail.retryDelay for detail in self.details if detail.retryDelay), "")


def read_complaint(body: str) -> Complaint:
    """The complaint in a body of any kind; never raises. Text that is no JSON is the message, without its tags."""
    try:
        parsed: object = json.loads(body)
    except (ValueError, RecursionError):
        return Complaint(message=plain(body))
    return complaint_in(parsed) or Complaint(message=plain(body))


def complaint_in(parsed: object) -> Complaint | None:
    """The complaint in parsed JSON, or None when it holds none: an answer, a ping, an error field that is null or empty."""
    if isinstance(parsed, list):
        items = cast("list[object]", parsed)
        return complaint_in(items[0]) if items else None
    if not isinstance(parsed, dict):
        return None
    body = cast("dict[str, object]", parsed)
    error = body.get("error")
    if isinstance(error, dict):
        return _read({**body, **cast("dict[str, object]", error)}) if error else None
    if isinstance(error, str):
        return _read({**body, "message": error}) if error else None
    if body.get("object") == "error" or ("choices" not in body and isinstance(body.get("message"), str)):
        return _read(body)
    detail = body.get("detail")
    if isinstance(detail, list):
        return _read({"message": "; ".join(_places(cast("list[object]", detail)))})
    return _read({"message": detail}) if isinstance(detail, str) else None


def _read(fields: dict[str, object]) -> Complaint:
    try:
        found = Complaint.model_validate(fields)
    except ValidationError:
        return Complaint(message=plain(json.dumps(fields)))
    words = found.message if found.metadata is None else f"{found.message} {found.metadata.raw}".strip()
    lower = {name: value.lower() for name, value in (("code", found.code), ("type", found.type), ("status", found.status))}
    return found.model_copy(update={"message": mend(words), **lower})


def _places(items: list[object]) -> list[str]:
    """FastAPI's list of faults: where and what, without the input, which is people's own text."""
    places: list[str] = []
    for item in items:
        try:
            place = _Place.model_validate(item)
        except ValidationError:
            continue
        places.append(f"{place.loc} {place.msg}".strip())
    return places


def plain(body: str) -> str:
    """Text a person can read of a body that is none of ours: no tags, one line."""
    text = re.sub(r"(?is)<(script|style)\b.*?</\1>|<[^>]*>", " ", body[:20_000])
    return mend(" ".join(html.unescape(text).split()))
