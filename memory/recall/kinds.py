"""Kinds of summaries, by themselves: the configuration names them, and loads no database for that."""

from __future__ import annotations

from enum import StrEnum


class Kind(StrEnum):
    RECENT = "recent"
    CONSOLIDATED = "consolidated"
    LONG_TERM = "long_term"
    DAY = "day"
    WEEK = "week"
    MONTH = "month"
    YEAR = "year"
    ENTRY = "entry"


ROLLING = (Kind.RECENT, Kind.CONSOLIDATED, Kind.LONG_TERM)
CALENDAR = (Kind.DAY, Kind.WEEK, Kind.MONTH, Kind.YEAR)
