"""The one search of a reply over its visible rows: what matches, what is not compared, and how a failure looks."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import timedelta

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import words
from memory.database import Database
from memory.embedders.calibration import ROWS, Calibration, calibrate
from memory.embedders.hashed import hash_embedder
from memory.index_errors import EmbedderFailed
from memory.ports import Matrix, Vector
from memory.query import Query
from memory.saved import row_vectors
from memory.saved.ageing import may_tick
from memory.saved.found import Found, Searched
from memory.saved.matching import match, query_of
from memory.saved.rows import Memory, content_hash
from memory.saved.searching import SavedSearch, SearchSettings, Serving
from memory.vectors import packed
from tests.conftest import FakeClock
from tests.memory.saved.places import GLOBAL, MINE, NOW, PLACE, ids, private, row
from tests.memory.saved.stage import Stage

# -- the query ---------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-30")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("ok", ""),
        ("yes", "yes"),
        ("  yes \n", "yes"),
        ("猫", ""),
        ("猫?", "猫?"),
        ("ねこ", "ねこ"),
        ("小猫", "小猫"),
        ("고양", "고양"),
        ("", ""),
        (" \u3000\n ", ""),
        ("cafe\u0301", "café"),
        ("x" * 1001, "x" * 1000),
        ("か\u3099" * 1001, "が" * 1000),
    ],
)
def test_what_is_searched_for(text: str, query: str) -> None:
    assert query_of(text) == query


# -- the ranking -------------------------------------------------------------------------------------------------------

AXES = 8


def axis(*near: float) -> Vector:
    """A unit vector with these cosines to the first axes."""
    vector = np.zeros(AXES, dtype=np.float32)
    vector[: len(near)] = near
    vector[-1] = np.sqrt(max(0.0, 1 - float(vector @ vector)))
    return vector


QUESTION = np.eye(AXES, dtype=np.float32)[0]


def matched(rows: Sequence[Memory], cosines: Iterable[float], query: str = "zzz", *, floor: float = 0.5, most: int = 3) -> list[int]:
    vectors = np.stack([axis(cosine) for cosine in cosines])
    tokens = [words.tokens(each.content) for each in rows]
    return ids(match(rows, vectors, tokens, QUESTION, query, floor=floor, words_weight=0.2, most=most))


@pytest.mark.rule("SM-32", "T6")
def test_good_matches_spread_over_all_lists_are_three_in_total() -> None:
    rows = [row(number, key=(GLOBAL, MINE, PLACE)[number % 3]) for number in range(9)]
    assert matched(rows, [0.6 + 0.01 * number for number in range(9)]) == [8, 7, 6]


@pytest.mark.rule("SM-32")
def test_fewer_good_rows_fewer_matches() -> None:
    rows = [row(1), row(2), row(3)]
    assert matched(rows, [0.9, 0.1, 0.2]) == [1]
    assert matched(rows, [0.1, 0.1, 0.2]) == []
    assert ids(match([], np.zeros((0, AXES), dtype=np.float32), [], QUESTION, "zzz", floor=0.5, words_weight=0.2, most=3)) == []


@pytest.mark.rule("SM-32")
def test_equal_to_the_floor_is_not_above_it() -> None:
    assert matched([row(1), row(2)], [0.5, 0.75], floor=0.5) == [2]
    assert matched([row(1), row(2)], [0.500001, 0.1], floor=0.5) == [1]


@pytest.mark.rule("SM-32")
def test_a_tie_goes_to_what_was_matched_longest_ago_then_to_the_lower_id() -> None:
    hour = timedelta(hours=1)
    rows = [
        row(1, "same", last_matched_at=NOW),
        row(5, "same"),
        row(4, "same"),
        row(2, "same", last_matched_at=NOW - hour),
        row(3, "same", last_matched_at=NOW - 2 * hour),
    ]
    assert matched(rows, [0.8] * 5) == [4, 5, 3]
    assert matched(rows, [0.8] * 5, most=5) == [4, 5, 3, 2, 1]


@pytest.mark.rule("SM-32", "T7")
@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("Her friend Quillanta lives in Ghent", "Quillanta wrote to me"),
        ("友達の詩緒莉はゲントに住んでいる", "詩緒莉から手紙が来た"),
        ("朋友欧阳奚若住在根特", "奚若来信了"),
    ],
)
def test_a_rare_name_in_message_and_row_matches_below_the_floor(text: str, query: str) -> None:
    rows = [row(1, text), *(row(number, f"something else {number}") for number in range(2, 12))]
    assert matched(rows, [0.1] * 11, query) == [1]


@pytest.mark.rule("SM-32")
@pytest.mark.parametrize(
    ("text", "query"),
    [("He is at the sea and it is cold", "what is it like to be the best?"), ("私は海が好きです", "あれは何ですか"), ("他是我的朋友", "是的,我也是")],
)
def test_words_that_everybody_uses_match_nothing(text: str, query: str) -> None:
    assert matched([row(1, text), row(2, "x")], [0.1, 0.1], query) == []


@pytest.mark.rule("SM-32")
@given(st.lists(st.integers(-9, 9), min_size=1, max_size=12), st.integers(0, 4))
def test_with_vectors_alone_the_matches_are_the_nearest_above_the_floor(tenths: list[int], most: int) -> None:
    rows = [row(number) for number in range(len(tenths))]
    expected = sorted((number for number, near in enumerate(tenths) if near > 3), key=lambda number: (-tenths[number], number))
    assert matched(rows, [near / 10 for near in tenths], floor=0.3 + 1e-3, most=most) == expected[:most]


# -- the search --------------------------------------------------------------------------------------------------------


class Scripted:
    """An embedder that gives vectors by text, for whatever is not written down one that is near to nothing."""

    label, batch, passage_tokens = "scripted", 16, 0

    def __init__(self, known: Mapping[str, Vector], fingerprint: str = "scripted/1") -> None:
        self.fingerprint = fingerprint
        self.known = dict(known)
        self.asked: list[str] = []
        self.fault: Exception | None = None
        self.stuck = False

    async def dimension(self) -> int:
        return AXES

    async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
        return [self.known.get(text, axis(0.0)) for text in texts]

    async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
        self.asked += texts
        if self.stuck:
            await asyncio.Event().wait()
        if self.fault is not None:
            raise self.fault
        return [self.known.get(text, axis(0.0)) for text in texts]

    async def close(self) -> None:
        pass


def plain_calibration(*, best: float = 0.5, related: float = 0.8) -> Calibration:
    """Nothing in common to take off, and a floor of `best`."""
    zero = np.zeros(AXES, dtype=np.float32)
    return Calibration(dimension=AXES, documents_mean=zero, questions_mean=zero, best={ROWS: (best,) * 5}, related=(related,) * 3)


NEAR, FAR = axis(0.9), axis(0.1)


class Searching:
    """A search over a database with rows of one person, whose vectors are written down."""

    def __init__(self, stage: Stage, *, embedder: Scripted | None = None, **settings: object) -> None:
        self.stage = stage
        self.embedder = embedder or Scripted({"hello you": QUESTION})
        self.settings = replace(SearchSettings(), **settings)  # type: ignore[arg-type]  # names of its fields
        self.serving = Serving(state="ok", embedder=self.embedder, calibration=plain_calibration())
        self.spoiled: list[str] = []
        self.search = SavedSearch(stage.db, serving=lambda: self.serving, settings=lambda: self.settings, spoiled=self.spoiled.extend)

    def know(self, text: str, vector: Vector | None, *, pinned: bool = False) -> Memory:
        memory = self.stage.add(text, pinned=pinned).memory
        assert memory is not None
        if vector is not None:
            made = {memory.content_hash: vector}
            self.stage.do(lambda connection: row_vectors.keep(connection, self.embedder.fingerprint, made))
        return memory

    async def look(self, rows: Iterable[Memory], text: str = "hello you") -> Found:
        return await self.search.search(rows, text)


@pytest.fixture
def searching(database: Database, clock: FakeClock) -> Searching:
    return Searching(Stage.of(database, clock))


@pytest.mark.rule("SM-31")
async def test_a_row_without_a_vector_is_not_compared_and_does_not_tick(searching: Searching) -> None:
    near, far, bare = searching.know("near", NEAR), searching.know("far", FAR), searching.know("bare", None)
    found = await searching.look([near, far, bare])
    assert found.ok and found.matches == (near,) and found.compared == (near, far)
    assert bare.id not in may_tick(found, private(near.key.owner))


@pytest.mark.rule("SM-31")
async def test_a_row_whose_text_changed_is_not_compared_by_its_old_vector(searching: Searching) -> None:
    memory = searching.know("near", NEAR)
    changed = searching.stage.edit(memory.id, "quite another text").memory
    assert changed is not None
    assert (await searching.look([changed])).compared == ()


@pytest.mark.rule("SM-31", "SM-95")
async def test_vectors_of_another_embedder_are_not_compared(searching: Searching) -> None:
    memory = searching.know("near", NEAR)
    searching.embedder.fingerprint = "scripted/2"
    assert (await searching.look([memory])).compared == ()


@pytest.mark.rule("SM-31", "SM-75")
async def test_a_pin_takes_no_part_and_no_place(searching: Searching) -> None:
    pin, plain = searching.know("pinned", NEAR, pinned=True), searching.know("plain", NEAR)
    found = await searching.look([pin, plain])
    assert found.matches == found.compared == (plain,)


@pytest.mark.rule("SM-31", "SM-40")
async def test_sleeping_rows_are_compared_as_others_are(searching: Searching) -> None:
    memory = replace(searching.know("near", NEAR), dormant=True, unused_days=7)
    assert (await searching.look([memory])).matches == (memory,)


@pytest.mark.rule("SM-30", "T5")
@pytest.mark.parametrize("text", ["", "ok", "猫", "   "])
async def test_too_little_text_is_no_search_and_asks_nobody(searching: Searching, text: str) -> None:
    found = await searching.look([searching.know("near", NEAR)], text)
    assert found.mode is Searched.NONE and not found.ok and searching.embedder.asked == []


@pytest.mark.rule("SM-34", "SM-93", "T5")
@pytest.mark.parametrize("fault", ["raises", "late", "no vector", "wrong size", "never measured", "failed"])
async def test_a_search_that_fails_says_so_and_finds_nothing(searching: Searching, fault: str) -> None:
    memory = searching.know("near", NEAR)
    match fault:
        case "raises":
            searching.embedder.fault = EmbedderFailed("down")
        case "late":
            searching.embedder.stuck = True
            searching.settings = replace(searching.settings, time_limit_s=0.01)
        case "no vector":
            searching.embedder.known["hello you"] = None  # type: ignore[assignment]  # as an endpoint may answer
        case "wrong size":
            searching.embedder.known["hello you"] = np.ones(AXES + 1, dtype=np.float32)
        case "never measured":
            searching.serving = Serving(state="building")
        case _:
            searching.serving = Serving(state="failed", reason="down")
    found = await searching.look([memory])
    assert (found.mode, found.matches, found.compared) == (Searched.FAILED, (), ()) and found.reason
    assert searching.search.ageing_on  # what passes by itself turns nothing off


@pytest.mark.rule("SM-94")
async def test_a_vector_of_a_wrong_dimension_is_an_error_and_is_made_anew(searching: Searching) -> None:
    good, bad = searching.know("near", NEAR), searching.know("bad", None)
    wrong = {bad.content_hash: np.ones(AXES * 2, dtype=np.float32)}
    searching.stage.do(lambda connection: row_vectors.keep(connection, searching.embedder.fingerprint, wrong))
    found = await searching.look([good, bad])
    assert found.mode is Searched.FAILED and searching.spoiled == [bad.content_hash]
    assert len(packed(NEAR)) == 2 * AXES


@pytest.mark.rule("SM-98")
async def test_without_an_embedder_or_with_one_that_cannot_tell_ageing_is_off(searching: Searching) -> None:
    memory = searching.know("near", NEAR)
    assert searching.search.ageing_on
    searching.serving = replace(searching.serving, calibration=plain_calibration(best=0.8, related=0.8))
    assert not searching.search.ageing_on and (await searching.look([memory])).mode is Searched.OFF
    assert "scripted" in searching.search.why_off()
    searching.serving = Serving(state="off")
    assert not searching.search.ageing_on and (await searching.look([memory])).mode is Searched.OFF


@pytest.mark.rule("SM-97", "SM-98")
async def test_with_ageing_switched_off_rows_are_still_found(searching: Searching) -> None:
    memory = searching.know("near", NEAR)
    searching.settings = replace(searching.settings, ageing=False)
    assert not searching.search.ageing_on and (await searching.look([memory])).matches == (memory,)


@pytest.mark.rule("SM-33", "T7")
async def test_a_floor_counts_for_the_embedder_it_names_alone(searching: Searching) -> None:
    memory = searching.know("near", NEAR)
    for named, matches in (({"another/1": 0.95}, (memory,)), ({"scripted/1": 0.95}, ()), ({"scripted": 0.95}, ()), ({}, (memory,))):
        searching.settings = replace(searching.settings, match_floor=named)
        searching.serving = replace(searching.serving, calibration=plain_calibration(related=0.99))
        assert (await searching.look([memory])).matches == matches


@pytest.mark.rule("SM-29")
async def test_characters_that_answer_one_message_ask_the_embedder_once(searching: Searching) -> None:
    memory = searching.know("near", NEAR)
    for _ in range(3):
        await searching.look([memory])
    assert searching.embedder.asked == ["hello you"]


@pytest.mark.rule("SM-29")
async def test_the_search_takes_part_in_the_one_request_of_a_reply(searching: Searching) -> None:
    memory = searching.know("near", NEAR)
    query = Query("hello you", "what the talk is searched with", time_limit_s=1)
    assert (await searching.search.search([memory], " hello you ", asked=query)).matches == (memory,)
    await query.vector(searching.embedder, "what the talk is searched with")
    assert searching.embedder.asked == ["hello you", "what the talk is searched with"]


@pytest.mark.rule("SM-33", "T7")
async def test_an_embedder_that_gives_08_for_unrelated_texts_matches_what_belongs_together_alone(database: Database, clock: FakeClock) -> None:
    class Squeezed:
        """Cosines of another one, pressed into 0.75 to 1 as some models give them."""

        label, batch, passage_tokens, fingerprint = "squeezed", 64, 0, "squeezed/1"

        def __init__(self) -> None:
            self._inner = hash_embedder(512)

        async def dimension(self) -> int:
            return 513

        async def documents(self, texts: Sequence[str]) -> list[Vector | None]:
            rows = await self._inner.documents(texts)
            return [None if each is None else np.concatenate([each * 0.5, [np.float32(0.75**0.5)]]).astype(np.float32) for each in rows]

        async def questions(self, texts: Sequence[str]) -> list[Vector | None]:
            return await self.documents(texts)

        async def close(self) -> None:
            await self._inner.close()

    embedder, stage = Squeezed(), Stage.of(database, clock)
    known = await calibrate(embedder)
    texts = ["Plays the cello in an orchestra", "犬は雷が怖い", "每个月三号交房租"]
    rows = [each for text in texts if (each := stage.add(text).memory) is not None]
    made: dict[str, Vector] = {}
    for text, vector in zip(texts, await embedder.documents(texts), strict=True):
        assert vector is not None
        made[content_hash(text)] = vector
    stage.do(lambda connection: row_vectors.keep(connection, embedder.fingerprint, made))
    settings = SearchSettings(match_floor={"squeezed/1": known.floor(ROWS, 20)})  # a fake knows no meaning: the measured floor would be above all
    search = SavedSearch(database, serving=lambda: Serving(state="ok", embedder=embedder, calibration=known), settings=lambda: settings)
    raw: Matrix = np.stack([made[each.content_hash] for each in rows])
    (far,) = await embedder.questions(["Which train goes to Madrid?"])
    assert far is not None and float((raw @ far).min()) > 0.7
    assert (await search.search(rows, "Which train goes to Madrid?")).matches == ()
    assert (await search.search(rows, "plays cello in orchestra")).matches == (rows[0],)
    await embedder.close()


@pytest.mark.rule("SM-34")
async def test_a_search_is_quick_when_all_is_at_hand(searching: Searching) -> None:
    searching.stage.limits = replace(searching.stage.limits, unpinned=500)
    rows = [searching.know(f"fact number {number}", axis(number / 300)) for number in range(240)]
    found = await searching.look(rows)
    assert [each.id for each in found.matches] == [each.id for each in rows[:-4:-1]] and len(found.compared) == 240
