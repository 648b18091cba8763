"""Prompt assembly in the one order of WD-6, under a token budget. Pure: the same turn gives the same bytes.

Head (stable between turns): instructions, character, persona, files, saved memories, summaries. Then the earlier talk. A character's text may have
slots where summaries or what was recalled stand instead (RS-170).
Tail (made anew): what was recalled and the time, in a marked block before the newest message: nothing of it is ever stored as anybody's words (MD-16)
and providers' prompt caches keep the rest.
Behind the newest message stands what the model and its tools said to each other since. People and model take turns: some models insist (CH-66).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files

from agent import slots
from agent.giving_way import attached_tokens, cut, fit, fit_traffic, newest_that_fit, said_tokens, spoken, traffic_tokens
from agent.least import Least
from agent.llm.port import ModelMessage, Role
from agent.turn import Said, Section, Turn
from memory import tokens

ANSWER_RESERVE = 0.25  # share of the model's window kept free for the answer
ANSWER_RESERVE_MAX = 8_192  # tokens; a large window needs no larger reserve
KEEP_OF_STANDING = (0.2, 0.7)  # shares that head and tail of standing text keep: what is newest in it stands at its end
TRAFFIC_SHARE = 0.25  # of the room: so much tool traffic stays whatever the newest message takes
TALK_LEAST = 64  # tokens for the newest message beside what is attached to it, however little room there is
STANDING_LEAST = 128  # tokens of an excerpt of standing text, as long as the newest message keeps its least

NOTES_END = "[end of notes]\n\n"  # what the person wrote stands behind it


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """Messages for the model, their estimated tokens by part, and how many messages of the window were left out to fit."""

    messages: tuple[ModelMessage, ...]
    sections: tuple[Section, ...]
    left_out: int = 0
    talk_room: int = 0  # tokens that the whole talk may take, the newest message included (WD-38)
    shortened: bool = False  # the newest message alone was too long and kept its head and tail (WD-95)
    rows_left_out: tuple[int, ...] = ()  # ids of saved memories that gave way, oldest first (SM-28)
    standing_cut: bool = False  # of the standing text only a marked excerpt is there (RS-70)

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)


def assemble(turn: Turn, *, room: int, small: bool = False, traffic: Sequence[ModelMessage] = (), tools: int = 0) -> Prompt:
    """The prompt for `turn` within `room` tokens; the oldest turns give way first, then long tool results, then unpinned saved memories, then
    standing text, then the middle of the newest message's words (RS-70). The rest stays whole, though it be too much: `agent.least.check` stops that.

    `small`: a tiny model, which a long instruction would confuse. `traffic`: the calls and results of this turn so far. `tools`: tokens of the
    descriptions that are sent along.
    """
    traffic_kept = min(sum(map(traffic_tokens, traffic)), int(room * TRAFFIC_SHARE))
    least = said_tokens(turn.newest) + traffic_kept
    around = _around(turn, room - tools, least, small=small)
    head, tail, head_tokens, tail_tokens = around.head, around.tail, around.head_tokens, around.tail_tokens
    talk_room = room - head_tokens - tail_tokens - tools
    newest_room = max(TALK_LEAST + attached_tokens(turn.newest), talk_room - traffic_kept)
    newest, shortened = fit(turn.newest, newest_room)
    newest_tokens = said_tokens(newest)
    traffic = fit_traffic(traffic, talk_room - newest_tokens)
    traffic_size = sum(map(traffic_tokens, traffic))
    fitting = newest_that_fit(turn.history, talk_room - newest_tokens - traffic_size)
    history = _taking_turns(fitting)
    unanswered = f"{spoken(history.pop())}\n" if history and not history[-1].by_us else ""  # its turn failed
    return Prompt(
        messages=(
            ModelMessage(role=Role.SYSTEM, text=head),
            *(_message(said) for said in history),
            replace(_message(newest), text=f"{unanswered}{tail}{spoken(newest)}"),
            *traffic,
        ),
        sections=(
            Section(name="tools", tokens=tools + traffic_size),
            Section(name="instructions", tokens=head_tokens - around.saved_head_tokens),
            Section(name="saved", tokens=around.saved_head_tokens + around.saved_tail_tokens),
            Section(name="history", tokens=sum(map(said_tokens, fitting))),
            Section(name="time", tokens=tail_tokens - around.saved_tail_tokens),
            Section(name="message", tokens=newest_tokens),
        ),
        left_out=len(turn.history) - len(fitting),
        talk_room=talk_room,
        shortened=shortened,
        rows_left_out=around.gone,
        standing_cut=around.standing_cut,
    )


def least_of(turn: Turn, *, small: bool = False, tools: int = 0) -> Least:
    """What of the prompt for `turn` never gives way. `small`, `tools`: as in `assemble`."""
    bare, rows = replace(turn, standing_notes=(), recalled=()), frozenset(turn.saved.giving())

    def around(*, pins: bool) -> int:
        saved = turn.saved.texts(rows, pins=pins)
        return _size(_head(bare, saved[0], small=small)) + tokens.count(_tail(bare, saved[1]))

    instructions = around(pins=False)
    attached = attached_tokens(turn.newest)
    return Least(
        instructions=instructions + tools,
        pins=around(pins=True) - instructions,
        attachments=attached,
        words=min(TALK_LEAST, said_tokens(turn.newest) - attached),
    )


def room_for_prompt(context_window: int, max_prompt: int, answer: int = 0) -> int:
    """Tokens a prompt may have: the setting, or what the model's window leaves after the answer (WD-38). `answer`: as in `reserve_of`."""
    return max(256, min(max_prompt, context_window - reserve_of(context_window, answer)))


def reserve_of(context_window: int, answer: int = 0) -> int:
    """Tokens of a model's window that are kept free for the answer. `answer`: the longest one that is set, 0 for none (RS-63)."""
    return max(answer, min(ANSWER_RESERVE_MAX, int(context_window * ANSWER_RESERVE)))


@cache
def words(name: str) -> str:
    """One of the texts under `prompts/`."""
    return (files("agent") / "prompts" / f"{name}.md").read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Around:
    """What stands around the talk. `gone`: saved memories that gave way for it; `standing_cut`: so did a part of the standing text."""

    head: str
    tail: str
    saved: tuple[str, str]
    gone: tuple[int, ...] = ()
    standing_cut: bool = False

    @property
    def head_tokens(self) -> int:
        return _size(self.head)

    @property
    def tail_tokens(self) -> int:
        return tokens.count(self.tail)

    @property
    def saved_head_tokens(self) -> int:
        return tokens.count(self.saved[0])

    @property
    def saved_tail_tokens(self) -> int:
        return tokens.count(self.saved[1])


def _around(turn: Turn, room: int, least: int, *, small: bool) -> _Around:
    """Head and tail within `room` tokens beside `least` of talk, with as many saved memories as fit, the newest longest (SM-28), and, when all are
    gone, with as much of the standing text as does (RS-70)."""
    giving = turn.saved.giving()

    def without(gone: int) -> _Around:
        saved = turn.saved.texts(frozenset(giving[:gone]))
        return _Around(head=_head(turn, saved[0], small=small), tail=_tail(turn, saved[1]), saved=saved, gone=giving[:gone])

    def over(around: _Around) -> bool:
        return around.head_tokens + around.tail_tokens + least > room

    number = bisect_left(range(len(giving)), True, key=lambda gone: not over(without(gone))) if giving else 0
    around, standing = without(number), "\n\n".join(turn.standing_notes)
    if not standing or not over(around):
        return around
    free = room - around.head_tokens - around.tail_tokens + tokens.count(standing)
    shortest = min(least, TALK_LEAST + attached_tokens(turn.newest))
    kept = cut(standing, max(free - least, min(STANDING_LEAST, free - shortest)), keep=KEEP_OF_STANDING)
    head = _head(replace(turn, standing_notes=(kept,)), around.saved[0], small=small)
    return replace(around, head=head, standing_cut=kept != standing)


def _head(turn: Turn, saved: str, *, small: bool) -> str:
    character = turn.character
    template = slots.fill(character.prompt, summaries="\n\n".join(turn.standing_notes), recalled="\n".join(turn.recalled))
    standing = () if slots.places(character.prompt).summaries else turn.standing_notes
    parts = [words("small" if small else "system").replace("{name}", character.name)]
    if turn.system_text:
        parts.append(turn.system_text)
    if template.strip():
        parts.append(template)
    if character.attributes:
        parts.append("\n".join(f"- {name}: {value}" for name, value in character.attributes.items()))
    if turn.persona:
        parts.append(f"In this chat the person is: {turn.persona}")
    return "\n\n".join([*parts, *turn.head_notes, *([saved] if saved else []), *standing])


def _tail(turn: Turn, saved: str) -> str:
    clock = (f"Now: {turn.now:%A, %Y-%m-%d %H:%M} ({turn.zone})",) if turn.clock else ()
    recalled = () if slots.places(turn.character.prompt).recalled else turn.recalled
    notes = "\n".join((*recalled, *([saved] if saved else []), *turn.tail_notes, *clock))
    return f"[notes for this reply; not written by the person]\n{notes}\n{NOTES_END}" if notes else ""


def _message(said: Said) -> ModelMessage:
    return ModelMessage(role=Role.ASSISTANT if said.by_us else Role.USER, text=spoken(said), images=said.images)


def _size(text: str) -> int:
    return tokens.MESSAGE_TOKENS + tokens.count(text)


def _taking_turns(history: Sequence[Said]) -> list[Said]:
    """What one side said in a row is one message."""
    said: list[Said] = []
    for each in history:
        if said and said[-1].by_us == each.by_us:
            before = said[-1]
            said[-1] = Said(text=f"{spoken(before)}\n{spoken(each)}", by_us=each.by_us, images=(*before.images, *each.images))
        else:
            said.append(each)
    return said
