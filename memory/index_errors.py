"""What embedders and vector indexes raise, split by what the caller should do. Search by words goes on in every case.

StoreError
├── EmbedderFailed      try again, after `retry_after_s` where one is said; `permanent`: only a changed setting helps
└── IndexFailed         the vector index cannot be used: `missing` names what is to be installed, else it is rebuilt
"""

from __future__ import annotations

from memory.errors import StoreError


class EmbedderFailed(StoreError):
    def __init__(self, message: str, *, permanent: bool = False, retry_after_s: float = 0.0) -> None:
        super().__init__(message)
        self.permanent = permanent
        self.retry_after_s = retry_after_s


class IndexFailed(StoreError):
    def __init__(self, message: str, *, missing: str = "") -> None:
        super().__init__(message)
        self.missing = missing
