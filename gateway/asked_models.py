"""Parked jobs run next once whom they ask has changed: an account, its key, or which account does what (WD-100).

What was asked last is kept as a keyed hash, so that a change made while the gateway was off is seen at the next start, and no key is stored.
"""

from __future__ import annotations

import json
from datetime import datetime

import sqlalchemy as sa
from pydantic import SecretStr

from gateway.config import Config
from gateway.jobs.table import run_parked
from gateway.keyed_hash import keyed_hash
from memory.schema import settings
from memory.upserts import insert_or_change

KEY = "models.asked"

_STORED = sa.select(settings.c.value).where(settings.c.key == KEY)
_STORE = insert_or_change(settings, ["key"], ["value", "updated_at"])


def free_parked(connection: sa.Connection, config: Config, now: datetime) -> int:
    """Let every parked job run next if `config` asks other models than the configuration of the last call. Returns how many."""
    mark = keyed_hash(connection, _asked(config), now)
    if connection.execute(_STORED).scalar() == mark:
        return 0
    connection.execute(_STORE[connection.dialect.name], {"key": KEY, "value": mark, "updated_at": now})
    return run_parked(connection)


def _asked(config: Config) -> str:
    accounts = {"": config.model, **config.models}
    of_characters = {name: character.model for name, character in config.characters.items()}
    parts = (
        {name: account.model_dump() for name, account in accounts.items()},
        (config.helper_model, config.summary.model, config.dream.model, of_characters),
    )
    return json.dumps(parts, sort_keys=True, default=_plain)


def _plain(value: object) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else str(value)
