"""What a login leaves behind, in the account's vault (WX-11, WX-24)."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

from channels.port import Vault

KEY = "credentials"
KNOWN_KEY = "known_tokens"
KNOWN_MAX = 10  # WX-22


@dataclass(frozen=True, slots=True, kw_only=True)
class Credentials:
    """`proven`: a poll has worked with them. `lost`: the session was ended (-14). `person_id`: who scanned."""

    token: str = field(repr=False)
    bot_id: str
    base_url: str
    person_id: str = ""
    proven: bool = False
    lost: bool = False


async def load(vault: Vault) -> Credentials | None:
    """None without a login, or when what is kept cannot be read."""
    try:
        return Credentials(**json.loads(await vault.get(KEY) or b"null"))
    except (ValueError, TypeError):
        return None


async def keep(vault: Vault, credentials: Credentials) -> Credentials:
    """Store what was learned about the login that stands."""
    await vault.put({KEY: _dumped(credentials)})
    return credentials


async def known_tokens(vault: Vault) -> list[str]:
    """Tokens of this and earlier logins, newest first (WX-22)."""
    try:
        kept = json.loads(await vault.get(KNOWN_KEY) or b"[]")
    except ValueError:
        return []
    return [token for token in kept if isinstance(token, str)][:KNOWN_MAX]


async def replace_all(vault: Vault, credentials: Credentials) -> None:
    """A new login: the old record goes with its cursor and tokens, for a kept cursor looks fine and stays deaf (WX-25)."""
    tokens = [credentials.token, *(token for token in await known_tokens(vault) if token != credentials.token)]
    await vault.renew({KEY: _dumped(credentials), KNOWN_KEY: json.dumps(tokens[:KNOWN_MAX]).encode()})


def _dumped(credentials: Credentials) -> bytes:
    return json.dumps(asdict(credentials)).encode()
