"""Short codes that people read out and type: how they look, how they are recognised, and what of them is stored (CH-113).

40 bits are few, so a code is kept as a keyed hash alone, lives an hour at most, and wrong ones are counted by whoever takes them.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
import unicodedata
from datetime import datetime

import sqlalchemy as sa

from memory.schema import settings
from memory.upserts import insert_or_keep

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
LENGTH = 8
KEY = "codes.key"

_KEY = sa.select(settings.c.value).where(settings.c.key == KEY)
_PUT_KEY = insert_or_keep(settings, ["key"])


def new_code() -> str:
    """Eight random characters, as they are shown: `ABCD-EFGH`."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return f"{code[:4]}-{code[4:]}"


def typed(text: str) -> str:
    """What somebody typed as the eight characters of a code; empty when it is none. Width, case, blanks and dashes do not count."""
    folded = unicodedata.normalize("NFKC", text).upper()
    kept = "".join(each for each in folded if not each.isspace() and unicodedata.category(each) not in ("Pd", "Cf"))
    return kept if len(kept) == LENGTH and set(kept) <= set(ALPHABET) else ""


def keyed_hash(connection: sa.Connection, code: str, now: datetime) -> str:
    """What is stored of a code. The key is made with the first one; empty for a text that is no code."""
    plain = typed(code)
    return hmac.new(_key(connection, now), plain.encode(), hashlib.sha256).hexdigest() if plain else ""


def _key(connection: sa.Connection, now: datetime) -> bytes:
    stored = connection.execute(_KEY).scalar()
    if stored is None:
        made = base64.b64encode(secrets.token_bytes(32)).decode()
        connection.execute(_PUT_KEY[connection.dialect.name], {"key": KEY, "value": made, "updated_at": now})
        stored = connection.execute(_KEY).scalar_one()
    return base64.b64decode(stored)
