"""What an error of the Bot API means for us (the table of CH-150 to CH-166), purely.

The library drops "Bad Request: " and capitalises what is left, so fragments are looked for in lower case (CH-163). Wordings are not documented by the
platform; each is in one place here.
"""

from __future__ import annotations

from datetime import timedelta

from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from channels.errors import ChannelError, ConnectionLost, CredentialRefused
from channels.port import ChatMoved, NeedsOperator, Refused, SendOutcome, TryLater, Unknown
from channels.telegram.wire import NotSent

TOKEN_REFUSED = "Telegram does not know this token: ask @BotFather for the bot's token and set it as `token` (and see that `base_url` is right)"
OTHER_POLLER = "another program polls with this token: stop it, or give this gateway a bot of its own"
WEBHOOK_SET = "webhook is active"

NOT_MODIFIED = "message is not modified"
EDIT_GONE = ("message to edit not found", "message can't be edited", "message_id_invalid")
TOO_LONG = ("message is too long", "message caption is too long")


def wait_of(error: RetryAfter) -> float:
    """The seconds that we were asked to wait; the library gives a duration or a number (CH-163)."""
    after = error.retry_after
    return after.total_seconds() if isinstance(after, timedelta) else float(after)


def says(error: TelegramError, *fragments: str) -> bool:
    said = str(error).lower()
    return any(fragment in said for fragment in fragments)


def was_sent(error: TelegramError) -> bool:
    """May the request have left? False only when its cause proves that it did not (CH-164)."""
    return not isinstance(error.__cause__, NotSent)


def outcome_of(error: TelegramError) -> SendOutcome:
    """How a failed call ends. The order matters: BadRequest and TimedOut are NetworkErrors, RetryAfter and ChatMigrated are not (CH-163)."""
    match error:
        case RetryAfter():
            return TryLater(wait_of(error))
        case ChatMigrated(new_chat_id=chat_id):
            return ChatMoved(str(chat_id))
        case BadRequest():
            return Refused(str(error), gone=says(error, *EDIT_GONE))
        case Forbidden():
            return Refused(str(error))
        case InvalidToken() | EndPointNotFound():
            return NeedsOperator(TOKEN_REFUSED, code="token")
        case TimedOut() | NetworkError() if not was_sent(error):
            return TryLater()
        case _:
            return Unknown(str(error))


def fault_of(error: TelegramError) -> ChannelError:
    """Why receiving ended, for the supervisor."""
    match error:
        case InvalidToken() | EndPointNotFound():
            return CredentialRefused(TOKEN_REFUSED, code="token")
        case Conflict():
            return ConnectionLost(OTHER_POLLER, code="other_program")
        case RetryAfter():
            return ConnectionLost(f"Telegram asked to wait {wait_of(error):g} s", code="pause")
        case BadRequest():
            return ConnectionLost(f"Telegram refuses: {error}")
        case _:
            return ConnectionLost(f"Telegram cannot be reached: {error}", code="unreachable")
