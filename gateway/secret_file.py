"""`secrets.env`: the one file of secrets that the gateway writes, and only when the owner asks for it (WO-3). Lines are `NAME=value`."""

from __future__ import annotations

import os
import re
import tempfile
from pathlib import Path

_LINE = re.compile(r"\s*(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=")


def put_secret(path: Path, name: str, value: str) -> None:
    """Set `name` to `value` in the file at `path`, every other line kept as it is. Atomic, and readable by the owner alone (0600).

    `value` is one line without blanks or quotes. Raises OSError when the file cannot be written and UnicodeDecodeError when the present one is no
    UTF-8; then it is as it was.
    """
    old = path.read_bytes().decode("utf-8-sig") if path.exists() else ""
    kept = "".join(line for line in old.splitlines(keepends=True) if not ((found := _LINE.match(line)) and found["name"] == name))
    text = kept + ("\n" if kept and not kept.endswith("\n") else "") + f"{name}={value}\n"
    handle, draft = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # made with mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise
