"""A received file from a vendor's store: redirects lead only to where files may lie, and no more is held than may be."""

from __future__ import annotations

from collections.abc import Callable
from urllib.parse import urljoin

import aiohttp
from yarl import URL

from channels.errors import AttachmentRefused, ConnectionLost

REDIRECTS_MAX = 3
FILE_LIMITS = aiohttp.ClientTimeout(total=60, connect=10)


async def download(session: aiohttp.ClientSession, url: str, *, trusts: Callable[[str], bool], limit: int) -> tuple[bytes, str]:
    """The bytes, `limit` at most, and their media type. AttachmentRefused: never; ConnectionLost: not now.

    Addresses are signed, or hold a token: no error names one, and none has a cause that does."""
    for _ in range(REDIRECTS_MAX + 1):
        if not trusts(url):
            raise AttachmentRefused("the file lies at an address that is not the vendor's")
        try:
            async with session.get(URL(url, encoded=True), timeout=FILE_LIMITS, allow_redirects=False) as response:
                if response.status in (301, 302, 303, 307, 308):
                    url = urljoin(url, response.headers.get("Location", ""))
                    continue
                if response.status >= 500:
                    raise ConnectionLost(f"the file store answered HTTP {response.status}")
                if response.status != 200:
                    raise AttachmentRefused(f"the file store does not give the file out (HTTP {response.status})")
                data = await read_within(response, limit)
        except aiohttp.ClientConnectorSSLError:
            raise ConnectionLost("no safe connection to the file store could be made (TLS)") from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise ConnectionLost(f"the file did not arrive ({reason(error)})") from None
        if data is None:
            raise AttachmentRefused(f"the file is larger than {limit} bytes")
        return data, response.content_type
    raise AttachmentRefused("the file's address leads on and on")


async def read_within(response: aiohttp.ClientResponse, limit: int) -> bytes | None:
    """The body, or None when it is longer than `limit` bytes; no more than that is ever held."""
    if response.content_length is not None and response.content_length > limit:
        return None
    data = bytearray()
    async for chunk in response.content.iter_any():
        data += chunk
        if len(data) > limit:
            return None
    return bytes(data)


def reason(error: Exception) -> str:
    """What broke, without the address that the library's own text may hold."""
    detail = error.strerror if isinstance(error, OSError) else ""
    return detail or type(error).__name__
