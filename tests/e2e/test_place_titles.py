"""Groups and channels by their names, from the platform to where somebody looks; in no log, and with no word of it to the model (CH-1, WD-12)."""

from __future__ import annotations

import logging
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.discord_talk import discord_talk
from tests.e2e.telegram_talk import FORUM, GROUP, TOPIC, telegram_talk
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import GENERAL, ME, THREAD
from tests.peers.telegram.server import FakeBotApi
from tests.talks import asked, model


def called(folder: Path) -> list[tuple[str, str]]:
    """Place and chat, by the chat's title."""
    with closing(sqlite3.connect(next(folder.rglob("yumegate.db")))) as database:
        query = "SELECT spaces.title, conversations.title FROM conversations JOIN spaces ON spaces.id = space_id ORDER BY conversations.title"
        return database.execute(query).fetchall()


@pytest.mark.rule("CH-1", "CH-155")
async def test_telegram_groups_and_topics(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    with FakeBotApi() as server:
        group, forum = server.world.chat(GROUP, title="Gardeners"), server.world.chat(FORUM, title="Tea House", topics={TOPIC})
        opened = {"message_id": TOPIC, "chat": forum.json(), "date": 1, "forum_topic_created": {"name": "Tulips"}}
        there: dict[str, Any] = {"chat": FORUM, "is_topic_message": True, "message_thread_id": TOPIC}
        async with telegram_talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), server) as chat:
            chat.says("@yume_bot hello", chat=GROUP)
            chat.says("@yume_bot hello", **there, reply_to_message=opened)
            await chat.until(lambda: chat.texts(GROUP) and chat.texts(FORUM))
            assert called(tmp_path) == [("Gardeners", "Gardeners"), ("Tea House", "Tulips")]
            group.title = "Gardeners of Kyoto"
            chat.says("", **there, forum_topic_edited={"name": "Roses"})
            chat.says("just among us", chat=GROUP)
            chat.says("@yume_bot and now?", **there, reply_to_message=opened)
            await chat.until(lambda: len(chat.texts(FORUM)) == 2)
            assert called(tmp_path) == [("Gardeners of Kyoto", "Gardeners of Kyoto"), ("Tea House", "Roses")]
            assert not any(name in str(chat.requests) for name in ("Gardeners", "Tea House", "Tulips", "Roses"))
    ours = "\n".join(record.getMessage() for record in caplog.records if record.name.split(".")[0] in ("gateway", "channels", "memory", "agent"))
    assert ours
    assert not any(name in ours for name in ("Gardeners", "Tea House", "Tulips", "Roses"))


@pytest.mark.rule("CH-1", "CH-183", "WD-12")
async def test_discord_servers_channels_and_threads(tmp_path: Path) -> None:
    with FakeDiscord() as server:
        async with discord_talk(tmp_path, model(lambda request: f"Re: {asked(request)}"), server) as chat:
            for channel in (GENERAL, THREAD):
                chat.says(f"<@{ME}> hello", channel=channel)
                await chat.until(lambda channel=channel: chat.texts(channel))
            general, thread = (server.world.channels[each] for each in (GENERAL, THREAD))
            parent = server.world.channels[thread.parent_id].name
            found = called(tmp_path)
            assert {place for place, _ in found} == {"The Tea House"}
            assert {title for _, title in found} == {general.name, f"{parent} › {thread.name}"}
            general.name = "lobby"
            server.dispatch("CHANNEL_UPDATE", general.json())
            chat.says(f"<@{ME}> and now?", channel=GENERAL)
            await chat.until(lambda: len(chat.texts(GENERAL)) == 2)
            assert ("The Tea House", "lobby") in called(tmp_path)
