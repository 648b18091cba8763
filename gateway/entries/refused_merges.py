"""Merges whose answer was no good: nothing is stored of it, and the same request is not sent again until a summary, the helper or the instruction
is another (RS-111). Remembered with the chat, for several jobs may come to ask the same.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Collection
from dataclasses import dataclass
from typing import Any, TypeVar, cast

import sqlalchemy as sa

from memory import conversations
from memory.conversations import Conversation
from memory.recall import summary_rows
from memory.recall.answers import Answer

KEY = "summaries.refused"  # hashes of requests, the newest last
KEPT = 64
_HASH = 24  # characters of a hash
_MACRO = re.compile(r"\{\{[^{}]*\}{0,2}")  # one that is not closed hides what follows it just as well

P = TypeVar("P")


class MergeRefused(Exception):
    """What was to be merged stays as it is. `known`: nothing was asked, for the same was refused before."""

    def __init__(self, *, known: bool) -> None:
        super().__init__("the merge was refused" + (" before" if known else ""))
        self.known = known


@dataclass(frozen=True, slots=True, kw_only=True)
class Merging:
    """What an answer must keep to. `below`: tokens that what is stored of it stays under; `kept`: what of it is stored."""

    below: int
    kept: Callable[[Answer], Answer]

    def good(self, answer: Answer, shown: str) -> bool:
        """Shorter than what it was made of, and without a macro that stands in none of it. `shown`: what the request showed."""
        size = summary_rows.size(answer.text, answer.details)
        said = "\n".join([answer.title, answer.text, *(detail.text for detail in answer.details)])
        return size < self.below and set(_MACRO.findall(said)) <= set(_MACRO.findall(shown))


def is_known(chat: Conversation, hashed: str) -> bool:
    return hashed[:_HASH] in _known(chat)


def note(connection: sa.Connection, chat_id: str, hashed: str) -> None:
    chat = conversations.held(connection, chat_id)
    if chat is not None:
        conversations.change_settings(connection, chat_id, {KEY: [*_known(chat), hashed[:_HASH]][-KEPT:]})


async def merge_next(
    plan: Callable[[Collection[int]], Awaitable[P | None]], rows: Callable[[P], Collection[int]], make: Callable[[P], Awaitable[bool]]
) -> bool:
    """Make the first merge that was not refused before. `plan`: the next one without the rows with these ids; `rows`: ids of those it is made of.
    False when there is none, when `make` says so, or when it was refused: then the update ends."""
    passed: set[int] = set()
    while (found := await plan(passed)) is not None:
        try:
            return await make(found)
        except MergeRefused as refused:
            if not refused.known:
                return False
            passed.update(rows(found))
    return False


def _known(chat: Conversation) -> list[str]:
    kept = chat.settings.get(KEY)
    return [each for each in cast("list[Any]", kept) if isinstance(each, str)] if isinstance(kept, list) else []
