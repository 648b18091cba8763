"""Passwords: argon2id, computed in one thread of its own, never on the event loop (WO-60).

One thread is the bound: each computation takes tens of milliseconds and 64 MB, so a storm of sign-ins waits in line instead of filling the memory.
"""

from __future__ import annotations

import asyncio
import secrets
import unicodedata
from concurrent.futures import ThreadPoolExecutor
from typing import Self

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

SHORTEST = 8  # characters
LONGEST = 1024


class Passwords:
    """Makes and checks hashes. Close it, or use it as a context manager."""

    def __init__(self, hasher: PasswordHasher | None = None) -> None:
        """`hasher` sets the cost; without it, argon2-cffi's own recommendation."""
        self._hasher = hasher or PasswordHasher()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="passwords")
        self._decoy = ""  # the hash of a password that nobody knows

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._thread.shutdown(wait=True, cancel_futures=True)

    async def hash(self, password: str) -> str:
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._hasher.hash, _folded(password))

    async def fits(self, stored: str, password: str) -> bool:
        """Whether `password` made the hash `stored`. An empty or broken `stored` fits nothing, and takes as long to say so."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, self._fits, stored, _folded(password))

    def _fits(self, stored: str, password: str) -> bool:
        try:
            return self._hasher.verify(stored or self._unknown(), password) and bool(stored)
        except (VerificationError, InvalidHashError):
            return False

    def _unknown(self) -> str:
        self._decoy = self._decoy or self._hasher.hash(secrets.token_hex(16))
        return self._decoy


def _folded(password: str) -> str:
    """The same password typed on another keyboard gives the same characters; a lone surrogate cannot be hashed and fits nothing."""
    return unicodedata.normalize("NFKC", password).encode("utf-8", "replace").decode("utf-8")
