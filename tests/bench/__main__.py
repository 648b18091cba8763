"""`make bench`: what the gateway adds over a direct call to the same scripted endpoint, in one run, as a table with ratios.

Load model: a closed loop, each conversation posting its next message when the answer to the last is whole (after a think time where one is said).
Three processes share the machine: this one with the load, the endpoint, and the gateway as a person would start it.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import signal
import tempfile
import time
from pathlib import Path

from rich.console import Console
from rich.table import Table

from tests.bench.file_search import search_quality, search_speed
from tests.bench.load import Measured, direct, through_gateway
from tests.bench.processes import endpoint, gateway
from tests.bench.recall import recall_speed
from tests.bench.retrieval import retrieval
from tests.bench.rows_search import rows_quality, rows_speed
from tests.bench.splitting import splitting
from tests.bench.telegram import telegram

ZERO_DELAY = ((1, 60), (20, 12), (50, 6), (200, 2))  # conversations, messages in each
THINK_S = 2.0
SLOW_S = 5.0


def _row(table: Table, name: str, straight: Measured, through: Measured) -> None:
    def milliseconds(measured: Measured, share: float) -> str:
        return f"{measured.percentile(share) * 1000:.0f}"

    added = (through.percentile(0.95) - straight.percentile(0.95)) * 1000
    table.add_row(
        name,
        milliseconds(straight, 0.5), milliseconds(straight, 0.95), f"{straight.per_second:.0f}",
        milliseconds(through, 0.5), milliseconds(through, 0.95), f"{through.per_second:.0f}",
        f"{added:+.0f}", f"{through.per_second / straight.per_second:.2f}", str(through.lost),
    )  # fmt: skip


def _table(title: str) -> Table:
    table = Table(title=title)
    for heading in ("conversations", "direct p50", "p95 ms", "msg/s", "gateway p50", "p95 ms", "msg/s", "added p95 ms", "ratio msg/s", "lost"):
        table.add_column(heading, justify="right")
    return table


async def overhead(folder: Path, console: Console) -> None:
    async with endpoint() as url, gateway(folder, url) as served:
        await asyncio.sleep(4)
        at_rest = served.memory_mb()
        await direct(url, conversations=2, each=5)
        await through_gateway(served.url, served.token, conversations=2, each=5)
        table = _table("Zero-delay endpoint, no think time")
        for conversations, each in ZERO_DELAY:
            straight = await direct(url, conversations=conversations, each=each)
            through = await through_gateway(served.url, served.token, conversations=conversations, each=each)
            _row(table, str(conversations), straight, through)
        console.print(table)
        table = _table(f"Zero-delay endpoint, {THINK_S:g} s think time")
        straight = await direct(url, conversations=50, each=5, think_s=THINK_S)
        through = await through_gateway(served.url, served.token, conversations=50, each=5, think_s=THINK_S)
        _row(table, "50", straight, through)
        console.print(table)
        console.print(f"memory: {at_rest:.0f} MB at rest, {served.memory_mb():.0f} MB after the load (the gateway's process)")
    async with gateway(folder, url) as served:
        console.print(f"ready {served.started_s:.2f} s after the start of the process (restart on an existing store)")


async def slow_model(folder: Path, console: Console) -> None:
    async with endpoint(delay_s=SLOW_S) as url, gateway(folder, url) as served:
        table = _table(f"Model that takes {SLOW_S:g} s, one message in each conversation, all at once")
        for conversations in (50, 200):
            straight = await direct(url, conversations=conversations, each=1)
            through = await through_gateway(served.url, served.token, conversations=conversations, each=1)
            _row(table, str(conversations), straight, through)
            slowest, direct_slowest = max(through.seconds), max(straight.seconds)
            console.print(f"{conversations} conversations: all answered {slowest:.2f} s after the first post (direct: {direct_slowest:.2f} s)")
        console.print(table)


async def killed(folder: Path, console: Console) -> None:
    """Ten messages in work at a kill -9: how many are answered after the restart, and how often."""
    import aiohttp

    async with endpoint(delay_s=1.0) as url:
        async with gateway(folder, url) as served:
            async with aiohttp.ClientSession(served.url, headers={"Authorization": f"Bearer {served.token}"}) as http:
                chats = [(await (await http.post("/api/chats", json={})).json())["id"] for _ in range(10)]
                for chat in chats:
                    async with http.post(f"/api/chats/{chat}/messages", json={"client_id": "1", "text": "hello"}) as answer:
                        assert answer.status == 202
            served.process.send_signal(signal.SIGKILL)
            token = served.token
            await served.process.wait()
        async with gateway(folder, url) as again, aiohttp.ClientSession(again.url, headers={"Authorization": f"Bearer {token}"}) as http:
            await asyncio.sleep(4)
            counts: list[int] = []
            for chat in chats:
                async with http.get(f"/api/chats/{chat}/messages") as answer:
                    counts.append(sum(message["role"] == "assistant" for message in (await answer.json())["messages"]))
    console.print(f"kill -9 with ten messages in work: {counts.count(1)} answered once, {sum(n > 1 for n in counts)} twice, {counts.count(0)} lost")


BENCHES = {
    "overhead": overhead,
    "slow": slow_model,
    "telegram": telegram,
    "kill": killed,
    "split": splitting,
    "search": search_speed,
    "found": search_quality,
    "rows": rows_speed,
    "rows_found": rows_quality,
    "recall": recall_speed,
    "retrieval": retrieval,
}


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("bench", nargs="*", choices=[*BENCHES, []], help="all of them when none is named")
    chosen = parser.parse_args().bench or list(BENCHES)
    console = Console(width=150)
    console.print(f"{os.cpu_count()} cores, load {os.getloadavg()[0]:.1f} before the run, {time.strftime('%Y-%m-%d')}")
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            await BENCHES[name](Path(folder), console)


asyncio.run(main())
