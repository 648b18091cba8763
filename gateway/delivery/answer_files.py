"""A long answer as one file (CH-143).

Nothing is kept for it: its bytes are the words of the stored message at the time they are sent, so that what was deleted or forgotten meanwhile has
left no copy.
"""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa

from channels.message import Attachment
from gateway.attachments import Attachments
from memory import conversations
from memory.database import Database
from memory.errors import StoreError

_OF_ANSWER = "answer:"


def answer_file(turn_id: str, attempt: int, text: str, *, name: str) -> Attachment:
    """What stands for the answer `text` of a turn until it is sent."""
    path = f"{_OF_ANSWER}{turn_id}.{attempt}"
    return Attachment(kind="text", name=name, mime="text/markdown", size=len(text.encode("utf-8", "replace")), stored_path=path)


class OutgoingFiles:
    """What adapters read of the files that they send."""

    def __init__(self, db: Database, attachments: Attachments) -> None:
        self._db = db
        self._attachments = attachments

    async def read(self, attachment: Attachment) -> bytes:
        """The bytes of a stored file, or of an answer as it stands now. OSError when they are gone."""
        if not attachment.stored_path.startswith(_OF_ANSWER):
            return await self._attachments.read(attachment)
        turn, _, attempt = attachment.stored_path.removeprefix(_OF_ANSWER).rpartition(".")
        try:
            words = await self._db.read(partial(_words_of, turn=turn, attempt=int(attempt)))
        except StoreError as error:
            raise OSError(str(error)) from error
        if not words:
            raise FileNotFoundError(attachment.name)
        return words.encode("utf-8", "replace")


def _words_of(connection: sa.Connection, *, turn: str, attempt: int) -> str:
    """Empty when it is not there any more."""
    found = conversations.of_turn(connection, turn)
    return next((each.text for each in found if each.role == "assistant" and each.attempt == attempt and each.state == "live"), "")
