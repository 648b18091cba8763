"""The receipt of a reply: what was sent, what it cost, what was left out (WO-15). Pure; stored with the turn."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from agent.slots import Places
from agent.turn import Record
from memory.recall.fitting import Standing

DEFAULT_PLACES = Places()
SUMMARIES_NAMED = 40  # the newest; of more their number is told


def receipt(
    record: Record,
    *,
    turn_id: str,
    attempt: int,
    outcome: str,
    total_ms: int,
    trimmed: int,
    memory_reason: str,
    saved: Mapping[str, Any] | None = None,
    recall: Mapping[str, Any] | None = None,
    places: Places = DEFAULT_PLACES,
    window: Mapping[str, Any] | None = None,
    via: str = "",
) -> dict[str, Any]:
    """Plain JSON in the shape of docs/http-api.md. `memory_reason`: which rule kept memory out of the chat, empty for none; `saved`: of saved
    memories, as `saved_report` says it; `recall`: of old passages of the talk (RS-77); `places`: slots of the character's text for them and for
    summaries (RS-170); `window`: what of the talk was sent (RS-7, RS-67); `via`: how the words came, empty for an app or the page. Token numbers by
    section are estimates; the sums are the provider's when `estimated` is false."""
    return {
        "turn_id": turn_id,
        "attempt": attempt,
        "model": record.model,
        "provider": record.provider,
        "sections": [{"name": section.name, "tokens": section.tokens} for section in record.sections],
        "input_tokens": sum(call.usage.input_tokens for call in record.calls),
        "output_tokens": sum(call.usage.output_tokens for call in record.calls),
        "cached_tokens": sum(call.usage.cached_tokens for call in record.calls),
        "estimated": any(call.usage.estimated for call in record.calls),
        "estimates": ["sections"],  # in our own count, and no bill (RS-63)
        "calls": len(record.calls),
        "first_token_ms": record.first_token_ms,
        "total_ms": total_ms,
        "trimmed_messages": trimmed + record.left_out,
        "steered": record.steered,
        "memories": {"used": [asdict(used) for used in dict.fromkeys(record.used)], "reason": memory_reason, "saved": dict(saved or {})},
        "recall": dict(recall or {}),
        "places": asdict(places),
        "window": dict(window or {}),
        "tools": [{"name": use.name, "ok": use.ok, "ms": use.milliseconds} for use in record.tools],
        "outcome": outcome,
        "via": via,
        "finish": record.finish.value if record.finish else "",
    }


def summaries(standing: Standing) -> dict[str, Any]:
    """What stood in the prompt for talk that was not sent, the oldest first: which rows and what they are about, no word of them (RS-77). `first`,
    `last`: as the log numbers messages; `summaries_more`: older ones that stood there too, `summaries_left_out`: those without room (RS-171)."""
    named = standing.stood[-SUMMARIES_NAMED:]
    return {
        "summaries": [
            {"id": each.id, "kind": each.kind, "from": each.begin, "to": each.end, "first": each.first, "last": each.last, "cut": each.cut}
            for each in named
        ],
        "summaries_more": len(standing.stood) - len(named),
        "summaries_left_out": standing.left_out,
    }
