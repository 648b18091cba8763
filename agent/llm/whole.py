"""One request whose words nobody watches: titles, tests of an endpoint."""

from __future__ import annotations

from contextlib import aclosing

from agent.errors import ModelBroken
from agent.llm.port import ChatModel, Finished, ModelRequest, TextDelta


async def whole(model: ChatModel, request: ModelRequest) -> tuple[str, Finished]:
    """The whole text of an answer and its end. Raises ModelError, also for an answer without an end."""
    text = ""
    async with aclosing(model.stream(request)) as events:
        async for event in events:
            if isinstance(event, TextDelta):
                text += event.text
            elif isinstance(event, Finished):
                return text, event
    raise ModelBroken("the answer ended without an end")
