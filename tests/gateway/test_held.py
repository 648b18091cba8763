"""What do you know about me, and the page of limits: over HTTP and in the archive (WO-21, WO-22)."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from gateway import limits
from gateway.config import Config
from gateway.config.walk import dotted, leaves
from gateway.language import LANGUAGES
from memory import conversations
from memory.columns import metadata
from memory.ids import new_conversation
from tests.conftest import FakeClock
from tests.gateway.test_memories import add, house
from tests.gateway.test_memory_files import put, somebody, store
from tests.harness import Running, eventually

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.rule("WO-22")
async def test_one_answer_holds_everything_about_the_asker_and_nothing_of_anybody_else(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        await add(gateway, "Likes barley tea")
        put(gateway, "MEMORY.md", "- a line\n")
        chat = await gateway.chat(title="A talk")
        async with somebody(gateway, "user") as ben, somebody(gateway, "guest", "Gus") as gus:
            await add(ben, "Ben's secret")
            found = await gateway.get("/api/me/held")
            assert [each["content"] for each in found["memories"]] == ["Likes barley tea"]
            assert [each["id"] for each in found["chats"]] == [chat]
            assert "MEMORY.md" in {each["path"] for each in found["files"]}
            assert {"person", "accounts", "switches", "tasks", "sessions", "tokens", "usage"} <= found.keys()
            assert "Ben" not in str(found)
            assert [each["content"] for each in (await ben.get("/api/me/held"))["memories"]] == ["Ben's secret"]
            async with gus.http.get(f"{gus.url}/api/me/held") as answer:
                assert answer.status == 403


@pytest.mark.rule("WO-22")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_same_can_be_kept_as_json_and_as_markdown(tmp_path: Path, language: str) -> None:
    async with house(tmp_path) as gateway:
        await add(gateway, "# Likes\n- barley `tea`")
        await gateway.http.patch(f"{gateway.url}/api/me", json={"language": language})
        for form, name in (("json", "about-me.json"), ("markdown", "about-me.md")):
            async with gateway.http.get(f"{gateway.url}/api/me/held", params={"as": form}) as answer:
                assert answer.status == 200
                assert name in answer.headers["Content-Disposition"]
                text = await answer.text()
            assert "barley" in text
        assert "- # Likes - barley 'tea' (" in text, "no words of a memory make a heading"
        async with gateway.http.get(f"{gateway.url}/api/me/held", params={"as": "pdf"}) as answer:
            assert answer.status == 400


@pytest.mark.rule("WO-21")
@pytest.mark.parametrize("language", LANGUAGES)
async def test_the_page_of_limits_shows_what_is_configured_now(tmp_path: Path, language: str) -> None:
    async with house(tmp_path, saved={"unpinned_max": 42}) as gateway:
        await gateway.http.patch(f"{gateway.url}/api/me", json={"language": language})
        groups = (await gateway.get("/api/limits"))["groups"]
        rows: dict[str, Any] = {row["key"]: row["value"] for group in groups for row in group["rows"] if row["key"]}
        assert (rows["saved.unpinned_max"], rows["saved.pinned_max"], rows["budgets.day_tokens"]) == (42, 20, None)
        assert len({row["what"] for group in groups for row in group["rows"]}) == len(limits.LIMITS)


@pytest.mark.rule("WO-21")
def test_the_page_of_the_documentation_equals_the_table_and_every_key_exists() -> None:
    assert (ROOT / limits.PAGE).read_text(encoding="utf-8") == limits.render(), "run python -m gateway.limits"
    keys = {dotted(leaf.path) for leaf in leaves()}
    assert [limit.key for limit in limits.LIMITS if limit.key and limit.key not in keys] == []
    assert all(isinstance(limit.now(Config()), int | float) for limit in limits.LIMITS)


@pytest.mark.rule("WO-21")
def test_every_limit_of_saved_memories_is_in_the_table() -> None:
    shown = {limit.key for limit in limits.LIMITS}
    limiting = {dotted(leaf.path) for leaf in leaves() if leaf.path[0] == "saved" and leaf.path[-1].endswith("_max")}
    assert limiting - shown == {"saved.query_max_chars"} & limiting


# -- forget me ---------------------------------------------------------------------------------------------------------


async def confirm(gateway: Running, question: dict[str, Any], step: int | None = None) -> tuple[int, Any]:
    path = f"{gateway.url}/api/me/forget/{question['step'] if step is None else step}"
    async with gateway.http.post(path, json={"token": question["token"]}) as answer:
        return answer.status, await answer.json()


@pytest.mark.rule("WO-22", "SM-90")
async def test_a_person_is_forgotten_everywhere_after_two_confirmations(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        await add(gateway, "The owner's own")
        async with somebody(gateway, "user") as ben:
            me = (await ben.get("/api/me"))["person"]["id"]
            await add(ben, "Ben's secret xylophone")
            put(ben, "MEMORY.md", "- xylophone in a file\n", f"people/{me}")
            chat = await ben.chat(title="xylophone talk")
            group = store(gateway, partial(_said_in_a_group, me=me))
            first = await ben.post("/api/me/forget")
            assert (await confirm(ben, first, 2))[0] == 409, "the second step before the first"
            assert (await confirm(gateway, first))[0] == 409, "another person's"
            status, second = await confirm(ben, first)
            assert (status, second["next"]["step"]) == (200, 2)
            assert (await confirm(ben, first))[0] == 409, "a double click"
            assert len((await ben.get("/api/me/held"))["memories"]) == 1, "nothing went yet"
            assert await confirm(ben, second["next"]) == (200, {"next": None})
            async with ben.http.get(f"{ben.url}/api/me/held") as answer:
                assert answer.status == 401

            async def folder_is_gone() -> bool:
                return not (gateway.data_dir.parent / "people" / me).exists()

            await eventually(folder_is_gone)
        left = store(gateway, _everything)
        assert "xylophone" not in left
        assert chat not in left
        assert "what Chiyo said" in left
        assert "The owner's own" in left
        assert group in left, "the group's own talk stays"


@pytest.mark.rule("WO-22")
async def test_the_owner_of_the_machine_is_not_forgotten_by_a_button(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway, gateway.http.post(f"{gateway.url}/api/me/forget", json={}) as answer:
        assert (answer.status, (await answer.json())["error"]["code"]) == (409, "owner")


def _said_in_a_group(connection: sa.Connection, *, me: str) -> str:
    """A message of the person, and one of somebody else, in a chat that is nobody's own."""
    chat = conversations.create_conversation(
        connection, now=FakeClock().now, key="telegram:main:g1", channel="telegram", account="main", kind="group", conversation_id=new_conversation()
    )
    for author, text in ((me, "my xylophone"), ("p-chiyo22222", "what Chiyo said")):
        conversations.add_message(connection, now=FakeClock().now, conversation_id=chat, role="user", text=text, author_person_id=author)
    return chat


def _everything(connection: sa.Connection) -> str:
    """Every word of every table, but the hashes and ids of what was forgotten."""
    tables = [table for table in metadata.tables.values() if table.name not in ("audit", "jobs", "model_calls")]
    return "\n".join(str(tuple(row)) for table in tables for row in connection.execute(sa.select(table)))
