"""A whole gateway on Telegram, as people see it: every message goes over the wire of the fake Bot API, and so does every answer."""

from __future__ import annotations

import asyncio
import base64
import sqlite3
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from agent.errors import ModelMisconfigured
from agent.llm.port import ModelRequest
from agent.llm.scripted import Fail, Say, Until, Wait
from gateway.access import Rules
from gateway.language import say
from tests.e2e.telegram_talk import ADA, BEN, FORUM, GROUP, TOPIC, telegram_talk
from tests.harness import eventually, running
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN
from tests.talks import asked, model

STORY = "Once upon a time there was a lamp that was never afraid of the dark."


@pytest.fixture
def server() -> Iterator[FakeBotApi]:
    with FakeBotApi() as server:
        for chat_id in (ADA, BEN, GROUP, FORUM):
            server.world.chat(chat_id)
        server.world.chat(FORUM).topics.add(TOPIC)
        yield server


def echo(request: ModelRequest) -> str:
    return f"Re: {asked(request)}"


# In and out


@pytest.mark.rule("CH-20", "CH-155", "CH-156")
async def test_a_question_is_answered_where_it_was_asked(tmp_path: Path, server: FakeBotApi) -> None:
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        private = chat.says("good morning")
        await chat.shows(["Re: good morning"])
        in_topic = chat.says("@yume_bot and here?", chat=FORUM, message_thread_id=TOPIC, is_topic_message=True)
        await chat.until(lambda: chat.texts(FORUM))
    (answer,), (there,) = server.world.ours(ADA), server.world.ours(FORUM, TOPIC)
    assert answer["reply_to_message"]["message_id"] == private["message_id"]
    assert there["text"].endswith("and here?")
    assert there["reply_to_message"]["message_id"] == in_topic["message_id"]


@pytest.mark.case("WP-04", "TG-22")
@pytest.mark.rule("CH-13", "CH-153")
async def test_private_chats_are_apart_and_a_group_tells_its_people_apart(tmp_path: Path, server: FakeBotApi) -> None:
    async with telegram_talk(tmp_path, model(echo), server, hold_s=0.0) as chat:
        chat.says("my secret is tea")
        await chat.until(lambda: len(chat.texts(ADA)) == 1)
        chat.says("what is the secret?", chat=BEN, sender=BEN)
        await chat.until(lambda: len(chat.texts(BEN)) == 1)
        assert "tea" not in str(chat.requests[-1].messages)
        for sender, text in ((ADA, "@yume_bot my name is Ada L."), (BEN, "@yume_bot my name is Ben F."), (ADA, "@yume_bot what is my name?")):
            before = len(chat.texts(GROUP))
            chat.says(text, chat=GROUP, sender=sender)
            await chat.until(lambda before=before: len(chat.texts(GROUP)) > before)
        heard = "\n".join(message.text for message in chat.requests[-1].messages)
        assert heard.index("Ada") < heard.index("Ben")
        assert "Ada" in chat.questions[-1], "who asks is told with the question"


@pytest.mark.case("TG-21")
@pytest.mark.rule("CH-153", "CH-120")
async def test_an_anonymous_admin_is_answered_and_a_bot_is_not(tmp_path: Path, server: FakeBotApi) -> None:
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        server.says(GROUP, "@yume_bot I am a robot", sender={"id": 8, "is_bot": True, "first_name": "Robot"})
        server.says(GROUP, "@yume_bot status?", sender=anonymous, sender_chat=server.world.chat(GROUP).json())
        await chat.until(lambda: chat.texts(GROUP))
        await asyncio.sleep(0.2)
        (text,) = chat.texts(GROUP)
        assert text.endswith("status?")


@pytest.mark.case("TG-24")
@pytest.mark.rule("CH-158", "CH-112")
async def test_a_command_for_another_bot_is_left_to_it(tmp_path: Path, server: FakeBotApi) -> None:
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        for text in ("/help@other_bot", "/help@yume_bot", "/help@YUME_BOT"):
            chat.says(text, chat=GROUP, entities=[{"type": "bot_command", "offset": 0, "length": len(text)}])
        await chat.until(lambda: len(chat.texts(GROUP)) == 2)
        await asyncio.sleep(0.2)
        assert len(chat.texts(GROUP)) == 2
        assert chat.requests == []


@pytest.mark.case("TG-16")
@pytest.mark.rule("CH-66", "CH-65")
async def test_an_album_is_one_question_with_its_pictures_in_order(tmp_path: Path, server: FakeBotApi) -> None:
    """Its pieces arrive in any order, 300 ms apart."""
    png = b"\x89PNG\r\n\x1a\n"
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        for number in (3, 1, 2, 4):
            size = server.world.file(f"{number}.png", png + str(number).encode()) | {"width": 90, "height": 90}
            message = {
                "message_id": 5000 + number,
                "date": int(time.time()),
                "chat": server.world.chat(ADA).json(),
                "from": {"id": ADA, "is_bot": False, "first_name": "Ada"},
                "media_group_id": "G1",
                "photo": [size],
            }
            server.put(message=message | ({"caption": "compare these"} if number == 1 else {}))
            await asyncio.sleep(0.3)
        await chat.until(chat.texts)
        await asyncio.sleep(0.5)
        (request,) = chat.requests
        seen = [base64.b64decode(image.data)[-1:] for message in request.messages for image in message.images]
        assert seen == [b"1", b"2", b"3", b"4"]
        assert str(request.messages).count("compare these") == 1


@pytest.mark.case("TG-18")
@pytest.mark.rule("CH-156")
async def test_the_chosen_fragment_reaches_the_model_as_a_quote(tmp_path: Path, server: FakeBotApi) -> None:
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        first = chat.says("first part, only this bit, last part")
        await chat.until(chat.texts)
        chat.says("why?", reply_to_message=first, quote={"text": "only this bit", "position": 12, "is_manual": True})
        await chat.until(lambda: len(chat.requests) == 2)
        question = chat.requests[-1].messages[-1].text
        assert "only this bit" in question
        assert "last part" not in question


@pytest.mark.case("TG-20")
@pytest.mark.rule("CH-2", "CH-26")
async def test_an_edited_message_corrects_history_and_is_not_answered_again(tmp_path: Path, server: FakeBotApi) -> None:
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        first = chat.says("tea at 4")
        await chat.shows(["Re: tea at 4"])
        server.put(edited_message=first | {"text": "tea at 5", "edit_date": int(time.time())})
        await chat.until(lambda: server.world.updates == [])
        await asyncio.sleep(0.1)
        chat.says("when?")
        await chat.until(lambda: len(chat.texts()) == 2)
        heard = str(chat.requests[-1].messages)
        assert "tea at 5" in heard
        assert len(chat.requests) == 2


@pytest.mark.case("DL-04")
@pytest.mark.rule("CH-50", "CH-55")
async def test_what_waited_while_we_were_away_is_answered_in_one_turn(tmp_path: Path, server: FakeBotApi) -> None:
    for n in range(6):
        server.says(ADA, f"message {n}", date=int(time.time()) - 4200 + 60 * n)
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        await chat.shows(["Re: " + "\n".join(f"message {n}" for n in range(6))])
        assert len(chat.requests) == 1


@pytest.mark.case("DL-05")
@pytest.mark.rule("CH-70", "CH-73")
async def test_a_burst_during_a_run_reaches_the_model_in_order_and_is_marked(tmp_path: Path, server: FakeBotApi) -> None:
    go = asyncio.Event()
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    async with telegram_talk(tmp_path, script, server, config={"busy": {"mode": "queue"}}) as chat:
        chat.says("long question")
        await chat.until(lambda: len(chat.requests) == 1)
        for n in range(1, 6):
            chat.says(str(n))
        await chat.until(lambda: len(server.world.reactions) == 5)
        go.set()
        await chat.until(lambda: any("5" in text for text in chat.texts()))
        assert "\n".join(chat.questions[1:]).split() == ["1", "2", "3", "4", "5"]
        assert {emoji for _, _, emoji in server.world.reactions} == {"✍"}


# Previews


@pytest.mark.case("TG-08")
@pytest.mark.rule("CH-95", "CH-141", "CH-161")
async def test_nothing_is_shown_before_the_first_visible_character(tmp_path: Path, server: FakeBotApi) -> None:
    go = asyncio.Event()
    script = model(lambda _: [Say("\n"), Wait(0.3), Say("  "), Wait(0.3), Say("Hi"), Until(go), Say(" there")])
    async with telegram_talk(tmp_path, script, server) as chat:
        chat.says("greet me")
        await chat.until(chat.texts)
        go.set()
        await chat.shows(["Hi there"])
        shown = chat.calls("sendMessage", "editMessageText")
        assert shown[0].strip() == "Hi"
        assert all(text.strip() for text in shown)


@pytest.mark.case("TG-09")
@pytest.mark.rule("CH-96", "CH-95")
async def test_the_last_edit_is_the_whole_answer_whatever_was_skipped(tmp_path: Path, server: FakeBotApi) -> None:
    pieces = [Say("He"), Wait(0.05), Say("llo"), Wait(0.05), Say(" there"), Wait(2.0)]
    async with telegram_talk(tmp_path, model(lambda _: pieces), server, edit_s=1.2) as chat:
        chat.says("greet me")
        await chat.shows(["Hello there"])
        assert len(server.world.called("sendMessage")) == 1


@pytest.mark.rule("CH-96", "CH-97", "CH-138")
async def test_a_preview_becomes_the_answer_with_its_formatting(tmp_path: Path, server: FakeBotApi) -> None:
    script = model(lambda _: [Say(f"**{STORY}**"), Wait(0.6), Say(" The *end*.")])
    async with telegram_talk(tmp_path, script, server) as chat:
        asked_in = chat.says("a story")
        await chat.shows([f"{STORY} The end."])
        (message,) = server.world.ours(ADA)
        assert [entity["type"] for entity in message["entities"]] == ["bold", "italic"]
        assert message["reply_to_message"]["message_id"] == asked_in["message_id"]
        assert len(server.world.called("sendMessage")) == 1


@pytest.mark.rule("CH-98")
async def test_what_is_half_written_is_shown_presentable(tmp_path: Path, server: FakeBotApi) -> None:
    go = [asyncio.Event() for _ in range(3)]
    pieces = [
        Say(f"{STORY} 👨\u200d"), Until(go[0]), Say("👩 says **now"), Until(go[1]), Say("**:\n\n```python\nx = 1"), Until(go[2]),
        Say("\ny = 2\n```\n"),
    ]  # fmt: skip
    async with telegram_talk(tmp_path, model(lambda _: pieces), server) as chat:
        chat.says("a story")
        for shown, each in enumerate(go, start=1):
            await chat.until(lambda shown=shown: len(chat.calls("sendMessage", "editMessageText")) >= shown)
            each.set()
        await chat.shows([f"{STORY} 👨\u200d👩 says now:\n\nx = 1\ny = 2"])
        shown = chat.calls("sendMessage", "editMessageText")
        assert len(shown) >= 4
        assert not any("*" in text or "`" in text or text.endswith("\u200d") for text in shown)
        (message,) = server.world.ours(ADA)
        assert [entity["type"] for entity in message["entities"]] == ["bold", "pre"]


@pytest.mark.rule("CH-143", "CH-96")
async def test_an_answer_of_nine_messages_is_its_beginning_and_a_file(tmp_path: Path, server: FakeBotApi) -> None:
    story = "\n\n".join(f"Chapter {n}. {STORY * 12}" for n in range(42))
    telegram = {"enabled": True, "token": TOKEN, "base_url": server.url, "allow": ["*"]}  # the account as an operator has it
    async with running(tmp_path, model(lambda _: [Say(STORY), Say(story)]), config={"channels": {"telegram": telegram}}):
        server.says(ADA, "a long story", sender={"id": ADA, "is_bot": False, "first_name": "Ada"})

        async def sent_whole() -> bool:
            return len(server.world.ours(ADA)) == 2

        await eventually(sent_whole)
    (sent,) = server.world.called("sendDocument")
    ((_, name, size),) = sent.files
    first, file = server.world.ours(ADA)
    assert (name, size) == ("answer.md", len((STORY + story).encode()))
    assert first["text"].startswith(STORY) and file["caption"] == say("en", "answer_in_file")


@pytest.mark.rule("CH-97", "CH-101")
async def test_after_a_stop_in_mid_answer_the_final_replaces_the_preview_that_is_on_show(tmp_path: Path, server: FakeBotApi) -> None:
    go = asyncio.Event()
    pieces = [Say(STORY), Until(go), Say(" The end.")]
    async with telegram_talk(tmp_path, model(lambda _: pieces), server, config={"delivery": {"drain_s": 0.1}}) as chat:
        chat.says("a story")
        await chat.until(lambda: chat.texts() == [STORY])
    go.set()
    async with telegram_talk(tmp_path, model(lambda _: pieces), server) as chat:
        await chat.shows([f"{STORY} The end."])
    assert len(server.world.called("sendMessage")) == 1


@pytest.mark.rule("CH-97", "CH-36")
async def test_when_somebody_deletes_the_preview_the_answer_comes_as_a_new_message(tmp_path: Path, server: FakeBotApi) -> None:
    go = asyncio.Event()
    script = model(lambda _: [Say(STORY), Until(go), Say(" The end.")])
    async with telegram_talk(tmp_path, script, server) as chat:
        chat.says("a story")
        await chat.until(lambda: chat.texts() == [STORY])
        (preview,) = server.world.ours(ADA)
        del server.world.messages[ADA, preview["message_id"]]
        go.set()
        await chat.shows([f"{STORY} The end."])


@pytest.mark.case("TG-11")
@pytest.mark.rule("CH-91", "CH-92", "CH-33")
async def test_flood_control_costs_previews_and_not_the_answer(tmp_path: Path, server: FakeBotApi) -> None:
    rain, go = asyncio.Event(), asyncio.Event()
    script = model(lambda _: [Say(STORY), Until(rain), Say(" And then it rained."), Until(go), Say(" The end.")])
    async with telegram_talk(tmp_path, script, server) as chat:
        chat.says("a story")
        await chat.until(lambda: chat.texts() == [STORY])
        server.world.fail_next({"status": 429, "description": "Too Many Requests: retry after 2", "parameters": {"retry_after": 2}})
        rain.set()
        await chat.until(lambda: not server.world.faults)
        refused_at = time.monotonic()
        go.set()
        await chat.shows([f"{STORY} And then it rained. The end."])
        assert time.monotonic() - refused_at >= 2
        after = [call for call in server.world.calls if call.method in ("sendMessage", "editMessageText")]
        assert len(after) == 3, "the preview, the refused edit, the answer"


@pytest.mark.case("DL-09")
@pytest.mark.rule("CH-161", "CH-37")
@pytest.mark.parametrize("ends", ["well", "badly"])
async def test_a_long_run_shows_that_it_is_alive_until_something_else_does(tmp_path: Path, server: FakeBotApi, ends: str) -> None:
    go = asyncio.Event()
    last = Say("done") if ends == "well" else Fail(ModelMisconfigured("no key"))
    async with telegram_talk(tmp_path, model(lambda _: [Until(go), last]), server) as chat:
        chat.says("a long task")
        await chat.until(lambda: server.world.called("sendChatAction"), within_s=2)
        go.set()
        await chat.until(chat.texts)
        typed = len(server.world.called("sendChatAction"))
        await asyncio.sleep(0.5)
        assert len(server.world.called("sendChatAction")) == typed
        assert chat.texts() == (["done"] if ends == "well" else [say("en", "model_setup")])


# Lost and found


@pytest.mark.case("TG-29")
@pytest.mark.rule("CH-80", "CH-34")
async def test_when_nobody_can_tell_whether_it_arrived_a_second_copy_says_so_and_there_is_no_third(tmp_path: Path, server: FakeBotApi) -> None:
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        server.world.fail_next({"cut": True}, {"cut": True})
        chat.says("hello")
        again = f"Re: hello\n{say('en', 'sent_again')}"
        await chat.shows(["Re: hello", again])
        await asyncio.sleep(3)
        assert chat.texts() == ["Re: hello", again]


def failed_parts(folder: Path) -> int:
    with closing(sqlite3.connect(next(folder.rglob("yumegate.db")))) as connection:
        return connection.execute("SELECT count(*) FROM outbox WHERE state = 'failed'").fetchone()[0]


@pytest.mark.case("TG-12", "SC-11")
@pytest.mark.rule("CH-80", "CH-38", "CH-82")
@pytest.mark.parametrize("description", ["Bad Request: message text is empty", "Bad Request: chat not found"])
async def test_a_hopeless_send_is_made_once_and_told_with_the_next_answer(tmp_path: Path, server: FakeBotApi, description: str) -> None:
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        server.world.fail_next({"status": 400, "description": description})
        chat.says("hello")
        await chat.until(lambda: failed_parts(tmp_path))
        assert len(server.world.called("sendMessage")) == 1
        chat.says("and now?")
        await chat.shows([say("en", "lost_answer"), "Re: and now?"])




@pytest.mark.case("TG-19")
@pytest.mark.rule("CH-166")
@pytest.mark.parametrize("allowed", ["*", "-400000001"])
async def test_a_group_that_became_a_supergroup_keeps_its_talk_and_the_answer_follows_it(
    tmp_path: Path, server: FakeBotApi, allowed: str
) -> None:
    old, new, go = -400000001, -1009000000001, asyncio.Event()
    for chat_id in (old, new):
        server.world.chat(chat_id, "group" if chat_id == old else "supergroup")
    script = model(lambda request: [Until(go), Say(f"Re: {asked(request)}")])
    rules = Rules(allow=frozenset({"*"}), groups=frozenset({allowed}))
    async with telegram_talk(tmp_path, script, server, rules=rules) as chat:
        chat.says("@yume_bot remember: tea", chat=old)
        await chat.until(lambda: len(chat.requests) == 1)
        server.world.chat(old).moved_to = new
        go.set()
        await chat.until(lambda: chat.texts(new))
        for _ in range(2):
            chat.says(chat=new, migrate_from_chat_id=old)
            chat.says(chat=old, migrate_to_chat_id=new)
        await chat.until(lambda: server.world.updates == [])
        chat.says("@yume_bot what was it?", chat=new)
        await chat.until(lambda: len(chat.texts(new)) == 2)
        assert "remember: tea" in str(chat.requests[-1].messages), "its history came along, and so did its admission"
        assert chat.texts(old) == []


@pytest.mark.case("TG-28", "DL-10")
@pytest.mark.rule("CH-23", "CH-51")
async def test_what_comes_again_after_a_restart_is_answered_once(tmp_path: Path, server: FakeBotApi) -> None:
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        chat.says("once")
        await chat.shows(["Re: once"])
    update = server.world.everything[0]
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        server.repeat(update)
        server.put(message=update["message"])  # the numbers began anew
        chat.says("twice")
        await chat.until(lambda: len(chat.texts()) == 2)
        await asyncio.sleep(0.3)
        assert chat.texts() == ["Re: once", "Re: twice"]


@pytest.mark.case("TG-27")
@pytest.mark.rule("CH-162", "CH-214")
async def test_another_poller_does_not_stop_the_page(tmp_path: Path, server: FakeBotApi) -> None:
    conflict = {"status": 409, "description": "Conflict: terminated by other getUpdates request"}
    server.world.poll_faults.extend([conflict] * 1000)
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        await chat.until(lambda: len(server.world.poll_faults) < 1000)
        page = await chat.gateway.chat()
        await chat.gateway.say(page, "hello")
        assert await chat.gateway.answers(page) == ["Re: hello"]
        (account,) = [each for each in (await chat.gateway.get("/readyz"))["channels"] if each["channel"] == "telegram"]
        assert account["state"] == "degraded"
        assert "another program polls with this token" in account["reason"]


@pytest.mark.case("SC-13")
@pytest.mark.rule("CH-80", "CH-101")
async def test_an_answer_can_be_sent_after_a_restart_without_anybody_writing_first(tmp_path: Path, server: FakeBotApi) -> None:
    """Where to is data on the part: the adapter needs nothing that only an incoming message would set."""
    async with telegram_talk(tmp_path, model(echo), server, config={"delivery": {"drain_s": 0.1}}) as chat:
        await chat.until(lambda: sum(call.method == "getUpdates" for call in server.world.calls) > 1)  # the long poll is under way, and goes on
        server.refuse()
        server.world.fail_next({"hang": True})
        chat.says("@yume_bot in the topic", chat=FORUM, message_thread_id=TOPIC, is_topic_message=True)
        await chat.until(lambda: len(chat.requests) == 1)
        await asyncio.sleep(0.3)
    server.world.faults.clear()
    server.network(True)
    async with telegram_talk(tmp_path, model(echo), server) as chat:
        await chat.until(lambda: chat.texts(FORUM))
        assert len(server.world.ours(FORUM, TOPIC)) == 1
        assert chat.requests == []
