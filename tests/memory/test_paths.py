"""Which paths lead to a file of ours: none that leaves the scope, by whatever trick (WD-20, N34), and no role has two spellings."""

from __future__ import annotations

import os
import socket
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from memory.file_errors import FileUnreadable, PathRefused
from memory.ids import PersonId, SpaceId
from memory.layout import ROLES, Role, daily_path, day_of, diary_path, locate, place, tool_may_write
from memory.paths import MAX_BYTES, parts_of
from memory.scopes import ROOT, STRANGER, WITHOUT_MEMORY, person_scope, scope_of, space_scope
from memory.texts import Author, Written
from memory.workspace import Workspace
from tests.conftest import FakeClock

ANNA = person_scope(PersonId("p-aaaaaaaaaa"))
CLUB = space_scope(SpaceId("s-cccccccccc"))

HOSTILE = [
    # out of the folder
    "..", "../MEMORY.md", "../../config.json", "../p-bbbbbbbbbb/MEMORY.md", "memory/../../MEMORY.md", "memory/../MEMORY.md", "./MEMORY.md",
    "memory/./2026-03-08.md", "memory//2026-03-08.md", "MEMORY.md/", "/MEMORY.md", "//host/share/MEMORY.md", "/etc/passwd", "/etc/hosts.md",
    "/proc/self/environ", "~/MEMORY.md", "~", "~anna/MEMORY.md", "..\\..\\config.json", "memory\\2026-03-08.md", "..%2f..%2fconfig.json",
    "knowledge/..\u2215x.md/../../y.md", "knowledge/\u2025/\u2025/x.md", "knowledge/\uff0e\uff0e/x.md", "knowledge/.\u200d./x.md",
    "file:///etc/passwd", "C:\\Windows\\x.md", "C:x.md", "\\\\host\\share\\x.md", "\\\\?\\C:\\x.md", "MEMORY.md:stream", "MEMORY.md::$DATA",
    # other people, and what is the program's own
    "people/p-bbbbbbbbbb/MEMORY.md", "People/p-bbbbbbbbbb/MEMORY.md", "spaces/s-cccccccccc/MEMORY.md", ".yumegate/yumegate.db",
    ".yumegate/notes.md", ".Yumegate/notes.md", ".yume\u200cgate/notes.md", "\u200c.yumegate/notes.md", ".yume\u00adgate/x.md", ".scope.json",
    ".env", "knowledge/.hidden.md", "knowledge/.git/x.md", "config.json", "secrets.env", "yumegate.db", "MEMORY", "MEMORY.md.bak", "MEMORY.txt",
    "notes.MD", ".md", "x/.md",
    # devices and names that some disks take for others
    "nul.md", "NUL", "con.md", "memory/aux.md", "knowledge/COM1.md", "knowledge/com\u00b9.md", "knowledge/lpt9.txt.md", "knowledge/CONIN$.md",
    "knowledge/\uff23\uff2f\uff2e.md", "memory./2026-03-08.md", "memory /2026-03-08.md", " MEMORY.md", "knowledge/x.md ", "knowledge /x.md",
    "knowledge/x.md.", "memory.md", "Memory.md", "MEMORY.Md", "SYSTEM.md", "System.md", "\uff2d\uff25\uff2d\uff2f\uff32\uff39.md", "MEM\u200cORY.md",
    "Memory/2026-03-08.md", "MEMORY/2026-03-08.md", "memory/Dreams/2026-03-08.md", "Knowledge/x.md", "knowledge/Public/x.md",
    "knowledge/PUBLIC/x.md", "knowledge/Index.md", "rule.md", "knowledge\u2024md",
    # signs that mislead a reader, a log or a shell
    "MEMORY.md\x00.txt", "\x00", "MEM\x00ORY.md", "MEMORY.md\n", "knowledge/a\nb.md", "knowledge/a\rb.md", "knowledge/a\x1b[2Jb.md",
    "knowledge/\x7f.md",
    "knowledge/\u202edm.exe.md", "knowledge/a\u200bb.md", "\ufeffMEMORY.md", "knowledge/a\u2028b.md", "knowledge/\x85.md", "knowledge/*.md",
    "knowledge/a?.md", "knowledge/<x>.md", "knowledge/a|b.md", 'knowledge/"a".md', "knowledge/\ud800.md", "knowledge/\udcff.md",
    # of no role, another program's, too long, empty
    "", " ", "/", ".", "memory", "memory/", "knowledge", "knowledge/", "memory/users/anna/MEMORY.md", "memory/long-term/x.md",
    "memory/evolution/x.md", "memory/dreams/old/2026-03-08.md", "skills/x.md", "tmp/x.md", "BOOTSTRAP.md", "other/x.md",
    "knowledge/" + "a/" * 20 + "x.md",
    "knowledge/" + "a" * 300 + ".md", "knowledge/" + "夢" * 100 + ".md", "knowledge/" + "a/" * 5 + "b" * 600 + ".md",
]  # fmt: skip


@pytest.fixture
def workspace(tmp_path: Path, clock: FakeClock) -> Workspace:
    return Workspace(tmp_path / "w", tmp_path / "w" / ".yumegate", clock)


@contextmanager
def nothing_changes(folder: Path) -> Generator[None]:
    def state() -> dict[str, bytes | None]:
        return {str(path): path.read_bytes() if path.is_file() else None for path in sorted(folder.rglob("*"))}

    before = state()
    yield
    assert state() == before


@pytest.mark.rule("WD-20")
@pytest.mark.case("CF-10", "WP-17", "WP-18")
def test_the_list_of_hostile_paths_is_long_enough_and_has_no_twins() -> None:
    assert len(set(HOSTILE)) == len(HOSTILE) >= 40


@pytest.mark.rule("WD-20", "RL-34")
@pytest.mark.case("CF-10", "WP-17", "WP-18")
@pytest.mark.parametrize("path", HOSTILE, ids=[ascii(path)[:50] for path in HOSTILE])
def test_a_hostile_path_reads_and_writes_nothing(workspace: Workspace, tmp_path: Path, path: str) -> None:
    (tmp_path / "config.json").write_text("{}")
    for folder in ("w/people/p-aaaaaaaaaa", "w/people/p-bbbbbbbbbb", "w/.yumegate"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "w/people/p-bbbbbbbbbb/MEMORY.md").write_text("secret of B")
    with nothing_changes(tmp_path):
        for scope in (ROOT, ANNA, CLUB):
            with pytest.raises(PathRefused):
                workspace.read(scope, path)
            for author in Author:
                with pytest.raises(PathRefused):
                    workspace.replace(scope, path, "x", based_on=None, by=author)
            with pytest.raises(PathRefused):
                workspace.append(scope, path, "x")
            with pytest.raises(PathRefused):
                workspace.remove(scope, path, based_on="")


GOOD = [
    "system.md", "user.md", "MEMORY.md", "RULE.md", "notes.md", "memory/2026-03-08.md", "memory/2026-03-08.imported-2026-04-01.md",
    "MEMORY.imported-2026-04-01.md", "memory/dreams/2026-03-08.md", "knowledge/index.md", "knowledge/tea/gyokuro.md", "knowledge/public/tea.md",
    "knowledge/会議メモ/三月 八日.md", "knowledge/会议：记录？.md", "knowledge/Привет, мир.md", "knowledge/👨‍👩‍👧.md", "knowledge/می‌خواهم.md",
    "knowledge/a b (2).md",
    "knowledge/c++.md", "knowledge/nullable.md", "knowledge/console.md", "knowledge/com10.md", "knowledge/it's.md", "knowledge/a,b;c=d.md",
]  # fmt: skip


@pytest.mark.rule("WD-20")
@pytest.mark.parametrize("path", GOOD)
def test_an_honest_path_in_any_script_is_written_and_read_back(workspace: Workspace, path: str) -> None:
    assert isinstance(workspace.replace(ROOT, path, "text\n", based_on=None, by=Author.PERSON), Written)
    read = workspace.read(ROOT, path)
    assert read is not None
    assert read.content == "text\n"
    assert [file.path for file in workspace.files(ROOT)] == [path]


@settings(deadline=None)
@given(
    st.text(max_size=60) | st.lists(st.sampled_from(["..", ".", "", "a", "memory", "people", "A.md", "\u200d", "~", "/"]), max_size=6).map("/".join)
)
@example("a" * MAX_BYTES)
def test_whatever_the_text_a_path_that_passes_stays_below_its_folder(path: str) -> None:
    try:
        parts = parts_of(path)
    except PathRefused:
        return
    normal = os.path.normpath(os.path.join("/base", *parts))  # noqa: PTH118  # the text is what is judged
    assert normal == f"/base/{path}"
    assert not any(part.startswith(".") for part in parts)


# -- what the disk holds


@pytest.mark.rule("WD-20")
@pytest.mark.case("CF-10")
def test_no_link_is_followed_neither_out_of_the_scope_nor_inside_it(workspace: Workspace, tmp_path: Path) -> None:
    root, outside = tmp_path / "w", tmp_path / "outside"
    outside.mkdir()
    (outside / "x.md").write_text("out")
    (root / "people/p-aaaaaaaaaa").mkdir(parents=True)
    (root / "MEMORY.md").write_text("the owner's")
    (root / "people/p-aaaaaaaaaa/MEMORY.md").symlink_to(root / "MEMORY.md")
    (root / "people/p-aaaaaaaaaa/knowledge").symlink_to(outside)
    (root / "knowledge/public").mkdir(parents=True)
    (root / "knowledge/public/x.md").symlink_to("../../MEMORY.md")  # would show a private file to everybody
    (root / "memory").symlink_to(outside)
    (root / "notes.md").symlink_to(tmp_path / "missing.md")
    (root / "spaces").symlink_to(root / "people")
    with nothing_changes(outside):
        for scope, path in (
            (ANNA, "MEMORY.md"),
            (ANNA, "knowledge/x.md"),
            (ROOT, "knowledge/public/x.md"),
            (ROOT, "memory/2026-03-08.md"),
            (ROOT, "notes.md"),
            (CLUB, "MEMORY.md"),
        ):
            with pytest.raises(PathRefused):
                workspace.read(scope, path)
            with pytest.raises(PathRefused):
                workspace.replace(scope, path, "changed", based_on=None)
            with pytest.raises(PathRefused):
                workspace.append(scope, path, "changed")
    assert not (tmp_path / "missing.md").exists()
    assert (root / "MEMORY.md").read_text() == "the owner's"
    assert [file.path for file in workspace.files(ROOT)] == ["MEMORY.md"]
    assert {problem.path for problem in workspace.problems(ROOT)} == {"memory", "knowledge/public/x.md", "notes.md"}
    assert {problem.path for problem in workspace.problems(ANNA)} == {"MEMORY.md", "knowledge"}


@pytest.mark.rule("WD-20")
def test_a_pipe_a_socket_and_a_folder_in_the_place_of_a_file_are_refused_at_once(workspace: Workspace, tmp_path: Path) -> None:
    root = tmp_path / "w"
    (root / "user.md").mkdir(parents=True)
    os.mkfifo(root / "MEMORY.md")
    listener = socket.socket(socket.AF_UNIX)
    listener.bind(str(root / "system.md"))
    listener.close()
    for path in ("user.md", "MEMORY.md", "system.md"):
        with pytest.raises(PathRefused):
            workspace.read(ROOT, path)
        with pytest.raises(PathRefused):
            workspace.append(ROOT, path, "x")
    assert workspace.files(ROOT) == ()


@pytest.mark.rule("WD-1", "WD-20")
def test_the_programs_folder_is_closed_under_any_name(tmp_path: Path, clock: FakeClock) -> None:
    data = tmp_path / "w" / "knowledge" / "program"
    workspace = Workspace(tmp_path / "w", data, clock)
    data.mkdir(parents=True)
    (data / "x.md").write_text("ours")
    with pytest.raises(PathRefused):
        workspace.read(ROOT, "knowledge/program/x.md")
    assert workspace.files(ROOT) == ()


def test_the_workspace_itself_may_be_a_link(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    workspace = Workspace(tmp_path / "link", tmp_path / "data", clock)
    assert isinstance(workspace.replace(ROOT, "MEMORY.md", "- x\n", based_on=None), Written)
    assert (tmp_path / "real/MEMORY.md").read_text() == "- x\n"


@pytest.mark.rule("WD-20", "WD-23")
def test_a_file_above_256_kb_is_left_alone(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "w").mkdir()
    (tmp_path / "w/MEMORY.md").write_text("x" * 262_145)
    with pytest.raises(FileUnreadable, match="262,145"):
        workspace.read(ROOT, "MEMORY.md")


# -- roles


@pytest.mark.parametrize(
    ("path", "role"),
    [
        ("system.md", Role.SYSTEM),
        ("AGENT.md", Role.SYSTEM),
        ("user.md", Role.ABOUT),
        ("USER.md", Role.ABOUT),
        ("RULE.md", Role.RULES),
        ("MEMORY.md", Role.CURATED),
        ("notes.md", Role.OTHER),
        ("memory/2026-02-28.md", Role.DAILY),
        ("memory/2026-02-30.md", Role.OTHER),
        ("memory/MEMORY.md", Role.OTHER),
        ("memory/dreams/2026-02-28.md", Role.DIARY),
        ("memory/dreams/2026-02-28.imported-2026-03-01.md", Role.OTHER),
        ("knowledge/index.md", Role.KNOWLEDGE),
        ("knowledge/publication.md", Role.KNOWLEDGE),
        ("knowledge/public/a.md", Role.PUBLIC),
    ],
)
def test_each_file_has_one_role(path: str, role: Role) -> None:
    assert place(ROOT, path).role is role


@pytest.mark.rule("WD-21", "WD-24")
def test_two_names_of_one_file_are_one_path() -> None:
    assert place(ROOT, "USER.md").path == place(ROOT, "user.md").path == place(ANNA, "USER.md").path == "user.md"
    assert place(ROOT, "AGENT.md").path == "system.md"


@pytest.mark.rule("WD-8", "WD-11")
@pytest.mark.parametrize(
    ("scope", "path"),
    [
        (ANNA, "system.md"),
        (ANNA, "AGENT.md"),
        (ANNA, "space.md"),
        (ANNA, "knowledge/public/x.md"),
        (CLUB, "user.md"),
        (CLUB, "USER.md"),
        (ROOT, "space.md"),
    ],
)
def test_a_file_of_another_kind_of_scope_is_refused(scope: object, path: str) -> None:
    assert scope in (ROOT, ANNA, CLUB)
    with pytest.raises(PathRefused):
        place(scope, path)  # type: ignore[arg-type]


def test_days_are_read_from_names() -> None:
    from_daily = day_of("memory/2026-03-08.md")
    assert from_daily is not None
    assert daily_path(from_daily) == "memory/2026-03-08.md"
    assert diary_path(from_daily) == "memory/dreams/2026-03-08.md"
    assert day_of("memory/dreams/2026-03-08.md") == from_daily
    assert day_of("2026-03-08.md") is day_of("memory/2026-3-8.md") is day_of("MEMORY.md") is None


@pytest.mark.rule("WD-66", "WD-78")
def test_a_diary_is_in_no_prompt_no_index_and_no_dream_and_no_tool_writes_it() -> None:
    diary = ROLES[Role.DIARY]
    assert (diary.head, diary.searchable, diary.dream, diary.tools) == (False, False, "never", False)
    assert set(ROLES) == set(Role)


OWNER = scope_of("dm", person=ROOT, space=None, memory_on=True, known=True)
PERSON = scope_of("dm", person=ANNA, space=None, memory_on=True, known=True)
GROUP = scope_of("group", person=ROOT, space=CLUB, memory_on=True, known=True)


@pytest.mark.rule("WD-9", "WD-10", "WD-103")
def test_a_tool_reaches_what_its_turn_may_read_and_nothing_else() -> None:
    assert locate(PERSON, "MEMORY.md").folder == ("people", "p-aaaaaaaaaa")
    assert locate(PERSON, "system.md").scope == locate(PERSON, "knowledge/public/tea.md").scope == ROOT
    assert locate(GROUP, "space.md").scope == CLUB
    assert locate(STRANGER, "knowledge/public/tea.md").scope == ROOT
    for access, path in (
        (STRANGER, "MEMORY.md"),
        (WITHOUT_MEMORY, "knowledge/public/tea.md"),
        (WITHOUT_MEMORY, "MEMORY.md"),
        (PERSON, "../p-bbbbbbbbbb/MEMORY.md"),
        (GROUP, "user.md"),
    ):
        with pytest.raises(PathRefused):
            locate(access, path)


@pytest.mark.rule("WD-8", "WD-104")
def test_which_files_tools_may_write() -> None:
    paths = [
        "system.md",
        "user.md",
        "MEMORY.md",
        "notes.md",
        "memory/2026-03-08.md",
        "memory/dreams/2026-03-08.md",
        "knowledge/tea.md",
        "knowledge/public/t.md",
    ]
    allowed = [path for path in paths if tool_may_write(OWNER, place(ROOT, path))]
    assert allowed == ["system.md", "user.md", "MEMORY.md", "memory/2026-03-08.md", "knowledge/tea.md"]
    assert not tool_may_write(OWNER, place(ROOT, "knowledge/tea.md"), knowledge=False)
    assert not tool_may_write(PERSON, locate(PERSON, "system.md"))
    assert not tool_may_write(PERSON, locate(PERSON, "knowledge/public/tea.md"))
    assert not tool_may_write(OWNER, place(ANNA, "MEMORY.md"))
    assert tool_may_write(PERSON, place(ANNA, "user.md"))
    assert not tool_may_write(GROUP, place(CLUB, "space.md"))
    assert tool_may_write(GROUP, place(CLUB, "MEMORY.md"))
