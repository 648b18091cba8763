"""What thinks for a turn, with all that earlier turns have taught of these models."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from agent.llm.calibration import Calibration
from agent.llm.port import ChatModel
from agent.runtime import Runtime, Sleep
from agent.turn import Budget
from gateway import windows
from gateway.config import Config
from memory.conversations import Conversation


class Runtimes:
    def __init__(self, config: Callable[[], Config], sleep: Sleep) -> None:
        """`sleep`: the wait between two tries of a model."""
        self._config = config
        self._sleep = sleep
        self._learned: dict[str, int] = {}  # windows of models, as they turned out (WD-96)
        self._calibration = Calibration()

    def of(self, models: Sequence[ChatModel], chat: Conversation) -> Runtime:
        config, limits = self._config(), self._config().turn
        alike = chat.kind == "challenge"  # what other turns taught must not change its prompt (SM-88)
        return Runtime(
            models,
            budget=Budget(steps=limits.max_steps, tokens=limits.max_tokens, seconds=limits.max_seconds, tool_seconds=limits.tool_timeout_s),
            max_prompt=windows.prompt_limit(config, chat),
            learned=None if alike else self._learned,
            calibration=None if alike else self._calibration,
            sleep=self._sleep,
        )
