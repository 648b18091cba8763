"""The processes of a bench: the fake endpoint and the real gateway, each started as a person would, each ended with the bench."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@asynccontextmanager
async def endpoint(*, delay_s: float = 0.0, chunks: int = 8, words: int = 18) -> AsyncGenerator[str]:
    """A fake OpenAI endpoint; yields its address. The answer has `words` words in `chunks` pieces, the first after `delay_s`."""
    options = ["--delay", str(delay_s), "--chunks", str(chunks), "--words", str(words)]
    process = await asyncio.create_subprocess_exec(sys.executable, "-m", "tests.peers.model.server", *options, stdout=asyncio.subprocess.PIPE)
    assert process.stdout is not None
    try:
        yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        await process.wait()


@dataclass(slots=True)
class Served:
    url: str
    token: str
    process: asyncio.subprocess.Process
    started_s: float

    def memory_mb(self) -> float:
        """Resident memory of the gateway's process, without its children."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        return int(next(line for line in text.splitlines() if line.startswith("VmRSS")).split()[1]) / 1024

    def processor_s(self) -> float:
        """Seconds of processor time that the gateway's process has used, in all its threads: the measure that a busy machine distorts least."""
        times = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        return (int(times[11]) + int(times[12])) / os.sysconf("SC_CLK_TCK")


@asynccontextmanager
async def gateway(folder: Path, model_url: str, *, channels: Mapping[str, Any] | None = None) -> AsyncGenerator[Served]:
    """The gateway as `python -m gateway run`, with its model at `model_url` and more `channels`; `started_s` from the exec to the printed link."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "config.json"
    path.write_text(
        json.dumps(
            {
                "agent_workspace": str(folder / "workspace"),
                "timezone": "UTC",
                "onboarding": False,
                "log": {"level": "warning"},
                "model": {"provider": "openai", "base_url": model_url, "name": "fake", "context_window": 100000},
                "rate": {"person_per_minute": 0, "chat_per_minute": 0},
                "channels": {"web": {"port": 0}, **(channels or {})},
            }
        ),
        encoding="utf-8",
    )
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "gateway", "run", "--config", str(path), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    url = (await process.stdout.readline()).decode().strip().rpartition(" ")[2]
    started_s = time.monotonic() - began
    try:
        maker = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "gateway", "token", "create", "--name", "bench", "--config", str(path),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
        )  # fmt: skip
        token = (await maker.communicate())[0].decode().split()[-1]
        yield Served(url, token, process, started_s)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
