"""Raw updates of the platform as events (CH-1 to CH-4)."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from channels.errors import UnreadableEvent
from channels.message import Account, Attachment, ChatType, EventKind, InboundEvent, ReplyTo


def convert(update: Mapping[str, Any], account: Account, me: str, now: datetime) -> InboundEvent:
    """One raw update as an event; an update that cannot be read becomes `unknown`, with the raw record as its text (CH-4)."""
    try:
        return _convert(update, account, me, now)
    except (KeyError, TypeError, ValueError, UnreadableEvent):
        return InboundEvent(
            account=account,
            kind=EventKind.UNKNOWN,
            platform_event_id=str(update.get("event", update.get("n"))),
            chat_id=str(update.get("chat", "?")),
            hint=str(update.get("kind", "?")),
            text=json.dumps(update, default=str),
            received_at=now,
        )


def _convert(update: Mapping[str, Any], account: Account, me: str, now: datetime) -> InboundEvent:
    """`n` is the place in the feed; `event` the platform's own id of the event, when a record says it apart."""
    kind = EventKind(update["kind"])
    text = update["text"]
    if not isinstance(text, str):
        raise UnreadableEvent("text is no text")
    group = update.get("group", False)
    reply = update.get("reply_to")
    mention = re.compile(rf"@{re.escape(me)}(?!\w)")
    mentioned = mention.search(text) is not None
    return InboundEvent(
        account=account,
        kind=kind,
        platform_event_id=str(update.get("event", update["n"])),
        platform_message_id=str(update["message"]),
        chat_id=str(update["chat"]),
        chat_type=(ChatType.THREAD if update.get("thread") else ChatType.GROUP) if group else ChatType.DM,
        parent_chat_id=str(update.get("parent", "")),
        thread_id=str(update.get("thread", "")),
        sender_id=str(update["sender"]),
        sender_name=update["name"],
        is_bot=bool(update.get("bot")) or update["sender"] == me,
        is_us=update["sender"] == me,
        mentioned=not group or mentioned or bool(reply and reply.get("ours")),
        reply_to=_reply(reply) if reply else None,
        text=mention.sub("", text).strip() if mentioned else text,
        attachments=tuple(
            Attachment(
                kind=item["kind"], name=item["name"], mime=item.get("mime", ""), size=item.get("size", 0), fetch_ref=item["ref"],
                transcript=item.get("transcript", ""), transcript_origin=item.get("transcript_origin", ""),
            )
            for item in update.get("files", ())
        ),
        platform_ts=update.get("at"),
        received_at=now,
        target=str(update.get("target", "")),
        hint=str(update.get("hint", update["kind"])),
    )


def _reply(record: Mapping[str, Any]) -> ReplyTo:
    return ReplyTo(
        message_id=str(record["id"]),
        author_is_us=bool(record.get("ours")),
        excerpt=record.get("text", "")[:500],
        quote=record.get("quote", ""),
    )
