"""Whether a text can be the path of a file of ours at all, whatever the disk holds (WD-20, N34). Pure.

Strict on purpose, and the same on every system: a workspace may be copied to a disk where case, trailing dots or device names mean something.
"""

from __future__ import annotations

import re
import unicodedata

from memory.file_errors import PathRefused

MAX_BYTES = 512
NAME_MAX_BYTES = 200  # of 255: a date, a hash or an ending of ours must still fit
MAX_DEPTH = 8

# Control characters, what Windows forbids in names, and signs that turn the direction of a line or cannot be seen.
_FORBIDDEN = re.compile('[\x00-\x1f\x7f-\x9f<>:"|?*\\\\\ufeff\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufff9-\ufffb\ud800-\udfff]')
_UNSEEN = re.compile("[\u00ad\u034f\u180b-\u180e\u200c\u200d\ufe00-\ufe0f\U000e0000-\U000e0fff]")  # honest in names, but some disks ignore them
_DEVICE = re.compile(r"(?:con|prn|aux|nul|conin\$|conout\$|clock\$|com[0-9]|lpt[0-9])(?:\..*)?", re.IGNORECASE)


def parts_of(path: str) -> tuple[str, ...]:
    """The names in `path`, folders first. PathRefused unless it is relative, plain, visible, and ends in `.md`."""
    if not path or len(path.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise PathRefused(f"a path has 1 to {MAX_BYTES} bytes")
    if _FORBIDDEN.search(path):
        raise PathRefused('a path has no control characters, no backslash, and none of < > : " | ? *')
    parts = tuple(path.split("/"))
    if len(parts) > MAX_DEPTH:
        raise PathRefused(f"a path has at most {MAX_DEPTH} names")
    for part in parts:
        _check_name(part)
    if not parts[-1].endswith(".md") or parts[-1] == ".md":
        raise PathRefused("only Markdown files, ending in .md, can be reached")
    return parts


def folded(name: str) -> str:
    """`name` as a disk might compare it that cares neither for case and width nor for what cannot be seen."""
    return unicodedata.normalize("NFKC", _UNSEEN.sub("", name)).casefold().rstrip(". ")


def _check_name(name: str) -> None:
    if not name:
        raise PathRefused("a path is relative and has no empty names")
    if len(name.encode()) > NAME_MAX_BYTES:
        raise PathRefused(f"a name has at most {NAME_MAX_BYTES} bytes")
    seen = unicodedata.normalize("NFKC", _UNSEEN.sub("", name))
    if seen.startswith((".", "~")) or not seen.strip(". "):
        raise PathRefused("a path has no hidden names, no `..` and no `~`")
    if name != name.strip() or name.endswith("."):
        raise PathRefused("a name neither begins nor ends with a blank, nor ends with a dot")
    if _DEVICE.fullmatch(seen):
        raise PathRefused("this is the name of a device on some systems")
