"""Bodies and numbers that mean nothing, sent to entries, templates and prompts: each is refused with a reason (RS-82 to RS-95)."""

from __future__ import annotations

import io
import itertools
import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agent.llm.scripted import ScriptedModel
from tests.gateway.test_entries_http import MODEL, SUMMARY, House
from tests.harness import running

ODD: tuple[Any, ...] = (
    True, False, 0, -1, 4, 501, 2**31, 2**63, 2**64, 10**30, 1.5, "5", "", "x" * 50_000, "\ud800", "a\0b", [], [1], {}, {"a": 1}, None,
    float("nan"), float("inf"),
)  # fmt: skip
PATHS = ("0", "-1", str(2**63), "9" * 400, "%F0%9F%98%80", "%00", "1%2F..", "٣", "1e3", "NaN", "true")


@pytest.fixture
async def house(tmp_path: Path) -> AsyncGenerator[House]:
    model = ScriptedModel(lambda _request: f'{{"title": "Tea", "text": "{SUMMARY}"}}')
    async with running(tmp_path, model, config={"model": MODEL}) as gateway:
        yield House(gateway, model)


async def raw(house: House, method: str, path: str, body: Any) -> int:
    """As `json` writes it, NaN and halves of signs too."""
    sent = json.dumps(body).encode()
    headers = {"Content-Type": "application/json"}
    async with house.gateway.http.request(method, f"{house.gateway.url}/api{path}", data=io.BytesIO(sent), headers=headers) as answer:
        await answer.read()
        return answer.status


@pytest.mark.rule("RS-82", "RS-88", "RS-90")
async def test_no_value_of_a_body_is_more_than_refused(house: House) -> None:
    chat = await house.chat(12)
    [entry] = house.entries(chat, 1)
    wishes: list[tuple[str, str, str, dict[str, Any]]] = [
        *(("POST", f"/chats/{chat}/entries", key, {"action": "write"}) for key in ("last", "first", "to", "title", "text", "action")),
        *(("POST", f"/chats/{chat}/entries", key, {"action": "generate"}) for key in ("last", "first", "to")),
        *(("PATCH", f"/chats/{chat}/entries/settings", key, {}) for key in (
            "last_n", "every", "automatic", "max_output", "hide", "tail", "collapse", "review", "template_id", "prompt_override",
        )),
        *(("PATCH", f"/chats/{chat}/entries/{entry}", key, {}) for key in ("title", "text", "based_on")),
        *(("POST", f"/chats/{chat}/entries/switch", key, {"ids": [entry], "enabled": True}) for key in ("ids", "enabled")),
        ("POST", f"/chats/{chat}/entries/{entry}/decide", "accept", {}),
        *(("POST", "/summary-templates", key, {"name": "a", "text": "b"}) for key in ("name", "text")),
        *(("PATCH", "/summary-templates/1", key, {}) for key in ("name", "text")),
    ]  # fmt: skip
    for (method, path, key, body), odd in itertools.product(wishes, ODD):
        status = await raw(house, method, path, {**body, key: odd})
        assert status < 500, (method, path, key, odd)
    for odd in ODD:
        assert await raw(house, "POST", f"/chats/{chat}/entries/switch", {"ids": [odd], "enabled": False}) < 500, odd
    assert await raw(house, "POST", f"/chats/{chat}/entries/switch", {"ids": [*range(1, 1_000_001)], "enabled": False}) in (400, 413, 422)
    assert (await house.call("GET", f"/chats/{chat}/entries"))[0] == 200


@pytest.mark.rule("RS-78", "RS-83")
async def test_no_number_in_an_address_is_more_than_not_found(house: House) -> None:
    chat = await house.chat(12)
    for odd in PATHS:
        for method, path, body in (
            ("PATCH", f"/chats/{chat}/entries/{odd}", {"title": "x"}),
            ("DELETE", f"/chats/{chat}/entries/{odd}", {}),
            ("POST", f"/chats/{chat}/entries/{odd}/decide", {"accept": True}),
            ("PATCH", f"/summary-templates/{odd}", {"name": "x"}),
            ("DELETE", f"/summary-templates/{odd}", {}),
            ("POST", f"/summary-templates/{odd}/copy", {}),
            ("GET", f"/chats/{chat}/turns/{odd}/prompt", {}),
            ("GET", f"/chats/{odd}/preview", {}),
            ("GET", f"/chats/{chat}/turns/t/prompt?number={odd}", {}),
        ):
            status = await raw(house, method, path, body)
            fine = {"/summary-templates/0/copy": 201}.get(path) or (200 if path.endswith("/decide") else 404)  # nothing waited there
            assert 400 <= status < 500 or status == fine, (method, path, status)
