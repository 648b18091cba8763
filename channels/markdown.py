"""Markdown as a small tree of frozen values, parsed once for every channel (CH-130).

Blocks nest (`Quote`, `List`); the words of a leaf are flat `Run`s, each with the marks around it. `breaks` of a leaf is how many line ends stood
between it and the leaf before it (0 for the first), so that a text keeps the spacing its writer chose.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from markdown_it.token import Token

from channels.message import clean
from channels.parser import Parser


class Style(StrEnum):
    STRONG = "strong"
    EM = "em"
    STRIKE = "strike"
    LINK = "link"


@dataclass(frozen=True, slots=True, eq=False)
class Mark:
    """One stretch of emphasis, or one link to `url`. Compared by identity: two bold stretches side by side are two."""

    style: Style
    url: str = ""


@dataclass(frozen=True, slots=True)
class Run:
    """Words under the same marks, outermost first and at most one of each style.

    `spelled` is how the source wrote them (`\\*` for `*`). `ticks` is the fence of inline code, empty outside code. A solid run is not cut when it
    fits a piece (CH-134).
    """

    text: str
    spelled: str
    marks: tuple[Mark, ...] = ()
    ticks: str = ""
    solid: bool = False


Runs: TypeAlias = tuple[Run, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    breaks: int
    runs: Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    breaks: int
    level: int
    runs: Runs


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """`fence` is its closing line (three or more of one character), `info` what follows it on the opening line, `text` has no last line end."""

    breaks: int
    fence: str
    info: str
    text: str

    @property
    def language(self) -> str:
        return (self.info.split() or [""])[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    breaks: int
    spelled: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`aligns` has one of `left`, `center`, `right` or nothing for each column; every row has as many cells as the head."""

    breaks: int
    head: tuple[Runs, ...]
    rows: tuple[tuple[Runs, ...], ...]
    aligns: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Quote:
    blocks: tuple[Block, ...]

    @property
    def breaks(self) -> int:
        return self.blocks[0].breaks


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """`mark` as written: `-`, `*`, `+`, `3.` or `3)`."""

    mark: str
    blocks: tuple[Block, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class List:
    items: tuple[Item, ...]

    @property
    def breaks(self) -> int:
        return self.items[0].blocks[0].breaks


Block: TypeAlias = Paragraph | Heading | Code | Rule | Table | Quote | List


def parse(text: str) -> tuple[Block, ...]:
    """The block tree of `text` (cleaned per CH-6 first). Never raises; blank text has no blocks."""
    return _Reader(_PARSER.parse(clean(text))).blocks("")


def tail(text: str) -> str:
    """The source of the last leaf when it is running text, else nothing: the place where half-written emphasis can be open (CH-98)."""
    leaves = [token for token in _OUTLINE.parse(text) if token.type in ("inline", "fence", "code_block", "hr")]
    return leaves[-1].content if leaves and leaves[-1].type == "inline" else ""


def without_marks(line: str) -> str:
    """What one line says, without its emphasis, code marks and addresses of links. Marks that open nothing stay."""
    return "".join(run.text for token in _PARSER.parseInline(clean(line)) for run in _runs(token.children or []))


# Line ends and escapes stay in the text as written: text channels show them, and only the page wants them as tags.
_PARSER = Parser(without=["newline", "text_join"])
_OUTLINE = Parser(without=["inline"])

_STYLES = {"strong_open": Style.STRONG, "em_open": Style.EM, "s_open": Style.STRIKE, "link_open": Style.LINK}


class _Reader:
    """Walks the library's flat tokens once, front to back."""

    def __init__(self, tokens: Sequence[Token]) -> None:
        self.tokens: Iterator[Token] = iter(tokens)
        self.line = -1  # the line after the last leaf; -1 before the first

    def blocks(self, until: str) -> tuple[Block, ...]:
        found: list[Block] = []
        for token in self.tokens:
            if token.type == until:
                break
            found.append(self.block(token))
        return tuple(found)

    def block(self, token: Token) -> Block:
        match token.type:
            case "blockquote_open":
                return Quote(blocks=self.filled(token, "blockquote_close"))
            case "bullet_list_open" | "ordered_list_open":
                return List(items=tuple(self.items(token.type.replace("open", "close"))))
            case "table_open":
                return self.table(self.breaks(token))
            case "heading_open":
                return Heading(breaks=self.breaks(token), level=int(token.tag[1:]), runs=self.words())
            case "fence":
                text = token.content.removesuffix("\n")
                return Code(breaks=self.breaks(token), fence=token.markup, info=token.info, text=text)
            case "code_block":
                text = token.content.removesuffix("\n")
                return Code(breaks=self.breaks(token), fence=fence_around(text), info="", text=text)
            case "hr":
                return Rule(breaks=self.breaks(token), spelled=token.markup[1:])  # the library counts one mark too many
            case _:
                return Paragraph(breaks=self.breaks(token), runs=self.words())

    def filled(self, token: Token, until: str) -> tuple[Block, ...]:
        """The blocks of a container; an empty one gets an empty paragraph, so that it has a place in the text."""
        return self.blocks(until) or (Paragraph(breaks=self.breaks(token), runs=()),)

    def items(self, until: str) -> Iterator[Item]:
        for token in self.tokens:
            if token.type == until:
                break
            yield Item(mark=token.info + token.markup, blocks=self.filled(token, "list_item_close"))

    def table(self, breaks: int) -> Table:
        rows: list[list[Runs]] = []
        aligns: list[str] = []
        for token in self.tokens:
            match token.type:
                case "table_close":
                    break
                case "tr_open":
                    rows.append([])
                case "th_open" | "td_open":
                    aligns.append(str(token.attrs.get("style", "")).removeprefix("text-align:"))
                    rows[-1].append(self.words())
                case _:
                    pass
        head, *body = map(tuple, rows)
        return Table(breaks=breaks, head=head, rows=tuple(body), aligns=tuple(aligns[: len(head)]))

    def words(self) -> Runs:
        """The runs of the inline token that comes next, and past the token that closes its parent."""
        inline = next(self.tokens)
        next(self.tokens)
        return tuple(_runs(inline.children or []))

    def breaks(self, token: Token) -> int:
        start, end = token.map or (self.line, self.line)
        breaks = start - self.line + 1 if self.line >= 0 else 0
        self.line = end
        return breaks


def _runs(tokens: Sequence[Token]) -> Iterator[Run]:
    marks: list[Mark] = []
    opened: list[bool] = []
    for token in tokens:
        match token.type:
            case "text":
                if token.content:
                    yield Run(token.content, token.content, tuple(marks))
            case "text_special":
                yield Run(token.content, token.markup if token.info == "escape" else token.content, tuple(marks))
            case "code_inline":
                yield Run(token.content, token.content, tuple(marks), ticks=token.markup, solid=True)
            case "image":
                words = _image_words(token)
                yield Run(words, words, tuple(marks), solid=True)
            case "hardbreak":
                yield Run("\n", "\n", tuple(marks))
            case _ if token.nesting > 0:
                style = _STYLES[token.type]
                opened.append(all(mark.style is not style for mark in marks))
                if opened[-1]:
                    marks.append(Mark(style, str(token.attrs.get("href", ""))))
            case _:
                if opened.pop():
                    marks.pop()


def _image_words(token: Token) -> str:
    """CH-137: a picture becomes its text and address."""
    alt, url = "".join(run.text for run in _runs(token.children or [])), str(token.attrs["src"])
    return f"{alt} ({url})" if alt.strip() else url


def fence_around(text: str) -> str:
    """A fence of backticks longer than any in `text`."""
    fence = "```"
    while fence in text:
        fence += "`"
    return fence
