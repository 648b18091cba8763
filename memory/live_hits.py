"""From a chunk of the index to a hit that can be told: read again from the live file, cut to a snippet, with lines and origin (WD-102, WD-113)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import sqlalchemy as sa

from memory import provenance
from memory.areas import IndexArea
from memory.comparing import Compared
from memory.file_errors import FileUnreadable, PathRefused
from memory.index_schema import file_chunks, file_passages
from memory.lines import entries
from memory.markdown_lines import unix
from memory.provenance import LineRow, Origin, origin_of
from memory.scopes import Scope, scope_or_none
from memory.snippets import Span, snippet
from memory.words import Term
from memory.workspace import Workspace

# Where several lines stand in one snippet, the hit is as trustworthy as the least of them.
_TRUST = (Origin.MIXED, Origin.UNSOURCED, Origin.IMPORTED, Origin.ASSISTANT, Origin.PERSON, Origin.HUMAN)
_FENCES = ("```", "~~~")

_C, _P = file_chunks.c, file_passages.c
_IDS = sa.bindparam("ids", type_=sa.BigInteger, expanding=True)
_CHUNKS = sa.select(_C.id, _C.scope, _C.path, _C.heading, _C.text, _C.first_line, _C.local_date).where(
    _C.id.in_(_IDS), _C.area.in_(sa.bindparam("areas", type_=sa.Text, expanding=True))
)
_PASSAGES = sa.select(_P.chunk_id, _P.position, _P.begin, _P.end).where(_P.chunk_id.in_(_IDS))


@dataclass(frozen=True, slots=True, kw_only=True)
class Hit:
    """One find. `first_line`, `last_line`: of the snippet, from 1, in the file as it is now; `date`: of a daily file, YYYY-MM-DD, else empty;
    `origin`: whose words it rests on, the least trusted of its lines; `accepted`: good enough to be brought up unasked (RS-174, RS-175);
    `fits`: good enough for a list that somebody reads."""

    scope: Scope
    path: str
    first_line: int
    last_line: int
    date: str
    origin: Origin
    heading: str
    snippet: str
    score: float
    accepted: bool
    fits: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Stored:
    """A chunk as the index has it. `near`: its passage whose vector was nearest; `known`: the program's lines of its file."""

    chunk_id: int
    scope: Scope
    path: str
    heading: str
    text: str
    first_line: int
    local_date: str
    near: Span | None
    known: Mapping[str, LineRow]


def stored(connection: sa.Connection, ids: Sequence[int], areas: Sequence[IndexArea], nearest: Mapping[int, int]) -> list[Stored]:
    """Chunks of these areas by id; others are not found. `nearest`: positions of the nearest passages by chunk."""
    rows = connection.execute(_CHUNKS, {"ids": list(ids), "areas": list(areas)}).all()
    passages = connection.execute(_PASSAGES, {"ids": list(nearest)}) if nearest else ()
    near = {row.chunk_id: Span(row.begin, row.end) for row in passages if nearest[row.chunk_id] == row.position}
    known: dict[tuple[str, str], Mapping[str, LineRow]] = {}
    for row in rows:
        if (row.scope, row.path) not in known:
            known[(row.scope, row.path)] = provenance.lines_of(connection, row.scope, row.path)
    return [
        Stored(
            chunk_id=row.id,
            scope=scope,
            path=row.path,
            heading=row.heading,
            text=row.text,
            first_line=row.first_line,
            local_date=row.local_date,
            near=near.get(row.id),
            known=known[(row.scope, row.path)],
        )
        for row in rows
        if (scope := scope_or_none(row.scope)) is not None
    ]


def live(
    workspace: Workspace, compared: Sequence[Compared], chunks: Mapping[int, Stored], terms: Sequence[Term], limit: int
) -> tuple[tuple[Hit, ...], set[tuple[Scope, str]]]:
    """Up to `limit` hits, best first, of what the files still say; and the files that do not say what the index says they do."""
    texts: dict[tuple[Scope, str], str] = {}
    hits: list[Hit] = []
    stale: set[tuple[Scope, str]] = set()
    for each in compared:
        chunk = chunks.get(each.chunk_id)
        if chunk is None or len(hits) >= limit:
            continue
        spot = (chunk.scope, chunk.path)
        if spot not in texts:
            texts[spot] = _content(workspace, chunk.scope, chunk.path)
        hit = _hit(each, chunk, texts[spot], terms)
        if hit is None:
            stale.add(spot)
        else:
            hits.append(hit)
    return tuple(hits), stale


def _content(workspace: Workspace, scope: Scope, path: str) -> str:
    """The file as it is now, line ends as the index has them; empty for what is gone or cannot be read."""
    try:
        text = workspace.read(scope, path)
    except (FileUnreadable, PathRefused):
        return ""
    return "" if text is None else unix(text.content)


def _hit(compared: Compared, chunk: Stored, content: str, terms: Sequence[Term]) -> Hit | None:
    """None when the file does not say it any more."""
    at = _where(content, chunk.text, chunk.first_line)
    if at < 0:
        return None
    span = snippet(chunk.text, terms, chunk.near)
    first = content.count("\n", 0, at + span.begin) + 1
    last = first + content.count("\n", at + span.begin, at + span.end)
    return Hit(
        scope=chunk.scope,
        path=chunk.path,
        first_line=first,
        last_line=last,
        date=chunk.local_date,
        origin=_origin(content, first, last, chunk.known),
        heading=chunk.heading,
        snippet=chunk.text[span.begin : span.end],
        score=compared.score,
        accepted=compared.accepted,
        fits=compared.fits,
    )


def _origin(content: str, first: int, last: int, known: Mapping[str, LineRow]) -> Origin:
    if not known:
        return Origin.HUMAN
    begin = 1
    if not any(fence in content for fence in _FENCES):  # a part is cut into entries like the whole: no need to cut all of a long file
        lines = content.split("\n")
        begin = next((at for at in range(first, 1, -1) if lines[at - 1][:1].strip()), 1)
        behind = next((at for at in range(last, len(lines)) if lines[at][:1].strip() or not lines[at].strip()), len(lines))
        content = "\n".join(lines[begin - 1 : behind])
    found = {
        origin_of(entry, known) for entry in entries(content) if entry.first + begin - 1 <= last and first <= entry.last + begin - 1
    }
    return next((origin for origin in _TRUST if origin in found), Origin.HUMAN)


def _where(content: str, text: str, first_line: int) -> int:
    """Where `text` stands, at its old line or elsewhere; -1 when it is gone."""
    at = 0
    for _ in range(first_line - 1):
        at = content.find("\n", at) + 1
        if not at:
            return content.find(text)
    behind = content.find(text, at)
    return behind if behind >= 0 else content.find(text)
