"""How much of a prompt memory may take (RS-63 to RS-66). Pure; every number is an estimate in tokens."""

from __future__ import annotations

MARGIN_SHARE, MARGIN_LEAST, MARGIN_MOST = 0.02, 256, 2_000
SMALL_MODEL_SHARE = 0.25  # of the effective ceiling, whatever the budget says


def effective_ceiling(ceiling: int, model_window: int, reserve: int) -> int:
    """The largest prompt: the setting, or what the model's window leaves after the answer and a safety margin (RS-63)."""
    return max(MARGIN_LEAST, largest_prompt(ceiling, model_window, reserve))


def largest_prompt(ceiling: int, model_window: int, reserve: int) -> int:
    """The same where nothing is left too, so that it may be below 0."""
    return min(ceiling, model_window - reserve - margin(model_window))


def margin(model_window: int) -> int:
    """Tokens of a model's window that stay empty, for our count is an estimate."""
    return min(MARGIN_MOST, max(MARGIN_LEAST, int(model_window * MARGIN_SHARE)))


def memory_budget(budget: int, ceiling: int) -> int:
    """What summaries and recall may take: the setting, for small models at most a quarter of the effective ceiling (RS-64)."""
    return min(budget, int(ceiling * SMALL_MODEL_SHARE))


def standing_room(budget: int, share_percent: int) -> int:
    """At which standing summaries aim (RS-66)."""
    return budget * share_percent // 100


def recall_room(budget: int, overrun: int, standing: int, ceiling: int, used: int) -> int:
    """What is left for recalled passages: of the budget with its overrun after `standing` summaries, and never past the ceiling (RS-65, RS-66).
    `used`: of the whole prompt without them."""
    return max(0, min(budget + overrun - standing, ceiling - used))
