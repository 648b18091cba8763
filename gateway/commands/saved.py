"""`/memory list`, `pin`, `unpin`, `wake`, `edit`, `delete`, `clear` and `/remember`: saved memories in a chat (SM-44, SM-56, SM-74 to SM-77).

In a private chat they are the person's own, in a group those of that group alone (WD-115). What is deleted is named first and needs a yes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TypeAlias

import sqlalchemy as sa

from channels.message import Address
from gateway.commands.asked import Answer, Around, Asked, Handler
from gateway.config import DEFAULT_CHARACTER
from gateway.language import LANGUAGES, say
from gateway.memory_notices import SETTING
from gateway.saved.desk import Birth, Change
from memory import conversations
from memory.extract import shortened
from memory.saved.clearing import OPEN_FOR, ClearingExpired, Question
from memory.saved.rows import ListKey, ListKind, Memory, character_list, global_list, space_list
from memory.saved.writing import Outcome, Result
from memory.schema import spaces

ROWS_A_PAGE = 15
TEXT_MAX = 160  # characters of a memory in a list; a single one is shown whole
EVERYWHERE = "everywhere"  # the word that names the list of all characters
YES = "yes"
PINS = "pins"
_LEVELS = {"full": "saved_notices_full", "short": "saved_notices_short", "hidden": "saved_notices_hidden"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Here:
    """The lists of a chat, by the word that names each; `names`: of characters, by lineage."""

    lists: dict[str, ListKey]
    names: dict[str, str]

    async def holds(self, key: ListKey) -> bool:
        """Whether a row of this list is managed here: in a private chat all lists of the person, with any character."""
        own = {each.owner for each in self.lists.values() if each.kind is not ListKind.SPACE}
        there = {each.owner for each in self.lists.values() if each.kind is ListKind.SPACE}
        return key.owner in (there if key.kind is ListKind.SPACE else own)


HereHandler: TypeAlias = Callable[[Around, Asked, Here], Awaitable[str | Answer]]


def of_lists(handler: HereHandler) -> Handler:
    """Hands the chat's lists to a command; a challenge chat has none."""

    async def run(around: Around, asked: Asked) -> str | Answer:
        if asked.chat.kind == "challenge":
            return asked.say("memory_challenge")
        return await handler(around, asked, await _here(around, asked))

    return run


async def _here(around: Around, asked: Asked) -> Here:
    known = await around.desks.shelves.characters()
    by_config = {config_id: lineage for lineage, (config_id, _) in known.items()}
    here = {each: by_config[each] for each in asked.chat.members if each in by_config}
    here = here or {DEFAULT_CHARACTER: by_config[DEFAULT_CHARACTER]}  # who is configured no more is answered for by the default one
    names = {lineage: name for lineage, (_, name) in known.items()}
    if asked.chat.space_id:
        return Here(lists={config_id: space_list(asked.chat.space_id, lineage) for config_id, lineage in here.items()}, names=names)
    person = asked.call.sender.id
    own = {config_id: character_list(person, lineage) for config_id, lineage in here.items()}
    return Here(lists={EVERYWHERE: global_list(person)} | own | {EVERYWHERE: global_list(person)}, names=names)


# -- looking -----------------------------------------------------------------------------------------------------------------


@of_lists
async def listed(around: Around, asked: Asked, here: Here) -> str:
    """A page of the memories with id and state, below the list each stands in and how full that is."""
    rows = {key: [] for key in here.lists.values()} | _by_list(await around.desks.saved.rows([*here.lists.values()]))
    ordered = [row for key in here.lists.values() for row in sorted(rows[key], key=lambda row: (not row.pinned, row.id))]
    if not ordered:
        return asked.say("saved_list_none", remember=asked.command("remember"))
    pages = -(-len(ordered) // ROWS_A_PAGE)
    number = asked.rest or "1"
    if not (number.isascii() and number.isdigit() and 1 <= int(number[:6]) <= pages):
        return asked.say("saved_list_page", pages=pages, command=asked.line)
    page = int(number[:6])
    shown = ordered[(page - 1) * ROWS_A_PAGE : page * ROWS_A_PAGE]
    lines = [asked.say("saved_list_head", page=page, pages=pages)]
    for key in here.lists.values():
        if on_page := [row for row in shown if row.key == key]:
            lines += ["", _head(around, asked, here, key, rows[key]), *(_row(around, asked, row) for row in on_page)]
    if page < pages:
        lines += ["", asked.say("saved_list_more", command=f"{asked.line} {page + 1}")]
    return "\n".join(lines)


def _by_list(rows: Sequence[Memory]) -> dict[ListKey, list[Memory]]:
    found: dict[ListKey, list[Memory]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row)
    return found


def _head(around: Around, asked: Asked, here: Here, key: ListKey, rows: Sequence[Memory]) -> str:
    limits, pinned = around.desks.saved.limits, sum(1 for row in rows if row.pinned)
    counts = {"unpinned": len(rows) - pinned, "pinned": pinned, "unpinned_max": limits.unpinned, "pinned_max": limits.pinned}
    return asked.say(f"saved_list_{key.kind.value}", name=here.names.get(key.character, key.character), **counts)


def _row(around: Around, asked: Asked, row: Memory) -> str:
    text = _short(row.content)
    marks = _marks(around, asked, row)
    return asked.say("saved_row_marked" if marks else "saved_row", id=row.id, text=text, marks=" · ".join(marks))


def _marks(around: Around, asked: Asked, row: Memory) -> list[str]:
    ageing_on = around.desks.saved.ageing_on and not row.pinned
    marks = {
        "saved_mark_archived": row.archived,
        "saved_mark_pinned": row.pinned,
        "saved_mark_dormant": row.dormant and ageing_on,
        "saved_mark_unused": bool(row.unused_days) and ageing_on and not row.dormant,
    }
    return [asked.say(key, days=row.unused_days) for key, shown in marks.items() if shown]


def _short(text: str) -> str:
    line = " ".join(text.split())
    return shortened(line, TEXT_MAX)


# -- one memory --------------------------------------------------------------------------------------------------------------


@of_lists
async def pin(around: Around, asked: Asked, here: Here) -> str:
    return await _one(
        around, asked, "saved_pinned", "saved_pinned_already", lambda found: around.desks.saved.pin(asked.call.sender.id, found, here.holds)
    )


@of_lists
async def unpin(around: Around, asked: Asked, here: Here) -> str:
    return await _one(
        around, asked, "saved_unpinned", "saved_unpinned_already", lambda found: around.desks.saved.unpin(asked.call.sender.id, found, here.holds)
    )


@of_lists
async def wake(around: Around, asked: Asked, here: Here) -> str:
    return await _one(around, asked, "saved_woken", "saved_woken_already", lambda found: around.desks.saved.wake(found, here.holds))


async def _one(around: Around, asked: Asked, done: str, already: str, act: Callable[[int], Awaitable[Result]]) -> str:
    """Do something with the memory whose number follows; `done` and `already` are the sentences about it."""
    memory_id = _number(asked.rest)
    if memory_id is None:
        return asked.say("saved_which", command=f"{asked.line} 12", list=asked.command("memory", "list"))
    result = await act(memory_id)
    match result.outcome:
        case Outcome.UPDATED if result.memory is not None:
            return asked.say(done, text=result.memory.content)
        case Outcome.UNCHANGED if result.memory is not None:
            return asked.say(already, text=result.memory.content)
        case Outcome.LIST_FULL:
            limits = around.desks.saved.limits
            if done == "saved_pinned":
                return asked.say("saved_pins_full", limit=limits.pinned)
            return asked.say("saved_list_full", limit=limits.unpinned)
        case _:
            return _unknown(asked, memory_id)


@of_lists
async def edit(around: Around, asked: Asked, here: Here) -> str:
    first, _, text = asked.rest.partition(" ")
    memory_id = _number(first)
    if memory_id is None or not text.strip():
        return asked.say("saved_edit_usage", command=asked.line)
    result = await around.desks.saved.change(asked.call.sender.id, memory_id, Change(content=text), here.holds)
    if result.outcome in (Outcome.UPDATED, Outcome.UNCHANGED) and result.memory is not None:
        same = result.outcome is Outcome.UNCHANGED
        return asked.say("saved_edited_same" if same else "saved_edited", text=result.memory.content)
    return _text_fault(asked, result) or _unknown(asked, memory_id)


@of_lists
async def delete(around: Around, asked: Asked, here: Here) -> str | Answer:
    """`delete ID` shows what would go, `delete ID yes` does it."""
    words = asked.words
    memory_id = _number(words[0]) if words else None
    if memory_id is None or len(words) > 2 or (len(words) == 2 and words[1].lower() != YES):
        return asked.say("saved_which", command=f"{asked.line} 12", list=asked.command("memory", "list"))
    if len(words) == 1:
        found = await around.desks.saved.row(memory_id, here.holds)
        command = f"{asked.line} {memory_id} {YES}"
        if found is None:
            return _unknown(asked, memory_id)
        return asked.confirming(asked.say("saved_delete_ask", text=found.content, command=command), ("button_delete", command))
    result = await around.desks.saved.remove(memory_id, here.holds)
    return asked.say("saved_deleted", text=result.memory.content) if result.memory else _unknown(asked, memory_id)


@of_lists
async def remember(around: Around, asked: Asked, here: Here) -> str:
    """Into the list of the answering character; behind "everywhere:" into the one of all characters; in a group into the group's (SM-56)."""
    everywhere = next((word for word in _EVERYWHERE if asked.rest.lower().startswith(word)), "")
    content = asked.rest[len(everywhere) :].strip()
    if not content:
        return asked.say("saved_remember_usage", command=asked.line, everywhere=asked.say("saved_everywhere"))
    words = [word for word in here.lists if word != EVERYWHERE]
    key = here.lists[EVERYWHERE] if everywhere and EVERYWHERE in here.lists else here.lists[words[0]]
    birth = await around.db.read(lambda connection: _birth(connection, asked))
    result = await around.desks.saved.add(asked.call.sender.id, key, content, birth)
    if result.outcome is Outcome.LIST_FULL:
        return _full(around, asked, result)
    if result.memory is None:
        return _text_fault(asked, result)
    already = result.outcome is Outcome.UNCHANGED
    return asked.say("saved_remembered_already" if already else "saved_remembered", id=result.memory.id, text=result.memory.content)


def _full(around: Around, asked: Asked, result: Result) -> str:
    limit = around.desks.saved.limits.unpinned
    if result.victim is None:
        return asked.say("saved_list_full", limit=limit)
    command = asked.command("memory", "delete", str(result.victim.id))
    return asked.say("saved_full_candidate", limit=limit, id=result.victim.id, text=result.victim.content, command=command)


def _birth(connection: sa.Connection, asked: Asked) -> Birth:
    """What is made in a group is not private; where not all of the server can read, it counts in that channel alone (SM-15, SM-16)."""
    source = {"platform": asked.chat.channel, "chat": asked.chat.id}
    if asked.chat.space_id is None:
        return Birth(source=source)
    found = connection.execute(_SERVER, {"space": asked.chat.space_id}).one()
    closed = found.server_id not in ("", found.platform_space_id)
    address = Address.parse(asked.address)
    return Birth(private_origin=False, channel_ids=(str(Address(account=address.account, chat_id=address.chat_id)),) if closed else (), source=source)


# -- all of them -------------------------------------------------------------------------------------------------------------


@of_lists
async def clear(around: Around, asked: Asked, here: Here) -> str | Answer:
    """`clear LIST` asks, `clear LIST yes CODE` deletes what is not pinned and asks about the pins, `clear LIST pins CODE` deletes those."""
    words = asked.words
    if not words and len(here.lists) == 1:
        words = [*here.lists]
    named = {word.lower(): key for word, key in here.lists.items()}
    key = named.get(words[0].lower()) if words else None
    if key is None or len(words) not in (1, 3) or (len(words) == 3 and words[1].lower() not in (YES, PINS)):
        return asked.say("saved_clear_usage", commands=" · ".join(f"{asked.line} {word}" for word in here.lists))
    person, line = asked.call.sender.id, f"{asked.line} {words[0]}"
    if len(words) == 1:
        question = await around.desks.saved.ask_clear(person, key)
        title = words[0] if key.kind is ListKind.GLOBAL else here.names.get(key.character, words[0])
        command = f"{line} {YES} {question.token}"
        told = asked.say("saved_clear_ask", count=question.count, list=title, command=command)
        return asked.confirming(told, ("button_delete", command), open_for=OPEN_FOR)
    try:
        done = await around.desks.saved.clear(person, key, words[2], step=1 if words[1].lower() == YES else 2)
    except ClearingExpired:
        return asked.say("saved_clear_over")
    told = asked.say("saved_cleared", count=done.deleted)
    return _about_pins(asked, told, done.question, line) if done.question else told


def _about_pins(asked: Asked, told: str, question: Question, line: str) -> Answer:
    pins, command = "\n".join(asked.say("saved_row", id=row.id, text=_short(row.content)) for row in question.pins), f"{line} {PINS} {question.token}"
    asks = asked.say("saved_clear_pins", count=question.count, pins=pins, command=command)
    return asked.confirming(f"{told}\n\n{asks}", ("button_delete_pins", command), open_for=OPEN_FOR)


# -- how much is told --------------------------------------------------------------------------------------------------------


async def notices(around: Around, asked: Asked) -> str:
    """How this chat hears of what the AI saves: `full`, `short` or `hidden` (SM-61); alone it says how it stands."""
    if asked.chat.kind == "challenge":
        return asked.say("memory_challenge")
    word = asked.rest.lower()
    if word and word not in _LEVELS:
        return asked.say("saved_notices_usage", command=asked.line)
    if word:
        await around.db.write(partial(conversations.change_settings, conversation_id=asked.chat.id, changes={SETTING: word}))
    return asked.say(_LEVELS.get(word or str(asked.chat.settings.get(SETTING, "")), "saved_notices_usual"), command=asked.line)


# -- what they share ---------------------------------------------------------------------------------------------------------


def _number(word: str) -> int | None:
    digits = word.strip().removeprefix("#")
    return int(digits) if digits.isascii() and digits.isdigit() and len(digits) < 19 else None


def _unknown(asked: Asked, memory_id: int) -> str:
    return asked.say("saved_unknown", id=memory_id, list=asked.command("memory", "list"))


def _text_fault(asked: Asked, result: Result) -> str:
    if result.outcome is Outcome.TOO_LONG:
        return asked.say("saved_too_long", length=result.length, limit=result.limit)
    return asked.say("saved_empty") if result.outcome is Outcome.EMPTY else ""


_WORDS = [say(language, "saved_everywhere") for language in LANGUAGES]
_EVERYWHERE = tuple(dict.fromkeys(form for word in _WORDS for form in (word, word.replace("：", ":"), word.replace(":", "："))))  # either colon
_SERVER = sa.select(spaces.c.server_id, spaces.c.platform_space_id).where(spaces.c.id == sa.bindparam("space"))
