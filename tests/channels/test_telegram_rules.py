"""What is decided about Telegram without talking to it: what an error means, what a part becomes, where polling goes on, what the menu may hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from telegram.error import (
    BadRequest,
    ChatMigrated,
    Conflict,
    EndPointNotFound,
    Forbidden,
    InvalidToken,
    NetworkError,
    RetryAfter,
    TelegramError,
    TimedOut,
)

from channels.errors import ConnectionLost, CredentialRefused
from channels.message import Account, Address, Attachment, Entity
from channels.port import ChatMoved, NeedsOperator, OutboundPart, Refused, SendOutcome, TryLater, Unknown
from channels.telegram.menu import checked
from channels.telegram.outcomes import fault_of, outcome_of
from channels.telegram.outgoing import Step, remedies, steps
from channels.telegram.pace import Pace
from channels.telegram.position import Position
from channels.telegram.settings import CAPABILITIES, MenuEntry, TelegramSettings
from channels.telegram.wire import NotSent
from channels.units import TextUnit, measure
from tests.conftest import FakeClock

HERE = Address(account=Account(channel="telegram"), chat_id="700001")


def caused(error: TelegramError, cause: Exception) -> TelegramError:
    error.__cause__ = cause
    return error


# Errors


@pytest.mark.rule("CH-163", "CH-164", "CH-11", "CH-38")
@pytest.mark.case("TG-12")
@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RetryAfter(27), TryLater(27)),
        (RetryAfter(timedelta(seconds=149)), TryLater(149)),
        (ChatMigrated(-1009000000001), ChatMoved("-1009000000001")),
        (BadRequest("Bad Request: message text is empty"), Refused("Message text is empty")),
        (BadRequest("Bad Request: chat not found"), Refused("Chat not found")),
        (BadRequest("Bad Request: not enough rights to send text messages to the chat"),
         Refused("Not enough rights to send text messages to the chat")),
        (BadRequest("Bad Request: message to edit not found"), Refused("Message to edit not found", gone=True)),
        (BadRequest("Bad Request: message can't be edited"), Refused("Message can't be edited", gone=True)),
        (Forbidden("Forbidden: bot was blocked by the user"), Refused("Forbidden: bot was blocked by the user")),
        (Forbidden("Forbidden: user is deactivated"), Refused("Forbidden: user is deactivated")),
        (caused(NetworkError("x"), NotSent("refused")), TryLater()),
        (caused(TimedOut(), NotSent("no connection in time")), TryLater()),
    ],
)  # fmt: skip
def test_each_error_has_one_meaning(error: TelegramError, outcome: SendOutcome) -> None:
    assert outcome_of(error) == outcome


@pytest.mark.rule("CH-164", "CH-34")
@pytest.mark.parametrize(
    "error",
    [
        NetworkError("Internal Server Error (500)"),
        NetworkError("Bad Gateway"),
        caused(TimedOut(), ConnectionError("no answer in time")),
        caused(NetworkError("x"), ConnectionError("cut")),
        TelegramError("Invalid server response"),
    ],
)
def test_what_may_have_left_is_unknown(error: TelegramError) -> None:
    assert isinstance(outcome_of(error), Unknown)
    assert isinstance(fault_of(error), ConnectionLost)


@pytest.mark.rule("CH-163", "CH-21", "CH-162")
def test_the_token_is_the_operators_business_and_another_poller_is_one_plain_line() -> None:
    for error in (InvalidToken("Unauthorized"), EndPointNotFound("Not Found")):
        assert isinstance(outcome_of(error), NeedsOperator)
        assert isinstance(fault_of(error), CredentialRefused)
    conflict = fault_of(Conflict("Conflict: terminated by other getUpdates request"))
    assert isinstance(conflict, ConnectionLost)
    assert "another program polls with this token" in str(conflict)
    assert "\n" not in str(conflict)


@pytest.mark.rule("CH-163")
def test_the_library_gives_waits_as_durations_without_a_warning() -> None:
    assert RetryAfter(5).retry_after == timedelta(seconds=5)


# Remedies


STEP = Step(chat_id="1", text="words", entities=(Entity("bold", 0, 5),), reply_to="9", thread_id="42")


@pytest.mark.rule("CH-39", "CH-138", "CH-155", "CH-156")
@pytest.mark.parametrize(
    ("said", "instead"),
    [
        ("can't parse entities: can't find end of the entity starting at byte offset 0", replace(STEP, entities=())),
        ("entity_bounds_invalid", replace(STEP, entities=())),
        ("message to be replied not found", replace(STEP, reply_to="")),
        ("message thread not found", replace(STEP, thread_id="")),
    ],
)
def test_a_refused_detail_is_left_out_once_and_nothing_else(said: str, instead: Step) -> None:
    error = BadRequest(f"Bad Request: {said}")
    assert remedies(STEP, error) == (instead,)
    assert remedies(instead, error) == (), "what cured it is gone: no second time"


@pytest.mark.rule("CH-163")
@pytest.mark.parametrize("said", ["message text is empty", "chat not found", "something new"])
def test_what_nothing_cures_is_not_tried_again(said: str) -> None:
    assert remedies(STEP, BadRequest(f"Bad Request: {said}")) == ()


@pytest.mark.rule("CH-32")
@pytest.mark.parametrize("text", ["a" * 4000, "word " * 800, "😀" * 2000, "漢字。" * 1300])
def test_should_the_platform_count_otherwise_the_words_go_in_shorter_pieces(text: str) -> None:
    step = Step(chat_id="1", text=text, reply_to="9", thread_id="42")
    pieces = remedies(step, BadRequest("Bad Request: message is too long"))
    assert len(pieces) == 2
    assert "".join(piece.text for piece in pieces).replace(" ", "") == text.replace(" ", "")
    assert all(measure(piece.text, TextUnit.UTF16) <= 3500 for piece in pieces)
    assert [(piece.thread_id, piece.reply_to) for piece in pieces] == [("42", "9"), ("42", "")]
    assert remedies(pieces[0], BadRequest("Bad Request: message is too long")) == ()
    edited = remedies(replace(step, edit_of="5"), BadRequest("Bad Request: message is too long"))
    assert [piece.edit_of for piece in edited] == ["5", ""]


# Parts


def picture(number: int = 1, **more: object) -> Attachment:
    return replace(Attachment(kind="image", name=f"{number}.png", mime="image/png", size=10, stored_path=f"p{number}"), **more)


def part(text: str = "", *files: Attachment, **more: object) -> OutboundPart:
    return replace(OutboundPart(part_id="p", address=HERE, text=text, attachments=files), **more)


@pytest.mark.rule("CH-155", "CH-156")
@pytest.mark.case("TG-14", "TG-15")
@pytest.mark.parametrize(("thread", "sent"), [("42", "42"), ("1", ""), ("", "")])
def test_the_thread_and_the_answered_message_are_two_things_and_general_is_not_named(thread: str, sent: str) -> None:
    (step,) = steps(part("hi", address=replace(HERE, thread_id=thread), reply_to="900"))
    assert (step.thread_id, step.reply_to) == (sent, "900")


@pytest.mark.rule("CH-143", "CH-8")
@pytest.mark.case("DL-24")
@pytest.mark.parametrize(("length", "calls"), [(1023, 1), (1024, 1), (1025, 2), (1500, 2)])
def test_a_caption_is_whole_or_follows_as_a_message_in_the_same_thread(length: int, calls: int) -> None:
    found = steps(part("a" * length, picture(), address=replace(HERE, thread_id="42"), reply_to="9"))
    assert [bool(step.files) for step in found] == [True, False][:calls]
    assert "".join(step.text for step in found) == "a" * length
    assert [(step.thread_id, step.reply_to) for step in found] == [("42", "9"), ("42", "")][:calls]


@pytest.mark.rule("CH-160", "CH-8")
def test_files_go_out_in_albums_of_ten_of_one_kind_and_large_pictures_as_documents() -> None:
    pictures = [picture(n) for n in range(12)]
    note = Attachment(kind="text", name="n.md", mime="text/markdown", size=9, stored_path="n")
    large = picture(99, size=10_000_001)
    found = steps(part("look", *pictures, note, large))
    assert [(step.medium, len(step.files)) for step in found] == [("photo", 10), ("photo", 2), ("document", 2)]
    assert [step.text for step in found] == ["look", "", ""]
    odd = BadRequest("Bad Request: PHOTO_INVALID_DIMENSIONS")
    assert remedies(found[0], odd) == (replace(found[0], medium="document"),)


@pytest.mark.rule("CH-141", "CH-31", "CH-138")
def test_nothing_blank_goes_out_and_broken_characters_cost_no_words() -> None:
    assert steps(part("\u200b \n")) == []
    (step,) = steps(part("a\x00b\ud83d", entities=(Entity("bold", 0, 2),)))
    assert (step.text, step.entities) == ("ab\ufffd", ())
    (step,) = steps(part("a" * 300, entities=tuple(Entity("bold", n, 1) for n in range(150))))
    assert (len(step.entities), step.text) == (100, "a" * 300)


@pytest.mark.rule("CH-96")
def test_an_edit_that_brings_files_too_sends_them_after_it() -> None:
    found = steps(part("done", picture()), edit_of="7")
    assert [(step.edit_of, step.text, len(step.files)) for step in found] == [("7", "done", 0), ("", "", 1)]


# Where polling goes on


@pytest.mark.rule("CH-151")
def test_the_place_in_the_feed_grows_until_it_is_too_old_to_trust(clock: FakeClock) -> None:
    assert Position().offset(clock()) is None, "at first, everything that waits"
    place = Position().after([7, 9, 8], clock())
    assert (place.offset(clock()), Position.parse(str(place))) == (10, place)
    assert place.after([3], clock()).number == 9, "an old update again moves nothing back"
    assert place.after([], clock()) is place
    clock.advance(days=6)
    assert place.offset(clock()) is None, "numbers may have begun anew: dedupe decides"
    assert place.after([3], clock()).offset(clock()) == 4


@pytest.mark.rule("CH-151")
@pytest.mark.parametrize("text", ["", "@", "7", "x@y", "7@yesterday"])
def test_a_place_that_cannot_be_read_is_none(text: str) -> None:
    assert Position.parse(text) == Position()


# How much is said


@pytest.mark.rule("CH-93", "CH-92")
def test_previews_of_a_busy_group_or_account_are_left_out(clock: FakeClock) -> None:
    pace = Pace(clock)
    for _ in range(20):
        assert pace.allows("-5")
        pace.note("-5")
        clock.advance(seconds=2)
    assert not pace.allows("-5")
    assert pace.allows("-6")
    assert pace.allows("700001")
    clock.advance(seconds=21)
    assert pace.allows("-5")
    for n in range(30):
        pace.note(f"{n}")
    assert not pace.allows("700001")
    clock.advance(seconds=1)
    assert pace.allows("700001")


@pytest.mark.rule("CH-93", "CH-95")
def test_the_interval_of_previews_keeps_the_advice_for_one_chat() -> None:
    assert CAPABILITIES.edit_interval_s is not None
    assert CAPABILITIES.edit_interval_s >= 1
    assert CAPABILITIES.group_edit_interval_s is not None
    assert CAPABILITIES.group_edit_interval_s >= 60 / 20


@pytest.mark.rule("CH-8")
def test_what_telegram_can_do_is_data() -> None:
    can = CAPABILITIES
    assert (can.text_unit, can.text_max, can.caption_max, can.markup) == (TextUnit.UTF16, 4096, 1024, "entities")
    assert (can.edit_interval_s, can.group_edit_interval_s, can.typing_refresh_s) == (1.2, 3.0, 4.0)
    assert (can.threads, can.reactions, can.media_max_bytes, can.proactive) == (True, True, 50_000_000, True)
    assert (can.send_budget, can.resend_key_s, can.reconcile, can.liveness_s) == (None, None, False, 120.0)


@pytest.mark.rule("CH-43")
def test_settings_do_not_show_the_token() -> None:
    settings = TelegramSettings(token="123456789:AAsecret", mode="webhook", webhook_url="https://bot.example.org")
    assert "AAsecret" not in repr(settings)
    assert settings.webhook_secret not in repr(settings)
    assert settings.webhook_secret != TelegramSettings(token="123456789:AAother").webhook_secret


# The menu


@pytest.mark.rule("CH-158")
@pytest.mark.case("TG-25")
@pytest.mark.parametrize(("count", "kept"), [(99, 99), (100, 100), (101, 100)])
def test_of_too_many_commands_the_first_hundred_stay(count: int, kept: int) -> None:
    entries, lines = checked([MenuEntry(f"cmd_{n:03}", "does it") for n in range(1, count + 1)])
    assert [entry.name for entry in entries] == [f"cmd_{n:03}" for n in range(1, kept + 1)]
    assert len(lines) == count - kept
    assert all("/cmd_101" in line for line in lines)


@pytest.mark.rule("CH-158")
@pytest.mark.case("TG-26")
def test_a_bad_entry_is_mended_or_left_out_with_a_line() -> None:
    given = [
        MenuEntry("help", "x" * 257),
        MenuEntry("Help", "again"),
        MenuEntry("status", "how it goes"),
        MenuEntry("Weather", "outside"),
        MenuEntry("总结", "summary"),
        MenuEntry("a" * 33, "long"),
        MenuEntry("with-dash", "dash"),
        MenuEntry("empty", " "),
    ]
    entries, lines = checked(given)
    assert [(entry.name, len(entry.description)) for entry in entries] == [("help", 256), ("status", 11), ("weather", 7)]
    assert len(lines) == 6
