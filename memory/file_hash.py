"""The hash by which a file's text is known (WD-17)."""

from __future__ import annotations

import hashlib


def file_hash(text: str) -> str:
    """SHA-256 in hex of the bytes that `text` has on disk: what `Text.hash` is."""
    return hashlib.sha256(text.encode()).hexdigest()
