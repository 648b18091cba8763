"""Refusals of a provider become the four kinds of `ModelError`: tables over status, code and words (RL-20). Knows no SDK.

The order: too long (`overflow`), an operator's matter by its code, then the status, and for errors inside a stream, which have none, the words.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from agent.errors import ContextOverflow, Misfit, ModelBroken, ModelBusy, ModelError, ModelMisconfigured
from agent.llm.complaint import EXCERPT_CHARS, Complaint
from agent.llm.masking import mask
from agent.llm.overflow import overflow

ADVICE: Mapping[Misfit, str] = {
    Misfit.KEY: "the provider refuses the API key: check it, and what it may use",
    Misfit.ADDRESS: "a server answers, but has nothing at this address: check it, it usually ends in /v1",
    Misfit.MODEL: "the endpoint answers, but knows no model of this name: check the name",
    Misfit.CREDIT: "the account has no credit or quota left: add some, or set another model",
    Misfit.REDIRECT: "the address answers with a redirect, which is not followed: set the address it leads to",
}

SETUP_CODES: Mapping[str, Misfit] = {
    "invalid_api_key": Misfit.KEY,
    "authentication_error": Misfit.KEY,
    "invalid_authentication_error": Misfit.KEY,
    "permission_error": Misfit.KEY,
    "permission_denied": Misfit.KEY,
    "unauthenticated": Misfit.KEY,
    "account_deactivated": Misfit.KEY,
    "model_not_found": Misfit.MODEL,
    "model_not_found_error": Misfit.MODEL,
    "deploymentnotfound": Misfit.MODEL,
    "insufficient_quota": Misfit.CREDIT,
    "exceeded_current_quota_error": Misfit.CREDIT,
    "billing_hard_limit_reached": Misfit.CREDIT,
    "billing_not_active": Misfit.CREDIT,
    "insufficient_balance": Misfit.CREDIT,
    "arrearage": Misfit.CREDIT,
}
SETUP_STATUSES: Mapping[int, Misfit] = {401: Misfit.KEY, 402: Misfit.CREDIT, 403: Misfit.KEY, 404: Misfit.ADDRESS, 405: Misfit.ADDRESS}
BUSY_STATUSES = frozenset({408, 409, 423, 425, 429})

SETUP_WORDS: tuple[tuple[re.Pattern[str], Misfit], ...] = (
    (re.compile(r"(?i)(?:incorrect|invalid) api key|api key (?:is )?(?:not valid|invalid|expired)"), Misfit.KEY),
    (re.compile(r"(?i)model\b.{0,80}?\b(?:not found|does not exist|not exist|is not a valid model)|unknown model|no such model"), Misfit.MODEL),
    (re.compile(r"(?i)insufficient (?:balance|credits?|quota)"), Misfit.CREDIT),
)
BUSY_WORDS = re.compile(
    r"(?i)overload|rate.?limit|too many requests|(?:try|retry) (?:again|in)|temporar|time[d-]?.?out|capacity|unavailable|busy|internal.server"
)
BUSY_CODES = frozenset({"server_error", "api_error", "internal_error", "resource_exhausted", "internal", "slow_down"})
FILTER_CODES = frozenset(
    {"content_filter", "content_policy_violation", "data_inspection_failed", "responsibleaipolicyviolation", "moderation_blocked"}
)
FILTER_WORDS = re.compile(r"(?i)content exists risk|rejected as a result of our safety system")

_UNITS_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_LENGTH = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|h|m|s)")
_SAID_WAIT = re.compile(r"(?i)(?:try again|retry)\s+(?:in|after)\s+((?:\d+(?:\.\d+)?\s*(?:ms|h|m|s)[a-z]*\s*)+)")


def is_filtered(status: int | None, complaint: Complaint) -> bool:
    """The provider's content filter stopped the prompt: an answer of its own kind (`Finish.FILTER`), no fault of the gateway or the operator."""
    said = {complaint.code, complaint.kind} & FILTER_CODES
    return status in (None, 400, 403, 422) and bool(said or FILTER_WORDS.search(complaint.message))


def fault(status: int | None, complaint: Complaint, headers: Mapping[str, str], *, secrets: Iterable[str], now: datetime | None = None) -> ModelError:
    """The error a refusal becomes. `status` None: it stood inside a 200. `headers` in lower case; `now` is for a Retry-After date, aware."""
    excerpt = mask(complaint.message, secrets)[:EXCERPT_CHARS]
    if status is None:
        status = complaint.http_status
    if too_long := overflow(status, complaint):
        what = f"the request is too long for the model{_named(too_long.limit)}"
        return ContextOverflow(what, limit=too_long.limit, sent=too_long.sent, excerpt=excerpt)
    if misfit := SETUP_CODES.get(complaint.code) or SETUP_CODES.get(complaint.kind):
        return _misconfigured(misfit, excerpt)
    wait = retry_after_s(headers, complaint, now or datetime.now(UTC))
    if status is None:
        return _by_words(complaint, wait, excerpt)
    return _by_status(status, complaint, wait, excerpt)


def _by_status(status: int, complaint: Complaint, wait: float | None, excerpt: str) -> ModelError:
    if misfit := SETUP_STATUSES.get(status):
        if misfit is Misfit.ADDRESS and _setup_words(complaint) is Misfit.MODEL:  # local servers answer 404 for a model they do not have
            misfit = Misfit.MODEL
        return _misconfigured(misfit, excerpt, status)
    if status in BUSY_STATUSES or status >= 500:
        return ModelBusy(f"the provider answered {status}", retry_after_s=wait, excerpt=excerpt)
    if status < 400:
        return _misconfigured(Misfit.REDIRECT, excerpt, status)
    if misfit := _setup_words(complaint):
        return _misconfigured(misfit, excerpt, status)
    return ModelBroken(f"the provider refused the request with {status}", excerpt=excerpt)


def _by_words(complaint: Complaint, wait: float | None, excerpt: str) -> ModelError:
    if misfit := _setup_words(complaint):
        return _misconfigured(misfit, excerpt)
    codes = {complaint.code, complaint.kind}
    if codes & BUSY_CODES or BUSY_WORDS.search(" ".join((complaint.message, *codes))):
        return ModelBusy("the provider reports an error instead of an answer", retry_after_s=wait, excerpt=excerpt)
    return ModelBroken("the provider reports an error instead of an answer", excerpt=excerpt)


def _misconfigured(misfit: Misfit, excerpt: str, status: int | None = None) -> ModelMisconfigured:
    said = f" (the answer was {status})" if status is not None else ""
    return ModelMisconfigured(f"{ADVICE[misfit]}{said}", excerpt=excerpt, misfit=misfit)


def _setup_words(complaint: Complaint) -> Misfit | None:
    return next((misfit for words, misfit in SETUP_WORDS if words.search(complaint.message)), None)


def _named(limit: int | None) -> str:
    return "" if limit is None else f", which takes {limit} tokens"


def retry_after_s(headers: Mapping[str, str], complaint: Complaint, now: datetime) -> float | None:
    """Seconds the provider asks us to wait, or None: `retry-after-ms`, `Retry-After` (seconds or a date), Google's retryDelay, its own words."""
    if (wait := _number(headers.get("retry-after-ms", ""))) is not None:
        return wait / 1000
    header = headers.get("retry-after", "")
    if (wait := _number(header)) is not None:
        return wait
    if (at := _date(header)) is not None:
        return max(0.0, (at - now).total_seconds())
    said = _SAID_WAIT.search(complaint.message)
    length = complaint.retry_delay or (said.group(1) if said else "")
    parts = _LENGTH.findall(length)
    return sum(float(number) * _UNITS_S[unit] for number, unit in parts) if parts else None


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(text: str) -> datetime | None:
    if not text:
        return None
    try:
        at = parsedate_to_datetime(text)
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
