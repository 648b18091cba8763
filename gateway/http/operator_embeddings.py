"""The operator's embeddings: how they stand, the yes to a change that costs something, and the lines for another source (RS-25, RS-29)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Annotated, Literal

import sqlalchemy as sa
from aiohttp import web
from pydantic import AfterValidator, SecretStr, StringConstraints

from gateway import audit
from gateway.config.types import Url
from gateway.embedding.desk import SECRET_NAME, EmbeddingDesk, NothingWaits, config_lines
from gateway.embedding.source import EmbeddingSource
from gateway.http.base import Body, HttpFault, actor_of, answer, body, require_person
from gateway.secret_file import put_secret
from memory.database import Database


def _literal(text: str) -> str:
    # The configuration would put the environment's value in its place (WO-33).
    if "${" in text:
        raise ValueError("${…} is not filled in here: give the value itself")
    return text.strip()


_Literal = AfterValidator(_literal)


class Confirmed(Body):
    """`waits_for`: as the page showed it, so that nobody says yes to another change than the one they saw."""

    waits_for: Annotated[str, StringConstraints(min_length=1, max_length=4000)]


class Chosen(Body):
    """Another source. Google's models are asked in OpenAI's form, so they are `openai` with Google's address. `api_key` is one word."""

    provider: Literal["builtin", "openai", "none"]
    base_url: Annotated[Url, StringConstraints(max_length=2000), _Literal] = ""
    model: Annotated[str, StringConstraints(max_length=500), _Literal] = ""
    api_key: Annotated[str, StringConstraints(pattern=r"^[!#-&(-~]{0,4000}$"), _Literal] = ""


class EmbeddingRoutes:
    def __init__(self, *, desk: EmbeddingDesk, secrets_file: Path, db: Database, clock: Callable[[], datetime]) -> None:
        self._desk = desk
        self._secrets_file = secrets_file
        self._db = db
        self._clock = clock

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/api/operator/embeddings", self.show),
            web.post("/api/operator/embeddings/confirm", self.confirm),
            web.post("/api/operator/embeddings/write", self.write),
        ]

    async def show(self, request: web.Request) -> web.Response:
        return answer(await self._desk.view())

    async def confirm(self, request: web.Request) -> web.Response:
        wanted = await body(request, Confirmed)
        try:
            await self._desk.confirm(actor_of(request), wanted.waits_for)
        except NothingWaits:
            raise HttpFault(409, "nothing_waits", "error_nothing_waits") from None
        return answer(await self._desk.view())

    async def write(self, request: web.Request) -> web.Response:
        """The key into `secrets.env`; the answer has the lines for `config.json`, which is never written here (WO-32)."""
        require_person(request, "owner")
        chosen = await body(request, Chosen)
        missing = next((key for key in ("base_url", "model") if chosen.provider == "openai" and not getattr(chosen, key)), "")
        if missing:
            raise HttpFault(400, "bad_field", "error_bad_field", param=missing, field=missing, reason="needed for an endpoint")
        source = _source(chosen)
        secret_name = SECRET_NAME if source.api_key.get_secret_value() else ""
        if secret_name:
            try:
                await asyncio.to_thread(put_secret, self._secrets_file, secret_name, chosen.api_key)
            except (OSError, UnicodeDecodeError) as error:
                raise HttpFault(503, "cannot_write", "error_cannot_write", path=self._secrets_file.name) from error
        await self._record(request, chosen, secret_name)
        return answer({"lines": config_lines(source), "secret_name": secret_name, "path": str(self._secrets_file)})

    async def _record(self, request: web.Request, chosen: Chosen, secret_name: str) -> None:
        actor, now = actor_of(request), self._clock()
        after = {"provider": chosen.provider, "base_url": chosen.base_url, "model": chosen.model, "secret_name": secret_name}

        def work(connection: sa.Connection) -> None:
            audit.record(connection, actor, "embeddings.write", at=now, target=self._secrets_file.name, after=after)

        await self._db.write(work)


def _source(chosen: Chosen) -> EmbeddingSource:
    if chosen.provider == "openai":
        return EmbeddingSource(kind="openai", base_url=chosen.base_url, model=chosen.model, api_key=SecretStr(chosen.api_key))
    return EmbeddingSource(kind=chosen.provider, model=chosen.model if chosen.provider == "builtin" else "")
