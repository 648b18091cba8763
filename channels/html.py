"""A model's Markdown as HTML for the web page, safe whatever it holds (WO-13, WP-14 to WP-16).

Two walls: the parser knows no raw HTML and no address but `http`, `https` and `mailto`, and what it makes passes an allow list once more.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import nh3
from markdown_it.common.utils import escapeHtml
from markdown_it.renderer import RendererHTML
from markdown_it.rules_core import StateCore
from markdown_it.token import Token
from markdown_it.utils import EnvType, OptionsDict

from channels.message import clean
from channels.parser import Parser
from channels.partial import closed

_DIRECTED = ("p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "li", "blockquote")
_BARE = ("br", "em", "hr", "pre", "s", "strong", "table", "tbody", "thead", "tr")

ALLOWED: dict[str, set[str]] = {
    "*": set(),
    "a": {"href", "target"},  # and `rel`, which the sanitiser sets itself
    "code": {"class"},
    "div": {"class", "data-language"},
    "ol": {"start", "dir"},
    "span": {"class"},
    "td": {"class", "dir"},
    "th": {"class", "dir"},
    **{tag: {"dir"} for tag in _DIRECTED},
    **{tag: set[str]() for tag in _BARE},
}


def to_html(markdown: str) -> str:
    """Sanitised HTML of `markdown`. Never raises. Blocks take their direction from their own words (`dir="auto"`).

    A code block is `<div class="code" data-language="python"><pre><code class="language-python">`: the page puts its copy button into the `div`.
    """
    return _CLEANER.clean(_PARSER.render(clean(markdown)))


def snapshot_html(partial: str) -> str:
    """`to_html` of a text that is still arriving: whole graphemes only, open fences and emphasis closed for display (CH-98). Never raises."""
    return to_html(closed(partial))


# WP-16: what reorders text around itself is shown by name. The plain marks U+200E, U+200F and U+061C are ordinary in right-to-left writing and stay.
_REORDERING = re.compile("[\u202a-\u202e\u2066-\u2069]")
_LANGUAGE = re.compile(r"[\w+#.-]{1,40}", re.ASCII)
_ADDRESS = re.compile(r"https?://(?=[a-z0-9])[^\s<>\"`\[\]\u0080-\U0010ffff]+", re.IGNORECASE)  # beside Chinese and Japanese no blank ends an address
_TRAILING = ".,;:!?'*_~]}"


def _shown(text: str) -> str:
    return _REORDERING.sub(lambda found: f'<span class="control">U+{ord(found[0]):04X}</span>', escapeHtml(text))


class _Page(RendererHTML):
    def text(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return _shown(tokens[idx].content)

    def code_inline(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return f"<code>{_shown(tokens[idx].content)}</code>"

    def code_block(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        return self.fence(tokens, idx, options, env)

    def fence(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        code = _shown(tokens[idx].content)
        if found := _LANGUAGE.match(tokens[idx].info.strip()):
            return f'<div class="code" data-language="{found[0]}"><pre><code class="language-{found[0]}">{code}</code></pre></div>\n'
        return f'<div class="code"><pre><code>{code}</code></pre></div>\n'

    def image(self, tokens: Sequence[Token], idx: int, options: OptionsDict, env: EnvType) -> str:
        """A picture becomes a link, or plain words inside one: nothing is fetched without a click (WP-15)."""
        token = tokens[idx]
        url = str(token.attrs["src"])
        alt = self.renderInlineAsText(token.children, options, env).strip()
        if _in_link(tokens[:idx]):
            return _shown(f"{alt} ({url})" if alt else url)
        return f'<a href="{escapeHtml(url)}">{_shown(alt or url)}</a>'


def _in_link(before: Iterable[Token]) -> bool:
    return sum(token.nesting for token in before if token.tag == "a") > 0


def _direct(state: StateCore) -> None:
    """Give each block its own direction, and cells their alignment as a class: inline styles are barred by the page's policy."""
    for token in state.tokens:
        if token.nesting == 1 and "dir" in ALLOWED.get(token.tag, ()):
            align = str(token.attrs.pop("style", "")).removeprefix("text-align:")
            token.attrs |= {"dir": "auto"} | ({"class": align} if align else {})


def _link(state: StateCore) -> None:
    """Turn bare addresses into links; chat clients do this by themselves, a page does not."""
    for token in state.tokens:
        if token.children and "://" in token.content:
            token.children = list(_linked(token.children, state.md.normalizeLink))


def _linked(tokens: Iterable[Token], normalised: Callable[[str], str]) -> Iterator[Token]:
    links = 0
    for token in tokens:
        links += token.nesting * (token.tag == "a")
        if links or token.type != "text":
            yield token
            continue
        at = 0
        for found in _ADDRESS.finditer(token.content):
            url = _address(found[0])
            yield _words(token.content[at : found.start()])
            yield Token("link_open", "a", 1, attrs={"href": normalised(url)})
            yield _words(url)
            yield Token("link_close", "a", -1)
            at = found.start() + len(url)
        yield _words(token.content[at:])


def _address(text: str) -> str:
    """`text` without the sentence's own punctuation; a closing bracket belongs to the address when its opening one does."""
    unopened, end = text.count(")") - text.count("("), len(text)
    while end and (text[end - 1] in _TRAILING or (text[end - 1] == ")" and unopened > 0)):
        end -= 1
        unopened -= text[end] == ")"
    return text[:end]


def _words(text: str) -> Token:
    return Token("text", "", 0, content=text)


def _parser() -> Parser:
    parser = Parser(renderer_cls=_Page)
    parser.core.ruler.push("link", _link)
    parser.core.ruler.push("direct", _direct)
    return parser


_PARSER = _parser()
_CLEANER = nh3.Cleaner(
    tags=set(ALLOWED) - {"*"},
    attributes=ALLOWED,
    url_schemes={"http", "https", "mailto"},
    url_relative="deny",
    link_rel="noopener noreferrer",
    set_tag_attribute_values={"a": {"target": "_blank"}},
)
