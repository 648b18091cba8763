"""Which lists are in effect in a place, which rows count there, and what the AI may write there."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.saved import permits
from memory.saved.lists import Learning, Participant, Privacy, Where, counted, in_effect
from memory.saved.permits import Birth
from memory.saved.policy import OFF
from memory.saved.rows import ListKind, character_list, global_list, space_list
from memory.saved.split import head
from memory.saved.tag_words import Talk
from memory.saved.visible import Hiding, look, visible
from memory.saved.writing import Outcome
from tests.memory.saved.places import (
    ANN,
    BOB,
    CID,
    DEN,
    GLOBAL,
    HALL,
    MINE,
    NOA,
    ON,
    OTHER_ROOM,
    PLACE,
    ROOM,
    SORA,
    THREAD,
    YUKI,
    ids,
    off,
    private,
    row,
    shared,
)

# -- lists -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-9")
@pytest.mark.parametrize(
    ("where", "expected"),
    [
        (private(), [GLOBAL, MINE]),
        (private(members=(YUKI, SORA)), [GLOBAL, MINE, character_list(ANN, SORA)]),
        (private(members=(SORA,)), [GLOBAL, MINE, character_list(ANN, SORA)]),
        (shared(), [PLACE, GLOBAL, MINE, global_list(BOB), character_list(BOB, YUKI)]),
        (shared(character=SORA), [space_list(DEN, SORA), GLOBAL, character_list(ANN, SORA), global_list(BOB), character_list(BOB, SORA)]),
        (shared(Participant(person=ANN)), [PLACE, GLOBAL, MINE]),
        (shared(author="", participants=()), [PLACE]),
    ],
)
def test_the_lists_in_effect(where: Where, expected: list[object]) -> None:
    assert list(in_effect(where)) == expected


@pytest.mark.rule("SM-9")
def test_a_row_appears_once_and_a_list_that_is_not_in_effect_gives_none() -> None:
    rows = [row(1), row(1), row(2, key=character_list(ANN, NOA)), row(3, key=space_list(HALL, YUKI)), row(4, key=character_list(BOB, YUKI))]
    assert ids(visible(rows, private(members=(YUKI, SORA)))) == [1]


@pytest.mark.rule("SM-9", "SM-1")
def test_a_private_chat_belongs_to_its_author_alone() -> None:
    where = private(participants=(Participant(person=BOB), Participant(person=ANN)))
    assert [each.person for each in counted(where)] == [ANN]
    assert list(in_effect(where)) == [GLOBAL, MINE]


@pytest.mark.rule("SM-10")
def test_the_author_counts_always_and_the_most_recent_speakers_win() -> None:
    speakers = tuple(Participant(person=f"p-{number}") for number in range(12))
    names = [each.person for each in counted(shared(*speakers, author="p-11"))]
    assert names == ["p-11", *(f"p-{number}" for number in range(7))]
    assert [each.person for each in counted(shared(*speakers, author="p-99", participants_max=2))] == ["p-99", "p-0"]


@pytest.mark.rule("SM-10")
def test_who_is_absent_from_the_window_contributes_not_even_a_pin() -> None:
    pin = row(1, key=global_list(CID), pinned=True, protected=True)
    assert look([pin], shared()).hidden == ((pin, Hiding.OTHER_LIST),)
    assert ids(visible([pin], shared(Participant(person=CID), Participant(person=ANN)))) == [1]


# -- filters -----------------------------------------------------------------------------------------------------------

PARTIAL = (Participant(person=ANN, privacy=Privacy.PARTIAL),)
FULL = (Participant(person=ANN, privacy=Privacy.FULL),)
BLACKLISTED = (Participant(person=ANN, blacklisted=True),)

# A row, the place that hides it, why, and a place where the same row counts.
FILTERS: list[Any] = [
    pytest.param(row(1), private(policy=OFF), Hiding.MEMORY_OFF, private(), id="memory off"),
    pytest.param(row(1), private(learning=off(ANN, YUKI)), Hiding.LEARNING_OFF, private(learning=off(ANN, SORA)), id="learning"),
    pytest.param(row(1, key=GLOBAL), private(learning=off(ANN, YUKI)), Hiding.LEARNING_OFF, private(), id="learning, GLOBAL"),
    pytest.param(row(1), private(learning=off(ANN, YUKI, learn=True)), Hiding.LEARNING_OFF, private(learning=off(ANN, YUKI, use=True)), id="use"),
    pytest.param(
        row(1, key=PLACE), shared(space_learning=Learning(use=False)), Hiding.LEARNING_OFF, shared(learning=off(ANN, YUKI)), id="learning, SPACE"
    ),
    pytest.param(row(1), shared(*PARTIAL), Hiding.PRIVACY, private(participants=PARTIAL), id="privacy, partial"),
    pytest.param(row(1), shared(*FULL), Hiding.PRIVACY, private(participants=FULL), id="privacy, full"),
    pytest.param(row(1), shared(*BLACKLISTED), Hiding.BLACKLISTED, private(participants=BLACKLISTED), id="blacklist"),
    pytest.param(
        row(1, private_origin=True), shared(), Hiding.PRIVATE_ORIGIN, shared(Participant(person=ANN, shares_private=True)), id="private origin"
    ),
    pytest.param(row(1, channel_ids=(ROOM,)), shared(channels=(OTHER_ROOM,)), Hiding.CHANNEL, shared(channels=(THREAD, ROOM)), id="channel"),
    pytest.param(row(1, tags=("cat",)), private(window=("concatenate",)), Hiding.TAGS, private(window=("my Cat!",)), id="tags"),
    pytest.param(row(1, key=PLACE, archived=True), shared(), Hiding.ARCHIVED, None, id="archived"),
]


@pytest.mark.rule("SM-11", "SM-13", "SM-14", "SM-15", "SM-17", "SM-87", "T9")
@pytest.mark.parametrize(("memory", "hides", "why", "shows"), FILTERS)
def test_each_filter_hides_and_says_why(memory: Any, hides: Where, why: Hiding, shows: Where | None) -> None:
    assert look([memory], hides).hidden == ((memory, why),)
    assert not visible([memory], hides)
    if shows is not None:
        assert visible([memory], shows) == (memory,)


@pytest.mark.rule("SM-12")
@pytest.mark.parametrize(("memory", "hides", "why", "shows"), FILTERS)
def test_hiding_beats_pinning_but_for_word_tags(memory: Any, hides: Where, why: Hiding, shows: Where | None) -> None:
    pin = replace(memory, pinned=True, protected=True)
    assert bool(visible([pin], hides)) == (why is Hiding.TAGS)


@pytest.mark.rule("SM-14")
def test_a_blacklisted_person_is_hidden_there_alone_and_what_the_place_knows_stays() -> None:
    rows = [row(1, key=PLACE), row(2), row(3, key=global_list(BOB))]
    there = shared(Participant(person=ANN, blacklisted=True), Participant(person=BOB))
    assert ids(visible(rows, there)) == [1, 3]
    assert ids(visible(rows, private())) == [2]
    assert ids(visible(rows, shared(Participant(person=ANN), Participant(person=BOB)))) == [1, 2, 3]


@pytest.mark.rule("SM-15")
def test_the_owners_private_rows_stay_private_whoever_else_shares_theirs() -> None:
    rows = [row(1, private_origin=True), row(2, key=global_list(BOB), private_origin=True)]
    assert ids(visible(rows, shared(Participant(person=ANN), Participant(person=BOB, shares_private=True)))) == [2]
    assert ids(visible(rows, private())) == [1]


@pytest.mark.rule("SM-87")
def test_an_off_member_of_a_group_neither_gives_nor_gets() -> None:
    rows = [row(1, key=GLOBAL), row(2), row(3, key=character_list(ANN, SORA))]
    members = (YUKI, SORA)
    assert ids(visible(rows, private(members=members, learning=off(ANN, SORA)))) == [1, 2]
    assert ids(visible(rows, private(members=members, learning=off(ANN, SORA), character=SORA))) == []
    assert ids(visible(rows, private(members=members))) == [1, 2, 3]


@pytest.mark.rule("SM-17", "SM-18")
def test_tags_and_channel_must_both_pass() -> None:
    memory = row(1, channel_ids=(ROOM,), tags=("cat",))
    assert visible([memory], shared(window=("a cat",)))
    assert not visible([memory], shared(window=("a dog",)))
    assert not visible([memory], shared(window=("a cat",), channels=(OTHER_ROOM,)))


@pytest.mark.rule("SM-18")
@pytest.mark.parametrize(
    ("tag", "text", "there"),
    [
        ("cat", "concatenate", False),
        ("cat", "cats", False),
        ("cat", "Cat!", True),
        ("cat", "(cat)", True),
        ("cat", "cat_food", False),
        ("cat", "cat2", False),
        ("cat", "私のcatです", True),
        ("Straße", "STRASSE 5", True),
        ("ﾊﾟﾝ", "パンを買う", True),
        ("猫", "子猫がいる", True),
        ("ねこ", "ねこじゃらし", True),
        ("小猫", "我家的小猫很乖", True),
        ("小猫", "小狗和老猫", False),
        ("ice cream", "Ice cream, please", True),
        ("ice cream", "nice creams", False),
        ("c++", "I write C++.", True),
        ("C", "C++", True),
        ("  ", "anything", False),
        ("été", "l'ÉTÉ dernier", True),
    ],
)
def test_word_tags_in_every_script(tag: str, text: str, there: bool) -> None:
    assert Talk(["nothing here", text]).has(tag) is there


@pytest.mark.rule("SM-18")
@given(st.text(min_size=1, max_size=12), st.lists(st.text(max_size=20), max_size=3))
def test_a_tag_is_found_in_the_talk_that_is_the_tag(tag: str, others: list[str]) -> None:
    talk = Talk([*others, tag])
    assert talk.has(tag) or not Talk([tag]).has(tag)


def _places() -> st.SearchStrategy[Where]:
    people = st.lists(
        st.builds(
            Participant,
            person=st.sampled_from([ANN, BOB, CID]),
            privacy=st.sampled_from(Privacy),
            blacklisted=st.booleans(),
            shares_private=st.booleans(),
            spoke_today=st.booleans(),
        ),
        max_size=4,
    ).map(tuple)
    return st.builds(
        Where,
        policy=st.sampled_from([ON, OFF]),
        character=st.sampled_from([YUKI, SORA]),
        author=st.sampled_from([ANN, BOB]),
        members=st.sampled_from([(), (YUKI, SORA)]),
        space=st.sampled_from([None, DEN]),
        participants=people,
        channels=st.sampled_from([(ROOM,), (THREAD, ROOM)]),
        learning=st.sampled_from([{}, off(ANN, YUKI), off(BOB, SORA)]),
        window=st.sampled_from([(), ("cat",)]),
    )


KEYS = [GLOBAL, MINE, PLACE, global_list(BOB), character_list(BOB, YUKI), character_list(ANN, SORA), space_list(HALL, YUKI)]
ROWS = [
    row(number, key=key, private_origin=hidden, tags=tags, channel_ids=channels)
    for number, (key, hidden, tags, channels) in enumerate(
        (key, hidden, tags, channels) for key in KEYS for hidden in (False, True) for tags in ((), ("cat",)) for channels in ((), (OTHER_ROOM,))
    )
]


@pytest.mark.rule("SM-11", "SM-19")
@given(_places())
def test_every_row_is_seen_or_hidden_and_nothing_private_reaches_a_shared_place(where: Where) -> None:
    seen = look(ROWS, where)
    assert sorted(ids(seen.visible) + ids([memory for memory, _ in seen.hidden])) == ids(ROWS)
    assert {each.key for each in seen.visible} <= set(in_effect(where))
    sharing = {each.person for each in counted(where) if each.shares_private}
    if where.space is not None:
        assert not [each for each in seen.visible if each.private_origin and each.key.kind is not ListKind.SPACE and each.key.owner not in sharing]
    else:
        assert {each.key.owner for each in seen.visible} <= {where.author}


# -- what the AI may write ---------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-51")
@pytest.mark.parametrize(
    ("where", "kind", "expected"),
    [
        (private(), ListKind.CHARACTER, MINE),
        (private(), ListKind.GLOBAL, GLOBAL),
        (private(), ListKind.SPACE, Outcome.LIST_NOT_ALLOWED),
        (private(members=(YUKI, SORA), character=SORA), ListKind.CHARACTER, character_list(ANN, SORA)),
        (shared(author=BOB), ListKind.GLOBAL, global_list(BOB)),
        (shared(), ListKind.SPACE, PLACE),
        (shared(author="", participants=()), ListKind.CHARACTER, Outcome.LIST_NOT_ALLOWED),
        (private(policy=OFF), ListKind.CHARACTER, Outcome.MEMORY_OFF),
    ],
)
def test_a_save_goes_to_the_authors_lists_or_the_place(where: Where, kind: ListKind, expected: object) -> None:
    assert permits.target(where, kind) == expected


@pytest.mark.rule("SM-13", "SM-14", "SM-87")
@pytest.mark.parametrize(
    ("where", "personal", "space"),
    [
        (shared(*PARTIAL), Outcome.PRIVACY, PLACE),
        (shared(*FULL), Outcome.PRIVACY, Outcome.PRIVACY),
        (shared(*BLACKLISTED), Outcome.BLACKLISTED, Outcome.BLACKLISTED),
        (shared(learning=off(ANN, YUKI)), Outcome.LEARNING_OFF, Outcome.LEARNING_OFF),
        (shared(learning=off(ANN, YUKI, learn=True)), MINE, PLACE),
        (shared(space_learning=Learning(learn=False)), MINE, Outcome.LEARNING_OFF),
        (shared(learning=off(BOB, YUKI)), MINE, PLACE),
    ],
)
def test_who_may_not_be_written_about(where: Where, personal: object, space: object) -> None:
    assert permits.target(where, ListKind.CHARACTER) == personal
    assert permits.target(where, ListKind.SPACE) == space


@pytest.mark.rule("SM-13", "SM-87")
def test_privacy_ends_where_a_private_chat_begins() -> None:
    assert permits.target(private(participants=FULL), ListKind.CHARACTER) == MINE
    assert permits.target(private(learning=off(ANN, YUKI, use=True)), ListKind.CHARACTER) is Outcome.LEARNING_OFF


@pytest.mark.rule("SM-52", "T9")
def test_in_a_space_only_the_authors_rows_and_the_places_may_be_touched() -> None:
    assert permits.writable(shared()) == {PLACE, GLOBAL, MINE}
    assert permits.writable(private(members=(YUKI, SORA))) == {GLOBAL, MINE, character_list(ANN, SORA)}
    assert permits.writable(private(members=(YUKI, SORA), learning=off(ANN, SORA))) == {GLOBAL, MINE}
    assert permits.writable(shared(*BLACKLISTED)) == frozenset()
    assert permits.writable(private(policy=OFF)) == frozenset()


@pytest.mark.rule("SM-15", "SM-16")
@pytest.mark.parametrize(
    ("where", "personal", "space"),
    [
        (private(), Birth(private_origin=True), None),
        (shared(), Birth(private_origin=False), Birth(private_origin=False)),
        (
            shared(open_channel=False, channels=(THREAD, ROOM)),
            Birth(private_origin=True),
            Birth(private_origin=False, channel_ids=(THREAD,)),
        ),
    ],
)
def test_how_a_row_begins_depends_on_who_can_read_where_it_is_made(where: Where, personal: Birth, space: Birth | None) -> None:
    assert permits.birth(where, ListKind.GLOBAL) == permits.birth(where, ListKind.CHARACTER) == personal
    if space is not None:
        assert permits.birth(where, ListKind.SPACE) == space


@pytest.mark.rule("SM-89")
def test_signed_out_and_in_a_challenge_there_is_nothing() -> None:
    rows = [row(1), row(2, key=GLOBAL, pinned=True, protected=True)]
    assert in_effect(private(policy=OFF)) == () == visible(rows, private(policy=OFF)) == head((), OFF.head_rows, ageing_on=False).rows
