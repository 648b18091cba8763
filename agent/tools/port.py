"""The port to one tool."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Protocol

from pydantic import BaseModel

from agent.llm.port import ToolSpec


class Tool(Protocol):
    """`arguments` is the pydantic model its call must fit; `call` gets a checked instance and returns text for the model.

    It raises ToolFailed when it cannot; it takes no scope argument, the runtime's owner built it for one (WD-9).
    Blocking work inside it goes to a thread. `foreign`: what it returns was written by others, as pages of the web are; memory tools are not (WD-67).
    """

    name: str
    description: str
    arguments: type[BaseModel]
    foreign: bool

    async def call(self, arguments: BaseModel) -> str:
        """Text for the model. `arguments` is an instance of the class of that name."""
        ...


class ToolFailed(Exception):
    """The tool could not; the text is a sentence for the model."""


def spec_of(tool: Tool) -> ToolSpec:
    return ToolSpec(name=tool.name, description=tool.description, parameters=_schema(tool.arguments))


@lru_cache(maxsize=256)  # asked for every tool of every turn; making them was a third of a turn's work
def _schema(arguments: type[BaseModel]) -> Mapping[str, Any]:
    schema = arguments.model_json_schema()
    schema.pop("title", None)
    return schema
