"""The files of the workspace: lazy, private, changed only on what was seen, every byte of people's kept, and left alone when they cannot be read."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import stat
import threading
from collections.abc import Callable
from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from memory import scope_templates
from memory.errors import StoreUnavailable
from memory.file_errors import FileRefused, FileUnreadable, SecretRefused, TooLarge
from memory.ids import PersonId, SpaceId
from memory.languages import LANGUAGES
from memory.layout import Role
from memory.markdown_lines import in_style_of
from memory.scope_card import ScopeCard
from memory.scopes import ROOT, Scope, person_scope, space_scope
from memory.texts import Author, Conflict, Section, Text, Written
from memory.workspace import Workspace
from tests.conftest import FakeClock

ANNA, BEN = person_scope(PersonId("p-aaaaaaaaaa")), person_scope(PersonId("p-bbbbbbbbbb"))
CLUB = space_scope(SpaceId("s-cccccccccc"))
DAY = date(2026, 3, 8)
DAILY = "memory/2026-03-08.md"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "home" / "yumegate"


@pytest.fixture
def workspace(root: Path, clock: FakeClock) -> Workspace:
    return Workspace(root, root / ".yumegate", clock)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def put(workspace: Workspace, scope: Scope, path: str, content: str) -> Text:
    """Write as a person does, whatever stands there."""
    old = workspace.read(scope, path)
    written = workspace.replace(scope, path, content, based_on=old.hash if old else None, by=Author.PERSON)
    assert isinstance(written, Written)
    assert written.text is not None
    return written.text


def content(workspace: Workspace, scope: Scope, path: str) -> str | None:
    text = workspace.read(scope, path)
    return text.content if text else None


# -- lazy and private


@pytest.mark.rule("WD-1", "WD-2")
def test_looking_makes_nothing_and_neither_does_a_refused_write(workspace: Workspace, root: Path) -> None:
    assert workspace.read(ROOT, "MEMORY.md") is None
    assert workspace.files(ANNA) == workspace.problems(ANNA) == ()
    assert workspace.revisions(ANNA, "MEMORY.md") == ()
    assert not workspace.is_cowagent()
    with pytest.raises(SecretRefused):
        workspace.replace(ANNA, "MEMORY.md", "- password: hunter2", based_on=None)
    assert workspace.append_daily(ANNA, DAY, Section.SUMMARY, "DM", time(23, 55), ["", " - ", "\n"]).text is None
    assert isinstance(workspace.replace(ANNA, "MEMORY.md", "- x", based_on="0" * 64), Conflict)
    assert not root.exists()


@pytest.mark.rule("WD-1", "WD-16")
def test_what_is_made_is_private(workspace: Workspace, root: Path) -> None:
    put(workspace, ANNA, "knowledge/tea/green.md", "- x\n")
    put(workspace, ANNA, "knowledge/tea/green.md", "- y\n")
    assert mode(root / "people/p-aaaaaaaaaa/knowledge/tea/green.md") == 0o600
    for folder in [root, *(path for path in root.rglob("*") if path.is_dir())]:
        assert mode(folder) == 0o700, folder
    assert all(mode(path) == 0o600 for path in (root / ".yumegate").rglob("*.md") if path.is_file())


@pytest.mark.rule("WD-16")
def test_an_existing_mode_is_kept_and_no_draft_stays(workspace: Workspace, root: Path) -> None:
    put(workspace, ROOT, "MEMORY.md", "- x\n")
    (root / "MEMORY.md").chmod(0o640)
    put(workspace, ROOT, "MEMORY.md", "- y\n")
    workspace.append(ROOT, "MEMORY.md", "- z")
    assert mode(root / "MEMORY.md") == 0o640
    assert sorted(path.name for path in root.iterdir()) == [".yumegate", "MEMORY.md"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root may give files away")
def test_a_file_of_another_user_stays_that_users(workspace: Workspace, root: Path) -> None:
    put(workspace, ROOT, "MEMORY.md", "- x\n")
    os.chown(root / "MEMORY.md", 12345, 12345)
    put(workspace, ROOT, "MEMORY.md", "- y\n")
    assert (root / "MEMORY.md").stat().st_uid == 12345


# -- compare and swap


@pytest.mark.rule("WD-17")
@pytest.mark.case("SC-20")
def test_a_change_based_on_an_older_text_is_shown_and_not_written(workspace: Workspace, root: Path) -> None:
    seen = put(workspace, ROOT, "MEMORY.md", "- tea\n- rain\n")
    (root / "MEMORY.md").write_text("- tea\n- rain\n- by hand\n")
    stale = workspace.replace(ROOT, "MEMORY.md", "- tea, green\n- rain\n", based_on=seen.hash)
    assert isinstance(stale, Conflict)
    assert content(workspace, ROOT, "MEMORY.md") == "- tea\n- rain\n- by hand\n"
    assert stale.current is not None
    assert stale.current.content == "- tea\n- rain\n- by hand\n"
    assert [(line.kind, line.text) for line in stale.difference()] == [
        ("removed", "- tea"), ("added", "- tea, green"), ("same", "- rain"), ("removed", "- by hand"),
    ]  # fmt: skip
    again = workspace.replace(ROOT, "MEMORY.md", "- tea, green\n- rain\n- by hand\n", based_on=stale.current.hash)
    assert isinstance(again, Written)


@pytest.mark.rule("WD-17", "WD-88")
def test_a_stale_form_can_show_what_others_changed_while_the_base_is_kept(workspace: Workspace) -> None:
    seen = put(workspace, ROOT, "MEMORY.md", "- tea\n")
    put(workspace, ROOT, "MEMORY.md", "- tea\n- from elsewhere\n")
    stale = workspace.replace(ROOT, "MEMORY.md", "- coffee\n", based_on=seen.hash)
    assert isinstance(stale, Conflict)
    assert stale.base == "- tea\n"
    assert [(line.kind, line.text) for line in stale.theirs()] == [("same", "- tea"), ("added", "- from elsewhere")]


@pytest.mark.rule("WD-17", "WD-19")
def test_a_file_that_came_or_went_meanwhile_is_a_conflict_too(workspace: Workspace, root: Path) -> None:
    seen = put(workspace, ROOT, "user.md", "- me\n")
    assert isinstance(workspace.replace(ROOT, "user.md", "- new\n", based_on=None), Conflict)
    (root / "user.md").unlink()
    gone = workspace.replace(ROOT, "user.md", "- me too\n", based_on=seen.hash)
    assert isinstance(gone, Conflict)
    assert gone.current is None
    assert not (root / "user.md").exists()


@pytest.mark.rule("WD-17")
@pytest.mark.parametrize("moment", range(8))
def test_a_hand_edit_at_any_moment_of_a_write_is_not_lost(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch, moment: int) -> None:
    """N5. The person saves just before the nth flush, open or reading of the write; theirs stays, or it is what the new text was based on."""
    seen = put(workspace, ROOT, "MEMORY.md", "- old\n")
    calls = 0

    def counted(real: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **named: object) -> object:
            nonlocal calls
            calls += 1
            if calls - 1 == moment:
                (root / "MEMORY.md").write_text("- by hand\n")
            return real(*args, **named)

        return call

    monkeypatch.setattr(os, "fsync", counted(os.fsync))
    monkeypatch.setattr(os, "fchmod", counted(os.fchmod))
    monkeypatch.setattr(os, "listdir", counted(os.listdir))
    written = workspace.replace(ROOT, "MEMORY.md", "- new\n", based_on=seen.hash)
    monkeypatch.undo()
    now = content(workspace, ROOT, "MEMORY.md")
    if isinstance(written, Conflict):
        assert now == "- by hand\n"
    else:
        assert now == ("- by hand\n" if calls > moment else "- new\n")


@pytest.mark.rule("WD-17", "WD-18")
def test_a_hand_edit_while_a_day_is_appended_to_is_kept_beside_it(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    put(workspace, ROOT, DAILY, "- mine\n")
    real = os.fsync
    edits = iter(["- mine, better\n", "- mine, best\n"])

    def edit_then_flush(file: int) -> None:
        if text := next(edits, None):
            (root / DAILY).write_text(text)
        real(file)

    monkeypatch.setattr(os, "fsync", edit_then_flush)
    workspace.append(ROOT, DAILY, "- ours")
    assert content(workspace, ROOT, DAILY) == "- mine, best\n\n- ours\n"


def test_saying_the_same_again_writes_nothing(workspace: Workspace, root: Path) -> None:
    seen = put(workspace, ROOT, "MEMORY.md", "- x\n")
    before = (root / "MEMORY.md").stat().st_mtime_ns
    again = workspace.replace(ROOT, "MEMORY.md", "- x\n", based_on=seen.hash)
    assert isinstance(again, Written)
    assert not again.changed
    assert (root / "MEMORY.md").stat().st_mtime_ns == before
    assert workspace.revisions(ROOT, "MEMORY.md") == ()


@pytest.mark.rule("WD-19", "WD-88")
def test_a_removed_file_stays_removed_and_its_text_is_a_revision(workspace: Workspace) -> None:
    seen = put(workspace, ROOT, "notes.md", "- x\n")
    assert isinstance(workspace.remove(ROOT, "notes.md", based_on="0" * 64), Conflict)
    gone = workspace.remove(ROOT, "notes.md", based_on=seen.hash)
    assert isinstance(gone, Written)
    assert gone.text is None
    assert gone.revision is not None
    assert workspace.revision(ROOT, "notes.md", gone.revision) == "- x\n"
    assert workspace.read(ROOT, "notes.md") is None


# -- bytes


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Workspace:
    folder = tmp_path_factory.mktemp("shared")
    return Workspace(folder, folder / ".yumegate", FakeClock())


line = st.sampled_from(["- x", "| a | b |", "```", "---", "lore: always", "# 夢", "", "\t", "\u2028", "\x0c", "<b>"]) | st.text(max_size=20)
markdown = st.tuples(st.sampled_from(["", "\ufeff"]), st.lists(st.tuples(line, st.sampled_from(["\n", "\r\n", "\r", ""])), max_size=8)).map(
    lambda parts: parts[0] + "".join(text + end for text, end in parts[1])
)


@pytest.mark.rule("WD-4", "WD-16")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(markdown)
def test_what_is_written_is_read_back_byte_for_byte(shared: Workspace, text: str) -> None:
    written = put(shared, ROOT, "notes.md", text)
    read = shared.read(ROOT, "notes.md")
    assert read is not None
    assert read.content.encode() == text.encode()
    assert read.hash == written.hash == hashlib.sha256(text.encode()).hexdigest()


bullets = st.lists(st.text(alphabet=st.characters(exclude_categories=["Cs"]), max_size=30), max_size=3)


@pytest.mark.rule("WD-4", "WD-18")
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(markdown, st.lists(st.tuples(st.sampled_from(Section), st.sampled_from(["", "DM", "Club #1"]), bullets), max_size=4))
def test_whatever_is_added_to_a_day_the_earlier_bytes_stand_first(shared: Workspace, text: str, added: list[tuple[Section, str, list[str]]]) -> None:
    now = put(shared, ROOT, DAILY, text).content
    for section, label, said in added:
        shared.append_daily(ROOT, DAY, section, label, time(9, 5), said)
        after = content(shared, ROOT, DAILY)
        assert after is not None
        assert after.startswith(now)
        now = after


@pytest.mark.rule("WD-4")
def test_an_edit_through_a_form_keeps_line_ends_table_and_mark_of_the_lines_it_did_not_touch(workspace: Workspace, root: Path) -> None:
    root.mkdir(parents=True)
    before = b"\xef\xbb\xbf---\r\nlore: always\r\n---\r\n| a | b |\r\n|---|---|\r\n```py\r\nx  \r\n```\r\nlast, mixed\n"
    (root / "notes.md").write_bytes(before)
    seen = workspace.read(ROOT, "notes.md")
    assert seen is not None
    form = seen.content.removeprefix("\ufeff").replace("\r\n", "\n").replace("x  \n", "y\n")
    workspace.replace(ROOT, "notes.md", in_style_of(seen.content, form), based_on=seen.hash, by=Author.PERSON)
    assert (root / "notes.md").read_bytes() == before.replace(b"x  \r\n", b"y\r\n")


# -- the day's file


@pytest.mark.rule("WD-2", "WD-4", "WD-18")
@pytest.mark.case("SC-22")
def test_a_day_grows_section_by_section(workspace: Workspace) -> None:
    workspace.append_daily(ROOT, DAY, Section.TRIMMED, "Telegram, Anna", time(9, 30), ["Moved the meeting to Friday", "  - Ordered\n tea "])
    workspace.append_daily(ROOT, DAY, Section.SUMMARY, "Telegram, Anna", time(23, 55), ["Planned the trip"])
    workspace.append_daily(ROOT, DAY, Section.SUMMARY, "Web\n# not a heading", time(23, 55), ["買い物の話"])
    last = workspace.append_daily(ROOT, DAY, Section.LATE, "", time(0, 1), ["Said good night"])
    assert last.text is not None
    assert last.text.role is Role.DAILY
    assert last.text.content == (
        "# Daily Memory: 2026-03-08\n\n"
        "## Trimmed Context\n\n### 09:30 Telegram, Anna\n\n- Moved the meeting to Friday\n- Ordered tea\n\n"
        "## Daily Summary\n\n### 23:55 Telegram, Anna\n\n- Planned the trip\n\n"
        "### 23:55 Web # not a heading\n\n- 買い物の話\n\n"
        "## Daily Summary (late)\n\n### 00:01\n\n- Said good night\n"
    )
    assert workspace.revisions(ROOT, DAILY) == ()  # plain appends need none


@pytest.mark.rule("WD-18")
def test_a_job_that_repeats_itself_adds_nothing(workspace: Workspace) -> None:
    first = workspace.append_daily(ROOT, DAY, Section.SUMMARY, "DM", time(23, 55), ["one", "two"])
    again = workspace.append_daily(ROOT, DAY, Section.SUMMARY, "DM", time(23, 55), ["one", "two"])
    assert (first.changed, again.changed) == (True, False)
    assert again.text == first.text


@pytest.mark.rule("WD-19")
def test_an_emptied_day_is_not_refilled(workspace: Workspace, root: Path) -> None:
    workspace.append_daily(ROOT, DAY, Section.SUMMARY, "DM", time(23, 55), ["one"])
    (root / DAILY).write_text("")
    added = workspace.append_daily(ROOT, DAY, Section.LATE, "DM", time(0, 1), ["two"])
    assert added.text is not None
    assert "one" not in added.text.content


@pytest.mark.rule("WD-22")
def test_a_bullet_with_a_secret_is_left_out_and_the_log_does_not_hold_it(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        added = workspace.append_daily(
            ROOT, DAY, Section.SUMMARY, "password: hunter2", time(23, 55), ["Tea at five", "カード番号は4111111111111111", "x" * 4_001]
        )
    assert added.refused == ("card number", "line too long")
    assert added.text is not None
    assert added.text.content.endswith("### 23:55\n\n- Tea at five\n")
    assert "card number" in caplog.text
    assert "4111" not in caplog.text
    assert "hunter2" not in caplog.text


# -- limits


@pytest.mark.rule("WD-22")
def test_a_program_cannot_write_a_secret_and_the_refusal_does_not_repeat_it(workspace: Workspace, caplog: pytest.LogCaptureFixture) -> None:
    seen = put(workspace, ROOT, "MEMORY.md", "- my password is hunter2\n")  # a person may
    with caplog.at_level(logging.DEBUG), pytest.raises(SecretRefused) as refused:
        workspace.append(ROOT, "MEMORY.md", "- the PIN is 830215")
    assert refused.value.kind == "password"
    assert "830215" not in str(refused.value) + caplog.text
    kept = workspace.replace(ROOT, "MEMORY.md", "- my password is hunter2\n- tea\n", based_on=seen.hash)  # their line is theirs
    assert isinstance(kept, Written)


@pytest.mark.rule("WD-20")
def test_limits_hold_for_the_file_and_for_lines_of_programs(workspace: Workspace) -> None:
    put(workspace, ROOT, "notes.md", "x" * 4_001 + "\n")
    seen = put(workspace, ROOT, "MEMORY.md", "- a\n")
    with pytest.raises(TooLarge):
        workspace.replace(ROOT, "MEMORY.md", "x" * 4_001, based_on=seen.hash)
    with pytest.raises(TooLarge):
        workspace.append(ROOT, "MEMORY.md", "x" * 4_001)
    assert isinstance(workspace.replace(ROOT, "MEMORY.md", "- a\n" + "x" * 4_000, based_on=seen.hash), Written)
    full = put(workspace, ROOT, "knowledge/a.md", "夢" * 87_381 + "x")  # 262,144 bytes
    for change in (lambda: workspace.append(ROOT, "knowledge/a.md", "- x"), lambda: put(workspace, ROOT, "knowledge/b.md", full.content + "x")):
        with pytest.raises(TooLarge):
            change()
    assert content(workspace, ROOT, "knowledge/a.md") == full.content


def test_a_text_that_is_no_text_is_refused(workspace: Workspace) -> None:
    with pytest.raises(FileRefused):
        workspace.replace(ROOT, "notes.md", "\ud800", based_on=None)


# -- what cannot be read


@pytest.mark.rule("WD-23")
def test_a_file_that_is_no_utf8_is_untouched_and_named(workspace: Workspace, root: Path) -> None:
    (root / "memory").mkdir(parents=True)
    for name in ("MEMORY.md", DAILY):
        (root / name).write_bytes("日記".encode("shift_jis"))
    for change in (
        lambda: workspace.read(ROOT, "MEMORY.md"),
        lambda: workspace.replace(ROOT, "MEMORY.md", "x", based_on=None),
        lambda: workspace.append(ROOT, "MEMORY.md", "x"),
        lambda: workspace.append_daily(ROOT, DAY, Section.SUMMARY, "DM", time(23, 55), ["x"]),
    ):
        with pytest.raises(FileUnreadable, match="UTF-8"):
            change()
    assert (root / "MEMORY.md").read_bytes() == "日記".encode("shift_jis")
    assert [problem.path for problem in workspace.problems(ROOT)] == ["MEMORY.md", DAILY]


@pytest.mark.rule("WD-23")
def test_a_full_disk_is_to_be_tried_again_and_leaves_the_file_whole(workspace: Workspace, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = put(workspace, ROOT, "MEMORY.md", "- old\n")

    def full(file: int, data: memoryview) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    for change in (
        lambda: workspace.replace(ROOT, "MEMORY.md", "- new\n", based_on=seen.hash),
        lambda: workspace.append(ROOT, "MEMORY.md", "- new"),
        lambda: workspace.append_daily(ROOT, DAY, Section.SUMMARY, "DM", time(23, 55), ["x"]),
    ):
        with pytest.raises(StoreUnavailable, match="No space left"):
            change()
    monkeypatch.undo()
    assert content(workspace, ROOT, "MEMORY.md") == "- old\n"
    assert [path.name for path in root.rglob("*") if path.is_file()] == ["MEMORY.md"]


@pytest.mark.rule("WD-1", "WD-23")
def test_a_workspace_that_is_a_file_is_said_and_not_replaced(tmp_path: Path, clock: FakeClock) -> None:
    (tmp_path / "w").write_text("mine")
    workspace = Workspace(tmp_path / "w", tmp_path / "data", clock)
    with pytest.raises(StoreUnavailable):
        workspace.append(ROOT, "MEMORY.md", "- x")
    assert (tmp_path / "w").read_text() == "mine"


@pytest.mark.rule("WD-21")
def test_of_two_spellings_of_user_md_the_lower_one_wins_and_the_other_is_reported(workspace: Workspace, root: Path) -> None:
    root.mkdir(parents=True)
    (root / "USER.md").write_text("- old\n")
    upper = workspace.read(ROOT, "user.md")
    assert upper is not None
    assert (upper.path, upper.name, upper.content) == ("user.md", "USER.md", "- old\n")
    put(workspace, ROOT, "user.md", "- changed\n")  # names are kept as they are
    assert sorted(path.name for path in root.glob("*.md")) == ["USER.md"]
    assert workspace.problems(ROOT) == ()
    (root / "user.md").write_text("- new\n")
    assert content(workspace, ROOT, "USER.md") == "- new\n"
    assert [(file.path, file.name) for file in workspace.files(ROOT)] == [("user.md", "user.md")]
    assert [problem.path for problem in workspace.problems(ROOT)] == ["USER.md"]


# -- listing and scopes


def test_a_listing_names_what_is_there_with_role_size_and_time(workspace: Workspace, root: Path) -> None:
    for path in ("MEMORY.md", DAILY, "memory/dreams/2026-03-08.md", "knowledge/tea/green.md", "notes.md"):
        put(workspace, ROOT, path, "- x\n")
    put(workspace, ANNA, "MEMORY.md", "- hers\n")
    for other in ("node_modules/a/readme.md", "knowledge/.obsidian/x.md", "memory/users/x/MEMORY.md"):
        (root / other).parent.mkdir(parents=True)
        (root / other).write_text("x")
    (root / "knowledge/photo.png").write_bytes(b"")
    os.utime(root / "MEMORY.md", (1_772_962_013, 1_772_962_013))
    files = workspace.files(ROOT)
    assert [(file.path, file.role) for file in files] == [
        ("MEMORY.md", Role.CURATED), ("knowledge/tea/green.md", Role.KNOWLEDGE), (DAILY, Role.DAILY),
        ("memory/dreams/2026-03-08.md", Role.DIARY), ("notes.md", Role.OTHER),
    ]  # fmt: skip
    assert files[0].size == 4
    assert files[0].changed_at == datetime.fromtimestamp(1_772_962_013, UTC)
    assert [file.path for file in workspace.files(ANNA)] == ["MEMORY.md"]


@pytest.mark.rule("WD-15")
def test_a_deleted_scope_leaves_no_file_and_no_revision_and_touches_no_other(workspace: Workspace, root: Path) -> None:
    for scope in (ROOT, ANNA, BEN, CLUB):
        put(workspace, scope, "MEMORY.md", f"- planted in {scope}\n")
        put(workspace, scope, "MEMORY.md", f"- planted in {scope}, newer\n")
    (root / "people/p-aaaaaaaaaa/photo.png").write_bytes(b"planted in people/p-aaaaaaaaaa")
    (root / "people/.gone-p-aaaaaaaaaa").mkdir()  # of a deletion that was killed
    (root / "people/.gone-p-aaaaaaaaaa/MEMORY.md").write_text("planted in people/p-aaaaaaaaaa")
    assert workspace.delete_scope(ANNA)
    assert not workspace.delete_scope(ANNA)
    left = [path for path in root.rglob("*") if path.is_file()]
    assert not [path for path in left if b"p-aaaaaaaaaa" in path.read_bytes() or "p-aaaaaaaaaa" in str(path)]
    assert len(left) == 6
    with pytest.raises(FileRefused):
        workspace.delete_scope(ROOT)


@pytest.mark.rule("WD-15", "WD-20")
def test_deleting_a_scope_that_somebody_made_a_link_removes_the_link(workspace: Workspace, root: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside/x.md").write_text("x")
    (root / "people").mkdir(parents=True)
    (root / "people/p-aaaaaaaaaa").symlink_to(tmp_path / "outside")
    assert workspace.delete_scope(ANNA)
    assert list((root / "people").iterdir()) == []
    assert (tmp_path / "outside/x.md").exists()


# -- templates and the card


@pytest.mark.rule("WD-3")
def test_a_card_says_what_a_folder_is_called(workspace: Workspace, root: Path) -> None:
    card = ScopeCard(label="茶道部", platform="discord", timezone="Asia/Tokyo")
    assert workspace.prepare(CLUB, card)
    written = root / "spaces/s-cccccccccc/.scope.json"
    assert json.loads(written.read_bytes()) == {"label": "茶道部", "platform": "discord", "timezone": "Asia/Tokyo"}
    written.write_text("{")  # a person may have opened it
    assert not workspace.prepare(CLUB, ScopeCard(label="Tea"))
    assert written.read_text() == "{", "a folder keeps the card it has"
    assert ".scope.json" not in {file.name for file in workspace.files(CLUB)}


@pytest.mark.rule("WD-6", "WD-11", "WD-19")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_new_scope_begins_with_templates_and_what_is_deleted_stays_deleted(workspace: Workspace, root: Path, language: str) -> None:
    assert workspace.prepare(ROOT, ScopeCard(label="Owner"), language=language)
    assert {path.name for path in root.glob("*.md")} == {"system.md", "user.md", "MEMORY.md"}
    assert all(mode(path) == 0o600 for path in root.iterdir() if path.is_file())
    for name in ("system.md", "user.md", "MEMORY.md"):
        text = content(workspace, ROOT, name)
        assert text is not None
        assert not scope_templates.has_own_content(name, text)
        assert scope_templates.has_own_content(name, text + "\n- mine\n")
        assert scope_templates.for_prompt(name, text.replace("\n", "\r\n") + "\n- mine\n").endswith("- mine")
        assert "<!--" not in scope_templates.for_prompt(name, text + "\n- mine\n")
    (root / "MEMORY.md").unlink()
    assert not workspace.prepare(ROOT, ScopeCard(label="Owner"), language=language)
    assert not (root / "MEMORY.md").exists()
    assert workspace.prepare(CLUB, ScopeCard())
    assert {file.path for file in workspace.files(CLUB)} == {"space.md", "MEMORY.md"}


@pytest.mark.rule("WD-19")
def test_a_folder_with_markdown_of_its_own_gets_no_templates(workspace: Workspace, root: Path) -> None:
    put(workspace, ROOT, "notes.md", "- x\n")
    assert not workspace.prepare(ROOT, ScopeCard())
    assert [file.path for file in workspace.files(ROOT)] == ["notes.md"]


@pytest.mark.rule("WD-11")
def test_every_language_has_every_template_and_system_md_says_that_everybody_is_served_by_it() -> None:
    for name in scope_templates.NAMES:
        texts = [scope_templates.template(name, language) for language in LANGUAGES]
        assert len(set(texts)) == len(texts)
        assert len({text.count("\n## ") for text in texts}) == 1
        assert scope_templates.template(name, "de") == texts[0]
    words = {"en": "Everybody", "ja": "すべて", "zh": "所有"}
    assert all(word in scope_templates.template("system.md", language) for language, word in words.items())
    with pytest.raises(KeyError):
        scope_templates.template("../scopes.py", "en")


# -- writers


@pytest.mark.rule("WD-17", "WD-18")
def test_writers_of_one_scope_take_turns_and_lose_nothing(workspace: Workspace) -> None:
    def write(number: int) -> None:
        for n in range(5):
            workspace.append_daily(ROOT, DAY, Section.SUMMARY, f"chat {number}", time(12, n), [f"event {number}-{n}"])

    writers = [threading.Thread(target=write, args=(number,)) for number in range(6)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(30)
    day = content(workspace, ROOT, DAILY)
    assert day is not None
    assert sorted(line for line in day.splitlines() if line.startswith("- ")) == sorted(f"- event {a}-{b}" for a in range(6) for b in range(5))
    assert day.count("# Daily Memory") == 1
