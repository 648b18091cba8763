"""What of a chat's log is sent, and what stands for the rest, by its window profile (RS-1, RS-44, RS-53, RS-57, RS-72, RS-165).

Plain functions on a `Connection`: read in the transaction that begins a turn. Nothing is made or awaited here (RS-71).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

import sqlalchemy as sa

from gateway import windows
from gateway.config import Config
from gateway.entries import live as live_entries
from gateway.entries.live import ANYTIME, Asked
from gateway.summaries import day_pieces
from gateway.summaries.day_pieces import DayPiece
from memory import blocks, conversations, tokens
from memory.blocks import Block
from memory.conversations import Conversation, Message
from memory.extract import Words, extract
from memory.profiles import WindowProfile
from memory.recall import calendar_plan, real_talk, standing_text, summary_rows, uncovered
from memory.recall.audiences import EVERYBODY
from memory.recall.calendar_plan import Clock, Stamp
from memory.recall.fitting import LEFT_OUT, Piece, Standing, Stood, joined
from memory.recall.kinds import CALENDAR, ROLLING, Kind
from memory.recall.older_rows import older
from memory.recall.summary_rows import Summary

EXTRACTED = 50  # messages of which an extract is made


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The messages that are sent word for word, in order; `dates`: those of earlier days among them, by number, as YYYY-MM-DD (RS-57)."""

    log: list[Message]
    dates: Mapping[int, str] = field(default_factory=dict[int, str])


def window(connection: sa.Connection, chat: Conversation, profile: WindowProfile, config: Config, now: datetime, *, asked: Asked = ANYTIME) -> Window:
    """The live messages of a chat, without those that its entries hide (RS-90). Never one up to its edge: what left does not come back (RS-67)."""
    found = _window(connection, chat, profile, config, now)
    return replace(found, log=live_entries.shown(found.log, live_entries.read(connection, chat, config, asked)))


def _window(connection: sa.Connection, chat: Conversation, profile: WindowProfile, config: Config, now: datetime) -> Window:
    if not profile.days:
        return Window(log=conversations.window(connection, chat.id, chat.window_edge))
    clock = windows.clock_of(connection, config, chat, uncovered.scope_of(connection, chat.id))
    tail: int = windows.setting(config, chat, "days.tail")
    today = clock.day_of(now)
    waits = uncovered.unsaid(connection, chat.id, profile.sent, after=chat.window_edge)
    first = _begin(connection, chat, clock, waits, today_begins=clock.end_of(today - timedelta(days=1)), tail=tail)
    log = conversations.window(connection, chat.id, first)
    real = {message.seq for message in waits}
    # what stands in no summary because it is no talk for memory (an off-record word, a reminder) goes with its day, like what does
    settled = {message.seq for message in log if message.seq not in real}
    sent = set(calendar_plan.raw([Stamp(seq=each.seq, at=each.created_at) for each in log], settled, clock, now, tail=tail))
    kept = [message for message in log if message.seq in sent]
    days = ((message.seq, clock.day_of(message.created_at)) for message in kept)
    return Window(log=kept, dates={seq: day.isoformat() for seq, day in days if day < today})


def standing(
    connection: sa.Connection,
    chat: Conversation,
    profile: WindowProfile,
    config: Config,
    now: datetime,
    *,
    asked: Asked = ANYTIME,
    live: Collection[int] | None = None,
    ahead: Sequence[Block] = (),
) -> Standing:
    """The text for what is not sent; nothing when nothing stands for it. `live`: numbers of the messages that are, None to read them. `ahead`: blocks
    for turns that would leave, up to the edge that `chat` has here (RS-78)."""
    own = _standing(connection, chat, profile, config, now, asked.before, ahead)
    entries = live_entries.read(connection, chat, config, asked)
    if not entries.rows:
        return own
    if live is None and profile.days:
        live = [message.seq for message in window(connection, chat, profile, config, now, asked=asked).log]
    room = live_entries.room(config, chat)
    most = max(room - tokens.count(own.text), room // 2)
    return joined(own, live_entries.text(entries, live, asked.reader, most=most))


def _standing(
    connection: sa.Connection, chat: Conversation, profile: WindowProfile, config: Config, now: datetime, before: int, ahead: Sequence[Block]
) -> Standing:
    if not profile.sent:
        return blocks.standing(connection, chat.id, before=before, ahead=ahead)
    chat = replace(chat, window_edge=min(chat.window_edge, before - 1))  # extracts and pieces too tell of nothing later
    rows = older(connection, _sent(connection, chat, profile.sent), before)
    room = windows.standing_room(config, chat) + config.context.memory_overrun
    if Kind.DAY not in profile.sent:
        needed = [*uncovered.blocks_needed(connection, chat.id, profile.sent, chat.window_edge), *ahead]
        extracts = [piece for block in needed for piece in blocks.pieces_of(block)]
        return standing_text.text_of(rows, extracts=extracts, most=room)
    clock = windows.clock_of(connection, config, chat, uncovered.scope_of(connection, chat.id))
    earlier, extracts = _without_rows(connection, chat, profile, clock, extracts=windows.keeps_summaries(config, chat))
    remembered: int = windows.setting(config, chat, "days.remember_tokens")
    today = clock.day_of(now).isoformat()
    return standing_text.text_of(rows, earlier=earlier, today=today, extracts=extracts, remember_tokens=remembered, most=room)


def _without_rows(
    connection: sa.Connection, chat: Conversation, profile: WindowProfile, clock: Clock, *, extracts: bool
) -> tuple[list[DayPiece], list[Piece]]:
    """What stands for messages that have left of days without a row: pieces that are made of them, and for the rest blocks and, where something may
    be made of them at all, extracts (RS-12, RS-162)."""
    unsaid = uncovered.unsaid(connection, chat.id, profile.sent, after=windows.cleared(chat), last=chat.window_edge) if chat.window_edge else []
    if not unsaid:
        return [], []
    later = uncovered.unsaid(connection, chat.id, profile.sent, after=chat.window_edge)  # a piece may go on behind the edge
    pieces = day_pieces.of_chat(connection, chat.id, [*unsaid, *later], clock, chat.window_edge)
    told = {seq for piece in pieces for seq in piece.seqs}
    left = [message for message in unsaid if message.seq not in told]
    needed = [
        block
        for block in blocks.blocks_of(connection, chat.id)
        if block.last_seq <= chat.window_edge and any(block.first_seq <= message.seq <= block.last_seq for message in left)
    ]
    open_ = [message for message in left if message.audience == EVERYBODY] if extracts else []
    rest = [message.seq for message in open_ if not any(block.first_seq <= message.seq <= block.last_seq for block in needed)]
    return pieces, [*(piece for block in needed for piece in blocks.pieces_of(block)), *_extract(connection, chat.id, rest)]


def _extract(connection: sa.Connection, chat_id: str, seqs: list[int]) -> list[Piece]:
    """Lines of these messages, at most so many as blocks may have in all; the newest, if there are more, which is said."""
    people = uncovered.authors(connection, chat_id, seqs) if seqs else {}
    talk = [
        Words(id=each.id, speaker=each.speaker, text=each.text, by_person=bool(people.get(each.seq)))
        for each in real_talk.by_seq(connection, chat_id, seqs)
    ]
    lines = [item.text for begin in range(0, len(talk), EXTRACTED) for item in extract(talk[begin : begin + EXTRACTED])]
    kept = blocks.fitting(lines, blocks.TOKENS_MAX)
    cut = len(kept) < len(lines)
    of = Stood(kind="extract", first=min(seqs, default=0), last=max(seqs, default=0), cut=cut)
    return [Piece(of=of, label="- ", words=line) for line in ([LEFT_OUT] if cut else []) + kept]


def above_share(connection: sa.Connection, chat: Conversation, config: Config) -> bool:
    """Whether the rows of a chat's days, as a prompt shows them, take more than the share at which they aim (RS-164)."""
    rows = _sent(connection, chat, CALENDAR)
    told = standing_text.text_of(rows, remember_tokens=windows.setting(config, chat, "days.remember_tokens"))
    return tokens.count(told.text) > windows.standing_room(config, chat)


def _sent(connection: sa.Connection, chat: Conversation, kinds: tuple[Kind, ...]) -> list[Summary]:
    """Rows that a prompt may show: for everybody in the chat, and of nothing that was said before its context was emptied."""
    after = windows.cleared(chat)
    rows = [row for row in summary_rows.of_chat(connection, chat.id, kinds=kinds) if row.audience == EVERYBODY and row.first_seq > after]
    return [each for row in rows for each in (_outside(connection, row, chat.window_edge) if row.kind in ROLLING else [row])]


def _outside(connection: sa.Connection, row: Summary, edge: int) -> list[Summary]:
    """A rolling row once all its messages have left the window, else those of its inputs of which that is true: the edge went back (RS-68, RS-72).
    One that cannot be parted stays, for of what it says of the others nothing else stands (RS-44)."""
    if row.last_seq <= edge:
        return [row]
    if row.first_seq > edge:
        return []
    return [each for part in summary_rows.inputs_of(connection, row.id) for each in _outside(connection, part, edge)] or [row]


def _begin(connection: sa.Connection, chat: Conversation, clock: Clock, waits: list[Stamp], *, today_begins: datetime, tail: int) -> int:
    """The number behind which every message of the window lies, so that no more of the log is read than that."""
    edge = chat.window_edge
    firsts = [
        waits[0].seq if waits else None,
        uncovered.first_since(connection, chat.id, today_begins, after=edge),
        uncovered.tail_before(connection, chat.id, today_begins, tail, after=edge) if tail else None,
    ]
    found = [first for first in firsts if first is not None]
    return max(edge, min(found) - 1) if found else edge
