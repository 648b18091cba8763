"""What is a command and what is talk (CH-6, CH-112)."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from channels.message import visible
from gateway.command_line import CommandLine, parse

SLASH = ("/",)


@pytest.mark.parametrize(
    ("text", "name", "rest"),
    [
        ("/help", "help", ""),
        ("  /help\n", "help", ""),
        ("/HELP", "help", ""),
        ("/stop all", "stop", "all"),
        ("/steer shorter,\nplease", "steer", "shorter,\nplease"),
        ("/role@ manager", "", ""),
        ("/persona a/b", "persona", "a/b"),
        ("/总结 今天", "总结", "今天"),
        ("/要約 昨日の分", "要約", "昨日の分"),
        ("/new 한국어", "new", "한국어"),
        ("/quick-note x", "quick-note", "x"),
        (f"/{'a' * 32}", "a" * 32, ""),
    ],
)
def test_a_command_is_read_in_any_script(text: str, name: str, rest: str) -> None:
    line = parse(text, SLASH)
    assert (line.name, line.rest) == (name, rest) if name else line is None, line


@pytest.mark.parametrize(
    "text",
    [
        "", "/", "//", "/ help", "/_", "hello /help", "/etc/hosts", "/home/ada/notes.txt please read", "/a/b c", "1/2", f"/{'a' * 33}", "/!",
        "https://example.org/help", "\u200b", "/-x",
    ],
)  # fmt: skip
def test_talk_is_no_command(text: str) -> None:
    assert parse(text, SLASH) is None


@pytest.mark.rule("CH-6")
@pytest.mark.parametrize("mark", ["\u200b", "\u200c", "\u200d", "\u200e", "\u200f", "\u2060", "\ufeff", "\u00ad"])
@pytest.mark.parametrize("text", ["{0}/help", "/{0}help", "/he{0}lp", "/help{0}", "/help{0} x"])
def test_what_nobody_sees_does_not_hide_a_command(mark: str, text: str) -> None:
    line = parse(text.format(mark), SLASH)
    assert line is not None
    assert line.name == "help"


@pytest.mark.rule("CH-112")
@pytest.mark.parametrize(("text", "bot"), [("/help@other_bot", "other_bot"), ("/help@other_bot now", "other_bot"), ("/help", ""), ("/a@b/c", "b/c")])
def test_a_command_for_another_bot_says_for_which(text: str, bot: str) -> None:
    line = parse(text, SLASH)
    assert line is None if "/" in bot else line is not None and line.bot == bot


def test_a_prefix_of_ones_own_works_beside_the_slash() -> None:
    prefixes = ("/", "!", "cow ")
    assert parse("!help", prefixes) == CommandLine(prefix="!", name="help")
    assert parse("cow help me", prefixes) == CommandLine(prefix="cow ", name="help", rest="me")
    assert parse("cowhelp", prefixes) is None
    assert parse("!help", SLASH) is None


@given(name=st.from_regex(r"[a-z][a-z0-9_]{0,20}", fullmatch=True), rest=st.text(max_size=40))
def test_the_words_after_a_command_are_kept(name: str, rest: str) -> None:
    line = parse(f"/{name} {rest}", SLASH)
    assert line is not None
    assert line.name == name
    assert line.rest == visible(rest).strip()


@given(text=st.text(max_size=60))
def test_any_text_is_read_without_an_error(text: str) -> None:
    line = parse(text, SLASH)
    assert line is None or (line.prefix == "/" and line.name)
