"""Whether a signed call was made just now, or is an old one that somebody plays again (WX-9)."""

from __future__ import annotations

from datetime import datetime

SKEW_S = 300.0
LATE_TRY_S = 60.0


def in_time(stamp: str, now: datetime, first_at: datetime | None) -> bool:
    """`stamp`: when it was signed, in seconds since 1970. One that is minutes off is no good, unless it is a late try of what first came at
    `first_at`, a moment ago; None for what is new."""
    off_s = abs(now.timestamp() - int(stamp)) if stamp.isascii() and stamp.isdigit() and len(stamp) < 12 else SKEW_S + 1
    return off_s <= SKEW_S or (first_at is not None and (now - first_at).total_seconds() <= LATE_TRY_S)
