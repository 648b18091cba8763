"""Commands about the memory of their chat: each is handed whose that is, and a chat without one is told why (WD-9)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from functools import wraps
from typing import TypeAlias

from gateway.commands.asked import Answer, Around, Asked, Handler
from memory.scopes import Scope

ScopedHandler: TypeAlias = Callable[[Around, Asked, Scope], Awaitable[str | Answer]]


def of_scope(handler: ScopedHandler) -> Handler:
    @wraps(handler)
    async def run(around: Around, asked: Asked) -> str | Answer:
        scope = asked.access().scope
        return await handler(around, asked, scope) if scope is not None else _why_none(asked)

    return run


def _why_none(asked: Asked) -> str:
    if asked.chat.kind == "challenge":
        return asked.say("memory_challenge")
    return asked.say("memory_not_here" if asked.chat.memory_on else "memory_is_off", on=asked.command("memory", "on"))
