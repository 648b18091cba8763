"""Words from a voice note, by any endpoint that speaks OpenAI's `/audio/transcriptions`."""

from __future__ import annotations

import asyncio
from typing import cast

import openai
from openai.types.audio import Transcription

from agent.errors import ModelError, TranscriptionFailed
from agent.llm.connection import connect

TIMEOUT_S = 60.0


class EndpointTranscriber:
    """`base_url`, `api_key` (empty for none), `model` as the endpoint knows it."""

    def __init__(self, *, base_url: str, api_key: str, model: str) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._model = model

    async def words(self, data: bytes, *, name: str, mime: str) -> str:
        """What is said in a recording; empty when nothing is. Raises TranscriptionFailed."""
        try:
            async with (
                asyncio.timeout(TIMEOUT_S),
                connect(self._base_url, self._api_key, timeout_s=TIMEOUT_S, keep_alive=False) as client,
            ):
                answer = await client.audio.transcriptions.create(model=self._model, file=(name, data, mime), response_format="json")
        except openai.APIStatusError as error:
            raise TranscriptionFailed(f"the endpoint answered {error.status_code}") from error
        except (ModelError, openai.OpenAIError, TimeoutError, ValueError) as error:
            raise TranscriptionFailed(f"the endpoint cannot be used: {error}") from error
        said = cast("object", answer)  # a server that answers with a page gives a text here
        text = cast("object", said.text) if isinstance(said, Transcription) else None
        if not isinstance(text, str):
            raise TranscriptionFailed("the endpoint gave no words")
        return text.strip()
