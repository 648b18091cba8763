"""`task_create`, `task_list`, `task_cancel`: reminders and repeated tasks of the chat that is being talked in, and of no other (WD-9)."""

from __future__ import annotations

from typing import Literal, Protocol, cast

from pydantic import BaseModel, Field


class TaskDesk(Protocol):
    """The tasks of one chat, for the person of one turn. Each call answers with a sentence for the model; it raises ToolFailed with what to do."""

    async def create(self, *, text: str, kind: str, when: str, silent: bool) -> str: ...

    async def listed(self) -> str: ...

    async def cancel(self, number: int) -> str: ...


class CreateArguments(BaseModel):
    text: str = Field(min_length=1, max_length=2000, description="What to say then, to the person; for `ask` the request you will be given then.")
    kind: Literal["say", "ask"] = Field(default="say", description="say: send the text as it is (reminders). ask: you answer it then.")
    when: str = Field(description="Their local time: 2026-12-01 09:00, or 09:00 for the next one; repeated: cron, 0 9 * * mon-fri, @daily.")
    silent: bool = Field(default=False, description="ask only: send nothing if there is nothing to say.")


class ListArguments(BaseModel):
    pass


class CancelArguments(BaseModel):
    number: int = Field(description="Of the task, from task_list.")


class TaskCreate:
    name = "task_create"
    description = "Set a reminder or repeated task in this chat. Then tell the person what the result says: when it runs, in which zone."
    arguments: type[BaseModel] = CreateArguments
    foreign = False

    def __init__(self, desk: TaskDesk) -> None:
        self._desk = desk

    async def call(self, arguments: BaseModel) -> str:
        asked = cast("CreateArguments", arguments)
        return await self._desk.create(text=asked.text, kind=asked.kind, when=asked.when, silent=asked.silent)


class TaskList:
    name = "task_list"
    description = "List the reminders and tasks of this chat."
    arguments: type[BaseModel] = ListArguments
    foreign = False

    def __init__(self, desk: TaskDesk) -> None:
        self._desk = desk

    async def call(self, arguments: BaseModel) -> str:
        return await self._desk.listed()


class TaskCancel:
    name = "task_cancel"
    description = "Delete a reminder or task of this chat."
    arguments: type[BaseModel] = CancelArguments
    foreign = False

    def __init__(self, desk: TaskDesk) -> None:
        self._desk = desk

    async def call(self, arguments: BaseModel) -> str:
        return await self._desk.cancel(cast("CancelArguments", arguments).number)
