"""Embeddings in OpenAI's form on a loopback socket: hashed words, another model behind the same name on demand, and failures."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import numpy as np
from aiohttp import web

from memory.embedders.hashed import hash_embedder


class FakeEmbeddings:
    """`dimension` of its vectors; `salt`: another one is another model; `status`: of every answer; `most`: texts it takes before it fails.

    `asked`: every text; `models`, `keys`: as each request named them.
    """

    def __init__(self, dimension: int, salt: str = "") -> None:
        self.dimension, self.salt = dimension, salt
        self.status = 200
        self.most: int | None = None
        self.asked: list[str] = []
        self.requests = 0
        self.models: list[str] = []
        self.keys: list[str] = []
        self.url = ""

    async def answer(self, request: web.Request) -> web.Response:
        wanted = await request.json()
        texts: list[str] = wanted["input"]
        self.requests += 1
        self.models.append(wanted["model"])
        self.keys.append(request.headers.get("Authorization", ""))
        status = 503 if self.most is not None and len(self.asked) + len(texts) > self.most else self.status
        if status != 200:
            return web.json_response({"error": {"message": "out of order"}}, status=status)
        self.asked += texts
        embedder = hash_embedder(self.dimension)
        rows = await embedder.documents([f"{self.salt} {self.salt} {text}" for text in texts] if self.salt else texts)
        await embedder.close()
        filled = [row if row is not None else np.ones(self.dimension, dtype=np.float32) for row in rows]
        data = [{"object": "embedding", "index": at, "embedding": [float(each) for each in row]} for at, row in enumerate(filled)]
        return web.json_response({"object": "list", "data": data, "model": "fake", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


@asynccontextmanager
async def serving(fake: FakeEmbeddings) -> AsyncGenerator[FakeEmbeddings]:
    """Listening at `fake.url` until the block ends."""
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/v1/embeddings", fake.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    fake.url = f"http://{host}:{port}/v1"
    try:
        yield fake
    finally:
        await runner.cleanup()
