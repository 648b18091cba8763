"""Weighing words and putting both sides together: pure arithmetic."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import comparing, ranking, words
from memory.embedders import background_set
from memory.hot_areas import AreaRows, Ints
from memory.ranking import Floats, Found

NEVER = np.full(4, np.nan)


def floats(*values: float) -> Floats:
    return np.array(values, dtype=np.float64)


def ordered(scores: Floats) -> list[int]:
    return [int(at) for at in np.argsort(-scores, kind="stable") if not np.isnan(scores[at])]


NAN = float("nan")


@pytest.mark.rule("RS-173")
def test_what_one_side_alone_found_is_in_the_result() -> None:
    fused = ranking.fuse(floats(0.1, 0.9, NAN, 0.1), floats(0, 0, 5, 0), words_weight=0.3, days_old=NEVER)
    assert not np.isnan(fused).any()
    assert ordered(fused)[0] == 1
    assert fused[2] > fused[0]


@pytest.mark.rule("RS-173")
def test_the_sides_are_added_as_z_scores_with_their_weight() -> None:
    near, words = floats(1, 2, 3, 6), floats(0, 4, 0, 0)
    fused = ranking.fuse(near, words, words_weight=0.5, days_old=NEVER)
    expected = (near - near.mean()) / near.std() + 0.5 * (words - words.mean()) / words.std()
    assert fused == pytest.approx(expected)


@pytest.mark.rule("RS-173")
@pytest.mark.parametrize(
    ("near", "words", "first"),
    [
        (floats(0.5, 0.5, 0.5, 0.5), floats(0, 0, 3, 0), 2),  # all equal on one side
        (floats(0.1, 0.9, 0.2, 0.3), floats(0, 0, 0, 0), 1),  # no word found
        (floats(NAN, NAN, NAN, NAN), floats(0, 2, 0, 1), 1),  # no vector found
        (floats(NAN, 0.4, NAN, NAN), floats(0, 0, 0, 0), 1),  # one item
    ],
)
def test_where_a_side_has_no_spread_ranks_decide(near: Floats, words: Floats, first: int) -> None:
    fused = ranking.fuse(near, words, words_weight=0.3, days_old=NEVER)
    assert ordered(fused)[0] == first
    assert np.nanmax(fused) <= 2 / 61 + 1e-9


@pytest.mark.rule("RS-173")
def test_no_side_no_hit() -> None:
    assert np.isnan(ranking.fuse(None, floats(0, 0, 0, 0), words_weight=1, days_old=NEVER)).all()
    assert np.isnan(ranking.fuse(None, None, words_weight=1, days_old=NEVER)).all()


@pytest.mark.rule("WD-107")
@given(st.lists(st.floats(0, 5000), min_size=4, max_size=4), st.lists(st.sampled_from([NAN, 0.0, 0.2, 0.7]), min_size=4, max_size=4))
def test_age_adds_at_most_a_fifth_and_takes_no_hit_away(days: list[float], near: list[float]) -> None:
    plain = ranking.fuse(floats(*near), floats(0, 1, 2, 0), words_weight=0.3, days_old=NEVER)
    aged = ranking.fuse(floats(*near), floats(0, 1, 2, 0), words_weight=0.3, days_old=floats(*days))
    assert (np.isnan(plain) == np.isnan(aged)).all()
    gain = (aged - plain)[~np.isnan(plain)]
    assert (gain >= -1e-9).all() and (gain <= ranking.NEWEST + 1e-9).all()


@pytest.mark.rule("WD-107", "RS-173")
def test_equal_ones_stand_newer_first_then_by_id() -> None:
    best = ranking.best(floats(1, 1, 1, 2), floats(NAN, 5, 1, 9), np.array([40, 30, 20, 10]), 4)
    assert [int(at) for at in best] == [3, 2, 1, 0]
    alike = ranking.best(floats(1, 1, 1, 1), NEVER, np.array([4, 3, 9, 1]), 3)
    assert [int(at) for at in alike] == [3, 1, 0]


def places(*at: int) -> ranking.Places:
    return np.array(at, dtype=np.intp)


@pytest.mark.rule("RS-175")
@pytest.mark.parametrize("texts", [2, 10_000])
def test_rare_words_are_counted_as_much_as_they_are_rare(texts: int) -> None:
    lengths = np.full(texts, 20)
    particle, once, of_a_name = Found(1.0, places(*range(texts)), 150), Found(1.0, places(0), 0), Found(8.0, places(0), 0)
    assert ranking.weigh([particle], lengths, 210).held[0] == 0
    assert ranking.weigh([once, once], lengths, 210).held[0] == pytest.approx(2.0)
    assert 0 < ranking.weigh([Found(1.0, places(0), 9)], lengths, 210).held[0] < 0.8
    assert ranking.weigh([of_a_name], lengths, 210).held[0] == 1.0  # half of a name is not worth eight words
    assert not ranking.weigh([once], lengths, 210).held[1:].any()
    pair = Found(1.0, places(0), 0, (0,))
    assert ranking.weigh([pair], lengths, 210).held[0] == pytest.approx(0.75)


@pytest.mark.rule("RS-175")
@pytest.mark.parametrize("texts", [2, 10_000])
def test_common_words_hold_no_share_of_a_question(texts: int) -> None:
    everywhere = Found(1.0, places(*range(texts)), 150)  # a particle: in most passages of the bundled set too
    rare = Found(1.0, places(0), 0)
    lengths = np.full(texts, 20)
    both = ranking.weigh([everywhere, rare], lengths, 210)
    assert both.share[0] == pytest.approx(1.0)
    assert both.share[1] == 0
    assert not ranking.weigh([everywhere], lengths, 210).share.any()
    unknown = ranking.weigh([rare, *[Found(1.0, places(), 0)] * 9], lengths, 210)
    assert unknown.share[0] < 0.2  # one of ten rare words


@pytest.mark.rule("WD-108")
def test_a_word_that_stands_nearly_everywhere_still_counts_for_something() -> None:
    assert ranking.weigh([Found(1.0, places(0, 1, 2), 0)], np.full(3, 9), 0).scores.all()


@pytest.mark.rule("RS-175")
@pytest.mark.parametrize(
    ("question", "text", "least"),
    [
        ("你还记得小白吗", "今天在楼下见到了小白", 0.28),  # three pairs of 还记得 weigh against it
        ("シロはどこ", "シロと公園に", 0.35),
        ("do you remember Biscuit", "saw Biscuit downstairs", 0.35),
    ],
)
def test_one_name_among_common_words_says_much_in_each_script(question: str, text: str, least: float) -> None:
    assert share_of(question, text) >= least


@pytest.mark.rule("RS-175")
@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("乞力马扎罗山有多高", "听说那座山很漂亮"),
        ("キリマンジャロの標高は何メートル", "昨日は山に行って楽しかった"),
        ("what is the height of Kilimanjaro", "what a lovely mountain that is"),
    ],
)
def test_a_chance_word_among_rare_ones_is_not(question: str, text: str) -> None:
    assert share_of(question, text) < 0.2


def share_of(question: str, text: str) -> float:
    """Of the rare words of a question, how much a text holds, in a list of its own."""
    terms, held = words.terms(question), set(words.tokens(text))
    beside = words.beside([term.token for term in terms])
    known = background_set.holding()
    found = [
        Found(term.weight, places(0) if term.token in held else places(), known.get(term.token, 0), near)
        for term, near in zip(terms, beside, strict=True)
    ]
    return float(ranking.weigh(found, np.array([len(held), 9]), len(background_set.background().passages)).share[0])


@pytest.mark.rule("RS-175")
def test_a_pair_that_shares_a_character_with_a_found_one_is_not_missing() -> None:
    pairs = ["小白", "白吗", "大树"]
    assert words.beside([*pairs, "is", "so"]) == [(1,), (0,), (), (), ()]
    beside = words.beside(pairs)
    here = [Found(1.0, places(0), 0, beside[0]), Found(1.0, places(), 0, beside[1]), Found(1.0, places(), 0, beside[2])]
    share = ranking.weigh(here, np.full(4, 9), 200).share
    assert 0.3 < share[0] < 0.5  # of 小白 and 大树, the rarer weighing more
    assert not share[1:].any()


@pytest.mark.rule("RS-175")
def test_a_word_in_katakana_has_no_borders_in_it() -> None:
    """スープ in the talk is no sign of ハープ."""
    assert words.beside(["ハー", "ープ", "弦の"]) == [(0,), (1,), ()]
    assert share_of("ハープの弦はいくつ?", "昼にスープを食べた") < 0.4 < share_of("ハープの弦はいくつ?", "弟はハープを弾く")


@pytest.mark.rule("RS-174", "RS-175")
@pytest.mark.parametrize(
    ("held", "asked", "near", "alone", "together"),
    [
        (2, 2, 0.0, True, True),
        (0, 2, 0.41, True, True),
        (1, 2, 0.0, False, False),
        (0, 2, 0.3, False, False),
        (1, 2, 0.3, False, True),  # less than words must hold, and three quarters of a vector's floor
        (1, 2, np.nan, False, False),
        (2, 6, 0.1, False, True),  # a smaller share, but of a question that says more
        (2, 6, np.nan, False, True),
    ],
)
def test_what_one_side_lacks_of_its_floor_the_other_may_give(held: int, asked: int, near: float, alone: bool, together: bool) -> None:
    terms = tuple(words.Term(f"okonkwo{at}", 1.0) for at in range(asked))
    rows = AreaRows(ids=np.array([1]), words=np.array([9]), days=np.array([0]), firsts=np.array([1]), pages=np.array([False]))
    holders: list[Ints | None] = [np.array([1] if at < held else [], dtype=np.int64) for at in range(asked)]
    for adds_up, expected in ((False, alone), (True, together)):
        found = comparing.compare(
            [rows], terms, holders, [np.array([near])], allowed=[np.array([True])], today=0, words_weight=0.5, floor=0.4, count=1, text_share=0.5,
            adds_up=adds_up,
        )  # fmt: skip
        assert [each.accepted for each in found] in ([expected], [] if not expected else [True])
