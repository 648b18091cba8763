"""What a handler raises to refuse a request, and its JSON form: `{"error": {"code", "message", "param"}}`."""

from __future__ import annotations

from collections.abc import Mapping

from aiohttp import web

from gateway.language import say

_OPENAI_TYPES = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}


class HttpFault(Exception):
    """A refusal with a sentence for the person: `key` names it in the catalogue, `values` fill it in.

    `code` is for programs and never changes; `param` names the field of the body that is to blame; `headers` go out with it.
    """

    def __init__(
        self, status: int, code: str, key: str, /, *, param: str = "", headers: Mapping[str, str] | None = None, **values: object
    ) -> None:
        super().__init__(f"{status} {code}")
        self.status = status
        self.code = code
        self.key = key
        self.param = param
        self.headers = dict(headers or {})
        self.values = values

    def answer(self, language: str, *, openai: bool = False) -> web.Response:
        """The refusal in `language`; with `openai`, in the shape that OpenAI's clients read."""
        return web.json_response(self.shown(language, openai=openai), status=self.status, headers=self.headers)

    def shown(self, language: str, *, openai: bool = False) -> dict[str, dict[str, str | None]]:
        """The body of `answer`, for an event stream that has begun already."""
        error: dict[str, str | None] = {"code": self.code, "message": say(language, self.key, **self.values), "param": self.param}
        if openai:
            error["param"] = self.param or None
            error["type"] = _OPENAI_TYPES.get(self.status, "invalid_request_error" if self.status < 500 else "server_error")
        return {"error": error}


def too_often(wait_s: float) -> HttpFault:
    """429: `wait_s` seconds until another try, told to the person and to the client (`Retry-After`, whole seconds)."""
    seconds = max(1, int(-(-wait_s // 1)))
    return HttpFault(429, "too_often", "error_too_often", headers={"Retry-After": str(seconds)}, seconds=seconds)


def not_found() -> HttpFault:
    """404: not there, or not the asker's; the two are never told apart."""
    return HttpFault(404, "not_found", "error_not_found")


def forbidden() -> HttpFault:
    return HttpFault(403, "forbidden", "error_forbidden")
