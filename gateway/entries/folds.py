"""Which messages the page of a chat folds: those that are not sent because an entry stands for them, where the chat wishes it (RS-90).

It changes what is seen and nothing that is sent.
"""

from __future__ import annotations

from collections.abc import Sequence

import sqlalchemy as sa

from gateway.config import Config
from gateway.entries import live as live_entries
from gateway.entries import settings as entry_settings
from memory.conversations import Conversation, Message


def folded(connection: sa.Connection, config: Config, chat: Conversation, shown: Sequence[Message]) -> frozenset[str]:
    """The ids of those of these messages."""
    if not entry_settings.of_chat(config, chat).collapse:
        return frozenset()
    hidden = live_entries.read(connection, chat, config).hidden
    return frozenset(message.id for message in shown if message.seq in hidden)
