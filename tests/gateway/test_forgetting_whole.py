"""Forgetting through the whole gateway: no file, no row, no heading and nothing that arrived or was sent says it any more (WD-92, A16)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Reply, ScriptedModel
from memory.columns import metadata
from memory.database import Database, sqlite_url
from tests.harness import Running, eventually, running


def script(request: ModelRequest) -> Reply:
    """A model that repeats what it hears, keeps it in a file and makes a page of it."""
    last = request.messages[-1].text
    if request.purpose == "title":
        return "All about marzipan"
    if request.messages[-1].role is Role.TOOL:
        return "Noted that you love marzipan"
    if "page" in last:
        return Call("file_write", {"path": "knowledge/sweets.md", "text": "---\ntitle: Marzipan\n---\n# Marzipan\n\n- Marzipan is sweet\n"})
    return Call("file_edit", {"path": "MEMORY.md", "old": "", "new": "Loves marzipan"})


async def notice(gateway: Running, chat: str, words: str) -> str:
    async def there() -> str:
        return next((message["text"] for message in await gateway.messages(chat) if message["role"] == "notice" and words in message["text"]), "")

    return await eventually(there)


@pytest.mark.rule("WD-92", "RS-189")
async def test_when_the_messages_go_too_nothing_anywhere_says_it(tmp_path: Path) -> None:
    async with running(tmp_path, ScriptedModel(script)) as gateway:
        chat = await gateway.chat()
        for number, text in enumerate(("I love marzipan, remember", "make a page about marzipan", "more marzipan", "it rains"), start=1):
            await gateway.say(chat, text)
            await gateway.answers(chat, number)

        async def chunked() -> bool:
            return "marzipan" in await rows_of(tmp_path, {"message_chunks"})

        await eventually(chunked)
        await gateway.say(chat, "/memory search marzipan")
        await notice(gateway, chat, "MEMORY.md")
        await gateway.say(chat, "/summary now")
        await eventually(lambda: days(tmp_path))
        await gateway.say(chat, "/memory forget marzipan")
        told = await notice(gateway, chat, "forget confirm")
        yes = re.search(r"/memory forget confirm \S+ messages", told)
        assert yes is not None
        await gateway.say(chat, yes[0])
        assert "marzipan" not in (await notice(gateway, chat, "Forgotten")).casefold()

        async def indexed() -> bool:
            return "marzipan" not in await rows_of(tmp_path, {"file_chunks", "message_chunks"})

        await eventually(indexed)
        assert "marzipan" not in json.dumps(await gateway.messages(chat)).casefold()
    assert "marzipan" not in await rows_of(tmp_path, set(metadata.tables))
    files = [path for path in (tmp_path / "workspace").rglob("*") if path.is_file() and not path.name.startswith("yumegate.db")]
    assert [path for path in files if "marzipan" in path.read_text("utf-8", "replace").casefold()] == []


async def days(folder: Path) -> list[str]:
    return [path.name for path in folder.glob("workspace/memory/2*.md")]


async def rows_of(folder: Path, names: set[str]) -> str:
    """All rows of these tables as text."""
    db = Database(sqlite_url(next(folder.rglob("yumegate.db"))))

    def read(c: sa.Connection) -> str:
        tables = [table for table in metadata.sorted_tables if table.name in names]
        return "\n".join(f"{table.name} {dict(row)}" for table in tables for row in c.execute(sa.select(table)).mappings())

    try:
        return (await db.read(read)).casefold()
    finally:
        await db.close()
