"""Telegram, through the Bot API (python-telegram-bot's `Bot` alone: its updater confirms what is only queued in memory, CH-150)."""

import os

# Before the library is imported anywhere: with it `retry_after` is a duration, without it reading one warns (CH-163).
os.environ.setdefault("PTB_TIMEDELTA", "1")
