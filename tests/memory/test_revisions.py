"""Old texts: one for every change of a program, the newest 30 and all of the last 30 days, and nothing that could be taken for a path."""

from __future__ import annotations

import hashlib
from datetime import timedelta
from pathlib import Path

import pytest

from memory.file_errors import PathRefused
from memory.ids import PersonId
from memory.layout import place
from memory.revisions import Revisions
from memory.scopes import ROOT, person_scope
from memory.texts import Written
from memory.workspace import Workspace
from tests.conftest import FakeClock

ANNA = person_scope(PersonId("p-aaaaaaaaaa"))
MEMORY = place(ROOT, "MEMORY.md")


@pytest.fixture
def revisions(tmp_path: Path, clock: FakeClock) -> Revisions:
    return Revisions(tmp_path, clock, most=1_000)


def keep(revisions: Revisions, text: str) -> str:
    return revisions.keep(MEMORY, text.encode(), hashlib.sha256(text.encode()).hexdigest())


def kept(revisions: Revisions) -> list[str | None]:
    return [revisions.read(MEMORY, revision.id) for revision in revisions.of(MEMORY)]


@pytest.mark.rule("WD-88")
def test_the_last_thirty_days_are_kept_whole_and_of_older_ones_the_newest_thirty(revisions: Revisions, clock: FakeClock) -> None:
    for day in range(60):
        keep(revisions, f"day {day}")
        clock.advance(days=1)
    assert kept(revisions) == [f"day {day}" for day in range(59, 28, -1)]
    for n in range(100):
        keep(revisions, f"same day {n}")
    assert len(kept(revisions)) == 130  # the last thirty days hold 30 more, however many there are
    clock.advance(days=31)
    keep(revisions, "much later")
    assert kept(revisions) == ["much later", *(f"same day {n}" for n in range(99, 70, -1))]


@pytest.mark.rule("WD-88")
def test_order_holds_when_the_clock_stands_still_or_goes_back(revisions: Revisions, clock: FakeClock) -> None:
    for text in ("a", "b", "c"):
        keep(revisions, text)
    clock.advance(timedelta(days=-400))
    keep(revisions, "d")
    assert kept(revisions) == ["d", "c", "b", "a"]


def test_the_newest_text_is_not_stored_twice_but_an_older_one_may_return(revisions: Revisions) -> None:
    assert keep(revisions, "a") == keep(revisions, "a")
    keep(revisions, "b")
    keep(revisions, "a")
    assert kept(revisions) == ["a", "b", "a"]


def test_a_revision_is_plain_markdown_that_a_person_can_open(revisions: Revisions, tmp_path: Path) -> None:
    keep(revisions, "- tea\r\n")
    (file,) = (tmp_path / "backups/files/root/MEMORY.md").iterdir()
    assert file.suffix == ".md"
    assert file.read_bytes() == b"- tea\r\n"


@pytest.mark.rule("WD-20")
@pytest.mark.parametrize("revision", ["", "..", "../../../../config", "20260314T092653000000Z-0000000000000000", "/etc/hosts", "\x00"])
def test_an_id_that_is_none_gives_nothing(revisions: Revisions, revision: str) -> None:
    keep(revisions, "a")
    assert revisions.read(MEMORY, revision) is None


@pytest.mark.rule("WD-15")
def test_forgetting_takes_one_file_or_one_scope(revisions: Revisions) -> None:
    keep(revisions, "a")
    hers = place(ANNA, "MEMORY.md")
    revisions.keep(hers, b"h", hashlib.sha256(b"h").hexdigest())
    revisions.forget_scope(ANNA)
    assert (len(revisions.of(hers)), len(revisions.of(MEMORY))) == (0, 1)
    revisions.forget(MEMORY)
    revisions.forget(MEMORY)
    assert revisions.of(MEMORY) == ()


@pytest.mark.rule("WD-88")
def test_the_workspace_keeps_what_a_program_replaced_and_gives_it_back(tmp_path: Path, clock: FakeClock) -> None:
    workspace = Workspace(tmp_path / "w", tmp_path / "data", clock)
    based_on: str | None = None
    for n in range(3):
        written = workspace.replace(ANNA, "MEMORY.md", f"- {n}\n", based_on=based_on)
        assert isinstance(written, Written)
        assert written.text is not None
        assert (written.revision is None) == (based_on is None)
        based_on = written.text.hash
        clock.advance(hours=1)
    first, second = workspace.revisions(ANNA, "MEMORY.md")
    assert workspace.revision(ANNA, "MEMORY.md", first.id) == "- 1\n"
    assert workspace.revision(ANNA, "MEMORY.md", second.id) == "- 0\n"
    assert workspace.revisions(ROOT, "MEMORY.md") == ()
    assert workspace.revision(ROOT, "MEMORY.md", first.id) is None
    with pytest.raises(PathRefused):
        workspace.revisions(ANNA, "../MEMORY.md")
    workspace.forget_revisions(ANNA, "MEMORY.md")
    assert workspace.revisions(ANNA, "MEMORY.md") == ()
