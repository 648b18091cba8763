"""From rows of the log to what a model is told was said: pure, and the same for replies, previews and exports of a prompt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta

from agent.turn import Said
from gateway.language import say
from memory import tokens
from memory.conversations import Message
from memory.profiles import MessageSize
from memory.window import TurnSize

NO_DATES: Mapping[int, str] = {}


def spoken(message: Message, *, language: str, files: str = "", in_group: bool = False) -> str:
    """The words of one message: a quote it answers, its text, its files; in groups with its author's name (CH-13). What a task of ours said is marked
    (WD-138)."""
    own = say(language, "task_mark", text=message.text) if message.origin == "scheduled" else message.text
    parts = [own, files]
    if message.reply_to and (quote := message.reply_to.get("quote") or message.reply_to.get("excerpt")):
        author = message.reply_to.get("author_name")
        parts.insert(0, say(language, "quoted_by", name=author, text=quote) if author else say(language, "quoted", text=quote))
    text = "\n".join(part for part in parts if part)
    return f"{message.author_name}: {text}" if in_group and message.role == "user" and message.author_name else text


def stand_ins(message: Message, language: str) -> str:
    """Files of older messages: named, not shown again; of voice notes the words."""
    return "\n".join(
        say(language, "voice_note", text=item["transcript"])
        if item.get("transcript")
        else say(language, "stand_in_attachment", kind=item["kind"], name=item["name"])
        for item in message.attachments
    )


def sides(log: Iterable[Message], *, answering: str = "") -> list[tuple[bool, list[Message]]]:
    """The talk as two sides take turns in it, ours marked True: some models insist on that (CH-66).

    `answering`: where several characters talk, who answers now: what the others said stands on the other side (WO-40). Empty: one character.
    """
    found: list[tuple[bool, list[Message]]] = []
    for message in log:
        ours = message.role == "assistant" and (not answering or message.author_character == answering)
        if found and found[-1][0] == ours:
            found[-1][1].append(message)
        else:
            found.append((ours, [message]))
    return found


def history(log: Iterable[Message], *, language: str, in_group: bool, answering: str = "", dates: Mapping[int, str] = NO_DATES) -> tuple[Said, ...]:
    """The earlier talk, oldest first, as `sides` parts it; what another character said has its name before it.

    `dates`: by number, of messages that are told with their date (RS-57).
    """

    def words(message: Message, ours: bool) -> str:
        text = spoken(message, language=language, files=stand_ins(message, language), in_group=in_group)
        named = f"{message.author_name}: {text}" if message.role == "assistant" and not ours and message.author_name else text
        return f"[{dates[message.seq]}] {named}" if message.seq in dates else named

    return tuple(
        Said(text="\n".join(words(message, ours) for message in messages), by_us=ours) for ours, messages in sides(log, answering=answering)
    )


def message_sizes(log: Sequence[Message]) -> list[MessageSize]:
    """The messages of a log with their sizes and their turns, as `sizes` counts them."""
    found: list[MessageSize] = []
    turn, previous = 0, ""
    for message in log:
        if not found or (message.role == "user" and message.turn_id != previous):
            turn += 1
        found.append(MessageSize(seq=message.seq, tokens=tokens.MESSAGE_TOKENS + tokens.count(message.text), turn_id=str(turn)))
        previous = message.turn_id
    return found


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
