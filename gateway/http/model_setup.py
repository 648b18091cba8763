"""Setting up a model from the page: try an endpoint, find a local server, write the key where the configuration can refer to it (WO-3)."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Annotated, TypeAlias

import aiohttp
import pydantic
import sqlalchemy as sa
from aiohttp import web
from pydantic import AfterValidator, StringConstraints

from agent.errors import ModelError, ModelMisconfigured
from gateway import audit
from gateway.config.types import Url
from gateway.http.base import Body, HttpFault, actor_of, answer, body, language_of, require_person
from gateway.language import say
from gateway.secret_file import put_secret
from memory.database import Database

LOCAL_PORTS = (11434, 1234, 8080, 8000, 5001)  # Ollama, LM Studio, llama.cpp, vLLM, KoboldCpp
LOCAL_TIMEOUT_S = 0.5
LOCAL_ANSWER_MAX = 256 * 1024  # bytes
TEST_TIMEOUT_S = 60.0
SECRET_NAME = "YUMEGATE_MODEL_KEY"


def _literal(text: str) -> str:
    # The configuration would put the environment's value in its place (WO-33).
    if "${" in text:
        raise ValueError("${…} is not filled in here: give the value itself")
    return text


def _filled(text: str) -> str:
    if not text.strip():
        raise ValueError("must not be empty")
    return text


class Endpoint(Body):
    """An OpenAI-compatible endpoint. `api_key` may be empty, as for most local servers; it is one word without quotes."""

    base_url: Annotated[Url, StringConstraints(max_length=2000), AfterValidator(_filled), AfterValidator(_literal)]
    api_key: Annotated[str, StringConstraints(pattern=r"^[!#-&(-~]{0,4000}$"), AfterValidator(_literal)] = ""
    name: Annotated[str, StringConstraints(max_length=500), AfterValidator(_filled), AfterValidator(_literal)]


Probe: TypeAlias = Callable[[Endpoint], Awaitable[str]]
"""One small request to the endpoint; the answer's text. Raises ModelError."""


class _Model(pydantic.BaseModel):
    id: str


class _Models(pydantic.BaseModel):
    """What `/v1/models` of a local server says; only the names matter."""

    data: list[_Model]


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalServer:
    base_url: str
    models: tuple[str, ...]


async def find_local(ports: Sequence[int] = LOCAL_PORTS, timeout_s: float = LOCAL_TIMEOUT_S) -> list[LocalServer]:
    """The servers on this machine that list models in OpenAI's form; all ports at once, each within `timeout_s`."""
    limit = aiohttp.ClientTimeout(total=timeout_s)
    async with aiohttp.ClientSession(timeout=limit, trust_env=False) as client, asyncio.TaskGroup() as group:
        asked = [group.create_task(_ask(client, port)) for port in ports]
    return [server for task in asked if (server := task.result())]


async def _ask(client: aiohttp.ClientSession, port: int) -> LocalServer | None:
    base_url = f"http://127.0.0.1:{port}/v1"
    try:
        async with client.get(f"{base_url}/models", allow_redirects=False) as response:
            raw = await response.content.read(LOCAL_ANSWER_MAX)
            while len(raw) < LOCAL_ANSWER_MAX and (more := await response.content.read(LOCAL_ANSWER_MAX - len(raw))):
                raw += more
        models = _Models.model_validate_json(raw)
    except (aiohttp.ClientError, TimeoutError, pydantic.ValidationError):  # nobody there, or not a model server
        return None
    return LocalServer(base_url=base_url, models=tuple(model.id for model in models.data))


class ModelRoutes:
    def __init__(self, *, probe: Probe, secrets_file: Path, db: Database, clock: Callable[[], datetime], ports: Sequence[int] = LOCAL_PORTS) -> None:
        self._probe = probe
        self._secrets_file = secrets_file
        self._db = db
        self._clock = clock
        self._ports = ports

    def routes(self) -> list[web.RouteDef]:
        return [
            web.post("/api/operator/model/test", self.test),
            web.get("/api/operator/model/local", self.local),
            web.post("/api/operator/model/write", self.write),
        ]

    async def test(self, request: web.Request) -> web.Response:
        endpoint = await body(request, Endpoint)
        try:
            async with asyncio.timeout(TEST_TIMEOUT_S):
                text = await self._probe(endpoint)
        except TimeoutError:
            advice = say(language_of(request), "try_slow", seconds=f"{TEST_TIMEOUT_S:.0f}")
            return answer({"ok": False, "answer": "", "error": f"no answer within {TEST_TIMEOUT_S:.0f} s", "advice": advice})
        except ModelError as error:
            told = f"{error}: {error.excerpt}" if error.excerpt and error.excerpt not in str(error) else str(error)
            return answer({"ok": False, "answer": "", "error": _without(endpoint.api_key, told), "advice": _advice(error, language_of(request))})
        return answer({"ok": True, "answer": _without(endpoint.api_key, text), "error": "", "advice": ""})

    async def local(self, request: web.Request) -> web.Response:
        return answer({"servers": await find_local(self._ports)})

    async def write(self, request: web.Request) -> web.Response:
        """The key into `secrets.env`; the answer has the lines for `config.json`, which is never written here (WO-32)."""
        require_person(request, "owner")
        endpoint = await body(request, Endpoint)
        secret_name = SECRET_NAME if endpoint.api_key else ""
        if secret_name:
            try:
                await asyncio.to_thread(put_secret, self._secrets_file, secret_name, endpoint.api_key)
            except (OSError, UnicodeDecodeError) as error:
                raise HttpFault(503, "cannot_write", "error_cannot_write", path=self._secrets_file.name) from error
        await self._record(request, endpoint, secret_name)
        return answer({"lines": config_lines(endpoint, secret_name), "secret_name": secret_name, "path": str(self._secrets_file)})

    async def _record(self, request: web.Request, endpoint: Endpoint, secret_name: str) -> None:
        actor, now = actor_of(request), self._clock()
        after = {"base_url": endpoint.base_url, "name": endpoint.name, "secret_name": secret_name, "api_key": endpoint.api_key}

        def work(connection: sa.Connection) -> None:
            audit.record(connection, actor, "model.write", at=now, target=self._secrets_file.name, after=after)

        await self._db.write(work)


def _advice(error: ModelError, language: str) -> str:
    """What to look at, in plain words beside the exact error."""
    misfit = error.misfit if isinstance(error, ModelMisconfigured) else None
    return say(language, f"try_{misfit or error.code}")


def config_lines(endpoint: Endpoint, secret_name: str) -> list[str]:
    """The lines to put into `config.json`, the key as a reference to the environment."""
    account = {"provider": "openai", "base_url": endpoint.base_url, "name": endpoint.name}
    if secret_name:
        account["api_key"] = f"${{{secret_name}}}"
    return re.sub(r"\A\{\n|\n\}\Z", "", json.dumps({"model": account}, indent=2, ensure_ascii=False)).splitlines()


def _without(secret: str, text: str) -> str:
    return text.replace(secret, audit.MASK) if len(secret) >= 4 else text
