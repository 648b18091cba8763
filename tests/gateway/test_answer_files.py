"""Answers of more than eight messages go out as their beginning and one file (CH-143), with or without marks of parts (CH-142)."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest

from agent.llm.scripted import ScriptedModel
from channels.loopback import CAPABILITIES
from channels.message import Account, Address
from channels.port import Capabilities
from gateway.arrivals.inbox import Waiting
from gateway.attachments import Attachments
from gateway.config import Delivery
from gateway.delivery.answer_files import OutgoingFiles, answer_file
from gateway.delivery.outbox_store import NewPart
from gateway.delivery.replies import Replies
from gateway.language import LANGUAGES, say
from gateway.turn_store import TurnEnd
from memory import conversations, message_changes
from memory.database import Database
from tests.conftest import FakeClock
from tests.talks import talk

WORDS = {"en": "The lamp went out over the sea. ", "ja": "海の上で灯りが消えました。", "zh": "海上的灯熄灭了。"}
SMALL = replace(CAPABILITIES, text_max=200)
HERE = Address(account=Account(channel="loopback"), chat_id="c1")
NOW = datetime(2026, 3, 1, tzinfo=UTC)


class NoLosses:
    def losses(self, _address: str) -> bool:
        return False


def parts(answer: str, *, language: str = "en", can: Capabilities = SMALL, notice: str = "", marks: bool = False) -> list[NewPart]:
    replies = Replies(NoLosses(), can=lambda _account: can, limits=lambda: Delivery(part_marks=marks))  # pyright: ignore[reportArgumentType]
    ending = TurnEnd(turn_id="t1", conversation_id="x", state="answered", rows=(1,), answer=answer, notice=notice)
    asked = Waiting(
        row_id=1, delivery_id="d", address=str(HERE), conversation_id="x", person_id="p", message_id="m", turn_id="t1", received_at=NOW,
        platform_message_id="m7",
    )  # fmt: skip
    return list(replies.compose(HERE, ending, asked, language=language, now=NOW).parts)


@pytest.mark.rule("CH-143")
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_long_answer_is_its_beginning_then_the_file_then_what_we_say_of_it(language: str) -> None:
    text = (WORDS[language] * 400).strip()
    first, file, notice = (new.part for new in parts(text, language=language, notice="It stopped early."))
    assert text.startswith(first.text[:20]) and first.reply_to == "m7" and not first.attachments
    assert file.text == say(language, "answer_in_file")
    (attached,) = file.attachments
    assert (attached.name, attached.size) == (say(language, "answer_file"), len(text.encode()))
    assert notice.text == "It stopped early."
    assert len({part.part_id for part in (first, file, notice)}) == 3


@pytest.mark.rule("CH-143", "CH-8")
@pytest.mark.parametrize(
    ("can", "times"),
    [(SMALL, 40), (replace(SMALL, documents=False), 400), (replace(SMALL, media_max_bytes=100), 400)],
    ids=["short enough", "no files there", "too large for a file"],
)
def test_otherwise_it_is_all_of_its_messages(can: Capabilities, times: int) -> None:
    found = parts((WORDS["en"] * times).strip(), can=can)
    assert "".join(new.part.text for new in found).count("lamp") == times
    assert not any(new.part.attachments for new in found)


@pytest.mark.rule("CH-142")
@pytest.mark.parametrize("marks", [True, False])
def test_marks_of_parts_stand_where_the_configuration_asks_for_them(marks: bool) -> None:
    found = [new.part.text for new in parts((WORDS["en"] * 30).strip(), marks=marks)]
    assert [text.endswith(f"\n\n({number}/{len(found)})") for number, text in enumerate(found, 1)] == [marks] * len(found)
    assert not any("(1/" in new.part.text for new in [*parts("One.", marks=marks), *parts(WORDS["en"] * 400, marks=marks)])


@pytest.mark.rule("CH-143")
async def test_the_file_holds_the_answer_as_it_stands_when_it_is_sent_and_nothing_once_it_is_deleted(
    database: Database, clock: FakeClock, tmp_path: Path
) -> None:
    files, now = OutgoingFiles(database, Attachments(tmp_path, database)), clock()
    chat = await database.write(
        lambda c: conversations.create_conversation(c, now=now, key=str(HERE), channel="loopback", account="main", kind="dm")
    )
    for attempt in (1, 2):
        await database.write(
            lambda c, attempt=attempt: conversations.add_message(
                c, now=now, conversation_id=chat, role="assistant", text=f"try {attempt}", turn_id="t1", attempt=attempt
            )
        )
    file = answer_file("t1", 2, "try 2", name="answer.md")
    assert await files.read(file) == b"try 2"
    newest = (await database.read(lambda c: conversations.of_turn(c, "t1")))[-1]
    await database.write(lambda c: message_changes.forget(c, newest.id))
    with pytest.raises(OSError, match=r"answer\.md"):
        await files.read(file)
    with pytest.raises(OSError, match=r"picture\.png"):
        await files.read(replace(file, name="picture.png", stored_path="../picture.png"))


@pytest.mark.rule("CH-143")
async def test_through_a_whole_gateway_two_messages_arrive(tmp_path: Path) -> None:
    story = "\n\n".join(f"Chapter {n}: {WORDS['en'] * 3}" for n in range(60))
    model = ScriptedModel(lambda request: story if request.purpose == "reply" else "A title")
    async with talk(tmp_path, model, can=replace(CAPABILITIES, text_max=400)) as chat:
        chat.says("a long story")
        await chat.until(lambda: any(shown.files for shown in chat.platform.shown))
        first, file = await chat.shown(2)
        assert first.startswith("Chapter 0") and file == say("en", "answer_in_file")
        assert [shown.files for shown in chat.platform.shown] == [(), ("answer.md",)]
