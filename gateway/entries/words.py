"""What the desk of entries refuses, as a sentence of the catalogue: for the page and for commands alike (RS-82 to RS-90)."""

from __future__ import annotations

from typing import Any

from gateway.entries.desk import NotPossible, RangeRefused, SettingRefused

REFUSALS = (RangeRefused, NotPossible, SettingRefused)
_BOUNDED = ("last_n", "every", "max_output", "tail", "prompt_override")


def sentence(error: RangeRefused | NotPossible | SettingRefused) -> tuple[str, dict[str, Any]]:
    """Its key and what fills it in."""
    match error:
        case RangeRefused():
            return f"entries_range_{error.key}", dict(error.values)
        case NotPossible():
            return f"entries_{error.reason}", {}
        case SettingRefused():
            name = str(error).partition(":")[0].removeprefix("entries.")
            return (f"entries_bounds_{name}", {}) if name in _BOUNDED else ("recall_setting_bounds", {"reason": str(error)})
