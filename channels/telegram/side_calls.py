"""What only accompanies: the answers to pressed buttons, the menus of commands. A failure is a line in the log and stops nothing."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence

from telegram import BotCommand
from telegram.error import TelegramError

from channels.message import Account, InboundEvent
from channels.port import Accepted
from channels.telegram.api import Api
from channels.telegram.buttons import ASIDE_MAX, Press, keyboard, press
from channels.telegram.menu import checked
from channels.telegram.settings import Menu

LIMIT_S = 5.0

log = logging.getLogger(__name__)


async def answer_presses(
    api: Api, account: Account, raws: Sequence[object], events: Sequence[InboundEvent], accepted: Sequence[Accepted]
) -> None:
    """Every press is answered at once, or the button goes on turning; buttons that are good for nothing any more go (CH-159)."""
    became = {event.platform_event_id: each for event, each in zip(events, accepted, strict=False)}
    pressed = [found for raw in raws if (found := press(raw)) is not None]
    async with asyncio.TaskGroup() as group:
        for each in pressed:
            group.create_task(_answer(api, each, became.get(each.update_id)), name=f"{account} button")


async def register_menus(api: Api, account: Account, menus: Sequence[Menu]) -> None:
    """A bad entry is left out with a line (CH-158)."""
    for menu in menus:
        kept, lines = checked(menu.entries)
        for line in lines:
            log.warning("%s: menu of commands: %s", account, line)
        commands = [BotCommand(entry.name, entry.description) for entry in kept]
        await _aside(api.bot.set_my_commands(commands, language_code=menu.language or None), "registering the commands")


async def _answer(api: Api, pressed: Press, became: Accepted | None) -> None:
    said = became.aside[:ASIDE_MAX] if became is not None else ""
    await _aside(api.bot.answer_callback_query(pressed.id, text=said or None), "answering a button")
    if became is not None and became.spent and pressed.message_id.isdigit():
        rest = keyboard(pressed.left)
        taking = api.bot.edit_message_reply_markup(chat_id=pressed.chat_id, message_id=int(pressed.message_id), reply_markup=rest)
        await _aside(taking, "taking a button away")


async def _aside(call: Awaitable[object], what: str) -> None:
    try:
        async with asyncio.timeout(LIMIT_S):
            await call
    except (TelegramError, TimeoutError) as error:
        log.warning("%s failed: %s", what, error)
