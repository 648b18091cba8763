"""`memory_delete`: a saved memory that holds no more (SM-52, SM-53)."""

from __future__ import annotations

from typing import cast

from pydantic import BaseModel, Field

from agent.tools.memory_save import Memories


class DeleteArguments(BaseModel):
    id: int = Field(description="Its number.")


class MemoryDelete:
    name = "memory_delete"
    description = "Delete a saved memory that stands before you and is no longer true. Pinned ones cannot be deleted."
    arguments: type[BaseModel] = DeleteArguments
    foreign = False

    def __init__(self, memories: Memories) -> None:
        self._memories = memories

    async def call(self, arguments: BaseModel) -> str:
        return await self._memories.delete(cast("DeleteArguments", arguments).id)
