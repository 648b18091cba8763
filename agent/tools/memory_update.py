"""`memory_update`: the new text of a saved memory that the model was shown (SM-52, SM-53)."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, Field

from agent.tools.memory_save import Memories


class UpdateArguments(BaseModel):
    id: int = Field(description="Its number.")
    content: str = Field(description="The whole new text.")


class MemoryUpdate:
    name = "memory_update"
    description = "Change the text of a saved memory that stands before you. Pinned ones cannot be changed."
    arguments: type[BaseModel] = UpdateArguments
    foreign = False

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("UpdateArguments", arguments)
        return await self._memories.update(asked.id, asked.content)
