"""Backup and restore: everything in one archive, and back, on SQLite and PostgreSQL, whatever is cut off (WO-39)."""

from __future__ import annotations

import errno
import gzip
import io
import json
import shutil
import sqlite3
import stat
import tarfile
from collections.abc import Callable
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gateway import backup, restore
from gateway.backup import DATABASE, MANIFEST
from gateway.config import Config
from gateway.restore import ArchiveRefused
from memory import conversations, lexical
from memory.areas import IndexArea
from memory.columns import metadata
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.index_kinds import MESSAGES
from memory.instance_lock import InstanceLock
from memory.migrate import HEAD

NOW = datetime(2026, 3, 14, 9, tzinfo=UTC)
TEXTS = ("The spare key hangs behind the barometer.", "合鍵は気圧計の裏に掛かっている。", "备用钥匙挂在气压计后面。👨‍👩‍👧")
AREA = IndexArea("c:1")


def config_of(tmp_path: Path, database: Database) -> Config:
    url = "" if database.is_sqlite else database.url.render_as_string(hide_password=False)
    workspace, data = tmp_path / "workspace", tmp_path / "workspace" / ".yumegate"
    data.mkdir(parents=True, exist_ok=True)
    settings: dict[str, Any] = {"agent_workspace": str(workspace), "data_dir": str(data), "database": {"url": url}}
    return Config.model_validate(settings, strict=False)


@pytest.fixture
def config(tmp_path: Path, database: Database) -> Config:
    """With a store that holds talk in three languages, files, attachments and older texts."""
    found = config_of(tmp_path, database)
    if database.is_sqlite:
        shutil.copy(str(database.url.database), found.data_dir / "yumegate.db")
        database = Database(f"sqlite:///{found.data_dir / 'yumegate.db'}")
    database.write_now(lambda connection: talk(connection, TEXTS))
    database.close_now()
    put(found.agent_workspace / "MEMORY.md", "- likes gyokuro\n")
    put(found.agent_workspace / "people" / "p-aaaaaaaaaa" / "会議メモ.md", "三月\n")
    put(found.data_dir / "attachments" / "ab" / "cat.png", "\x00png")
    put(found.data_dir / "backups" / "files" / "root" / "old.md", "- liked sencha\n")
    put(found.data_dir / "chroma" / "chroma.sqlite3", "an index")
    return found


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def talk(connection: sa.Connection, texts: tuple[str, ...]) -> None:
    chat = conversations.create_conversation(connection, now=NOW, key=f"web::{len(texts)}", channel="web", account="", kind="web")
    for number, text in enumerate(texts):
        conversations.add_message(connection, now=NOW, conversation_id=chat, text=text, role="user", origin="person", scope="root")
        lexical.put(connection, MESSAGES, 100 * len(texts) + number, AREA, [f"word{number}", "気圧"])


def stands(config: Config) -> dict[str, Any]:
    """All rows, words and files."""
    database = restore.open_database(config)
    tables = database.read_now(
        lambda c: {each.name: [tuple(row) for row in c.execute(sa.select(each).order_by(*each.primary_key))] for each in metadata.sorted_tables}
    )
    words = database.read_now(lambda c: [sorted(each.tolist()) for each in lexical.holders(c, MESSAGES, [(AREA, "word1"), (AREA, "気圧")])])
    database.close_now()
    files = {name: path.read_bytes() for name, path in backup.kept_files(config) if "before-restore" not in name}
    return {"tables": tables, "words": words, "files": files}


def spoil(config: Config) -> None:
    """Everything else than it was, as another week of use leaves it."""
    database = restore.open_database(config)
    database.write_now(lambda c: c.execute(conversations.messages.delete()))
    database.write_now(lambda c: talk(c, ("something else",) * 5))
    database.close_now()
    put(config.agent_workspace / "MEMORY.md", "- wrong\n")
    put(config.agent_workspace / "knowledge" / "later.md", "later\n")
    shutil.rmtree(config.data_dir / "attachments")


@pytest.mark.rule("WO-39")
def test_everything_comes_back_as_it_was_and_what_was_there_comes_back_from_the_archive_made_before(config: Config, tmp_path: Path) -> None:
    was = stands(config)
    packed = backup.pack(config, tmp_path / "out" / "a.tar.gz")
    assert stat.S_IMODE(packed.path.stat().st_mode) == 0o600
    assert (packed.files, packed.skipped) == (4, ())
    assert [path.name for path in packed.path.parent.iterdir()] == ["a.tar.gz"], "nothing is left beside it"
    spoil(config)
    spoilt = stands(config)
    assert spoilt != was
    restore.lay_ready(config, packed.path)
    assert stands(config) == spoilt, "laying ready touches nothing"
    done = restore.take_over(config)
    assert done is not None and done.before is not None
    assert stands(config) == was
    assert not (config.data_dir / "chroma").exists(), "the index is built from what is there"
    assert restore.take_over(config) is None
    restore.lay_ready(config, done.before)
    restore.take_over(config)
    assert stands(config) == spoilt
    assert [path.name for path in config.data_dir.iterdir() if "restore" in path.name] == []


@pytest.mark.rule("WO-39")
def test_numbers_go_on_behind_the_highest_one_that_came_back(config: Config, tmp_path: Path) -> None:
    backup.pack(config, tmp_path / "a.tar.gz")
    spoil(config)
    restore.lay_ready(config, tmp_path / "a.tar.gz")
    restore.take_over(config)
    database = restore.open_database(config)
    database.write_now(lambda c: talk(c, ("new", "and newer")))
    seqs = database.read_now(lambda c: list(c.execute(sa.select(conversations.messages.c.seq).order_by(conversations.messages.c.seq)).scalars()))
    database.close_now()
    assert len(set(seqs)) == len(TEXTS) + 2


@pytest.mark.rule("WO-39", "RL-1")
@pytest.mark.parametrize(
    ("database", "step"),
    [*(("sqlite", step) for step in ("kept_files", "pack", "_copy", "_restore_database", "rmtree")), ("postgres", "_restore_database")],
    indirect=["database"],
)
def test_a_take_over_that_is_cut_off_anywhere_is_ended_by_the_next_start(
    config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    was = stands(config)
    backup.pack(config, tmp_path / "a.tar.gz")
    spoil(config)
    spoilt = stands(config)
    restore.lay_ready(config, tmp_path / "a.tar.gz")
    at: dict[str, Any] = {"kept_files": backup, "pack": backup, "_copy": restore, "_restore_database": restore, "rmtree": shutil}
    for nth in range(1, 4):  # in the first, second and third call of it, as far as there are so many
        cut = Cut(getattr(at[step], step), nth)
        with monkeypatch.context() as patch:
            patch.setattr(at[step], step, cut)
            try:
                restore.take_over(config)
            except KeyboardInterrupt:
                continue
            break
    done = restore.take_over(config)
    assert stands(config) == was
    archives = sorted((config.data_dir / "backups").glob("before-restore-*"))
    assert done is None or done.before == archives[-1]
    restore.lay_ready(config, archives[0])
    restore.take_over(config)
    assert stands(config) == spoilt, "what was there before was packed whole"


class Cut:
    """A function that is killed in its nth call."""

    def __init__(self, real: Callable[..., Any], nth: int) -> None:
        self.real, self.left = real, nth

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt
        return self.real(*args, **kwargs)


@pytest.mark.rule("WO-39")
async def test_an_archive_of_one_kind_of_database_is_restored_into_the_other(empty_sqlite: Path, database: Database, tmp_path: Path) -> None:
    """From SQLite into either."""
    first = config_of(tmp_path / "first", Database(f"sqlite:///{empty_sqlite}"))
    shutil.copy(empty_sqlite, first.data_dir / "yumegate.db")
    source = restore.open_database(first)
    source.write_now(lambda c: talk(c, TEXTS))
    source.close_now()
    backup.pack(first, tmp_path / "a.tar.gz")
    second = config_of(tmp_path / "second", database)
    restore.lay_ready(second, tmp_path / "a.tar.gz")
    done = restore.take_over(second)
    assert done is not None
    assert (done.before is None) == database.is_sqlite, "an empty server's database is there and is kept, a file is not"
    assert stands(second) == stands(first)


@pytest.mark.rule("WO-39")
def test_a_backup_is_of_a_database_of_this_version_and_replaces_no_file(tmp_path: Path, config: Config) -> None:
    target = tmp_path / "a.tar.gz"
    target.write_text("mine")
    with pytest.raises(FileExistsError, match="name another"):
        backup.pack(config, target)
    assert target.read_text() == "mine"
    empty = Config.model_validate({"agent_workspace": str(tmp_path / "new"), "data_dir": str(tmp_path / "new" / "d")}, strict=False)
    with pytest.raises(StoreUnavailable, match="start the gateway once"):
        backup.pack(empty, tmp_path / "b.tar.gz")
    assert not (tmp_path / "b.tar.gz").exists()


@pytest.mark.rule("WO-39")
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_a_disk_that_fills_while_it_is_packed_leaves_no_archive(config: Config, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = tarfile.TarFile.addfile

    def full(archive: tarfile.TarFile, info: tarfile.TarInfo, *more: Any) -> None:
        if info.name.endswith("MEMORY.md"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real(archive, info, *more)

    monkeypatch.setattr(tarfile.TarFile, "addfile", full)
    with pytest.raises(OSError, match="No space"):
        backup.pack(config, tmp_path / "out" / "a.tar.gz")
    assert list((tmp_path / "out").iterdir()) == []


def packed(members: dict[str, bytes], **odd: tarfile.TarInfo) -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w:gz") as archive:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
        for info in odd.values():
            archive.addfile(info)
    return held.getvalue()


def link(name: str, to: str) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname = tarfile.SYMTYPE, to
    return info


def manifest(**more: Any) -> bytes:
    return json.dumps({"format": 1, "revision": HEAD, "made_at": "2026-03-14", "files": 0, **more}).encode()


BAD: dict[str, Callable[[bytes], bytes]] = {
    "no file of ours": lambda _db: b"hello" * 1_000,
    "empty": lambda _db: b"",
    "packed, but no archive": lambda _db: gzip.compress(b"hello" * 1_000),
    "cut off": lambda db: packed({MANIFEST: manifest(), DATABASE: db})[:-400],
    "a byte turned": lambda db: (whole := packed({MANIFEST: manifest(), DATABASE: db}))[:300] + bytes([whole[300] ^ 255]) + whole[301:],
    "no manifest": lambda db: packed({DATABASE: db}),
    "a manifest that is none": lambda db: packed({MANIFEST: b"[1]", DATABASE: db}),
    "another format": lambda db: packed({MANIFEST: manifest(format=2), DATABASE: db}),
    "a newer database": lambda db: packed({MANIFEST: manifest(revision="0999"), DATABASE: db}),
    "no database": lambda _db: packed({MANIFEST: manifest()}),
    "a damaged database": lambda db: packed({MANIFEST: manifest(), DATABASE: b"no database" * 999}),
    "files are missing": lambda db: packed({MANIFEST: manifest(files=40), DATABASE: db}),
    "a way out": lambda db: packed({MANIFEST: manifest(), DATABASE: db, "workspace/../../../evil.md": b"x"}),
    "a root": lambda db: packed({MANIFEST: manifest(), DATABASE: db, "/tmp/evil.md": b"x"}),
    "a file beside": lambda db: packed({MANIFEST: manifest(), DATABASE: db, "config.json": b"{}"}),
    "a top folder that is above": lambda db: packed({MANIFEST: manifest(), DATABASE: db, "../evil.md": b"x"}),
    "a link": lambda db: packed({MANIFEST: manifest(), DATABASE: db}, odd=link("workspace/link.md", "/etc/passwd")),
}


@pytest.mark.case("WP-19")
@pytest.mark.rule("WO-39", "RL-34")
@pytest.mark.parametrize("kind", BAD)
def test_what_is_no_whole_archive_of_ours_is_refused_and_nothing_changes(empty_sqlite: Path, tmp_path: Path, kind: str) -> None:
    config = config_of(tmp_path, Database(f"sqlite:///{empty_sqlite}"))
    put(config.agent_workspace / "MEMORY.md", "mine\n")
    archive = tmp_path / "bad.tar.gz"
    archive.write_bytes(BAD[kind](empty_sqlite.read_bytes()))
    with pytest.raises(ArchiveRefused, match="archive"):
        restore.lay_ready(config, archive)
    assert {path.name for path in config.agent_workspace.rglob("*")} == {"MEMORY.md", ".yumegate"}
    assert not (tmp_path / "evil.md").exists()
    assert restore.take_over(config) is None


@pytest.mark.rule("WO-39")
def test_an_archive_that_is_not_there_is_said(tmp_path: Path, empty_sqlite: Path) -> None:
    with pytest.raises(ArchiveRefused, match="there is no file"):
        restore.lay_ready(config_of(tmp_path, Database(f"sqlite:///{empty_sqlite}")), tmp_path / "none.tar.gz")


@pytest.mark.rule("WO-39")
def test_it_is_packed_while_a_gateway_holds_and_writes_the_store(tmp_path: Path, empty_sqlite: Path) -> None:
    config = config_of(tmp_path, Database(f"sqlite:///{empty_sqlite}"))
    shutil.copy(empty_sqlite, config.data_dir / "yumegate.db")
    database = restore.open_database(config)
    with InstanceLock(config.data_dir):
        database.write_now(lambda c: talk(c, TEXTS))  # in the log beside the file

        def writes(connection: sa.Connection) -> None:
            talk(connection, ("not yet said",) * 2)
            backup.pack(config, tmp_path / "a.tar.gz")

        database.write_now(writes)
    database.close_now()
    with tarfile.open(tmp_path / "a.tar.gz") as archive:
        archive.extract(DATABASE, tmp_path, filter="data")
    with closing(sqlite3.connect(tmp_path / DATABASE)) as copy:
        assert {row[0] for row in copy.execute("SELECT text FROM messages")} == {*TEXTS}
