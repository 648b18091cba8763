"""Which model answers: the accounts of the configuration as `ChatModel`s, made on first use and kept until their settings change (WO-41)."""

from __future__ import annotations

from collections.abc import Callable

from agent.llm.port import ChatModel
from agent.turn import ModelCall
from gateway.config import Config, ModelAccount

MakeModel = Callable[[ModelAccount], ChatModel]


class Models:
    """The open models by account name; `""` is the default account."""

    def __init__(self, make: MakeModel, config: Config) -> None:
        self._make = make
        self._config = config
        self._open: list[tuple[ModelAccount, ChatModel]] = []

    def for_reply(self, character_model: str) -> list[ChatModel]:
        """The model that answers first, then the one that stands in when it fails (MD-08)."""
        names = [character_model]
        if self._config.fallback_model:
            names.append(self._config.fallback_model)
        found = [self._account(self._config.account(name)) for name in names]
        return found if len(found) < 2 or found[0] is not found[1] else found[:1]

    def helper(self, character_model: str) -> ChatModel:
        """For small background work: `helper_model`, else the chat's account."""
        return self._account(self._config.account(self._config.helper_model or character_model))

    @property
    def default(self) -> ChatModel:
        return self._account(self._config.model)

    def cost(self, call: ModelCall) -> float:
        """What one request cost, by the prices of its account; 0 where none are set (WO-38)."""
        account = next((account for account, model in self._open if model.name == call.model), None)
        if account is None:
            return 0.0
        price, usage = account.price, call.usage
        fresh = usage.input_tokens - usage.cached_tokens
        return (fresh * price.input + usage.cached_tokens * price.cached + usage.output_tokens * price.output) / 1_000_000

    async def reload(self, config: Config) -> None:
        """Take new settings. Models whose account changed are closed; a request that runs on one ends with it and is tried again."""
        kept = [config.model, *config.models.values()]
        self._config = config
        gone = [model for account, model in self._open if account not in kept]
        self._open = [(account, model) for account, model in self._open if account in kept]
        for model in gone:
            await model.close()

    async def close(self) -> None:
        for _, model in self._open:
            await model.close()
        self._open = []

    def _account(self, wanted: ModelAccount) -> ChatModel:
        for account, model in self._open:
            if account == wanted:
                return model
        model = self._make(wanted)
        self._open.append((wanted, model))
        return model
