"""Our sentences in the vendor's chats: the gateway has the words, an adapter knows when one is due."""

from __future__ import annotations

from typing import Protocol


class Say(Protocol):
    """A sentence of ours by its key, in the language of the text `like`."""

    def __call__(self, like: str, key: str, **values: object) -> str: ...


def by_key(like: str, key: str, **values: object) -> str:
    """The key itself, where nobody gave the words."""
    return key
