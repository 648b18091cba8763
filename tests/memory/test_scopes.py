"""Which conversation reads and writes what: the table of the specification, row by row, and that everything unclear gets the least."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memory.ids import new_person, new_space
from memory.scopes import ROOT, STRANGER, WITHOUT_MEMORY, Access, Kind, Scope, parse_scope, person_scope, scope_of, scope_of_task, space_scope

ANNA, BEN = person_scope(new_person()), person_scope(new_person())
CLUB, TEAM = space_scope(new_space()), space_scope(new_space())
PRIVATE_KINDS = ("dm", "web", "api")
FILES = (
    "system.md",
    "user.md",
    "space.md",
    "MEMORY.md",
    "memory/2026-03-08.md",
    "knowledge/index.md",
    "knowledge/public/tea.md",
    "knowledge/publication.md",
)


def access(kind: str, person: Scope | None = None, space: Scope | None = None, *, memory_on: bool = True, known: bool = True) -> Access:
    return scope_of(kind, person=person, space=space, memory_on=memory_on, known=known)


def readable(turn: Access) -> set[str]:
    return {f"{scope}:{path}" for scope in (ROOT, ANNA, BEN, CLUB, TEAM) for path in FILES if turn.may_read(scope, path)}


def writable(turn: Access) -> set[str]:
    return {f"{scope}:{path}" for scope in (ROOT, ANNA, BEN, CLUB, TEAM) for path in FILES if turn.may_write(scope, path)}


def all_of(scope: Scope) -> set[str]:
    return {f"{scope}:{path}" for path in FILES}


PERSONA = {"root:system.md"}
OPEN_PAGES = {"root:knowledge/public/tea.md"}


@pytest.mark.rule("WD-9")
@pytest.mark.parametrize("kind", PRIVATE_KINDS)
def test_the_owner_in_private_reads_and_writes_the_root_and_nobody_elses(kind: str) -> None:
    turn = access(kind, ROOT)
    assert turn.scope == ROOT
    assert readable(turn) == writable(turn) == all_of(ROOT)


@pytest.mark.rule("WD-9")
@pytest.mark.parametrize("kind", PRIVATE_KINDS)
def test_another_person_reads_the_persona_the_public_pages_and_their_own(kind: str) -> None:
    turn = access(kind, ANNA)
    assert turn.scope == ANNA
    assert readable(turn) == PERSONA | OPEN_PAGES | all_of(ANNA)
    assert writable(turn) == all_of(ANNA)


@pytest.mark.rule("WD-10")
@pytest.mark.parametrize("speaker", [ROOT, ANNA, None])
@pytest.mark.parametrize("known", [True, False])
def test_a_group_reads_its_own_whoever_speaks(speaker: Scope | None, known: bool) -> None:
    turn = access("group", speaker, CLUB, known=known)
    assert turn.scope == CLUB
    assert readable(turn) == PERSONA | OPEN_PAGES | all_of(CLUB)
    assert writable(turn) == all_of(CLUB)


@pytest.mark.rule("SM-88")
@pytest.mark.parametrize("speaker", [ROOT, ANNA, None])
def test_a_challenge_reads_the_persona_alone_and_writes_nothing(speaker: Scope | None) -> None:
    for turn in (access("challenge", speaker), access("dm", speaker, memory_on=False), access("group", speaker, CLUB, memory_on=False)):
        assert turn == WITHOUT_MEMORY
        assert readable(turn) == PERSONA
        assert writable(turn) == set()


@pytest.mark.rule("WD-9")
def test_a_stranger_reads_the_persona_and_the_public_pages_and_writes_nothing() -> None:
    for turn in (access("web", None, known=False), access("dm", ANNA, known=False), access("dm", ROOT, known=False)):
        assert turn == STRANGER
        assert readable(turn) == PERSONA | OPEN_PAGES
        assert writable(turn) == set()


@pytest.mark.rule("WD-9", "WD-10")
@pytest.mark.parametrize(
    ("kind", "person", "space"),
    [
        ("group", ROOT, None),
        ("group", ROOT, ANNA),
        ("group", None, ROOT),
        ("dm", None, None),
        ("dm", CLUB, None),
        ("dm", ANNA, CLUB),
        ("web", ROOT, CLUB),
        ("room", ROOT, CLUB),
        ("DM", ROOT, None),
        ("", ROOT, None),
    ],
)
def test_what_makes_no_sense_is_a_strangers(kind: str, person: Scope | None, space: Scope | None) -> None:
    assert access(kind, person, space) == STRANGER


@pytest.mark.rule("WD-10")
def test_no_combination_at_all_reads_a_private_scope_that_is_not_the_speakers_own() -> None:
    scopes = (None, ROOT, ANNA, BEN, CLUB)
    kinds = (*PRIVATE_KINDS, "group", "challenge", "other")
    for kind, person, space, memory_on, known in product(kinds, scopes, scopes, (True, False), (True, False)):
        turn = access(kind, person, space, memory_on=memory_on, known=known)
        for scope in (ROOT, ANNA, BEN, CLUB):
            if turn.may_read(scope, "MEMORY.md"):
                assert memory_on
                assert scope == turn.scope
                assert scope == (space if kind == "group" else person)
                assert known or kind == "group"
            assert turn.may_write(scope, "MEMORY.md") == turn.may_read(scope, "MEMORY.md")


def test_a_task_has_the_scope_of_its_chat_only_while_its_maker_may_read_it() -> None:
    group = access("group", ANNA, CLUB)
    assert scope_of_task(group, creator_may_read=True) == group
    assert scope_of_task(group, creator_may_read=False) == STRANGER


@pytest.mark.rule("WD-3")
def test_a_scope_is_written_and_read_back() -> None:
    for scope in (ROOT, ANNA, CLUB):
        assert parse_scope(str(scope)) == scope
    assert (str(ROOT), ROOT.folder, ROOT.about) == ("root", (), "user.md")
    assert (ANNA.folder, ANNA.about) == (("people", ANNA.id), "user.md")
    assert (CLUB.folder, CLUB.about) == (("spaces", CLUB.id), "space.md")


@pytest.mark.rule("WD-3", "WD-20")
@pytest.mark.parametrize(
    "text",
    [
        "", "Root", "root/", "root/p-abcdefghij", "people", "people/", "people/..", "people/p-abcdefghij/", "people/p-abcdefghij/..",
        "people/p-abcdefghi",
        "people/P-ABCDEFGHIJ", "people/p-abcdefghi1", "people/s-abcdefghij", "spaces/p-abcdefghij", "people/p-abcdefghij\n", "people/../root",
        "/root",
        "people/Anna", "people/ p-abcdefghij", "people/p-abcdefghĳ",
    ],
)  # fmt: skip
def test_what_is_no_scope_cannot_become_one(text: str) -> None:
    with pytest.raises(ValueError, match=r"no|not"):
        parse_scope(text)


@settings(deadline=None)
@given(st.text(max_size=40))
def test_no_text_gives_a_folder_outside_people_and_spaces(text: str) -> None:
    try:
        scope = parse_scope(text)
    except ValueError:
        return
    assert scope == ROOT or (scope.kind in (Kind.PERSON, Kind.SPACE) and len(scope.folder) == 2)
