"""What stands in the context for turns that left it (WD-42, WD-43, WD-46): rows of `summary_blocks`. Plain functions on a `Connection`.

A block begins as a plain extract, in the transaction that moves the edge, and becomes the summary when that is made. It is the program's text and is
stored nowhere as anybody's words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

import sqlalchemy as sa

from memory import tokens
from memory.file_schema import summary_blocks
from memory.recall.fitting import Piece, Standing, Stood, below
from memory.schema import conversations
from memory.upserts import insert_or_change

TOKENS_MAX = 2_000  # of all blocks of one context
_TO_THE_END = 2**62  # beyond every number of the log
HEAD = "[summary of earlier talk in this chat, made by the program; nobody's own words]"

BlockKind = Literal["extract", "summary"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """`text`: one bullet a line, without dashes around it; empty when nothing was worth keeping."""

    id: int
    conversation_id: str
    first_seq: int
    last_seq: int
    kind: BlockKind
    text: str


def put_extract(connection: sa.Connection, conversation_id: str, first: int, last: int, text: str, now: datetime) -> None:
    """A new block for a stretch; one that is there already is put back to this extract."""
    of = {"conversation_id": conversation_id, "first_seq": first, "last_seq": last}
    values = {**of, "kind": "extract", "text": text, "created_at": now, "updated_at": now}
    connection.execute(_PUT[connection.dialect.name], values)


def become_summary(connection: sa.Connection, conversation_id: str, first: int, last: int, text: str, now: datetime) -> bool:
    """The summary takes the place of the extract, and of all summaries between `first` and `last`. False when the block was dropped (`/clear`)."""
    values = {"of": conversation_id, "first": first, "last": last, "new_text": text, "now": now}
    if connection.execute(_BECOME, values).rowcount == 0:
        return False
    connection.execute(_MERGED, values)
    return True


def blocks_of(connection: sa.Connection, conversation_id: str) -> list[Block]:
    return [Block(**row._mapping) for row in connection.execute(_ALL, {"of": conversation_id})]  # pyright: ignore[reportPrivateUsage]


def meeting(connection: sa.Connection, conversation_id: str, first: int, last: int) -> list[Block]:
    """The blocks that speak of messages with these numbers."""
    return [block for block in blocks_of(connection, conversation_id) if block.last_seq >= first and block.first_seq <= last]


def standing(connection: sa.Connection, conversation_id: str, *, before: int = _TO_THE_END, ahead: Sequence[Block] = ()) -> Standing:
    """What the prompt says of the turns that left, within 2,000 tokens, the newest first to stay; nothing when nothing did. `before`: the number of
    the question: what speaks of that or of later messages is not for its answer (RS-76). `ahead`: blocks that would be the newest (RS-78)."""
    found = [Block(**row._mapping) for row in connection.execute(_STANDING, {"of": conversation_id, "before": before})]  # pyright: ignore[reportPrivateUsage]
    found += ahead
    return below(HEAD, [piece for block in found for piece in pieces_of(block)], TOKENS_MAX)


def pieces_of(block: Block) -> list[Piece]:
    """Its lines as a prompt shows them."""
    of = Stood(id=block.id, kind="block", first=block.first_seq, last=block.last_seq)
    return [Piece(of=of, label="- ", words=line) for line in block.text.split("\n") if line.strip()]


def fitting(lines: list[str], room: int) -> list[str]:
    """The longest end of `lines` within `room` tokens."""
    kept: list[str] = []
    for line in reversed(lines):
        room -= tokens.count(f"- {line}\n")
        if room < 0:
            break
        kept.append(line)
    return kept[::-1]


def drop(connection: sa.Connection, conversation_id: str) -> None:
    """The context was emptied for good: nothing stands for what left it."""
    connection.execute(_DROP_ALL, {"of": conversation_id})


def drop_one(connection: sa.Connection, block: Block) -> None:
    connection.execute(_DROP, {"number": block.id})


# -- statements, built once ------------------------------------------------------------------------------------------------

_COLUMN = summary_blocks.c
_OF = _COLUMN.conversation_id == sa.bindparam("of")
_PUT = insert_or_change(summary_blocks, ["conversation_id", "last_seq"], ["kind", "text", "first_seq", "updated_at"])
_FIELDS = [_COLUMN[name] for name in Block.__dataclass_fields__]
_ALL = sa.select(*_FIELDS).where(_OF).order_by(_COLUMN.last_seq)
_STANDING = (
    sa.select(*_FIELDS)
    .join(conversations, conversations.c.id == _COLUMN.conversation_id)
    .where(_OF, _COLUMN.last_seq <= conversations.c.window_edge, _COLUMN.last_seq < sa.bindparam("before", type_=sa.BigInteger))
    .order_by(_COLUMN.last_seq)
)
_BECOME = (
    sa.update(summary_blocks)
    .where(_OF, _COLUMN.last_seq == sa.bindparam("last"))
    .values(kind="summary", first_seq=sa.bindparam("first"), text=sa.bindparam("new_text"), updated_at=sa.bindparam("now"))
)
_MERGED = sa.delete(summary_blocks).where(
    _OF, _COLUMN.kind == "summary", _COLUMN.first_seq >= sa.bindparam("first"), _COLUMN.last_seq < sa.bindparam("last")
)
_DROP_ALL = sa.delete(summary_blocks).where(_OF)
_DROP = sa.delete(summary_blocks).where(_COLUMN.id == sa.bindparam("number"))
