"""What of a prompt never gives way, and whether it fits (RS-70). Pure; every number is an estimate in tokens."""

from __future__ import annotations

from dataclasses import dataclass

from agent.errors import AnswerTooLarge, AttachmentsTooLarge, InstructionsTooLarge, PinsTooLarge, TooLarge


@dataclass(frozen=True, slots=True, kw_only=True)
class Least:
    """`instructions`: character, files, notes and descriptions of tools; `pins`: pinned memories; `attachments`: texts of files and pictures of the
    newest message; `words`: its own words, of which a little is enough."""

    instructions: int
    pins: int
    attachments: int
    words: int

    @property
    def tokens(self) -> int:
        return self.instructions + self.pins + self.attachments + self.words


@dataclass(frozen=True, slots=True, kw_only=True)
class Room:
    """`tokens`: that a prompt may take; `by_setting`: a setting says so, not the model; `with_short_answers`: tokens that it might take, were no
    longest answer set; `answer`: that one, 0 for none; `window`: of the model."""

    tokens: int
    by_setting: bool
    with_short_answers: int
    answer: int
    window: int


def check(least: Least, room: Room) -> None:
    """Raises the TooLarge that names the first part with which it is too much; the answer's where a shorter one would make room."""
    if least.tokens <= room.tokens:
        return
    if least.tokens <= room.with_short_answers:
        raise AnswerTooLarge(needed=least.tokens, room=room.tokens, answer=room.answer, window=room.window)
    needed = least.words
    parts: tuple[tuple[int, type[TooLarge]], ...] = (
        (least.instructions, InstructionsTooLarge),
        (least.pins, PinsTooLarge),
        (least.attachments, AttachmentsTooLarge),
    )
    for size, error in parts:
        needed += size
        if needed > room.tokens:
            raise error(needed=needed, room=room.tokens, by_setting=room.by_setting)
