"""The operators' embeddings: what the page and the command line show, the yes to a change, and that the page and the key give one source."""

from __future__ import annotations

import json
import stat
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp.test_utils import TestClient, TestServer

from gateway.admin import AdminFault
from gateway.audit import CONSOLE
from gateway.config import Config
from gateway.config.env import read_secrets
from gateway.config.load import load
from gateway.embedding.change import EmbeddingChange
from gateway.embedding.desk import EmbeddingDesk, NothingWaits
from gateway.embedding.row_vectors import RowVectors
from gateway.embedding.source import source_of
from gateway.http.base import SERVER_OPTIONS, new_app
from gateway.http.operator_embeddings import EmbeddingRoutes
from gateway.person import Person
from memory.database import Database
from memory.embedders.hashed import hash_embedder
from tests.conftest import FakeClock
from tests.gateway.web_house import House
from tests.memory.saved.stage import MINE, Stage

PAID: dict[str, Any] = {"embedding": {"provider": "openai", "base_url": "https://api.example.com/v1", "model": "all-minilm", "api_key": "sk-TEST-1"}}


class Desk:
    """Saved memories that a built-in model serves, and a paid source that is wanted now."""

    def __init__(self, db: Database, clock: FakeClock) -> None:
        config = Config.model_validate(PAID, strict=False)
        self.config = config
        self.old, self.new = hash_embedder(32, "old"), hash_embedder(48, "new")
        self.before = RowVectors(db=db, clock=clock, embedder=self.old)
        change = EmbeddingChange(db, clock, {self.old.fingerprint: self.old}.get, is_paid=source_of(config).is_paid)
        self.rows = RowVectors(db=db, clock=clock, embedder=self.new, change=change)
        self.desk = EmbeddingDesk(
            db=db, clock=clock, config=lambda: self.config, change=change, embedder=self.new, source=source_of(config),
            kinds={"rows": self.rows.status},
        )  # fmt: skip


@pytest.fixture
async def waiting(sqlite: Database, clock: FakeClock) -> AsyncIterator[Desk]:
    stage = Stage.of(sqlite, clock)
    for text in ("plays the cello", "hates cilantro"):
        stage.add(text, MINE)
    made = Desk(sqlite, clock)
    await made.before.settle()
    await made.rows.settle()
    yield made
    await made.new.close()


@pytest.mark.rule("RS-29", "RS-25", "RS-178")
async def test_the_view_says_who_runs_how_far_it_is_and_what_waits(waiting: Desk) -> None:
    view = await waiting.desk.view()
    assert (view.source, view.model, view.address, view.place) == ("openai", "all-minilm", "https://api.example.com/v1", "embedding")
    assert view.paid and view.english_only and not view.restart and "sk-TEST" not in str(view)
    (rows,) = view.kinds
    assert (rows.kind, rows.state, rows.embedded, rows.texts, rows.former) == ("rows", "waits", 0, 2, waiting.old.label)
    assert view.waits_for == waiting.new.fingerprint and view.estimate is not None and (view.estimate.texts, view.estimate.tokens > 4) == (2, True)
    waiting.config = Config()
    assert (await waiting.desk.view()).restart


@pytest.mark.rule("RS-29", "SM-95")
async def test_the_command_line_shows_what_waits_and_lets_it_begin(waiting: Desk) -> None:
    shown = await waiting.desk.commands["embeddings"]({})
    assert shown["waits"] and shown["texts"] == 2 and shown["kinds"] == [{"kind": "rows", "state": "waits", "embedded": 0, "texts": 2}]
    begun = await waiting.desk.commands["embeddings confirm"]({})
    assert begun == {"tokens": shown["tokens"], "texts": 2}
    await waiting.rows.settle()
    done = await waiting.desk.commands["embeddings"]({})
    assert not done["waits"] and done["kinds"][0]["state"] == "ok"
    with pytest.raises(AdminFault, match="nothing waits"):
        await waiting.desk.commands["embeddings confirm"]({})
    with pytest.raises(NothingWaits):
        await waiting.desk.confirm(CONSOLE, waiting.new.fingerprint)


@asynccontextmanager
async def page(house: House, desk: EmbeddingDesk) -> AsyncGenerator[TestClient[Any, Any]]:
    app = new_app(house.door)
    app.add_routes(EmbeddingRoutes(desk=desk, secrets_file=house.secrets_file, db=house.db, clock=house.clock).routes())
    server = TestServer(app)
    await server.start_server(**SERVER_OPTIONS)
    async with TestClient(server) as client:
        yield client


async def people(house: House) -> tuple[Person, Person, Person]:
    owner = await house.people.ensure_owner()
    admin = await house.people.create(CONSOLE, name="Admin", role="admin")
    return owner, admin, await house.people.create(CONSOLE, name="Ann", role="user")


@pytest.mark.rule("RS-29", "RS-25", "WO-30")
async def test_an_operator_sees_it_and_says_yes_to_what_was_shown_and_to_nothing_else(house: House, waiting: Desk) -> None:
    _, admin, user = await people(house)
    path = "/api/operator/embeddings"
    async with page(house, waiting.desk) as client:
        assert (await client.get(path, headers=await house.bearer(user))).status == 403
        headers = await house.bearer(admin)
        shown = await (await client.get(path, headers=headers)).json()
        assert shown["waits_for"] == waiting.new.fingerprint and shown["estimate"]["texts"] == 2
        other = await client.post(f"{path}/confirm", headers=headers, json={"waits_for": "another"})
        assert (other.status, (await other.json())["error"]["code"]) == (409, "nothing_waits")
        assert (await client.post(f"{path}/confirm", headers=headers, json={})).status == 400
        assert (await client.post(f"{path}/confirm", headers=headers, json={"waits_for": shown["waits_for"]})).status == 200
        await waiting.rows.settle()
        assert (await (await client.get(path, headers=headers)).json())["waits_for"] == ""


CHOICES: list[tuple[dict[str, Any], str]] = [
    ({"provider": "builtin", "model": "e5"}, ""),
    ({"provider": "none"}, ""),
    ({"provider": "openai", "base_url": "https://api.example.com/v1", "model": "vectors-1", "api_key": "sk-TEST-1"}, "YUMEGATE_EMBEDDING_KEY"),
    ({"provider": "openai", "base_url": "https://generativelanguage.googleapis.com/v1beta/openai", "model": "gemini-embedding-001"}, ""),
]


@pytest.mark.rule("RS-25", "WO-32")
@pytest.mark.parametrize(("chosen", "secret"), CHOICES)
async def test_the_page_and_the_key_give_the_same_source(house: House, waiting: Desk, tmp_path: Path, chosen: dict[str, Any], secret: str) -> None:
    owner, admin, _ = await people(house)
    path = "/api/operator/embeddings/write"
    async with page(house, waiting.desk) as client:
        assert (await client.post(path, headers=await house.bearer(admin), json=chosen)).status == 403
        told = await (await client.post(path, headers=await house.bearer(owner), json=chosen)).json()
    assert told["secret_name"] == secret
    secrets = read_secrets(house.secrets_file)[0] if secret else {}
    if secret:
        assert stat.S_IMODE(house.secrets_file.stat().st_mode) == 0o600 and "sk-TEST" not in str(told)
    file = tmp_path / "own" / "config.json"
    file.parent.mkdir()
    file.write_text("{" + "\n".join(told["lines"]) + "}", encoding="utf-8")
    by_page = load(file, {"HOME": str(tmp_path), **secrets}).config
    file.write_text(json.dumps({"embedding": chosen}), encoding="utf-8")
    by_key = load(file, {"HOME": str(tmp_path)}).config
    assert by_page is not None and by_key is not None and source_of(by_page) == source_of(by_key)


@pytest.mark.rule("RS-25")
@pytest.mark.parametrize(
    "chosen",
    [
        {"provider": "openai", "model": "e"},
        {"provider": "openai", "base_url": "https://x.example/v1", "model": " "},
        {"provider": "openai", "base_url": "https://x.example/v1", "model": "${HOME}"},
        {"provider": "google", "model": "e"},
        {"provider": "openai", "base_url": "ftp://x", "model": "e"},
    ],
)
async def test_half_a_source_is_refused_and_nothing_is_written(house: House, waiting: Desk, chosen: dict[str, Any]) -> None:
    owner, _, _ = await people(house)
    async with page(house, waiting.desk) as client:
        refused = await client.post("/api/operator/embeddings/write", headers=await house.bearer(owner), json={**chosen, "api_key": "sk-TEST-1"})
    assert refused.status == 400 and not house.secrets_file.exists()
