"""From rows of the log to what a model is told was said: pure, and the same for replies, previews and exports of a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from itertools import groupby

from agent.turn import Said
from gateway.language import say
from memory import tokens
from memory.conversations import Message
from memory.window import TurnSize


def spoken(message: Message, *, language: str, files: str = "", in_group: bool = False) -> str:
    """The words of one message: a quote it answers, its text, its files; in groups with its author's name (CH-13)."""
    parts = [message.text, files]
    if message.reply_to and (quote := message.reply_to.get("quote") or message.reply_to.get("excerpt")):
        parts.insert(0, say(language, "quoted", text=quote))
    text = "\n".join(part for part in parts if part)
    return f"{message.author_name}: {text}" if in_group and message.role == "user" and message.author_name else text


def stand_ins(message: Message, language: str) -> str:
    """Files of older messages: named, not shown again."""
    return "\n".join(say(language, "stand_in_attachment", kind=item["kind"], name=item["name"]) for item in message.attachments)


def history(log: Iterable[Message], *, language: str, in_group: bool) -> tuple[Said, ...]:
    """The earlier talk, oldest first. Several messages of one turn by one side are one: some models insist on taking turns (CH-66)."""
    said: list[Said] = []
    for (by_us, _turn), group in groupby(log, key=lambda message: (message.role == "assistant", message.turn_id)):
        text = "\n".join(spoken(message, language=language, files=stand_ins(message, language), in_group=in_group) for message in group)
        if said and said[-1].by_us == by_us:
            said[-1] = Said(text=f"{said[-1].text}\n{text}", by_us=by_us)
        else:
            said.append(Said(text=text, by_us=by_us))
    return tuple(said)


def sizes(log: Sequence[Message]) -> list[TurnSize]:
    """The turns of a log with their sizes, for trimming. An answer belongs to the question before it."""
    found: list[TurnSize] = []
    previous = ""
    for message in log:
        size = tokens.MESSAGE_TOKENS + tokens.count(message.text)
        if found and (message.role != "user" or message.turn_id == previous):
            found[-1] = TurnSize(last_seq=message.seq, tokens=found[-1].tokens + size)
        else:
            found.append(TurnSize(last_seq=message.seq, tokens=size))
        previous = message.turn_id
    return found


def duration(span: timedelta, language: str) -> str:
    """A span in the reader's language, in its largest fitting unit."""
    seconds = max(0, int(span.total_seconds()))
    for key, size in (("duration_d", 86_400), ("duration_h", 3_600), ("duration_m", 60)):
        if seconds >= 2 * size:
            return say(language, key, n=seconds // size)
    return say(language, "duration_s", n=seconds)


def late_note(received_at: datetime, now: datetime, *, late_after: timedelta, language: str) -> str:
    """What the model is told when a message waited long (CH-55); empty when it did not."""
    return say(language, "late", duration=duration(now - received_at, language)) if now - received_at > late_after else ""
