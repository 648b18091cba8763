"""The block of recalled passages: whole messages around the best match, nothing twice, the past marked as past."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import tokens
from memory.recall import block
from memory.recall.block import CHUNK_TOKENS, Passage
from memory.recall.chunks import Spoken

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
TOKYO = ZoneInfo("Asia/Tokyo")


def said(seq: int, text: str) -> Spoken:
    return Spoken(seq=seq, id=f"m{seq}", at=NOON + timedelta(minutes=seq), speaker="Ann", text=text, fingerprint=str(seq))


def passage(first: int, *texts: str, best: int = 0) -> Passage:
    return Passage(chunk_id=first, chat="c", messages=tuple(said(first + at, text) for at, text in enumerate(texts)), best=best)


@pytest.mark.rule("RS-32")
def test_eight_huge_chunks_stay_inside_and_are_cut_at_message_borders() -> None:
    found = [passage(10 * n, *["long words " * 60] * 5, best=2) for n in range(1, 10)]
    quotes = block.excerpts(found, 1_536)
    assert sum(quote.tokens for quote in quotes) <= 1_536
    assert all(quote.tokens <= CHUNK_TOKENS for quote in quotes)
    assert all(quote.messages[0].text == "long words " * 60 for quote in quotes)
    assert len(block.excerpts(found, 10**6)) == 8


@pytest.mark.rule("RS-32", "RS-18")
def test_neighbours_of_the_best_match_come_along_and_stand_together() -> None:
    (quote,) = block.excerpts([passage(1, "a", "b " * 2_000, "the match", "d", "e", best=2)], 1_536)
    assert [message.seq for message in quote.messages] == [3, 4, 5]


@pytest.mark.rule("RS-73")
def test_the_block_says_what_is_live_and_which_message_is_to_be_answered() -> None:
    quotes = block.excerpts([passage(40, "newer"), passage(1, "シロと公園", "小白胖了")], 1_536)
    text = block.text(quotes, TOKYO, live=range(90, 121), newest=120)
    assert "messages 90 to 120 are live" in text
    assert "number 120" in text
    assert text.index("シロと公園") < text.index("newer")
    assert "2026-03-08 21:01 Ann: シロと公園" in text
    assert block.text((), TOKYO, live=(), newest=1) == ""


@pytest.mark.rule("RS-72", "RS-32")
@given(
    st.lists(st.tuples(st.integers(1, 30), st.lists(st.integers(1, 300), min_size=1, max_size=5), st.integers(0, 4)), max_size=10),
    st.integers(0, 2_000),
)
def test_no_message_is_told_twice_and_the_room_is_kept(found: list[tuple[int, list[int], int]], room: int) -> None:
    passages = [passage(first, *("w " * size for size in sizes), best=best % len(sizes)) for first, sizes, best in found]
    quotes = block.excerpts(passages, room)
    seqs = [message.seq for quote in quotes for message in quote.messages]
    assert len(seqs) == len(set(seqs))
    assert sum(quote.tokens for quote in quotes) <= room
    for quote in quotes:
        assert [message.seq for message in quote.messages] == list(range(quote.messages[0].seq, quote.messages[-1].seq + 1))
        assert quote.tokens >= sum(tokens.count(message.line) for message in quote.messages)


@pytest.mark.rule("RS-171", "RS-189")
@pytest.mark.parametrize(
    "lines", [("I sold the boat", "it was fun"), ("船を売りました", "楽しかったです"), ("我把船卖了", "那真好玩")], ids=["en", "ja", "zh"]
)
def test_what_is_left_after_a_forget_does_not_read_as_said_in_one_go(lines: tuple[str, str]) -> None:
    first, second = said(1, lines[0]), replace(said(3, lines[1]), gap=True)
    (quote,) = block.excerpts([Passage(chunk_id=1, chat="c", messages=(first, second), best=0)], 1_536)
    shown = block.text([quote], TOKYO, live=(), newest=9).splitlines()[1:-1]
    assert shown == [f"2026-03-08 21:01 Ann: {lines[0]}", block.GAP, f"2026-03-08 21:03 Ann: {lines[1]}"]
    assert quote.tokens >= sum(tokens.count(line) for line in shown[1:]), "the mark is counted too"
    alone = block.excerpts([Passage(chunk_id=1, chat="c", messages=(second,), best=0)], 1_536)
    assert block.GAP not in block.text(alone, TOKYO, live=(), newest=9), "nothing stands before it"
