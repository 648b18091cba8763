"""What the files of the workspace raise, split by what the caller should do. A full disk or a missing right is StoreUnavailable: try again (WD-23).

StoreError
├── FileRefused         give up on this item; the sentence goes to the model or the page, nothing was written
│   ├── PathRefused     the path is none of this scope's files (WD-20)
│   ├── TooLarge        the file, or one line written by a program, is above its limit (WD-20)
│   └── SecretRefused   the new text holds what must not be kept; `kind` names it, the value is nowhere (WD-22)
└── FileUnreadable      ask a person: no UTF-8, too large, no right to read; it is left as it is (WD-23)
"""

from __future__ import annotations

from memory.errors import StoreError


class FileRefused(StoreError):
    pass


class PathRefused(FileRefused):
    pass


class TooLarge(FileRefused):
    pass


class SecretRefused(FileRefused):
    def __init__(self, kind: str) -> None:
        super().__init__(f"the text holds what looks like a {kind}, and secrets are never kept: leave it out")
        self.kind = kind


class FileUnreadable(StoreError):
    pass
