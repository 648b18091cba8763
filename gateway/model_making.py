"""Makes what answers and what listens: the model of an account, and who writes voice notes down.

Imports stand inside the functions: an SDK costs two seconds, and the demo model needs none until its first use.
"""

from __future__ import annotations

from agent.llm.port import ChatModel
from gateway.config import Config, ModelAccount
from gateway.transcribing import Transcriber
from memory import tokens as counting


def make_model(account: ModelAccount) -> ChatModel:
    """The real thing for a model account."""
    if account.provider == "demo":
        from agent.llm.demo import DemoModel

        return DemoModel(count_tokens=counting.count)
    from agent.llm.openai_client import OpenAIModel

    return OpenAIModel(
        base_url=account.base_url,
        model=account.name,
        api_key=account.api_key.get_secret_value(),
        context_window=account.window_tokens,
        count_tokens=counting.count,
        supports_tools=account.supports_tools,
        sees_images=account.sees_images,
        temperature=account.temperature,
        max_output_tokens=account.max_output_tokens or None,
        answer_tokens=account.answer_tokens,
        first_byte_s=account.first_byte_s,
        stall_s=account.stall_s,
        timeout_s=account.timeout_s,
    )


def make_transcriber(config: Config) -> Transcriber | None:
    """Who writes voice notes down; None when nobody does."""
    wanted = config.transcription
    if wanted.provider == "none":
        return None
    from agent.llm.transcription import EndpointTranscriber

    return EndpointTranscriber(base_url=wanted.base_url, api_key=wanted.api_key.get_secret_value(), model=wanted.model)
