"""`memory_save`: one lasting fact, kept as a saved memory (SM-50, SM-51). What may be written where is decided by who builds it."""

from __future__ import annotations

from typing import Literal, Protocol, cast

from pydantic import BaseModel, Field

List = Literal["character", "global", "space"]


class Memories(Protocol):
    """The saved memories that one turn may change. Each call answers with the code of what came of it and a sentence for the model; nothing it cannot
    do is an error, so that the reply goes on (SM-54)."""

    async def save(self, content: str, kind: List) -> str: ...

    async def update(self, memory_id: int, content: str) -> str: ...

    async def delete(self, memory_id: int) -> str: ...


class SaveArguments(BaseModel):
    content: str = Field(description="One fact, in the person's language, dates absolute; at most 500 characters.")
    list: List = Field(
        default="character", description="character: between you and them. global: for every character. space: about this group and others in it."
    )


class MemorySave:
    name = "memory_save"
    description = (
        "Save a fact that holds for weeks: what to call them, food to avoid, an anniversary, a dated promise. Not the story so far, moods or how you "
        "two get on (summaries keep these), nor standing orders (these belong to your character). If a row says it already, memory_update it."
    )
    arguments: type[BaseModel] = SaveArguments
    foreign = False

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("SaveArguments", arguments)
        return await self._memories.save(asked.content, asked.list)
