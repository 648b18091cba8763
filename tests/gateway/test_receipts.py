"""What a receipt says of a reply (WO-15)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.llm.port import Finish, Usage
from agent.llm.scripted import ScriptedModel
from agent.turn import ModelCall, Record, Section, ToolUse
from gateway.chat_scope import access_in, why_none
from gateway.receipts import receipt
from memory.conversations import Conversation
from memory.ids import ConversationId, SpaceId
from tests.harness import running

PERSON, SPACE = "p-aaaaaaaaaa", SpaceId("s-cccccccccc")
NOW = datetime(2026, 3, 1, tzinfo=UTC)
CHAT = Conversation(
    id=ConversationId("c-1"), key="web:main:c-1", channel="web", account="main", kind="web", person_id=None, space_id=None,
    character="default", persona="", profile="", timezone="", busy="", memory_on=True, title="", title_origin="", window_edge=0,
    seen_seq=0, last_seq=0, turns_left=None, created_at=NOW, updated_at=NOW,
)  # fmt: skip


def call(outcome: str = "ok", **usage: int | bool) -> ModelCall:
    return ModelCall(model="m", provider="openai", outcome=outcome, usage=Usage(**usage), milliseconds=5)  # pyright: ignore[reportArgumentType]


def test_a_receipt_sums_up_every_request_of_its_turn() -> None:
    record = Record(
        text="Hello",
        model="m",
        provider="openai",
        sections=(Section(name="instructions", tokens=100), Section(name="message", tokens=7)),
        left_out=3,
        calls=[
            call("model_busy"),
            call(input_tokens=100, output_tokens=20, cached_tokens=64),
            call(input_tokens=50, output_tokens=5, estimated=True),
        ],
        tools=[ToolUse(name="search", ok=False, milliseconds=12)],
        steered=1,
        first_token_ms=400,
        finish=Finish.STOP,
    )
    made = receipt(record, turn_id="t1", attempt=2, outcome="answered", total_ms=1500, trimmed=4, memory_reason="off")
    assert made == made | {
        "turn_id": "t1", "attempt": 2, "model": "m", "provider": "openai",
        "sections": [{"name": "instructions", "tokens": 100}, {"name": "message", "tokens": 7}],
        "input_tokens": 150, "output_tokens": 25, "cached_tokens": 64, "estimated": True, "calls": 3, "first_token_ms": 400, "total_ms": 1500,
        "trimmed_messages": 7, "steered": 1, "memories": {"used": [], "reason": "off", "saved": {}},
        "tools": [{"name": "search", "ok": False, "ms": 12}],
        "outcome": "answered",
    }  # fmt: skip


def test_a_turn_that_never_asked_a_model_has_a_receipt_too() -> None:
    made = receipt(Record(), turn_id="t1", attempt=1, outcome="failed", total_ms=1, trimmed=0, memory_reason="")
    assert (made["calls"], made["input_tokens"], made["estimated"], made["first_token_ms"]) == (0, 0, False, None)


def test_no_words_of_anybody_stand_in_a_receipt() -> None:
    record = Record(text="my secret", calls=[call()])
    assert "my secret" not in repr(receipt(record, turn_id="t", attempt=1, outcome="answered", total_ms=1, trimmed=0, memory_reason=""))


@pytest.mark.rule("WO-15", "WD-9")
@pytest.mark.parametrize(("kind", "on", "known", "reason"), [
    ("web", True, True, ""), ("web", False, True, "off"), ("web", True, False, "stranger"), ("dm", True, False, "stranger"),
    ("challenge", True, True, "challenge"), ("challenge", False, True, "challenge"), ("group", False, True, "off"),
])  # fmt: skip
def test_a_receipt_names_the_rule_that_keeps_memory_out_of_a_chat(kind: str, on: bool, known: bool, reason: str) -> None:
    chat = replace(CHAT, kind=kind, memory_on=on, space_id=SPACE if kind == "group" else None)
    scope = access_in(chat, f"people/{PERSON}", known=known).scope
    assert why_none(chat, str(scope) if scope else "") == reason


@pytest.mark.rule("WO-15")
async def test_the_receipt_of_a_reply_says_that_memory_was_off(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(lambda request: "A title" if request.purpose != "reply" else "Hi.")) as gateway:
        chat = await gateway.chat()
        reasons: list[str] = []
        for count, text in enumerate(("Hello", "/memory off", "Hello again"), 1):
            await gateway.say(chat, text)
            if not text.startswith("/"):
                await gateway.answers(chat, (count + 1) // 2)
                turn = [each["turn_id"] for each in await gateway.messages(chat) if each["role"] == "assistant"][-1]
                reasons.append((await gateway.get(f"/api/chats/{chat}/turns/{turn}/receipt"))["memories"]["reason"])
        assert reasons == ["", "off"]
