"""`file_write` and `file_edit`: the model's own hand in the memory of its chat. What may be written where is decided by who builds them (WD-104)."""

from __future__ import annotations

from typing import Protocol, cast

from pydantic import BaseModel, Field

from agent.tools.port import ToolFailed
from memory.errors import StoreUnavailable
from memory.file_errors import FileRefused, FileUnreadable, PathRefused


class Files(Protocol):
    """The files that one turn may change. Each call answers with a sentence for the model and raises what the workspace raises.

    A change that waits for the person's yes is an answer, not an error (WD-105).
    """

    async def write(self, path: str, text: str) -> str: ...

    async def edit(self, path: str, old: str, new: str) -> str: ...


class WriteArguments(BaseModel):
    path: str = Field(description="A new page such as knowledge/cats/tama.md, or a file to say anew.")
    text: str = Field(min_length=1, description="The whole new text, Markdown.")


class EditArguments(BaseModel):
    path: str = Field(description="E.g. MEMORY.md, user.md, memory/2026-03-08.md.")
    old: str = Field(default="", description="The passage to replace, exactly as it stands, occurring once. Empty: add `new` as a line at the end.")
    new: str = Field(default="", description="What stands there then. Empty: `old` goes.")


class FileWrite:
    name = "file_write"
    description = "Write a Markdown file of this chat's memory: a new one, or one said wholly anew. For single lines use file_edit."
    arguments: type[BaseModel] = WriteArguments
    foreign = False

    def __init__(self, files: Files) -> None:
        self._files = files

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("WriteArguments", arguments)
        try:
            return await self._files.write(asked.path, asked.text)
        except (FileRefused, FileUnreadable, StoreUnavailable) as error:
            raise failure(error) from error


class FileEdit:
    name = "file_edit"
    description = "Change one passage of a Markdown file of this chat's memory, or add one line to it (empty `old`): the way to remember something."
    arguments: type[BaseModel] = EditArguments
    foreign = False

    def __init__(self, files: Files) -> None:
        self._files = files

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("EditArguments", arguments)
        if not asked.old.strip() and not asked.new.strip():
            raise ToolFailed("nothing to do: give `new` to add a line, or `old` to take one out")
        try:
            return await self._files.edit(asked.path, asked.old if asked.old.strip() else "", asked.new)
        except (FileRefused, FileUnreadable, StoreUnavailable) as error:
            raise failure(error) from error


def failure(error: FileRefused | FileUnreadable | StoreUnavailable) -> ToolFailed:
    """What the model is told of a file that was not written, with what to do. Nothing was changed."""
    match error:
        case PathRefused():
            return ToolFailed(f"{error}; nothing was written: MEMORY.md, memory/<date>.md and knowledge/<topic>/<page>.md can be")
        case StoreUnavailable():
            return ToolFailed("the files cannot be written just now and nothing was stored: tell the person, and try again later")
        case FileUnreadable():
            return ToolFailed(f"{error}; it was left as it is: tell the person")
        case _:
            return ToolFailed(f"{error}; nothing was written")
