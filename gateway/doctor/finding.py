"""What `yumegate doctor` says of one thing that it looked at (WO-35)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. `next_step` says what to do; empty when there is nothing."""

    what: str
    verdict: Verdict
    text: str
    next_step: str = ""

    def __str__(self) -> str:
        line = f"{self.verdict.value:<5}{self.what}: {self.text}" + (f". Next: {self.next_step}" if self.next_step else "")
        return " ".join(line.splitlines())

    def as_json(self) -> dict[str, str]:
        return {"what": self.what, "verdict": self.verdict.value, "text": self.text, "next_step": self.next_step}


def ok(what: str, text: str) -> Finding:
    return Finding(what=what, verdict=Verdict.OK, text=text)


def warn(what: str, text: str, next_step: str) -> Finding:
    return Finding(what=what, verdict=Verdict.WARN, text=text, next_step=next_step)


def fail(what: str, text: str, next_step: str) -> Finding:
    return Finding(what=what, verdict=Verdict.FAIL, text=text, next_step=next_step)
