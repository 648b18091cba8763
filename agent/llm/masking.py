"""Secrets are taken out of everything a provider says before it becomes an exception or a log line (RL-32): providers echo keys in their errors."""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "***"

_SHAPES = re.compile(
    r"""(?ix)
    (?<=bearer\ )[\w.~+/=*-]{4,}
    | \b(?:sk|pk|rk)-[\w*.-]{4,}
    | \bAIza[\w*-]{8,}
    | \b(?:gsk|xai|hf|r8|nvapi|pplx|csk|fw|tvly)[_-][\w*-]{8,}
    | (?<=[?&]key=)[^&\s"']+ | (?<=[?&]token=)[^&\s"']+ | (?<=api_key=)[^&\s"']+ | (?<=://)[^/\s:@]+:[^/\s@]+(?=@)
    """
)


def mask(text: str, secrets: Iterable[str] = ()) -> str:
    """`text` without the given secrets and without whatever looks like a key."""
    for secret in secrets:
        if secret:
            text = text.replace(secret, MASK)
    return _SHAPES.sub(MASK, text)
