"""Whether a Chroma database may be used: asked in a child process, for a damaged one can kill whoever opens it (WD-121, VX-05 to VX-08)."""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from memory.chroma_probe import Question
from memory.ports import Vector

LIMIT_S = 60.0
SHARE = 0.98
_ROOT = Path(__file__).resolve().parent.parent

log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """`passed`, or `reason` as a sentence."""

    passed: bool
    reason: str = ""


def judged(samples: int, expected: int, count: int, found: int) -> Verdict:
    """Pure. `expected`: rows that were acknowledged; a right count alone proves nothing."""
    if count < SHARE * expected:
        return Verdict(passed=False, reason=f"{count:,} of {expected:,} vectors are there")
    if found < SHARE * samples:
        return Verdict(passed=False, reason=f"only {found} of {samples} stored vectors find themselves")
    return Verdict(passed=True)


async def check(
    folder: Path | None, url: str, collection: str, samples: Mapping[str, Vector], expected: int, *, limit_s: float = LIMIT_S
) -> Verdict:
    """Ask a child process. `samples`: vectors by key that the collection must know; none and nothing expected: there is nothing to prove."""
    if not samples and not expected:
        return Verdict(passed=True)
    encoded = {key: base64.b64encode(vector.astype(np.float32).tobytes()).decode() for key, vector in samples.items()}
    question: Question = {"url": url, "collection": collection, "samples": encoded}
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "memory.chroma_probe", _argument(folder),
        cwd=_ROOT, stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
    )  # fmt: skip
    try:
        async with asyncio.timeout(limit_s):
            out, errors = await child.communicate(json.dumps(question).encode())
    except TimeoutError:
        return Verdict(passed=False, reason=f"it did not answer within {limit_s:g} s")
    finally:
        if child.returncode is None:
            with suppress(ProcessLookupError):
                child.kill()
            await child.wait()
    if child.returncode != 0:
        log.info("the check of the vector index ended with %s: %s", child.returncode, errors.decode(errors="replace")[-500:])
        return Verdict(passed=False, reason=f"opening it ended with {child.returncode}")
    try:
        answer = json.loads(out)
        return judged(len(samples), expected, int(answer["count"]), int(answer["found"]))
    except (ValueError, KeyError, TypeError):
        return Verdict(passed=False, reason="its check gave no answer")


def _argument(folder: Path | None) -> str:
    return str(folder.resolve()) if folder else ""
