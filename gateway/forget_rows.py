"""Rows that hold the words of what is forgotten: proposals, dreams, changes, summary blocks, paid answers of jobs, messages (WD-92)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import sqlalchemy as sa

from gateway import forget_log
from memory import dream_store, proposal_store, provenance
from memory.dream_store import Dream
from memory.file_schema import file_changes, file_lines, proposals, summary_blocks
from memory.forget_match import Held, redacted_diary, without_lines
from memory.lines import line_hash
from memory.provenance import ChangedLine
from memory.recall.real_talk import words_of
from memory.schema import job_parts, jobs, messages

CHANGES = 100_000  # all of them

_PROPOSALS = sa.select(proposals).where(proposals.c.scope == sa.bindparam("scope"), proposals.c.kind != "forget")
_QUESTIONS = sa.select(proposals).where(proposals.c.scope == sa.bindparam("scope"), proposals.c.kind == "forget")
_CHATS = sa.select(messages.c.conversation_id).where(messages.c.scope == sa.bindparam("scope")).distinct()
_BLOCKS = sa.select(summary_blocks).where(summary_blocks.c.conversation_id.in_(_CHATS))
_PARTS = sa.select(job_parts).join(jobs, jobs.c.id == job_parts.c.job_id).where(jobs.c.scope == sa.bindparam("scope"))
_TALK = (
    sa.select(messages.c.id, messages.c.text, messages.c.attachments, messages.c.author_person_id)
    .where(
        (messages.c.scope == sa.bindparam("scope")) | ((messages.c.role == "notice") & messages.c.conversation_id.in_(_CHATS)),
        messages.c.state != "forgotten",
    )
    .order_by(messages.c.seq)
)
_SOURCES = sa.select(file_lines.c.sources).where(
    file_lines.c.scope == sa.bindparam("scope"), file_lines.c.hash.in_(sa.bindparam("hashes", expanding=True))
)
_PATHS = sa.select(file_changes.c.path).where(file_changes.c.scope == sa.bindparam("scope")).distinct()


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRows:
    """`texts`: store and words of each; `messages`: ids of the messages of this scope that say it or that the lines rest on; `paths`: of files that
    were changed at some time, also of those that are gone."""

    texts: tuple[tuple[str, str], ...]
    messages: tuple[str, ...]
    paths: set[str]


def found_rows(connection: sa.Connection, scope: str, held: Held, hashes: Collection[str], *, author: str) -> FoundRows:
    """`author`: only this person's messages."""
    of = {"scope": scope}
    texts: list[tuple[str, str]] = []
    for row in connection.execute(_PROPOSALS, of):
        if held.in_json(row.payload):
            payload: dict[str, Any] = row.payload
            texts.append(("candidate" if row.kind == "candidate" else "change", str(payload.get("text", ""))))
    texts += [("dream", "") for dream in dream_store.all_of(connection, scope) if _tells(dream, held)]
    texts += [("block", "") for row in connection.execute(_BLOCKS, of) if held.in_text(row.text)]
    texts += [("title", title) for title in forget_log.titles_with(connection, scope, held).values()]
    return FoundRows(
        texts=tuple(texts),
        messages=_messages(connection, scope, held, hashes, author),
        paths={str(path) for path in connection.execute(_PATHS, of).scalars()},
    )


def clean_rows(
    connection: sa.Connection,
    *,
    scope: str,
    held: Held,
    hashes: Collection[str],
    messages: bool,
    sources: Iterable[str],
    removed: str,
    now: datetime,
) -> dict[str, int]:
    """Take the words out of every row that holds them; how many by store. `removed` takes the place of a dream's narrative."""
    of = {"scope": scope}
    gone = [row for row in connection.execute(_PROPOSALS, of) if held.in_json(row.payload)]
    asked = [row.id for row in connection.execute(_QUESTIONS, of) if held.in_json(row.payload)]  # this very question, and older ones
    proposal_store.delete(connection, [*(row.id for row in gone), *asked])
    dreams = [dream for dream in dream_store.all_of(connection, scope) if _tells(dream, held)]
    for dream in dreams:
        left = [each for each in dream.changes if not any(map(held.in_text, (each.text, *each.old))) and not set(each.hashes) & set(hashes)]
        dream_store.rewrite(connection, dream.id, changes=left, diary=redacted_diary(dream.diary, held, removed))
        if dream.state == "refused":  # what is left of it can be decided no more
            connection.execute(sa.delete(proposals).where(proposals.c.scope == scope, proposals.c.kind == "dream", proposals.c.run_id == dream.id))
    for change in provenance.changes_of(connection, scope, CHANGES):
        was, is_ = _left(change.removed, held, hashes), _left(change.added, held, hashes)
        if (was, is_) != (change.removed, change.added):
            provenance.rewrite_change(connection, replace(change, removed=was, added=is_))
    blocks = [row for row in connection.execute(_BLOCKS, of) if held.in_text(row.text)]
    for row in blocks:
        _rewrite_block(connection, row.id, without_lines(row.text, held), now)
    for row in connection.execute(_PARTS, of).all():
        if held.in_json(row.output):
            connection.execute(sa.delete(job_parts).where(job_parts.c.job_id == row.job_id, job_parts.c.part == row.part))
    said = list(sources)
    taken = said if messages else []
    for message_id in taken:
        forget_log.take(connection, message_id)
    forget_log.make_blocks_anew(connection, said, now)
    return {
        "candidate": sum(row.kind == "candidate" for row in gone),
        "change": sum(row.kind != "candidate" for row in gone),
        "dream": len(dreams),
        "block": len(blocks),
        "message": len(taken),
        "title": forget_log.clear_titles(connection, scope, held),
    }


def _tells(dream: Dream, held: Held) -> bool:
    return held.in_text(dream.diary) or held.in_text(dream.staged or "") or any(held.in_text(text) for text in _words(dream))


def _words(dream: Dream) -> Iterator[str]:
    for each in dream.changes:
        yield from (each.text, *each.old)
    for line in (*dream.booking.removed, *dream.booking.added):
        yield line.text
    for each in dream.booking.candidates:
        yield each.text


def _left(lines: tuple[ChangedLine, ...], held: Held, hashes: Collection[str]) -> tuple[ChangedLine, ...]:
    return tuple(line for line in lines if line_hash(line.text) not in hashes and not held.in_text(line.text))


def _rewrite_block(connection: sa.Connection, block_id: int, text: str, now: datetime) -> None:
    if text.strip():
        connection.execute(sa.update(summary_blocks).where(summary_blocks.c.id == block_id).values(text=text, updated_at=now))
    else:
        connection.execute(sa.delete(summary_blocks).where(summary_blocks.c.id == block_id))


def _messages(connection: sa.Connection, scope: str, held: Held, hashes: Collection[str], author: str) -> tuple[str, ...]:
    """Of this scope only, whatever a line names as its source."""
    sources = {each for some in connection.execute(_SOURCES, {"scope": scope, "hashes": list(hashes)}).scalars() for each in (some or ())}
    found = (row for row in connection.execute(_TALK, {"scope": scope}) if not author or row.author_person_id == author)
    return tuple(row.id for row in found if row.id in sources or any(map(held.in_text, (row.text, *words_of(row.attachments)))))
