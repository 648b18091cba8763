"""Buttons below our messages, and what becomes of a press (CH-159, CH-188)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

import discord

from channels.discord.outcomes import ERRORS, said
from channels.message import Action
from channels.newest import keep_newest
from channels.port import Accepted

log = logging.getLogger(__name__)

LABEL_MAX, ROWS_MAX, ROW_MAX = 80, 5, 5
OUTCOME_S = 10.0  # for which a press that was acknowledged waits for its event to be stored
CALL_S = 5.0
PRESSES_MAX = 500


def view_of(rows: Sequence[Sequence[Action]]) -> discord.ui.View | None:
    """None when there are no buttons. It is stopped: the library keeps none of it, for presses come to us as events."""
    if not rows:
        return None
    view = discord.ui.View(timeout=None)
    for number, row in enumerate(rows[:ROWS_MAX]):
        for action in row[:ROW_MAX]:
            button = discord.ui.Button[discord.ui.View](
                label=action.label[:LABEL_MAX], custom_id=action.data, style=discord.ButtonStyle.secondary, row=number
            )
            view.add_item(button)
    view.stop()
    return view


class Presses:
    """What the inbox made of each press, by the id of its interaction: the platform tells of both in either order."""

    def __init__(self) -> None:
        self._known: dict[str, asyncio.Future[Accepted]] = {}

    def settle(self, interaction_id: str, accepted: Accepted) -> None:
        known = self._of(interaction_id)
        if not known.done():
            known.set_result(accepted)

    async def conclude(self, interaction: discord.Interaction) -> None:
        """Once it is stored: what who pressed alone is told, and a row that is good for nothing any more goes. Neither changes anything else."""
        number = str(interaction.id)
        try:
            async with asyncio.timeout(OUTCOME_S):
                became = await self._of(number)
        except TimeoutError:
            return
        finally:
            self._known.pop(number, None)
        try:
            async with asyncio.timeout(CALL_S):
                if became.spent:
                    await interaction.edit_original_response(view=view_of(_left(interaction)))
                if became.aside:
                    await interaction.followup.send(became.aside, ephemeral=True)
        except ERRORS as error:
            log.info("a pressed button could not be settled: %s", said(error))

    def _of(self, interaction_id: str) -> asyncio.Future[Accepted]:
        known = self._known.setdefault(interaction_id, asyncio.get_running_loop().create_future())
        keep_newest(self._known, PRESSES_MAX)
        return known


def _left(interaction: discord.Interaction) -> list[list[Action]]:
    """The rows below the message without that of the button."""
    pressed = str((interaction.data or {}).get("custom_id", ""))
    shown = interaction.message.components if interaction.message else []
    rows = [
        [Action(each.label or "", each.custom_id) for each in row.children if isinstance(each, discord.Button) and each.custom_id]
        for row in shown
        if isinstance(row, discord.ActionRow)
    ]
    return [row for row in rows if row and all(action.data != pressed for action in row)]
