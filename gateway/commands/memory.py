"""`/memory …`: how it stands, what it holds, where an answer came from, whether it is used here at all."""

from __future__ import annotations

from functools import partial
from typing import Any

import sqlalchemy as sa

from gateway import index_rebuild, memory_export, receipt_view
from gateway.commands.asked import Around, Asked
from gateway.commands.scoped import of_scope
from gateway.followups import Wanted, await_results
from gateway.jobs.table import Job, enqueue
from gateway.recall.recalling import REASONS
from gateway.whys import Chain, Line
from memory import conversations
from memory.provenance import Origin
from memory.schema import turns
from memory.scope_switches import knowledge_of
from memory.scopes import Scope

SNIPPET_MAX = 200  # characters of a hit; a chat is no page
WHY_SHOWN = 20
SECTIONS = frozenset({"tools", "instructions", "saved", "history", "time", "message"})  # of a prompt, as `agent.prompt` names them

NEAREST = 3  # finds that are listed at least, though they fit badly: a person sees at once what they are worth


@of_scope
async def status(around: Around, asked: Asked, scope: Scope) -> str:
    return await around.desks.status.text(scope, asked.language)


@of_scope
async def search(around: Around, asked: Asked, scope: Scope) -> str:
    """Hits of this scope alone, filtered before they are ranked (WD-10, WD-102). What does not fit is named apart, and no more of it
    than makes three lines in all."""
    if not asked.rest:
        return asked.say("memory_search_usage", command=asked.line)
    config = around.house.config()
    own = await around.db.read(partial(knowledge_of, scope=str(scope)))
    knowledge = config.knowledge and own is not False
    found = await around.desks.search.search(asked.access(), asked.rest, config.memory.search_results, knowledge=knowledge)
    if found.mode == "failed":
        return asked.say("memory_search_failed")
    lines = [
        (hit.fits, asked.say("memory_hit", path=hit.path, line=hit.first_line, date=f" · {hit.date}" if hit.date else "", text=text))
        for hit in found.hits
        if (text := _short(hit.snippet))
    ]
    if not lines:
        return asked.say("memory_search_none", saved=asked.command("memory", "list"))
    fitting = [line for fits, line in lines if fits]
    others = [line for fits, line in lines if not fits][: max(NEAREST - len(fitting), 0)]
    apart = [asked.say("memory_search_nearest"), *others] if others else []
    return "\n".join([*fitting, *apart, *([asked.say("memory_search_words")] if found.mode == "words" else [])])


async def rebuild(around: Around, asked: Asked) -> str:
    await begin(around, asked, "rebuild", index_rebuild.job(asked.call.event.delivery_id))
    return asked.say("rebuild_started")


@of_scope
async def export(around: Around, asked: Asked, scope: Scope) -> str:
    await begin(around, asked, "export", memory_export.job(scope, asked.call.sender.id, asked.call.event.delivery_id, language=asked.language))
    return asked.say("export_started")


async def begin(around: Around, asked: Asked, what: str, job: Job) -> None:
    """Enqueue a job whose result is told here (lane B). The same command again, after a crash, begins nothing anew."""

    def work(connection: sa.Connection) -> None:
        job_id = enqueue(connection, job)
        follow(connection, asked, what, [job_id], scope=job.scope)

    await around.db.write(work)
    around.desks.wake_jobs()


def follow(connection: sa.Connection, asked: Asked, what: str, job_ids: list[int], *, scope: str, **values: Any) -> None:
    wanted = Wanted(what=what, conversation_id=asked.chat.id, language=asked.language, values=values)
    await_results(connection, job_ids, wanted, scope=scope, key=f"{asked.call.event.delivery_id}:{what}", now=asked.now)


# -- on and off -------------------------------------------------------------------------------------------------------------


async def switch_on(around: Around, asked: Asked) -> str:
    return await _switch(around, asked, on=True)


async def switch_off(around: Around, asked: Asked) -> str:
    return await _switch(around, asked, on=False)


async def _switch(around: Around, asked: Asked, *, on: bool) -> str:
    """Whether memory is read and written in this chat; a challenge chat has none either way."""
    if asked.chat.kind == "challenge":
        return asked.say("memory_challenge")
    await around.db.write(partial(conversations.change, conversation_id=asked.chat.id, memory_on=on))
    return asked.say("memory_now_on") if on else asked.say("memory_now_off", on=asked.command("memory", "on"))


# -- why --------------------------------------------------------------------------------------------------------------------


@of_scope
async def why(around: Around, asked: Asked, scope: Scope) -> str:
    """The receipt of the last answer, or one line's chain back to what was said (WD-91)."""
    if asked.rest:
        line_id = asked.words[0]
        chain = await around.desks.whys.chain(scope, line_id)
        return _chain_words(asked, chain) if chain else asked.say("why_no_line", id=line_id)

    def newest(connection: sa.Connection) -> dict[str, Any] | None:
        found: dict[str, Any] | None = connection.execute(_RECEIPT, {"of": asked.chat.id}).scalar()
        return found and receipt_view.for_person(connection, asked.chat, found, asked.call.sender.id)

    receipt = await around.db.read(newest)
    if not receipt:
        return asked.say("why_no_answer")
    return "\n".join([_receipt(asked, receipt), *_stood(asked, receipt.get("window") or {}), *await _recalled(around, asked, receipt)])


def _chain_words(asked: Asked, chain: Chain) -> str:
    """From the line to its evidence to what was said, each step below the one it explains."""
    lines = [_line_words(asked, chain.line), *_said(asked, chain.line, "  ")]
    for each in chain.evidence:
        lines += [f"  {_line_words(asked, each)}", *_said(asked, each, "    ")]
    if chain.lost:
        lines.append(asked.say("why_lost", count=chain.lost))
    return "\n".join(lines[:WHY_SHOWN])


def _line_words(asked: Asked, line: Line) -> str:
    return asked.say(
        "why_line",
        id=line.id,
        path=line.path,
        date=f" · {line.date}" if line.date else "",
        origin=_origin(asked, line.origin),
        text=_short(line.text),
    )


def _said(asked: Asked, line: Line, indent: str) -> list[str]:
    return [indent + asked.say("why_said", author=each.author, at=f"{each.at:%Y-%m-%d %H:%M}", text=_short(each.text)) for each in line.sources]


def _short(text: str) -> str:
    return " ".join(text.split())[:SNIPPET_MAX]


def _origin(asked: Asked, origin: str) -> str:
    """Whose words a line rests on, in words; empty where nobody noted it."""
    return asked.say(f"origin_{origin}") if origin in frozenset(Origin) else origin


def _part_name(asked: Asked, name: str) -> str:
    """In words; what older receipts name otherwise stays as it is."""
    return asked.say(f"receipt_section_{name}") if name in SECTIONS else name


def _receipt(asked: Asked, receipt: dict[str, Any]) -> str:
    lines = [asked.say("receipt_head", tokens=f"{receipt.get('input_tokens', 0):,}", model=receipt.get("model", ""))]
    parts = [part for part in receipt.get("sections", ()) if part["tokens"]]
    lines += [asked.say("receipt_part", name=_part_name(asked, part["name"]), tokens=f"{part['tokens']:,}") for part in parts]
    used = receipt.get("memories", {}).get("used", ())
    lines += [
        asked.say("receipt_line", read=" · ".join(filter(None, (line.get("path"), line.get("date"), _origin(asked, line.get("origin", ""))))))
        for line in used
    ]
    lines += [asked.say("receipt_tool", name=tool["name"]) for tool in receipt.get("tools", ())]
    return "\n".join(lines)


def _stood(asked: Asked, window: dict[str, Any]) -> list[str]:
    """What stood for talk that was not sent, without what the asker may not read, and how much more there was (RS-77, RS-196)."""
    shown: list[dict[str, Any]] = window.get("summaries") or []
    hidden, left_out = window.get("summaries_hidden", 0), window.get("summaries_left_out", 0)
    named = shown[-WHY_SHOWN:]
    more = window.get("summaries_more", 0) + len(shown) - len(named)
    lines = [asked.say("why_stood", count=len(shown) + hidden + window.get("summaries_more", 0))] if shown or hidden else []
    lines += [asked.say("why_stood_more", count=more)] if more else []
    lines += [_stood_line(asked, each) for each in named]
    lines += [asked.say("why_recalled_hidden", count=hidden)] if hidden else []
    lines += [asked.say("why_stood_left_out", count=left_out)] if left_out else []
    told = left_out or any(each["cut"] for each in shown)  # else the prompt as a whole was too long, and all of it gave way (RS-70)
    return [*lines, *([asked.say("why_stood_excerpt")] if window.get("summaries_cut") and lines and not told else [])]


def _stood_line(asked: Asked, each: dict[str, Any]) -> str:
    begin, end = each["messages"] or (each["from"], each["to"])
    span = str(begin) if begin == end else asked.say("why_stood_span", begin=begin, end=end)
    about = asked.say("why_stood_messages", numbers=span) if each["messages"] else span
    kind = asked.say(f"summary_kind_{each['kind']}")
    return "- " + " · ".join(filter(None, (kind, about, asked.say("why_stood_cut") if each["cut"] else "")))


async def _recalled(around: Around, asked: Asked, receipt: dict[str, Any]) -> list[str]:
    """What was recalled for the answer, without what the asker may not read, or why nothing was (RS-77, RS-196)."""
    report: dict[str, Any] | None = receipt.get("recall")
    if report is None:
        return []
    used: list[dict[str, Any]] = report.get("used") or []
    if not used:
        reason = str(report.get("reason", ""))
        return [asked.say("why_recall_none", reason=asked.say(f"recall_reason_{reason}") if reason in REASONS else reason)]
    known = await around.desks.recall.readable(asked.chat.id, asked.call.sender.id, [int(each["chunk"]) for each in used])
    shown = [each for each in used if each["chunk"] in known or (each["chunk"] == 0 and not asked.in_group)]
    mode = asked.say(f"recall_mode_{report.get('mode', 'text')}")
    head = asked.say("why_recalled", count=len(used), tokens=f"{report.get('tokens', 0):,}", mode=mode, ms=report.get("ms", 0))
    lines = [asked.say("why_recalled_line", begin=_minute(each["from"]), end=_minute(each["to"]), tokens=each["tokens"]) for each in shown]
    hidden = len(used) - len(shown)
    return [head, *lines, *([asked.say("why_recalled_hidden", count=hidden)] if hidden else [])]


def _minute(instant: str) -> str:
    return instant[:16].replace("T", " ")


_RECEIPT = (
    sa.select(turns.c.receipt)
    .where(turns.c.conversation_id == sa.bindparam("of"), turns.c.receipt.is_not(None), turns.c.ended_at.is_not(None))
    .order_by(turns.c.ended_at.desc())
    .limit(1)
)
