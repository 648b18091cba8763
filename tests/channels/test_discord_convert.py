"""From raw events to ours, purely: what people send on Discord, and what we make of it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.discord.content import Names
from channels.discord.convert import Setting, convert
from channels.discord.payloads import Message
from channels.discord.position import Place
from channels.message import Account, ChatType, EventKind, InboundEvent, from_json, to_json

ACCOUNT = Account(channel="discord")
ME, OUR_ROLE = "1100000000000000002", "1100000000000000302"
NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
DM = Place(channel_id="1100000000000000130")
GROUP = Place(channel_id="1100000000000000110", guild_id="1100000000000000100")
THREAD = Place(channel_id="1100000000000000120", guild_id="1100000000000000100", parent_id="1100000000000000111")
ANN = {"id": "1100000000000000201", "username": "ann", "global_name": "Ann"}
BOB = {"id": "1100000000000000203", "username": "bob", "global_name": None}
SETTING = Setting(
    account=ACCOUNT,
    me=ME,
    application_id="1100000000000000009",
    names=Names(channel=lambda number: {"5": "tea"}.get(number, ""), role=lambda _guild, number: {"6": "staff"}.get(number, "")),
    role_of=lambda guild_id: OUR_ROLE if guild_id else "",
)


def events(name: str, place: Place | None = DM, *, setting: Setting = SETTING, starter: Message | None = None, **fields: Any) -> list[InboundEvent]:
    """Whatever they are, they survive a JSON round trip."""
    found = convert(name, json.loads(json.dumps(fields)), place, setting, NOW, starter=starter)
    for event in found:
        assert from_json(InboundEvent, to_json(event)) == event
    return found


def raw(place: Place = DM, **fields: Any) -> dict[str, Any]:
    return {"id": "1100000000000000401", "channel_id": place.channel_id, "author": ANN, "timestamp": "2026-03-14T09:26:50+00:00"} | fields


def said(content: str = "", place: Place = DM, *, setting: Setting = SETTING, starter: Message | None = None, **fields: Any) -> InboundEvent:
    (event,) = events("MESSAGE_CREATE", place, setting=setting, starter=starter, **raw(place, content=content, **fields))
    return event


@pytest.mark.rule("CH-1", "CH-51")
def test_a_direct_message_has_every_field() -> None:
    assert said("hello") == InboundEvent(
        account=ACCOUNT,
        kind=EventKind.MESSAGE,
        platform_event_id="1100000000000000401",
        platform_message_id="1100000000000000401",
        chat_id=DM.channel_id,
        sender_id="1100000000000000201",
        sender_name="Ann",
        mentioned=True,
        text="hello",
        platform_ts=datetime(2026, 3, 14, 9, 26, 50, tzinfo=UTC),
        received_at=NOW,
        hint="message",
    )


@pytest.mark.rule("CH-183", "CH-13", "CH-28")
def test_a_channel_names_its_server_and_a_thread_its_parent() -> None:
    in_group, in_thread = said("hi", GROUP), said("hi", THREAD)
    assert (in_group.chat_type, in_group.chat_id, in_group.thread_id, in_group.parent_chat_id) == (ChatType.GROUP, GROUP.channel_id, "", "")
    assert (in_thread.chat_type, in_thread.chat_id) == (ChatType.THREAD, THREAD.parent_id)
    assert (in_thread.thread_id, in_thread.parent_chat_id) == (THREAD.channel_id, THREAD.parent_id)
    assert {in_group.space_id, in_thread.space_id} == {GROUP.guild_id}
    assert said("hi").space_id == ""


@pytest.mark.case("DC-11")
@pytest.mark.rule("CH-3", "CH-182")
def test_both_words_around_two_mentions_stay() -> None:
    event = said(f"<@{ME}> hello <@{ME}> world", GROUP)
    assert event.mentioned
    assert event.text.split() == ["hello", "world"]


@pytest.mark.rule("CH-182", "CH-3")
@pytest.mark.parametrize(
    ("content", "text", "mentioned"),
    [
        (f"tea, <@!{ME}>?", "tea, ?", True),
        (f"<@&{OUR_ROLE}> tea?", "tea?", True),
        ("ask <@1100000000000000203>", "ask @bob", False),
        ("ask <@1100000000000000299>", "ask @1100000000000000299", False),
        ("<@&6> in <#5> or <#7>", "@staff in #tea or #7", False),
        ("<:kettle:123> <a:steam:124> 😀", ":kettle: :steam: 😀", False),
        ("@everyone tea", "@everyone tea", False),
        ("  two blanks stay", "  two blanks stay", False),
    ],
)
def test_who_is_mentioned_gets_a_readable_name_and_we_are_taken_out(content: str, text: str, mentioned: bool) -> None:
    event = said(content, GROUP, mentions=[BOB])
    assert (event.text, event.mentioned) == (text, mentioned)


@pytest.mark.case("DC-03")
@pytest.mark.rule("CH-182", "CH-5")
def test_a_forwarded_message_is_read_from_its_snapshot_and_marked() -> None:
    reference = {"type": 1, "channel_id": "1100000000000000010", "message_id": "1100000000000000011"}
    event = said("", message_reference=reference, message_snapshots=[{"message": {"content": "hello", "attachments": []}}])
    assert (event.text, event.forwarded, event.reply_to) == ("hello", True, None)
    held = {"content": "", "attachments": [{"id": "9", "filename": "a.png", "content_type": "image/png", "size": 4, "url": "https://x"}]}
    assert [file.fetch_ref for file in said("", message_snapshots=[{"message": held}]).attachments] == [f"{DM.channel_id}/1100000000000000401/9"]


@pytest.mark.case("DC-05")
@pytest.mark.rule("CH-182", "CH-7", "CH-1")
def test_all_attachments_are_taken_in_order_and_no_signed_address_is_kept() -> None:
    sent = [
        {"id": "1", "filename": "a.png", "content_type": "image/png", "size": 10, "url": "https://cdn/1?hm=signed"},
        {"id": "2", "filename": "b.png", "content_type": "image/png", "size": 11, "url": "https://cdn/2?hm=signed"},
        {"id": "3", "filename": "notes.txt", "content_type": "text/plain; charset=utf-8", "size": 12, "url": "https://cdn/3?hm=signed"},
    ]
    event = said("check", attachments=sent)
    assert [(file.name, file.kind, file.mime, file.size) for file in event.attachments] == [
        ("a.png", "image", "image/png", 10), ("b.png", "image", "image/png", 11), ("notes.txt", "text", "text/plain", 12),
    ]  # fmt: skip
    assert "signed" not in str(to_json(event))


@pytest.mark.rule("CH-5")
def test_what_is_neither_words_nor_a_file_gets_a_line() -> None:
    assert said("", sticker_items=[{"id": "1", "name": "wave"}]).text == "[sticker wave]"
    poll = {"question": {"text": "Tea?"}, "answers": [{"poll_media": {"text": "yes"}}, {"poll_media": {"text": "no"}}]}
    assert said("", poll=poll).text == "[poll Tea?: yes / no]"
    assert said("", embeds=[{"title": "News", "description": "Rain"}]).text == "[embed News: Rain]"
    assert said("https://a.b", embeds=[{"title": "News"}]).text == "https://a.b", "a preview of a link that is there is not told again"


@pytest.mark.rule("CH-28", "CH-1")
def test_an_answer_says_what_it_answers() -> None:
    where = {"type": 0, "message_id": "7", "channel_id": GROUP.channel_id}
    ours = said("why?", GROUP, type=19, message_reference=where, referenced_message=raw(GROUP, id="7", content="tea is up", author={"id": ME}))
    assert ours.mentioned
    assert ours.reply_to is not None
    assert (ours.reply_to.message_id, ours.reply_to.author_is_us, ours.reply_to.excerpt) == ("7", True, "tea is up")
    told = raw(GROUP, id="7", content="x" * 900, author=BOB)
    theirs = said("why?", GROUP, type=19, message_reference=where, referenced_message=told)
    assert not theirs.mentioned
    assert theirs.reply_to is not None
    assert (theirs.reply_to.author_name, len(theirs.reply_to.excerpt)) == ("bob", 500)
    gone = said("why?", GROUP, type=19, message_reference=where, referenced_message=None)
    assert gone.reply_to is not None
    assert (gone.reply_to.message_id, gone.reply_to.excerpt) == ("7", "")


@pytest.mark.case("DC-06")
@pytest.mark.rule("CH-182")
def test_the_starter_of_a_thread_is_what_its_first_message_is_about() -> None:
    starter = Message.model_validate(raw(GROUP, id=THREAD.channel_id, content="Who brings tea?", author=BOB))
    event = said(f"<@{ME}> you?", THREAD, starter=starter)
    assert event.reply_to is not None
    assert (event.reply_to.message_id, event.reply_to.excerpt, event.text) == (THREAD.channel_id, "Who brings tea?", "you?")
    assert said(f"<@{ME}> you?", THREAD).reply_to is None, "without a starter it works all the same"


@pytest.mark.case("DC-13")
@pytest.mark.rule("CH-120", "CH-29")
def test_our_own_words_are_known_also_through_a_webhook() -> None:
    us = Setting(account=ACCOUNT, me="1100000000000000001", application_id="1100000000000000009", echoed=lambda _channel, text: text == "hi")
    own = said("hi", GROUP, setting=us, id="1100000000000000031", author={"id": "1100000000000000001", "bot": True})
    assert (own.is_us, own.is_bot) == (True, True)
    hook: dict[str, Any] = {
        "id": "1100000000000000032", "webhook_id": "1100000000000000040", "author": {"id": "1100000000000000040", "bot": True},
    }  # fmt: skip
    assert said("hi", GROUP, setting=us, **hook).is_us
    other = said("other words", GROUP, setting=us, **hook)
    assert (other.is_us, other.is_bot, other.sender_id) == (False, True, "1100000000000000040")
    assert said("other words", GROUP, setting=us, application_id="1100000000000000009", **hook).is_us, "a webhook of our own application"


@pytest.mark.rule("CH-181", "CH-26", "CH-51")
def test_only_a_changed_edit_time_makes_an_edit() -> None:
    unfurled = raw(content="https://a.b", edited_timestamp=None, embeds=[{"title": "A"}])
    assert events("MESSAGE_UPDATE", **unfurled) == []
    edited = raw(content="tea at 5", edited_timestamp="2026-03-14T09:27:00+00:00")
    (first,), (again,) = events("MESSAGE_UPDATE", **edited), events("MESSAGE_UPDATE", **edited, embeds=[{"title": "A"}])
    (later,) = events("MESSAGE_UPDATE", **edited | {"edited_timestamp": "2026-03-14T09:28:00+00:00"})
    assert (first.kind, first.platform_message_id, first.text) == (EventKind.EDITED, "1100000000000000401", "tea at 5")
    assert first.platform_event_id == again.platform_event_id, "a preview that comes after an edit is the same edit"
    assert first.platform_event_id != later.platform_event_id
    assert events("MESSAGE_UPDATE", **edited | {"author": {"id": ME, "bot": True}}) == [], "our previews grow by edits"


@pytest.mark.rule("CH-181", "CH-26")
def test_deletions_of_one_and_of_many_are_told_one_by_one() -> None:
    (one,) = events("MESSAGE_DELETE", GROUP, id="7", channel_id=GROUP.channel_id)
    assert (one.kind, one.platform_message_id, one.chat_id) == (EventKind.DELETED, "7", GROUP.channel_id)
    many = events("MESSAGE_DELETE_BULK", THREAD, ids=["7", "8"], channel_id=THREAD.channel_id)
    assert [(event.platform_message_id, event.thread_id) for event in many] == [("7", THREAD.channel_id), ("8", THREAD.channel_id)]
    assert len({event.platform_event_id for event in (one, *many)}) == 2, "told twice it is the same deletion"


@pytest.mark.rule("CH-188", "CH-189")
def test_a_slash_command_is_the_message_that_it_stands_for() -> None:
    called = {"id": "55", "type": 2, "token": "secret", "channel_id": GROUP.channel_id, "locale": "ja", "member": {"nick": "Annie", "user": ANN}}
    (event,) = events("INTERACTION_CREATE", GROUP, **called, data={"name": "memory", "options": [{"name": "text", "type": 3, "value": "status"}]})
    assert (event.kind, event.text, event.mentioned, event.language) == (EventKind.MESSAGE, "/memory status", True, "ja")
    assert (event.platform_event_id, event.platform_message_id, event.sender_id, event.sender_name) == ("55", "", ANN["id"], "Annie")
    nested = [{"name": "days", "type": 1, "options": [{"name": "count", "type": 4, "value": 3}]}]
    (event,) = events("INTERACTION_CREATE", DM, id="56", type=2, channel_id=DM.channel_id, user=ANN, data={"name": "总结", "options": nested})
    assert (event.text, event.chat_type) == ("/总结 days 3", ChatType.DM)
    (pressed,) = events("INTERACTION_CREATE", DM, id="57", type=3, channel_id=DM.channel_id, user=ANN, data={"custom_id": "key-1"})
    assert (pressed.kind, pressed.target, pressed.hint) == (EventKind.ACTION, "key-1", "button")


@pytest.mark.rule("CH-2")
def test_notices_of_the_server_are_no_messages() -> None:
    for kind in (6, 7, 18, 21, 46):
        assert events("MESSAGE_CREATE", GROUP, **raw(GROUP, content="", type=kind)) == []
    (event,) = events("GUILD_CREATE", None, id="1100000000000000100")
    assert (event.kind, event.hint, event.chat_id) == (EventKind.MEMBERSHIP, "added", "1100000000000000100")


@pytest.mark.rule("CH-4", "CH-27", "CH-43")
def test_what_cannot_be_read_is_kept_whole_but_for_its_token() -> None:
    (event,) = events("INTERACTION_CREATE", DM, id="58", type=99, token="interaction-secret", channel_id=DM.channel_id)
    assert (event.kind, event.hint, event.platform_event_id) == (EventKind.UNKNOWN, "INTERACTION_CREATE", "INTERACTION_CREATE:58")
    assert "interaction-secret" not in event.text
    assert '"type": 99' in event.text
    first, second = (events("HOLOGRAM", None, light=light)[0] for light in ("blue", "red"))
    assert first.platform_event_id != second.platform_event_id
    (strange,) = events("MESSAGE_CREATE", DM, **raw(type=200, content="?"))
    assert strange.kind is EventKind.UNKNOWN


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(), lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
)
FIELDS = st.sampled_from(["id", "channel_id", "author", "content", "type", "edited_timestamp", "mentions", "attachments", "data", "ids", "member"])


@pytest.mark.rule("CH-4")
@given(
    st.sampled_from(["MESSAGE_CREATE", "MESSAGE_UPDATE", "MESSAGE_DELETE", "INTERACTION_CREATE", "GUILD_CREATE", "HOLOGRAM"]),
    st.dictionaries(FIELDS, JSON, max_size=6) | JSON,
)
def test_no_event_whatever_it_holds_raises(name: str, data: Any) -> None:
    for place in (None, DM, THREAD):
        convert(name, data, place, SETTING, NOW)
        if isinstance(data, dict):
            convert(name, raw() | data, place, SETTING, NOW)


@pytest.mark.rule("CH-1", "CH-183")
def test_a_place_is_told_with_what_it_is_called() -> None:
    names: dict[str, Any] = {"guild_name": "The Tea House", "name": "cake", "parent_name": "general"}
    in_thread, in_channel = said("hi", replace(THREAD, **names)), said("hi", replace(GROUP, **names | {"parent_name": ""}))
    assert (in_thread.space_title, in_thread.chat_title, in_thread.thread_title) == ("The Tea House", "general", "cake")
    assert (in_channel.space_title, in_channel.chat_title, in_channel.thread_title) == ("The Tea House", "cake", "")
    plain = said("hi")
    assert (plain.space_title, plain.chat_title, plain.thread_title) == ("", "", "")
