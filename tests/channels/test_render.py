"""What a person reads on each platform when a model has answered in Markdown."""

import re
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from channels.markdown import Code, parse
from channels.port import Capabilities, Markup, TextUnit
from channels.render import SILENT, Piece, is_silent, render
from channels.units import measure

TELEGRAM = Capabilities(text_unit=TextUnit.UTF16, text_max=4096, markup=Markup.ENTITIES, caption_max=1024, media_max_bytes=50_000_000)
DISCORD = Capabilities(text_unit=TextUnit.UTF16, text_max=2000, markup=Markup.MARKDOWN, media_max_bytes=10_000_000)
ILINK = Capabilities(text_unit=TextUnit.UTF16, text_max=1800, markup=Markup.LIGHT)
OFFICIAL = Capabilities(text_unit=TextUnit.BYTES, text_max=2048, markup=Markup.PLAIN)
WEB = Capabilities(text_unit=TextUnit.CODEPOINTS, text_max=100_000, markup=Markup.HTML)
ALL = pytest.mark.parametrize("capabilities", [TELEGRAM, DISCORD, ILINK, OFFICIAL, WEB], ids=lambda value: value.markup)

FENCE = "```"

PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # a shared machine may pause


def texts(text: str, capabilities: Capabilities) -> list[str]:
    return [piece.text for piece in render(text, capabilities)]


def one(text: str, capabilities: Capabilities) -> str:
    (piece,) = texts(text, capabilities)
    return piece


def marked(piece: Piece) -> list[tuple[str, str]]:
    """Each entity as (type, the words under it), read the way Telegram counts."""
    units = piece.text.encode("utf-16-le")
    return [(e.type, units[2 * e.offset : 2 * (e.offset + e.length)].decode("utf-16-le")) for e in piece.entities]


def small(capabilities: Capabilities, limit: int) -> Capabilities:
    return replace(capabilities, text_max=limit)


# Blank and silent


@ALL
@pytest.mark.rule("CH-141")
@pytest.mark.parametrize("text", ["", " \n\t", "\u200b", "\u200b\n\ufeff", "\x00"])
def test_a_blank_reply_sends_nothing(text: str, capabilities: Capabilities) -> None:
    assert render(text, capabilities) == []


@ALL
@pytest.mark.rule("CH-141", "CH-31")
def test_no_nul_and_no_half_character_ever_leaves(capabilities: Capabilities) -> None:
    assert one("a\x00b \ud83d مرحبا 你好 😀", capabilities) == "ab \ufffd مرحبا 你好 😀"


@pytest.mark.rule("CH-144")
@pytest.mark.parametrize(("text", "silent"), [(SILENT, True), (f"{SILENT}\n", True), (f"I say {SILENT}.", False), (SILENT * 2, False), ("", False)])
def test_only_a_reply_that_is_nothing_but_the_silent_token_says_nothing(text: str, silent: bool) -> None:
    assert is_silent(text) is silent


# Literal text


@pytest.mark.rule("CH-137")
@pytest.mark.case("TG-05", "TG-07")
@pytest.mark.parametrize("capabilities", [TELEGRAM, OFFICIAL], ids=["telegram", "official"])
@pytest.mark.parametrize("text", ["a || b || c", "<b>x</b>", "**bold without end and a_b*c", "2 * 3 * 4", "snake_case", "[注意]: 今天很热"])
def test_what_is_no_markup_arrives_as_written(text: str, capabilities: Capabilities) -> None:
    assert render(text, capabilities) == [Piece(text)]


@pytest.mark.rule("CH-137", "CH-139")
def test_on_discord_pipes_are_no_spoiler_and_tags_stay() -> None:
    assert one("a || b || c <b>x</b>", DISCORD) == r"a \|\| b \|\| c <b>x</b>"
    assert one("@everyone and <@&123> snake_case", DISCORD) == "@everyone and <@&123> snake_case"
    assert one("-# not small", DISCORD) == r"\-\# not small"


@pytest.mark.case("TG-07")
def test_a_heading_is_bold_on_telegram_and_gains_nothing() -> None:
    (piece,) = render("# Title **x**", TELEGRAM)
    assert (piece.text, marked(piece)) == ("Title x", [("bold", "Title x")])


@ALL
@pytest.mark.rule("CH-131")
def test_spacing_and_line_ends_stay_as_chosen(capabilities: Capabilities) -> None:
    text = "eins\nzwei\n\n\ndrei\n   vier"
    assert one(text, capabilities) == text


# Links and pictures


@pytest.mark.rule("CH-137", "CH-140")
def test_a_link_is_kept_in_the_way_each_platform_knows() -> None:
    text = "see [the docs](https://e.com/a_(b)) now"
    (piece,) = render(text, TELEGRAM)
    assert piece.text == "see the docs now"
    assert [(e.type, e.url) for e in piece.entities] == [("text_link", "https://e.com/a_(b)")]
    assert one(text, DISCORD) == "see [the docs](https://e.com/a_%28b%29) now"
    assert one(text, OFFICIAL) == one(text, ILINK) == "see the docs (https://e.com/a_(b)) now"


@pytest.mark.rule("CH-137")
@pytest.mark.parametrize("capabilities", [TELEGRAM, DISCORD, OFFICIAL], ids=lambda value: value.markup)
@pytest.mark.parametrize("url", ["javascript:alert(1)", "ftp://e.com/x", "file:///etc/passwd", "./local.md", "tg://user?id=1", "data:text/html,x"])
def test_a_link_to_anywhere_but_web_and_mail_is_shown_as_text(url: str, capabilities: Capabilities) -> None:
    assert render(f"[x]({url})", capabilities) == [Piece(f"[x]({url})")]


@pytest.mark.rule("CH-137")
@pytest.mark.parametrize("capabilities", [TELEGRAM, DISCORD, ILINK, OFFICIAL], ids=lambda value: value.markup)
def test_a_picture_becomes_its_text_and_address(capabilities: Capabilities) -> None:
    assert one("![猫 *cat*](https://e.com/c.png)", capabilities) == "猫 cat (https://e.com/c.png)"
    assert one("![](https://e.com/c.png)", capabilities) == "https://e.com/c.png"


def test_an_address_given_as_itself_is_written_once() -> None:
    for capabilities in (TELEGRAM, DISCORD, OFFICIAL):
        assert one("<https://e.com/日本> <a@b.example>", capabilities) == "https://e.com/日本 a@b.example"


def test_a_mail_address_is_readable_where_it_cannot_be_linked() -> None:
    assert render("[Ada](mailto:ada@example.org)", TELEGRAM) == [Piece("Ada (mailto:ada@example.org)")]


# Emphasis, code, quotes, lists


@pytest.mark.rule("CH-138")
def test_entities_count_in_utf16_units_whatever_stands_before_them() -> None:
    (piece,) = render("😀🇩🇪1️⃣ **太字** *مرحبا* ~~x~~ `a||b` **[l](https://e.com)**", TELEGRAM)
    assert marked(piece) == [
        ("bold", "太字"),
        ("italic", "مرحبا"),
        ("strikethrough", "x"),
        ("code", "a||b"),
        ("bold", "l"),
        ("text_link", "l"),
    ]
    assert piece.entities[0].offset == 2 + 4 + 3 + 1


@pytest.mark.parametrize("text", ["**重要：**请看", "です**「重要」**です", "**注意！**次に"])
def test_chinese_and_japanese_emphasis_needs_no_blanks(text: str) -> None:
    (piece,) = render(text, TELEGRAM)
    assert "*" not in piece.text
    assert [kind for kind, _ in marked(piece)] == ["bold"]


def test_code_inside_bold_is_code_alone_as_telegram_demands() -> None:
    (piece,) = render("**a `b` c**", TELEGRAM)
    assert marked(piece) == [("bold", "a"), ("code", "b"), ("bold", "c")]


@pytest.mark.rule("CH-140")
def test_a_plain_channel_shows_no_stray_marks() -> None:
    text = f"# 標題\n\n**bold** *it* ~~s~~ `c`\n\n* one\n* two\n\n3. three\n4. four\n\n{FENCE}py\nx = 1\n\ny\n{FENCE}\nend"
    assert one(text, OFFICIAL) == "標題\n\nbold it s c\n\n• one\n• two\n\n3. three\n4. four\n\n    x = 1\n    \n    y\nend"


@pytest.mark.rule("WX-39")
def test_ilink_keeps_bold_and_code_and_hides_no_angle_bracket() -> None:
    text = "#### four\n##### five\n**b** ~~s~~ a < b > c `x<y>`\n\n" + f"{FENCE}\n<p>\n{FENCE}"
    assert one(text, ILINK) == f"#### four\n**five**\n**b** s a ＜ b ＞ c `x<y>`\n\n{FENCE}\n<p>\n{FENCE}"


@pytest.mark.rule("CH-135")
def test_lists_keep_their_numbers_and_depth() -> None:
    text = "2. zwei\n3. drei\n   - tief\n     1. tiefer\n7) sieben"
    assert one(text, DISCORD) == text
    assert one(text, TELEGRAM) == text.replace("- tief", "• tief")


@pytest.mark.rule("CH-135")
def test_a_quote_keeps_its_mark_in_each_message() -> None:
    quote = "> " + "言葉 " * 60
    for capabilities in (small(DISCORD, 100), small(OFFICIAL, 100)):
        assert all(piece.startswith("> ") for piece in texts(quote, capabilities))
    pieces = render(quote, small(TELEGRAM, 100))
    assert [[kind for kind, _ in marked(piece)] for piece in pieces] == [["blockquote"]] * len(pieces)


# Fences


@ALL
@pytest.mark.rule("CH-134")
def test_four_hundred_lines_of_code_arrive_as_closed_blocks_that_join_to_the_original(capabilities: Capabilities) -> None:
    capabilities = replace(capabilities, text_max=min(capabilities.text_max, 4096))
    code = "\n".join(f"    line_{i:03} = compute({i})\n" if i % 7 == 0 else f"line_{i:03} = compute({i})" for i in range(1, 401))
    pieces = render(f"Here:\n{FENCE}python\n{code}\n{FENCE}\nDone.", capabilities)
    assert len(pieces) > 1
    if capabilities.markup is Markup.ENTITIES:
        blocks = [words for piece in pieces for kind, words in marked(piece) if kind == "pre"]
        assert all(e.language == "python" for piece in pieces for e in piece.entities)
    elif capabilities.markup is Markup.PLAIN:
        lines = [line for piece in pieces for line in piece.text.split("\n")]
        blocks = [line.removeprefix("    ") for line in lines if line.startswith("    ")]
    else:
        found = [block for piece in pieces for block in parse(piece.text) if isinstance(block, Code)]
        assert all(block.info == "python" and piece.text.count(FENCE) == 2 for block, piece in zip(found, pieces, strict=False))
        blocks = [block.text for block in found]
    assert "\n".join(blocks) == code


@pytest.mark.rule("CH-134")
@pytest.mark.case("DC-02")
@pytest.mark.parametrize("fence", ["~~~js", "````md", "``` python title=x"])
def test_a_cut_fence_is_reopened_in_the_same_spelling(fence: str) -> None:
    mark = fence[: len(fence) - len(fence.lstrip("`~"))]
    code = "\n".join(f'console.log("row {i:02}");' for i in range(1, 61)) + ("\n```\nin\n```" if len(mark) == 4 else "")
    pieces = texts("text " * 180 + f"\n\n{fence}\n{code}\n{mark}", DISCORD)
    assert [piece.split("\n")[0] for piece in pieces[1:]] == [fence] * len(pieces[1:])
    assert all(piece.endswith(f"\n{mark}") for piece in pieces if fence in piece)
    assert "\n".join(block.text for piece in pieces for block in parse(piece) if isinstance(block, Code)) == code


@pytest.mark.rule("CH-134")
def test_a_code_line_longer_than_a_message_is_cut_inside_its_fence() -> None:
    pieces = texts(f"{FENCE}js\n{'x' * 5000}\n{FENCE}", DISCORD)
    assert all(piece.startswith(f"{FENCE}js\n") and piece.endswith(f"\n{FENCE}") for piece in pieces)
    assert "".join(piece.split("\n")[1] for piece in pieces) == "x" * 5000


@pytest.mark.rule("CH-98")
def test_a_fence_the_model_never_closed_is_closed() -> None:
    assert one(f"{FENCE}py\nx = 1", DISCORD) == f"{FENCE}py\nx = 1\n{FENCE}"


@pytest.mark.rule("CH-134")
def test_inline_code_is_not_cut_while_it_fits_a_message() -> None:
    code = "`" + "word " * 12 + "end`"
    for capabilities in (small(TELEGRAM, 100), small(DISCORD, 100)):
        assert any("word " * 12 + "end" in piece for piece in texts("intro " * 12 + code + " more" * 10, capabilities))


def test_bold_text_that_is_cut_is_bold_in_both_messages() -> None:
    pieces = texts("**" + "bold " * 30 + "end**", small(DISCORD, 100))
    assert all(piece.rstrip().startswith("**") and piece.rstrip().endswith("**") for piece in pieces)


# Tables

TABLE = "| 城市 | 人口 | 面积 | 邮编 | 备注 |\n| --- | --: | --- | --- | --- |\n| 北京 | 2189万 | 16410 | 100000 | 首都 |"


@pytest.mark.rule("CH-136")
@pytest.mark.case("TG-06")
def test_a_narrow_table_is_a_padded_block() -> None:
    (piece,) = render(TABLE, TELEGRAM)
    assert piece.text == "城市 |   人口 | 面积  | 邮编   | 备注\n-----+--------+-------+--------+-----\n北京 | 2189万 | 16410 | 100000 | 首都"
    assert [kind for kind, _ in marked(piece)] == ["pre"]
    assert one(TABLE, DISCORD) == f"{FENCE}\n{piece.text}\n{FENCE}"


@pytest.mark.rule("CH-136")
def test_a_wide_table_is_one_line_per_row() -> None:
    text = f"| {'名前' * 6} | {'address' * 3} |\n|---|---|\n| **阿達** | [home](https://e.com) |\n| Ben | |"
    assert one(text, OFFICIAL) == (f"• {'名前' * 6}: 阿達; {'address' * 3}: home (https://e.com)\n• {'名前' * 6}: Ben; {'address' * 3}: ")
    (piece,) = render(text, TELEGRAM)
    assert marked(piece) == [("bold", "阿達"), ("text_link", "home")]


@pytest.mark.rule("CH-136")
@pytest.mark.parametrize("capabilities", [TELEGRAM, DISCORD, ILINK, OFFICIAL], ids=lambda value: value.markup)
def test_a_cut_table_repeats_its_head(capabilities: Capabilities) -> None:
    table = "| 番号 | value |\n|---|---|\n" + "\n".join(f"| {i} | v{i}x |" for i in range(60))
    pieces = texts(table, small(capabilities, 300))
    assert len(pieces) > 1
    assert all(piece.count("番号") == 1 for piece in pieces)
    assert re.findall(r"v\d+x", "".join(pieces)) == [f"v{i}x" for i in range(60)]


@ALL
@pytest.mark.rule("CH-131")
def test_no_cell_of_a_ragged_table_is_lost(capabilities: Capabilities) -> None:
    text = one("| a | b |\n|---|---|\n| c1 | c2 | c3 |\n| c4 |", capabilities)
    assert all(cell in text for cell in ("c1", "c2", "c3", "c4"))


# Many pieces


@pytest.mark.rule("CH-138")
def test_more_than_a_hundred_entities_make_more_messages_and_lose_no_word() -> None:
    words = [f"w{i}" for i in range(250)]
    pieces = render(" ".join(f"**{word}**" for word in words), TELEGRAM)
    assert all(len(piece.entities) <= 100 for piece in pieces)
    assert " ".join(piece.text.strip() for piece in pieces).split() == words
    assert sum(len(piece.entities) for piece in pieces) == 250


@pytest.mark.rule("CH-142")
@pytest.mark.case("TG-04")
@ALL
def test_part_marks_stand_alone_outside_fences_and_count(capabilities: Capabilities) -> None:
    capabilities = small(capabilities, 500)
    code = "\n".join(f"line_{i:03} = compute({i})" for i in range(400))
    pieces = render(f"Here:\n{FENCE}python\n{code}\n{FENCE}\nDone.", capabilities, part_marks=True)
    for number, piece in enumerate(pieces, 1):
        assert piece.text.endswith(f"\n\n({number}/{len(pieces)})")
        assert measure(piece.text, capabilities.text_unit) <= 500
    assert re.findall(r"line_\d+", "".join(piece.text for piece in pieces)) == [f"line_{i:03}" for i in range(400)]
    assert render("short", capabilities, part_marks=True) == [Piece("short")]


# Whatever a model writes

WORD = st.integers(0, 9999).map(lambda n: f"w{n:04}")
SPOKEN = st.one_of(WORD, WORD.map("**{}**".format), WORD.map("*{}*".format), WORD.map("`{}`".format), st.sampled_from(["你好。", "😀", "مرحبا"]))
WORDS = st.lists(SPOKEN, min_size=1, max_size=25).map(" ".join)
LINES = st.lists(WORDS, min_size=1, max_size=5)
BLOCK = st.one_of(
    WORDS,
    WORDS.map("# {}".format),
    WORD.map("[{}](https://e.com/x)".format),
    LINES.map(lambda lines: "\n".join(f"> {line}" for line in lines)),
    LINES.map(lambda lines: "\n".join(f"- {line}" for line in lines)),
    LINES.map(lambda lines: "\n".join(f"{i}. {line}" for i, line in enumerate(lines, 3))),
    st.lists(WORD, min_size=1, max_size=40).map(lambda lines: f"{FENCE}py\n" + "\n\n  ".join(lines) + f"\n{FENCE}"),
    st.lists(WORD, min_size=1, max_size=40).map(lambda lines: f"> {FENCE}\n" + "\n".join(f"> {line}" for line in lines) + f"\n> {FENCE}"),
    st.lists(WORD, min_size=1, max_size=30).map(lambda cells: "| a | b |\n|---|---|\n" + "\n".join(f"| {cell} | x |" for cell in cells)),
)
DOCUMENT = st.lists(BLOCK, min_size=1, max_size=6).map("\n\n".join)


@ALL
@pytest.mark.rule("CH-130", "CH-131")
@PATIENT
@given(document=DOCUMENT, limit=st.integers(100, 400))
def test_every_word_of_a_document_arrives_once_in_order_within_the_limit(document: str, limit: int, capabilities: Capabilities) -> None:
    capabilities = small(capabilities, limit)
    pieces = texts(document, capabilities)
    assert re.findall(r"w\d{4}", "\n".join(pieces)) == re.findall(r"w\d{4}", document)
    assert all(measure(piece, capabilities.text_unit) <= limit for piece in pieces)


@pytest.mark.rule("CH-134")
@PATIENT
@given(document=DOCUMENT, limit=st.integers(100, 400))
def test_no_message_ends_inside_a_fence_or_holds_an_empty_one(document: str, limit: int) -> None:
    for piece in texts(document, small(DISCORD, limit)):
        assert len(re.findall(r"^(?:> )*```", piece, re.MULTILINE)) % 2 == 0
        assert not re.search(r"```(py)?\n(> )*```", piece)


EMPHASIS = ["**", "*", "_", "__", "~~", "`", "``", "\\"]
BLOCKS = ["\n", "\n\n", "> ", "- ", "1. ", "# ", "| a | b |\n|-|-|\n", "|", "    ", "---\n", "===\n", "\t"]
LINKS = ["[", "](https://e.com)", "![", "]: ", "<https://e.com>", "<b>", "&amp;"]
MARKS = [*EMPHASIS, *BLOCKS, *LINKS, "a", "你", "你", "👍🏽", " "]
SOUP = st.lists(st.sampled_from([*MARKS, "```", "~~~\n"]) | st.characters(exclude_categories=()), max_size=60).map("".join)


@ALL
@pytest.mark.rule("CH-131", "CH-138")
@PATIENT
@given(text=SOUP, limit=st.integers(4, 120))
def test_any_text_renders_within_the_limit_with_entities_inside_it(text: str, limit: int, capabilities: Capabilities) -> None:
    capabilities = small(capabilities, limit)
    for piece in render(text, capabilities):
        assert 0 < measure(piece.text, capabilities.text_unit) <= limit
        assert all(0 <= e.offset < e.offset + e.length <= measure(piece.text, TextUnit.UTF16) for e in piece.entities)
        assert all(words.strip() or kind in ("code", "pre", "blockquote") for kind, words in marked(piece))


@ALL
@pytest.mark.rule("CH-131", "CH-137")
@PATIENT
@given(text=st.lists(st.sampled_from(MARKS), max_size=60).map("".join).filter(lambda text: "~~~" not in text and "```" not in text))
def test_no_arrangement_of_marks_swallows_a_word(text: str, capabilities: Capabilities) -> None:
    # Without fences, whose opening line may name a language that only some platforms show.
    assert "".join(texts(text, capabilities)).count("你") >= text.count("你")


LETTERS = st.text(st.sampled_from("abc你好م é😀𠮷"), min_size=1, max_size=300)


@ALL
@pytest.mark.rule("CH-131", "CH-96")
@PATIENT
@given(text=LETTERS, limit=st.integers(8, 60))
def test_plain_words_arrive_unchanged(text: str, limit: int, capabilities: Capabilities) -> None:
    assert "".join(texts(text, small(capabilities, limit))).strip() == text.strip()
