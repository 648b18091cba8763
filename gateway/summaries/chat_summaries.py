"""What every job that makes or remakes summaries of one chat begins with: the chat as it is now, and whether anything may be made for it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import datetime
from typing import ClassVar

from gateway.config import Config
from gateway.jobs.handling import Handler, JobContext, JobResult
from gateway.jobs.table import Job
from gateway.summaries.summarist import GONE, Summarist
from memory import conversations
from memory.conversations import Conversation
from memory.database import Database


class ChatSummaries(ABC):
    """`kind`: of its jobs. Their payload names the `conversation`."""

    kind: ClassVar[str]

    def __init__(self, *, db: Database, summarist: Summarist, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._db = db
        self._summarist = summarist
        self._config = config
        self._clock = clock

    @property
    def handlers(self) -> dict[str, Handler]:
        return {self.kind: self.run}

    async def run(self, job: Job, context: JobContext) -> JobResult:
        chat_id = str(job.payload["conversation"])
        chat = await self._db.read(lambda connection: conversations.conversation(connection, chat_id))
        if chat is None:
            return JobResult(skipped=GONE)
        if reason := self._why_not(chat):
            return JobResult(skipped=reason)
        return await self._made(job, context, chat)

    def _why_not(self, chat: Conversation) -> str:
        """Why nothing may be made for this chat; empty when something may."""
        return self._summarist.why_not(chat)

    @abstractmethod
    async def _made(self, job: Job, context: JobContext, chat: Conversation) -> JobResult: ...
