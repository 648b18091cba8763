"""`/summary entries …`: short recaps of this chat, made by the model or switched, approved and deleted here (RS-81 to RS-87, RS-90, RS-95).

Everybody of the chat may look; in a group only managers change something. Editing, writing and the wording of the prompt are for the page. An entry
that waits is settled by its number, which every platform can carry.
"""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa

from gateway.access import includes
from gateway.buttons import deciding
from gateway.commands.asked import Answer, Around, Asked, Handler
from gateway.commands.memory import follow
from gateway.commands.recall import SWITCH, YES, of_chat
from gateway.entries.desk import EntriesView, Entry
from gateway.entries.words import REFUSALS, sentence
from gateway.job_words import failure
from memory.extract import shortened
from memory.recall import confirming, uncovered
from memory.recall.confirming import CodeExpired

ENTRIES_A_PAGE = 10
TEXT_MAX = 160  # characters of an entry in a list
ALL = "all"


def refusable(handler: Handler) -> Handler:
    """A challenge chat has none; what the desk refuses is told with what to do."""

    async def run(around: Around, asked: Asked) -> str | Answer:
        try:
            return await handler(around, asked)
        except REFUSALS as error:
            key, values = sentence(error)
            return asked.say(key, **values)

    return of_chat(run)


# -- looking -----------------------------------------------------------------------------------------------------------------


@refusable
async def listed(around: Around, asked: Asked) -> Answer | str:
    """A page of the entries, the oldest talk first; those that wait for a yes stand before it, whatever the page, the first of them with buttons
    (RS-85)."""
    found = await _view(around, asked)
    waiting = [each for each in found.entries if each.waiting]
    rows = [each for each in found.entries if not each.waiting]
    pages, number = max(1, -(-len(rows) // ENTRIES_A_PAGE)), asked.rest or "1"
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= pages):
        return asked.say("saved_list_page", pages=pages, command=asked.line)
    page = int(number[:6])
    lines = [_head(asked, found, rows, page, pages)]
    lines += _state(asked, found)
    if waiting:
        lines.append(asked.say("entries_waiting", count=len(waiting), approve=f"{asked.line} approve N", decline=f"{asked.line} decline N"))
        lines += [_line(asked, each) for each in waiting]
    lines += [_line(asked, each) for each in rows[(page - 1) * ENTRIES_A_PAGE : page * ENTRIES_A_PAGE]]
    if page < pages:
        lines.append(asked.say("saved_list_more", command=f"{asked.line} {page + 1}"))
    approve, decline = f"{asked.line} approve", f"{asked.line} decline"
    questions = [deciding(asked.language, each.id, approve=approve, decline=decline) for each in waiting if _may_decide(asked)]
    return Answer(text="\n".join(lines), questions=tuple(questions))


def _may_decide(asked: Asked) -> bool:
    return not asked.in_group or asked.manages or includes(asked.call.sender.role, "admin")


def _head(asked: Asked, found: EntriesView, rows: list[Entry], page: int, pages: int) -> str:
    if not rows:
        return asked.say("entries_none", command=f"{asked.line} make", messages=f"{found.messages:,}")
    on = sum(each.enabled for each in rows)
    return asked.say("entries_head", on=on, count=len(rows), messages=f"{found.messages:,}", page=page, pages=pages)


def _state(asked: Asked, found: EntriesView) -> list[str]:
    """What is being made, and what no entry stands for (RS-87, RS-92)."""
    lines: list[str] = []
    if found.making:
        lines.append(asked.say("entries_making", count=found.making))
    lines += [asked.say(f"entries_{each.what}_{each.state}", reason=failure(asked.language, each.reason)) for each in found.stuck]
    if (progress := found.progress) is not None and progress.state != "done":
        reason = f" · {failure(asked.language, progress.reason)}" if progress.reason else ""
        lines.append(asked.say(f"entries_backfill_{progress.state}", done=progress.done, total=progress.total, reason=reason))
    if found.uncovered:
        lines.append(asked.say("entries_uncovered", count=f"{found.uncovered:,}", command=asked.command("summary", "entries", "backfill")))
    return lines


def _line(asked: Asked, entry: Entry) -> str:
    text = " ".join(f"{entry.title}: {entry.text}".split() if entry.title else entry.text.split())
    return asked.say(
        "entry_line", id=entry.id, first=entry.first, last=entry.last, messages=entry.messages, tokens=f"{entry.tokens:,}",
        marks=_marks(asked, entry), text=shortened(text, TEXT_MAX),
    )  # fmt: skip


def _marks(asked: Asked, entry: Entry) -> str:
    marks = {
        "summary_mark_waiting": entry.waiting, "entry_mark_off": not (entry.enabled or entry.waiting), "entry_mark_replaced": entry.replaced,
        "entry_mark_left_out": entry.left_out, "summary_mark_withheld": entry.withheld, "summary_mark_by_hand": entry.hand_edited,
        "summary_mark_stale": entry.stale,
    }  # fmt: skip
    return "".join(f" · {asked.say(key)}" for key, shown in marks.items() if shown)


# -- making and settling -----------------------------------------------------------------------------------------------------


@refusable
async def make(around: Around, asked: Asked) -> str:
    """`make`, `make N` (the last N messages) or `make A-B` (their numbers); the model is asked (RS-82)."""
    wanted = _range(asked.words)
    if wanted is None:
        return asked.say("entries_make_usage", command=asked.line)
    found, chat, person = await _view(around, asked), asked.chat, asked.call.sender.id
    job = await around.desks.entries.generate(chat.id, person, **wanted)
    told = {
        "person": person, "after": max((each.id for each in found.entries), default=0), "shared": chat.space_id is not None,
        "approve": asked.command("summary", "entries", "approve"), "decline": asked.command("summary", "entries", "decline"),
    }  # fmt: skip

    def work(connection: sa.Connection) -> None:
        follow(connection, asked, "entries", [job], scope=uncovered.scope_of(connection, chat.id), **told)

    await around.db.write(work)
    return asked.say("entries_made_review" if found.settings.review else "entries_made")


def _range(words: list[str]) -> dict[str, int] | None:
    """What names the messages; None when the words do not."""
    numbers = " ".join(words).replace("–", "-").replace("-", " - ").split()
    match numbers:
        case []:
            return {}
        case [last] if _is_number(last):
            return {"last": int(last)}
        case [first, "-", to] if _is_number(first) and _is_number(to):
            return {"first": int(first), "to": int(to)}
        case _:
            return None


@refusable
async def approve(around: Around, asked: Asked) -> str:
    return await _decide(around, asked, accept=True)


@refusable
async def decline(around: Around, asked: Asked) -> str:
    return await _decide(around, asked, accept=False)


async def _decide(around: Around, asked: Asked, *, accept: bool) -> str:
    """A second yes or no changes nothing and says so (RS-85)."""
    number = _one(asked.words)
    if number is None:
        return _which(asked)
    settled = await around.desks.entries.decide(asked.chat.id, asked.call.sender.id, number, accept=accept)
    key = ("entry_approved" if accept else "entry_declined") if settled else "entry_settled"
    return asked.say(key, id=number, list=asked.command("summary", "entries"))


@refusable
async def on(around: Around, asked: Asked) -> str:
    return await _switch(around, asked, enabled=True)


@refusable
async def off(around: Around, asked: Asked) -> str:
    return await _switch(around, asked, enabled=False)


async def _switch(around: Around, asked: Asked, *, enabled: bool) -> str:
    """`on 3 5 8` or `on all`, in one step (RS-84)."""
    everything = [word.lower() for word in asked.words] == [ALL]
    numbers = _numbers(asked.words)
    if not everything and not numbers:
        return asked.say("entries_switch_usage", command=asked.line)
    missing = set(numbers) - {each.id for each in (await _view(around, asked)).entries}
    if missing:
        return _unknown(asked, sorted(missing))
    changed = await around.desks.entries.switch(asked.chat.id, asked.call.sender.id, None if everything else numbers, enabled=enabled)
    return asked.say("entries_switched_on" if enabled else "entries_switched_off", count=changed)


@refusable
async def delete(around: Around, asked: Asked) -> str | Answer:
    """`delete N` shows which, `delete N yes CODE` does it; its messages stay and are sent again (RS-94, RS-42)."""
    words, person, chat = asked.words, asked.call.sender.id, asked.chat.id
    number = _one(words[:1])
    if number is None or len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() != YES):
        return _which(asked)
    entry = next((each for each in (await _view(around, asked)).entries if each.id == number), None)
    if entry is None:
        return _unknown(asked, [number])
    target = f"entry:{chat}:{number}"
    if len(words) == 1:
        code = await around.db.write(lambda connection: confirming.ask(connection, person, target, asked.now))
        command = f"{asked.line} {number} {YES} {code}"
        return asked.confirming(asked.say("entry_delete_ask", text=_line(asked, entry), command=command), ("button_delete", command))
    try:
        await around.db.write(lambda connection: confirming.take(connection, person, target, words[2], asked.now))
    except CodeExpired:
        return asked.say("recall_code_over")
    await around.desks.entries.delete(chat, person, [number])
    return asked.say("entry_deleted", id=number, count=entry.hidden)


# -- old chats ---------------------------------------------------------------------------------------------------------------


@refusable
async def backfill(around: Around, asked: Asked) -> str:
    """It goes on by itself; how far it is stands in the list (RS-87)."""
    await around.desks.entries.backfill(asked.chat.id)
    return asked.say("entries_backfill_begun", list=asked.command("summary", "entries"), stop=asked.command("summary", "entries", "stop"))


@refusable
async def stop(around: Around, asked: Asked) -> str:
    stopped = await around.desks.entries.stop(asked.chat.id)
    return asked.say("entries_backfill_stops" if stopped else "entries_backfill_none")


# -- settings ----------------------------------------------------------------------------------------------------------------


@refusable
async def auto(around: Around, asked: Asked) -> str:
    """`auto on 5`: after every five of the person's own messages (RS-86)."""
    return await _configure(around, asked, "automatic", "every")


@refusable
async def hide(around: Around, asked: Asked) -> str:
    """`hide on 10`: summarised messages are not sent, but for the last ten of them (RS-90, RS-91)."""
    return await _configure(around, asked, "hide", "tail")


@refusable
async def review(around: Around, asked: Asked) -> str:
    return await _configure(around, asked, "review")


async def _configure(around: Around, asked: Asked, switch: str, number: str = "") -> str:
    """How it stands; with `on` or `off`, and a number where there is one, it is changed first."""
    words = [word.lower() for word in asked.words]
    if words:
        if words[0] not in SWITCH or len(words) > (2 if number else 1) or not all(map(_is_number, words[1:])):
            return asked.say("entries_number_usage" if number else "entries_review_usage", command=asked.line)
        changes: dict[str, Any] = {switch: SWITCH[words[0]]} | ({number: int(words[1])} if words[1:] else {})
        await around.desks.entries.configure(asked.chat.id, changes)
    found = await _view(around, asked)
    now: dict[str, Any] = {"every": found.settings.every, "tail": found.settings.tail, "uncovered": f"{found.uncovered:,}"}
    return asked.say(f"entries_{switch}_{'on' if getattr(found.settings, switch) else 'off'}", **now)


# -- inside ------------------------------------------------------------------------------------------------------------------


async def _view(around: Around, asked: Asked) -> EntriesView:
    return await around.desks.entries.listing(asked.chat.id, asked.call.sender.id)


def _is_number(word: str) -> bool:
    return word.isascii() and word.isdigit() and len(word) < 10


def _numbers(words: list[str]) -> list[int]:
    """The numbers of entries that the words name, `#` or not; none when one of them is no number."""
    bare = [word.strip("#,") for word in words]
    return [int(word) for word in bare] if all(map(_is_number, bare)) else []


def _one(words: list[str]) -> int | None:
    numbers = _numbers(words)
    return numbers[0] if len(numbers) == 1 else None


def _which(asked: Asked) -> str:
    return asked.say("entry_which", command=f"{asked.line} 12", list=asked.command("summary", "entries"))


def _unknown(asked: Asked, numbers: list[int]) -> str:
    return asked.say("entry_unknown", ids=", ".join(f"#{each}" for each in numbers), list=asked.command("summary", "entries"))
