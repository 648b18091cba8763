"""Deep memory: reads what has left the context of a subscriber's web chat, and keeps the few details that last (SM-79 to SM-84).

A job behind the compaction, never in the way of a reply. The model proposes; what it may touch is checked row by row, and everything it does is one
transaction with the mark that the block is read: a run that fails leaves nothing.
"""

from __future__ import annotations

import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

import sqlalchemy as sa
from pydantic import BaseModel, ConfigDict, ValidationError

from agent.llm.port import ChatModel, Finish, ModelMessage, ModelRequest, Role
from agent.prompt import words
from channels.web.adapter import BY_PROGRAM
from gateway.background import Background
from gateway.cast import character_of
from gateway.config import Config
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.parts import input_hash
from gateway.jobs.table import Job
from gateway.models import Models
from gateway.policy import resolve
from gateway.saved import deep_gate
from gateway.summaries.digesting import DEMO
from gateway.zones import zone_of
from memory import conversations, coverage, tokens
from memory.conversations import Conversation
from memory.coverage import Talk
from memory.database import Database
from memory.errors import StoreError
from memory.lenient_json import object_in
from memory.saved import hand, stored
from memory.saved.hand import Hand
from memory.saved.journal import Writer
from memory.saved.lineages import lineage_of
from memory.saved.printing import plain
from memory.saved.rows import ListKey, Memory, Origin, character_list, clean, content_hash
from memory.saved.searching import SavedSearch, Serving
from memory.saved.writing import Limits, New, Outcome
from memory.saved_schema import deep_reading
from memory.schema import messages, turns
from memory.secret_patterns import find_secret
from memory.summaries import AnswerUnusable, rendered, shown
from memory.upserts import insert_or_change

PURPOSE = "deep-memory"
AUTHOR = "deep-memory"
ROOM_MAX = 24_000  # tokens of talk in one request
ROOM_SHARE = 0.5  # of the model's window
AROUND = 24  # tokens of label, time and name around each message

log = logging.getLogger(__name__)

_r = deep_reading.c
_READ = sa.select(deep_reading).where(_r.conversation_id == sa.bindparam("of"))
_PUT = insert_or_change(deep_reading, ["conversation_id"], ["read_seq", "ran_at"])
_ADDED = (
    sa.select(messages.c.id, turns.c.receipt)
    .outerjoin(turns, turns.c.id == messages.c.turn_id)
    .where(
        messages.c.conversation_id == sa.bindparam("of"),
        messages.c.origin.in_(["person", "assistant"]),
        messages.c.state == "live",
        messages.c.canonical,
    )
)


class Operation(BaseModel):
    """What the model proposes of one row. `character`: an id of the configuration, of a save."""

    model_config = ConfigDict(extra="ignore", frozen=True)

    op: Literal["save", "update", "delete"]
    id: int = 0
    content: str = ""
    character: str = ""


class _Answer(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)

    operations: list[dict[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Work:
    """One run. `lineages`: of the learning characters by their ids; `rows`: of their lists with this person; `last`: number of the newest message
    that is read; `added`: messages since the last run."""

    chat: Conversation
    person: str
    lineages: Mapping[str, str]
    rows: tuple[Memory, ...]
    talk: tuple[Talk, ...]
    zone: Any
    last: int
    added: int

    @property
    def lists(self) -> dict[str, ListKey]:
        return {name: character_list(self.person, lineage) for name, lineage in self.lineages.items()}


class DeepMemory:
    """The job's handler. `serving`: who makes vectors of rows now; `limits`: of lists, as they are now; `on_written`: rows have changed."""

    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        models: Models,
        background: Background,
        search: SavedSearch,
        serving: Callable[[], Serving],
        limits: Callable[[], Limits],
        on_written: Callable[[], None],
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._models = models
        self._background = background
        self._search = search
        self._serving = serving
        self._limits = limits
        self._on_written = on_written

    async def run(self, job: Job, context: JobContext) -> JobResult:
        work = await self._db.write(lambda connection: self._look(connection, job))
        if isinstance(work, str):
            return JobResult(skipped=work)
        character = character_of(self._config(), work.chat.character)
        chosen = self._config().summary.model
        if self._models.helper_account(character.model, chosen=chosen).provider == DEMO:
            return JobResult(skipped="the demo model cannot do it")
        async with self._models.helper(character.model, chosen=chosen) as model:
            operations = await self._asked(context, model, work)
        can_evict = await self._embeddable([each.content for each in operations if each.op == "save"])

        def write(connection: sa.Connection) -> list[Outcome]:
            now = self._clock()
            values = {"conversation_id": work.chat.id, "read_seq": work.last, "ran_at": now}
            connection.execute(_PUT[connection.dialect.name], values)
            return [self._apply(connection, context, work, operation, can_evict, now) for operation in operations]

        outcomes = await context.write(write)  # from here on the block counts as read: a run that is killed now does nothing twice
        self._on_written()
        counts = Counter(str(outcome) for outcome in outcomes)
        return JobResult(output={"messages": len(work.talk), "outcomes": dict(counts)})

    def _look(self, connection: sa.Connection, job: Job) -> Work | str:
        """What there is to read; or why there is nothing to do, by what is stored now (SM-79, SM-81)."""
        chat = conversations.conversation(connection, str(job.payload["conversation"]))
        now, config = self._clock(), self._config()
        if chat is None or not deep_gate.gate_of(connection, chat, now).is_open:
            return "not for this chat"
        if not resolve(config.policies, platform=chat.channel, chat_kind=chat.kind, in_space=False, signed_in=True).deep_memory:
            return "switched off"
        reading = connection.execute(_READ, {"of": chat.id}).one_or_none()
        read_seq, ran_at = (reading.read_seq, reading.ran_at) if reading is not None else (0, None)
        last = int(job.payload["last"])
        if last <= read_seq:
            return "read already"
        since = _ADDED if ran_at is None else _ADDED.where(messages.c.created_at > ran_at)
        added = [row.id for row in connection.execute(since, {"of": chat.id}) if not _by_program(row.receipt)]
        if len(added) < config.saved.deep_min_messages:
            return "too few new messages"
        ours = {row.id for row in connection.execute(_ADDED, {"of": chat.id}) if not _by_program(row.receipt)}
        talk = coverage.talk_in(connection, chat.id, job.scope, [(read_seq + 1, last)])
        learners = deep_gate.learners(connection, chat)
        lineages = {each: lineage_of(connection, each, character_of(config, each).name, now) for each in learners}
        lists = [character_list(chat.person_id or "", lineage) for lineage in lineages.values()]
        return Work(
            chat=chat,
            person=chat.person_id or "",
            lineages=lineages,
            rows=tuple(row for row in stored.rows_of(connection, lists) if not row.archived),
            talk=tuple(message for message in talk if message.id in ours and not message.foreign_text),
            zone=zone_of(connection, job.scope, config.timezone),
            last=last,
            added=len(added),
        )

    async def _asked(self, context: JobContext, model: ChatModel, work: Work) -> list[Operation]:
        """At most `deep_ops_max` operations in form; what is more is dropped. AnswerUnusable, ModelError, BudgetSpent."""
        if not work.talk:
            return []
        most = self._config().saved.deep_ops_max
        system = (
            words("deep_memory")
            .replace("{first}", next(iter(work.lineages)))
            .replace("{most}", str(most))
            .replace("{limit}", str(self._limits().content))
            .replace("{characters}", ", ".join(work.lineages))
        )
        text = _material(work, max(400, min(ROOM_MAX, int(model.context_window * ROOM_SHARE))))
        request = ModelRequest(messages=(ModelMessage(role=Role.SYSTEM, text=system), ModelMessage(role=Role.USER, text=text)), purpose=PURPOSE)

        async def make() -> list[dict[str, Any]]:
            answer, end = await self._background.ask(model, request, {"conversation_id": work.chat.id})
            if end.reason is not Finish.STOP:
                raise AnswerUnusable(f"the answer ended with {end.reason.value}")
            return parsed(answer)

        raw = await context.paid("answer", input_hash(model.name, system, text), make)
        return kept(raw)[:most]

    async def _embeddable(self, contents: Sequence[str]) -> frozenset[str]:
        """Hashes of the candidates that have a vector: only these may push a row out of a full list (SM-83)."""
        texts = list(dict.fromkeys(map(clean, contents)))
        try:
            embedder = self._serving().embedder if self._search.ageing_on else None
            vectors = await embedder.documents(texts) if embedder is not None and texts else []
        except StoreError as error:
            log.warning("deep memory makes no room in full lists this time: %s", error)
            return frozenset()
        return frozenset(content_hash(text) for text, vector in zip(texts, vectors, strict=False) if vector is not None)

    def _apply(
        self, connection: sa.Connection, context: JobContext, work: Work, operation: Operation, can_evict: frozenset[str], now: datetime
    ) -> Outcome:
        by = Hand(
            writer=Writer(
                actor="deep",
                run_id=f"deep-{context.id}",
                conversation_id=work.chat.id,
                source_messages=tuple(message.id for message in work.talk),
            ),
            lists=frozenset(work.lists.values()),
            sent={row.id: row.revision for row in work.rows},
            visible=[row.id for row in work.rows],
            search_ok=content_hash(clean(operation.content)) in can_evict,
            ageing_on=self._search.ageing_on,
            private=True,
            operations_max=self._config().saved.deep_ops_max,
            limits=self._limits(),
            author_id=AUTHOR,
        )
        match operation.op:
            case "update":
                return hand.update(connection, by, operation.id, operation.content, now).outcome
            case "delete":
                return hand.delete(connection, by, operation.id, now).outcome
            case "save":
                key = work.lists.get(operation.character) or next(iter(work.lists.values()))
                source = {"platform": work.chat.channel, "chat": work.chat.id, "messages": [message.id for message in work.talk]}
                new = New(key=key, content=operation.content, origin=Origin.DEEP, author_kind="job", source=source)
                return hand.save(connection, by, new, now).outcome


def parsed(answer: str) -> list[dict[str, Any]]:
    """The operations of an answer as they came. Raises AnswerUnusable."""
    found = object_in(answer)
    if found is None:
        raise AnswerUnusable("the answer is no JSON object")
    try:
        return _Answer.model_validate(found).operations
    except ValidationError as error:
        raise AnswerUnusable(f"the answer has another form: {error.errors(include_input=False, include_url=False)[0]['msg']}") from error


def kept(raw: Sequence[Mapping[str, Any]]) -> list[Operation]:
    """Those that can be meant: in form, and without a secret."""
    found: list[Operation] = []
    for each in raw:
        try:
            operation = Operation.model_validate(each)
        except ValidationError:
            continue
        if find_secret(clean(operation.content)) is None:  # as it would be kept
            found.append(operation)
    return found


def _material(work: Work, room: int) -> str:
    """What the model reads: the memories by character, then the newest talk that fits."""
    rows: list[str] = []
    for name, key in work.lists.items():
        rows += [json.dumps(_row(memory, name), ensure_ascii=False) for memory in work.rows if memory.key == key]
    talk, left = list[Talk](), room
    for message in reversed(work.talk):
        left -= tokens.count(shown(message)) + AROUND
        if left < 0 and talk:
            break
        talk.insert(0, message)
    standing = "\n".join(rows) or "(none)"
    return f"Memories that stand:\n{standing}\n\nThe talk:\n{rendered(talk, work.zone)}"


def _row(memory: Memory, character: str) -> dict[str, Any]:
    text = plain(memory.content)
    return {"fixed": text, "character": character} if memory.pinned else {"id": memory.id, "character": character, "text": text}


def _by_program(receipt: Mapping[str, Any] | None) -> bool:
    return bool(receipt) and receipt.get("via") == BY_PROGRAM
