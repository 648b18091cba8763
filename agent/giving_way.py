"""What of a prompt's talk gives way when there is no room, and what the parts of it cost: estimates in tokens. Pure."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import replace

from agent.llm.port import ModelMessage, Role
from agent.turn import Said
from memory import tokens
from memory.extract import borders

KEEP_OF_LONG = (0.6, 0.3)  # shares of the room that head and tail of an over-long text keep
RESULT_LEAST = 64  # tokens an over-long tool result keeps at least
WORDS_LEAST = 16  # tokens below which words between attached texts are not worth a cut
CUT = "\n[… left out: too long …]\n"


def newest_that_fit(history: Sequence[Said], room: int) -> tuple[Said, ...]:
    """The longest end of `history` within `room` that begins with a person's message, so that no answer stands without its question."""
    start, left = len(history), room
    for index in range(len(history) - 1, -1, -1):
        left -= said_tokens(history[index])
        if left < 0:
            break
        if not history[index].by_us:
            start = index
    return tuple(history[start:])


def fit_traffic(traffic: Sequence[ModelMessage], room: int) -> tuple[ModelMessage, ...]:
    """Results of tools, the oldest first, keep head and tail until all fit (WD-39); calls and results stay pairs (MD-12)."""
    kept = list(traffic)
    over = sum(map(traffic_tokens, kept)) - room
    for at, message in enumerate(kept):
        if over <= 0:
            break
        if message.role is Role.TOOL:
            size = tokens.count(message.text)
            kept[at] = replace(message, text=cut(message.text, max(RESULT_LEAST, size - over)))
            over -= size - tokens.count(kept[at].text)
    return tuple(kept)


def fit(said: Said, room: int) -> tuple[Said, bool]:
    """Words too long by themselves keep head and tail (WD-95); what is attached stays whole (RS-70)."""
    pieces = _pieces(said)
    size = sum(tokens.count(words) for words, attached in pieces if not attached)
    left = room - said_tokens(said) + size
    if size <= left:
        return said, False

    def fitted(words: str) -> str:
        own = tokens.count(words)
        return words if own <= WORDS_LEAST else cut(words, left * own // size)

    text = "".join(words if attached else fitted(words) for words, attached in pieces)
    return (said, False) if text == said.text else (replace(said, text=text), True)


def cut(text: str, room: int, keep: tuple[float, float] = KEEP_OF_LONG) -> str:
    """`text`, or its head and tail within `room` tokens. `keep`: their shares of it."""
    size, most = tokens.count(text), len(text)
    if size <= room:
        return text
    ends = borders(text)
    while True:
        most = min(most - 1, int(most * room / size))  # scripts differ in price, so one look at the whole is not enough
        head, tail = (max(0, int(most * share)) for share in keep)
        before, behind = bisect_right(ends, head) - 1, bisect_left(ends, len(text) - tail)
        kept = f"{text[: ends[before]]}{CUT}{text[ends[behind] :]}"
        size = tokens.count(kept)
        if size <= room or most <= 0:
            return kept


def said_tokens(said: Said) -> int:
    return tokens.MESSAGE_TOKENS + tokens.count(spoken(said)) + tokens.IMAGE_TOKENS * len(said.images)


def attached_tokens(said: Said) -> int:
    return sum(map(tokens.count, said.attached)) + tokens.IMAGE_TOKENS * len(said.images)


def traffic_tokens(message: ModelMessage) -> int:
    calls = sum(tokens.TOOL_CALL_TOKENS + tokens.count(call.arguments) for call in message.tool_calls)
    result = tokens.TOOL_RESULT_TOKENS if message.role is Role.TOOL else 0
    return tokens.MESSAGE_TOKENS + tokens.count(message.text) + tokens.IMAGE_TOKENS * len(message.images) + calls + result


def spoken(said: Said) -> str:
    return f"{said.speaker}: {said.text}" if said.speaker else said.text


def _pieces(said: Said) -> list[tuple[str, bool]]:
    """Its text in stretches, each with whether it is attached."""
    pieces, rest = list[tuple[str, bool]](), said.text
    for text in said.attached:
        before, found, rest = rest.partition(text)
        pieces += [(before, False), (found, True)]
    return [(text, attached) for text, attached in [*pieces, (rest, False)] if text]
