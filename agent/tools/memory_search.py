"""`memory_search`: what the files of this chat's memory say about something, best first (WD-102, WD-114)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, cast

from pydantic import BaseModel, Field

from agent.tools.port import ToolFailed
from agent.tools.recalled import framed
from memory.errors import StoreError

SNIPPET_MAX = 500  # characters


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """One hit. `kind`: file, saved row or message; `first`, `last`: line numbers from 1, 0 for what has none; `date`: local, empty for none;
    `origin`: whose words it rests on."""

    path: str
    snippet: str
    kind: str = "file"
    first: int = 0
    last: int = 0
    date: str = ""
    origin: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Hits, best first. `mode`: words and meaning, words alone, or a search that did not work, which is not the same as no hit."""

    hits: tuple[Found, ...]
    mode: Literal["hybrid", "words", "failed"] = "hybrid"


Search: TypeAlias = Callable[[str, int], Awaitable[Findings]]


class SearchArguments(BaseModel):
    query: str = Field(min_length=1, max_length=1_000, description="Words or a question, in any language.")
    max_results: int = Field(default=10, ge=1, le=50)


class MemorySearch:
    name = "memory_search"
    description = "Search what is remembered for this chat: notes, days, pages. Gives path, lines, date, origin and a snippet, best first."
    arguments: type[BaseModel] = SearchArguments
    foreign = False

    def __init__(self, search: Search, results: int = 10) -> None:
        """`search(query, limit)` knows whose memory it may read (WD-9). `results`: hits when nobody says how many."""
        self._search = search
        self._results = results

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("SearchArguments", arguments)
        limit = asked.max_results if "max_results" in asked.model_fields_set else self._results
        try:
            found = await self._search(asked.query, limit)
        except StoreError as error:
            raise ToolFailed(_FAILED) from error
        if found.mode == "failed":
            raise ToolFailed(_FAILED)
        words_only = "Only words were compared, not meaning: other words for the same thing may find more.\n" if found.mode == "words" else ""
        if not found.hits:
            return f"{words_only}Nothing was found. The search itself worked; try other words before you say that nothing is known."
        return words_only + framed("\n\n".join(_shown(number, hit) for number, hit in enumerate(found.hits[:limit], start=1)))


_FAILED = "the search failed, which does not mean that nothing is known: say so, or read a file you know of with memory_get"


def _shown(number: int, hit: Found) -> str:
    lines = f":{hit.first}-{hit.last}" if hit.last > hit.first else f":{hit.first}" if hit.first else ""
    about = ", ".join(part for part in (hit.kind, hit.date, f"origin {hit.origin}" if hit.origin else "") if part)
    return f"{number}. {hit.path}{lines} ({about})\n{_short(hit.snippet)}"


def _short(text: str) -> str:
    text = text.strip()
    return text if len(text) <= SNIPPET_MAX else f"{text[: SNIPPET_MAX - 1]}…"
