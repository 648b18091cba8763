"""A CowAgent folder used in place: its files play their roles under their names, and what is not for us is neither read nor changed."""

from __future__ import annotations

from datetime import date, time
from pathlib import Path

import pytest

from memory.file_errors import PathRefused
from memory.head_files import HeadFiles
from memory.ids import PersonId
from memory.scope_card import ScopeCard
from memory.scopes import ROOT, person_scope
from memory.texts import Author, Section, Written
from memory.workspace import Workspace
from tests.conftest import FakeClock

ANNA = person_scope(PersonId("p-aaaaaaaaaa"))

FOLDER = {
    "AGENT.md": "You are Cow.\r\n",
    "USER.md": "- Call me Li\n",
    "RULE.md": "- Never shout\n",
    "MEMORY.md": "- likes tea\n",
    "BOOTSTRAP.md": "first run",
    "memory/2026-03-07.md": "# Daily Memory: 2026-03-07\n\n- tea\n",
    "memory/dreams/2026-03-07.md": "# Dream Diary: 2026-03-07\n",
    "memory/evolution/x.md": "x",
    "memory/.evolution_backups/x.md": "x",
    "memory/users/u1/MEMORY.md": "x",
    "memory/users/u1/2026-03-07.md": "x",
    "memory/long-term/index.db": "x",
    "memory/long-term/x.md": "x",
    "knowledge/index.md": "- [tea](tea/green.md)\n",
    "knowledge/tea/green.md": "Green.\n",
    "skills/draw/SKILL.md": "x",
    "tmp/x.md": "x",
    ".env": "KEY=x",
}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name, text in FOLDER.items():
        (tmp_path / "cow" / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "cow" / name).write_bytes(text.encode())
    return tmp_path / "cow"


@pytest.fixture
def workspace(root: Path, clock: FakeClock) -> Workspace:
    return Workspace(root, root / ".yumegate", clock)


@pytest.mark.rule("WD-24")
def test_its_files_are_read_under_our_names_and_the_rules_stand_behind_the_owner_alone(workspace: Workspace) -> None:
    assert workspace.is_cowagent()
    head = HeadFiles(workspace)
    assert [(text.path, text.text) for text in head.head(ROOT)] == [
        ("system.md", "You are Cow."), ("user.md", "- Call me Li"), ("RULE.md", "- Never shout"), ("MEMORY.md", "- likes tea"),
    ]  # fmt: skip
    assert [text.path for text in head.head(ANNA)] == ["system.md"]
    assert [text.path for text in head.head(None)] == ["system.md"]


@pytest.mark.rule("WD-24", "WD-25")
def test_the_listing_holds_what_plays_a_role_and_nothing_of_theirs(workspace: Workspace) -> None:
    assert [(file.path, file.name) for file in workspace.files(ROOT)] == [
        ("MEMORY.md", "MEMORY.md"), ("RULE.md", "RULE.md"), ("knowledge/index.md", "index.md"), ("knowledge/tea/green.md", "green.md"),
        ("memory/2026-03-07.md", "2026-03-07.md"), ("memory/dreams/2026-03-07.md", "2026-03-07.md"), ("system.md", "AGENT.md"),
        ("user.md", "USER.md"),
    ]  # fmt: skip
    assert workspace.problems(ROOT) == ()


@pytest.mark.rule("WD-25")
@pytest.mark.parametrize(
    "path", ["BOOTSTRAP.md", "memory/evolution/x.md", "memory/users/u1/MEMORY.md", "memory/long-term/x.md", "skills/draw/SKILL.md", "tmp/x.md"]
)
def test_what_is_theirs_is_not_opened(workspace: Workspace, path: str) -> None:
    with pytest.raises(PathRefused):
        workspace.read(ROOT, path)


@pytest.mark.rule("WD-24", "WD-25")
def test_writing_keeps_names_and_lines_and_touches_no_other_file(workspace: Workspace, root: Path) -> None:
    workspace.prepare(ROOT, ScopeCard(label="Owner"))
    persona = workspace.read(ROOT, "system.md")
    assert persona is not None
    written = workspace.replace(ROOT, "system.md", persona.content + "Be brief.\r\n", based_on=persona.hash, by=Author.PERSON)
    assert isinstance(written, Written)
    workspace.append_daily(ROOT, date(2026, 3, 7), Section.LATE, "DM", time(0, 1), ["rain"])
    assert (root / "AGENT.md").read_bytes() == b"You are Cow.\r\nBe brief.\r\n"
    assert (root / "memory/2026-03-07.md").read_text().startswith(FOLDER["memory/2026-03-07.md"])
    assert not (root / "system.md").exists()
    for name, text in FOLDER.items():
        if name not in ("AGENT.md", "memory/2026-03-07.md"):
            assert (root / name).read_bytes() == text.encode(), name


@pytest.mark.rule("WD-24")
def test_system_md_beside_agent_md_wins_with_a_warning(workspace: Workspace, root: Path) -> None:
    (root / "system.md").write_text("You are Mia.\n")
    (text, *_) = HeadFiles(workspace).head(None)
    assert text.text == "You are Mia."
    assert [problem.path for problem in workspace.problems(ROOT)] == ["AGENT.md"]


def test_a_plain_workspace_is_none(tmp_path: Path, clock: FakeClock) -> None:
    workspace = Workspace(tmp_path / "w", tmp_path / "data", clock)
    workspace.append(ROOT, "RULE.md", "- mine")
    assert not workspace.is_cowagent()
    assert HeadFiles(workspace).head(ROOT) == ()
