"""The moving parts of one turn of thought, which the runtime carries from step to step."""

from __future__ import annotations

import time

from agent.llm.port import ModelMessage
from agent.tools.toolbox import Toolbox
from agent.turn import Record, Sink, Turn


class Asking:
    """The draft with the mark where the present step began, the tool traffic so far, and which model comes first."""

    def __init__(self, *, turn: Turn, sink: Sink, record: Record, toolbox: Toolbox) -> None:
        self.turn = turn
        self.sink = sink
        self.record = record
        self.toolbox = toolbox
        self.traffic: list[ModelMessage] = []
        self.started = time.monotonic()
        self.first = 0
        self._mark = 0

    @property
    def step_text(self) -> str:
        return self.record.text[self._mark :].strip()

    def begin_step(self) -> None:
        self._mark = len(self.record.text)

    def say(self, text: str) -> None:
        if self._mark and len(self.record.text) == self._mark:
            text = f"\n\n{text.lstrip()}"  # words of a later step begin a paragraph of their own
        self.record.text += text
        self.sink.delta(text)

    def take_back(self) -> None:
        """Forget the words of the present step: they are about to be said again (MD-08)."""
        if len(self.record.text) > self._mark:
            self.record.text = self.record.text[: self._mark]
            self.sink.reset()
            if self.record.text:
                self.sink.delta(self.record.text)
