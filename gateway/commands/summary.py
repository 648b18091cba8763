"""`/summary list`, `read`, `forget`, `rebuild` and `/context undo`: summaries of this chat, rolling ones and those of days (RS-47, RS-48, RS-68).

Editing is for the page; here they are read, forgotten with a code, and made anew.
"""

from __future__ import annotations

import sqlalchemy as sa

from gateway.commands.asked import Answer, Around, Asked
from gateway.commands.dreams import within
from gateway.commands.memory import follow
from gateway.commands.recall import YES, of_chat
from gateway.job_words import failure
from gateway.summaries.desk import HandEdited, Missing, Row
from memory.extract import shortened
from memory.recall import uncovered
from memory.recall.confirming import CodeExpired
from memory.recall.summary_rows import State

ROWS_A_PAGE = 10
TEXT_MAX = 160  # characters of a summary in a list
MISSING_SHOWN = 10


@of_chat
async def listed(around: Around, asked: Asked) -> str:
    """A page of the summaries, the oldest talk first, with what nothing stands for (RS-47, RS-58)."""
    person, desk = asked.call.sender.id, around.desks.summaries
    whole, calendar = await desk.whole(asked.chat, person), await desk.calendar(asked.chat, person)
    rows = [*calendar.rows, *whole.rows]
    pages = max(1, -(-len(rows) // ROWS_A_PAGE))
    number = asked.rest or "1"
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= pages):
        return asked.say("saved_list_page", pages=pages, command=asked.line)
    page = int(number[:6])
    lines = [asked.say("summaries_head", page=page, pages=pages) if rows else asked.say("summaries_none")]
    if whole.uncovered:
        lines.append(asked.say("summaries_uncovered", count=f"{whole.uncovered:,}", command=asked.command("summary", "rebuild")))
    lines += [_missing(asked, each) for each in calendar.missing[:MISSING_SHOWN]]
    lines += [_line(asked, row) for row in rows[(page - 1) * ROWS_A_PAGE : page * ROWS_A_PAGE]]
    if page < pages:
        lines.append(asked.say("saved_list_more", command=f"{asked.line} {page + 1}"))
    return "\n".join(lines)


def _missing(asked: Asked, each: Missing) -> str:
    return asked.say("summary_missing", date=each.day.isoformat(), reason=reason_words(asked, each))


def reason_words(asked: Asked, each: Missing) -> str:
    """Why a day has no row, in words (RS-167)."""
    return (
        asked.say("day_reason_running")
        if each.running
        else asked.say(f"day_reason_{each.reason}", error=each.error and failure(asked.language, each.error))
    )


def _line(asked: Asked, row: Row) -> str:
    text = " ".join(row.summary.text.split())
    return asked.say(
        "summary_line", id=row.summary.id, kind=asked.say(f"summary_kind_{row.summary.kind.value}"), when=_when(row), marks=_marks(asked, row),
        text=shortened(text, TEXT_MAX),
    )  # fmt: skip


def _when(row: Row) -> str:
    if row.summary.local_date:
        return row.summary.local_date + (f" ({row.summary.part})" if row.summary.part else "")
    if row.said_from is None or row.said_to is None:
        return ""
    first, last = f"{row.said_from:%Y-%m-%d}", f"{row.said_to:%Y-%m-%d}"
    return first if first == last else f"{first} – {last}"


def _marks(asked: Asked, row: Row) -> str:
    of = row.summary
    marks = {
        "summary_mark_by_hand": of.hand_edited, "summary_mark_stale": of.stale, "summary_mark_waiting": of.state is State.WAITING,
        "summary_mark_withheld": of.state is State.WITHHELD,
    }  # fmt: skip
    return "".join(f" · {asked.say(key)}" for key, shown in marks.items() if shown)


@of_chat
async def read(around: Around, asked: Asked) -> str:
    """One summary, whole, with its key details."""
    row = await _named(around, asked)
    if row is None:
        return _unknown(asked)
    lines = [_head(asked, row), row.summary.text]
    lines += [
        asked.say("summary_detail", text=each.text, kind=asked.say(f"detail_{each.kind}"), due=f" · {each.due}" if each.due else "")
        for each in row.summary.details
    ]
    return within("\n".join(lines))


def _head(asked: Asked, row: Row) -> str:
    kind = asked.say(f"summary_kind_{row.summary.kind.value}")
    return asked.say("summary_head", id=row.summary.id, kind=kind, when=_when(row), messages=row.messages, marks=_marks(asked, row))


@of_chat
async def forget(around: Around, asked: Asked) -> str | Answer:
    """`forget ID` shows which, `forget ID yes CODE` does it; its messages stay."""
    words, person, desk = asked.words, asked.call.sender.id, around.desks.summaries
    if len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() != YES):
        return asked.say("summary_which", command=f"{asked.line} 12", list=asked.command("summary", "list"))
    row = await _named(around, asked)
    if row is None:
        return _unknown(asked)
    if len(words) == 1:
        code = await desk.ask(asked.chat.id, person, row.summary.id)
        command = f"{asked.line} {row.summary.id} {YES} {code}"
        return asked.confirming(asked.say("summary_forget_ask", text=_line(asked, row), command=command), ("button_forget", command))
    try:
        await desk.forget(asked.chat.id, person, row.summary.id, words[2])
    except CodeExpired:
        return asked.say("recall_code_over")
    return asked.say("summary_forgotten", id=row.summary.id)


@of_chat
async def rebuild(around: Around, asked: Asked) -> str | Answer:
    """What nothing stands for is summarised, or one row made anew; one that a person wrote only with `yes` (RS-48)."""
    person, words = asked.call.sender.id, asked.words
    summary_id: int | None = None
    if words:
        row = await _named(around, asked)
        if row is None:
            return _unknown(asked)
        summary_id = row.summary.id
    consent = len(words) == 2 and words[1].lower() == YES
    try:
        jobs = await around.desks.summaries.rebuild(asked.chat, person, summary_id, consent=consent)
    except HandEdited:
        command = f"{asked.line} {summary_id} {YES}"
        return asked.confirming(asked.say("summary_by_hand", command=command), ("button_rebuild", command))

    def work(connection: sa.Connection) -> None:
        follow(connection, asked, "chat_summaries", jobs, scope=uncovered.scope_of(connection, asked.chat.id))

    await around.db.write(work)
    return asked.say("summary_rebuilding")


@of_chat
async def undo(around: Around, asked: Asked) -> str:
    """The window begins again where it began before it jumped (RS-68)."""
    done = await around.desks.summaries.undo_jump(asked.chat.id)
    return asked.say("context_undone") if done is not None else asked.say("context_undo_none")


async def _named(around: Around, asked: Asked) -> Row | None:
    """The row whose number is the first word."""
    digits = asked.words[0].removeprefix("#") if asked.words else ""
    if not (digits.isascii() and digits.isdigit() and len(digits) < 19):
        return None
    return await around.desks.summaries.row(asked.chat.id, asked.call.sender.id, int(digits))


def _unknown(asked: Asked) -> str:
    return asked.say("summary_which", command=f"{asked.line} 12", list=asked.command("summary", "list"))
