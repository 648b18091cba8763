"""iLink's messages as events, its files and their keys, its headers: all of it pure."""

from __future__ import annotations

import base64
import json
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.errors import AttachmentRefused
from channels.message import Account, Attachment, ChatType, EventKind, InboundEvent, from_json, to_json
from channels.port import Markup
from channels.render import render
from channels.wechat.ilink import media
from channels.wechat.ilink.api import encoded, get_headers, post_headers, shape, spelled_uin
from channels.wechat.ilink.convert import convert, events_of, tokens_of
from channels.wechat.ilink.media import MediaType, Reference, Upload, key_of, open_sealed, seal, sealed_size, spelled
from channels.wechat.ilink.outgoing import client_id, steps
from channels.wechat.ilink.settings import CAPABILITIES, IlinkSettings, at
from tests.peers.wechat.ilink_desk import ACCOUNT, ANN, part
from tests.peers.wechat.ilink_world import BOT_ID, World, padded, unseal

NOW = datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC)
KEY = bytes.fromhex("000102030405060708090a0b0c0d0e0f")


def event_of(raw: dict[str, Any]) -> InboundEvent:
    event = convert(raw, ACCOUNT, BOT_ID, NOW)
    assert from_json(InboundEvent, to_json(event)) == event
    return event


def said(*items: dict[str, Any], **more: Any) -> dict[str, Any]:
    return World().says(ANN, items=list(items), **more)


def text(words: str, **more: Any) -> dict[str, Any]:
    return {"type": 1, "text_item": {"text": words}} | more


# Messages


@pytest.mark.rule("WX-32", "CH-51")
@pytest.mark.parametrize(
    ("fields", "event_id"),
    [
        ({"message_id": 18446744073709551615}, "18446744073709551615"),
        ({"message_id": "18446744073709551615"}, "18446744073709551615"),
        ({"message_id": None, "seq": 12}, "seq:12"),
        ({"message_id": None, "seq": None, "create_time_ms": 1700000000000}, f"{ANN}@1700000000000"),
    ],
)
def test_a_message_is_known_by_its_id_else_its_seq_else_who_and_when(fields: dict[str, Any], event_id: str) -> None:
    assert event_of(said(text("hi"), **fields)).platform_event_id == event_id


@pytest.mark.rule("WX-32")
def test_a_message_says_who_where_and_when() -> None:
    event = event_of(said(text("hi"), text("there"), create_time_ms=1700000000123))
    assert (event.kind, event.chat_type, event.chat_id, event.sender_id, event.sender_name) == (EventKind.MESSAGE, ChatType.DM, ANN, ANN, "ann")
    assert (event.text, event.mentioned, event.is_bot) == ("hi\nthere", True, False)
    assert event.platform_ts == datetime(2023, 11, 14, 22, 13, 20, 123000, tzinfo=UTC)


@pytest.mark.rule("WX-32", "CH-29")
def test_messages_of_the_bots_type_are_ours_and_other_bots_are_bots() -> None:
    ours = event_of(said(text("mine"), from_user_id=BOT_ID, to_user_id=ANN, message_type=2))
    assert (ours.is_us, ours.is_bot, ours.chat_id) == (True, True, ANN)
    other = event_of(said(text("beep"), from_user_id="other@im.bot"))
    assert (other.is_us, other.is_bot) == (False, True)


@pytest.mark.rule("WX-32", "CH-26")
def test_a_message_with_a_time_of_deletion_is_a_deletion_of_its_own() -> None:
    raw = said(text("oh"), message_id=77)
    event = event_of(raw | {"delete_time_ms": 1700000000000})
    assert (event.kind, event.platform_message_id, event.text) == (EventKind.DELETED, "77", "")
    assert event.platform_event_id != event_of(raw).platform_event_id


@pytest.mark.rule("WX-32")
def test_a_batch_is_taken_in_the_order_of_seq() -> None:
    raws = [said(text(words), **more) for words, more in [("c", {"seq": 9}), ("d", {"seq": None}), ("a", {"seq": 7}), ("b", {"seq": 8})]]
    assert [event.text for event in events_of(raws, ACCOUNT, BOT_ID, NOW)] == ["a", "b", "c", "d"]


@pytest.mark.rule("WX-31")
def test_the_newest_context_token_of_each_person_is_taken_and_none_of_groups_or_of_ourselves() -> None:
    raws = [
        {"from_user_id": ANN, "seq": 2, "context_token": "new"}, {"from_user_id": ANN, "seq": 1, "context_token": "old"},
        {"from_user_id": "bob@im.wechat", "seq": 3, "context_token": "b"}, {"from_user_id": "carl@im.wechat", "seq": 4},
        {"from_user_id": BOT_ID, "message_type": 2, "seq": 5, "context_token": "x"},
        {"from_user_id": "dan@im.wechat", "group_id": "g", "seq": 6, "context_token": "y"},
    ]  # fmt: skip
    assert tokens_of(raws) == {ANN: "new", "bob@im.wechat": "b"}


@pytest.mark.rule("WX-34", "CH-117")
@pytest.mark.parametrize("fields", [{"group_id": "g1"}, {"from_user_id": "g1@chatroom"}, {"to_user_id": "g1@chatroom"}])
def test_what_is_said_in_a_group_is_a_groups_and_its_words_are_not_kept(fields: dict[str, Any]) -> None:
    event = event_of(said(text("secret of the group"), **fields))
    assert (event.chat_type, event.mentioned, event.text, event.hint) == (ChatType.GROUP, False, "", "group")


@pytest.mark.rule("CH-4", "CH-27", "WX-11")
def test_what_cannot_be_read_is_kept_without_its_token() -> None:
    raw = said(text("hm"), message_type=9, context_token="very secret")
    event = event_of(raw)
    assert (event.kind, event.hint) == (EventKind.UNKNOWN, "9")
    assert "hm" in event.text
    assert "very secret" not in event.text
    nobody, nothing = event_of({"item_list": "?"}), event_of({"item_list": 1})
    assert nobody.kind is nothing.kind is EventKind.UNKNOWN
    assert nobody.platform_event_id != nothing.platform_event_id


# Whatever comes


_SCALARS = st.none() | st.booleans() | st.integers() | st.text(max_size=8) | st.floats(allow_nan=False)
_NAMES = st.sampled_from([
    "seq", "message_id", "from_user_id", "to_user_id", "create_time_ms", "delete_time_ms", "group_id", "message_type", "item_list", "context_token",
    "type", "text_item", "image_item", "voice_item", "file_item", "video_item", "ref_msg", "message_item", "media", "aes_key", "full_url", "text",
    "encrypt_query_param", "file_name", "len", "partial_text", "start", "end", "title", "svr_id", "encode_type",
])  # fmt: skip
_RECORDS = st.recursive(_SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAMES, inner, max_size=6), max_leaves=20)


@pytest.mark.rule("CH-4", "CH-1")
@given(st.lists(st.dictionaries(_NAMES, _RECORDS, max_size=8), max_size=4))
def test_no_record_however_odd_stops_the_others(raws: list[dict[str, Any]]) -> None:
    events = events_of(raws, ACCOUNT, BOT_ID, NOW)
    assert len(events) == len(raws)
    assert all(from_json(InboundEvent, to_json(event)) == event for event in events)
    assert all(isinstance(token, str) and token for token in tokens_of(raws).values())


# Items


@pytest.mark.rule("WX-33", "CH-5")
def test_items_of_every_kind_arrive_and_marks_of_tools_do_not() -> None:
    world = World()
    event = event_of(
        said(
            text("look"), world.image(b"i"), world.voice(b"v"), world.file("a.txt", b"f"), world.video(b"m"),
            {"type": 11}, {"type": 12}, {"type": 99}, {"type": 2}, {"type": 0},
        )
    )  # fmt: skip
    assert event.text == "look\n[WeChat item 99]\n[image]"
    assert [(file.kind, file.name, file.size) for file in event.attachments] == [
        ("image", f"image-{event.platform_event_id}.jpg", padded(1)),
        ("audio", f"voice-{event.platform_event_id}.silk", 0),
        ("file", "a.txt", 1),
        ("video", f"video-{event.platform_event_id}.mp4", padded(1)),
    ]


@pytest.mark.rule("WX-33")
@pytest.mark.parametrize(
    ("encoding", "ending"), [(1, "pcm"), (4, "spx"), (5, "amr"), (6, "silk"), (7, "mp3"), (8, "ogg"), (3, "voice"), (0, "voice")]
)
def test_a_voice_is_named_by_its_encoding(encoding: int, ending: str) -> None:
    item = World().voice(b"v")
    item["voice_item"]["encode_type"] = encoding
    assert event_of(said(item)).attachments[0].name.endswith(f".{ending}")


@pytest.mark.rule("WX-35")
def test_the_vendors_words_of_a_voice_are_a_transcript_of_the_platform_and_not_the_persons_text() -> None:
    world = World()
    with_words, without = event_of(said(world.voice(b"v", "你好"))), event_of(said(world.voice(b"v")))
    assert with_words.text == without.text == ""
    assert (with_words.attachments[0].transcript, with_words.attachments[0].transcript_origin) == ("你好", "platform")
    assert (without.attachments[0].transcript, without.attachments[0].transcript_origin) == ("", "")
    gone = {"type": 3, "voice_item": {"text": "only words are left"}}
    assert event_of(said(gone)).text == "only words are left"


@pytest.mark.rule("WX-33")
def test_a_quote_brings_its_summary_its_words_and_the_chosen_fragment() -> None:
    quoted = {"title": "Bob", "svr_id": 7400000000000000001, "message_item": text("one two three four", msg_id="5")}
    reply = event_of(said(text("what?", ref_msg=quoted))).reply_to
    assert reply is not None
    assert (reply.message_id, reply.excerpt, reply.quote) == ("7400000000000000001", "Bob | one two three four", "")
    chosen = quoted | {"partial_text": {"start": "two", "end": "three", "startindex": 0, "endindex": 0, "quotemd5": ""}}
    assert event_of(said(text("what?", ref_msg=chosen))).reply_to.quote == "two three"  # type: ignore[union-attr]
    picture = {"message_item": World().image(b"i") | {"msg_id": "6"}}
    assert event_of(said(text("what is it?", ref_msg=picture))).reply_to.excerpt == "[image]"  # type: ignore[union-attr]
    assert event_of(said(text("plain"))).reply_to is None


# Files


@pytest.mark.rule("WX-160", "WX-50")
def test_the_vector_of_sealing_holds_both_ways() -> None:
    assert seal(b"hello", KEY).hex() == "5d8749e2af7531b2bf6661e9e5daf012"
    assert open_sealed(bytes.fromhex("5d8749e2af7531b2bf6661e9e5daf012"), KEY) == b"hello"
    assert [sealed_size(size) for size in (0, 15, 16)] == [16, 16, 32]
    for changed in (KEY[:-1] + b"\x00", KEY[::-1]):
        with pytest.raises(AttachmentRefused):
            open_sealed(seal(b"hello", KEY), changed)
    with pytest.raises(AttachmentRefused):
        open_sealed(seal(b"hello", KEY)[:-1], KEY)


@given(st.binary(max_size=100), st.binary(min_size=16, max_size=16))
def test_sealing_agrees_with_another_hand(plain: bytes, key: bytes) -> None:
    sealed = seal(plain, key)
    assert unseal(sealed, key) == plain
    assert open_sealed(sealed, key) == plain
    assert len(sealed) == sealed_size(len(plain)) == padded(len(plain))


@pytest.mark.rule("WX-160", "WX-52", "WX-53")
@pytest.mark.case("WE-27")
@pytest.mark.parametrize(
    "spelling", ["AAECAwQFBgcICQoLDA0ODw==", "MDAwMTAyMDMwNDA1MDYwNzA4MDkwYTBiMGMwZDBlMGY=", "000102030405060708090a0b0c0d0e0f", KEY.hex().upper()]
)
def test_a_key_is_read_in_each_of_its_spellings_and_sent_in_one(spelling: str) -> None:
    assert key_of(spelling) == KEY
    assert spelled(KEY) == "MDAwMTAyMDMwNDA1MDYwNzA4MDkwYTBiMGMwZDBlMGY="
    assert open_sealed(bytes.fromhex("5d8749e2af7531b2bf6661e9e5daf012"), key_of(spelling) or b"") == b"hello"


@pytest.mark.rule("WX-53")
def test_an_images_own_key_goes_first_no_key_is_no_encryption_and_an_odd_key_is_no_guess() -> None:
    place = {"encrypt_query_param": "p", "aes_key": spelled(KEY)}
    own = {"type": 2, "image_item": {"media": place, "aeskey": "ff" * 16}}
    found = [Reference.parse(file.fetch_ref) for file in event_of(said(own, {"type": 2, "image_item": {"media": place}})).attachments]
    assert [each.key for each in found] == ["ff" * 16, KEY.hex()]
    open_one = {"type": 2, "image_item": {"media": {"full_url": "https://x.weixin.qq.com/1"}}}
    odd = {"type": 4, "file_item": {"media": {"encrypt_query_param": "p", "aes_key": "AAAA"}}}
    free, odd_one = (Reference.parse(file.fetch_ref) for file in event_of(said(open_one, odd)).attachments)
    assert (free.key, free.unreadable, free.url) == ("", False, "https://x.weixin.qq.com/1")
    assert odd_one.unreadable
    with pytest.raises(AttachmentRefused):
        Reference.parse("not one of ours")


@pytest.mark.rule("WX-50", "WX-52")
@pytest.mark.parametrize(
    ("mime", "kind", "item"),
    [
        ("image/png", MediaType.IMAGE, {"type": 2, "image_item": {"mid_size": 16}}),
        ("video/mp4", MediaType.VIDEO, {"type": 5, "video_item": {"video_size": 16}}),
        ("audio/mpeg", MediaType.FILE, {"type": 4, "file_item": {"file_name": "x.bin", "len": "5"}}),
        ("image/svg+xml", MediaType.FILE, {"type": 4, "file_item": {"file_name": "x.bin", "len": "5"}}),
    ],
)
def test_a_file_is_announced_and_shown_as_the_vendor_wants_it(mime: str, kind: MediaType, item: dict[str, Any]) -> None:
    assert media.media_type(Attachment(kind="file", name="x.bin", mime=mime)) is kind
    upload = Upload(name="x.bin", media_type=kind, plain=b"hello", key=KEY, filekey="f" * 32)
    assert upload.asked(ANN) == {
        "filekey": "f" * 32, "media_type": int(kind), "to_user_id": ANN, "rawsize": 5, "rawfilemd5": "5d41402abc4b2a76b9719d911017c592",
        "filesize": 16, "no_need_thumb": True, "aeskey": KEY.hex(),
    }  # fmt: skip
    shown = upload.item("down")
    content = next(value for name, value in shown.items() if name != "type")
    assert content.pop("media") == {"encrypt_query_param": "down", "aes_key": spelled(KEY), "encrypt_type": 1}
    assert shown == item


# Headers and bodies


@pytest.mark.rule("WX-27")
def test_headers_are_the_vendors() -> None:
    settings = IlinkSettings(route_tag="r1")
    assert spelled_uin(305419896) == "MzA1NDE5ODk2"
    assert get_headers(settings) == {"iLink-App-Id": "bot", "iLink-App-ClientVersion": "132099", "SKRouteTag": "r1"}
    first, second = post_headers(settings, "tok"), post_headers(IlinkSettings(), "")
    assert first["X-WECHAT-UIN"] != second["X-WECHAT-UIN"]
    assert 0 <= int(base64.b64decode(first.pop("X-WECHAT-UIN"))) < 1 << 32
    assert first == get_headers(settings) | {
        "Content-Type": "application/json", "AuthorizationType": "ilink_bot_token", "Authorization": "Bearer tok",
    }  # fmt: skip
    assert "Authorization" not in second
    assert "SKRouteTag" not in second


@pytest.mark.rule("WX-28")
@pytest.mark.parametrize("version", ["1.2.3", "1.2 beta/(x)", "版本", "9" * 300])
def test_the_bots_name_is_plain_and_short(version: str) -> None:
    agent = IlinkSettings(version=version).bot_agent
    name, _, told = agent.partition("/")
    assert name == "Yumegate"
    assert told
    assert agent.isascii()
    assert len(agent) <= 256
    assert not set(agent) & set(" ()")


@pytest.mark.rule("WX-12")
def test_words_leave_as_themselves_and_not_as_escapes() -> None:
    assert encoded({"text": "你好😀"}) == '{"text":"你好😀"}'.encode()
    assert json.loads(encoded({"text": "a\ud800b"})) == {"text": "a?b"}


def test_the_form_of_a_body_tells_nothing_of_its_words() -> None:
    body = {"msg": {"text": "secret", "n": 1, "list": ["a", None]}}
    assert shape(body) == {"msg": {"text": "text of 6", "n": "int", "list": ["text of 1", "NoneType"]}}


@pytest.mark.case("WP-20", "WP-21")
@pytest.mark.rule("WX-20", "WX-53")
@pytest.mark.parametrize(
    ("url", "trusted"),
    [
        ("https://ilinkai.weixin.qq.com", True), ("https://novac2c.cdn.weixin.qq.com/c2c/x?y=1", True), ("https://weixin.qq.com", True),
        ("http://ilink2.weixin.qq.com", False), ("https://weixin.qq.com.evil.example", False), ("https://evilweixin.qq.com", False),
        ("https://a@ilink2.weixin.qq.com", False), ("https://files.example", True), ("http://files.example", False), ("ftp://weixin.qq.com", False),
        ("https://set.example:8443/x", True), ("https://set.example", False), ("https://weixin.qq.com:99999", False), ("", False), ("//x", False),
        ("http://127.0.0.1:9", False), ("http://169.254.169.254/latest/meta-data/", False), ("https://169.254.169.254", False),
        ("https://[::ffff:169.254.169.254]/", False), ("file:///etc/passwd", False), ("file://weixin.qq.com/etc/passwd", False),
    ],
)  # fmt: skip
def test_only_the_vendor_and_what_is_set_are_trusted(url: str, trusted: bool) -> None:
    settings = IlinkSettings(cdn_url="https://set.example:8443/c2c", trusted_hosts=("files.example",))
    assert settings.trusts(url) is trusted
    assert IlinkSettings(trusted_hosts=("127.0.0.1",)).trusts("http://127.0.0.1:9/x")


def test_a_host_without_a_scheme_is_taken_as_a_safe_one() -> None:
    assert at("ilink2.weixin.qq.com") == "https://ilink2.weixin.qq.com"
    assert at("http://127.0.0.1:1/") == "http://127.0.0.1:1"


# Out


@pytest.mark.rule("WX-36", "CH-35")
def test_each_message_of_a_part_has_one_client_id_for_ever_and_no_two_share_it() -> None:
    many = part("words", attachments=(Attachment(kind="file", name="a"), Attachment(kind="file", name="b")))
    ids = [step.client_id for step in steps(many)]
    assert len(set(ids)) == 3
    assert ids == [step.client_id for step in steps(many)]
    assert client_id("p1", 0) != client_id("p2", 0)
    assert steps(part(" \u200b")) == []


@pytest.mark.rule("WX-39", "CH-130")
@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("**bold** and `a < b`", "**bold** and `a < b`"),
        ("1 < 2 > 0", "1 ＜ 2 ＞ 0"),
        ("~~gone~~", "gone"),
        ("#### four", "#### four"),
        ("##### five", "**five**"),
        ("![a cat](https://x.example/cat.png)", "a cat (https://x.example/cat.png)"),
        ("| a | b |\n|---|---|\n| 1 | 2 |", "| a | b |\n|---|---|\n| 1 | 2 |"),
    ],
)
def test_what_the_client_cannot_show_is_written_otherwise(markdown: str, shown: str) -> None:
    (piece,) = render(markdown, CAPABILITIES)
    assert piece.text == shown


@pytest.mark.rule("WX-38", "WX-39", "WX-41", "CH-8")
def test_what_it_can_do_is_told_as_data() -> None:
    assert (CAPABILITIES.text_max, CAPABILITIES.send_budget, CAPABILITIES.markup) == (1800, 8, Markup.LIGHT)
    assert CAPABILITIES.edit_interval_s is None
    assert not CAPABILITIES.reactions and not CAPABILITIES.streams and not CAPABILITIES.threads
    assert CAPABILITIES.liveness_s == 85
    assert CAPABILITIES.auth_probe_s == 3600
    assert Account(channel="wechat_ilink").name == "main"
