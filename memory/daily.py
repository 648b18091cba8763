"""What one summary adds to a day's file (WD-4, WD-18): a section, under it when and which conversation, one bullet per event. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date, time

from memory.markdown_lines import holds_block, last_heading, one_line
from memory.texts import Section

LABEL_MAX = 80  # characters


def title(day: date) -> str:
    return f"# Daily Memory: {day.isoformat()}"


def bullet(text: str) -> str:
    """One event as the text of one line, without the dash in front; empty when nothing is left."""
    line = one_line(text)
    return line[2:].lstrip() if line.startswith(("- ", "* ", "+ ")) else "" if line in ("-", "*", "+") else line


def block(old: str, section: Section, label: str, at: time, bullets: Sequence[str]) -> str:
    """The lines to put behind `old`; empty when it has them already, as after a job that died between writing and saying so.

    Several conversations of one run stand under one heading of the section.
    """
    entry = f"### {at:%H:%M} {one_line(label)[:LABEL_MAX]}".rstrip() + "\n\n" + "".join(f"- {line}\n" for line in bullets)
    if holds_block(old, entry):
        return ""
    return entry if last_heading(old, 2) == section else f"## {section}\n\n{entry}"
