"""The head of the prompt from files: read again only when changed, the same bytes for the same files, nobody else's (WD-6, WD-10)."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from memory.head_files import SETTLED_NS, HeadFiles
from memory.ids import PersonId, SpaceId
from memory.scope_card import ScopeCard
from memory.scopes import ROOT, Scope, person_scope, space_scope
from memory.texts import Author
from memory.workspace import Workspace
from tests.conftest import FakeClock

ANNA = person_scope(PersonId("p-aaaaaaaaaa"))
CLUB = space_scope(SpaceId("s-cccccccccc"))


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "w"


@pytest.fixture
def workspace(root: Path, clock: FakeClock) -> Workspace:
    return Workspace(root, root / ".yumegate", clock)


@pytest.fixture
def head(workspace: Workspace) -> HeadFiles:
    return HeadFiles(workspace)


def write(path: Path, text: str, *, seconds_ago: float = 60) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text.encode())
    at = time.time_ns() - int(seconds_ago * 1e9)
    os.utime(path, ns=(at, at))


def names(head: HeadFiles, scope: Scope | None) -> list[str]:
    return [text.path for text in head.head(scope)]


@pytest.mark.rule("WD-6", "WD-10")
def test_each_scope_gets_the_persona_and_its_own_files_in_one_order(root: Path, head: HeadFiles) -> None:
    for path in (
        "system.md",
        "user.md",
        "MEMORY.md",
        "RULE.md",
        "people/p-aaaaaaaaaa/user.md",
        "people/p-aaaaaaaaaa/MEMORY.md",
        "spaces/s-cccccccccc/space.md",
    ):
        write(root / path, f"- of {path}\n")
    assert names(head, ROOT) == ["system.md", "user.md", "MEMORY.md"]
    assert [text.text for text in head.head(ANNA)] == ["- of system.md", "- of people/p-aaaaaaaaaa/user.md", "- of people/p-aaaaaaaaaa/MEMORY.md"]
    assert [text.text for text in head.head(CLUB)] == ["- of system.md", "- of spaces/s-cccccccccc/space.md"]
    assert [text.text for text in head.head(None)] == ["- of system.md"]


@pytest.mark.rule("WD-6")
def test_unchanged_files_are_not_read_again_and_give_the_same_object(root: Path, head: HeadFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root / "system.md", "\ufeffYou are Mia.\r\n\r\nBe kind.\r\n")
    write(root / "MEMORY.md", "- tea\n")
    later = time.time_ns() + 2 * SETTLED_NS
    monkeypatch.setattr(time, "time_ns", lambda: later)
    first = head.head(ROOT)
    assert [text.text for text in first] == ["You are Mia.\n\nBe kind.", "- tea"]
    assert head.reads == 2
    for _ in range(5):
        assert all(again is text for again, text in zip(head.head(ROOT), first, strict=True))
    assert head.reads == 2
    write(root / "MEMORY.md", "- rain\n", seconds_ago=30)
    assert [text.text for text in head.head(ROOT)] == ["You are Mia.\n\nBe kind.", "- rain"]
    assert head.reads == 3
    os.utime(root / "MEMORY.md")  # touched, not changed
    assert head.head(ROOT)[1].text == "- rain"
    (root / "MEMORY.md").unlink()
    assert names(head, ROOT) == ["system.md"]


@pytest.mark.rule("WD-6")
def test_a_change_within_one_tick_of_the_disk_is_not_missed(root: Path, head: HeadFiles) -> None:
    """A disk's clock is coarse: two changes may have one time and one size, so a file changed a moment ago is read each time."""
    for n in range(5):
        write(root / "MEMORY.md", f"- {n}\n", seconds_ago=0)
        for _ in range(2):
            before = head.reads
            assert [text.text for text in head.head(ROOT)] == [f"- {n}"]
            assert head.reads == before + 1


@pytest.mark.rule("WD-2", "WD-6")
def test_headings_and_templates_are_left_out(workspace: Workspace, root: Path, head: HeadFiles) -> None:
    workspace.prepare(ROOT, ScopeCard(), language="ja")
    assert names(head, ROOT) == []
    write(root / "MEMORY.md", "# Memory\n\n## Tea\n")
    assert names(head, ROOT) == []
    seen = workspace.read(ROOT, "user.md")
    assert seen is not None
    workspace.replace(ROOT, "user.md", seen.content + "\n- 花子\n", based_on=seen.hash, by=Author.PERSON)
    (text,) = head.head(ROOT)
    assert text.path == "user.md"
    assert text.text.endswith("- 花子")
    assert "<!--" not in text.text


@pytest.mark.rule("WD-23")
def test_a_file_that_cannot_be_read_is_left_out_and_named(workspace: Workspace, root: Path, head: HeadFiles) -> None:
    write(root / "system.md", "You are Mia.")
    (root / "MEMORY.md").write_bytes(b"\xff\xfe-")
    (root / "user.md").symlink_to("/etc/hosts")
    assert names(head, ROOT) == ["system.md"]
    assert {problem.path for problem in workspace.problems(ROOT)} == {"MEMORY.md", "user.md"}
    write(root / "MEMORY.md", "- tea\n")
    assert names(head, ROOT) == ["system.md", "MEMORY.md"]


@pytest.mark.rule("WD-15")
def test_a_deleted_scope_is_gone_from_the_head_at_once(workspace: Workspace, root: Path, head: HeadFiles) -> None:
    write(root / "people/p-aaaaaaaaaa/MEMORY.md", "- planted\n")
    assert names(head, ANNA) == ["MEMORY.md"]
    workspace.delete_scope(ANNA)
    assert names(head, ANNA) == []
