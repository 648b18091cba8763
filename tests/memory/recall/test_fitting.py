"""What of the standing text fits a prompt: whole rows, an excerpt at the edge, and what is said of the rest (RS-70, RS-171)."""

from __future__ import annotations

from itertools import pairwise

import pytest
import regex

from memory import tokens
from memory.extract import sentences
from memory.recall.fitting import CUT, EXCERPT_LEAST, Piece, Stood, excerpt, fit

SENTENCES = {
    "en": "Ana moved her boat to the north quay. ",
    "ja": "アナは船を北の岸壁に移した。",
    "zh": "安娜把船移到了北边的码头。",
}
SIGNS = ("👨‍👩‍👧‍👦", "🇯🇵", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "👍🏽", "❤️", "𠮷", "か゚", "葛󠄀", "é")


def piece(words: str, number: int = 1, **more: str) -> Piece:
    return Piece(of=Stood(id=number, kind="day", first=number, last=number), label=f"day {number}: ", words=words, **more)


def numbered(language: str, many: int) -> str:
    return "".join(f"{n:02}{SENTENCES[language]}" for n in range(many)).strip()


@pytest.mark.rule("RS-171")
@pytest.mark.parametrize(
    ("text", "begins"),
    [
        ("One. Two! Three? Four", ["One. ", "Two! ", "Three? ", "Four"]),
        ("It costs 3.50 in all.\nNext line", ["It costs 3.50 in all.\n", "Next line"]),
        ('She said "go." Then she went.', ['She said "go." ', "Then she went."]),
        ("船が来た。「行こう。」彼女は言った！はい", ["船が来た。", "「行こう。」", "彼女は言った！", "はい"]),
        ("船来了。“走吧！”她说？好", ["船来了。", "“走吧！”", "她说？", "好"]),
        ("すごい！️次", ["すごい！️次"]),  # a sign and its presentation are one
    ],
)
def test_sentences_begin_where_people_see_them_begin(text: str, begins: list[str]) -> None:
    places = sentences(text)
    assert [text[at:to] for at, to in pairwise(places)] == begins


@pytest.mark.rule("RS-70", "RS-171")
@pytest.mark.case("AT-23", "K33")
@pytest.mark.parametrize("language", SENTENCES)
def test_the_row_at_the_edge_keeps_its_last_sentences_under_a_mark_and_older_rows_go(language: str) -> None:
    pieces = [piece(numbered(language, 12), n) for n in (1, 2, 3)]
    whole = tokens.count(pieces[0].text) + 1
    fitted = fit(pieces, whole + whole * 3 // 4)
    edge, newest = fitted.shown
    assert newest.text == pieces[2].text
    assert edge.text.startswith(f"day 2: {CUT} ")
    kept = edge.words.removeprefix(f"{CUT} ")
    assert pieces[1].words.endswith(kept)
    assert len(pieces[1].words) - len(kept) in sentences(pieces[1].words)
    assert [(each.id, each.cut) for each in fitted.stood] == [(2, True), (3, False)]
    assert (fitted.left_out, fitted.whole) == (1, False)


@pytest.mark.rule("RS-70")
@pytest.mark.case("AT-23")
@pytest.mark.parametrize("language", SENTENCES)
def test_one_row_larger_than_the_room_is_an_excerpt_that_uses_it_and_never_passes_it(language: str) -> None:
    row = piece(numbered(language, 90))
    for room in range(80, 600, 7):
        fitted = fit([row], room)
        [shown] = fitted.shown
        assert tokens.count(shown.text) + 1 <= room
        assert tokens.count(shown.text) > room - tokens.count(SENTENCES[language]) - 8
        assert (fitted.left_out, fitted.whole, fitted.stood[0].cut) == (0, True, True)
    assert row.words == numbered(language, 90)


@pytest.mark.rule("RS-171")
@pytest.mark.case("AT-25", "K32")
@pytest.mark.parametrize("sign", SIGNS)
def test_no_cut_breaks_a_sign(sign: str) -> None:
    """One sentence without an end: it is cut between signs, wherever the room ends."""
    row = piece(sign * 400)
    for room in range(90, 160):
        kept = excerpt(row, room).removeprefix(f"{CUT} ")
        assert kept
        assert set(regex.findall(r"\X", kept)) == {sign}


@pytest.mark.rule("RS-70")
def test_a_short_last_sentence_behind_an_endless_one_is_not_all_that_is_told() -> None:
    row = piece(f"{'word ' * 900}end. Yes.")
    kept = excerpt(row, 200)
    assert kept.endswith("word end. Yes.")
    assert tokens.count(kept) > 150


@pytest.mark.rule("RS-70")
def test_too_little_room_for_an_excerpt_leaves_the_row_out() -> None:
    row = piece(numbered("en", 40))
    least = tokens.count(f"{row.label}{CUT} ") + EXCERPT_LEAST
    assert excerpt(row, least) == ""
    fitted = fit([row], 20)
    assert (fitted.shown, fitted.stood, fitted.left_out, fitted.whole) == ((), (), 1, False)


@pytest.mark.rule("RS-93", "RS-70")
def test_an_excerpt_is_of_what_everybody_knows_alone() -> None:
    row = piece(f"{numbered('en', 20)} [known only to Mira] Mira hid the key.", open=numbered("en", 20))
    [shown] = fit([row], 120).shown
    assert "key" not in shown.text
    assert shown.text.startswith(f"day 1: {CUT} ")


@pytest.mark.rule("RS-171")
def test_lines_of_one_block_are_named_once_and_as_cut_when_some_of_them_are_gone() -> None:
    of = Stood(id=7, kind="block", first=1, last=9)
    lines = [Piece(of=of, label="- ", words=f"line {n} of it") for n in range(10)]
    assert [each.cut for each in fit(lines, None).stood] == [False]
    fitted = fit(lines, 30)
    assert [(each.id, each.cut) for each in fitted.stood] == [(7, True)]
    assert (fitted.left_out, fitted.whole) == (0, False)
