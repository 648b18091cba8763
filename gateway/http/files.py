"""Uploads and their bytes: limits by size and count, the type by content, random names, never served as active content (WO-63)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from urllib.parse import quote

from aiohttp import BodyPartReader, web
from aiohttp.http_exceptions import HttpProcessingError

from channels.message import safe_name
from gateway.attachments import SEEN, Attachments
from gateway.config import Config
from gateway.http.base import HttpFault, answer, not_found, require_person

log = logging.getLogger(__name__)

CHUNK = 1 << 16
UPLOAD_LIMIT_S = 300.0  # for a whole file


class FileRoutes:
    def __init__(self, *, attachments: Attachments, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._attachments = attachments
        self._config = config
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [web.post("/api/attachments", self.upload), web.get("/api/attachments/{id}", self.download)]

    async def upload(self, request: web.Request) -> web.Response:
        """One file, in the field `file` of a multipart form."""
        person = require_person(request)
        most = self._config().channels.web.attachment_bytes
        if request.content_type != "multipart/form-data":
            raise HttpFault(400, "bad_content_type", "error_bad_field", param="file", field="file", reason="multipart/form-data")
        try:
            async with asyncio.timeout(UPLOAD_LIMIT_S):
                part = await (await request.multipart()).next()
                if not isinstance(part, BodyPartReader) or part.name != "file" or not part.filename:
                    raise HttpFault(400, "bad_field", "error_bad_field", param="file", field="file", reason="missing")
                _refuse_paths(part.filename)
                data = bytearray()
                while chunk := await part.read_chunk(CHUNK):
                    data += chunk
                    if len(data) > most:
                        raise HttpFault(413, "too_large", "error_too_large", limit=f"{most // 1_000_000} MB")
        except TimeoutError as error:
            raise HttpFault(408, "too_slow", "error_too_slow") from error
        except (ValueError, AssertionError, web.RequestPayloadError, HttpProcessingError) as error:  # what aiohttp raises for a broken form
            raise HttpFault(400, "bad_request", "error_bad_request") from error
        try:
            stored = await self._attachments.keep(bytes(data), name=safe_name(part.filename), person_id=person.id, now=self._clock())
        except OSError as error:
            log.error("an upload cannot be kept: %s", error)
            raise HttpFault(503, "store", "store", headers={"Retry-After": "5"}) from error
        return answer({"id": stored.id, "name": stored.name, "mime": stored.mime, "size": stored.size}, status=201)

    async def download(self, request: web.Request) -> web.StreamResponse:
        person = require_person(request)
        stored = await self._attachments.find(request.match_info["id"], person.id)
        if stored is None:
            raise not_found()
        path = self._attachments.path_of(stored)
        if not path.is_file():
            raise not_found()
        inline = stored.mime in SEEN
        disposition = "inline" if inline else "attachment"
        headers = {
            "Content-Type": stored.mime if inline else "application/octet-stream",
            "Content-Disposition": f"{disposition}; filename*=UTF-8''{quote(stored.name)}",
            "Content-Security-Policy": "sandbox; default-src 'none'",
            "Cache-Control": "private, max-age=3600",
        }
        return web.FileResponse(path, headers=headers)


def _refuse_paths(name: str) -> None:
    """A name that tries to be a path is refused, not repaired (WP-17)."""
    if "/" in name or "\\" in name or name in (".", "..") or "\x00" in name:
        raise HttpFault(400, "bad_field", "error_bad_field", param="file", field="file", reason="a file name, not a path")
