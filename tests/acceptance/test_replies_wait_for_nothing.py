"""Helpers and the index stand still for ever: every reply arrives, and not one of their calls is awaited (AT-16)."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path

import numpy as np
import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, Say, ScriptedModel, Until
from memory.embedders.local import LocalEmbedder
from memory.ports import Matrix
from tests.gateway.nights import MODEL
from tests.gateway.test_memory_files import store
from tests.harness import running
from tests.talks import asked

TURNS = 12


class Stuck:
    """An encoder that measures itself at the start and answers no text of a chat any more."""

    dimension = 8

    def __init__(self) -> None:
        self.go, self.waiting = threading.Event(), 0

    def documents(self, texts: list[str]) -> Matrix:
        if any("word" in text for text in texts):
            self.waiting += 1
            self.go.wait()
        return np.random.default_rng(1).normal(size=(len(texts), 8)).astype(np.float32)

    def questions(self, texts: list[str]) -> Matrix:
        return self.documents(texts)


@pytest.mark.slow
@pytest.mark.rule("RS-193", "RS-71", "RS-20", "RS-43", "RS-34")
@pytest.mark.case("AT-16", "K25")
@pytest.mark.parametrize("profile", ["assistant", "companion", "calendar"])
async def test_every_reply_arrives_while_helper_and_index_stand_still(tmp_path: Path, profile: str) -> None:
    go, stuck, helpers = asyncio.Event(), Stuck(), list[str]()

    def answer(request: ModelRequest) -> Reply:
        if request.purpose == "reply":
            return f"you said: {asked(request)}"
        helpers.append(request.purpose)
        return [Until(go), Say("nothing")]

    config = {
        **MODEL, "characters": {"default": {"profile": profile}}, "agent_max_context_turns": 4, "companion": {"messages": 6, "block": 2},
        "recall": {"time_limit_s": 0.3}, "delivery": {"drain_s": 1},
    }  # fmt: skip
    embedder = LocalEmbedder(lambda: stuck, fingerprint="stuck", label="stuck")
    async with running(tmp_path, ScriptedModel(answer), config=config, embedder=lambda _config: embedder) as gateway:
        try:
            chat = await gateway.chat()
            for n in range(TURNS):
                await gateway.say(chat, f"word {n} of the long tale of the heron")
                assert (await gateway.answers(chat, n + 1))[-1].startswith(f"you said: word {n}")
            left = store(gateway, lambda c: c.exec_driver_sql("SELECT count(*) FROM jobs WHERE state = 'waiting' OR state = 'running'").scalar_one())
            assert left >= (profile != "calendar"), "there was work behind the replies"
            assert profile == "calendar" or {*helpers} & {"summary", "chat-summary", "title"}
            assert stuck.waiting, "the index asked for vectors"
        finally:
            go.set()
            stuck.go.set()
