"""What the gateway gives an adapter beside its settings, and what stands in its place where nothing is given."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias

from channels.message import Attachment

LoadCursor: TypeAlias = Callable[[], Awaitable[str]]
"""What was stored last as the cursor of this account, empty for nothing; asked at every connect."""

ReadFile: TypeAlias = Callable[[Attachment], Awaitable[bytes]]
"""The bytes of a stored attachment that is to be sent. Raises OSError when they cannot be read."""


async def no_cursor() -> str:
    return ""


async def no_file(attachment: Attachment) -> bytes:
    raise FileNotFoundError(attachment.name)
