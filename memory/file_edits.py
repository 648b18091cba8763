"""What a tool's change makes of the text of a file: one passage for another, one line more, the whole anew. Pure, and byte for byte elsewhere (WD-4).

A model sees and writes \\n only; what it gives is brought into the file's own style at the end.
"""

from __future__ import annotations

import re

from memory import daily, lore
from memory.file_errors import FileRefused, SecretRefused, TooLarge
from memory.layout import Role, day_of
from memory.lines import as_bullet, entries
from memory.markdown_lines import BOM, appended, has_content, in_style_of, is_bullet, lines_of, new_lines, newline_of, open_fence, plain, unix
from memory.secret_patterns import find_secret
from memory.workspace import FILE_MAX_BYTES, LINE_MAX_CHARACTERS

BULLETED = frozenset({Role.CURATED, Role.DAILY, Role.ABOUT})
"""Roles whose files have one bullet for each thing (WD-4)."""

MUCH_LINES, MUCH_PERCENT = 3, 25

_SIGN = re.compile(r"\r\n|.", re.DOTALL)
_BLOCK = re.compile(r"[ \t]*(?:#{1,6}[ \t]|```|~~~|>|\||<!--|---[ \t]*$)")


class EditRefused(FileRefused):
    """The change does not fit the file as it is; the sentence says what to do."""


def edited(before: str, old: str, new: str) -> str:
    """`before` with the passage `old`, which must occur exactly once, said as `new`. EditRefused otherwise."""
    text, old, new = unix(before), unix(old), unix(new)
    times = _count(text, old)
    if times != 1:
        found = "is not in the file" if times == 0 else f"occurs {times} times"
        raise EditRefused(f"the passage `old` {found}: read the file with memory_get and give a longer passage exactly as it stands there")
    at = text.index(old)
    end = at + len(old)
    if not new and (at == 0 or text[at - 1] == "\n") and text[end : end + 1] == "\n":
        end += 1  # a line that goes takes its end along
    places = [found.start() for found in _SIGN.finditer(before, len(BOM) if before.startswith(BOM) else 0)] + [len(before)]
    return before[: places[at]] + new.replace("\n", newline_of(before)) + before[places[end] :]


def with_line(before: str, path: str, role: Role, line: str) -> str:
    """`before` and `line` at its end: right below a list that ends there, else after a blank line. A new daily file gets its title (WD-4)."""
    block = unix(line).strip("\n")
    if role in BULLETED and not is_bullet(block) and not _BLOCK.match(block):
        block = as_bullet(block)
    lines = lines_of(unix(before))
    in_list = bool(lines) and is_bullet(lines[-1]) and is_bullet(block) and not open_fence(before)
    if in_list:
        return in_style_of(before, unix(before).rstrip("\n") + "\n" + block + "\n")
    day = day_of(path) if role is Role.DAILY else None
    return appended(before, block, title=daily.title(day) if day else "")


def whole(before: str, text: str) -> str:
    """The file said anew; it ends with a line end."""
    text = unix(text)
    return in_style_of(before, text if not text or text.endswith("\n") else text + "\n")


def check(before: str, after: str, path: str, role: Role) -> None:
    """What a tool may make of a file (WD-18, WD-20, WD-22, WD-139). Raises EditRefused, TooLarge or SecretRefused.

    The workspace holds limits and secrets too; they stand here for a change that is only proposed.
    """
    if before != after and not has_content(after) and has_content(before):
        raise EditRefused(f"{path} would become empty: take out single lines with file_edit instead")
    if role is Role.DAILY and not _keeps_all(before, after):
        raise EditRefused(f"{path} is the record of a day, and what stands in it stays: only add a line (file_edit with an empty `old`)")
    if len(after.encode("utf-8", "surrogatepass")) > FILE_MAX_BYTES:
        raise TooLarge(f"{path} would have more than {FILE_MAX_BYTES:,} bytes: shorten it or begin another file")
    added = new_lines(before, after)
    if any(len(line) > LINE_MAX_CHARACTERS for line in added):
        raise TooLarge(f"a line of {path} would have more than {LINE_MAX_CHARACTERS:,} characters: cut it into several")
    if kind := find_secret("\n".join(added)):
        raise SecretRefused(kind)
    wanted = lore.front_matter(after).get("lore", "").lower()
    if role is Role.KNOWLEDGE and wanted and wanted not in set(lore.Lore):
        raise EditRefused(f"`lore` in the front matter is always, match or none, not {wanted[:40]!r}")


def takes_much(before: str, after: str) -> bool:
    """Whether more lines would go or be said anew than a tool may take by itself: a quarter of them, and always three."""
    there, stays = [entry.hash for entry in entries(before)], {entry.hash for entry in entries(after)}
    return sum(each not in stays for each in there) > max(MUCH_LINES, len(there) * MUCH_PERCENT // 100)


def title_of(path: str, text: str) -> str:
    """What a page is called in an index: its title in the front matter, its first heading, else its name."""
    heading = next((line.lstrip("#").strip() for line in lore.body(text).split("\n") if line.startswith("# ")), "")
    return lore.front_matter(text).get("title", "") or heading or path.rpartition("/")[2].removesuffix(".md")


def _keeps_all(before: str, after: str) -> bool:
    old, new = plain(before), plain(after)
    return new == old or not old or new.startswith(old + "\n")


def _count(text: str, part: str) -> int:
    """How often `part` occurs, overlapping places too: two places are two, however they lie."""
    return sum(1 for at in range(len(text) - len(part) + 1) if text.startswith(part, at)) if part else 0
