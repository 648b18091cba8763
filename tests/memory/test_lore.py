"""Pages of the world book: what their front matter says, and which of them stand in the head (WD-139)."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory import tokens
from memory.ids import PersonId
from memory.lore import ALWAYS_MAX_TOKENS, Lore, Page, always_page, body, front_matter, lore_of, standing
from memory.lore_pages import always_pages
from memory.scopes import ROOT, WITHOUT_MEMORY, person_scope, scope_of
from memory.workspace import Workspace
from tests.conftest import FakeClock

ANNA = person_scope(PersonId("p-aaaaaaaaaa"))


@pytest.mark.rule("WD-139")
@pytest.mark.parametrize(
    ("text", "lore"),
    [
        ("---\nlore: always\n---\n\nThe moon is green.\n", Lore.ALWAYS),
        ("\ufeff---\r\ntitle: 月\r\nLore:  'Match'  \r\n---\r\n月は緑だ。\r\n", Lore.MATCH),
        ("---\nlore: none\n...\n月亮是绿色的。", Lore.NONE),
        ("---\nlore: sometimes\n---\nx", Lore.NONE),
        ("---\nlore: always\nno end", Lore.NONE),
        ("x\n---\nlore: always\n---\n", Lore.NONE),
        ("lore: always", Lore.NONE),
        ("", Lore.NONE),
    ],
)
def test_the_front_matter_says_when_a_page_stands_in_a_prompt(text: str, lore: Lore) -> None:
    assert lore_of(text) is lore


@pytest.mark.rule("WD-139")
def test_other_front_matter_is_passed_over_and_the_page_is_read_without_it() -> None:
    text = "---\ntitle: \"Züge\"\ntags: [a, b]\nnested:\n  - x\n---\n\n# Züge\n\n---\n\nEin Strich bleibt.\n"
    assert front_matter(text)["title"] == "Züge"
    assert body(text) == "# Züge\n\n---\n\nEin Strich bleibt."
    assert body("no front matter\n") == "no front matter"


@given(st.text())
def test_any_text_has_a_body_and_no_text_breaks_the_reader(text: str) -> None:
    assert isinstance(body(text), str)
    assert lore_of(text) in set(Lore)


@pytest.mark.rule("WD-139")
@given(st.lists(st.integers(1, 700), max_size=12), st.randoms())
def test_pages_within_the_budget_stand_in_the_same_order_and_the_others_are_named(sizes: list[int], random: object) -> None:
    pages = [Page(path=f"knowledge/{number:02}.md", text="x", tokens=size) for number, size in enumerate(sizes)]
    found = standing(pages)
    assert sum(page.tokens for page in found.pages) <= ALWAYS_MAX_TOKENS
    assert sorted([*(page.path for page in found.pages), *found.left_out]) == [page.path for page in pages]
    assert standing(list(reversed(pages))) == found
    assert bool(found.left_out) is (sum(sizes) > ALWAYS_MAX_TOKENS)


@pytest.mark.rule("WD-139")
@pytest.mark.parametrize("words", ["The moon is green. ", "月は緑だ。", "月亮是绿色的。"])
def test_a_page_is_measured_without_its_front_matter(words: str) -> None:
    page = always_page("knowledge/moon.md", f"---\nlore: always\n---\n\n{words}\n")
    assert page is not None
    assert (page.text, page.tokens) == (words, tokens.count(words))
    assert always_page("knowledge/moon.md", f"---\nlore: match\n---\n{words}") is None


@pytest.mark.rule("WD-139", "WD-10")
def test_a_turn_has_the_pages_of_its_own_scope_and_those_for_everyone(tmp_path: Path, clock: FakeClock) -> None:
    workspace = Workspace(tmp_path, tmp_path / ".yumegate", clock)
    for of, path, lore in (
        (ROOT, "knowledge/own.md", "always"),
        (ROOT, "knowledge/other.md", "match"),
        (ROOT, "knowledge/public/shared.md", "always"),
        (ROOT, "knowledge/index.md", "always"),
        (ANNA, "knowledge/hers.md", "always"),
    ):
        workspace.replace(of, path, f"---\nlore: {lore}\n---\n\n{path}\n", based_on=None)
    (tmp_path / "knowledge" / "broken.md").write_bytes(b"---\nlore: always\n---\n\xff\xfe")
    owner = scope_of("dm", person=ROOT, space=None, memory_on=True, known=True)
    anna = scope_of("dm", person=ANNA, space=None, memory_on=True, known=True)
    assert [page.path for page in always_pages(workspace, owner)] == ["knowledge/own.md", "knowledge/public/shared.md"]
    assert sorted(page.path for page in always_pages(workspace, anna)) == ["knowledge/hers.md", "knowledge/public/shared.md"]
    assert always_pages(workspace, WITHOUT_MEMORY) == ()
