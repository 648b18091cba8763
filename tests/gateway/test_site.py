"""The whole routing table as the composition root builds it: what is documented, and what answers a stranger (WP-11)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path

import aiohttp
import pytest

from agent.llm.scripted import ScriptedModel
from gateway.app import Choices, Parts, build
from gateway.config import Config
from gateway.http.auth import OPEN
from gateway.log_tail import LogTail
from gateway.standing import Standing
from gateway.wiring.controls import Controls
from memory.database import Database

DOCS = Path(__file__).resolve().parent.parent.parent / "docs" / "http-api.md"
OURS_ALONE = {("POST", "/control")}  # between the command line and the gateway of one machine


@pytest.fixture
async def parts(sqlite: Database, tmp_path: Path) -> AsyncIterator[Parts]:
    config = Config.model_validate({"data_dir": tmp_path / "data", "channels": {"web": {"port": 0}}})
    standing = Standing(config=config, config_path=str(tmp_path / "config.json"), loaded_at=datetime.now(UTC))

    async def nothing(*_: object) -> str:
        return ""

    async def reload() -> tuple[list[str], list[str]]:
        return [], []

    async def release() -> int:
        return 0

    async with AsyncExitStack() as stack, asyncio.TaskGroup() as group:
        choices = Choices(make_model=lambda _account: ScriptedModel([]), make_embedder=lambda _config: None)
        yield build(
            group,
            stack,
            sqlite,
            standing,
            choices,
            Controls(reload=reload, release=release, restart=lambda: None, probe=nothing, secret="c" * 20, logs=LogTail()),
        )


@pytest.mark.rule("WO-51")
async def test_every_route_is_documented(parts: Parts) -> None:
    page = DOCS.read_text(encoding="utf-8")
    routes = {(method, path) for method, path in parts.site.routes if method != "HEAD" and not path.startswith("/static") and path != "/"}
    missing = [f"{method} {path}" for method, path in sorted(routes - OURS_ALONE) if f"{method} {path}" not in page]
    assert missing == []


@pytest.mark.rule("WO-61")
@pytest.mark.case("WP-11")
async def test_no_route_but_the_open_ones_answers_a_stranger(parts: Parts) -> None:
    async with parts.site as site, aiohttp.ClientSession(site.local) as stranger:
        answered: list[str] = []
        for method, path in sorted(site.routes):
            if (method, path) in OPEN or method == "HEAD":
                continue
            where = re.sub(r"\{\w+\}", "1", path)
            async with stranger.request(method, where, json={}) as answer:
                if answer.status != 401:
                    answered.append(f"{method} {path}: {answer.status}")
        assert answered == []
