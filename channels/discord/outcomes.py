"""What an error of Discord's API means for us (the table of CH-180 to CH-190), purely. Decided by status and code, never by wording."""

from __future__ import annotations

import aiohttp
import discord

from channels.discord.intents import INTENT_MISSING, TOKEN_REFUSED
from channels.errors import ChannelError, ConnectionLost, CredentialRefused
from channels.port import NeedsOperator, Refused, SendOutcome, TryLater, Unknown

WAIT_MAX_S = 86_400.0  # a longer order is none
TOO_MANY_GUILDS = "the bot is in more servers than one connection may serve; take it out of some"

UNKNOWN_CHANNEL, UNKNOWN_MESSAGE, UNKNOWN_INTERACTION, UNKNOWN_WEBHOOK = 10003, 10008, 10062, 10015
UNAUTHORIZED, ALREADY_ANSWERED, TOO_LARGE = 40001, 40060, 40005
NO_ACCESS, EMPTY, CLOSED_TO_US, NO_PERMISSION, MALFORMED, ARCHIVED, LOCKED = 50001, 50006, 50007, 50013, 50035, 50083, 160005
UNNAMED = (0, 404)  # instead of a code of Discord's
INTERACTION_GONE = (UNKNOWN_INTERACTION, ALREADY_ANSWERED, UNKNOWN_WEBHOOK, UNKNOWN_MESSAGE, 50027)  # 50027: its token is no longer good

_NEEDED = {
    NO_ACCESS: "we cannot see the channel: give the bot View Channel there",
    NO_PERMISSION: "a permission is missing: give the bot Send Messages, Send Messages in Threads, Attach Files and Read Message History there",
    CLOSED_TO_US: "the person takes no direct messages from us: they must write first, or allow messages from members of the server",
}
TRANSPORT = (aiohttp.ClientError, OSError, TimeoutError)
LIBRARY = (discord.HTTPException, discord.RateLimited)
ERRORS = (*TRANSPORT, *LIBRARY)
RECEIVING = (*ERRORS, discord.DiscordException)


def code_of(error: Exception) -> int:
    return error.code if isinstance(error, discord.HTTPException) else 0


def is_token_refused(error: Exception) -> bool:
    """Discord says it with the status; a compatible server may say it with Discord's code alone."""
    return isinstance(error, discord.HTTPException) and (error.status == 401 or error.code == UNAUTHORIZED)


def is_limit(error: Exception) -> bool:
    """A 429, whoever answers it."""
    return isinstance(error, discord.HTTPException) and error.status == 429


def is_edge_block(error: Exception) -> bool:
    """A 429 of the network in front of Discord, not of Discord: a page instead of data, or no header that shows an API behind it (CH-186).

    Discord's own answers have `Via`. A compatible server may have nothing in front of it; that it counts calls shows that it is the API.
    """
    if not isinstance(error, discord.HTTPException) or error.status != 429:
        return False
    named = [name.lower() for name in error.response.headers]
    return error.text.lstrip().startswith("<") or not any(name == "via" or name.startswith("x-ratelimit-") for name in named)


def is_message_gone(error: Exception) -> bool:
    """A message that was to be changed or answered is not there. A compatible server may say no more than 404."""
    return isinstance(error, discord.HTTPException) and (error.code == UNKNOWN_MESSAGE or (error.status == 404 and error.code in UNNAMED))


def is_too_large(error: Exception) -> bool:
    return isinstance(error, discord.HTTPException) and (error.code == TOO_LARGE or error.status == 413)


def outcome_of(error: Exception) -> SendOutcome:
    """How a failed call ends."""
    match error:
        case discord.RateLimited(retry_after=after):
            return TryLater(after)
        case discord.HTTPException() if is_token_refused(error):
            return NeedsOperator(TOKEN_REFUSED, code="token")
        case discord.HTTPException(status=429):  # the library waits by itself only where `Via` stands
            return TryLater(_wait_s(error), whole_account=error.response.headers.get("X-RateLimit-Global") == "true")
        case discord.HTTPException() if error.code in _NEEDED:
            return Refused(f"{_NEEDED[error.code]} (Discord says {error.code})")
        case discord.HTTPException() if error.status < 500:
            return Refused(said(error), gone=is_message_gone(error))
        case aiohttp.ClientConnectorError() | aiohttp.ConnectionTimeoutError():
            return TryLater()  # name not found, refused, TLS, no connection in time: it had not left (CH-11)
        case _:
            return Unknown(said(error))


def fault_of(error: Exception) -> ChannelError:
    """Why receiving ended, for the supervisor."""
    match error:
        case ChannelError():
            return error
        case discord.LoginFailure():
            return CredentialRefused(TOKEN_REFUSED, code="token")
        case discord.HTTPException() if is_token_refused(error):
            return CredentialRefused(TOKEN_REFUSED, code="token")
        case discord.PrivilegedIntentsRequired():
            return CredentialRefused(INTENT_MISSING, code="intent")
        case discord.ConnectionClosed(code=4004):
            return CredentialRefused(TOKEN_REFUSED, code="token")
        case discord.ConnectionClosed(code=4014):
            return CredentialRefused(INTENT_MISSING, code="intent")
        case discord.ConnectionClosed(code=4011):
            return CredentialRefused(TOO_MANY_GUILDS, code="too_many_servers")
        case discord.RateLimited(retry_after=after):
            return ConnectionLost(f"Discord asked to wait {after:g} s", code="pause")
        case discord.HTTPException(status=429):
            return ConnectionLost("Discord asked to wait", code="pause")
        case _:
            return ConnectionLost(f"Discord cannot be reached: {said(error)}", code="unreachable")


def _wait_s(error: discord.HTTPException) -> float:
    """The seconds of `Retry-After`; 0 when it names none that make sense."""
    try:
        after = float(error.response.headers.get("Retry-After", ""))
    except ValueError:
        return 0.0  # a date, or nothing
    return after if 0 < after <= WAIT_MAX_S else 0.0


def said(error: Exception) -> str:
    """Short and without addresses, which may hold the token of an interaction."""
    if isinstance(error, discord.HTTPException):
        return f"Discord answers {error.status}, code {error.code}: {error.text.splitlines()[0][:200] if error.code and error.text else 'no reason'}"
    if isinstance(error, discord.ConnectionClosed):
        return f"the connection was closed with {error.code}"
    if isinstance(error, aiohttp.ClientConnectorError):
        return f"no connection: {error.os_error.strerror or type(error.os_error).__name__}"
    return f"the connection broke ({type(error).__name__})"
