"""The load: conversations that post a message, wait for its answer, and post the next (a closed loop), bounded in count and time.

`through_gateway` uses the page's own API: one event stream for each conversation. `direct` calls the same endpoint with the official client.
"""

from __future__ import annotations

import asyncio
import json
import random
import time
from dataclasses import dataclass, field

import aiohttp
import openai


@dataclass(slots=True)
class Measured:
    """Seconds from posting a message to its whole answer, for every message; `lost` never got one."""

    seconds: list[float] = field(default_factory=list)
    lost: int = 0
    elapsed_s: float = 0.0

    @property
    def per_second(self) -> float:
        return len(self.seconds) / self.elapsed_s if self.elapsed_s else 0.0

    def percentile(self, share: float) -> float:
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")


async def direct(url: str, *, conversations: int, each: int, think_s: float = 0.0, limit_s: float = 120.0) -> Measured:
    """`each` messages in each of `conversations` through one client, as a program without a gateway would."""
    measured = Measured()
    async with openai.AsyncOpenAI(base_url=url, api_key="none", max_retries=0) as client:

        async def talk(number: int) -> None:
            history: list[dict[str, str]] = []
            await asyncio.sleep(random.random() * think_s)
            for turn in range(each):
                history.append({"role": "user", "content": f"message {turn} of {number}"})
                began = time.monotonic()
                text = ""
                async with await client.chat.completions.create(
                    model="fake",
                    messages=history,
                    stream=True,
                    stream_options={"include_usage": True},  # type: ignore[arg-type]
                ) as stream:
                    async for chunk in stream:
                        if chunk.choices and chunk.choices[0].delta.content:
                            text += chunk.choices[0].delta.content
                measured.seconds.append(time.monotonic() - began)
                history.append({"role": "assistant", "content": text})
                await asyncio.sleep(think_s)

        await _all(measured, talk, conversations, each, limit_s)
    return measured


async def through_gateway(url: str, token: str, *, conversations: int, each: int, think_s: float = 0.0, limit_s: float = 120.0) -> Measured:
    """The same talk through the gateway's page API."""
    measured = Measured()
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(url, headers={"Authorization": f"Bearer {token}"}, connector=connector) as http:

        async def talk(number: int) -> None:
            async with http.post("/api/chats", json={"title": f"bench {number}"}) as answer:
                chat = (await answer.json())["id"]
            timeout = aiohttp.ClientTimeout(total=limit_s)
            async with http.get(f"/api/chats/{chat}/events", timeout=timeout) as events:
                await asyncio.sleep(random.random() * think_s)
                for turn in range(each):
                    began = time.monotonic()
                    body = {"client_id": str(turn), "text": f"message {turn} of {number}"}
                    async with http.post(f"/api/chats/{chat}/messages", json=body) as answer:
                        assert answer.status == 202, await answer.text()
                    await _answer(events)
                    measured.seconds.append(time.monotonic() - began)
                    await asyncio.sleep(think_s)

        await _all(measured, talk, conversations, each, limit_s)
    return measured


async def _answer(events: aiohttp.ClientResponse) -> None:
    """Reads a stream until the turn is done; the event's data says how it went."""
    name = ""
    async for raw in events.content:
        if raw.startswith(b"event: "):
            name = raw[7:].strip().decode()
        elif raw.startswith(b"data: ") and name == "done":
            outcome = json.loads(raw[6:])["outcome"]
            assert outcome == "answered", outcome
            return
    raise AssertionError("the stream ended before the answer")


async def _all(measured: Measured, talk: object, conversations: int, each: int, limit_s: float) -> None:
    began = time.monotonic()
    results = await asyncio.wait_for(
        asyncio.gather(*(talk(number) for number in range(conversations)), return_exceptions=True),  # type: ignore[operator]
        limit_s,
    )
    measured.elapsed_s = time.monotonic() - began
    measured.lost = conversations * each - len(measured.seconds)
    for result in results:
        if isinstance(result, BaseException):
            print("lost:", repr(result))
