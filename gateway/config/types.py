"""The kinds of values that the configuration knows beyond text, numbers and switches: addresses, secrets, ids, paths, time zones.

Each kind carries `Wants`, the words used both in a fault ("wanted …") and in docs/configuration.md, so that the two never differ.
"""

from __future__ import annotations

import base64
import binascii
import difflib
import ipaddress
import re
import zoneinfo
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, TypeAlias
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, StringConstraints

_LOGIN = re.compile(r"://(?P<user>[^/@\s:]*):(?P<password>[^/@\s]+)@")


@dataclass(frozen=True, slots=True)
class Wants:
    """What a key takes, as it follows "wanted"."""

    text: str


@dataclass(frozen=True, slots=True)
class SameAs:
    """A map whose entries have the keys of another section: documented there, once."""

    section: str


@dataclass(frozen=True, slots=True)
class Restart:
    """A changed value is taken up by the next start only; everything without this mark applies live (WO-31)."""


RESTART = Restart()


def hide_login(text: str) -> str:
    """`text` with the password of an address (`scheme://user:password@host`) shown as stars."""
    return _LOGIN.sub(lambda found: f"://{found['user']}:***@", text)


def logins(text: str) -> set[str]:
    """The passwords inside addresses."""
    return {found["password"] for found in _LOGIN.finditer(text)}


class Section(BaseModel):
    """A frozen group of keys: unknown keys and wrong types are errors, no value is converted ("8080" is not a port), no repr shows a password."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, hide_input_in_errors=True)

    def __repr_args__(self) -> list[tuple[str | None, object]]:  # pydantic's hook for repr and str
        return [(name, hide_login(value) if isinstance(value, str) else value) for name, value in super().__repr_args__()]


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a listener on `host` (WO-60)."""
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _zone(name: str) -> str:
    if name:
        try:
            zoneinfo.ZoneInfo(name)
        except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
            near = difflib.get_close_matches(name, zoneinfo.available_timezones(), 1, 0.5)
            raise ValueError("no such time zone" + (f'; did you mean "{near[0]}"?' if near else "")) from None
    return name


def _wall_time(text: str) -> str:
    if not re.fullmatch("([01][0-9]|2[0-3]):[0-5][0-9]", text):
        raise ValueError("is no time of day")
    return text


def _address(*schemes: str) -> Callable[[str], str]:
    def check(address: str) -> str:
        if address:
            parts = urlsplit(address)
            if parts.scheme not in schemes or not parts.hostname:
                raise ValueError(f"not an address that begins with {' or '.join(f'{scheme}://' for scheme in schemes)}")
            if parts.port == 0 or not address.isprintable() or " " in address:
                raise ValueError("not an address: a port of 0, a blank or a control character is in it")
        return address

    return check


def _secret(value: SecretStr) -> SecretStr:
    # A blank or line break copied along makes a header that no server accepts, with an error that names neither key nor cause.
    if not re.fullmatch(r"[!-~]*", value.get_secret_value()):
        raise ValueError("a blank, a line break or a character outside ASCII is in the secret")
    return value


def _aes_key(value: SecretStr) -> SecretStr:
    # By decoding, not by comparing a re-encoding: consoles hand out keys whose last character has spare bits set (WX-6).
    text = value.get_secret_value()
    try:
        fits = not text or (len(text) == 43 and len(base64.b64decode(text + "=", validate=True)) == 32)
    except (binascii.Error, ValueError):
        fits = False
    if not fits:
        raise ValueError(f"the key has {len(text)} characters or is no base64; the console shows 43")
    return value


def _host(host: str) -> str:
    # An empty host would mean every interface to the server library.
    if not re.fullmatch(r"[A-Za-z0-9.:%_-]+", host) or ("://" in host):
        raise ValueError("not a host name or an IP address (no scheme, no port, not empty)")
    if ":" in host:
        ipaddress.ip_address(host)
    return host


def _path(path: Path) -> Path:
    if not str(path).isprintable():
        raise ValueError("a control character is in the path")
    return path


def _web_path(path: str) -> str:
    if not re.fullmatch(r"/[A-Za-z0-9._~/-]*", path):
        raise ValueError("not a path that begins with / and has only letters, digits and . _ ~ / -")
    return path


def _prefix(prefix: str) -> str:
    signs = prefix and len(prefix) <= 3 and not any(char.isalnum() or char.isspace() for char in prefix)
    if not signs and not re.fullmatch(r"[^\W_][\w-]{0,15} ", prefix):
        raise ValueError("a prefix is 1 to 3 signs without letters, digits and blanks, or a word with one blank behind it, as \"cow \"")
    return prefix


def _listed(pattern: str, what: str) -> Callable[[str], str]:
    def check(entry: str) -> str:
        if entry != "*" and not re.fullmatch(pattern, entry):
            raise ValueError(f"lists hold ids, never names: {what}")
        return entry

    return check


_ENTRY = Wants('an id in quotes, or "*" for everybody')
_NUMERIC = AfterValidator(_listed(r"-?[0-9]{1,20}", 'digits in quotes such as "700666"'))
_WECHAT = AfterValidator(_listed(r"[!-~]+@[!-~]+", "they end in @im.wechat"))
_OPAQUE = AfterValidator(_listed(r"[A-Za-z0-9_.@-]{1,64}", "letters, digits, _ . @ -"))
NumericIds: TypeAlias = tuple[Annotated[str, _ENTRY, _NUMERIC], ...]
WeChatIds: TypeAlias = tuple[Annotated[str, _ENTRY, _WECHAT], ...]
OpaqueIds: TypeAlias = tuple[Annotated[str, _ENTRY, _OPAQUE], ...]
Id: TypeAlias = Annotated[
    str, Wants("an id of 1 to 64 letters, digits, _ . -"), StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]{0,63}$")
]
Zone: TypeAlias = Annotated[str, Wants("an IANA time zone, or empty"), AfterValidator(_zone)]
WallTime: TypeAlias = Annotated[str, Wants("a time of day such as 23:55"), AfterValidator(_wall_time)]
Url: TypeAlias = Annotated[str, Wants("an http(s) address, or empty"), AfterValidator(_address("http", "https"))]
SocketUrl: TypeAlias = Annotated[str, Wants("a ws(s) address, or empty"), AfterValidator(_address("ws", "wss"))]
Secret: TypeAlias = Annotated[SecretStr, Wants("a secret, best as ${NAME}"), AfterValidator(_secret)]
AesKey: TypeAlias = Annotated[SecretStr, Wants("a secret of 43 characters, best as ${NAME}"), AfterValidator(_aes_key)]
Host: TypeAlias = Annotated[str, Wants("a host name or an IP address"), AfterValidator(_host)]
Folder: TypeAlias = Annotated[Path, Wants("a folder"), AfterValidator(_path)]
WebPath: TypeAlias = Annotated[str, Wants("a path that begins with /"), AfterValidator(_web_path)]
HeaderName: TypeAlias = Annotated[str, Wants("the name of a header, or empty"), StringConstraints(pattern=r"^[A-Za-z0-9-]*$")]
HeaderValue: TypeAlias = Annotated[str, Wants("a text without blanks, or empty"), StringConstraints(pattern=r"^[!-~]*$")]
Prefix: TypeAlias = Annotated[str, Wants("1 to 3 signs, or a word and a blank"), AfterValidator(_prefix)]
HeadRows: TypeAlias = Annotated[
    Annotated[int, Field(ge=0, le=1000)] | Literal["all"], Wants('a whole number from 0 to 1000, or "all"')
]
