"""Old passages of the talk for one reply: whether, what is asked, what may be read, and the block behind the history (RS-9 to RS-15, RS-30 to RS-36,
RS-77, RS-79).

Runs once, for the main reply (RS-15), within its time limit (RS-34): a late search gives nothing, and the receipt says so. No model is called.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from typing import Any

import sqlalchemy as sa

from agent.characters import Character
from agent.prompt import room_for_prompt
from gateway import windows
from gateway.config import Config
from gateway.entries import live as live_entries
from gateway.recall.talk_indexing import record_rule
from gateway.turn_store import TurnStart
from gateway.zone_names import first_known, otherwise
from memory import tokens
from memory.conversations import Conversation
from memory.database import Database
from memory.errors import StoreError
from memory.query import Query
from memory.recall import asking, block, budget, entry_rows, real_talk
from memory.recall.asking import Line
from memory.recall.audiences import Audience, readable
from memory.recall.block import Excerpt, Passage
from memory.recall.chunks import Spoken
from memory.recall.reach import Reach
from memory.recall.talk_search import Asked, Recalled, TalkSearch
from memory.recall_schema import chat_links, message_chunks
from memory.schema import conversations, messages, turns

log = logging.getLogger(__name__)

FIXED_TOKENS = 800  # of our own instructions, the time, and the marks around all parts
EVERYBODY = "*"  # reads what is said in a group: in no list of people
REASONS = ("nothing_earlier", "no_room", "nothing_relevant", "off", "record_rule", "query_too_short", "timeout", "failed")


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallTurn:
    """`text`: the block, empty for none; `report` for the receipt (RS-77); `snapshot`: for a retry of the same reply (RS-79)."""

    text: str = ""
    report: Mapping[str, Any] = field(default_factory=dict[str, Any])
    snapshot: Mapping[str, Any] | None = None


NO_RECALL = RecallTurn()


def _nothing(reason: str, mode: str = "none") -> RecallTurn:
    return RecallTurn(report={"mode": mode, "reason": reason, "used": [], "tokens": 0, "ms": 0})


def is_on(chat: Conversation, setting: str) -> bool:
    """Whether a chat recalls: its own switch, else the setting, else by its mode (RS-9). Role-play and games recall by scenes."""
    if chat.recall_on is not None:
        return chat.recall_on
    return setting == "on" if setting != "auto" else chat.mode in ("", "conversation")


class Recalling:
    """`stale` hears of chats whose chunks must be made anew."""

    def __init__(self, *, db: Database, config: Callable[[], Config], search: TalkSearch, stale: Callable[[str], object]) -> None:
        self._db = db
        self._config = config
        self._search = search
        self._stale = stale

    def question(self, start: TurnStart, character: Character) -> str:
        """What the past is asked for this reply: so much of it is embedded with the reply's one request (SM-29, RS-33). Empty when nothing is."""
        if self._refused(start) or start.dead:
            return ""
        talk = [*start.history, *start.questions]
        text = asking.question_of(
            [Line(message.text, message.author_character or "-" if message.role == "assistant" else "") for message in talk], character.id
        )
        return "" if asking.too_short(text) else text

    def reserve(self, text: str, *, ceiling: int, standing: int) -> int:
        """Tokens that the block may take at most, as long as the talk gives way to it (RS-70). `text`: as `question` returned it."""
        context, recall = self._config().context, self._config().recall
        left = budget.memory_budget(context.memory_budget, ceiling) + context.memory_overrun - standing
        return block.room(ceiling, recall.block_tokens_min, recall.block_tokens_max, left) if text else 0

    async def of(
        self, start: TurnStart, character: Character, text: str, query: Query, *, window_tokens: int, standing: int, used: int
    ) -> RecallTurn:
        """The block for this reply. `text`: from `question`, which `query` holds; `window_tokens`: of the model; `standing`: of its summaries;
        `used`: of the rest of its prompt, the talk apart."""
        if reason := self._refused(start):
            return _nothing(reason)
        if not text:
            return _nothing("query_too_short")
        began = time.monotonic()
        try:
            async with asyncio.timeout(self._config().recall.time_limit_s):
                room = self._room(start, character, window_tokens, standing, used)
                found = await self._recalled(start, character, Asked(text=text, names=(), query=query), room)
        except TimeoutError:
            found = _nothing("timeout")
        except StoreError as error:
            log.warning("nothing can be recalled now: %s", error)
            found = _nothing("failed")
        return replace(found, report={**found.report, "ms": round((time.monotonic() - began) * 1000)})

    def _refused(self, start: TurnStart) -> str:
        """Why nothing is recalled here at all; empty when it may be (RS-9, RS-12)."""
        chat, recall = start.conversation, self._config().recall
        if not start.scope or record_rule(recall.record, chat.record) == "none":
            return "record_rule"
        return "" if is_on(chat, recall.enabled) else "off"

    def _room(self, start: TurnStart, character: Character, window_tokens: int, standing: int, used: int) -> int:
        """Tokens that the block may take in the prompt as it is now (RS-70)."""
        config = self._config()
        answer = config.account(character.model).answer_tokens
        most = room_for_prompt(window_tokens, windows.prompt_limit(config, start.conversation), answer)
        ceiling = min(most, budget.effective_ceiling(config.context.ceiling, window_tokens, 0))
        used += FIXED_TOKENS + standing + sum(tokens.MESSAGE_TOKENS + tokens.count(message.text) for message in (*start.history, *start.questions))
        left = budget.recall_room(budget.memory_budget(config.context.memory_budget, ceiling), config.context.memory_overrun, standing, ceiling, used)
        return block.room(ceiling, config.recall.block_tokens_min, config.recall.block_tokens_max, left)

    async def _recalled(self, start: TurnStart, character: Character, asked: Asked, room: int) -> RecallTurn:
        if room < tokens.MESSAGE_TOKENS:
            return _nothing("no_room")
        live = frozenset(message.seq for message in (*start.history, *start.questions))

        def look(connection: sa.Connection) -> tuple[list[Reach], list[str], str, tuple[Passage, ...] | None]:
            reaches, names, state = self._around(connection, start, character, live)
            return reaches, names, state, _kept(connection, start, asked.text, state, reaches)

        reaches, names, state, snapshot = await self._db.read(look)
        if not reaches:  # all that was ever said here is sent as it is: nothing is searched, and the question needs no vector
            return _nothing("nothing_earlier")
        if snapshot is not None:
            found = Recalled(passages=snapshot, mode="text", searched=len(snapshot))
        else:
            mine = (character.name, *character.aliases, start.conversation.persona)
            named = asking.names_in(asked.text, names, mine)
            found = await self._search.search(Asked(text=asked.text, names=named, query=asked.query), reaches)
        for chat in found.stale:
            self._stale(chat)
        if not found.searched:
            return _nothing("nothing_earlier")
        if not found.passages:
            return _nothing("nothing_relevant", found.mode)
        quotes = block.excerpts(found.passages, room)
        if not quotes:
            return _nothing("no_room", found.mode)
        newest = max(question.seq for question in start.questions)
        chat = start.conversation
        *span, number = await self._db.read(lambda connection: entry_rows.places_of(connection, chat.id, (min(live), max(live), newest)))
        zone = otherwise(first_known(chat.timezone, str(start.person.get("timezone") or ""), self._config().timezone))
        return RecallTurn(
            text=block.text(quotes, zone, live=span, newest=number),
            report={
                "mode": found.mode,
                "reason": "",
                "used": [_reported(quote) for quote in quotes],
                "tokens": sum(quote.tokens for quote in quotes),
                "room": room,
                "again": snapshot is not None,
            },
            snapshot={"asked": _hash(asked.text), "state": state, "passages": [_kept_passage(passage) for passage in found.passages]},
        )

    def _edge(self, connection: sa.Connection, start: TurnStart, live: frozenset[int]) -> int:
        """The number of the last message that may lie outside of the window: what its entries hide lies among what is sent (RS-90)."""
        asked = live_entries.Asked(before=min(question.seq for question in start.questions))
        return max(min(live) - 1, *live_entries.read(connection, start.conversation, self._config(), asked).hidden, 0)

    def _around(self, connection: sa.Connection, start: TurnStart, character: Character, live: frozenset[int]) -> tuple[list[Reach], list[str], str]:
        """What this reply may read (RS-185, RS-187), the names that are known there (RS-177), and a mark that changes when any of it was edited or
        imported (RS-79). That more of it is cut into chunks changes nothing. No reaches when nothing lies before what is sent."""
        chat = start.conversation
        person = str(start.person.get("id", ""))
        readers = [EVERYBODY] if chat.space_id is not None else [person]
        edge, cleared = self._edge(connection, start, live), windows.cleared(chat)
        links = connection.execute(_LINKS, {"of": chat.id}).all()
        if not links and not connection.execute(_EARLIER, {"of": chat.id, "after": cleared, "edge": edge}).scalar():
            return [], [], ""
        reaches = [
            Reach(
                conversation_id=chat.id,
                audiences=_audiences(connection, chat.id, readers, character.id),
                edge=edge,
                after=cleared,
                live=live,
                importer=person,
            )
        ]
        for row in links:
            audiences = _audiences(connection, row.source_id, readers, character.id)
            title = row.title if row.space_id in (None, chat.space_id) else ""  # a group's title is its own: no other prompt tells it
            reaches.append(Reach(conversation_id=row.source_id, audiences=audiences, edge=2**62, title=title))
        names = [*connection.execute(_AUTHORS, {"of": chat.id}).scalars()]
        for each in self._config().characters.values():
            names += [each.name, *each.aliases]
        changed = connection.execute(_EDITED, {"chats": [reach.conversation_id for reach in reaches]}).scalar()
        imported = connection.execute(_IMPORTED, {"areas": [area for reach in reaches for area in reach.areas]}).one()
        state = ":".join(map(str, (changed.isoformat() if changed else "", *imported)))
        return reaches, [name for name in names if name], state


def _audiences(connection: sa.Connection, conversation_id: str, readers: Sequence[str], responder: str) -> tuple[str, ...]:
    special: set[Audience] = {
        (None if row.audience_people is None else tuple(row.audience_people), None if row.audience_personas is None else tuple(row.audience_personas))
        for row in connection.execute(_SPECIAL, {"of": conversation_id})
    }
    return readable([(None, None), *special], readers, responder)


def _kept(connection: sa.Connection, start: TurnStart, text: str, state: str, reaches: Sequence[Reach]) -> tuple[Passage, ...] | None:
    """What the first try of this reply recalled, if the question, what can be recalled and the messages are still the same (RS-79)."""
    if start.attempt <= 1:
        return None
    kept = connection.execute(_KEPT, {"turn": start.questions[0].turn_id}).scalar()
    if not kept or kept["asked"] != _hash(text) or kept["state"] != state:
        return None
    passages: list[Passage] = []
    for each in kept["passages"]:
        if each["chat"] not in {reach.conversation_id for reach in reaches}:
            return None
        said = real_talk.by_seq(connection, each["chat"], each["seqs"])
        if [message.fingerprint for message in said] != each["prints"]:
            return None
        passages.append(
            Passage(
                chunk_id=each["chunk"],
                chat=each["chat"],
                messages=tuple(said),
                best=each["best"],
                score=each["score"],
                source=each["source"],
            )
        )
    return tuple(passages)


def _kept_passage(passage: Passage) -> dict[str, Any]:
    said: Sequence[Spoken] = passage.messages
    return {
        "chunk": passage.chunk_id, "chat": passage.chat, "seqs": [message.seq for message in said],
        "prints": [message.fingerprint for message in said], "best": passage.best, "score": round(passage.score, 4), "source": passage.source,
    }  # fmt: skip


def _reported(quote: Excerpt) -> dict[str, Any]:
    """For the receipt: what was quoted, by id; the words are in the log."""
    return {
        "chunk": quote.chunk_id, "messages": [message.id for message in quote.messages], "from": quote.messages[0].at.isoformat(),
        "to": quote.messages[-1].at.isoformat(), "tokens": quote.tokens, "score": round(quote.score, 3),
    }  # fmt: skip


def _hash(text: str) -> str:
    return blake2b(text.encode(), digest_size=12).hexdigest()


_OF = sa.bindparam("of", type_=sa.Text)
_LINKS = (
    sa.select(chat_links.c.source_id, conversations.c.title, conversations.c.space_id)
    .join(conversations, conversations.c.id == chat_links.c.source_id)
    .where(chat_links.c.reader_id == _OF, chat_links.c.revoked_at.is_(None), conversations.c.deleted_at.is_(None))
)
_EARLIER = sa.select(
    sa.exists().where(
        messages.c.conversation_id == _OF,
        messages.c.seq > sa.bindparam("after", type_=sa.BigInteger),
        messages.c.seq <= sa.bindparam("edge", type_=sa.BigInteger),
    )
)
_AUTHORS = sa.select(messages.c.author_name).where(messages.c.conversation_id == _OF, messages.c.author_name != "").distinct().limit(200)
_SPECIAL = sa.select(messages.c.audience_people, messages.c.audience_personas).where(
    messages.c.conversation_id == _OF, messages.c.audience_people.is_not(None) | messages.c.audience_personas.is_not(None)
)
_EDITED = sa.select(sa.func.max(messages.c.edited_at)).where(messages.c.conversation_id.in_(sa.bindparam("chats", type_=sa.Text, expanding=True)))
_IMPORTED = sa.select(sa.func.count(), sa.func.coalesce(sa.func.max(message_chunks.c.id), 0)).where(
    message_chunks.c.area.in_(sa.bindparam("areas", type_=sa.Text, expanding=True)),
    message_chunks.c.state == "live",
    message_chunks.c.origin == "imported",
)
_KEPT = sa.select(turns.c.recalled).where(turns.c.id == sa.bindparam("turn", type_=sa.Text))
