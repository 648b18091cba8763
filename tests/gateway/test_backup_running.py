"""Backup and restore as an operator does them, beside a gateway that runs in a process of its own (WO-39)."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from memory.instance_lock import read_info
from tests.gateway.test_cli import LIMIT_S, Child, changed, config_file, gateway, here, with_store, yumegate
from tests.harness import eventually


@pytest.mark.rule("WO-39")
async def test_a_gateway_that_runs_is_packed_and_begins_again_with_what_was_packed(tmp_path: Path, empty_sqlite: Path) -> None:
    async with gateway(tmp_path, empty_sqlite) as child:
        port = int(child.url.rpartition(":")[2])
        changed(child.config, channels={"web": {"port": port}})  # so that the second start is found where the first was
        token = (await yumegate("token", "create", "--name", "test", config=child.config)).last
        async with aiohttp.ClientSession(child.url, headers={"Authorization": f"Bearer {token}"}) as http:
            chat = await new_chat(http)
            await say(http, chat, "The spare key hangs behind the barometer.")
            archive = tmp_path / "a.tar.gz"
            done = await asyncio.to_thread(here, "backup", str(archive), config=child.config)
            assert done.code == 0 and "config.json and secrets.env are not in it" in done.out, done
            again = await asyncio.to_thread(here, "backup", str(archive), config=child.config)
            assert again.code == 1 and "name another file" in again.err
            await say(http, chat, "Forget all that.")
            other = await new_chat(http)
            back = await asyncio.to_thread(here, "restore", str(archive), config=child.config)
            assert back.code == 0 and "begun again" in back.out, back
            assert read_info(child.config.parent / "workspace" / ".yumegate") is not None

            async def words() -> list[str]:
                async with http.get(f"/api/chats/{chat}/messages") as answer:
                    return [each["text"] for each in (await answer.json())["messages"] if each["role"] == "user"]

            assert await words() == ["The spare key hangs behind the barometer."]
            async with http.get(f"/api/chats/{other}/messages") as answer:
                assert answer.status == 404
            await say(http, chat, "Good to be back.")
            assert len(await words()) == 2
        seen = await asyncio.to_thread(here, "doctor", config=child.config)
        assert "fail" not in seen.out, seen.out
    assert_stays_private(child)


def assert_stays_private(child: Child) -> None:
    [kept] = (child.config.parent / "workspace" / ".yumegate" / "backups").glob("before-restore-*")
    assert kept.stat().st_mode & 0o077 == 0


async def new_chat(http: aiohttp.ClientSession) -> str:
    async with http.post("/api/chats", json={}) as answer:
        return (await answer.json())["id"]


async def say(http: aiohttp.ClientSession, chat: str, text: str) -> None:
    async with http.post(f"/api/chats/{chat}/messages", json={"client_id": text, "text": text}) as answer:
        assert answer.status == 202
        asked: dict[str, Any] = await answer.json()

    async def answered() -> bool:
        async with http.get(f"/api/chats/{chat}/messages") as answer:
            said = (await answer.json())["messages"]
        at = next(number for number, each in enumerate(said) if each["id"] == asked["message_id"])
        return any(each["role"] == "assistant" for each in said[at:])

    await eventually(answered, within_s=LIMIT_S)


@pytest.mark.rule("WO-39")
def test_a_restore_into_a_new_folder_needs_no_gateway(tmp_path: Path, empty_sqlite: Path) -> None:
    first = with_store(config_file(tmp_path / "one"), empty_sqlite)
    (first.parent / "workspace" / "MEMORY.md").write_text("- likes gyokuro\n")
    assert here("backup", str(tmp_path / "a.tar.gz"), config=first).code == 0
    second = config_file(tmp_path / "two")
    done = here("restore", str(tmp_path / "a.tar.gz"), config=second)
    assert done.code == 0 and "nothing was there before" in done.out, done
    assert (second.parent / "workspace" / "MEMORY.md").read_text() == "- likes gyokuro\n"
    refused = here("restore", str(first), config=second)
    assert refused.code == 1 and "no archive of `yumegate backup`" in refused.err and "Traceback" not in refused.err
