"""Whether an endpoint that is being set up answers (WO-3)."""

from __future__ import annotations

import asyncio

from agent.llm.port import ModelMessage, ModelRequest, Role
from agent.llm.whole import whole
from gateway.config import ModelAccount
from gateway.http.model_setup import Endpoint
from gateway.models import MakeModel


async def probe(make: MakeModel, endpoint: Endpoint) -> str:
    """What it says to one small request. Raises ModelError."""
    account = ModelAccount.model_validate({"provider": "openai", "base_url": endpoint.base_url, "api_key": endpoint.api_key, "name": endpoint.name})
    model = await asyncio.to_thread(make, account)
    hello = ModelMessage(role=Role.USER, text="Say hello in one short sentence.")
    try:
        text, _ = await whole(model, ModelRequest(messages=(hello,), max_output_tokens=200, purpose="test"))
        return text
    finally:
        await model.close()
