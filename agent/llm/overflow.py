"""Does this refusal mean that the request was too long? By error code, else by status and a table of what providers say (WD-93).

An ordinary 400 is in no row and so is never taken for it; nor is a 429 about a rate, except the one kind that no waiting cures.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from agent.llm.complaint import Complaint

CODES = frozenset(
    {
        "context_length_exceeded",  # OpenAI, Groq, DeepSeek, Azure
        "exceed_context_size_error",  # llama.cpp
        "model_context_window_exceeded",  # Anthropic
        "request_too_large",  # Anthropic, 413
        "context_window_exceeded",
    }
)

_N = r"(?P<{}>\d[\d,_]*)"
_LIMIT, _SENT = _N.format("limit"), _N.format("sent")
_REFUSED = frozenset({400, 413, 422, 500})
_RATED = frozenset({413, 429})


@dataclass(frozen=True, slots=True)
class Overflow:
    """`limit` and `sent` in tokens, where the provider named them."""

    limit: int | None = None
    sent: int | None = None


@dataclass(frozen=True, slots=True)
class Row:
    provider: str
    pattern: re.Pattern[str]
    statuses: frozenset[int] = _REFUSED


def _row(provider: str, pattern: str, statuses: frozenset[int] = _REFUSED) -> Row:
    return Row(provider, re.compile(pattern, re.IGNORECASE | re.DOTALL), statuses)


ROWS: tuple[Row, ...] = (
    _row("vLLM", rf"maximum context length is {_LIMIT} tokens.*?total of at least {_SENT} tokens"),
    _row("vLLM", rf"maximum context length is {_LIMIT} tokens and your request has {_SENT} input tokens"),
    _row("OpenAI, DeepSeek, OpenRouter, vLLM", rf"maximum context length is {_LIMIT} tokens.*?(?:requested(?: about)?|resulted in) {_SENT}"),
    _row("OpenAI, DeepSeek, OpenRouter, vLLM", rf"maximum context length is {_LIMIT}"),
    _row("OpenAI", rf"input tokens exceed the configured limit of {_LIMIT} tokens.*?resulted in {_SENT}"),
    _row("OpenAI", rf"input tokens exceed the configured limit of {_LIMIT}"),
    _row("OpenAI", r"input exceeds the context window"),
    _row("OpenAI, Groq (the whole minute is not enough)", rf"request too large for .*?limit:? {_LIMIT},? requested:? {_SENT}", _RATED),
    _row("llama.cpp", rf"request \({_SENT} tokens\) exceeds the available context size \({_LIMIT} tokens\)"),
    _row("llama.cpp", r"exceeds the available context size"),
    _row("llama.cpp", r"context size has been exceeded"),
    _row("vLLM", rf"prompt \(length {_SENT}\) is longer than the maximum model length of {_LIMIT}"),
    _row("SGLang", rf"maximum context length of {_LIMIT} tokens.*?requested a total of {_SENT}"),
    _row("SGLang, Together", rf"input \({_SENT} tokens\) is longer than the model's context length \({_LIMIT} tokens\)"),
    _row("Ollama", rf"input length exceeds (?:the )?(?:maximum )?context length(?: of {_LIMIT})?"),
    _row("LM Studio", rf"keep the first {_SENT} tokens when .*?context length of only {_LIMIT}"),
    _row("LM Studio", r"greater than the context length"),
    _row("Anthropic", rf"prompt is too long: {_SENT} tokens > {_LIMIT} maximum"),
    _row("Anthropic", r"prompt is too long"),
    _row("Anthropic", rf"input length and `?max_tokens`? exceed context limit: {_SENT} \+ \d+ > {_LIMIT}"),
    _row("Gemini", rf"input token count \({_SENT}\) exceeds the maximum number of tokens allowed \({_LIMIT}\)"),
    _row("Gemini", rf"input token count exceeds the maximum number of (?:input )?tokens allowed(?: \(?{_LIMIT})?"),
    _row("Mistral", rf"prompt contains {_SENT} tokens.*?too large for model with {_LIMIT}"),
    _row("xAI", rf"maximum prompt length is {_LIMIT} but the request contains {_SENT}"),
    _row("Copilot", rf"prompt token count of {_SENT} exceeds the limit of {_LIMIT}"),
    _row("Groq", r"reduce the length of the messages"),
    _row("TGI", rf"`inputs` tokens \+ `max_new_tokens` must be <= {_LIMIT}\. Given: {_SENT}"),
    _row("Qwen", rf"range of input length should be \[\d+, {_LIMIT}\]"),
    _row("Kimi", rf"exceeded model token limit:? {_LIMIT}"),
    _row("MiniMax", r"context window exceeds limit"),
    _row("Bedrock", r"input is too long for requested model"),
)


def overflow(status: int | None, complaint: Complaint) -> Overflow | None:
    """What the refusal says about the length, or None when it is about something else. `status` None: an error inside a stream."""
    by_code = complaint.code in CODES or complaint.kind in CODES
    for row in ROWS:
        if (status is None or status in row.statuses) and (found := row.pattern.search(complaint.message)):
            said = found.groupdict()
            return Overflow(complaint.n_ctx or _int(said.get("limit")), complaint.n_prompt_tokens or _int(said.get("sent")))
    return Overflow(complaint.n_ctx, complaint.n_prompt_tokens) if by_code else None


def _int(digits: str | None) -> int | None:
    return int(re.sub(r"[,_]", "", digits)) if digits else None
