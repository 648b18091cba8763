"""Private parts of an entry: who reads which, what they are called, and that what cannot be read is nobody's."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall import private_parts
from memory.recall.private_parts import NOBODY, Reader
from tests.patience import patience

TEXT = (
    'They reached the inn. {{#if char == "Mira"}}Mira saw the letter.{{/if}} {{#if character == \'Ren\'}}Ren sold the horse.{{/if}} '
    '{{#if char == "narrator"}}The host is a spy.{{/if}} It rained.'
)


@pytest.mark.rule("RS-93")
def test_each_character_that_replies_singly_reads_its_own_view() -> None:
    assert private_parts.view(TEXT, Reader(voices=("Mira",))) == "They reached the inn. Mira saw the letter. It rained."
    assert private_parts.view(TEXT, Reader(voices=("ren", "The Rider"))) == "They reached the inn. Ren sold the horse. It rained."
    assert private_parts.view(TEXT, Reader(voices=("Sol",))) == "They reached the inn. It rained."
    assert private_parts.public(TEXT) == "They reached the inn. It rained."


@pytest.mark.rule("RS-93")
@pytest.mark.parametrize(
    ("language", "label"),
    [("en", "[known only to Mira]"), ("ja", "［Miraだけが知っている］"), ("zh", "［只有Mira知道］"), ("xx", "[known only to Mira]")],
)
def test_where_one_reply_speaks_for_several_a_part_says_who_knows_it_and_the_narrators_stays_out(language: str, label: str) -> None:
    told = private_parts.view(TEXT, Reader(voices=("Mira", "Ren"), several=True, language=language))
    assert f"{label} Mira saw the letter." in told
    assert "spy" not in told
    assert told.index("Mira saw") < told.index("Ren sold")


@pytest.mark.rule("RS-93")
def test_the_narrator_reads_every_part_once() -> None:
    told = private_parts.view(TEXT, Reader(narrator=True))
    assert [told.count(words) for words in ("Mira saw", "Ren sold", "a spy")] == [1, 1, 1]


@pytest.mark.rule("RS-93")
def test_a_fact_known_to_one_person_of_a_group_names_that_person() -> None:
    text = '{{#if char == "Ana"}}Her sister moved.{{/if}}'
    assert private_parts.view(text, Reader(voices=("Yume",), company=("Ana", "Bo"))) == "[known only to Ana] Her sister moved."
    assert private_parts.view(text, Reader(voices=("Yume",), company=("Bo",))) == ""


@pytest.mark.rule("RS-93")
@pytest.mark.parametrize(
    "text",
    [
        'Open. {{#if char == "Mira"}}never closed',
        'Open. {{#if char != "Mira"}}for the others{{/if}} and more',
        'Open. {{#if mood == "sad"}}secret{{/if}}',
        'Open. {{#if char == "Mira"}}a {{#if char == "Ren"}}b{{/if}} c{{/if}}',
        "Open. {{#if}}secret{{/if}}",
        'Open. {{#if char == "Mira" && char == "Ren"}}secret{{/if}}',
        "Open. {{/if}} secret",
        'Open. {{#if char == "Mira"}}a{{else}}b{{/if}}',
        'Open. {{#if char == "Mira"}}a{{else if char == "Ren"}}b{{/if}}',
        'Open. {{#if char == "Mira" secret',
        'Open. {{#if char == "Mira"} secret {{/if}',
        'Open. {{#if char == "{Mira}"}}secret{{/if}}',
        'Open. {{#IF mood == "sad"}}secret{{/IF}}',
        'Open. {{~#if char == "Mira"}}secret{{/if}}',
        'Open. {{#unless char == "Mira"}}secret{{/unless}}',
        'Open. {{^if char == "Mira"}}secret{{/if}}',
        'Open. {{#if char == "Ren" && x}}}secret{{/if}}',
        "Open. {{ # if\nchar == 'Mira'}}secret{{/if}}",
    ],
)
def test_what_cannot_be_read_is_nobodys(text: str) -> None:
    for reader in (NOBODY, Reader(voices=("Mira",)), Reader(voices=("Mira", "Ren"), several=True), Reader(narrator=True)):
        assert private_parts.view(text, reader) == "Open."


@pytest.mark.rule("RS-93")
def test_the_letter_case_of_a_mark_makes_no_difference() -> None:
    text = '{{#IF char == "Mira"}}Hers.{{/If}} All.'
    assert private_parts.view(text, Reader(voices=("Mira",))) == "Hers. All."
    assert private_parts.public(text) == "All."


@pytest.mark.rule("RS-93")
@pytest.mark.parametrize(
    "text",
    [
        '{{#if char == "a"' * 5_000, "{{#if" * 20_000, "{{" * 40_000, "{{#" + " " * 80_000, '{{#if char == "' + "a" * 80_000,
        '{{#if char == "a"}}x{{/if}}' * 3_000, "{{#if char == " + " || char == ".join(f'"n{n}"' for n in range(5_000)) + "}}x{{/if}}",
        "{{~" + " " * 40_000 + "#" + " " * 40_000, "{{#if" + "}" * 80_000, "{{/if}}" * 10_000,
    ],
    ids=range(10),
)  # fmt: skip
def test_no_text_takes_long_to_read(text: str) -> None:
    began = time.monotonic()
    private_parts.view(text, Reader(voices=("a",)))
    private_parts.private([text])
    private_parts.without_macros(text)
    assert time.monotonic() - began < patience(1)


@pytest.mark.rule("RS-93", "RS-110")
@given(st.text(), st.text(alphabet="{}#/if charelse=\"' Mira|", max_size=60))
def test_what_a_model_wrote_hides_nothing_and_names_of_any_form_come_back(name: str, text: str) -> None:
    plain = private_parts.without_macros(text)
    assert not private_parts.has_parts(plain)
    assert plain.replace(" ", "") == text.replace(" ", "")
    for condition in (f'"{name}"', f"'{name}'", f"“{name}”"):
        for names, said in private_parts.private([f"{{{{#if char == {condition}}}}}secret{{{{/if}}}}"]).items():
            again = private_parts.wrapped(names, said[0])
            assert private_parts.private([again]) == {names: said}
            assert private_parts.public(again) == ""


NAMES = st.sampled_from(["Mira", "Ren", "Sol", "白", "Ana or Bo", "O'Hara", 'the "Duke"'])


@pytest.mark.rule("RS-93", "RS-110")
@given(st.lists(st.tuples(st.sets(NAMES, max_size=3), st.integers(0, 99)), max_size=8), NAMES)
def test_nobody_gains_a_sentence_and_those_who_may_lose_none(made: list[tuple[set[str], int]], reader: str) -> None:
    text = " ".join(private_parts.wrapped(sorted(names), f"w{at}x{n}.") if names else f"w{at}x{n}." for at, (names, n) in enumerate(made))
    told = private_parts.view(text, Reader(voices=(reader,)))
    for at, (names, n) in enumerate(made):
        assert (f"w{at}x{n}." in told) is (not names or reader in names)


@pytest.mark.rule("RS-110")
def test_private_parts_are_gathered_by_who_knows_them_in_the_order_of_their_first_appearance() -> None:
    texts = [
        'A {{#if char == "Ren" || char == "Mira"}}one{{/if}}',
        '{{#if char == "Sol"}}two{{/if}} {{#if char == "mira" or char == "REN"}}three{{/if}}',
    ]
    assert private_parts.private(texts) == {("Ren", "Mira"): ["one", "three"], ("Sol",): ["two"]}
    assert private_parts.view(private_parts.wrapped(("Ren", "Mira"), "one"), Reader(voices=("Mira",))) == "one"
