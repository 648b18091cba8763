"""How the database recognises what it must not hold: texts hashed with a key of this installation, which is made at first use."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime

import sqlalchemy as sa

from memory.schema import settings
from memory.upserts import insert_or_keep

KEY = "codes.key"

_KEY = sa.select(settings.c.value).where(settings.c.key == KEY)
_PUT_KEY = insert_or_keep(settings, ["key"])


def keyed_hash(connection: sa.Connection, text: str, now: datetime) -> str:
    """The same for the same text in this installation, and in no other."""
    return hmac.new(_key(connection, now), text.encode("utf-8", "surrogatepass"), hashlib.sha256).hexdigest()


def _key(connection: sa.Connection, now: datetime) -> bytes:
    stored = connection.execute(_KEY).scalar()
    if stored is None:
        made = base64.b64encode(secrets.token_bytes(32)).decode()
        connection.execute(_PUT_KEY[connection.dialect.name], {"key": KEY, "value": made, "updated_at": now})
        stored = connection.execute(_KEY).scalar_one()
    return base64.b64decode(stored)
