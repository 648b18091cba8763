"""The vendor's API: the access token, the customer-service messages, files (WX-11 to WX-13, WX-80 to WX-83).

One token is valid at a time for the whole app, so it is asked for once, kept in the vault and taken from there. No error's text holds it: addresses
are never told, for the token stands in them.
"""

from __future__ import annotations

import asyncio
import io
import json
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Any, cast
from urllib.parse import quote, urlsplit

import aiohttp

from channels.errors import AttachmentRefused, ConnectionLost, CredentialRefused
from channels.message import Attachment, safe_name
from channels.port import Vault
from channels.wechat import downloads
from channels.wechat.official.settings import OfficialSettings

CALL_LIMITS = aiohttp.ClientTimeout(total=15, connect=5)
EARLY = timedelta(minutes=10)  # WX-81: a token is renewed so long before it ends
TOKEN_KEY = "access_token"
STALE_TOKEN = (40001, 40014, 42001)
BAD_APP = (40013, 40125, 40164, 41002, 41004)  # app id or secret wrong or missing, or our address is not on the vendor's list
ANSWER_MAX = 1_000_000
VENDOR_DOMAINS = ("weixin.qq.com", "qpic.cn", "qlogo.cn")  # where the vendor keeps pictures


class NotSent(ConnectionLost):
    """The request provably never left."""


class NoAnswer(ConnectionLost):
    """It may have arrived."""


class Declined(Exception):
    """The vendor answered that it will not (WX-13)."""

    def __init__(self, code: int, words: str) -> None:
        super().__init__(f"{code} {words[:200]}".strip())
        self.code = code


class AskedToWait(Exception):
    def __init__(self, after_s: float) -> None:
        super().__init__(f"asked to wait {after_s:g} s")
        self.after_s = after_s


class OfficialApi:
    """The calls of one app, while its session is open."""

    def __init__(self, session: aiohttp.ClientSession, settings: OfficialSettings, vault: Vault, *, clock: Callable[[], datetime]) -> None:
        self._session = session
        self._settings = settings
        self._vault = vault
        self._clock = clock
        self._renewing = asyncio.Lock()

    async def send(self, message: Mapping[str, Any]) -> str:
        """The id of the message, where the vendor names one."""
        return str((await self._asked("message/custom/send", message)).get("msgid", ""))

    async def typing(self, person: str, *, on: bool) -> None:
        await self._asked("message/custom/typing", {"touser": person, "command": "Typing" if on else "CancelTyping"})

    async def upload(self, kind: str, file: Attachment, data: bytes) -> str:
        """A temporary medium; its id serves both ways of replying (WX-83)."""
        form = aiohttp.FormData()
        form.add_field("media", io.BytesIO(data), filename=safe_name(file.name), content_type=file.mime or "application/octet-stream")
        told = await self._with_token("media/upload", lambda url: self._call("POST", f"{url}&type={kind}", form, limits=downloads.FILE_LIMITS))
        if not (media_id := told.get("media_id")):
            raise Declined(0, "the vendor named no medium")
        return str(media_id)

    async def download(self, url: str, media_id: str, max_bytes: int) -> bytes:
        """A received file. AttachmentRefused: never; ConnectionLost: not now."""
        if url:
            return await self._fetched(url, max_bytes)
        if not media_id or not self._settings.app_secret:
            raise AttachmentRefused("the account has no right to read files")
        token = await self.token()
        return await self._fetched(f"{self._settings.api_base}/cgi-bin/media/get?access_token={token}&media_id={quote(media_id, safe='')}", max_bytes)

    async def token(self, *, instead_of: str = "") -> str:
        """The app's access token. `instead_of`: one that the vendor no longer takes."""
        async with self._renewing:  # whoever waited finds the new one in the vault
            kept = _kept(await self._vault.get(TOKEN_KEY), self._clock())
            if kept and kept != instead_of:
                return kept
            address = f"{self._settings.api_base}/cgi-bin/token"
            asked = {"grant_type": "client_credential", "appid": self._settings.app_id, "secret": self._settings.app_secret}
            try:
                told = await self._call("GET", address, None, query=asked)
            except Declined as error:
                if error.code in BAD_APP:
                    text = f"the vendor refuses the app ({error}): check app_id, app_secret and the list of addresses"
                    raise CredentialRefused(text, code="bad_app") from None
                raise
            token, lives_s = told.get("access_token"), told.get("expires_in")
            if not isinstance(token, str) or not token:
                raise NoAnswer("the vendor gave no access token")
            until = self._clock() + timedelta(seconds=lives_s if isinstance(lives_s, int) else 7200)
            await self._vault.put({TOKEN_KEY: json.dumps({"token": token, "until": until.isoformat()}).encode()})
            return token

    async def _asked(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        data = json.dumps(body, ensure_ascii=False).encode()  # real UTF-8: people would see the escapes (WX-12)
        return await self._with_token(path, lambda url: self._call("POST", url, data))

    async def _with_token(self, path: str, call: Callable[[str], Any]) -> dict[str, Any]:
        """A stale token is renewed once, and the call repeated once (section 3.3)."""
        token = await self.token()
        try:
            return await call(self._address(path, token))
        except Declined as error:
            if error.code not in STALE_TOKEN:
                raise
        return await call(self._address(path, await self.token(instead_of=token)))

    def _address(self, path: str, token: str) -> str:
        return f"{self._settings.api_base}/cgi-bin/{path}?access_token={token}"

    async def _call(
        self, method: str, url: str, data: Any, *, query: Mapping[str, str] | None = None, limits: aiohttp.ClientTimeout = CALL_LIMITS
    ) -> dict[str, Any]:
        headers = {"Content-Type": "application/json; charset=utf-8"} if isinstance(data, bytes) else {}
        try:
            async with self._session.request(
                method, url, data=data, params=query, headers=headers, timeout=limits, allow_redirects=False
            ) as response:
                status, after = response.status, response.headers.get("Retry-After", "")
                body = await response.content.read(ANSWER_MAX)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise NotSent(f"cannot connect to the vendor ({type(error).__name__})") from None
        except (aiohttp.ClientError, OSError) as error:
            raise NoAnswer(f"the vendor's answer did not arrive ({type(error).__name__})") from None
        if status == 429 and after.isdigit():
            raise AskedToWait(float(after))
        if status != 200:
            raise NoAnswer(f"the vendor answered HTTP {status}")
        try:
            told = json.loads(body)
        except ValueError:
            raise NoAnswer("what came back cannot be read") from None
        if not isinstance(told, dict):
            raise NoAnswer("what came back cannot be read")
        found = cast("dict[str, Any]", told)
        code = found.get("errcode", 0)
        if code:
            raise Declined(code if isinstance(code, int) else 0, str(found.get("errmsg", "")))
        return found

    async def _fetched(self, url: str, max_bytes: int) -> bytes:
        data, kind = await downloads.download(self._session, url, trusts=self.trusts, limit=max_bytes)
        if kind in ("application/json", "text/plain") and data.lstrip().startswith(b'{"errcode"'):
            raise AttachmentRefused("the vendor does not give the file out")
        return data

    def trusts(self, url: str) -> bool:
        """May a file be fetched from there? The vendor's hosts and those set; plain HTTP there too, for that is how pictures are named."""
        try:
            asked = urlsplit(url)
            host, _ = asked.hostname or "", asked.port
        except ValueError:
            return False
        base = urlsplit(self._settings.api_base)
        if asked.scheme not in ("http", "https") or asked.username is not None:
            return False
        own = (asked.scheme, asked.netloc) == (base.scheme, base.netloc)
        return own or host in self._settings.trusted_hosts or any(host == name or host.endswith(f".{name}") for name in VENDOR_DOMAINS)


@asynccontextmanager
async def connected(settings: OfficialSettings, vault: Vault, *, clock: Callable[[], datetime]) -> AsyncGenerator[OfficialApi]:
    connector = aiohttp.TCPConnector(force_close=True)  # whether a call on a kept connection ever left could not be told
    async with aiohttp.ClientSession(connector=connector, trust_env=False, cookie_jar=aiohttp.DummyCookieJar()) as session:
        yield OfficialApi(session, settings, vault, clock=clock)


def _kept(data: bytes | None, now: datetime) -> str:
    """The token that is kept, while it is good for ten minutes more; else empty."""
    try:
        told = json.loads(data or b"{}")
        until = datetime.fromisoformat(told["until"]).astimezone(UTC)
        return str(told["token"]) if now < until - EARLY else ""
    except (ValueError, TypeError, KeyError):
        return ""
