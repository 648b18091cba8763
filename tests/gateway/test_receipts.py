"""What a receipt says of a reply (WO-15)."""

from __future__ import annotations

from agent.llm.port import Finish, Usage
from agent.turn import ModelCall, Record, Section, ToolUse
from gateway.receipts import receipt


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
