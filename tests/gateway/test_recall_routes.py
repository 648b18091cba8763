"""Recall and summaries over HTTP, through a whole gateway: whose chats, codes, files, settings (RS-37 to RS-42, RS-47, RS-56, RS-57, RS-187)."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.scripted import ScriptedModel
from memory import conversations
from memory.recall import summary_rows
from memory.recall.kinds import Kind
from memory.recall.summary_rows import NewSummary
from tests.gateway.test_memory_files import somebody, store
from tests.harness import Running, running

MODEL = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}


@pytest.fixture
async def gateway(tmp_path: Path) -> AsyncGenerator[Running]:
    async with running(tmp_path, ScriptedModel([]), config={"model": MODEL}, embedder=lambda _config: None) as made:
        yield made


async def call(gateway: Running, method: str, path: str, body: Any = None, http: Any = None) -> tuple[int, Any]:
    async with (http or gateway.http).request(method, f"{gateway.url}/api/recall/chats{path}", json=body) as answer:
        return answer.status, await answer.json() if answer.content_type == "application/json" else None


async def chatted(gateway: Running, count: int = 12) -> str:
    async with gateway.http.post(f"{gateway.url}/api/chats", json={"title": "Maps 地図"}) as answer:
        chat = (await answer.json())["id"]

    def work(c: sa.Connection) -> None:
        now = conversations.conversation(c, chat)
        assert now is not None
        for at in range(count):
            conversations.add_message(c, now=now.created_at, conversation_id=chat, role="user", text=f"word{at}", author_name="Ann", scope="root")

    store(gateway, work)
    assert (await call(gateway, "POST", f"/{chat}/chunks/rebuild", {}))[0] == 202
    return chat


@pytest.mark.rule("RS-37", "RS-185")
async def test_nobody_reaches_a_chat_that_is_not_theirs(gateway: Running) -> None:
    chat = await chatted(gateway)
    paths = [
        ("GET", ""), ("PATCH", ""), ("GET", "/links"), ("POST", "/links"), ("DELETE", f"/links/{chat}"), ("GET", "/chunks"), ("DELETE", "/chunks/1"),
        ("POST", "/chunks/confirm"), ("POST", "/chunks/clear"), ("POST", "/chunks/rebuild"), ("GET", "/chunks/export"),
        ("POST", "/chunks/import/preview"), ("POST", "/chunks/import"), ("POST", "/chunks/share"), ("GET", "/summaries"),
        ("POST", "/summaries/rebuild"), ("PATCH", "/summaries/1"), ("DELETE", "/summaries/1"), ("GET", "/summaries/1/inputs"),
        ("POST", "/summaries/1/confirm"), ("POST", "/summaries/1/rebuild"), ("POST", "/summaries/1/unfold"), ("POST", "/summaries/1/approve"),
        ("POST", "/window/undo"), ("GET", "/calendar"), ("PATCH", "/calendar"), ("POST", "/calendar/backfill"),
    ]  # fmt: skip
    async with somebody(gateway, "admin") as ada, somebody(gateway, "guest", "Gus") as gus:
        assert (await call(gateway, "GET", "", http=ada.http)) == (200, {"chats": []})
        for method, tail in paths:
            assert (await call(gateway, method, f"/{chat}{tail}", {} if method != "GET" else None, http=ada.http))[0] == 404, tail
            assert (await call(gateway, method, f"/{chat}{tail}", {} if method != "GET" else None, http=gus.http))[0] == 403, tail


@pytest.mark.rule("RS-42", "RS-39")
async def test_forgetting_needs_its_code_and_a_file_brings_passages_back(gateway: Running) -> None:
    chat = await chatted(gateway)
    status, shown = await call(gateway, "GET", f"/{chat}/chunks?limit=1")
    assert (status, shown["totals"]["chunks"], shown["totals"]["waiting"], shown["more"], shown["reason"]) == (200, 2, 2, True, "off")
    [item] = shown["items"]
    assert (item["status"], item["messages"], item["state"]) == ("unavailable", 5, "live")
    async with gateway.http.get(f"{gateway.url}/api/recall/chats/{chat}/chunks/export") as answer:
        document = await answer.text()
        assert answer.headers["Content-Disposition"].endswith('.yumegate.json"')
    assert (await call(gateway, "DELETE", f"/{chat}/chunks/{item['id']}"))[0] == 409
    _, one = await call(gateway, "POST", f"/{chat}/chunks/confirm", {"what": "forget", "chunk": item["id"]})
    assert (await call(gateway, "POST", f"/{chat}/chunks/clear", {"code": one["code"]}))[0] == 409
    assert (await call(gateway, "DELETE", f"/{chat}/chunks/{item['id']}?code={one['code']}"))[0] == 204
    assert (await call(gateway, "POST", f"/{chat}/chunks/import/preview", {"document": document})) == (200, {"new": 1, "off": 0, "standing": 1})
    _, everything = await call(gateway, "POST", f"/{chat}/chunks/confirm", {"what": "clear"})
    assert (await call(gateway, "POST", f"/{chat}/chunks/clear", {"code": everything["code"]})) == (200, {"cleared": 1})
    assert (await call(gateway, "POST", f"/{chat}/chunks/import", {"document": document})) == (200, {"new": 2, "off": 0, "standing": 0})
    assert (await call(gateway, "POST", f"/{chat}/chunks/import", {"document": document})) == (200, {"new": 0, "off": 0, "standing": 2})
    status, refused = await call(gateway, "POST", f"/{chat}/chunks/import", {"document": "{"})
    assert (status, refused["error"]["code"]) == (422, "no_export")
    for wrong in ({"what": "forget"}, {"what": "clear", "chunk": 3}, {"what": "all"}):
        assert (await call(gateway, "POST", f"/{chat}/chunks/confirm", wrong))[0] == 400, wrong


@pytest.mark.rule("RS-9", "RS-12", "RS-187")
async def test_switches_and_links(gateway: Running) -> None:
    chat, other = await chatted(gateway), await chatted(gateway, 5)
    _, shown = await call(gateway, "PATCH", f"/{chat}", {"recall": False})
    assert (shown["on"], shown["chosen"], shown["asks_to_clear"]) == (False, False, False)
    _, shown = await call(gateway, "PATCH", f"/{chat}", {"record": "none"})
    assert (shown["record"], shown["own_record"], shown["asks_to_clear"]) == ("none", "none", True)
    status, linked = await call(gateway, "POST", f"/{chat}/links", {"source": other})
    assert (status, [(each["reader"], each["source"]) for each in linked["links"]]) == (201, [(chat, other)])
    assert (await call(gateway, "POST", f"/{chat}/links", {"source": chat}))[0] == 422
    assert (await call(gateway, "POST", f"/{chat}/links", {"source": "c-nowhere234"}))[0] == 404
    assert (await call(gateway, "DELETE", f"/{other}/links/{chat}"))[0] == 404
    assert (await call(gateway, "DELETE", f"/{chat}/links/{other}"))[0] == 204
    assert (await call(gateway, "GET", f"/{chat}/links"))[1]["links"] == []


@pytest.mark.rule("RS-47", "RS-48", "RS-54", "RS-56", "RS-57")
async def test_summaries_are_edited_and_days_are_counted_within_bounds(gateway: Running) -> None:
    chat = await chatted(gateway)

    def work(c: sa.Connection) -> int:
        seqs = [message.seq for message in conversations.window(c, chat, 0)]
        now = conversations.conversation(c, chat)
        assert now is not None
        return summary_rows.add(
            c,
            NewSummary(conversation_id=chat, kind=Kind.WEEK, text="A week.", sources=seqs, local_date="2026-03-02", rollover_hour=4),
            now.created_at,
        )

    number = store(gateway, work)
    _, calendar = await call(gateway, "GET", f"/{chat}/calendar")
    [row] = calendar["items"]
    assert (row["id"], row["kind"], row["messages"], row["by_hand"]) == (number, "week", 12, False)
    details = [{"text": "Send the map", "kind": "promise", "due": "2026-03-20"}]
    _, edited = await call(
        gateway, "PATCH", f"/{chat}/summaries/{number}", {"text": "A long week.", "details": details, "based_on": row["updated_at"]}
    )
    assert (edited["item"]["text"], edited["item"]["by_hand"], edited["item"]["details"][0]["state"]) == ("A long week.", True, "open")
    table: list[tuple[str, str, dict[str, Any], int, str]] = [
        ("PATCH", f"/summaries/{number}", {"text": "x", "based_on": row["updated_at"]}, 409, "changed"),
        ("PATCH", f"/summaries/{number}", {"details": [{"text": "x", "due": "soon"}]}, 400, "bad_field"),
        ("POST", f"/summaries/{number}/rebuild", {}, 409, "hand_edited"),
        ("PATCH", "/calendar", {"rollover_hour": 12}, 422, "bad_setting"),
        ("PATCH", "/calendar", {"tail": 501}, 409, "tail_long"),
        ("POST", "/calendar/backfill", {"days": 61}, 400, "bad_field"),
        ("POST", "/window/undo", {}, 409, "nothing_to_undo"),
        ("PATCH", "/summaries/999", {"text": "x"}, 404, "not_found"),
    ]  # fmt: skip
    for method, tail, body, status, code in table:
        found = await call(gateway, method, f"/{chat}{tail}", body)
        assert (found[0], found[1]["error"]["code"]) == (status, code), (tail, found)
    assert "11" in (await call(gateway, "PATCH", f"/{chat}/calendar", {"rollover_hour": 12}))[1]["error"]["message"]
    assert (await call(gateway, "PATCH", f"/{chat}/calendar", {"rollover_hour": 3})) == (200, {"warnings": ["old_hour"]})
    assert (await call(gateway, "PATCH", f"/{chat}/calendar", {"tail": 501, "sure": True})) == (200, {"warnings": []})
    assert (await call(gateway, "GET", f"/{chat}/calendar"))[1]["settings"] == {"rollover_hour": 3, "tail": 501}
