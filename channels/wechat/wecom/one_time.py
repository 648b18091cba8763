"""The one-time address of a message: an answer that no poll came for is posted there, once (WX-122)."""

from __future__ import annotations

import json
import logging

import aiohttp

from channels.port import SendOutcome, Sent, TryLater, Unknown
from channels.wechat.wecom.askings import Asking
from channels.wechat.wecom.streams import rest

UNTIL_WRITTEN = TryLater(until_written=True)
CALL_LIMITS = aiohttp.ClientTimeout(total=15, connect=5)
ANSWER_MAX = 100_000  # bytes

log = logging.getLogger(__name__)


async def post(session: aiohttp.ClientSession, asking: Asking, text: str) -> SendOutcome:
    """`text` to the address of `asking`, which is good no more unless nothing has left. What the stream was ended with is not said again."""
    words = rest(text, asking.kept) if asking.kept else text
    data = json.dumps({"msgtype": "markdown", "markdown": {"content": words or text}}, ensure_ascii=False).encode()
    url, asking.url = asking.url, ""
    try:
        async with session.post(
            url, data=data, headers={"Content-Type": "application/json; charset=utf-8"}, timeout=CALL_LIMITS, allow_redirects=False
        ) as response:
            code = _code(response.status, await response.content.read(ANSWER_MAX))
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError):
        asking.url = url
        return TryLater()
    except (aiohttp.ClientError, OSError) as error:
        return Unknown(f"the answer did not arrive ({type(error).__name__})")
    if code is None:
        return Unknown("what came back cannot be read")
    if code:
        log.info("%s: the one-time address is not taken (%d): the answer waits for the person", asking.address.account, code)
        return UNTIL_WRITTEN
    return Sent((f"{asking.question}:url",))


def _code(status: int, body: bytes) -> int | None:
    """The code of an answer, 0 for good; None when nobody can tell (WX-13)."""
    if status != 200:
        return None
    try:
        code = json.loads(body).get("errcode", 0)
    except (ValueError, AttributeError):
        return None
    return code if isinstance(code, int) else None
