"""`${NAME}` in the texts of config.json: from the environment, else from `secrets.env` beside the file (WO-3, WO-33); and paths made absolute."""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from gateway.config.checks import Finding
from gateway.jsonfile import Json, KeyPath

SECRETS_FILE = "secrets.env"

_REFERENCE = re.compile(r"\$(?P<escaped>\$)?\{(?P<name>[^{}]*)(?P<end>\})?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_BARE = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*)")
_ASSIGNMENT = re.compile(r"(?:export\s+)?(?P<name>[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(?P<value>.*)")


@dataclass(slots=True, kw_only=True)
class Variables:
    """Where values come from: `env`, then `secrets`. What was used, and what was missing, is noted by path."""

    env: Mapping[str, str]
    secrets: Mapping[str, str]
    used: dict[KeyPath, str] = field(default_factory=dict[KeyPath, str])
    findings: list[Finding] = field(default_factory=list[Finding])

    def expand(self, value: Json, path: KeyPath = ()) -> Json:
        """A copy of `value` with every reference in its texts replaced; `$${NAME}` stays as `${NAME}`."""
        match value:
            case str():
                return _REFERENCE.sub(lambda found: self._replace(found, path), value)
            case list():
                return [self.expand(item, (*path, index)) for index, item in enumerate(value)]
            case dict():
                return {key: self.expand(item, (*path, key)) for key, item in value.items()}
            case _:
                return value

    def folder(self, text: str, base: Path, path: KeyPath) -> str:
        """An absolute path: `$NAME` and `~` expanded, a relative one counted from `base` (WD-1)."""
        text = _BARE.sub(lambda found: self._lookup(found[1], path), text)
        home = self.env.get("HOME", "")
        if home and (text == "~" or text.startswith("~/")):
            text = home + text[1:]
        folder = os.path.normpath(base / os.path.expanduser(text))  # noqa: PTH111 (Path.expanduser raises for an unknown user)
        if _undecodable(folder):
            self.findings.append(Finding(path=path, message="the folder's name is not UTF-8"))
            return str(base.root)
        return folder

    def _replace(self, found: re.Match[str], path: KeyPath) -> str:
        if found["escaped"]:
            return found.group()[1:]
        if not found["end"] or not _NAME.fullmatch(found["name"]):
            hint = "write ${NAME} with letters, digits and _, or $${ for the signs themselves"
            self.findings.append(Finding(path=path, message="${ begins no name of a variable", hint=hint))
            return ""
        return self._lookup(found["name"], path)

    def _lookup(self, name: str, path: KeyPath) -> str:
        self.used[path] = name
        # An empty variable is what container tools pass for an unset one: it does not hide the file's value.
        value = self.env.get(name) or self.secrets.get(name, self.env.get(name))
        if value is None:
            hint = f"set it in the environment, or add a line {name}=… to {SECRETS_FILE} beside the file"
            self.findings.append(Finding(path=path, message=f"the variable {name} is not set", hint=hint))
        elif _undecodable(value):
            self.findings.append(Finding(path=path, message=f"the variable {name} is not UTF-8"))
        else:
            return value
        return ""


def _undecodable(text: str) -> bool:
    # Bytes of the environment that are no UTF-8 come as lone surrogates.
    return any(0xD800 <= ord(char) < 0xE000 for char in text)


@dataclass(frozen=True, slots=True, kw_only=True)
class EnvFault:
    """A fault of the file of secrets. `line` is 0 when the whole file is meant; the text never holds a value."""

    line: int
    message: str
    hint: str = ""


def open_regular(path: Path) -> BinaryIO:
    """`path` for reading, without ever waiting: a pipe or device of that name is an OSError, not a stop for ever."""
    opened = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(opened.fileno()).st_mode):
        opened.close()
        raise OSError(errno.EINVAL, "it is no regular file")
    return opened


def read_secrets(path: Path) -> tuple[dict[str, str], list[EnvFault]]:
    """The assignments of a `secrets.env` (NAME=value, optional quotes, `#` comment lines); a file that does not exist is empty. Never raises."""
    try:
        with open_regular(path) as opened:
            text = opened.read().decode("utf-8-sig")
        mode = stat.S_IMODE(path.stat().st_mode)
    except FileNotFoundError:
        return {}, []
    except (OSError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror or "it cannot be read"
        return {}, [EnvFault(line=0, message=f"the file of secrets was not read: {reason}")]
    faults: list[EnvFault] = []
    if os.name == "posix" and mode & 0o077:
        faults.append(EnvFault(line=0, message=f"others can read the file of secrets (mode {mode:04o})", hint=f"chmod 600 {path.name}"))
    values: dict[str, str] = {}
    for number, row in enumerate(text.splitlines(), 1):
        line = row.strip()
        if not line or line.startswith("#"):
            continue
        found = _ASSIGNMENT.fullmatch(line)
        if found is None:
            faults.append(EnvFault(line=number, message="this line is no assignment", hint="write NAME=value"))
            continue
        if found["name"] in values:
            faults.append(EnvFault(line=number, message=f"{found['name']} is set twice; the last one counts", hint="delete one"))
        value = found["value"]
        quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
        values[found["name"]] = value[1:-1] if quoted else value
    return values, faults
