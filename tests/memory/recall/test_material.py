"""What of the log is material for recall: the words that count, once, without pictures and discarded tries."""

from __future__ import annotations

import pytest

from memory import message_changes
from memory.database import Database
from memory.recall import chunk_store, real_talk
from tests.memory.recall.talks import Talks, told


@pytest.mark.rule("RS-19")
async def test_of_three_tries_one_is_found(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    await talks.say(of, "where is the lighthouse", turn_id="t1")
    for attempt, word in enumerate(("north", "south", "east"), start=1):
        if attempt > 1:
            await database.write(lambda c, attempt=attempt: message_changes.retire_answers(c, "t1", attempt))
        await talks.say(of, f"The lighthouse stands in the {word}ern bay", by_us=True, turn_id="t1", attempt=attempt)
    await talks.say(of, "a", "b", "c")
    assert await talks.cut(of) == 1
    assert told(await talks.ask("which bay had the lighthouse", of))[0] == "The lighthouse stands in the eastern bay"
    assert not any("northern" in message.text for message in await database.read(lambda c: real_talk.between(c, of, 0, 10**9)))


@pytest.mark.rule("RS-23")
async def test_pictures_and_their_names_stay_out_and_what_was_heard_stays_in(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    picture = {"kind": "image", "name": "beach-sunset.png", "caption": "a red sunset"}
    voice = {"kind": "voice", "name": "note.ogg", "transcript": "灯台で会いましょう"}
    await talks.say(of, "look", attachments=[picture])
    await talks.say(of, "", attachments=[voice])
    await talks.say(of, "", attachments=[picture])  # says nothing in words
    said = await database.read(lambda c: real_talk.uncut(c, of))
    assert [message.text for message in said] == ["look", "灯台で会いましょう"]
    await talks.say(of, "a", "b", "c")
    await talks.cut(of)
    assert (await talks.ask("red sunset at the beach", of)).passages == ()
    assert told(await talks.ask("灯台はどこ", of))[0] == "灯台で会いましょう"


@pytest.mark.rule("RS-23", "RS-22")
async def test_what_a_file_says_is_part_of_its_message_and_makes_a_chunk_anew_when_it_is_read_later(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    unread = {"kind": "text", "name": "birds.txt"}
    [first, *_] = await talks.say(of, "look", attachments=[unread])
    await talks.say(of, "a", "b", "c", "d")
    assert await talks.cut(of) == 1
    [before] = await database.read(lambda c: real_talk.by_seq(c, of, [first.seq]))
    await database.write(lambda c: message_changes.set_attachments(c, first.id, [{**unread, "words": "The tern nests in berth nine"}]))
    [after] = await database.read(lambda c: real_talk.by_seq(c, of, [first.seq]))
    assert (before.text, after.text) == ("look", "look\nThe tern nests in berth nine")
    assert before.fingerprint != after.fingerprint
    assert [each.seqs[0] for each in await database.read(lambda c: chunk_store.stale(c, of))] == [first.seq]
    await database.write(lambda c: message_changes.forget(c, first.id))
    assert await database.read(lambda c: real_talk.by_seq(c, of, [first.seq])) == []
