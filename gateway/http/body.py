"""Where bytes of a request become facts: typed bodies, numbers of the query, ids of the path. Bad input is a 400 that names the field (RL-51)."""

from __future__ import annotations

import asyncio
from typing import TypeVar, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from pydantic import BaseModel, ConfigDict, ValidationError, field_validator

from channels.message import clean
from gateway.http.fault import HttpFault, not_found

M = TypeVar("M", bound=BaseModel)

READ_TIMEOUT_S = 30.0
BODY_MAX = 1 << 20  # bytes
_ROW_MAX = (1 << 63) - 1


class Body(BaseModel):
    """What a body may hold: known keys, the very types (no "1" for 1), texts without NUL and lone surrogates (CH-6).

    A key that was not sent is not in `model_fields_set`: that is how PATCH tells "leave it" from "make it null".
    """

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    @field_validator("*", mode="after")
    @classmethod
    def _hygiene(cls, value: object) -> object:
        return _cleaned(value)


async def body(request: web.Request, model: type[M], *, size_max: int = 0) -> M:
    """The JSON body as a `model`. `size_max` in bytes, where it is not the limit of the application.

    Raises 400 for another content type, a compressed body, broken JSON, too deep nesting, lone surrogates, wrong or unknown fields; 408 for a body
    that does not arrive within 30 s; 413 for one above the limit.
    """
    if request.content_type != "application/json" or "Content-Encoding" in request.headers:
        raise HttpFault(400, "bad_content_type", "error_content_type")
    raw = await _read(request.clone(client_max_size=size_max) if size_max else request)
    try:
        return model.model_validate_json(raw)
    except ValidationError as error:
        raise _fault(error) from error


def query_int(request: web.Request, name: str, default: int, *, low: int, high: int) -> int:
    """A whole number of the query string, kept within `low` and `high`; 400 when it is none."""
    text = request.query.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.removeprefix("-").isdigit() and len(text) < 20):
        raise HttpFault(400, "bad_field", "error_bad_field", param=name, field=name, reason="Input should be a valid integer")
    return min(max(int(text), low), high)


def row_id(request: web.Request, name: str) -> int:
    """A row number of the path; 404 for anything that cannot be one."""
    text = request.match_info[name]
    if not (text.isascii() and text.isdigit() and len(text) < 20 and int(text) <= _ROW_MAX):
        raise not_found()
    return int(text)


async def _read(request: web.Request) -> bytes:
    try:
        async with asyncio.timeout(READ_TIMEOUT_S):
            return await request.read()
    except TimeoutError as error:
        raise HttpFault(408, "too_slow", "error_too_slow") from error
    except web.HTTPRequestEntityTooLarge as error:
        raise HttpFault(413, "too_large", "error_too_large", limit=f"{request.client_max_size // 1024} KiB") from error
    except (web.RequestPayloadError, HttpProcessingError) as error:  # a broken chunk
        raise HttpFault(400, "bad_json", "error_bad_json", reason="the body cannot be read") from error


def _fault(error: ValidationError) -> HttpFault:
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    reason = first["msg"].removeprefix("Value error, ")
    if first["type"] == "json_invalid":
        return HttpFault(400, "bad_json", "error_bad_json", reason=reason.removeprefix("Invalid JSON: "))
    field = ".".join(clean(str(part)) for part in first["loc"])
    return HttpFault(400, "bad_field", "error_bad_field", param=field, field=field or "body", reason=reason)


def _cleaned(value: object) -> object:
    match value:
        case str():
            return clean(value)
        case list():
            return [_cleaned(item) for item in cast("list[object]", value)]
        case tuple():
            return tuple(_cleaned(item) for item in cast("tuple[object, ...]", value))
        case dict():
            return {_cleaned(key): _cleaned(item) for key, item in cast("dict[str, object]", value).items()}
        case _:
            return value
