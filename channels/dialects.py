"""How each platform writes what Markdown means, as data: one `Dialect` per `Markup`."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from channels.markdown import Style
from channels.port import Markup


class Links(StrEnum):
    """A link's address stands in marks `[text](address)`, in words `text (address)`, or beside the text as an entity."""

    MARKS = "marks"
    WORDS = "words"
    ENTITIES = "entities"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dialect:
    """`styles`: what stands on both sides of emphasis; a style that is missing shows its words alone.

    `entities`: emphasis, code and quotes travel beside the text. `fences`: code is fenced, else indented (or an entity). `bullet`: replaces the
    list mark as written. `headings`: deepest level that keeps its `#`; deeper ones are bold. `native_tables`: pipes stay pipes. `as_spelled`:
    backslash escapes stay. `literal`: what must be escaped to stay literal, beyond what the writer of the text had to. `swaps`: characters replaced
    outside code.
    """

    styles: Mapping[Style, str] = field(default_factory=dict[Style, str])
    entities: bool = False
    fences: bool = False
    bullet: str = ""
    quote: str = "> "
    links: Links = Links.WORDS
    headings: int = 0
    native_tables: bool = False
    as_spelled: bool = False
    literal: re.Pattern[str] | None = None
    swaps: Mapping[int, str] = field(default_factory=dict[int, str])


_PLAIN = Dialect(bullet="•")  # CH-140

_ENTITIES = Dialect(entities=True, bullet="•", quote="", links=Links.ENTITIES)  # CH-138

_MARKDOWN = Dialect(  # CH-137, CH-139: what Discord has beyond CommonMark (spoilers, small print) is nothing a model meant
    styles={Style.STRONG: "**", Style.EM: "*", Style.STRIKE: "~~"},
    fences=True,
    links=Links.MARKS,
    headings=3,
    as_spelled=True,
    literal=re.compile(r"\|\||```|^-#(?= )", re.MULTILINE),
)

_LIGHT = Dialect(  # WX-39: that client hides what follows a bare `<`
    styles={Style.STRONG: "**", Style.EM: "*"},
    fences=True,
    quote="＞ ",
    headings=4,
    native_tables=True,
    swaps={ord("<"): "＜", ord(">"): "＞"},
)

DIALECTS: Mapping[Markup, Dialect] = {
    Markup.PLAIN: _PLAIN,
    Markup.ENTITIES: _ENTITIES,
    Markup.MARKDOWN: _MARKDOWN,
    Markup.LIGHT: _LIGHT,
    Markup.HTML: replace(_MARKDOWN, headings=6, native_tables=True, literal=None),  # the page renders Markdown itself (WO-13)
}
