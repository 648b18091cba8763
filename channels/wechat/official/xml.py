"""The vendor's XML, in and out (WX-7, WX-8). Pure; only the standard library's expat, with everything that expands or nests without end refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from xml.parsers import expat

from channels.wechat.crypto import Step, Unverified

BYTES_MAX = 1_000_000
DEPTH_MAX = 16
# Whatever XML 1.0 has no place for, lone surrogates included.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def read(document: bytes) -> dict[str, str]:
    """The texts of the elements right under the root, as they stand: nothing stripped, empty is "", numbers stay text.

    Of an element that comes twice the last counts; what lies deeper is joined to a path (`ScanCodeInfo/ScanType`). Unverified for what is no XML, has
    a DTD or entities of its own, is too large or too deep.
    """
    if len(document) > BYTES_MAX:
        raise Unverified(Step.DOCUMENT)
    found: dict[str, str] = {}
    names: list[str] = []
    texts: list[list[str]] = []

    def begin(name: str, _attributes: Mapping[str, str]) -> None:
        if len(names) >= DEPTH_MAX:
            raise Unverified(Step.DOCUMENT)
        names.append(name)
        texts.append([])

    def end(_name: str) -> None:
        text = "".join(texts.pop())
        if len(names) > 1:
            found["/".join(names[1:])] = text
        names.pop()

    def characters(text: str) -> None:
        texts[-1].append(text)

    def refuse(*_: object) -> None:
        raise Unverified(Step.DOCUMENT)

    parser = expat.ParserCreate()
    parser.buffer_text = True
    parser.StartElementHandler = begin
    parser.EndElementHandler = end
    parser.CharacterDataHandler = characters
    parser.StartDoctypeDeclHandler = refuse
    parser.EntityDeclHandler = refuse
    try:
        parser.Parse(document, True)
    except (expat.ExpatError, LookupError, ValueError):  # the latter two: of an encoding that it names and that expat cannot read
        raise Unverified(Step.DOCUMENT) from None
    return found


def write(fields: Mapping[str, str | int]) -> str:
    """A document of one level: texts as CDATA, numbers plain. What XML cannot hold is dropped."""
    return f"<xml>{''.join(_element(name, value) for name, value in fields.items())}</xml>"


def _element(name: str, value: str | int) -> str:
    return f"<{name}>{value}</{name}>" if isinstance(value, int) else f"<{name}>{_cdata(value)}</{name}>"


def _cdata(text: str) -> str:
    allowed = _FORBIDDEN.sub("", text).replace("]]>", "]]]]><![CDATA[>")
    return f"<![CDATA[{allowed}]]>"
