"""Cutting the talk into chunks and these into parts."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import tokens
from memory.recall.chunks import CONTEXT_CHARACTERS, Chunk, Spoken, chunk_of, cut

NOON = datetime(2026, 3, 8, 12, tzinfo=UTC)
GAP = timedelta(hours=6)


def said(seq: int, text: str = "", *, minutes: int | None = None, audience: str = "") -> Spoken:
    at = NOON + timedelta(minutes=seq if minutes is None else minutes)
    return Spoken(seq=seq, id=f"m{seq}", at=at, speaker="Ann", text=text or f"word {seq}", fingerprint=f"f{seq}{text}", audience=audience)


def chunks(talk: list[Spoken], taken: set[int] = frozenset()) -> list[Chunk]:  # type: ignore[assignment]
    return cut(talk, taken, gap=GAP, part_tokens=100)


@pytest.mark.rule("RS-16")
@pytest.mark.parametrize(("count", "made"), [(4, 0), (5, 1), (9, 1), (10, 2)])
def test_a_chunk_needs_five_messages(count: int, made: int) -> None:
    talk = [said(n) for n in range(1, count + 1)]
    found = chunks(talk)
    assert len(found) == made
    taken = {message.seq for chunk in found for message in chunk.messages}
    assert [message.seq for message in talk if message.seq not in taken] == list(range(made * 5 + 1, count + 1))


@pytest.mark.rule("RS-186")
def test_audiences_have_chunks_of_their_own() -> None:
    talk = [said(n, audience="" if n % 2 else "p:ann") for n in range(1, 11)]
    assert [[message.seq for message in chunk.messages] for chunk in chunks(talk)] == [[1, 3, 5, 7, 9], [2, 4, 6, 8, 10]]


@pytest.mark.rule("RS-21")
def test_what_is_left_of_a_chunk_is_one_and_the_others_stay() -> None:
    talk = [said(n) for n in range(1, 1_001)]
    found = chunks(talk)
    left = chunk_of([message for message in found[0].messages if message.seq != 3], gap=GAP, part_tokens=100)
    assert [message.seq for message in left.messages] == [1, 2, 4, 5]
    assert left.fingerprint != found[0].fingerprint
    assert chunks(talk, {message.seq for message in talk} - {3}) == []


@pytest.mark.rule("RS-18")
def test_a_long_message_has_several_vectors_and_one_chunk() -> None:
    talk = [said(1, "hello"), said(2, "猫が公園で寝ている。" * 2_000), *(said(n) for n in range(3, 6))]
    (chunk,) = chunks(talk)
    assert len(chunk.passages) > 100
    longest = max(tokens.count(passage.text) for passage in chunk.passages)
    assert longest <= 100 + tokens.count("x" * CONTEXT_CHARACTERS) + 150


@pytest.mark.rule("RS-18")
def test_a_long_silence_parts_vectors_and_repeats_one_message_as_context() -> None:
    talk = [said(n, minutes=n if n < 4 else 600 + n) for n in range(1, 6)]
    (chunk,) = chunks(talk)
    assert [passage.text for passage in chunk.passages] == [
        "Ann: word 1\nAnn: word 2\nAnn: word 3",
        "Ann: word 3\nAnn: word 4\nAnn: word 5",
    ]
    assert [chunk.text[passage.begin : passage.end] for passage in chunk.passages][1] == "Ann: word 4\nAnn: word 5"
    (whole,) = cut(talk, (), gap=timedelta(), part_tokens=100)
    assert len(whole.passages) == 1


@pytest.mark.rule("RS-22")
def test_a_changed_message_changes_the_fingerprint() -> None:
    before, after = chunks([said(n) for n in range(1, 6)]), chunks([said(n, "other" if n == 3 else "") for n in range(1, 6)])
    assert before[0].fingerprint != after[0].fingerprint
    assert before[0].fingerprint == chunks([said(n) for n in range(1, 6)])[0].fingerprint


@pytest.mark.rule("RS-16", "RS-18")
@given(
    st.lists(st.tuples(st.text(alphabet="a猫 が。\n", max_size=300), st.integers(0, 900)), min_size=1, max_size=30),
    st.integers(20, 200),
)
def test_passages_cover_every_word_of_a_chunk_and_stand_where_they_say(talk: list[tuple[str, int]], most: int) -> None:
    clock, spoken = 0, list[Spoken]()
    for seq, (text, wait) in enumerate(talk, 1):
        clock += wait
        spoken.append(said(seq, text or "x", minutes=clock))
    for chunk in cut(spoken, (), gap=GAP, part_tokens=most):
        text = chunk.text
        covered: set[int] = set()
        for passage in chunk.passages:
            assert passage.text.endswith(text[passage.begin : passage.end])
            covered |= set(range(passage.begin, passage.end))
        assert all(at in covered for at, sign in enumerate(text) if sign.isalnum())
