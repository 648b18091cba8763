"""Short codes that people read out and type: how they look, how they are recognised, and what of them is stored (CH-113).

40 bits are few, so a code is kept as a keyed hash alone, lives an hour at most, and wrong ones are counted by whoever takes them.
"""

from __future__ import annotations

import secrets
import unicodedata
from datetime import datetime

import sqlalchemy as sa

from gateway.keyed_hash import keyed_hash

ALPHABET = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"  # nothing that looks like something else
LENGTH = 8


def new_code() -> str:
    """Eight random characters, as they are shown: `ABCD-EFGH`."""
    code = "".join(secrets.choice(ALPHABET) for _ in range(LENGTH))
    return f"{code[:4]}-{code[4:]}"


def typed(text: str) -> str:
    """What somebody typed as the eight characters of a code; empty when it is none. Width, case, blanks and dashes do not count."""
    folded = unicodedata.normalize("NFKC", text).upper()
    kept = "".join(each for each in folded if not each.isspace() and unicodedata.category(each) not in ("Pd", "Cf"))
    return kept if len(kept) == LENGTH and set(kept) <= set(ALPHABET) else ""


def code_hash(connection: sa.Connection, code: str, now: datetime) -> str:
    """What is stored of a code; empty for a text that is none."""
    plain = typed(code)
    return keyed_hash(connection, plain, now) if plain else ""
