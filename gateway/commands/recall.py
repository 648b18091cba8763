"""`/memory recall`, `record`, `chunks …`, `jobs` and `doctor`: recall of the talk in a chat (RS-9, RS-12, RS-37 to RS-42, RS-80, RS-196).

Everybody may look at what they may read; in a group only managers change something. What is forgotten is named first and needs a code.
"""

from __future__ import annotations

from typing import Any, cast

import sqlalchemy as sa

from gateway.commands.asked import Answer, Around, Asked, Handler
from gateway.job_words import failure
from gateway.recall import doctor as recall_doctor
from gateway.recall.desk import Chunks, Label, Rule
from gateway.recall.doctor import Facts
from memory import conversations
from memory.conversations import Conversation
from memory.extract import shortened
from memory.recall.chunk_views import Seen
from memory.recall.confirming import CodeExpired
from memory.schema import jobs, turns

CHUNKS_A_PAGE, JOBS_SHOWN = 10, 20
TEXT_MAX = 120  # characters of a chunk in a list
YES = "yes"
SWITCH = {"on": True, "off": False}
RULES = ("full", "recall_only", "none")


def of_chat(handler: Handler) -> Handler:
    """A challenge chat remembers nothing."""

    async def run(around: Around, asked: Asked) -> str | Answer:
        return asked.say("memory_challenge") if asked.chat.kind == "challenge" else await handler(around, asked)

    return run


# -- switches ----------------------------------------------------------------------------------------------------------------


@of_chat
async def recall(around: Around, asked: Asked) -> str:
    """How it stands, or `on` and `off` (RS-9, RS-10)."""
    word = asked.rest.lower()
    if word and word not in SWITCH:
        return asked.say("recall_usage", command=asked.line)
    if word:
        await around.desks.recall.switch(asked.chat.id, SWITCH[word])
    found = await around.desks.recall.overview(await _fresh(around, asked), asked.call.sender.id)
    key = "recall_rule_none" if found.record == "none" else "recall_is_on" if found.on else "recall_is_off"
    return asked.say(key, chunks=f"{found.totals.chunks:,}", record=asked.command("memory", "record"))


@of_chat
async def record(around: Around, asked: Asked) -> str | Answer:
    """What may be kept; with `none` it is asked whether what is kept goes: `record none yes CODE` (RS-12)."""
    words = [word.lower() for word in asked.words]
    person, chat = asked.call.sender.id, asked.chat
    if words and (words[0] not in RULES or (len(words) != 1 and words[:2] != ["none", YES]) or len(words) > 3):
        return asked.say("record_usage", command=asked.line)
    if len(words) == 3:
        try:
            return asked.say("record_cleared", chunks=f"{await around.desks.recall.clear_everything(chat.id, person, words[2]):,}")
        except CodeExpired:
            return asked.say("recall_code_over")
    asks = bool(words) and await around.desks.recall.record(chat.id, cast("Rule", words[0]))
    found = await around.desks.recall.overview(await _fresh(around, asked), person)
    lines = [asked.say(f"record_is_{found.record}")]
    if (found.own_record or "full") != found.record:
        lines.append(asked.say("record_stricter"))
    if not asks:
        return "\n".join(lines)
    command = f"{asked.line} none {YES} {await around.desks.recall.ask(chat.id, person, 'everything')}"
    return asked.confirming("\n".join([*lines, asked.say("record_ask_clear", command=command)]), ("button_forget", command))


# -- chunks ------------------------------------------------------------------------------------------------------------------


@of_chat
async def chunks(around: Around, asked: Asked) -> str:
    """A page of the passages, the newest first, with how each stands (RS-37, RS-38)."""
    number = asked.rest or "1"
    if not (number.isascii() and number.isdigit() and int(number[:6]) >= 1):
        return asked.say("chunks_usage", command=asked.line)
    page = int(number[:6])
    found = await around.desks.recall.chunks(asked.chat.id, asked.call.sender.id, limit=CHUNKS_A_PAGE, offset=(page - 1) * CHUNKS_A_PAGE)
    totals, pages = found.totals, max(1, -(-found.totals.chunks // CHUNKS_A_PAGE))
    waiting = asked.say("chunks_waiting", count=totals.waiting) if totals.waiting else ""
    if not totals.chunks:
        return "\n".join(filter(None, (asked.say("chunks_none"), waiting)))
    if page > pages:
        return asked.say("chunks_usage", command=asked.line)
    head = asked.say("chunks_head", chunks=f"{totals.chunks:,}", tokens=f"{totals.tokens:,}", page=page, pages=pages)
    lines = [head, *filter(None, (waiting, _reason(asked, found)))]
    lines += [_line(asked, row, label) for row, label in zip(found.rows, found.labels, strict=True)]
    if page < pages:
        lines.append(asked.say("saved_list_more", command=f"{asked.line} {page + 1}"))
    return "\n".join(lines)


def _reason(asked: Asked, found: Chunks) -> str:
    if not found.reason or "unavailable" not in found.labels:
        return ""
    return asked.say("chunks_off") if found.reason == "off" else asked.say("chunks_failed", reason=found.reason)


def _line(asked: Asked, row: Seen, label: Label) -> str:
    state = "off" if row.state == "off" else "outdated" if row.outdated and label != "vectorized" else label
    text = " ".join(row.text.split())
    return asked.say(
        "chunk_line", id=row.id, begin=f"{row.said_from:%Y-%m-%d %H:%M}", end=f"{row.said_to:%Y-%m-%d %H:%M}", messages=row.messages,
        tokens=row.tokens, state=asked.say(f"chunk_{state}"), imported=asked.say("chunk_imported") if row.origin == "imported" else "",
        text=shortened(text, TEXT_MAX),
    )  # fmt: skip


@of_chat
async def forget(around: Around, asked: Asked) -> str | Answer:
    """`chunks forget ID` shows which, `chunks forget ID yes CODE` does it (RS-42)."""
    words, person, chat_id = asked.words, asked.call.sender.id, asked.chat.id
    first = words[0].removeprefix("#") if words else ""
    if not (first.isascii() and first.isdigit() and len(first) < 19) or len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() != YES):
        return asked.say("chunk_forget_usage", command=asked.line, list=asked.command("memory", "chunks"))
    chunk_id = int(first)
    if len(words) == 1:
        if not await around.desks.recall.readable(chat_id, person, [chunk_id]):
            return asked.say("chunk_unknown", id=chunk_id, list=asked.command("memory", "chunks"))
        command = f"{asked.line} {chunk_id} {YES} {await around.desks.recall.ask(chat_id, person, f'forget:{chunk_id}')}"
        return asked.confirming(asked.say("chunk_forget_ask", id=chunk_id, command=command), ("button_forget", command))
    try:
        done = await around.desks.recall.forget(chat_id, person, chunk_id, words[2])
    except CodeExpired:
        return asked.say("recall_code_over")
    return asked.say("chunk_forgotten" if done else "chunk_unknown", id=chunk_id, list=asked.command("memory", "chunks"))


@of_chat
async def clear(around: Around, asked: Asked) -> str | Answer:
    """`chunks clear` asks, `chunks clear yes CODE` does it; the messages stay (RS-42)."""
    words, person, chat = asked.words, asked.call.sender.id, asked.chat
    if words and (len(words) != 2 or words[0].lower() != YES):
        return asked.say("chunks_clear_usage", command=asked.line)
    if not words:
        found = await around.desks.recall.overview(chat, person)
        command = f"{asked.line} {YES} {await around.desks.recall.ask(chat.id, person, 'clear')}"
        return asked.confirming(asked.say("chunks_clear_ask", chunks=f"{found.totals.chunks:,}", command=command), ("button_forget", command))
    try:
        return asked.say("chunks_cleared", chunks=f"{await around.desks.recall.clear(chat.id, person, words[1]):,}")
    except CodeExpired:
        return asked.say("recall_code_over")


@of_chat
async def rebuild(around: Around, asked: Asked) -> str:
    """Made at once; vectors follow behind (RS-41)."""
    return asked.say("chunks_rebuilt", chunks=f"{await around.desks.recall.rebuild(asked.chat.id):,}", list=asked.command("memory", "chunks"))


# -- what is the matter ------------------------------------------------------------------------------------------------------


@of_chat
async def doctor(around: Around, asked: Asked) -> str:
    """The lines that fit what is so here (RS-80, RS-160)."""
    person, chat, desks = asked.call.sender.id, await _fresh(around, asked), around.desks
    overview = await desks.recall.overview(chat, person)
    report = await around.db.read(lambda connection: last_recall(connection, chat))
    facts = Facts(
        overview=overview,
        summaries=await desks.summaries.whole(chat, person),
        calendar=await desks.summaries.calendar(chat, person),
        reason=str(report.get("reason", "")),
        shared=chat.space_id is not None,
        readers_unknown=await desks.recall.unshared(chat.id),
    )
    commands = {
        "chunks": asked.command("memory", "chunks"), "rebuild": asked.command("memory", "chunks", "rebuild"),
        "backfill": asked.command("summary", "backfill"), "summaries": asked.command("summary", "list"),
    }  # fmt: skip
    found = recall_doctor.findings(facts)
    values = {"reason": overview.vectors.reason, "wrong": facts.calendar.wrong_zone, "zone": facts.calendar.zone, **commands}
    lines = [asked.say(f"recall_doctor_{state}", **values) for state in found]
    if overview.record == "none":
        lines.insert(0, asked.say("recall_rule_none", record=asked.command("memory", "record"), chunks=""))
    elif not overview.on:
        lines.insert(0, asked.say("recall_is_off", chunks=f"{overview.totals.chunks:,}", record=""))
    return "\n".join(lines) or asked.say("recall_doctor_well")


def last_recall(connection: sa.Connection, chat: Conversation) -> dict[str, Any]:
    """What recall did for the last reply; empty when there was none."""
    receipt: dict[str, Any] = connection.execute(_RECEIPT, {"of": chat.id}).scalar() or {}
    return dict(receipt.get("recall") or {})


@of_chat
async def work(around: Around, asked: Asked) -> str:
    """Jobs of this chat that are not done, with why (RS-196)."""
    rows = await around.db.read(lambda connection: connection.execute(_JOBS, {"of": asked.chat.id, "below": f"{asked.chat.id}:"}).all())
    if not rows:
        return asked.say("chat_jobs_none")
    return "\n".join(
        asked.say(
            "chat_job_line", kind=_kind(asked, row.kind), date=_date(row.payload), state=asked.say(f"job_{row.state}"),
            reason=f" · {failure(asked.language, row.error_class)}" if row.error_class else "",
        )
        for row in rows
    )  # fmt: skip


def _date(payload: dict[str, Any] | None) -> str:
    return str(payload.get("date", "")) if payload else ""


def _kind(asked: Asked, kind: str) -> str:
    key = f"chat_job_{kind.replace('-', '_')}"
    return asked.say(key) if kind in _NAMED else kind


async def _fresh(around: Around, asked: Asked) -> Conversation:
    """The chat as it is now: a command before this one in a burst may have changed it."""
    from_store = await around.db.read(lambda connection: conversations.conversation(connection, asked.chat.id))
    return from_store or asked.chat


_NAMED = ("rolling", "restate-summaries", "day-row", "fold")
_RECEIPT = (
    sa.select(turns.c.receipt)
    .where(turns.c.conversation_id == sa.bindparam("of"), turns.c.receipt.is_not(None), turns.c.ended_at.is_not(None))
    .order_by(turns.c.ended_at.desc())
    .limit(1)
)
_JOBS = (
    sa.select(jobs.c.kind, jobs.c.state, jobs.c.payload, jobs.c.error_class)
    .where(
        (jobs.c.key == sa.bindparam("of", type_=sa.Text)) | jobs.c.key.startswith(sa.bindparam("below", type_=sa.Text), autoescape=False),
        jobs.c.state.in_(["waiting", "running", "parked"]),
    )
    .order_by(jobs.c.updated_at.desc(), jobs.c.id.desc())
    .limit(JOBS_SHOWN)
)
