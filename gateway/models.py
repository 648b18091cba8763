"""Which model answers: the accounts of the configuration as `ChatModel`s, made on first use and kept until their settings change (WO-41)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from agent.errors import ModelError
from agent.llm.demo import NAME as DEMO_NAME
from agent.llm.port import ChatModel
from agent.turn import ModelCall
from gateway.config import Config, ModelAccount

log = logging.getLogger(__name__)

MakeModel = Callable[[ModelAccount], ChatModel]


@dataclass(slots=True, eq=False)
class _Open:
    account: ModelAccount
    model: ChatModel
    users: int = 0
    retired: bool = False


class Models:
    """The open models. Making one costs up to two seconds of imports, so it happens in a thread."""

    def __init__(self, make: MakeModel, config: Config) -> None:
        self._make = make
        self._config = config
        self._open: list[_Open] = []
        self._making = asyncio.Lock()

    @asynccontextmanager
    async def for_reply(self, character_model: str) -> AsyncGenerator[list[ChatModel]]:
        """The model that answers first, then the one that stands in when it fails (MD-08); open as long as they are used here."""
        names = [character_model, *([self._config.fallback_model] if self._config.fallback_model else [])]
        async with self._used([self._config.account(name) for name in names]) as models:
            yield models

    @asynccontextmanager
    async def helper(self, character_model: str = "", *, chosen: str = "") -> AsyncGenerator[ChatModel]:
        """For background work: `chosen` for this kind of it, else `helper_model`, else the chat's account."""
        async with self._used([self.helper_account(character_model, chosen=chosen)]) as models:
            yield models[0]

    @asynccontextmanager
    async def exactly(self, name: str) -> AsyncGenerator[ChatModel]:
        """The account called `name`, for background work."""
        async with self._used([self._config.account(name)]) as models:
            yield models[0]

    def helper_account(self, character_model: str = "", *, chosen: str = "") -> ModelAccount:
        return self._config.account(chosen or self._config.helper_model or character_model)

    async def warm(self) -> None:
        """Make the default model before somebody waits for it."""
        await self._get(self._config.model)

    def cost(self, call: ModelCall) -> float:
        """What one request cost, by the prices of its account; 0 where none are set (WO-38)."""
        account = next((account for account in (self._config.model, *self._config.models.values()) if name_of(account) == call.model), None)
        if account is None:
            return 0.0
        price, usage = account.price, call.usage
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * price.input + usage.cached_tokens * price.cached + usage.output_tokens * price.output) / 1_000_000

    async def reload(self, config: Config) -> None:
        """Take new settings. A model whose account changed is closed as soon as nobody uses it: replies in flight survive (CH-103)."""
        kept = [config.model, *config.models.values()]
        self._config = config
        for opened in self._open:
            opened.retired = opened.account not in kept
        await self._close([opened for opened in self._open if opened.retired and opened.users == 0])

    async def close(self) -> None:
        await self._close(list(self._open))

    @asynccontextmanager
    async def _used(self, accounts: Sequence[ModelAccount]) -> AsyncGenerator[list[ChatModel]]:
        opened: list[_Open] = []
        try:
            for account in accounts:
                try:
                    found = await self._get(account)
                except ModelError as error:
                    if not opened:
                        raise
                    log.warning("the stand-in %s cannot be made: %s", account.name, error)
                    continue
                if found not in opened:
                    opened.append(found)
                    found.users += 1
            yield [each.model for each in opened]
        finally:
            for each in opened:
                each.users -= 1
            await self._close([each for each in opened if each.retired and each.users == 0])

    async def _get(self, account: ModelAccount) -> _Open:
        async with self._making:
            found = next((opened for opened in self._open if opened.account == account and not opened.retired), None)
            if found is None:
                found = _Open(account, await asyncio.to_thread(self._make, account))
                self._open.append(found)
            return found

    async def _close(self, gone: Sequence[_Open]) -> None:
        self._open = [opened for opened in self._open if opened not in gone]
        for opened in gone:
            await opened.model.close()


def name_of(account: ModelAccount) -> str:
    """What receipts and pages call a model account."""
    return DEMO_NAME if account.provider == "demo" else account.name
