"""Characters that leave the configuration, are deleted, or come back (SM-92)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.scripted import ScriptedModel
from gateway import audit, cast_changes
from gateway.audit import Actor
from gateway.cast_changes import StillThere, keep_in_step
from gateway.config import Config
from gateway.store import open_database, utc_now
from memory.database import Database
from memory.saved.lineages import lineage_of, lineages, names_of
from memory.saved.rows import ListKey, character_list, global_list, space_list
from memory.saved.store import insert_new
from memory.saved.stored import rows_of
from memory.saved.writing import New
from memory.saved_schema import memories
from memory.schema import characters, people, spaces
from tests.conftest import FakeClock
from tests.harness import eventually, running

pytestmark = pytest.mark.rule("SM-92")
BY = Actor(id="p-owner")


def config(**cast: dict[str, Any]) -> Config:
    return Config.model_validate({"characters": cast})


BOTH, ONE = config(luna={"name": "Luna"}, hana={"name": "花"}), config(hana={"name": "花"})


def new(key: ListKey, content: str, **more: Any) -> New:
    return New(key=key, content=content, origin="tool", author_kind="model", **more)


def archived(connection: sa.Connection, lineage: str) -> list[bool]:
    """Of the rows of spaces."""
    of = (memories.c.character_id == lineage) & memories.c.space_id.is_not(None)
    return [at is not None for at in connection.execute(sa.select(memories.c.archived_at).where(of)).scalars()]


@pytest.fixture
async def luna(database: Database, clock: FakeClock) -> str:
    """Her lineage, with a memory and a pin of two people and one of a space."""

    def fill(connection: sa.Connection) -> str:
        now = clock()
        for person in ("p-1", "p-2"):
            connection.execute(sa.insert(people), {"id": person, "name": person, "scope": f"people/{person}", "created_at": now})
        connection.execute(sa.insert(spaces), {"id": "s-1", "channel": "loopback", "account": "main", "platform_space_id": "g1", "created_at": now})
        keep_in_step(connection, BOTH, now)
        lineage = lineages(connection)["luna"]
        for person in ("p-1", "p-2"):
            insert_new(connection, new(character_list(person, lineage), "likes the sea"), now)
            insert_new(connection, new(character_list(person, lineage), "is called Captain", pinned=True), now)
        insert_new(connection, new(space_list("s-1", lineage), "meets on Fridays"), now)
        return lineage

    return await database.write(fill)


async def test_a_character_that_leaves_the_configuration_moves_nothing_and_its_return_is_the_same_one(
    database: Database, clock: FakeClock, luna: str
) -> None:
    def work(connection: sa.Connection) -> None:
        assert keep_in_step(connection, ONE, clock()) == ["luna"]
        assert keep_in_step(connection, ONE, clock()) == [], "it is told once"
        assert [len(rows_of(connection, [key])) for key in (character_list("p-1", luna), global_list("p-1"))] == [2, 0]
        (gone,) = cast_changes.removed(connection, ONE)
        assert (gone.id, gone.name, gone.counts.rows, gone.counts.people, gone.counts.space_rows, gone.waits) == ("luna", "Luna", 4, 2, 1, True)
        back = config(luna={"name": "Luna II"}, hana={})
        assert keep_in_step(connection, back, clock()) == []
        assert lineages(connection)["luna"] == luna and names_of(connection, [luna]) == {luna: "Luna II"}
        assert cast_changes.removed(connection, back) == []
        assert connection.execute(sa.select(characters.c.removed_at).where(characters.c.id == luna)).scalar_one() is None

    await database.write(work)


async def test_a_confirmed_deletion_gives_people_their_rows_and_puts_the_spaces_away(database: Database, clock: FakeClock, luna: str) -> None:
    def work(connection: sa.Connection) -> None:
        with pytest.raises(StillThere):
            cast_changes.delete(connection, BOTH, BY, "luna", clock())
        with pytest.raises(LookupError):
            cast_changes.delete(connection, BOTH, BY, "nobody", clock())
        keep_in_step(connection, ONE, clock())
        counts = cast_changes.delete(connection, ONE, BY, "luna", clock())
        assert (counts.rows, counts.people, counts.space_rows) == (4, 2, 1)
        for person in ("p-1", "p-2"):
            rows = rows_of(connection, [global_list(person)])
            assert {(row.content, row.pinned) for row in rows} == {("likes the sea", False), ("is called Captain", True)}
        assert archived(connection, luna) == [True]
        assert audit.newest(connection, 1)[0].action == "character.delete"
        assert [each.waits for each in cast_changes.removed(connection, ONE)] == [False]
        keep_in_step(connection, BOTH, clock())
        assert archived(connection, luna) == [False]
        assert len(rows_of(connection, [global_list("p-1")])) == 2, "people take theirs back themselves"

    await database.write(work)


async def test_through_the_gateway_a_changed_file_is_enough(tmp_path: Path) -> None:
    """Start, removal while it runs, the routes, and taking one's own back after the return."""
    opened: list[Database] = []

    def open_it(wanted: Config) -> Database:
        opened.append(open_database(wanted))
        return opened[-1]

    cast = {"characters": {"luna": {"name": "Luna"}}}
    async with running(tmp_path, ScriptedModel([]), config=cast, database=open_it) as gateway:
        me, chat = (await gateway.get("/api/me"))["person"]["id"], await gateway.chat()

        def teach(connection: sa.Connection) -> None:
            lineage = lineage_of(connection, "luna", "Luna", utc_now())
            insert_new(connection, new(character_list(me, lineage), "likes the sea"), utc_now())

        await opened[0].write(teach)
        assert (await gateway.get("/api/operator/characters"))["characters"] == []
        async with gateway.http.delete(f"{gateway.url}/api/operator/characters/luna") as answer:
            assert (answer.status, (await answer.json())["error"]["code"]) == (409, "character_there")
        whole = json.loads(gateway.config_path.read_text(encoding="utf-8"))

        async def has(count: int) -> Any:
            return len((await gateway.get("/api/operator/characters"))["characters"]) == count

        gateway.config_path.write_text(json.dumps(whole | {"characters": {}}), encoding="utf-8")
        await gateway.say(chat, "/reload")
        await eventually(lambda: has(1))
        async with gateway.http.delete(f"{gateway.url}/api/operator/characters/luna") as answer:
            assert await answer.json() == {"rows": 1, "people": 1, "space_rows": 0}
        gateway.config_path.write_text(json.dumps(whole), encoding="utf-8")
        await gateway.say(chat, "/reload")
        await eventually(lambda: has(0))
        mine = {each["id"]: each["returnable"] for each in (await gateway.get("/api/memory/switches"))["characters"]}
        assert mine == {"default": 0, "luna": 1}
        assert await gateway.post("/api/memory/switches/luna/take-back") == {"moved": 1}
        assert await gateway.post("/api/memory/switches/luna/take-back") == {"moved": 0}
        await gateway.post("/api/memory/switches/nobody/take-back", status=404)
