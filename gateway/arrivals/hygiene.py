"""What platforms and people may put into our rows: no broken characters, and no id longer than a row is found by (CH-1, CH-4, CH-6). Pure."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import replace

from channels.message import InboundEvent, ReplyTo, clean, safe_name
from memory import extract

EXCERPT_MAX = 500  # characters of a quoted message that are kept
ID_MAX = 200  # characters of an id: the longest that a platform gives have about 100, and an index of PostgreSQL holds no row above 2,700 bytes
NAME_MAX = 200  # of a name, a type or a language: they are shown, and decide nothing
TITLE_MAX = 100  # of what a place is called
REF_MAX = 10_000  # of where a file can be fetched

_IDS = ("platform_message_id", "chat_id", "parent_chat_id", "space_id", "shared_id", "thread_id", "sender_id", "target")
_SHOWN = ("sender_name", "hint", "language")
_TITLES = ("space_title", "chat_title", "thread_title", "thread_made_as")
_READ = 10 * TITLE_MAX  # characters of a title that are looked at
_JOINERS = "\u200c\u200d"  # inside emoji and words of some scripts
_OF_FILE = {"kind": NAME_MAX, "mime": NAME_MAX, "fetch_ref": None, "stored_path": None, "transcript": None, "transcript_origin": NAME_MAX}


def cleaned(event: InboundEvent) -> InboundEvent:
    """`event` with hygiene for everything that may hold a broken character, not the text alone; what is only shown is cut to a sane length."""
    return replace(
        event,
        platform_event_id=_key(clean(event.platform_event_id)),
        text=clean(event.text),
        **{name: clean(getattr(event, name)) for name in _IDS},
        **{name: clean(getattr(event, name))[:NAME_MAX] for name in _SHOWN},
        **{name: title(getattr(event, name)) for name in _TITLES},
        reply_to=event.reply_to and _reply(event.reply_to),
        attachments=tuple(
            replace(
                file,
                name=safe_name(file.name),
                **{name: clean(getattr(file, name))[:most] for name, most in _OF_FILE.items() if name != "fetch_ref"},
                fetch_ref=clean(file.fetch_ref) if len(file.fetch_ref) <= REF_MAX else "",
            )
            for file in event.attachments
        ),
    )


def title(text: str) -> str:
    """What a place is called, as one line that changes nothing around it: no control, direction or hidden characters. Empty for blanks."""
    line = " ".join(clean(text[:_READ]).split())
    kept = "".join(each for each in line if each in _JOINERS or unicodedata.category(each) not in ("Cc", "Cf", "Co"))
    return extract.shortened(kept.strip(), TITLE_MAX) if kept.strip(_JOINERS + " ") else ""


def over_long(event: InboundEvent) -> dict[str, int]:
    """The ids of `event` that are longer than we keep, with their lengths; such an event is of no use, for it could be answered nowhere."""
    return {name: length for name in _IDS if (length := len(getattr(event, name))) > ID_MAX}


def shortened(event: InboundEvent) -> InboundEvent:
    """`event` with ids that can be stored: of a long one its beginning and what tells it from others."""
    return replace(event, **{name: _key(getattr(event, name)) for name in over_long(event)})


def _key(text: str) -> str:
    """`text`, or what stands for it and for nothing else: a key is only compared."""
    return text if len(text) <= ID_MAX else f"{text[:100]}#{hashlib.sha256(text.encode()).hexdigest()}"


def _reply(to: ReplyTo) -> ReplyTo:
    answered = clean(to.message_id)
    return ReplyTo(
        message_id=answered if len(answered) <= ID_MAX else "",
        author_is_us=to.author_is_us,
        author_name=clean(to.author_name)[:NAME_MAX],
        excerpt=clean(to.excerpt)[:EXCERPT_MAX],
        quote=clean(to.quote),
    )
