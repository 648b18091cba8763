"""`memory_get`: lines of one file of this chat's memory (WD-103, WD-114)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias, cast

from pydantic import BaseModel, Field

from agent.tools.port import ToolFailed
from agent.tools.recalled import framed
from memory.errors import StoreUnavailable
from memory.file_errors import FileUnreadable, PathRefused
from memory.markdown_lines import BOM, body, lines_of

LINES_MAX = 400
CHARACTERS_MAX = 16_000  # of the lines of one answer; a longer single line is cut


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A file: its text as it stands, the local date it is about (empty for none), and by the number of its first line whose words each entry
    rests on."""

    path: str
    text: str
    date: str = ""
    origins: Mapping[int, str] = field(default_factory=dict[int, str])


Read: TypeAlias = Callable[[str], Awaitable[Page | None]]


class GetArguments(BaseModel):
    path: str = Field(description="As memory_search gives it, e.g. MEMORY.md or memory/2026-03-08.md.")
    start_line: int = Field(default=1, ge=1)
    num_lines: int = Field(default=LINES_MAX, ge=1, le=LINES_MAX)


class MemoryGet:
    name = "memory_get"
    description = "Read lines of one remembered file, with their numbers."
    arguments: type[BaseModel] = GetArguments
    foreign = False

    def __init__(self, read: Read) -> None:
        """`read(path)` gives a file that this turn may read, None when there is none; it raises what the workspace raises."""
        self._read = read

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("GetArguments", arguments)
        try:
            page = await self._read(asked.path)
        except PathRefused as error:
            raise ToolFailed(f"{error}: use a path that memory_search gave") from error
        except FileUnreadable as error:
            raise ToolFailed(f"{error}; tell the person") from error
        except StoreUnavailable as error:
            raise ToolFailed("the file cannot be read just now, which does not mean that it is empty: try again later") from error
        if page is None:
            raise ToolFailed("there is no such file: memory_search gives the paths of those that are there")
        return _shown(page, asked.start_line, asked.num_lines)


def _shown(page: Page, start: int, count: int) -> str:
    lines = [body(line) for line in lines_of(page.text.removeprefix(BOM))]
    if not lines:
        return f"{page.path} is empty."
    if start > len(lines):
        raise ToolFailed(f"{page.path} has {len(lines)} lines: start at one of them")
    shown: list[str] = []
    room = CHARACTERS_MAX
    for number, line in enumerate(lines[start - 1 : start - 1 + count], start=start):
        origin = f" [{page.origins[number]}]" if number in page.origins else ""
        text = f"{number}{origin}: {line}"
        if len(text) > room and shown:
            break
        shown.append(text if len(text) <= room else f"{text[:room]} [… cut]")
        room -= len(text)
    last = start + len(shown) - 1
    about = f"{page.path}{f', {page.date}' if page.date else ''}, lines {start} to {last} of {len(lines)}"
    more = f"\nGo on with start_line={last + 1}." if last < len(lines) else ""
    return f"{about}\n{framed(chr(10).join(shown))}{more}"
