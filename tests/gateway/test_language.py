"""The catalogues are complete and alike in three languages, and code and catalogue name the same keys."""

from __future__ import annotations

import ast
import re
import string
from collections.abc import Iterator
from pathlib import Path

import pytest

from gateway.language import LANGUAGES, catalogue, from_tag, guess, say

ROOT = Path(__file__).resolve().parents[2]
SOURCES = ("gateway", "channels")
# Heads of keys that code puts together; they count only there
FAMILIES = {
    "login_failed_", "rule_", "help_", "error_", "duration_", "status_", "saved_list_", "limit_", "limits_", "held_", "record_is_", "chunk_",
    "recall_doctor_", "entries_", "why_is_",
    "try_", "chat_job_", "job_", "recall_mode_", "recall_reason_", "summary_kind_", "day_reason_", "detail_",
    "receipt_section_", "origin_", "forgot_",
}  # fmt: skip


def placeholders(sentence: str) -> set[str]:
    return {name for _, name, _, _ in string.Formatter().parse(sentence) if name is not None}


def test_every_language_has_the_same_keys_in_the_same_order() -> None:
    english = list(catalogue("en"))
    for language in LANGUAGES:
        assert list(catalogue(language)) == english, language


def test_every_sentence_has_the_same_placeholders_in_every_language() -> None:
    for key, sentence in catalogue("en").items():
        for language in LANGUAGES:
            assert placeholders(catalogue(language)[key]) == placeholders(sentence), (language, key)


@pytest.mark.parametrize(
    ("language", "one", "two"),
    [
        ("en", "The index was built anew: 1 file in 1 chunk; before 1 file in 1 chunk.",
         "The index was built anew: 2 files in 2 chunks; before 2 files in 2 chunks."),
        ("ja", "索引を作り直しました。1 ファイル、1 片です（以前は 1 ファイル、1 片）。",
         "索引を作り直しました。2 ファイル、2 片です（以前は 2 ファイル、2 片）。"),
        ("zh", "索引已重建：1 个文件，1 个片段；之前为 1 个文件，1 个片段。", "索引已重建：2 个文件，2 个片段；之前为 2 个文件，2 个片段。"),
    ],
)  # fmt: skip
def test_one_is_one(language: str, one: str, two: str) -> None:
    for count, wanted in (("1", one), (2, two)):
        assert say(language, "rebuilt", files=count, chunks=count, files_before=count, chunks_before=count) == wanted


# A bare number before one of these would read "1 files". What names a size, a limit or a command is never one.
NOUNS = "characters|chunks|days|drafts|dreams|files|lines|memories|messages|minutes|pages|passages|people|pins|turns"
COUNTED = re.compile(rf"\{{(\w+)\}} (?:earlier |kept |new |waiting )?(?:{NOUNS})\b")
NEVER_ONE = {"length", "limit", "on", "total"}


def test_no_english_sentence_says_one_turns() -> None:
    bare = {key: found for key, sentence in catalogue("en").items() if (found := set(COUNTED.findall(sentence)) - NEVER_ONE)}
    assert not bare, "write {count:turn|turns}"


def test_no_sentence_is_empty_or_shouts() -> None:
    for language in LANGUAGES:
        for key, sentence in catalogue(language).items():
            assert sentence.strip() == sentence != "", (language, key)
            assert not set("!！") & set(sentence), (language, key)


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_every_sentence_is_translated(language: str) -> None:
    same = {key for key, sentence in catalogue("en").items() if catalogue(language)[key] == sentence}
    only_marks = {key for key in same if not any(letter.isalpha() for letter in _without_placeholders(catalogue("en")[key]))}
    assert same - only_marks <= {"version"}  # a name and a number


def _without_placeholders(sentence: str) -> str:
    return "".join(literal for literal, _, _, _ in string.Formatter().parse(sentence))


# Code and catalogue


def trees() -> Iterator[tuple[Path, ast.Module]]:
    for package in SOURCES:
        for path in sorted((ROOT / package).rglob("*.py")):
            yield path.relative_to(ROOT), ast.parse(path.read_text(encoding="utf-8"))


def literals(tree: ast.AST) -> set[str]:
    return {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}


def prefixes(tree: ast.AST) -> set[str]:
    """The fixed heads, such as `rule_`, of keys that are put together: f"rule_{name}" and "rule_" + name."""
    heads: set[str] = set()
    for node in ast.walk(tree):
        match node:
            case ast.JoinedStr(values=[ast.Constant(value=str(head)), ast.FormattedValue(), *_]):
                heads.add(head)
            case ast.BinOp(left=ast.Constant(value=str(head)), op=ast.Add()):
                heads.add(head)
            case _:
                pass
    return {head for head in heads if head.endswith("_") and len(head) > 1}


# Calls that say a sentence, and which argument names it; its values are keywords.
SAYING = {"say": 1, "HttpFault": 2}


def said(tree: ast.AST) -> Iterator[tuple[str, set[str] | None]]:
    """Each call of `SAYING` with a literal key: the key and the names given, None when they come as `**values`."""
    for node in ast.walk(tree):
        match node:
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=args) if len(args) > SAYING.get(name, 99):
                key = args[SAYING[name]]
                names = {keyword.arg for keyword in node.keywords}
                if isinstance(key, ast.Constant) and isinstance(key.value, str):
                    yield key.value, None if None in names else {name for name in names if name}
            case _:
                pass


def test_the_readers_of_code_see_keys_prefixes_and_calls() -> None:
    literal = 'say(l, "late", duration=d); say(l, "empty", **v); HttpFault(1, "x", "store", param="p")'
    built = 'say(l, f"rule_{r}"); say(l, "help_" + n); f"{a}_x"; f"plain {a}"'
    tree = ast.parse(f"{literal}; {built}")
    assert {"late", "empty"} <= literals(tree)
    assert prefixes(tree) == {"rule_", "help_"}
    assert list(said(tree)) == [("late", {"duration"}), ("empty", None), ("store", {"param"})]


def test_every_sentence_is_used() -> None:
    used: set[str] = set()
    heads: set[str] = set()
    for _, tree in trees():
        used |= literals(tree)
        heads |= prefixes(tree) & FAMILIES
    unused = [key for key in catalogue("en") if key not in used and not key.startswith(tuple(heads))]
    assert not unused


def test_every_sentence_that_code_says_exists_and_gets_its_values() -> None:
    faults: list[str] = []
    for path, tree in trees():
        for key, names in said(tree):
            if key not in catalogue("en"):
                faults.append(f"{path}: there is no sentence {key}")
            elif names is not None and not placeholders(catalogue("en")[key]) <= names:
                faults.append(f"{path}: {key} lacks {placeholders(catalogue('en')[key]) - names}")
    assert not faults


# Which language


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Where did we leave the map?", "en"),
        ("ok", "en"),
        ("地図はどこに置きましたか", "ja"),
        ("カレンダー", "ja"),
        ("OpenAI の設定を教えて", "ja"),
        ("你还记得小白吗", "zh"),
        ("用 Python 写一个函数", "zh"),
    ],
)
def test_the_language_is_guessed_from_the_script(text: str, language: str) -> None:
    assert guess(text) == language


@pytest.mark.parametrize("text", ["", "42", "👍", "?", "x"])
def test_a_text_without_words_is_taken_for_english(text: str) -> None:
    assert guess(text) == "en"


@pytest.mark.parametrize(
    ("tag", "language"),
    [("ja-JP", "ja"), ("zh-Hans-CN", "zh"), ("EN", "en"), ("fr-FR, ja;q=0.8, en;q=0.5", "ja"), ("fr", ""), ("", ""), (",;q=", "")],
)
def test_a_language_tag_is_reduced_to_one_of_ours(tag: str, language: str) -> None:
    assert from_tag(tag) == language


def test_a_sentence_is_said_in_the_language_asked_for_and_else_in_english() -> None:
    assert say("ja", "duration_m", n=3) == "3 分"
    assert say("zh", "duration_m", n=3) == "3 分钟"
    assert say("fr", "duration_m", n=3) == say("en", "duration_m", n=3) == "3 min"
    with pytest.raises(KeyError):
        say("en", "no_such_sentence")
