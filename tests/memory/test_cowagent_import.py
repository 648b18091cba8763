"""What an import from a CowAgent folder would write: read from real folders, decided without writing anything."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Collection, Mapping
from datetime import date
from pathlib import Path

import pytest

from memory.cowagent_import import Occupied, Plan, imported_rows, plan, rows_of, wanted, without_secrets
from memory.cowagent_source import SourceRefused, read_source
from memory.lines import entries
from memory.provenance import Origin
from memory.scope_templates import template
from tests.conftest import FakeClock

TODAY = date(2026, 11, 30)
KEY = "sk-proj-4f9b2c7d1e8a6f3b5c9d2e7f"
FOLDER = {
    "AGENT.md": "# 人设\n\n你叫小牛。\n",
    "USER.md": "- お茶が好き\r\n",
    "RULE.md": "- Never shout\n",
    "MEMORY.md": "\ufeff# Memory\r\n\r\n- likes tea\r\n- 喜欢喝茶\r\n",
    "BOOTSTRAP.md": "first run",
    "README.md": "about this folder",
    "memory/2026-03-07.md": "# Daily Memory: 2026-03-07\n\n- tea\n- 雨が降った\n",
    "memory/notes.md": "- a note without a date\n",
    "memory/dreams/2026-03-07.md": "# Dream Diary: 2026-03-07\n\nWe met again.\n",
    "memory/evolution/x.md": "x",
    "memory/.evolution_backups/x.md": "x",
    "memory/users/u1/MEMORY.md": "x",
    "memory/long-term/index.db": "x",
    "knowledge/index.md": "- [tea](tea/green.md)\n",
    "knowledge/tea/green.md": "Green.\n",
    "knowledge/tea/leaf.png": "not text",
    "knowledge/public/open.md": "- not for everyone\n",
    "skills/draw/SKILL.md": "x",
    "tmp/x.md": "x",
    "scheduler/tasks.json": json.dumps({"version": 1, "tasks": {"t1": {"id": "t1", "name": "早安", "enabled": True, "action": {}}}}),
    ".env": "KEY=x",
    "chats.db": "x",
    "config.json": "{}",
}


opened: list[str] = []
"""Names of everything this process opened."""


def note_opened(event: str, args: tuple[object, ...]) -> None:
    if event == "open" and isinstance(args[0], str):
        opened.append(args[0].rpartition("/")[2])


sys.addaudithook(note_opened)  # nothing is opened past it


def folder(root: Path, files: Mapping[str, str] = FOLDER) -> Path:
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(text.encode())
    return root


def decided(
    root: Path,
    here: Mapping[str, str | None] | None = None,
    *,
    known: Collection[tuple[str, str]] = (),
    bars: Collection[str] = (),
    today: date = TODAY,
) -> Plan:
    source = read_source(root, FakeClock())
    occupied = {path: Occupied(content=None) if text is None else at(text) for path, text in (here or {}).items()}
    return plan(source, {path: occupied[path] for path in wanted(source, list(occupied))}, known, bars, today)


def at(text: str) -> Occupied:
    return Occupied(content=text, hash=digest(text))


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def targets(found: Plan) -> dict[str, str]:
    return {step.name: step.path for step in found.steps}


@pytest.fixture
def cow(tmp_path: Path) -> Path:
    return folder(tmp_path / "cow")


@pytest.mark.rule("WD-26")
def test_every_part_of_the_memory_is_copied_to_its_place_byte_for_byte(cow: Path) -> None:
    found = decided(cow)
    assert targets(found) == {
        "AGENT.md": "system.md", "USER.md": "user.md", "RULE.md": "RULE.md", "MEMORY.md": "MEMORY.md",
        "memory/2026-03-07.md": "memory/2026-03-07.md", "memory/notes.md": "memory/notes.md",
        "memory/dreams/2026-03-07.md": "memory/dreams/2026-03-07.md", "knowledge/index.md": "knowledge/index.md",
        "knowledge/tea/green.md": "knowledge/tea/green.md",
    }  # fmt: skip
    for step in found.steps:
        assert step.text == FOLDER[step.name] and step.based_on is None and not step.beside
    assert next(step.lines for step in found.steps if step.path == "MEMORY.md") == 2


@pytest.mark.case("WP-29")
@pytest.mark.rule("WD-25", "WD-26")
def test_what_is_left_there_is_named_with_its_reason_and_never_opened(cow: Path) -> None:
    opened.clear()
    found = decided(cow)
    assert {"AGENT.md", "2026-03-07.md"} <= set(opened)  # the watch works
    assert not {".env", "chats.db", "index.db", "BOOTSTRAP.md", "SKILL.md", "x.md", "long-term", "users", "skills", "tmp"} & set(opened)
    reasons = {skipped.path: skipped.reason for skipped in found.skipped}
    assert set(reasons) == {
        ".env", "BOOTSTRAP.md", "README.md", "chats.db", "config.json", "knowledge/public/open.md", "knowledge/tea/leaf.png",
        "memory/.evolution_backups/", "memory/evolution/", "memory/long-term/", "memory/users/", "scheduler/", "skills/", "tmp/",
    }  # fmt: skip
    assert all(reasons.values())
    assert "not opened" in reasons[".env"] and "not opened" in reasons["chats.db"] and "everyone" in reasons["knowledge/public/open.md"]


@pytest.mark.rule("WD-26")
def test_scheduled_tasks_are_listed_by_name_and_a_damaged_list_is_said(cow: Path) -> None:
    assert decided(cow).tasks == ("早安",)
    (cow / "scheduler/tasks.json").write_text("[]")
    found = decided(cow)
    assert found.tasks == () and "scheduler/tasks.json" in {skipped.path for skipped in found.skipped}


@pytest.mark.rule("WD-26")
def test_a_file_of_ones_own_is_kept_and_the_text_lands_beside_it(cow: Path) -> None:
    found = decided(cow, {"user.md": "- I am Li\n", "memory/2026-03-07.md": "- mine\n", "knowledge/tea/green.md": "Mine.\n"})
    beside = {step.name: step.path for step in found.steps if step.beside}
    assert beside == {
        "USER.md": "user.imported-2026-11-30.md",
        "memory/2026-03-07.md": "memory/2026-03-07.imported-2026-11-30.md",
        "knowledge/tea/green.md": "knowledge/tea/green.imported-2026-11-30.md",
    }
    taken = decided(cow, {"user.md": "- I am Li\n", "user.imported-2026-11-30.md": "- other\n"})
    assert targets(taken)["USER.md"] == "user.imported-2026-11-30-2.md"


@pytest.mark.rule("WD-26")
@pytest.mark.parametrize("language", ["en", "ja", "zh"])
def test_a_template_that_nobody_wrote_in_makes_way(cow: Path, language: str) -> None:
    ours = template("system.md", language)
    step = next(step for step in decided(cow, {"system.md": ours}).steps if step.name == "AGENT.md")
    assert (step.path, step.based_on, step.beside) == ("system.md", digest(ours), False)


@pytest.mark.rule("WD-26")
def test_a_file_that_cannot_be_read_is_never_replaced(cow: Path) -> None:
    assert targets(decided(cow, {"MEMORY.md": None}))["MEMORY.md"] == "MEMORY.imported-2026-11-30.md"


@pytest.mark.rule("WD-26")
def test_a_second_run_changes_nothing_also_on_another_day_and_after_edits(cow: Path) -> None:
    mine = {"user.md": "- I am Li\n"}
    first = decided(cow, mine)
    after = {**mine, **{step.path: step.text for step in first.steps}}
    for today in (TODAY, date(2027, 1, 1)):
        again = decided(cow, after, today=today)
        assert again.steps == () and len(again.unchanged) == len(first.steps)
    known = [(step.path, step.source_hash) for step in first.steps]
    edited = {path: text + "- since then\n" for path, text in after.items()}
    assert decided(cow, edited, known=known).steps == ()  # dreams and people went on here
    assert decided(cow, {}, known=known).steps == ()  # and what they deleted stays deleted
    (cow / "MEMORY.md").write_text("- new there\n")
    assert targets(decided(cow, edited, known=known)) == {"MEMORY.md": "MEMORY.imported-2026-11-30.md"}


@pytest.mark.rule("WD-22")
@pytest.mark.parametrize(
    ("text", "line", "kind"),
    [
        (f"- tea\n- my key is {KEY}\n- rain\n", 2, "API key"),
        ("- tea\r\n- パスワードは hunter2x です\r\n- rain\r\n", 2, "password"),
        ("- tea\n- 密码：hunter2x\n- rain\n", 2, "password"),
        (f"# {KEY}\n- tea\n- rain\n", 1, "API key"),
    ],
)
def test_a_line_with_a_secret_stays_where_it_is_and_is_told_by_kind_and_number(tmp_path: Path, text: str, line: int, kind: str) -> None:
    found = decided(folder(tmp_path / "cow", {"MEMORY.md": text}))
    assert [(secret.path, secret.line, secret.kind) for secret in found.secrets] == [("MEMORY.md", line, kind)]
    lines = text.splitlines(keepends=True)
    assert [step.text for step in found.steps] == ["".join(each for number, each in enumerate(lines, start=1) if number != line)]


@pytest.mark.rule("WD-22")
def test_a_private_key_goes_as_a_whole_and_a_value_on_the_next_line_too() -> None:
    block = "-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQEFAASC\nBKcwggSjAgEAAoIBAQC7\n"
    for end in ("-----END PRIVATE KEY-----\n", ""):
        kept, found = without_secrets(f"- tea\n{block}{end}- rain\n")
        assert kept == "- tea\n- rain\n" and {kind for _, kind in found} == {"private key"}
    kept, found = without_secrets("- tea\npassword:\nhunter2x\n- rain\n")
    assert kept == "- tea\n- rain\n" and [number for number, _ in found] == [2, 3]
    assert without_secrets("- the password policy is strict\n") == ("- the password policy is strict\n", ())


@pytest.mark.rule("WD-19", "WD-92")
def test_lines_that_were_taken_out_of_memory_here_do_not_come_back(cow: Path) -> None:
    (tea, _) = entries(FOLDER["MEMORY.md"])
    found = decided(cow, bars=[tea.hash])
    step = next(step for step in found.steps if step.path == "MEMORY.md")
    assert step.text == "\ufeff# Memory\r\n\r\n- 喜欢喝茶\r\n" and found.barred == 1


@pytest.mark.rule("WD-28")
def test_lines_are_imported_and_those_of_days_used_already(cow: Path) -> None:
    rows = {step.path: rows_of(step) for step in decided(cow).steps}
    assert {row.origin for each in rows.values() for row in each} == {Origin.IMPORTED}
    assert {row.author for each in rows.values() for row in each} == {"import"}
    assert [(row.local_date, bool(row.used_by)) for row in rows["memory/2026-03-07.md"]] == [("2026-03-07", True)] * 2
    assert [(row.local_date, bool(row.used_by)) for row in rows["MEMORY.md"]] == [("", False)] * 2
    assert [row.hash for row in rows["MEMORY.md"]] == [entry.hash for entry in entries(FOLDER["MEMORY.md"])]
    assert rows["memory/dreams/2026-03-07.md"] == ()
    assert len(imported_rows("MEMORY.md", "- twice\n- twice\n")) == 1


@pytest.mark.rule("WD-2")
def test_a_file_that_holds_only_headings_is_not_copied(tmp_path: Path) -> None:
    found = decided(folder(tmp_path / "cow", {"USER.md": "- Li\n", "memory/2026-03-07.md": "# Daily Memory: 2026-03-07\n"}))
    assert targets(found) == {"USER.md": "user.md"}
    assert "memory/2026-03-07.md" in {skipped.path for skipped in found.skipped}


@pytest.mark.rule("WD-20", "WD-21", "WD-23")
def test_links_both_spellings_and_other_encodings_are_skipped_with_the_reason(tmp_path: Path) -> None:
    cow = folder(tmp_path / "cow", {"user.md": "- ours\n", "USER.md": "- theirs\n"})
    (tmp_path / "secret.md").write_text("- not in the folder\n")
    (cow / "MEMORY.md").symlink_to(tmp_path / "secret.md")
    (cow / "AGENT.md").write_bytes("你好".encode("gb18030"))
    (cow / "knowledge").symlink_to(tmp_path)
    found = decided(cow)
    assert targets(found) == {"user.md": "user.md"}
    assert {"MEMORY.md", "USER.md", "knowledge"} <= {skipped.path.rstrip("/") for skipped in found.skipped}
    assert any("UTF-8" in skipped.reason for skipped in found.skipped)


def test_long_lines_of_theirs_are_copied_whole(tmp_path: Path) -> None:
    long = f"- {'茶' * 5_000}\n"
    (step,) = decided(folder(tmp_path / "cow", {"MEMORY.md": long})).steps
    assert step.text == long


@pytest.mark.rule("WD-26")
def test_reading_leaves_the_source_as_it_is(cow: Path) -> None:
    def state() -> dict[str, tuple[int, int]]:
        return {path.relative_to(cow).as_posix(): (path.stat().st_mtime_ns, path.stat().st_mode) for path in cow.rglob("*")}

    before = state()
    decided(cow)
    assert state() == before and not (cow / ".yumegate").exists()


@pytest.mark.parametrize("files", [{}, {"README.md": "x"}, {"skills/a.md": "x"}])
def test_a_folder_without_a_memory_is_refused(tmp_path: Path, files: dict[str, str]) -> None:
    folder(tmp_path / "cow", files)
    with pytest.raises(SourceRefused, match="cow"):
        read_source(tmp_path / "cow", FakeClock())
