"""Program lines of a daily file made anew: a message was edited or deleted (WD-59), or a summary takes a fallback's place (WD-45). Pure."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from memory.lines import entries, line_hash
from memory.markdown_lines import lines_of, newline_of


def restated(text: str, gone: Collection[str], lines: Sequence[str]) -> str:
    """`text` with `lines` as bullets in the place of the first entry whose hash is in `gone`, without the others; every other byte stays. A line that
    stands elsewhere in the file is not said twice.

    Where none of them stands any more a person has removed them, and nothing is put back (WD-19); so a repeated call changes nothing.
    """
    there = entries(text)
    found = [entry for entry in there if entry.hash in gone]
    if not found:
        return text
    staying = {entry.hash for entry in there if entry.hash not in gone}
    newline = newline_of(text)
    cut = {number for entry in found for number in range(entry.first, entry.last + 1)}
    kept: list[str] = []
    for number, line in enumerate(lines_of(text), start=1):
        if number == found[0].first:
            kept += [f"- {new}{newline}" for new in lines if line_hash(new) not in staying]
        if number not in cut:
            kept.append(line)
    return "".join(kept)
