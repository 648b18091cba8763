"""What archives, folders and commands at the wrong moment may do to a backup or a restore: nothing that is half, mixed or elsewhere (WO-39)."""

from __future__ import annotations

import gzip
import os
import shutil
import sqlite3
import tarfile
import threading
from collections import Counter
from contextlib import closing, suppress
from pathlib import Path
from typing import NamedTuple

import pytest

from gateway import backup, restore
from gateway.backup import DATABASE, MANIFEST
from gateway.config import Config
from gateway.restore import ArchiveRefused
from memory.database import Database
from memory.migrate import HEAD
from tests.gateway.test_backup import config_of, manifest, packed, put, stands, talk


@pytest.fixture
def config(tmp_path: Path, empty_sqlite: Path) -> Config:
    found = config_of(tmp_path, Database(f"sqlite:///{empty_sqlite}"))
    shutil.copy(empty_sqlite, found.data_dir / "yumegate.db")
    return found


def archive_of(config: Config, files: dict[str, bytes], *, told: int | None = None, **odd: tarfile.TarInfo) -> Path:
    """With the database that is there, and a manifest that fits unless `told` says how many files it names."""
    members = {DATABASE: (config.data_dir / "yumegate.db").read_bytes(), MANIFEST: manifest(files=len(files) if told is None else told)}
    target = config.data_dir.parent.parent / "made.tar.gz"
    target.write_bytes(packed({**files, **members}, **odd))
    return target


def files_of(config: Config) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in backup.kept_files(config) if not path.is_symlink()}


@pytest.mark.rule("WO-39", "RL-34")
def test_no_byte_of_an_archive_can_turn_unseen(config: Config, tmp_path: Path) -> None:
    for number in range(30):
        put(config.agent_workspace / f"{number}.md", os.urandom(200).hex())
    archive = tmp_path / "a.tar.gz"
    backup.pack(config, archive)
    whole = archive.read_bytes()
    for at in range(20, len(whole), len(whole) // 40):
        archive.write_bytes(turned := whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :])
        with suppress(ArchiveRefused):
            restore.lay_ready(config, archive)
            assert gzip.decompress(turned) == gzip.decompress(whole), "a bit of no meaning"
    archive.write_bytes(whole[:-8])
    with pytest.raises(ArchiveRefused):
        restore.lay_ready(config, archive)


@pytest.mark.rule("WO-39")
def test_what_cannot_be_packed_makes_no_archive_that_is_refused_and_is_not_taken_away(config: Config, tmp_path: Path) -> None:
    put(config.agent_workspace / "MEMORY.md", "mine\n")
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("theirs")
    for number in range(5):
        (config.agent_workspace / f"{number}.md").symlink_to(elsewhere)
    done = backup.pack(config, tmp_path / "a.tar.gz")
    assert (done.files, len(done.skipped)) == (1, 5)
    restore.lay_ready(config, tmp_path / "a.tar.gz")
    assert restore.take_over(config) is not None
    assert (config.agent_workspace / "3.md").readlink() == elsewhere, "it is in no archive, so it stays"


@pytest.mark.rule("WO-39")
@pytest.mark.parametrize("at", ["workspace", "workspace/people", "workspace/.yumegate/attachments"])
def test_an_archive_is_not_put_where_the_next_one_would_hold_it(config: Config, tmp_path: Path, at: str) -> None:
    with pytest.raises(OSError, match="name a file elsewhere"):
        backup.pack(config, tmp_path / at / "a.tar.gz")
    assert backup.pack(config, config.data_dir / "backups" / "a.tar.gz").files == 0


@pytest.mark.rule("WO-39")
def test_files_and_folders_change_places(config: Config, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    put(elsewhere / "kept.md", "theirs")
    put(config.agent_workspace / "topic" / "deep" / "er.md", "a folder")
    put(config.agent_workspace / "notes", "a file")
    (config.agent_workspace / "links").symlink_to(elsewhere)
    (config.agent_workspace / "one.md").symlink_to(elsewhere / "kept.md")
    wanted = {"workspace/topic": b"1", "workspace/notes/a.md": b"2", "workspace/links/b.md": b"3", "workspace/one.md": b"4"}
    restore.lay_ready(config, archive_of(config, wanted))
    assert restore.take_over(config) is not None
    assert {name: data for name, data in files_of(config).items() if name in wanted} == wanted
    assert [path.name for path in elsewhere.iterdir()] == ["kept.md"] and (elsewhere / "kept.md").read_text() == "theirs"


@pytest.mark.rule("WO-39")
@pytest.mark.parametrize("name", ["signing.key", "restore/database.db", "yumegate.db-wal", "backups/old.tar.gz"])
def test_a_workspace_that_was_around_a_data_folder_overwrites_none(config: Config, name: str) -> None:
    """An archive made where the data folder was elsewhere, and an old one still lay in the workspace."""
    put(config.data_dir / "signing.key", "mine")
    restore.lay_ready(config, archive_of(config, {f"workspace/.yumegate/{name}": b"theirs", "workspace/MEMORY.md": b"- tea\n"}))
    done = restore.take_over(config)
    assert done is not None and done.files == 1
    assert (config.data_dir / "signing.key").read_text() == "mine"
    assert all(path.read_bytes() != b"theirs" for path in config.data_dir.rglob("*") if path.is_file())


class Odd(NamedTuple):
    name: str
    type: bytes = tarfile.REGTYPE


ODD = (
    Odd("workspace/x", tarfile.LNKTYPE),
    Odd("workspace/x", tarfile.CHRTYPE),
    Odd("workspace/x", tarfile.FIFOTYPE),
    Odd("workspace/x", tarfile.DIRTYPE),
    Odd("workspace/x", tarfile.GNUTYPE_SPARSE),
    Odd("workspace/../database.db"),
    Odd("workspace"),
    Odd("./manifest.json"),
    Odd("workspace/" + "n/" * 1500),
)


@pytest.mark.rule("WO-39", "RL-34")
@pytest.mark.parametrize("odd", ODD, ids=lambda odd: f"{odd.name[:12]}-{odd.type.decode()}")
def test_members_that_no_backup_has_are_refused(config: Config, odd: Odd) -> None:
    info = tarfile.TarInfo(odd.name)
    info.type, info.linkname = odd.type, DATABASE
    with pytest.raises(ArchiveRefused, match="it holds"):
        restore.lay_ready(config, archive_of(config, {"workspace/y.md": b"x"}, odd=info))
    assert [path.name for path in config.data_dir.iterdir() if "restore" in path.name] == []


@pytest.mark.rule("WO-39", "RL-34")
def test_a_member_that_would_fill_the_disk_is_refused_before_it_is_written(config: Config, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(restore, "LEFT_FREE", shutil.disk_usage(config.data_dir).total)  # what is free, others change meanwhile
    with pytest.raises(ArchiveRefused, match="no room"):
        restore.lay_ready(config, archive_of(config, {"workspace/y.md": b"x" * 10_000}))


@pytest.mark.rule("WO-39", "RL-34")
def test_two_members_of_one_name_are_not_two_files(config: Config) -> None:
    twin = tarfile.TarInfo("workspace/y.md")
    with pytest.raises(ArchiveRefused, match="not whole"):
        restore.lay_ready(config, archive_of(config, {"workspace/y.md": b"x"}, told=2, twin=twin))


MANIFESTS = {
    "words for a number": manifest(files="many"), "nothing for a number": manifest(files=None), "below nothing": manifest(files=-1),
    "no end": manifest(files=float("inf")), "deep": b"[" * 100_000, "no date": manifest(made_at=None), "a list": manifest(revision=["0009"]),
}  # fmt: skip


@pytest.mark.rule("WO-39", "RL-34")
@pytest.mark.parametrize("kind", MANIFESTS)
def test_a_manifest_of_another_form_is_refused_in_words(config: Config, tmp_path: Path, kind: str) -> None:
    (tmp_path / "a").write_bytes(packed({DATABASE: (config.data_dir / "yumegate.db").read_bytes(), MANIFEST: MANIFESTS[kind]}))
    with pytest.raises(ArchiveRefused):
        restore.lay_ready(config, tmp_path / "a")


@pytest.mark.rule("WO-39", "RL-34")
@pytest.mark.parametrize(
    "made", ["CREATE TABLE other (a)", "CREATE TABLE alembic_version (version_num); INSERT INTO alembic_version VALUES ('0001')"]
)
def test_a_database_that_is_not_what_the_manifest_says_is_refused(config: Config, tmp_path: Path, made: str) -> None:
    with closing(sqlite3.connect(tmp_path / "other.db")) as other:
        other.executescript(made)
    (tmp_path / "a").write_bytes(packed({DATABASE: (tmp_path / "other.db").read_bytes(), MANIFEST: manifest(revision=HEAD)}))
    with pytest.raises(ArchiveRefused, match=r"revision|alembic_version"):
        restore.lay_ready(config, tmp_path / "a")


@pytest.mark.rule("WO-39")
def test_of_two_restores_at_once_what_is_laid_ready_is_one_of_them_whole(config: Config, tmp_path: Path) -> None:
    for name in "ab":
        made = archive_of(config, {f"workspace/{number}.md": name.encode() for number in range(150)})
        made.rename(tmp_path / name)
    said: list[str] = []

    def lay(name: str) -> None:
        try:
            restore.lay_ready(config, tmp_path / name)
        except ArchiveRefused as refused:
            said.append(str(refused))

    for _ in range(3):
        threads = [threading.Thread(target=lay, args=(name,)) for name in "ab"]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        found = Counter(path.read_bytes() for path in (config.data_dir / restore.STAGE / "workspace").iterdir())
        assert list(found.values()) == [150]
    assert all("is under way" in each for each in said)


@pytest.mark.rule("WO-39")
def test_nothing_is_laid_ready_while_another_is_taken_over_or_a_backup_runs(config: Config) -> None:
    archive = archive_of(config, {"workspace/y.md": b"x"})
    for shared in (True, False):
        with restore.apart(config, shared=shared), pytest.raises(ArchiveRefused, match="is under way"):
            restore.lay_ready(config, archive)
    restore.lay_ready(config, archive)
    assert restore.take_over(config) is not None


@pytest.mark.rule("WO-39")
def test_names_in_every_script_and_encoding_come_back(config: Config, tmp_path: Path) -> None:
    names = (os.fsdecode(b"caf\xe9.md"), "e\u0301.md", "\u00e9.md", "a\nb.md", "会議\u202e.md", "👩‍👩‍👧.md", " ", "n" * 250)
    for number, name in enumerate(names):
        put(config.agent_workspace / name, str(number))
    was = files_of(config)
    backup.pack(config, tmp_path / "a.tar.gz")
    for name in names:
        (config.agent_workspace / name).unlink()
    restore.lay_ready(config, tmp_path / "a.tar.gz")
    restore.take_over(config)
    assert files_of(config) == was


@pytest.mark.rule("WO-39")
@pytest.mark.parametrize("database", ["postgres"], indirect=True)
def test_a_text_that_sqlite_holds_and_a_server_cannot_comes_back_without_what_it_cannot(config: Config, database: Database, tmp_path: Path) -> None:
    """A file of the workspace may have a zero character, and so its passages."""
    source = restore.open_database(config)
    source.write_now(lambda c: talk(c, ("before\x00after",)))
    source.close_now()
    backup.pack(config, tmp_path / "a.tar.gz")
    other = config_of(tmp_path / "other", database)
    restore.lay_ready(other, tmp_path / "a.tar.gz")
    assert restore.take_over(other) is not None
    assert "beforeafter" in str(stands(other)["tables"]["messages"])
