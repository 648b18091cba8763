"""The one Markdown grammar of the gateway: CommonMark, tables and strikethrough, bent where strict CommonMark would lose or hide words.

- Raw HTML, link definitions and underlined headings are no markup here: what a model writes in their shape (`<b>`, `[note]: text`, a rule right under
  a paragraph) is meant to be read (CH-137).
- Links lead to `http`, `https` or `mailto`; anything else stays text (CH-137, WO-13).
- Emphasis works beside Chinese and Japanese punctuation: `**重要：**请` is bold, which CommonMark's word rules deny to languages without blanks.
- A table whose rows have more cells than its head is text, and so is nesting beyond a dozen levels: the library would drop what does not fit.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from typing import TypeAlias
from urllib.parse import quote

from markdown_it import MarkdownIt
from markdown_it.parser_block import RuleFuncBlockType
from markdown_it.parser_inline import ParserInline
from markdown_it.renderer import RendererHTML
from markdown_it.rules_block import StateBlock, blockquote, list_block, table
from markdown_it.rules_block.table import escapedSplit
from markdown_it.rules_inline import StateInline
from markdown_it.rules_inline.state_inline import Scanned
from markdown_it.token import Token
from markdown_it.utils import EnvType

from channels.units import is_wide

Tokens: TypeAlias = list[Token]

_DEEPEST = 12  # levels; a quote is one, a list two
_SCHEMES = ("http://", "https://", "mailto:")
_UNSAFE_IN_URL = re.compile(r"""[\s"'<>\\^`{|}]""")


class Parser(MarkdownIt):
    """Build once and share: parsing changes nothing in it. `without` names rules to leave out."""

    def __init__(self, without: Iterable[str] = (), renderer_cls: type[RendererHTML] = RendererHTML) -> None:
        super().__init__("commonmark", renderer_cls=renderer_cls)
        self.inline = _Inline()
        # The library's own guard drops blocks beyond its depth, so it stands behind ours; it also bounds the time spent on nested brackets.
        self.configure("commonmark", {"html": False, "maxNesting": _DEEPEST + 4, "breaks": True, "xhtmlOut": False})
        self.enable(["table", "strikethrough"])
        self.disable(["html_block", "html_inline", "reference", "lheading", *without])
        ends_prose = ["paragraph", "blockquote", "list"]
        self.block.ruler.at("table", _whole_table, {"alt": ["paragraph"]})
        self.block.ruler.at("blockquote", _shallow(blockquote), {"alt": ends_prose})
        self.block.ruler.at("list", _shallow(list_block), {"alt": ["paragraph", "blockquote"]})

    def validateLink(self, url: str) -> bool:
        return url.lower().startswith(_SCHEMES)

    def normalizeLink(self, url: str) -> str:
        """The address as written, but for characters that could end it early or hide in it; letters of any script stay readable."""
        return "".join(quote(c) if _UNSAFE_IN_URL.match(c) or unicodedata.category(c) in ("Cc", "Cf") else c for c in url)

    def normalizeLinkText(self, link: str) -> str:
        return link


class _Inline(ParserInline):
    def parse(self, src: str, md: MarkdownIt, env: EnvType, tokens: Tokens) -> Tokens:
        state = _State(src, md, env, tokens)
        self.tokenize(state)
        for rule in self.ruler2.getRules(""):
            rule(state)
        return state.tokens


class _State(StateInline):
    def scanDelims(self, start: int, canSplitWord: bool) -> Scanned:
        """As CommonMark, but a mark that touches a wide character on either side needs only a non-blank on its inner side."""
        scanned = super().scanDelims(start, canSplitWord)
        before = self.src[start - 1] if start else " "
        after = self.src[start + scanned.length : start + scanned.length + 1] or " "
        if not canSplitWord or not (is_wide(before) or is_wide(after)):
            return scanned
        return Scanned(scanned.can_open or not after.isspace(), scanned.can_close or not before.isspace(), scanned.length)


def _shallow(rule: RuleFuncBlockType) -> RuleFuncBlockType:
    def guarded(state: StateBlock, start: int, end: int, silent: bool) -> bool:
        return state.level < _DEEPEST and rule(state, start, end, silent)

    return guarded


def _whole_table(state: StateBlock, start: int, end: int, silent: bool) -> bool:
    known = len(state.tokens)
    if not table(state, start, end, silent):
        return False
    columns = sum(token.type == "th_open" for token in state.tokens[known:])
    if silent or all(_cells(state.getLines(line, line + 1, 0, False)) <= columns for line in range(start, state.line)):
        return True
    del state.tokens[known:]
    state.line = start
    return False


def _cells(row: str) -> int:
    cells = escapedSplit(row.strip())
    return len(cells) - (not cells[0]) - (len(cells) > 1 and not cells[-1])
