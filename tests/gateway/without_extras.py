"""A gateway whose Python cannot load what recall by meaning needs, in a process of its own: `python -m tests.gateway.without_extras FOLDER NAMES`.

Prints what it saw as one line of JSON, for `test_recall_gaps.py`.
"""

from __future__ import annotations

import asyncio
import importlib.abc
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from agent.llm.scripted import ScriptedModel
from gateway.embedding.making import make_embedder
from tests.gateway.test_recall_whole import CONFIG, FACTS, answers, ask, fill, newest, receipt
from tests.harness import eventually, running


class Missing(importlib.abc.MetaPathFinder):
    """Nothing of these names is installed."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = frozenset(names)

    def find_spec(self, fullname: str, path: object = None, target: object = None) -> None:
        if fullname.partition(".")[0] in self._names:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)


async def seen(folder: Path) -> dict[str, Any]:
    model = ScriptedModel(answers)
    fact, question, chatter = FACTS["en"]
    async with running(folder, model, config=CONFIG, embedder=make_embedder) as gateway:
        chat = await gateway.chat()
        await fill(gateway, chat, fact, [f"{chatter} {n}" for n in range(8)])
        turn = await ask(gateway, chat, question)
        found = fact in newest(model)
        mode = (await receipt(gateway, chat, turn))["mode"]
        command = (await gateway.say(chat, "/memory chunks"))["message_id"]

        async def told() -> str | None:
            log = await gateway.messages(chat)
            at = [each["id"] for each in log].index(command)
            return log[at + 1]["text"] if len(log) > at + 1 else None

        return {
            "found": found,
            "mode": mode,
            "told": await eventually(told),
            "chat": await gateway.get(f"/api/recall/chats/{chat}"),
            "embeddings": await gateway.get("/api/operator/embeddings"),
            "chunks": (await gateway.get(f"/api/recall/chats/{chat}/chunks"))["totals"]["chunks"],
        }


if __name__ == "__main__":
    sys.meta_path.insert(0, Missing(sys.argv[2].split(",")))
    print(json.dumps(asyncio.run(seen(Path(sys.argv[1])))))  # noqa: T201
