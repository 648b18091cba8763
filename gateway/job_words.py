"""Why background work failed, in words for people: the name of a fault is for the log and for the job's row, never for a sentence (WD-100)."""

from __future__ import annotations

from collections.abc import Mapping

from gateway.jobs.table import JobRow
from gateway.language import say

WORDS: Mapping[str, str] = {
    "AnswerUnusable": "answer", "ContractBroken": "answer", "InvalidOutput": "answer", "JudgementUnusable": "answer", "ModelBroken": "answer",
    "BudgetExceeded": "budget", "BudgetGone": "budget", "BudgetSpent": "budget", "BudgetUsed": "budget",
    "ContextOverflow": "too_long", "NoRoom": "too_long", "TooLarge": "too_long",
    "DreamFailed": "answer",
    "EditRefused": "not_written", "FileRefused": "not_written", "PathRefused": "not_written", "SecretRefused": "not_written",
    "FileUnreadable": "not_read",
    "EmbedderFailed": "search", "IndexFailed": "search",
    "LeaseLost": "broken_off",
    "ModelBusy": "model_busy",
    "ModelMisconfigured": "model_setup",
    "StoreUnavailable": "store",
    "ChannelAbsent": "no_app",
    **{
        word: word
        for word in ("chat_gone", "expired", "no_model", "nothing", "nothing_left", "record_rule", "undelivered", "unusable")
    },
    "the_chat_is_gone": "chat_gone",
}  # fmt: skip


def failure(language: str, name: str) -> str:
    """A clause that fits into a sentence; `name`: of the class of the fault, or a word for why nothing came of the work."""
    return say(language, f"job_error_{WORDS.get(name, 'other')}")


def why(language: str, row: JobRow | None) -> str:
    """Why a job is not done: its last failure, else its state; of one that is gone, that nobody knows."""
    return say(language, f"job_{row.state}") if row is not None and not row.error_class else failure(language, row.error_class if row else "")
