"""The calls of the bot interface (WX-27, WX-28): headers, limits, and what became of a request that failed.

A token goes to trusted hosts alone and follows no redirect. No error's text holds a token, a signed address or a person's words.
"""

from __future__ import annotations

import base64
import json
import logging
import random
import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from http import HTTPStatus
from typing import Any, TypeVar, cast

import aiohttp

from channels.errors import ChannelError, ConnectionLost
from channels.wechat.downloads import read_within, reason
from channels.wechat.ilink.frames import Answer, Code, CodeStatus, Config, Shown, Updates, UploadPlace
from channels.wechat.ilink.settings import CHANNEL_VERSION, CLIENT_VERSION, IlinkSettings

log = logging.getLogger(__name__)

CONNECT_S = 10.0
SEND_S, ASIDE_S = 15.0, 10.0
ANSWER_MAX = 8_000_000  # bytes of one answer; a batch of messages is far below
GONE, LIMITED, INVALID = -14, -2, -3
_SURROGATE = re.compile("[\ud800-\udfff]")
_BUSY = frozenset({HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.TOO_EARLY, HTTPStatus.TOO_MANY_REQUESTS})

A = TypeVar("A", bound=Answer)


class NotSent(ConnectionLost):
    """The request provably never left: try again."""


class NoAnswer(ConnectionLost):
    """It left, and nothing that can be read came back. `timed_out`: our own limit. `failed`: the server answered that it could not."""

    def __init__(self, text: str, *, timed_out: bool = False, failed: bool = False) -> None:
        super().__init__(text)
        self.timed_out = timed_out
        self.failed = failed


class AskedToWait(ConnectionLost):
    """Not taken, and the server says for how long not."""

    def __init__(self, after_s: float) -> None:
        super().__init__(f"asked to wait {after_s:g} s")
        self.after_s = after_s


class Declined(ChannelError):
    """The server understood and says no: `code` is the vendor's, or the HTTP status."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(f"{code} {message}".rstrip())
        self.code = code


def uin() -> str:
    """`X-WECHAT-UIN`: base64 of the decimal text of a random uint32, fresh for each call (WX-27)."""
    return spelled_uin(random.getrandbits(32))


def spelled_uin(number: int) -> str:
    return base64.b64encode(str(number).encode()).decode()


def get_headers(settings: IlinkSettings) -> dict[str, str]:
    route = {"SKRouteTag": settings.route_tag} if settings.route_tag else {}
    return {"iLink-App-Id": "bot", "iLink-App-ClientVersion": CLIENT_VERSION} | route


def post_headers(settings: IlinkSettings, token: str) -> dict[str, str]:
    """`token` is empty during a login."""
    bearer = {"Authorization": f"Bearer {token}"} if token else {}
    fixed = {"Content-Type": "application/json", "AuthorizationType": "ilink_bot_token", "X-WECHAT-UIN": uin()}
    return fixed | bearer | get_headers(settings)


def encoded(body: Mapping[str, Any]) -> bytes:
    """Real UTF-8: people would see the escapes (WX-12). A lone surrogate becomes a question mark."""
    return json.dumps(body, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


class Api:
    """One bot's server. Polls have a connection of their own, so that nothing else can keep them waiting."""

    def __init__(self, settings: IlinkSettings, base_url: str, token: str, *, polls: aiohttp.ClientSession, calls: aiohttp.ClientSession) -> None:
        self.settings = settings
        self.base_url = base_url.rstrip("/")
        self.files = calls
        self._token = token
        self._polls = polls
        self._calls = calls

    async def updates(self, cursor: str, *, limit_s: float) -> Updates:
        return await self._post("getupdates", {"get_updates_buf": cursor}, Updates, limit_s, session=self._polls)

    async def send(self, message: Mapping[str, Any]) -> Shown:
        return await self._post("sendmessage", {"msg": message}, Shown, SEND_S)

    async def upload_place(self, asked: Mapping[str, Any]) -> UploadPlace:
        return await self._post("getuploadurl", asked, UploadPlace, SEND_S)

    async def config(self, person: str, context_token: str) -> Config:
        return await self._post("getconfig", {"ilink_user_id": person, "context_token": context_token}, Config, ASIDE_S)

    async def typing(self, person: str, ticket: str, *, on: bool) -> None:
        await self._post("sendtyping", {"ilink_user_id": person, "typing_ticket": ticket, "status": 1 if on else 2}, Answer, ASIDE_S)

    async def notify(self, what: str, *, limit_s: float = ASIDE_S) -> None:
        """`start` or `stop` (WX-29)."""
        await self._post(f"msg/notify{what}", {}, Answer, limit_s)

    async def code(self, tokens: list[str]) -> Code:
        """A login code; asked without `base_info` and without a token (WX-22, WX-28)."""
        url = f"{self.base_url}/ilink/bot/get_bot_qrcode"
        body = encoded({"local_token_list": tokens})
        request = self._calls.post(
            url, params={"bot_type": "3"}, data=body, headers=post_headers(self.settings, ""), timeout=_limits(SEND_S), allow_redirects=False
        )
        return _read(*await _answered(request, "get_bot_qrcode"), Code, "get_bot_qrcode")

    async def code_status(self, base_url: str, code: str, number: str, *, limit_s: float) -> CodeStatus:
        params = {"qrcode": code} | ({"verify_code": number} if number else {})
        url = f"{base_url.rstrip('/')}/ilink/bot/get_qrcode_status"
        request = self._polls.get(url, params=params, headers=get_headers(self.settings), timeout=_limits(limit_s), allow_redirects=False)
        return _read(*await _answered(request, "get_qrcode_status"), CodeStatus, "get_qrcode_status")

    async def _post(
        self, call: str, body: Mapping[str, Any], kind: type[A], limit_s: float, *, session: aiohttp.ClientSession | None = None
    ) -> A:
        """The answer; NotSent, NoAnswer, AskedToWait or Declined."""
        whole = {**body, "base_info": {"channel_version": CHANNEL_VERSION, "bot_agent": self.settings.bot_agent}}
        request = (session or self._calls).post(
            f"{self.base_url}/ilink/bot/{call}",
            data=encoded(whole),
            headers=post_headers(self.settings, self._token),
            timeout=_limits(limit_s),
            allow_redirects=False,
        )
        answer = _read(*await _answered(request, call), kind, call)
        if answer.code == INVALID:
            log.error("%s was refused as invalid; the form of what was sent: %s", call, shape(body))
        if answer.code:
            raise Declined(answer.code, self._safe(answer.errmsg))
        return answer

    def _safe(self, message: str) -> str:
        """The vendor's words, without our token and not at length."""
        return message.replace(self._token, "***")[:200] if self._token else message[:200]


@asynccontextmanager
async def connected(settings: IlinkSettings, base_url: str, token: str) -> AsyncGenerator[Api]:
    """Calls take a fresh connection each: on an idle one that the server has just closed nobody could tell whether a message left."""
    async with (
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=1)) as polls,
        aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=32, force_close=True)) as calls,
    ):
        yield Api(settings, base_url, token, polls=polls, calls=calls)


def _limits(total_s: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total_s, connect=min(CONNECT_S, total_s))


async def _answered(request: AbstractAsyncContextManager[aiohttp.ClientResponse], call: str) -> tuple[int, bytes, str]:
    """Status, body and `Retry-After`."""
    try:
        async with request as response:
            body = await read_within(response, ANSWER_MAX)
            status, after = response.status, response.headers.get("Retry-After", "")
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotSent(f"{call}: cannot connect ({reason(error)})") from error
    except TimeoutError as error:
        raise NoAnswer(f"{call}: no answer in time", timed_out=True) from error
    except (aiohttp.ClientError, OSError) as error:
        raise NoAnswer(f"{call}: the connection broke ({reason(error)})") from error
    if body is None:
        raise NoAnswer(f"{call}: the answer is longer than {ANSWER_MAX} bytes")
    return status, body, after


def _read(status: int, body: bytes, after: str, kind: type[A], call: str) -> A:
    """The answer's facts. HTTP 200 alone says nothing: the body does (WX-13)."""
    if status == HTTPStatus.TOO_MANY_REQUESTS and after.isdigit() and int(after) > 0:
        raise AskedToWait(float(after))
    if status in _BUSY or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        raise NoAnswer(f"{call}: HTTP {status}", failed=True)
    if status >= HTTPStatus.BAD_REQUEST:
        raise Declined(status, "HTTP")
    if status != HTTPStatus.OK:
        raise NoAnswer(f"{call}: HTTP {status}", failed=True)
    try:
        return kind.model_validate(_mended(json.loads(body)))
    except ValueError as error:  # pydantic's is one too
        raise NoAnswer(f"{call}: what came back cannot be read") from error


def _mended(value: Any) -> Any:
    """The same data without lone surrogates, which no later step could take (CH-6)."""
    match value:
        case dict():
            return {key: _mended(item) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [_mended(item) for item in cast("list[Any]", value)]
        case str() if not value.isascii() and _SURROGATE.search(value):
            return _SURROGATE.sub("\ufffd", value)
        case _:
            return value


def shape(value: Any) -> Any:
    """The form of a body without its values, for the log (section 2.8, -3)."""
    match value:
        case dict():
            return {key: shape(item) for key, item in cast("dict[str, Any]", value).items()}
        case list():
            return [shape(item) for item in cast("list[Any]", value)]
        case str():
            return f"text of {len(value)}"
        case _:
            return type(value).__name__
