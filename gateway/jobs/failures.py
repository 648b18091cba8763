"""What a failure of a job means: whether and when it is tried again, and what is told of it (WD-100).

An error says of itself what it is, by attributes, so that other packages need nothing of this one: `permanent = True`, trying again cannot help and
the job is parked at once; `retry_after_s`, in seconds, when to come back; `foreseen = True`, it belongs to the ordinary course of things. Any of the
three is told in one line of the log, without a stack.
"""

from __future__ import annotations

import logging
import math
import re
from collections.abc import Iterator
from datetime import timedelta
from typing import cast

from sqlalchemy import exc

from agent.llm.masking import MASK, mask
from gateway.jobs.claims import PARKED_FOR, Claim
from gateway.jobs.table import State
from gateway.leases import LeaseLost

ATTEMPTS = 8
WAITS = tuple(timedelta(minutes=minutes) for minutes in (1, 5, 15, 60))  # the last one from then on
LONGEST_WAIT = timedelta(hours=24)  # whatever a provider asks for
_TEXT_KEPT = 500

log = logging.getLogger(__name__)


def after_failure(attempts: int, error: Exception) -> tuple[State, timedelta]:
    """What becomes of a job that failed `attempts` times before and now with `error`: its state, and when it is tried again (WD-100)."""
    if getattr(error, "permanent", False) is True or attempts + 1 >= ATTEMPTS:
        return "parked", PARKED_FOR
    return "waiting", max(WAITS[min(attempts, len(WAITS) - 1)], _asked_for(error))


def is_foreseen(error: Exception) -> bool:
    """Whether a failure is one of the ordinary course of things, whose reason says all: no stack helps with it (WD-100)."""
    return any(hasattr(error, mark) for mark in ("permanent", "retry_after_s", "foreseen"))


def _asked_for(error: Exception) -> timedelta:
    seconds = getattr(error, "retry_after_s", None)
    if not isinstance(seconds, int | float) or not math.isfinite(seconds) or seconds <= 0:
        return timedelta()
    return min(timedelta(seconds=min(seconds, LONGEST_WAIT.total_seconds())), LONGEST_WAIT)


def tell_failure(claim: Claim, error: Exception, state: State, wait: timedelta) -> None:
    """One line with the job, the reason and what comes next; the stack of what nobody foresaw as well."""
    row = claim.row
    following = f"{'parked, ' if state == 'parked' else ''}tried again in {wait}"
    words = (
        "job %s (%s) failed, attempt %s: %s: %s; %s",
        row.id,
        row.job.kind,
        row.attempts + 1,
        type(error).__name__,
        public_text(error),
        following,
    )
    if is_foreseen(error):
        log.warning(*words)
    else:
        log.error(*words, exc_info=error)


# Beside what providers' keys look like: a signed query, the value of something named like a secret, a bot's token, a long word of letters and digits.
_SECRETS = tuple(
    (re.compile(pattern, re.IGNORECASE), shown)
    for pattern, shown in (
        (r"(?<=\S)\?[^\s\"'<>]*=[^\s\"'<>]*", f"?{MASK}"),
        (r"((?:authorization|token|secret|password|api[-_ ]?key)\w*[\"']?\s*[:=]\s*[\"']?)(?:bearer\s+)?[^\s\"',;]+", rf"\1{MASK}"),
        (r"\d{6,}:[\w-]{20,}", MASK),
        (r"\b(?=[\w-]*\d)(?=[\w-]*[a-z])[\w-]{24,}", MASK),
    )
)


def public_text(error: Exception) -> str:
    """What operators see of an error: at most 500 characters, without secrets, statement parameters, or characters that a database refuses."""
    text = mask(str(error.orig if isinstance(error, exc.StatementError) else error)[: 4 * _TEXT_KEPT])
    for pattern, shown in _SECRETS:
        text = pattern.sub(shown, text)
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:_TEXT_KEPT]


def cause_of(several: BaseExceptionGroup[BaseException]) -> BaseException:
    """The one error behind a task group's: a lost lease before all else; a handler's own group only if it holds more than one."""
    leaves = list(_leaves(several))
    lost = next((leaf for leaf in leaves if isinstance(leaf, LeaseLost)), None)
    return lost or (leaves[0] if len(leaves) == 1 else several.exceptions[0])


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inside in cast(BaseExceptionGroup[BaseException], error).exceptions:
            yield from _leaves(inside)
    else:
        yield error
