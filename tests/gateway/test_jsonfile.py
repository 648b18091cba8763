"""The strict JSON reader: what it reads, what it refuses and with which words."""

from __future__ import annotations

import codecs
import json
from collections.abc import Iterator

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.jsonfile import Json, JsonFileError, KeyPath, read_json


def refused(text: str | bytes) -> JsonFileError:
    with pytest.raises(JsonFileError) as caught:
        read_json(text.encode() if isinstance(text, str) else text)
    return caught.value


@pytest.mark.rule("WO-32")
@pytest.mark.case("CF-01")
@pytest.mark.parametrize(
    ("bom", "encoding"),
    [(b"", "utf-8"), (codecs.BOM_UTF8, "utf-8"), (codecs.BOM_UTF16_LE, "utf-16-le"), (codecs.BOM_UTF16_BE, "utf-16-be")],
)
def test_every_encoding_of_an_editor_is_read(bom: bytes, encoding: str) -> None:
    document = read_json(bom + '{"名": "你好 😀"}'.encode(encoding))
    assert document.value == {"名": "你好 😀"}
    assert document.places[("名",)].value == (1, 7)


@pytest.mark.rule("WO-32")
@pytest.mark.parametrize(
    ("data", "words"),
    [
        ('{"a": "é"}'.encode("cp1252"), ("0xe9 is not UTF-8", "Windows-1252")),
        ('{"a": "你好"}'.encode("gbk"), ("is not UTF-8", "GBK")),
        ('{"a": "夢です"}'.encode("shift_jis"), ("is not UTF-8", "Shift_JIS")),
        ("{}".encode("utf-16-le"), ("UTF-16 without a byte order mark",)),
        ("{}".encode("utf-32"), ("UTF-32",)),
        (codecs.BOM_UTF16_LE + b"{\0}", ("is not UTF-16-LE",)),
    ],
)
def test_another_encoding_is_named(data: bytes, words: tuple[str, ...]) -> None:
    (fault,) = refused(data).faults
    assert all(word in fault.message for word in words), fault.message
    assert "UTF-8" in fault.hint


# text, line, column, words of the message
FAULTS = [
    ('{\n  "web": {"port": 8080}\n  "log": "info"\n}', 2, 24, "missing comma after line 2"),
    ("[1 2]", 1, 3, "missing comma after line 1"),
    ('{"web": {"port": 8080,}}', 1, 22, "comma before a closing brace"),
    ("[1, 2,\n]", 1, 6, "comma before a closing bracket"),
    ("[,1]", 1, 2, "a comma too many"),
    ("[1,,2]", 1, 4, "a comma too many"),
    ('{"a": 1; "b": 2}', 1, 8, "a semicolon instead of a comma"),
    ('{"a"： 1}', 1, 5, "a full-width colon instead of a colon"),
    ('{"a": 1} // end', 1, 10, "comments are not allowed"),
    ('{"a": /* one */ 1}', 1, 7, "comments are not allowed"),
    ('# top\n{"a": 1}', 1, 1, "comments are not allowed"),
    ("{} /* open", 1, 4, "comments are not allowed"),
    ('{"telegram":{"token":"A"},\n"telegram":{"token":"B"}}', 2, 1, '"telegram" stands twice: in line 1 and in line 2'),
    ('{"a": {"b": 1, "c": 2, "b": 3}}', 1, 24, '"b" stands twice: in line 1 and in line 1'),
    ('{"rate": NaN}', 1, 10, "NaN is not JSON"),
    ("[-Infinity]", 1, 2, "-Infinity is not JSON"),
    ("[True]", 1, 2, "True is not JSON"),
    ("[NULL]", 1, 2, "NULL is not JSON"),
    ("[1e999]", 1, 2, "too large"),
    ("[" + "9" * 5000 + "]", 1, 2, "too large"),
    ("[01]", 1, 2, "not a JSON number"),
    ("[0x1F]", 1, 2, "not a JSON number"),
    ("[.5, +1]", 1, 2, "not a JSON number"),
    ("{'a': 1}", 1, 2, "single quotes"),
    ("{a: 1}", 1, 2, "a key without quotes"),
    ('{"host": localhost}', 1, 10, "a text without quotes"),
    ('{"url": http://x}', 1, 9, "a text without quotes"),
    ('{"a": “b”}', 1, 7, "“ where a value is wanted"),
    ("", 1, 1, "the file is empty"),
    (" \n\n", 1, 1, "the file is empty"),
    ('{\n"a": {"b": 1}\n', 1, 1, "the { of line 1 is never closed"),
    ('{"a": [1, 2}', 1, 12, "} where ] has to close the [ of line 1"),
    ('{"a": 1}}', 1, 9, "} after the end of the document"),
    ('{"a": ', 1, 7, "the end of the file where a value is wanted"),
    ('{"a" 1}', 1, 6, "no colon after the key of line 1"),
    ('{"a": 1, : 2}', 1, 10, ": where a key in double quotes is wanted"),
    ('{"a": "b\n"}', 1, 7, "not closed on its line"),
    ('{"a": "b', 1, 7, "not closed on its line"),
    ('{"a": "b\tc"}', 1, 9, "control character U+0009 inside a text"),
    ('{"a":\x00 1}', 1, 6, "control character U+0000 outside a text"),
    ('{"a":\u00a01}', 1, 6, "U+00A0 outside a text"),
    (r'{"a": "C:\Users"}', 1, 10, "a backslash that starts no escape"),
    (r'{"a": "\u12"}', 1, 8, "a backslash that starts no escape"),
    (r'{"a": "\ud800"}', 1, 8, "lone surrogate"),
    (r'{"a": "\udc00\ud800"}', 1, 8, "lone surrogate"),
    ("[" * 65 + "]" * 65, 1, 65, "nested deeper than 64 levels"),
    ("[" * 100_000, 1, 65, "nested deeper than 64 levels"),
]


@pytest.mark.rule("WO-32", "RL-51")
@pytest.mark.case("CF-04", "CF-05")
@pytest.mark.parametrize(("text", "line", "column", "words"), FAULTS, ids=[row[3] + " " + str(n) for n, row in enumerate(FAULTS)])
def test_a_fault_names_its_cause_and_place(text: str, line: int, column: int, words: str) -> None:
    fault = refused(text).faults[0]
    assert words in fault.message
    assert (fault.line, fault.column) == (line, column)
    shown, mark = fault.excerpt.split("\n")
    assert mark.endswith("^")
    assert len(shown) <= 100


@pytest.mark.case("CF-04")
def test_the_line_is_shown_with_a_mark_below_the_place() -> None:
    fault = refused('{\n  "web": {"port": 8080}\n  "log": "info"\n}').faults[0]
    assert fault.excerpt == '  "web": {"port": 8080}\n' + " " * 23 + "^"


def test_the_mark_counts_wide_characters_twice() -> None:
    fault = refused('{"日本": "漢字" "b": 1}').faults[0]
    assert fault.excerpt.split("\n")[1] == " " * (11 + 4) + "^"


@pytest.mark.rule("WO-32")
def test_several_faults_come_at_once() -> None:
    faults = refused("{'a': 1, // one\n \"b\": NaN,\n \"b\": [1, 2,],\n}").faults
    assert [fault.message.split()[0] for fault in faults] == ["single", "comments", "NaN", "the", "comma", "comma"]
    assert [fault.line for fault in faults] == [1, 1, 2, 3, 3, 3]


def test_a_hopeless_file_gives_a_bounded_list() -> None:
    assert len(refused("[" + "NaN," * 1000 + "1]").faults) == 20


SECRETS = [
    '{"token": "123456:AAE-secret" "b": 1}',
    '{"api_key": "hunter2" "b": 1}',
    "{'api_key': 'hunter2'}",
    '{"secret":\n"hunter2" "b": 1}',
    '{"token": "hunter2',
    '{"token" "hunter2"}',
    '{"url": "postgresql://ada:hunter2@db/x",}',
    '{"tokn": "sk-hunter2-4711-abcdef-0815",}',
    '{"api_key": hunter2}',
]


@pytest.mark.rule("WO-64")
@pytest.mark.parametrize("text", SECRETS)
def test_no_secret_is_in_a_fault(text: str) -> None:
    error = refused(text)
    said = str(error) + "".join(fault.message + fault.hint + fault.excerpt for fault in error.faults)
    assert "hunter2" not in said
    assert "AAE-secret" not in said


def test_names_of_variables_are_shown() -> None:
    assert '"token": "${TOKEN}"' in refused('{"token": "${TOKEN}",}').faults[0].excerpt


def test_places_know_keys_and_values() -> None:
    document = read_json(b'{\r\n  "a": [10,\r\n    {"b": null}]\r}')
    assert document.places[()].value == (1, 1)
    assert (document.places[("a",)].key, document.places[("a",)].value) == ((2, 3), (2, 8))
    assert (document.places[("a", 0)].key, document.places[("a", 0)].value) == (None, (2, 9))
    assert (document.places[("a", 1, "b")].key, document.places[("a", 1, "b")].value) == ((3, 6), (3, 11))


def test_sixty_four_levels_are_read() -> None:
    assert len(read_json(b"[" * 64 + b"]" * 64).places) == 64


def _paths(value: Json, path: KeyPath = ()) -> Iterator[KeyPath]:
    yield path
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from _paths(item, (*path, key))


_characters = st.characters(exclude_categories=("Cs",))
_scalars = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(_characters)
_values = st.recursive(_scalars, lambda inner: st.lists(inner) | st.dictionaries(st.text(_characters), inner), max_leaves=30)


@pytest.mark.rule("RL-50")
@settings(deadline=None)
@given(_values, st.booleans(), st.sampled_from([None, 0, 2, "\t"]), st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]))
def test_what_json_writes_is_read_back_equal(value: Json, ascii_only: bool, indent: int | str | None, encoding: str) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    document = read_json(text.encode(encoding))
    assert document.value == value
    assert json.dumps(document.value) == json.dumps(value)  # 1 and 1.0 and true are different things
    assert set(document.places) == set(_paths(value))


def _never_raises_anything_else(data: bytes) -> None:
    try:
        document = read_json(data)
    except JsonFileError as error:
        assert error.faults
        assert all(fault.line >= 1 and fault.column >= 1 for fault in error.faults)
    else:
        json.dumps(document.value, allow_nan=False).encode()


@pytest.mark.rule("RL-51")
@settings(deadline=None)
@given(st.binary())
@example(b"\xff\xfe\x00\xd8")
@example(b"\xef\xbb\xbf")
def test_random_bytes_raise_our_error_or_nothing(data: bytes) -> None:
    _never_raises_anything_else(data)


_SIGNS = """{ } [ ] , : " ' \\ \\u d800 /* */ // # 1 - . e NaN true "a": ${X} ： token :// @"""
_pieces = st.sampled_from([*_SIGNS.split(), "\n", "\r", " ", "\x00"])


@pytest.mark.rule("RL-51")
@settings(deadline=None)
@given(st.lists(_pieces, max_size=60).map("".join))
def test_random_json_like_texts_raise_our_error_or_nothing(text: str) -> None:
    _never_raises_anything_else(text.encode())


@pytest.mark.rule("RL-51")
@settings(deadline=None)
@given(st.data())
def test_a_damaged_document_agrees_with_the_standard_parser(data: st.DataObject) -> None:
    text = json.dumps(data.draw(_values))
    at = data.draw(st.integers(0, len(text)))
    damaged = text[:at] + data.draw(_pieces) + text[at + data.draw(st.integers(0, 2)) :]
    try:
        value = read_json(damaged.encode()).value
    except JsonFileError:
        return
    assert json.loads(damaged) == value


@pytest.mark.parametrize("text", ['"' + "key" * 100_000, "[" + "1," * 100_000 + "1]", "://" * 100_000, '"key"' + " " * 300_000, "a1" * 200_000])
def test_large_files_take_a_moment_at_most(text: str) -> None:
    _never_raises_anything_else(text.encode())
