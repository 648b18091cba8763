"""The port to one tool."""

from __future__ import annotations

from typing import Protocol

from pydantic import BaseModel

from agent.llm.port import ToolSpec


class Tool(Protocol):
    """`arguments` is the pydantic model its call must fit; `call` gets a checked instance and returns text for the model.

    It raises ToolFailed with a sentence for the model when it cannot; it takes no scope argument, the runtime's owner built it for one (WD-9).
    Blocking work inside it goes to a thread.
    """

    name: str
    description: str
    arguments: type[BaseModel]

    async def call(self, arguments: BaseModel) -> str: ...


class ToolFailed(Exception):
    pass


def spec_of(tool: Tool) -> ToolSpec:
    schema = tool.arguments.model_json_schema()
    schema.pop("title", None)
    return ToolSpec(name=tool.name, description=tool.description, parameters=schema)
