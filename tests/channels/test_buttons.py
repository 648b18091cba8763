"""How buttons are put below messages on each app, and what is done when one does not take them; pure (CH-159)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from telegram.error import BadRequest

from channels.discord.buttons import view_of
from channels.message import Account, Action, Address, Attachment, from_json, to_json
from channels.port import OutboundPart
from channels.telegram.buttons import keyboard, press
from channels.telegram.outgoing import SHORTER, remedies, steps

ROWS = ((Action("Forget", "key.0"), Action("Leave it", "key.1")),)
WHERE = Address(account=Account(channel="telegram"), chat_id="700001")
PICTURE = Attachment(kind="image", name="a.png", mime="image/png", size=9, stored_path="a.png")
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5), lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner)
)


def part(text: str = "Forget it?", *files: Attachment) -> OutboundPart:
    return OutboundPart(part_id="p1", address=WHERE, text=text, attachments=files, actions=ROWS)


@pytest.mark.rule("CH-1", "CH-80")
def test_buttons_survive_being_stored() -> None:
    assert from_json(OutboundPart, to_json(part())) == part()
    old = {name: value for name, value in to_json(part()).items() if name != "actions"}
    assert from_json(OutboundPart, old).actions == (), "rows of an earlier version have none"


@pytest.mark.rule("CH-159")
@pytest.mark.parametrize(
    ("made", "where"),
    [
        (part(), [True]),
        (part("Forget it?", PICTURE), [True]),
        (part("Forget it? " * 200, PICTURE), [False, True]),
        (part("Forget it?", PICTURE, PICTURE), [False]),  # an album takes none
    ],
    ids=["words", "a caption", "words behind a picture", "an album"],
)
def test_buttons_stand_below_the_last_message_of_a_part(made: OutboundPart, where: list[bool]) -> None:
    assert [step.actions == ROWS for step in steps(made)] == where


@pytest.mark.rule("CH-159", "CH-39")
@pytest.mark.parametrize("refusal", ["Bad Request: BUTTON_DATA_INVALID", "Bad Request: can't parse inline keyboard button: Text is expected"])
def test_a_server_that_takes_no_buttons_gets_the_words(refusal: str) -> None:
    [step] = steps(part())
    (instead,) = remedies(step, BadRequest(refusal))
    assert (instead.text, instead.actions) == (step.text, ())


@pytest.mark.rule("CH-159")
def test_a_text_that_is_cut_again_keeps_its_buttons_at_the_end() -> None:
    [step] = steps(part("word " * SHORTER))
    pieces = remedies(step, BadRequest("Bad Request: message is too long"))
    assert len(pieces) > 1
    assert [piece.actions for piece in pieces] == [()] * (len(pieces) - 1) + [ROWS]


@pytest.mark.rule("CH-159")
def test_a_key_that_is_too_long_is_left_out() -> None:
    shown = keyboard([[Action("Forget", "k" * 65), Action("Leave it", "k" * 64)], [Action("Delete", "日" * 22)]])
    assert shown is not None
    assert [[button.text for button in row] for row in shown.inline_keyboard] == [["Leave it"]]
    assert keyboard([[Action("Forget", "k" * 65)]]) is None
    assert keyboard([]) is None


@pytest.mark.rule("CH-159", "CH-4")
@given(raw=JSON | st.fixed_dictionaries({"callback_query": st.dictionaries(st.sampled_from(["id", "message", "data"]), JSON)}))
def test_no_raw_update_breaks_the_answer_to_a_press(raw: object) -> None:
    found = press(raw)
    assert found is None or found.id


@pytest.mark.rule("CH-159")
async def test_a_row_on_discord_is_a_row_there() -> None:
    view = view_of((*ROWS, (Action("L" * 200, "key-2.0"),)))
    assert view is not None
    assert view.is_finished(), "the library keeps none of it"
    rows = view.to_components()
    assert [[button["label"] for button in row["components"]] for row in rows] == [["Forget", "Leave it"], ["L" * 80]]
    assert view_of(()) is None
