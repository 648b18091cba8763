"""How a model's tokens compare with our own count, learned from what providers report (WD-41)."""

from __future__ import annotations

LEAST, MOST = 0.7, 1.5  # beyond it a report is about something else: a picture, a cache, a gateway's own words
SHARE = 0.2  # of a new report in the running mean: a dozen calls forget the start
SMALLEST = 200  # tokens; below, the words around the text weigh more than the text


class Calibration:
    """One factor for each model, 1.0 until something was reported: provider's tokens = our count times the factor."""

    def __init__(self) -> None:
        self._factors: dict[str, float] = {}

    def factor(self, model: str) -> float:
        return self._factors.get(model, 1.0)

    def learn(self, model: str, *, counted: int, reported: int) -> None:
        """A request that we counted at `counted` tokens had `reported` by its provider."""
        if counted < SMALLEST or reported <= 0:
            return
        seen = min(MOST, max(LEAST, reported / counted))
        known = self._factors.get(model)
        self._factors[model] = seen if known is None else known + SHARE * (seen - known)
