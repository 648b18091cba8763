"""`/tasks …`: what is scheduled for this chat; its words and rules are in `task_commands`."""

from __future__ import annotations

from channels.message import Address
from gateway.commands.asked import Around, Asked
from gateway.tasks import commands as task_commands
from gateway.tasks.commands import Caller


async def listed(around: Around, asked: Asked) -> str:
    return await task_commands.overview(around.desks.tasks, _caller(around, asked))


async def pause(around: Around, asked: Asked) -> str:
    return await task_commands.pause(around.desks.tasks, _caller(around, asked), asked.rest)


async def resume(around: Around, asked: Asked) -> str:
    return await task_commands.resume(around.desks.tasks, _caller(around, asked), asked.rest)


async def delete(around: Around, asked: Asked) -> str:
    return await task_commands.delete(around.desks.tasks, _caller(around, asked), asked.rest)


async def run(around: Around, asked: Asked) -> str:
    return await task_commands.run(around.desks.tasks, _caller(around, asked), asked.rest)


def _caller(around: Around, asked: Asked) -> Caller:
    sender = asked.call.sender

    async def manages() -> bool:
        return not asked.in_group or await around.manages(Address.parse(asked.address), asked.call.event.sender_id)

    return Caller(chat=asked.chat, person_id=sender.id, role=sender.role, language=asked.language, manages=manages)
