"""What follows the end of a turn, outside its transaction: live viewers, metrics and budgets are told. Nothing here is needed for correctness."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from agent.turn import Record
from channels.message import Account
from gateway.budgets import Budgets
from gateway.language import say
from gateway.models import Models
from gateway.prompt_shelf import PromptShelf
from gateway.shapes import message_json
from gateway.standing import Standing
from gateway.streams import Streams
from gateway.tally import Tally
from gateway.turn_store import TurnEnd, TurnStart
from memory.conversations import Message

log = logging.getLogger(__name__)


class Observer:
    def __init__(
        self,
        *,
        streams: Streams,
        tally: Tally,
        budgets: Budgets,
        models: Models,
        standing: Standing,
        wake_jobs: Callable[[], None],
        talked: Callable[[str], None],
        prompts: PromptShelf,
    ) -> None:
        """`talked` hears of each chat in which something was said; `prompts` keeps what was sent for a while."""
        self._streams = streams
        self._tally = tally
        self._budgets = budgets
        self._models = models
        self._standing = standing
        self._wake_jobs = wake_jobs
        self._talked = talked
        self._prompts = prompts

    def ended(self, start: TurnStart, ending: TurnEnd, added: Sequence[Message], record: Record, seconds: float) -> None:
        chat = start.conversation
        if ending.state == "failed" and ending.error_code.startswith("model"):
            self._standing.model_fault = ending.notice
        elif record.calls and ending.state == "answered":
            self._standing.model_fault = ""
        if ending.state == "failed":
            error = {"turn_id": ending.turn_id, "code": ending.error_code, "message": ending.notice}
            self._streams.publish(chat.id, "error", error)
        for message in added:
            self._streams.publish(chat.id, "message", message_json(message))
        for budget in self._budgets.spend(start, record.calls, sum(map(self._models.cost, record.calls))):
            self._warn(start, budget)
        self._streams.end(chat.id, ending.turn_id, ending.state)
        self._tally.turned(record, seconds)
        if added:
            self._tally.stored(Account(channel=chat.channel, name=chat.account))
        self._prompts.keep(start, ending, record)
        self._wake_jobs()
        self._talked(chat.id)

    def _warn(self, start: TurnStart, budget: str) -> None:
        """The soft warning of a budget, once a day: to whoever watches the chat, and to the operator (WO-38)."""
        percent = self._budgets.warn_percent
        log.warning("%d %% of today's budget (%s) is used, chat %s", percent, budget, start.conversation.id)
        text = say(start.language, "budget_warn", percent=percent, what=budget)
        self._streams.publish(start.conversation.id, "notice", {"text": text, "level": "warning"})
