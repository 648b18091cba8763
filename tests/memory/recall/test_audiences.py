"""Who may be told what of the talk: nothing reaches a reader or a character outside of an item's audience (AT-17)."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.database import Database
from memory.recall import chunk_store, real_talk
from memory.recall.audiences import Audience, audience_key, readable
from tests.memory.recall.talks import Talks

PEOPLE, PERSONAS = ("ann", "bo", "chi", "dai"), ("yume", "aki")


def lists(ids: tuple[str, ...]) -> st.SearchStrategy[tuple[str, ...] | None]:
    return st.none() | st.lists(st.sampled_from(ids), unique=True).map(tuple)


@pytest.mark.rule("RS-185")
@given(
    st.lists(st.tuples(lists(PEOPLE), lists(PERSONAS)), max_size=12), st.lists(st.sampled_from((*PEOPLE, "*")), min_size=1), st.sampled_from(PERSONAS)
)
def test_every_reader_is_inside_and_so_is_who_answers(audiences: list[Audience], readers: list[str], responder: str) -> None:
    keys = readable(audiences, readers, responder)
    for people, personas in audiences:
        allowed = (people is None or set(readers) <= set(people)) and (personas is None or responder in personas)
        assert (audience_key(people, personas) in keys) is allowed


@pytest.mark.rule("RS-185")
@given(lists(PEOPLE), lists(PERSONAS), lists(PEOPLE), lists(PERSONAS))
def test_two_audiences_share_a_key_only_when_they_are_the_same(
    people: tuple[str, ...] | None, personas: tuple[str, ...] | None, others: tuple[str, ...] | None, more: tuple[str, ...] | None
) -> None:
    def who(ids: tuple[str, ...] | None) -> frozenset[str] | None:
        return None if ids is None else frozenset(ids)

    same = (who(people), who(personas)) == (who(others), who(more))
    assert (audience_key(people, personas) == audience_key(others, more)) is same


@pytest.mark.rule("RS-186", "RS-185", "RS-188")
async def test_a_whisper_inside_a_public_day_is_apart_and_told_to_nobody_else(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    for at in range(5):
        await talks.say(of, f"the picnic is on sunday, part {at}")
        await talks.say(of, f"the surprise for Bo is a kite, part {at}", audience_people=["ann"])
    assert await talks.cut(of) == 2
    stored = await database.read(lambda c: chunk_store.of_chat(c, of))
    assert sorted(("kite" in chunk.text, "picnic" in chunk.text) for chunk in stored) == [(False, True), (True, False)]
    for question in ("what about the picnic on sunday", "what about the surprise kite", "what about the surprise kite and the picnic on sunday"):
        public = await talks.ask(question, of)
        assert all("kite" not in message.text for passage in public.passages for message in passage.messages)
        assert bool(public.passages) or "kite" in question
    own = await talks.ask("what about the surprise kite", of, audiences=("", audience_key(["ann"], None)))
    assert any("kite" in message.text for passage in own.passages for message in passage.messages)


@pytest.mark.rule("RS-185", "RS-187", "RS-181")
async def test_no_secret_leaves_its_chat_or_its_audience_in_random_talks(sqlite: Database) -> None:
    chooser = random.Random(17)
    talks = Talks(sqlite)
    chats = [await talks.chat(f"web::{n}") for n in range(6)]
    where: dict[str, tuple[str, str]] = {}
    for number in range(240):
        chat = chooser.choice(chats)
        people = chooser.choice([None, None, ["ann"], ["ann", "bo"], []])
        word = f"secret{number}"
        await talks.say(chat, f"{word} is hidden in the garden", **({} if people is None else {"audience_people": people}))
        where[word] = (chat, audience_key(people, None))
    for chat in chats:
        await talks.cut(chat)
    keys = {key for _, key in where.values()}
    for _ in range(60):
        chat, key = chooser.choice(chats), chooser.choice(sorted(keys))
        word = chooser.choice(sorted(where))
        found = await talks.ask(f"where is {word} hidden in the garden", chat, audiences=("", key))
        seen = {message.text.split()[0] for passage in found.passages for message in passage.messages}
        assert all(where[each][0] == chat and where[each][1] in ("", key) for each in seen)


@pytest.mark.rule("RS-12", "RS-11")
async def test_talk_without_a_memory_is_no_material(sqlite: Database) -> None:
    talks = Talks(sqlite)
    of = await talks.chat()
    await talks.say(of, *"abcdefgh", scope="")
    assert await talks.cut(of) == 0
    assert await sqlite.read(lambda c: real_talk.with_work(c, 1)) == []
