"""Files at the vendor's store, up and down (WX-51, WX-53): which addresses are asked, how often, and how much is taken."""

from __future__ import annotations

import io
import logging
from urllib.parse import quote

import aiohttp
from yarl import URL

from channels.errors import AttachmentRefused, ConnectionLost
from channels.wechat import downloads
from channels.wechat.downloads import FILE_LIMITS, reason
from channels.wechat.ilink import media
from channels.wechat.ilink.api import Api, Declined, NotSent
from channels.wechat.ilink.frames import UploadPlace
from channels.wechat.ilink.media import Reference, Upload
from channels.wechat.ilink.settings import IlinkSettings

log = logging.getLogger(__name__)

TRIES = 3


async def upload(api: Api, wanted: Upload, to: str) -> dict[str, object]:
    """Store a file and return the item that shows it. Nothing is shown by that, so broken connections and 5xx are tried again, three times in all.

    Declined: the vendor does not take the file. NotSent or another ConnectionLost: not now.
    """
    place = await api.upload_place(wanted.asked(to))
    url = place.upload_full_url.strip() or _upload_url(api.settings, place, wanted.filekey)
    if not url or not api.settings.trusts(url):
        raise Declined(0, "the vendor named no address for the file that may be used")
    sealed = media.seal(wanted.plain, wanted.key)
    for tries_left in reversed(range(TRIES)):
        try:
            return wanted.item(await _put(api.files, url, sealed))
        except ConnectionLost as error:
            log.info("the upload of a file broke (%s), %d tries left", error, tries_left)
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


async def download(session: aiohttp.ClientSession, settings: IlinkSettings, reference: Reference, max_bytes: int) -> bytes:
    """The plain bytes of a received file, at most `max_bytes`. AttachmentRefused: never; ConnectionLost: not now."""
    if reference.unreadable:
        raise AttachmentRefused("the file's key has a form that is not known")
    limit = min(max_bytes, settings.attachment_bytes)
    url = reference.url or f"{settings.cdn_url}/download?encrypted_query_param={quote(reference.parameter, safe='')}"
    data, _ = await downloads.download(session, url, trusts=settings.trusts, limit=media.sealed_size(limit) if reference.key else limit)
    plain = media.open_sealed(data, bytes.fromhex(reference.key)) if reference.key else data
    if len(plain) > limit:
        raise AttachmentRefused(f"the file is larger than {limit} bytes")
    return plain


def _upload_url(settings: IlinkSettings, place: UploadPlace, filekey: str) -> str:
    if not place.upload_param:
        return ""
    return f"{settings.cdn_url}/upload?encrypted_query_param={quote(place.upload_param, safe='')}&filekey={quote(filekey, safe='')}"


def _exact(url: str) -> URL:
    """As it was given: a signed address must not be spelled anew."""
    return URL(url, encoded=True)


async def _put(session: aiohttp.ClientSession, url: str, sealed: bytes) -> str:
    """The parameter by which the file is downloaded: it comes in a header (WX-51)."""
    headers = {"Content-Type": "application/octet-stream"}
    try:
        # As a stream: a large body of plain bytes would be copied at once, which the library warns of.
        async with session.post(_exact(url), data=io.BytesIO(sealed), headers=headers, timeout=FILE_LIMITS, allow_redirects=False) as response:
            status, told = response.status, response.headers.get("x-error-message", "")
            parameter = response.headers.get("x-encrypted-param", "")
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        raise NotSent(f"cannot connect to the file store ({reason(error)})") from error
    except (aiohttp.ClientError, OSError) as error:
        raise ConnectionLost(f"the file store broke the connection ({reason(error)})") from error
    if status >= 500:
        raise ConnectionLost(f"the file store answered HTTP {status}")
    if status != 200:
        raise Declined(status, told[:200])
    if not parameter:
        raise Declined(status, "the file store did not say where the file is")
    return parameter
