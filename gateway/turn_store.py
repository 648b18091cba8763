"""The transactions of a turn: how it begins and how it ends (CH-53). Each is all or nothing, so a kill at any moment leaves it before or after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from typing import Any

import sqlalchemy as sa

from gateway import casting, live_window, trimming, windows
from gateway.arrivals import inbox
from gateway.arrivals.inbox import ATTEMPTS_MAX, Waiting
from gateway.challenges import OVER, is_over
from gateway.config import Config
from gateway.delivery import outbox_store, previews
from gateway.delivery.outbox_store import NewPart
from gateway.delivery.previews import NO_PREVIEW, Preview
from gateway.entries import live as live_entries
from gateway.entries.live import Asked
from gateway.language import guess
from gateway.model_calls import CallRow, record_calls
from gateway.saved import undo as saved_undo
from gateway.talk import message_sizes
from memory import conversations, message_changes, scope_switches
from memory.blocks import Block
from memory.conversations import Conversation, Message
from memory.recall.fitting import NOTHING, Standing
from memory.saved.writing import Limits
from memory.schema import messages, people, turns


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStart:
    """What a turn begins with. `attempt` counts from 1 and grows with every regenerate; `dead`: it has been tried too often.

    `scope`: whose memory it has, settled when its question arrived, empty for none (WD-9); `standing`: for talk that is not sent (WD-43, RS-53);
    `dates`: of messages of earlier days, by number (RS-57);
    `knowledge`: the scope's own switch for knowledge pages, None where it has none.
    """

    conversation: Conversation
    person: Mapping[str, Any]
    questions: tuple[Message, ...]
    history: tuple[Message, ...]
    attempt: int
    scope: str = ""
    standing: Standing = NOTHING
    dates: Mapping[int, str] = field(default_factory=dict[int, str])
    knowledge: bool | None = None
    preview: Preview = NO_PREVIEW  # what an earlier try of it left on show
    dead: bool = False
    via: str = ""  # how its newest words came, where that is no app or page: as the adapter says it

    @property
    def blocks(self) -> str:
        """The words of `standing`."""
        return self.standing.text

    @property
    def language(self) -> str:
        """Of what we say to the person."""
        return _language(self.person, self.questions)

    @property
    def prompt_language(self) -> str:
        """Of our own words in the prompt; nothing of the person shows in that of a challenge (SM-88)."""
        return guess(self.questions[-1].text) if self.conversation.kind == "challenge" else self.language


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnEnd:
    """What a turn leaves behind. `answer` empty = no message by us; `notice` a sentence of ours to show instead or beside it."""

    turn_id: str
    conversation_id: str
    state: str  # answered, stopped, failed, empty
    rows: tuple[int, ...]  # of the inbox
    attempt: int = 1
    answer: str = ""
    scope: str = ""
    foreign_text: bool = False
    character: str = ""
    character_name: str = ""
    speaks_as: str = ""  # named before the words in a chat app, where several characters talk (WO-40)
    notice: str = ""
    error_code: str = ""
    receipt: Mapping[str, Any] = field(default_factory=dict[str, Any])
    steered: tuple[Waiting, ...] = ()
    window_edge: int | None = None
    into: trimming.Into = "blocks"  # what the turns that leave become
    overflowed: bool = False  # the model refused the talk as too long, so its oldest turns leave (WD-94)
    row_state: str = "done"
    recalled: Mapping[str, Any] | None = None  # of the past, for a retry (RS-79)


_LIMITS = Limits()
_CONFIG = Config()
_PERSON = sa.select(people.c.id, people.c.name, people.c.role, people.c.scope, people.c.language, people.c.timezone).where(
    people.c.id == sa.bindparam("id")
)
_TURN = sa.select(turns.c.preview_ids, turns.c.receipt).where(turns.c.id == sa.bindparam("id"))
_NEWEST_ATTEMPT = sa.select(sa.func.max(messages.c.attempt)).where(messages.c.turn_id == sa.bindparam("turn"), messages.c.role != "user")
_RESERVED = sa.select(people.c.id).where(people.c.id.in_(sa.bindparam("ids", expanding=True)), people.c.privacy == "full")
_BEGIN = sa.insert(turns)
_BEGIN_AGAIN = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("of"))
    .values(
        state="running",
        attempt=sa.bindparam("attempt_now"),
        scope=sa.bindparam("new_scope"),
        started_at=sa.bindparam("now"),
        ended_at=None,
        error_code="",
    )
)
_END = (
    sa.update(turns)
    .where(turns.c.id == sa.bindparam("of"))
    .values(
        preview_ids=sa.null(),
        **{name: sa.bindparam(f"new_{name}") for name in ("state", "character", "model", "error_code", "receipt", "ended_at")},
    )
)
_RECALLED = sa.update(turns).where(turns.c.id == sa.bindparam("of")).values(recalled=sa.bindparam("kept", type_=turns.c.recalled.type))
_WITHDRAWN = sa.update(turns).where(turns.c.id == sa.bindparam("of")).values(state="stopped", ended_at=sa.bindparam("now"))
_JOIN_MESSAGES = sa.update(messages).where(messages.c.id.in_(sa.bindparam("messages", expanding=True))).values(turn_id=sa.bindparam("turn"))


def begin(
    connection: sa.Connection,
    items: Sequence[Waiting],
    now: datetime,
    *,
    attempts_max: int = ATTEMPTS_MAX,
    limits: Limits = _LIMITS,
    config: Config = _CONFIG,
) -> TurnStart | None:
    """Mark the rows as running and read what the turn needs. None when there is nothing left to answer (deleted, or answered already).

    A turn that was begun before (regenerated, killed, or cut short by a drain) is another attempt of the same turn, and what the one before wrote to
    saved memories is taken back first (SM-65, SM-71). `limits`: of their lists; `config`: for the window profile of the chat.
    """
    turn_id = items[0].turn_id
    tried = inbox.start(connection, [item.row_id for item in items], turn_id)
    chat = conversations.conversation(connection, items[0].conversation_id)
    if tried == 0:
        return None
    if chat is None:
        inbox.finish(connection, [item.row_id for item in items], now=now, state="ignored", rule="deleted")
        return None
    if is_over(chat):  # what waited while the last turn of a challenge ran
        inbox.finish(connection, [item.row_id for item in items], now=now, state="ignored", rule=OVER)
        return None
    if len(items) > 1:
        connection.execute(_JOIN_MESSAGES, {"messages": [item.message_id for item in items], "turn": turn_id})
    profile = windows.profile_of(config, chat)
    asked = tuple(message for message in conversations.of_turn(connection, turn_id) if message.role == "user")
    live = live_window.window(connection, chat, profile, config, now, asked=Asked(before=min((each.seq for each in asked), default=0)))
    log = live.log
    questions = tuple(message for message in log if message.turn_id == turn_id and message.role == "user") or asked
    if not questions:
        inbox.finish(connection, [item.row_id for item in items], now=now, state="ignored", rule="deleted")
        return None
    first = min(message.seq for message in questions)
    order = {item.message_id: place for place, item in enumerate(items)}
    questions = tuple(sorted(questions, key=lambda message: order.get(message.id, len(order))))
    begun = connection.execute(_TURN, {"id": turn_id}).one_or_none()
    attempt = (connection.execute(_NEWEST_ATTEMPT, {"turn": turn_id}).scalar() or 0) + 1 if begun else 1
    if begun:
        saved_undo.before_attempt(connection, turn_id, attempt, now, limits)
    scope = questions[-1].scope if chat.memory_on and len({question.scope for question in questions}) == 1 else ""
    _open(connection, turn_id, chat, items[0].person_id, attempt, scope=scope, again=begun is not None, now=now)
    known = connection.execute(_PERSON, {"id": items[0].person_id}).mappings().one_or_none()
    person: dict[str, Any] = {str(key): value for key, value in known.items()} if known else {}
    history = _without_reserved(connection, chat, _before(log, turn_id, first))
    edge = windows.edge_before(config, chat, profile, message_sizes([*history, *questions]), oldest_question=first)
    if edge is not None and edge > chat.window_edge:
        trimming.left(connection, chat, scope, chat.window_edge + 1, edge, now, into=windows.into(config, chat))
        conversations.move_edge(connection, chat.id, edge)
        chat = replace(chat, window_edge=edge)
        history = tuple(message for message in history if message.seq > edge)
    return TurnStart(
        conversation=chat,
        person=person,
        questions=questions,
        history=history,
        dates=live.dates,
        attempt=attempt,
        scope=scope,
        standing=standing_of(connection, chat, config, now, questions, history, person) if scope else NOTHING,
        knowledge=scope_switches.knowledge_of(connection, scope) if scope else None,
        preview=previews.noted(begun.preview_ids) if begun else NO_PREVIEW,
        dead=tried > attempts_max,
        via=max(inbox.hints(connection, [item.row_id for item in items if not item.action]), default="") or _via(begun),
    )


def would_begin(
    connection: sa.Connection, chat: Conversation, person: Mapping[str, Any], question: Message, now: datetime, config: Config
) -> TurnStart:
    """What a turn would begin with if `question` came now. Nothing is written, and nothing leaves the window (RS-78)."""
    profile = windows.profile_of(config, chat)
    live = live_window.window(connection, chat, profile, config, now, asked=Asked(before=question.seq))
    history = _without_reserved(connection, chat, _before(live.log, question.turn_id, question.seq))
    edge = windows.edge_before(config, chat, profile, message_sizes([*history, question]), oldest_question=question.seq) or 0
    history = tuple(message for message in history if message.seq > edge)
    return TurnStart(
        conversation=chat,
        person=person,
        questions=(question,),
        history=history,
        dates=live.dates,
        attempt=1,
        scope=question.scope,
        standing=standing_of(connection, chat, config, now, (question,), history, person) if question.scope else NOTHING,
        knowledge=scope_switches.knowledge_of(connection, question.scope) if question.scope else None,
    )


def standing_of(
    connection: sa.Connection,
    chat: Conversation,
    config: Config,
    now: datetime,
    questions: Sequence[Message],
    history: Sequence[Message],
    person: Mapping[str, Any],
    ahead: Sequence[Block] = (),
) -> Standing:
    """What stands for the talk that is not sent, as the character that answers may know it (RS-93). `ahead`: as in `live_window.standing`."""
    character = casting.who_answers(config, chat, questions, history)
    people = {message.author_name for message in (*history, *questions) if message.role == "user" and message.author_name}
    reader = live_entries.reader_of(chat, character, people, _language(person, questions))
    asked = Asked(before=min(question.seq for question in questions), reader=reader)
    live = {message.seq for message in (*history, *questions)}
    return live_window.standing(connection, chat, windows.profile_of(config, chat), config, now, asked=asked, live=live, ahead=ahead)


def _language(person: Mapping[str, Any], questions: Sequence[Message]) -> str:
    """The person's setting, else the script of what they wrote."""
    return str(person.get("language") or "") or guess(questions[-1].text)


def _via(begun: sa.Row[Any, Any] | None) -> str:
    """As it was known when the turn was answered before."""
    known: Mapping[str, Any] = (begun.receipt if begun is not None else None) or {}
    return str(known.get("via", ""))


def _without_reserved(connection: sa.Connection, chat: Conversation, history: tuple[Message, ...]) -> tuple[Message, ...]:
    """In spaces, without what people with privacy `full` said and what was answered to them (SM-13)."""
    if chat.space_id is None:
        return history
    speakers = {message.author_person_id for message in history if message.author_person_id}
    reserved = set(connection.execute(_RESERVED, {"ids": list(speakers)}).scalars())
    theirs = {message.turn_id for message in history if message.author_person_id in reserved and message.turn_id}
    return tuple(message for message in history if message.author_person_id not in reserved and message.turn_id not in theirs)


def _before(log: Sequence[Message], turn_id: str, first: int) -> tuple[Message, ...]:
    """The talk before a question that has number `first`: every earlier question with its answer, also when the answer came after `first` (DL-14)."""
    asked: dict[str, int] = {}
    for message in log:
        if message.role == "user" and message.turn_id:
            asked.setdefault(message.turn_id, message.seq)

    def place(message: Message) -> int:
        return asked.get(message.turn_id, message.seq)

    earlier = [message for message in log if message.turn_id != turn_id and place(message) < first]
    return tuple(sorted(earlier, key=lambda message: (place(message), message.seq)))


def _open(
    connection: sa.Connection, turn_id: str, chat: Conversation, person_id: str, attempt: int, *, scope: str, again: bool, now: datetime
) -> None:
    if again:
        connection.execute(_BEGIN_AGAIN, {"of": turn_id, "attempt_now": attempt, "new_scope": scope, "now": now})
        return
    connection.execute(_BEGIN, {
        "id": turn_id, "conversation_id": chat.id, "person_id": person_id, "state": "running", "attempt": attempt,
        "character": chat.character, "scope": scope, "started_at": now,
    })  # fmt: skip


def end(
    connection: sa.Connection, ending: TurnEnd, *, parts: Sequence[NewPart], calls: Sequence[CallRow], now: datetime, limits: Limits = _LIMITS
) -> list[Message]:
    """The reply, its outbox rows and the end of `running`, in one transaction. Returns the messages that joined the log.

    Without a reply that is stored, what it wrote to saved memories is taken back (SM-71).
    """
    rows = [*ending.rows, *(item.row_id for item in ending.steered)]
    chat = conversations.conversation(connection, ending.conversation_id)
    withdrawn = message_changes.is_withdrawn(connection, ending.turn_id)
    if chat is None or withdrawn or not ending.answer:
        saved_undo.unanswered(connection, ending.turn_id, ending.attempt, now, limits)
    if chat is None:  # deleted meanwhile: nobody is to read this, but it was paid for
        inbox.finish(connection, rows, now=now, state="ignored", rule="deleted")
        record_calls(connection, [(call, {**of, "conversation_id": ""}) for call, of in calls], now)
        return []
    if withdrawn:  # edited and sent again meanwhile: the answer is to words that left the talk
        connection.execute(_WITHDRAWN, {"of": ending.turn_id, "now": now})
        inbox.finish(connection, rows, now=now, state="ignored", rule="withdrawn")
        record_calls(connection, calls, now)
        return []
    added: list[Message] = []
    add = partial(
        conversations.add_message,
        connection,
        now=now,
        conversation_id=ending.conversation_id,
        turn_id=ending.turn_id,
        attempt=ending.attempt,
        outcome=ending.state,
    )
    if ending.answer:
        if ending.attempt > 1:
            message_changes.retire_answers(connection, ending.turn_id, ending.attempt)
        answer = add(
            role="assistant",
            origin="assistant",
            author_character=ending.character,
            author_name=ending.character_name,
            text=ending.answer,
            scope=ending.scope,
            foreign_text=ending.foreign_text,
        )
        added.append(answer)
    if ending.notice:
        added.append(add(role="notice", origin="notice", text=ending.notice))
    connection.execute(_END, {
        "of": ending.turn_id, "new_state": ending.state, "new_character": ending.character, "new_model": calls[-1][0].model if calls else "",
        "new_error_code": ending.error_code, "new_receipt": dict(ending.receipt), "new_ended_at": now,
    })  # fmt: skip
    if ending.recalled is not None:
        connection.execute(_RECALLED, {"of": ending.turn_id, "kept": dict(ending.recalled)})
    if ending.steered:
        inbox.join(connection, [item.row_id for item in ending.steered], ending.turn_id)
        connection.execute(_JOIN_MESSAGES, {"messages": [item.message_id for item in ending.steered], "turn": ending.turn_id})
    inbox.finish(connection, rows, now=now, state=ending.row_state, rule=ending.error_code)
    outbox_store.put(connection, parts, now)
    record_calls(connection, calls, now)
    if ending.window_edge is not None and ending.window_edge > chat.window_edge:
        trimming.left(connection, chat, ending.scope, chat.window_edge + 1, ending.window_edge, now, overflow=ending.overflowed, into=ending.into)
        conversations.move_edge(connection, ending.conversation_id, ending.window_edge)
    return added
