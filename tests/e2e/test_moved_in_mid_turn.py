"""A group that gets another id, and a topic that is deleted, while an answer is written there: it arrives once and in order (CH-166, CH-81)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import Say, Until
from tests.e2e.telegram_talk import ADA, BEN, FORUM, GROUP, TOPIC, TelegramTalk, telegram_talk
from tests.peers.telegram.server import FakeBotApi
from tests.talks import asked, model

OLD, NEW = -400000001, GROUP
LONG = "\n\n".join(f"Part {number}. " + "word " * 600 for number in range(1, 4))
STORY = "Once upon a time there was a lamp that was never afraid of the dark."


@pytest.fixture
def server() -> Iterator[FakeBotApi]:
    with FakeBotApi() as server:
        for chat_id in (ADA, BEN, FORUM, NEW):
            server.world.chat(chat_id)
        server.world.chat(OLD, "group")
        server.world.chat(FORUM).topics.add(TOPIC)
        yield server


def slowly(go: asyncio.Event) -> Any:
    def answer(request: ModelRequest) -> Any:
        words = asked(request)
        if "story" in words:
            return [Say(STORY + "\n\n"), Until(go), Say(LONG)]
        return f"Re: {words}"

    return answer


def moves(chat: TelegramTalk, told: str) -> None:
    """The server moved the group; it says so in the old chat, the new one, both in either order, twice, or only when somebody sends there."""
    chat.server.world.chats[OLD].moved_to = NEW
    said = {
        "old": lambda: chat.says(chat=OLD, migrate_to_chat_id=NEW),
        "new": lambda: chat.says(chat=NEW, migrate_from_chat_id=OLD),
    }
    for each in {"nobody": [], "both": ["old", "new"], "turned": ["new", "old"], "twice": ["old", "new", "old", "new"]}[told]:
        said[each]()


def joined(texts: list[str]) -> str:
    return " ".join("\n".join(texts).split())


@pytest.mark.case("TG-19")
@pytest.mark.rule("CH-166", "CH-80", "CH-81", "CH-96")
@pytest.mark.parametrize("told", ["nobody", "both", "turned", "twice"])
@pytest.mark.parametrize("meanwhile", [False, True], ids=["quiet", "with talk in the new chat"])
async def test_a_group_that_moves_in_mid_answer_gets_it_once_and_in_order(tmp_path: Path, server: FakeBotApi, told: str, meanwhile: bool) -> None:
    go = asyncio.Event()
    async with telegram_talk(tmp_path, model(slowly(go)), server) as chat:
        chat.says("@yume_bot tell me a story", chat=OLD)
        await chat.until(lambda: chat.texts(OLD))
        moves(chat, told)
        if meanwhile:
            (preview,) = server.world.ours(OLD)
            server.world.renumber(preview["message_id"] - 1)  # so that what is said there has the id of the preview here
            chat.says("@yume_bot are you there?", chat=NEW, sender=BEN)
            await chat.until(lambda: chat.texts(NEW))
            assert server.world.ours(NEW)[0]["message_id"] == preview["message_id"]
            server.world.renumber(5000)
        go.set()
        await chat.until(lambda: "Part 3" in joined(chat.texts(NEW)), within_s=20)
        await asyncio.sleep(0.3)
        answer = [text for text in chat.texts(NEW) if not text.startswith("Re:")]
        assert joined(answer) == joined([STORY, LONG])
        chat.says("@yume_bot and now?", chat=NEW)
        await chat.until(lambda: any("and now" in text for text in chat.texts(NEW)))
        assert "Once upon a time" in str(chat.requests[-1]), "the talk came along"
        assert sum("are you there" in text for text in chat.texts(NEW)) == int(meanwhile)


@pytest.mark.case("SC-12")
@pytest.mark.rule("CH-81", "CH-96", "CH-155")
async def test_a_topic_that_is_deleted_in_mid_answer_leaves_the_answer_to_the_group(tmp_path: Path, server: FakeBotApi) -> None:
    go = asyncio.Event()
    async with telegram_talk(tmp_path, model(slowly(go)), server) as chat:
        chat.says("@yume_bot tell me a story", chat=FORUM, message_thread_id=TOPIC, is_topic_message=True)
        await chat.until(lambda: chat.texts(FORUM))
        world = server.world
        world.chats[FORUM].topics.clear()
        for key in [key for key, message in world.messages.items() if key[0] == FORUM and message.get("message_thread_id") == TOPIC]:
            del world.messages[key]
        go.set()
        await chat.until(lambda: "Part 3" in joined(chat.texts(FORUM)), within_s=20)
        await asyncio.sleep(0.3)
        assert joined(chat.texts(FORUM)) == joined([STORY, LONG])
        assert all("message_thread_id" not in message for message in world.ours(FORUM))
        chat.says("@yume_bot still well?", chat=FORUM)
        await chat.until(lambda: any("still well" in text for text in chat.texts(FORUM)))
