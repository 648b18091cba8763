"""Embeddings from any endpoint that speaks OpenAI's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import cast

import numpy as np

from memory.embedders.batches import batches, shortened
from memory.embedders.local import unit_rows
from memory.index_errors import EmbedderFailed
from memory.ports import Vector

_BATCH, _BATCH_CHARACTERS = 128, 200_000  # common limits of providers: texts, and about 300,000 tokens of one request
_LONGEST = 24_000  # characters; a text refused as too long is cut to a half, some times
_SHORTEST = 500
_TOO_LARGE = frozenset({400, 413, 422})


def fingerprint_of(base_url: str, model: str) -> str:
    """What the vectors of this model at this address stand under; told without making the embedder, which loads the SDK."""
    return f"openai/{base_url}/{model}".rstrip("/")


class EndpointEmbedder:
    """`base_url`, `api_key` (empty for none), `model` as the endpoint knows it."""

    def __init__(self, *, base_url: str, api_key: str, model: str, timeout_s: float = 30.0) -> None:
        import openai

        self._errors = openai
        self._client = openai.AsyncOpenAI(base_url=base_url, api_key=api_key or "none", max_retries=0, timeout=timeout_s)
        self._timeout_s = timeout_s
        self._model = model
        self._dimension = 0
        self.fingerprint = fingerprint_of(base_url, model)
        self.label = model
        self.batch = _BATCH
        self.passage_tokens = 0

    async def dimension(self) -> int:
        if not self._dimension:
            await self._rows(["dimension"])
        return self._dimension

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        found: list[Vector | None] = []
        prepared = [shortened(text, _LONGEST) for text in texts]
        for part in batches(prepared, count=_BATCH, characters=_BATCH_CHARACTERS):
            found += await self._tolerant([prepared[at] for at in part])
        return found

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        return await self._tolerant([shortened(text, _LONGEST) for text in texts])

    async def close(self) -> None:
        await self._client.close()

    async def _tolerant(self, texts: list[str]) -> list[Vector | None]:
        """The rows of a batch; one that is refused for its size is halved until the text that is too long stands alone, and that is cut (RS-179)."""
        try:
            return await self._rows(texts)
        except EmbedderFailed as error:
            if not isinstance(error.__cause__, self._errors.APIStatusError) or error.__cause__.status_code not in _TOO_LARGE:
                raise
            if len(texts) > 1:
                half = len(texts) // 2
                return [*await self._tolerant(texts[:half]), *await self._tolerant(texts[half:])]
            if len(texts[0]) <= _SHORTEST:
                if not self._dimension:
                    raise  # it has never taken any text: the model or the address is wrong
                return [None]
            return await self._tolerant([shortened(texts[0], len(texts[0]) // 2)])

    async def _rows(self, texts: list[str]) -> list[Vector | None]:
        if not texts:
            return []
        api = self._errors
        try:
            async with asyncio.timeout(self._timeout_s):
                answer = await self._client.embeddings.create(model=self._model, input=texts, encoding_format="float")
        except api.APIStatusError as error:
            permanent = error.status_code in (400, 401, 403, 404, 405, 410, 413, 422)
            raise EmbedderFailed(f"the embedding endpoint answered {error.status_code}", permanent=permanent, retry_after_s=_wait(error)) from error
        except (api.OpenAIError, json.JSONDecodeError, TimeoutError) as error:
            raise EmbedderFailed(f"the embedding endpoint cannot be reached: {error}") from error
        said = cast("object", answer)  # a server that answers with a page gives a text here
        items = said.data or [] if isinstance(said, api.types.CreateEmbeddingResponse) else []
        rows = [item.embedding for item in sorted(items, key=lambda item: item.index)]
        if len(rows) != len(texts) or len({len(row) for row in rows}) != 1 or not rows[0]:
            raise EmbedderFailed("the embedding endpoint gave other than one vector for each text", permanent=True)
        if self._dimension and len(rows[0]) != self._dimension:
            raise EmbedderFailed(f"vectors had {self._dimension} dimensions and now have {len(rows[0])}: another model answers", permanent=True)
        self._dimension = len(rows[0])
        return unit_rows(np.array(rows, dtype=np.float32))


def _wait(error: object) -> float:
    headers = getattr(getattr(error, "response", None), "headers", {})
    value = str(headers.get("retry-after", ""))
    return float(value) if value.replace(".", "", 1).isdigit() else 0.0
