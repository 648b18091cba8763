"""What a part becomes on Telegram: one or more calls, and how each is changed when the platform refuses a detail of it. Pure."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from telegram.error import BadRequest

from channels.flow import Flow
from channels.message import Action, Attachment, Entity, clean, is_blank
from channels.port import OutboundPart, TextUnit
from channels.split import split
from channels.telegram.convert import GENERAL
from channels.telegram.outcomes import TOO_LONG, says
from channels.telegram.settings import CAPABILITIES
from channels.units import measure

log = logging.getLogger(__name__)

ENTITIES_MAX = 100  # CH-138
PHOTO_MAX = 10_000_000  # bytes; a larger picture goes as a document
ALBUM_MIN, ALBUM_MAX = 2, 10
SHORTER = 3500  # units of a piece, should the platform count otherwise than we do

# Reactions are a closed list there: what stands for ours.
REACTIONS = {"⏳": "✍"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call: a message, an edit (`edit_of`), or files with the text as their caption. `medium`: photo, audio or document."""

    chat_id: str
    thread_id: str = ""
    reply_to: str = ""
    text: str = ""
    entities: tuple[Entity, ...] = ()
    files: tuple[Attachment, ...] = ()
    medium: str = ""
    edit_of: str = ""
    actions: tuple[tuple[Action, ...], ...] = ()


def steps(part: OutboundPart, edit_of: str = "") -> list[Step]:
    """The calls of a part, in order; none when it holds nothing that can be shown. Only the first is a reply (CH-156).

    A text that is no caption by its length follows its files (CH-143).
    """
    text = clean(part.text)
    entities = part.entities[:ENTITIES_MAX] if text == part.text else ()  # they are counted on the text as it was
    blank = Step(chat_id=part.address.chat_id, thread_id="" if part.address.thread_id == GENERAL else part.address.thread_id)
    words = [] if is_blank(text) else [replace(blank, text=text, entities=entities, edit_of=edit_of)]
    media = [replace(blank, files=files, medium=medium) for medium, files in _groups(part.attachments)]
    if edit_of:
        return _with_buttons([*words, *media], part)
    if media and words and measure(text, TextUnit.UTF16) <= (CAPABILITIES.caption_max or 0):
        media[0], words = replace(media[0], text=text, entities=entities), []
    found = [*media, *words]
    return _with_buttons([replace(found[0], reply_to=part.reply_to), *found[1:]] if found else [], part)


def _with_buttons(found: list[Step], part: OutboundPart) -> list[Step]:
    """Below the last of them, unless that is an album, which takes none."""
    if found and part.actions and len(found[-1].files) < ALBUM_MIN:
        found[-1] = replace(found[-1], actions=part.actions)
    return found


def remedies(step: Step, error: BadRequest) -> tuple[Step, ...]:
    """The calls to make instead, after the platform refused a detail of this one and showed nothing; none when that would not help.

    Each remedy takes away what it cured, so no call is repeated for the same reason twice.
    """
    return next((remedy(step) for applies, fragments, remedy in _REMEDIES if applies(step) and says(error, *fragments)), ())


def _shorter(step: Step) -> tuple[Step, ...]:
    log.error("Telegram finds a text of %d units too long; it is sent in pieces of %d", measure(step.text, TextUnit.UTF16), SHORTER)
    bare = replace(step, text="", entities=(), actions=())
    pieces = [piece.text for piece in split(Flow(text=step.text), SHORTER, TextUnit.UTF16)]
    if step.files:
        cut = [bare, *(replace(bare, files=(), medium="", reply_to="", text=piece) for piece in pieces)]
    else:
        first, *rest = pieces
        cut = [replace(bare, text=first), *(replace(bare, edit_of="", reply_to="", text=piece) for piece in rest)]
    return (*cut[:-1], replace(cut[-1], actions=step.actions))


def _is_too_long(step: Step) -> bool:
    return measure(step.text, TextUnit.UTF16) > (0 if step.files else SHORTER)


# When it applies, what the platform says, what to do instead.
_REMEDIES: tuple[tuple[Callable[[Step], bool], Sequence[str], Callable[[Step], tuple[Step, ...]]], ...] = (
    (lambda step: bool(step.entities), ("entit",), lambda step: (replace(step, entities=()),)),  # CH-39
    (lambda step: bool(step.reply_to), ("replied not found", "reply message not found"), lambda step: (replace(step, reply_to=""),)),
    (lambda step: bool(step.thread_id), ("message thread not found", "topic_deleted"), lambda step: (replace(step, thread_id=""),)),
    (lambda step: bool(step.actions), ("button", "reply_markup", "keyboard"), lambda step: (replace(step, actions=()),)),  # the words say it too
    (_is_too_long, TOO_LONG, _shorter),
    (lambda step: step.medium == "photo", ("photo_", "image_process_failed"), lambda step: (replace(step, medium="document"),)),
)


def _groups(files: Sequence[Attachment]) -> Iterator[tuple[str, tuple[Attachment, ...]]]:
    """Files that can go out together: up to ten of one kind, as they follow each other."""
    for medium, group in groupby(files, key=_medium):
        listed = tuple(group)
        for at in range(0, len(listed), ALBUM_MAX):
            yield medium, listed[at : at + ALBUM_MAX]


def _medium(file: Attachment) -> str:
    if file.kind == "image" and file.size <= PHOTO_MAX and file.mime in ("image/png", "image/jpeg", "image/webp"):
        return "photo"
    return "audio" if file.mime in ("audio/mpeg", "audio/mp4") else "document"
