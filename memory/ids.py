"""Opaque ids of ours: a letter for the kind, then 10 to 16 characters of a–z2–7 (WD-3). Never made from a name or a platform's id."""

from __future__ import annotations

import secrets
from typing import NewType

PersonId = NewType("PersonId", str)
SpaceId = NewType("SpaceId", str)
ConversationId = NewType("ConversationId", str)
MessageId = NewType("MessageId", str)
TurnId = NewType("TurnId", str)
DeliveryId = NewType("DeliveryId", str)

_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"


def opaque(letter: str, length: int = 16) -> str:
    """A new id: `letter`, a dash and `length` random characters (5 bits each)."""
    bits = secrets.randbits(5 * length)
    return f"{letter}-" + "".join(_ALPHABET[(bits >> (5 * n)) & 31] for n in range(length))


def new_person() -> PersonId:
    return PersonId(opaque("p", 10))


def new_space() -> SpaceId:
    return SpaceId(opaque("s", 10))


def new_conversation() -> ConversationId:
    return ConversationId(opaque("c"))


def new_message() -> MessageId:
    return MessageId(opaque("m"))


def new_turn() -> TurnId:
    return TurnId(opaque("t"))


def new_delivery() -> DeliveryId:
    return DeliveryId(opaque("d"))
