"""The library's requests over aiohttp. Measured with 200 chats that speak at once: a tenth of the processor time of the client that it brings along,
which looks through all its connections, and all that wait for one, at each request (RL-8).

No error names an address, for the token stands in it (CH-160).
"""

from __future__ import annotations

import asyncio
import re
import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any, cast

import aiohttp
from telegram.error import NetworkError, TimedOut
from telegram.request import BaseRequest, RequestData
from yarl import URL

CONNECT_S = 10.0  # also for a connection to become free
ANSWER_S = 20.0  # for a call that sends
UPLOAD_S = 45.0
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")  # not in a header
KEEP_S = 5.0  # for which an idle connection is kept: less than any server keeps it, for one that it closed meanwhile makes a call unknown


class NotSent(Exception):
    """Why a request provably never left (CH-164)."""


class PoolClosed(aiohttp.ClientError):
    """The pool was closed before the request had a connection."""


class Wire(BaseRequest):
    """A pool of `size` connections, opened with the first request."""

    def __init__(self, size: int, trust: ssl.SSLContext) -> None:
        self._size = size
        self._trust = trust
        self._session: aiohttp.ClientSession | None = None

    @property
    def read_timeout(self) -> float | None:
        return ANSWER_S

    async def initialize(self) -> None:
        self.session()

    async def shutdown(self) -> None:
        if self._session is not None and self._session.connector is not None:
            await self._session.connector.close()  # the session keeps it: what still looks for its proxy finds a closed pool, and not none at all

    def session(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=self._size, ssl=self._trust, keepalive_timeout=KEEP_S)
            self._session = aiohttp.ClientSession(connector=connector, headers={"User-Agent": self.USER_AGENT}, trust_env=True)
        return self._session

    @asynccontextmanager
    async def opened(self, method: str, url: str | URL, **asked: Any) -> AsyncGenerator[aiohttp.ClientResponse]:
        """The answer to a request, before its body. Raises aiohttp's errors and PoolClosed."""
        session = self.session()
        if session.closed:
            raise PoolClosed
        answered = False
        try:
            async with session.request(method, url, allow_redirects=False, **asked) as answer:
                answered = True
                yield answer
        except aiohttp.ClientConnectionError as error:
            if answered or not str(error).startswith("Connector is closed"):  # the wording is the library's: another one makes it unknown
                raise
            raise PoolClosed from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if answered or not session.closed or task is None or task.cancelling():
                raise
            raise PoolClosed from None  # nobody cancelled us: so ends whatever waits for a connection, or a name, when its pool is closed

    async def do_request(
        self,
        url: str,
        method: str,
        request_data: RequestData | None = None,
        read_timeout: Any = BaseRequest.DEFAULT_NONE,
        write_timeout: Any = BaseRequest.DEFAULT_NONE,
        connect_timeout: Any = BaseRequest.DEFAULT_NONE,
        pool_timeout: Any = BaseRequest.DEFAULT_NONE,
    ) -> tuple[int, bytes]:
        """The status and the body. Raises TimedOut or NetworkError, with NotSent as the cause where that is known."""
        files = cast("dict[str, tuple[str, bytes, str]]", request_data.multipart_data or {}) if request_data else {}
        read_s = read_timeout if isinstance(read_timeout, int | float) else ANSWER_S
        write_s = UPLOAD_S if files else ANSWER_S
        limits = aiohttp.ClientTimeout(total=CONNECT_S + write_s + read_s, connect=CONNECT_S, sock_read=read_s + (write_s if files else 0))
        try:
            async with self.opened(method, url, data=_body(request_data, files), timeout=limits) as answer:
                return answer.status, await answer.read()
        except (aiohttp.ConnectionTimeoutError, aiohttp.ClientConnectorError, aiohttp.ClientHttpProxyError, PoolClosed) as error:
            fault: Exception = NotSent(_named(error))
            timed_out = isinstance(error, TimeoutError)
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            fault, timed_out = ConnectionError(_named(error)), isinstance(error, TimeoutError)
        raise TimedOut if timed_out else NetworkError(str(fault)) from fault  # outside: the error may name the address


def _body(given: RequestData | None, files: dict[str, tuple[str, bytes, str]]) -> dict[str, str] | aiohttp.FormData | None:
    if given is None:
        return None
    if not files:
        return given.json_parameters or None
    form = aiohttp.FormData(given.json_parameters, quote_fields=False)  # a Bot API shows a quoted name as it stands: `%E6%97%85.pdf`
    for field, (name, data, mime) in files.items():
        form.add_field(field, data, filename=_CONTROL.sub(" ", name), content_type=mime)
    return form


def _named(error: Exception) -> str:
    said = error.strerror if isinstance(error, OSError) else ""
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
