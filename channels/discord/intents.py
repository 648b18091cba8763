"""The one switch of Discord's developer portal that a bot needs, and how to see how it stands (CH-180). Needs no SDK: `doctor` asks as well."""

from __future__ import annotations

import aiohttp
from pydantic import BaseModel, ValidationError

from channels.errors import ConnectionLost, CredentialRefused

TOKEN_REFUSED = "Discord does not know this token: copy it anew from the Bot page of the developer portal and set it as the account's `token`"
INTENT_MISSING = (
    "the Message Content Intent is off: open the bot in Discord's developer portal, page Bot, and switch on Message Content Intent; "
    "without it messages in servers arrive empty"
)
CONTENT, CONTENT_LIMITED = 1 << 18, 1 << 19  # of a verified bot, and of one in fewer than 100 servers


class _Application(BaseModel):
    flags: int = 0


async def reads_content(http: aiohttp.ClientSession, *, api_base: str, token: str) -> bool:
    """Whether messages in servers come with their words. CredentialRefused; ConnectionLost when Discord does not answer."""
    headers = {"Authorization": f"Bot {token}"}
    try:
        async with http.get(f"{api_base.rstrip('/')}/oauth2/applications/@me", headers=headers) as answer:
            if answer.status == 401:
                raise CredentialRefused(TOKEN_REFUSED, code="token")
            if answer.status != 200:
                raise ConnectionLost(f"Discord answered HTTP {answer.status}", code="unreachable")
            flags = _Application.model_validate_json(await answer.read()).flags
    except (aiohttp.ClientError, TimeoutError, OSError) as error:
        raise ConnectionLost("Discord cannot be reached", code="unreachable") from error
    except ValidationError as error:
        raise ConnectionLost("what answered is not Discord's API", code="no_api") from error
    return bool(flags & (CONTENT | CONTENT_LIMITED))
