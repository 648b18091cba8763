"""Searching the talk: by words and by vectors, outside of the window, never what was taken away."""

from __future__ import annotations

import pytest
import sqlalchemy as sa

from memory import message_changes, provenance
from memory.database import Database
from memory.embedders.hashed import hash_embedder
from memory.provenance import Bar
from memory.recall import asking, real_talk
from memory.recall.asking import Line
from memory.schema import messages
from tests.memory.recall.talks import Talks, told

CHATTER = {
    "en": ["the bus was late again", "I had soup for lunch", "it may rain tomorrow", "the meeting went on and on", "we watched a film"],
    "ja": ["バスがまた遅れた", "昼はスープを飲んだ", "明日は雨かもしれない", "会議が長引いた", "映画を見た"],
    "zh": ["公交车又晚点了", "中午喝了汤", "明天可能下雨", "会议开了很久", "我们看了电影"],
}
FACTS = {
    "en": ("My sister Kaede moved to Sapporo to open a bakery.", "Where does my sister bake now, in Sapporo?"),
    "ja": ("シロと公園に行って、大きな犬に会ったよ。", "シロはどこ?"),
    "zh": ("今天在楼下见到了小白,它胖了。", "小白在哪里?"),
}


async def filled(talks: Talks, language: str, *, after: int = 60) -> tuple[str, int]:
    """A chat with a fact at its start and a lot of chatter behind it; the number of the fact."""
    of = await talks.chat(f"web::{language}{after}")
    fact = (await talks.say(of, FACTS[language][0]))[0]
    for at in range(after):
        await talks.say(of, f"{CHATTER[language][at % 5]} {at}", by_us=at % 2 == 0)
    await talks.cut(of)
    return of, fact.seq


@pytest.mark.rule("RS-30", "RS-176", "RS-36")
@pytest.mark.parametrize("language", FACTS)
async def test_a_fact_of_long_ago_is_found_by_its_words(database: Database, language: str) -> None:
    talks = Talks(database)
    of, _ = await filled(talks, language)
    found = await talks.ask(FACTS[language][1], of)
    assert found.mode == "text"
    assert told(found)[0] == FACTS[language][0]


@pytest.mark.rule("RS-31", "RS-175")
@pytest.mark.parametrize(("language", "question"), [("en", "how are you doing over there"), ("ja", "これはどうですか"), ("zh", "你好吗,怎么样")])
async def test_a_question_of_common_words_recalls_nothing(sqlite: Database, language: str, question: str) -> None:
    talks = Talks(sqlite)
    for after in (4, 300):
        of, _ = await filled(talks, language, after=after)
        assert (await talks.ask(question, of)).passages == ()


@pytest.mark.rule("RS-72")
async def test_what_is_live_is_not_recalled_and_a_chunk_across_the_edge_gives_its_rest(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    said = await talks.say(of, *(f"the heron number {n} sleeps by the lake" for n in range(10)))
    await talks.cut(of)
    found = await talks.ask("tell me of the heron number 7", of, edge=said[6].seq)
    seqs = {message.seq for passage in found.passages for message in passage.messages}
    assert seqs == {message.seq for message in said[:7]}
    assert (await talks.ask("tell me of the heron number 7", of, edge=0)).passages == ()


@pytest.mark.rule("RS-17")
async def test_a_name_in_the_open_group_is_found_once_it_left_the_window(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    said = await talks.say(of, "hello", "Mr Okonkwo called about the roof", "and then it rained")
    assert await talks.cut(of) == 0
    found = await talks.ask("what did Okonkwo want", of, edge=said[-1].seq, names=["Okonkwo"])
    assert told(found) == ["Mr Okonkwo called about the roof"]
    assert (await talks.ask("what did Okonkwo want", of, edge=0, names=["Okonkwo"])).passages == ()


@pytest.mark.rule("RS-35", "RS-177")
async def test_a_rare_name_beats_five_common_words_and_everybodys_name_says_nothing(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    for at in range(12):
        await talks.say(of, *(f"{speaker} likes the long walk by the cold river {at}" for speaker in ("a", "b", "c", "d")), "mika was here")
    await talks.say(of, "ryo hid it", "x", "y", "z", "w")
    await talks.cut(of)
    question = "who likes the long walk by the cold river, ryo"
    assert told(await talks.ask(question, of, names=["ryo", "mika"]))[0] == "ryo hid it"
    # a name in more than half of the chunks tells nothing apart
    assert told(await talks.ask("was it mika who hid it?", of, names=["ryo", "mika"]))[0] == "ryo hid it"


@pytest.mark.rule("RS-173", "RS-30")
async def test_vectors_and_words_are_asked_together(database: Database) -> None:
    talks = Talks(database, hash_embedder(64))
    of, _ = await filled(talks, "ja")
    found = await talks.ask(FACTS["ja"][1], of)
    assert found.mode == "hybrid"
    assert FACTS["ja"][0] in told(found)
    assert found.searched > 10


@pytest.mark.rule("RS-21", "RS-22", "RS-189")
async def test_what_was_edited_or_deleted_is_recalled_no_more_from_that_moment(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    said = await talks.say(of, *(f"secret {name} of the garden" for name in ("gate", "key", "well", "tree", "wall")))
    await talks.cut(of)
    assert (await talks.ask("the secret key of the garden", of)).passages
    await database.write(lambda c: message_changes.forget(c, said[1].id))
    assert (await talks.ask("the secret key of the garden", of)).passages == ()


@pytest.mark.rule("RS-171", "RS-189")
@pytest.mark.parametrize("by_note", [False, True], ids=["the message", "what rested on it"])
@pytest.mark.parametrize(
    ("parts", "question"),
    [
        (("gate", "key", "well", "tree", "wall", "roof"), "the secret well of the garden"),
        (("庭の門", "庭の鍵", "庭の井戸", "庭の木", "庭の塀", "庭の屋根"), "庭の井戸のことは"),
        (("花园的大门", "花园的钥匙", "花园的水井", "花园的大树", "花园的围墙", "花园的屋顶"), "花园的水井在哪里"),
    ],
    ids=["en", "ja", "zh"],
)
async def test_a_find_tells_where_something_between_its_messages_was_forgotten(
    sqlite: Database, parts: tuple[str, ...], question: str, *, by_note: bool
) -> None:
    talks = Talks(sqlite)
    of, another = await talks.chat(), await talks.chat("web::2")
    said = [(await talks.say(of, f"the secret {part} of the garden"))[0] for part in parts[:4]]
    await talks.say(another, "something elsewhere")  # numbers go over all chats, so a missing one says nothing
    await talks.say(of, "/status", origin="command")
    said += await talks.say(of, *(f"the secret {part} of the garden" for part in parts[4:]))
    bar = Bar(reason="forgotten", hash="", sources=(said[1].id,))
    await sqlite.write(lambda c: provenance.bar(c, "root", [bar], talks.clock) if by_note else message_changes.forget(c, said[1].id))
    assert await talks.cut(of) == 1
    (passage,) = (await talks.ask(question, of)).passages
    assert [message.gap for message in passage.messages] == [False, True, False, False, False]


@pytest.mark.rule("RS-22", "RS-180")
async def test_a_row_changed_behind_our_back_withholds_its_chunk_and_asks_for_a_new_one(database: Database) -> None:
    talks = Talks(database)
    of = await talks.chat()
    said = await talks.say(of, *(f"the pin of the {name} safe" for name in ("red", "blue", "grey", "dark", "pale")))
    await talks.cut(of)
    await database.write(lambda c: c.execute(sa.update(messages).where(messages.c.id == said[0].id).values(text="nothing")).close())
    found = await talks.ask("which pin has the red safe", of)
    assert found.passages == ()
    assert found.stale == {of}


@pytest.mark.rule("RS-181", "RS-187")
async def test_another_chat_is_never_found(database: Database) -> None:
    talks = Talks(database)
    here, there = await talks.chat("web::猫 #1"), await talks.chat("web::猫 #2")
    await talks.say(there, *(f"the treasure is under the {name}" for name in ("oak", "elm", "fir", "yew", "ash")))
    await talks.say(here, "a", "b", "c", "d", "e")
    await talks.cut(there)
    await talks.cut(here)
    assert (await talks.ask("where is the treasure, under the elm?", here)).passages == ()
    assert (await talks.ask("where is the treasure, under the elm?", there)).passages


@pytest.mark.rule("RS-33")
def test_the_question_is_what_people_said_since_the_responder_spoke() -> None:
    talk = [Line("old"), Line("answer", "yume"), *(Line(f"w{n}") for n in range(9))]
    assert asking.question_of(talk, "yume") == "w3\nw4\nw5\nw6\nw7\nw8"
    assert asking.question_of(talk[:3], "yume") == "w0"
    assert asking.question_of(talk, "new one") == "w8"
    assert asking.question_of([*talk, Line("other", "aki"), Line("last")], "yume").endswith("w8\nlast")


@pytest.mark.rule("RS-33")
@pytest.mark.parametrize(
    ("text", "short"), [("ok", True), ("👍", True), ("", True), ("cat", False), ("小白", False), ("猫", True), ("シロ", False), ("12", True)]
)
def test_what_is_too_short_to_search_by(text: str, short: bool) -> None:
    assert asking.too_short(text) is short


@pytest.mark.rule("RS-35", "RS-177")
@pytest.mark.parametrize(
    ("question", "names", "never", "found"),
    [
        ("did ryo call", ["Ryo", "Mika"], [], 1),
        ("小白在哪里", ["小白"], [], 1),
        ("シロはどこ", ["シロ"], ["シロ"], 0),
        ("the annex is open", ["Ann"], [], 0),
        ("ask Ann Lee", ["Ann Lee", "Ann"], [], 2),
    ],
)
def test_names_are_found_as_whole_words_in_every_script(question: str, names: list[str], never: list[str], found: int) -> None:
    assert len(asking.names_in(question, names, never)) == found


@pytest.mark.rule("RS-17")
async def test_what_waits_behind_chunks_is_found_and_a_long_chat_is_not_read_through_for_it(database: Database) -> None:
    talks = Talks(database)
    of, _ = await filled(talks, "en", after=54)
    said = await talks.say(of, "the plumber is called Okonkwo")
    assert told(await talks.ask("what was it with Okonkwo?", of, names=["Okonkwo"])) == ["the plumber is called Okonkwo"]
    seqs = [message.seq for message in await database.read(lambda c: real_talk.uncut(c, of, after=said[0].seq - 1))]
    assert seqs == [said[0].seq]
    assert await database.read(lambda c: real_talk.behind_newest(c, of, 1)) == said[0].seq - 1
    assert await database.read(lambda c: real_talk.behind_newest(c, of, 1_000)) == 0
