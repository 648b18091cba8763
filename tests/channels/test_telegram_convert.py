"""From raw updates to events, purely: what people send on Telegram, and what we make of it."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import Account, ChatType, EventKind, InboundEvent, from_json, to_json
from channels.telegram.convert import Setting, convert, update_id
from channels.telegram.updates import User

ACCOUNT = Account(channel="telegram")
ME = User(id="5550001", is_bot=True, first_name="Yume", username="yume_bot")
SETTING = Setting(account=ACCOUNT, me=ME)
NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
ADA = {"id": 700001, "is_bot": False, "first_name": "Ada", "language_code": "ja"}
PRIVATE = {"id": 700001, "type": "private", "first_name": "Ada"}
GROUP = {"id": -1001234500001, "type": "supergroup", "title": "Tea"}


def event(*, setting: Setting = SETTING, kind: str = "message", **message: Any) -> InboundEvent:
    """The event of one message; whatever it is, it survives a JSON round trip."""
    raw = {"update_id": 5, kind: {"message_id": 10, "from": ADA, "chat": PRIVATE, "date": 1700000000} | message}
    found = convert(json.loads(json.dumps(raw)), setting, NOW)
    assert found is not None
    assert from_json(InboundEvent, to_json(found)) == found
    return found


def units(text: str) -> int:
    return len(text.encode("utf-16-le")) // 2


def entity(text: str, part: str, kind: str, **more: Any) -> dict[str, Any]:
    return {"type": kind, "offset": units(text[: text.index(part)]), "length": units(part), **more}


@pytest.mark.rule("CH-1")
def test_a_private_message_has_every_field() -> None:
    found = event(text="hello")
    assert found == InboundEvent(
        account=ACCOUNT,
        kind=EventKind.MESSAGE,
        platform_event_id="5",
        platform_message_id="10",
        chat_id="700001",
        sender_id="700001",
        sender_name="Ada",
        mentioned=True,
        text="hello",
        platform_ts=datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC),
        received_at=NOW,
        hint="message",
        language="ja",
    )


@pytest.mark.rule("CH-4")
def test_what_a_compatible_server_calls_null_is_not_there() -> None:
    assert event(text="hello", caption=None, sticker=None, entities=None, message_thread_id=None, reply_to_message=None) == event(text="hello")


@pytest.mark.rule("CH-1")
def test_ids_beyond_53_bits_stay_exact() -> None:
    found = event(chat={"id": -(2**53 + 1), "type": "group"}, message_id=2**60 + 1, **{"from": ADA | {"id": 2**53 + 3}})
    assert (found.chat_id, found.platform_message_id, found.sender_id) == (str(-(2**53 + 1)), str(2**60 + 1), str(2**53 + 3))


# Who is spoken to


@pytest.mark.rule("CH-3", "CH-153")
@pytest.mark.parametrize("kind", ["group", "supergroup"])
@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("@yume_bot hi", "hi"),
        ("@YUME_bot hi", "hi"),
        ("😀😀 @yume_bot hi", "😀😀  hi"),
        ("你好 @yume_bot 在吗", "你好  在吗"),
    ],
    ids=["TG-23", "any case", "emoji before", "Chinese before"],
)
@pytest.mark.parametrize("marked", [True, False], ids=["marked", "plain"])
@pytest.mark.case("TG-23")
def test_a_mention_is_found_by_its_place_and_taken_out(kind: str, text: str, left: str, marked: bool) -> None:
    name = next(word for word in text.split() if word.startswith("@"))
    entities = [entity(text, name, "mention")] if marked else []
    found = event(chat=GROUP | {"type": kind}, text=text, entities=entities)
    assert found.mentioned
    assert found.text == left


@pytest.mark.rule("CH-3")
def test_every_marked_mention_is_taken_out_and_other_words_stay() -> None:
    text = "@yume_bot hello @yume_bot world"
    second = {"type": "mention", "offset": text.rindex("@"), "length": 9}
    assert event(chat=GROUP, text=text, entities=[entity(text, "@yume_bot", "mention"), second]).text == "hello  world"
    text = "Yume, what now?"
    by_name = event(chat=GROUP, text=text, entities=[entity(text, "Yume", "text_mention", user=ME.model_dump())])
    assert (by_name.mentioned, by_name.text) == (True, ", what now?")


@pytest.mark.rule("CH-3")
@pytest.mark.parametrize("text", ["hello", "@yume_bot2 hi", "mail a@yume_bot", "@ada hi"])
def test_others_are_not_us(text: str) -> None:
    assert not event(chat=GROUP, text=text).mentioned
    inside = event(chat=GROUP, text="`@yume_bot` is its name", entities=[{"type": "code", "offset": 0, "length": 11}])
    assert not inside.mentioned, "in code nobody is called"


@pytest.mark.rule("CH-158", "CH-3")
@pytest.mark.case("TG-24")
@pytest.mark.parametrize(
    ("text", "mentioned", "left"),
    [
        ("/start@other_bot", False, "/start@other_bot"),
        ("/start@yume_bot", True, "/start"),
        ("/start@YUME_BOT now", True, "/start now"),
        ("/start@yume_bot2", False, "/start@yume_bot2"),
        ("/start", False, "/start"),
    ],
)
@pytest.mark.parametrize("marked", [True, False], ids=["marked", "plain"])
def test_a_command_for_us_is_ours_in_any_case_and_one_for_another_keeps_its_name(text: str, mentioned: bool, left: str, marked: bool) -> None:
    entities = [entity(text, text.split()[0], "bot_command")] if marked else []
    found = event(chat=GROUP, text=text, entities=entities)
    assert (found.mentioned, found.text) == (mentioned, left)


# Who speaks


@pytest.mark.rule("CH-153")
@pytest.mark.case("TG-21")
def test_an_anonymous_admin_is_the_group_and_no_bot() -> None:
    anonymous = {"id": 1087968824, "is_bot": True, "first_name": "Group", "username": "GroupAnonymousBot"}
    text = "@yume_bot status?"
    ours, theirs = (
        event(chat=chat, sender_chat=chat, text=text, entities=[entity(text, "@yume_bot", "mention")], **{"from": anonymous})
        for chat in (GROUP, GROUP | {"id": -1001234500009})
    )
    assert (ours.sender_id, ours.is_bot, ours.mentioned, ours.text) == ("-1001234500001", False, True, "status?")
    assert theirs.sender_id != ours.sender_id, "admins of different groups are different people"


@pytest.mark.rule("CH-153")
def test_what_a_linked_channel_posts_is_nobody_to_answer() -> None:
    telegram = {"id": 777000, "is_bot": False, "first_name": "Telegram"}
    channel = {"id": -1009, "type": "channel", "title": "News"}
    posted = event(chat=GROUP, sender_chat=channel, is_automatic_forward=True, text="news", forward_origin={"type": "channel"}, **{"from": telegram})
    assert (posted.is_bot, posted.forwarded) == (True, True)


@pytest.mark.rule("CH-153", "CH-151")
def test_posts_of_channels_count_only_when_that_is_set() -> None:
    channel = {"id": -1009, "type": "channel", "title": "News"}
    raw = {"update_id": 5, "channel_post": {"message_id": 1, "chat": channel, "sender_chat": channel, "date": 1, "text": "@yume_bot hi"}}
    assert convert(raw, SETTING, NOW) is None
    found = convert(raw, Setting(account=ACCOUNT, me=ME, channel_posts=True), NOW)
    assert found is not None
    assert (found.kind, found.sender_id, found.chat_type, found.mentioned) == (EventKind.MESSAGE, "-1009", ChatType.GROUP, True)


@pytest.mark.rule("CH-13", "CH-153")
@pytest.mark.case("TG-22")
def test_in_a_group_everybody_is_themselves() -> None:
    said = [event(chat=GROUP, text="my name is", **{"from": ADA | {"id": number}}) for number in (700001, 700002)]
    assert [each.sender_id for each in said] == ["700001", "700002"]
    assert {str(each.address) for each in said} == {"telegram:main:-1001234500001"}


# Where


@pytest.mark.rule("CH-155")
@pytest.mark.case("TG-14", "TG-15")
@pytest.mark.parametrize(
    ("chat", "more", "kind", "thread"),
    [
        (GROUP | {"is_forum": True}, {"message_thread_id": 42, "is_topic_message": True}, ChatType.THREAD, "42"),
        (GROUP | {"is_forum": True}, {"message_thread_id": 1, "is_topic_message": True}, ChatType.GROUP, ""),
        (GROUP | {"is_forum": True}, {"message_thread_id": 1}, ChatType.GROUP, ""),
        (GROUP | {"is_forum": True}, {}, ChatType.GROUP, ""),
        (GROUP, {"message_thread_id": 77}, ChatType.GROUP, ""),
        (PRIVATE, {"message_thread_id": 42, "is_topic_message": True}, ChatType.DM, "42"),
        (PRIVATE, {"message_thread_id": 42}, ChatType.DM, ""),
    ],
    ids=["a topic", "General by number", "General unmarked", "General without", "a reply in a group", "a private topic", "a private reply"],
)
def test_a_thread_is_one_only_when_the_platform_says_so(chat: dict[str, Any], more: dict[str, Any], kind: ChatType, thread: str) -> None:
    found = event(chat=chat, text="hi", **more)
    assert (found.chat_type, found.thread_id) == (kind, thread)
    assert found.parent_chat_id == (str(chat["id"]) if kind is ChatType.THREAD else "")


# What


CONTENT = [
    ({"animation": {"file_id": "A1", "mime_type": "video/mp4", "duration": 2}, "document": {"file_id": "A1", "mime_type": "video/mp4"}},
     "[animation, 2 s]"),
    ({"sticker": {"emoji": "👍", "is_animated": True, "is_video": False}}, "[sticker 👍]"),
    ({"sticker": {"file_id": "S"}}, "[sticker]"),
    ({"video_note": {"duration": 4, "length": 240}}, "[video note, 4 s]"),
    ({"audio": {"title": "Song", "duration": 30}}, "[audio Song, 30 s]"),
    ({"voice": {"duration": 3}}, "[voice message, 3 s]"),
    ({"dice": {"emoji": "🎲", "value": 3}}, "[dice 🎲, 3]"),
    ({"location": {"latitude": 46.9, "longitude": 7.4}}, "[location 46.9, 7.4]"),
    ({"venue": {"title": "Bar", "address": "Kyoto", "location": {"latitude": 1, "longitude": 2}}, "location": {"latitude": 1, "longitude": 2}},
     "[place Bar, Kyoto, 1.0, 2.0]"),
    ({"poll": {"question": "Tea?", "options": [{"text": "yes"}, {"text": "no"}]}}, "[poll Tea?, yes / no]"),
    ({"contact": {"phone_number": "+81", "first_name": "Ben"}}, "[contact Ben, +81]"),
    ({"game": {"title": "Chess"}}, "[game Chess]"),
    ({"story": {"id": 1, "chat": PRIVATE}}, "[story]"),
    ({"hologram": {"light": "blue"}}, "[hologram]"),
]  # fmt: skip


@pytest.mark.rule("CH-5", "CH-30")
@pytest.mark.case("TG-17")
@pytest.mark.parametrize(("content", "line"), CONTENT, ids=[line for _, line in CONTENT])
def test_what_is_no_text_arrives_as_one_line_about_it(content: dict[str, Any], line: str) -> None:
    found = event(**content)
    assert (found.kind, found.text, found.attachments) == (EventKind.MESSAGE, line, ())
    assert event(**content, caption="look").text == f"{line}\nlook"


@pytest.mark.rule("CH-5")
def test_a_forwarded_message_keeps_its_words_and_says_that_they_are_not_the_senders() -> None:
    found = event(text="buy now", forward_origin={"type": "user", "date": 1, "sender_user": ADA})
    assert (found.text, found.forwarded) == ("buy now", True)
    assert not event(text="my own").forwarded


@pytest.mark.rule("CH-7", "CH-30", "CH-153")
def test_files_are_kept_to_be_fetched_and_the_caption_is_the_text() -> None:
    sizes = [{"file_id": f"P{n}", "width": n, "height": n, "file_size": n} for n in (90, 800, 320)]
    sizes.append({"file_id": "huge", "width": 9000, "height": 9000, "file_size": 20_000_001})
    photo = event(photo=sizes, caption="@yume_bot look", caption_entities=[{"type": "mention", "offset": 0, "length": 9}], chat=GROUP)
    assert (photo.text, photo.mentioned) == ("look", True)
    (file,) = photo.attachments
    assert (file.kind, file.mime, file.fetch_ref, file.size, file.stored_path) == ("image", "image/jpeg", "P800", 800, "")
    for content, expected in (
        ({"voice": {"file_id": "V", "duration": 3, "mime_type": "audio/ogg"}}, ("audio", "voice.ogg", "V")),
        ({"audio": {"file_id": "A", "file_name": "song.mp3", "mime_type": "audio/mpeg"}}, ("audio", "song.mp3", "A")),
        ({"document": {"file_id": "D", "file_name": "notes.txt", "mime_type": "text/plain"}}, ("text", "notes.txt", "D")),
        ({"document": {"file_id": "Z"}}, ("file", "file", "Z")),
        ({"video": {"file_id": "M", "mime_type": "video/mp4", "duration": 9}}, ("video", "video.mp4", "M")),
    ):
        (file,) = event(**content).attachments
        assert (file.kind, file.name, file.fetch_ref) == expected
        assert event(**content).text == ""


# What is answered


@pytest.mark.rule("CH-156")
@pytest.mark.case("TG-18")
def test_a_chosen_fragment_comes_along_with_who_wrote_it() -> None:
    answered = {"message_id": 7, "chat": PRIVATE, "from": ADA, "date": 1, "text": "first part, only this bit, last part"}
    found = event(text="why?", reply_to_message=answered, quote={"text": "only this bit", "position": 12, "is_manual": True})
    assert found.reply_to is not None
    assert (found.reply_to.quote, found.reply_to.excerpt) == ("only this bit", answered["text"])
    assert (found.reply_to.author_is_us, found.reply_to.author_name, found.reply_to.message_id) == (False, "Ada", "7")


@pytest.mark.rule("CH-156", "CH-1")
def test_what_is_answered_is_told_also_when_it_has_no_words_or_stands_elsewhere() -> None:
    ours = {"message_id": 7, "chat": GROUP, "from": {"id": 5550001, "is_bot": True, "first_name": "Yume"}, "date": 1, "text": "x" * 900}
    found = event(chat=GROUP, text="go on", reply_to_message=ours)
    assert found.reply_to is not None
    assert (found.mentioned, found.reply_to.author_is_us, len(found.reply_to.excerpt)) == (True, True, 500)
    sticker = event(text="what is it?", reply_to_message=ours | {"text": "", "sticker": {"emoji": "🐱"}})
    assert sticker.reply_to is not None
    assert sticker.reply_to.excerpt == "[sticker 🐱]"
    outside = event(text="true?", external_reply={"origin": {}, "message_id": 3}, quote={"text": "the sky is green"})
    assert outside.reply_to is not None
    assert (outside.reply_to.message_id, outside.reply_to.quote) == ("3", "the sky is green")


@pytest.mark.rule("CH-156")
def test_who_only_names_us_and_points_at_something_means_that() -> None:
    pointed = {"message_id": 7, "chat": GROUP, "from": ADA, "date": 1, "photo": [{"file_id": "P"}], "caption": "my cat"}
    mention = [{"type": "mention", "offset": 0, "length": 9}]
    found = event(chat=GROUP, text="@yume_bot", entities=mention, reply_to_message=pointed)
    assert found.reply_to is not None
    assert (found.text, found.reply_to.excerpt, [file.fetch_ref for file in found.attachments]) == ("", "my cat", ["P"])
    asks = event(chat=GROUP, text="@yume_bot how old?", entities=mention, reply_to_message=pointed)
    assert asks.attachments == ()


# What is no message


@pytest.mark.rule("CH-2", "CH-26")
@pytest.mark.case("TG-20")
def test_an_edit_is_an_edit_though_no_message_field_is_there() -> None:
    raw = {
        "update_id": 1,
        "edited_message": {
            "message_id": 10,
            "edit_date": 1700000100,
            "text": "hi, corrected",
            "from": {"id": 700001},
            "chat": {"id": 700001, "type": "private"},
        },
    }
    found = convert(raw, SETTING, NOW)
    assert found is not None
    assert (found.kind, found.platform_message_id, found.text) == (EventKind.EDITED, "10", "hi, corrected")
    assert found.platform_ts == datetime.fromtimestamp(1700000100, UTC)


@pytest.mark.rule("CH-166", "CH-2")
@pytest.mark.case("TG-19")
def test_a_group_that_moved_says_so_from_both_ends_with_the_same_words() -> None:
    old, new = {"id": -4518810793, "type": "group"}, {"id": -1002471352452, "type": "supergroup"}
    for chat, more in ((old, {"migrate_to_chat_id": new["id"]}), (new, {"migrate_from_chat_id": old["id"]})):
        found = event(chat=chat, **more)
        assert (found.kind, found.chat_id, found.target) == (EventKind.MIGRATED, "-4518810793", "-1002471352452")


@pytest.mark.rule("CH-2")
def test_being_added_is_membership_and_a_pressed_button_an_action() -> None:
    member = {"chat": GROUP, "from": ADA, "date": 1, "old_chat_member": {}, "new_chat_member": {"status": "member", "user": {}}}
    added = convert({"update_id": 1, "my_chat_member": member}, SETTING, NOW)
    assert added is not None
    assert (added.kind, added.hint, added.chat_type, added.chat_id) == (EventKind.MEMBERSHIP, "member", ChatType.GROUP, "-1001234500001")
    message = {"message_id": 7, "chat": GROUP, "date": 0}
    pressed = convert({"update_id": 2, "callback_query": {"id": "9", "from": ADA, "message": message, "data": "k1"}}, SETTING, NOW)
    assert pressed is not None
    assert (pressed.kind, pressed.hint, pressed.target) == (EventKind.ACTION, "button", "k1")
    assert (pressed.sender_id, pressed.platform_message_id, pressed.chat_id) == ("700001", "7", "-1001234500001")


@pytest.mark.rule("CH-4", "CH-27", "CH-150")
@pytest.mark.parametrize(
    ("raw", "hint"),
    [
        ({"update_id": 1, "hologram": {"light": "blue"}}, "hologram"),
        ({"update_id": 1, "message": {"message_id": 1, "text": "nowhere"}}, "message"),
        ({"update_id": 1, "message": {"message_id": 1, "chat": GROUP, "text": "of nobody"}}, "message"),
        ({"update_id": 1, "message": {"message_id": True, "chat": GROUP, "from": ADA}}, "message"),
        ({"update_id": 1, "message": {"message_id": 1.5, "chat": GROUP, "from": ADA}}, "message"),
        ({"update_id": 1, "message": {"message_id": 1, "chat": {"id": 1, "type": "planet"}, "from": ADA}}, "message"),
        ({"update_id": 1, "callback_query": {"id": "1", "from": ADA}}, "callback_query"),
        ({"update_id": 1, "message": []}, "message"),
        ({"update_id": 1, "message": {"message_id": 1, "chat": GROUP, "from": ADA, "date": 10**30}}, "message"),
        ({"update_id": 1}, "?"),
        ({}, "?"),
        ("gibberish", "?"),
        (None, "?"),
    ],
)
def test_what_cannot_be_read_is_kept_as_it_came(raw: object, hint: str) -> None:
    found = convert(raw, SETTING, NOW)
    assert found is not None
    assert (found.kind, found.hint) == (EventKind.UNKNOWN, hint)
    assert json.loads(found.text) == raw
    assert found.platform_event_id


KEYS = ["message_id", "chat", "from", "id", "type", "text", "date", "photo", "document", "entities", "reply_to_message", "sticker"]
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=12,
)


@pytest.mark.rule("CH-4", "CH-150")
@given(raw=st.fixed_dictionaries({"update_id": st.integers()}, optional={"message": JSON, "edited_message": JSON, "callback_query": JSON}))
def test_no_update_whatsoever_raises(raw: dict[str, Any]) -> None:
    found = convert(raw, SETTING, NOW)
    assert found is None or found.platform_event_id == str(raw["update_id"])
    assert update_id(raw) == raw["update_id"]


# -- what places are called ---------------------------------------------------------------------------------------------


@pytest.mark.rule("CH-1", "CH-155")
def test_a_group_tells_its_title_and_a_topic_its_first_name_and_its_new_one() -> None:
    opened = {"message_id": 42, "chat": GROUP, "date": 1, "from": ADA, "forum_topic_created": {"name": "Tulips", "icon_color": 7}}
    there: dict[str, Any] = {"chat": GROUP, "is_topic_message": True, "message_thread_id": 42}
    named = [
        (event(text="hi", chat=GROUP), "", ""),
        (event(**there, forum_topic_created={"name": "Tulips"}), "", "Tulips"),
        (event(text="hi", **there, reply_to_message=opened), "", "Tulips"),
        (event(**there, reply_to_message=opened, forum_topic_edited={"name": "Roses"}), "Roses", "Tulips"),
        (event(**there, forum_topic_edited={"icon_custom_emoji_id": "5"}), "", ""),
    ]
    for found, renamed, made_as in named:
        assert (found.chat_title, found.thread_title, found.thread_made_as) == ("Tea", renamed, made_as)
        assert found.kind is EventKind.MESSAGE
    assert event(text="hi").chat_title == ""
