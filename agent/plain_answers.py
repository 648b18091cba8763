"""What a person says to the first-start questions in plain words, for a model that cannot call tools (WD-34, WD-35). Pure, in three languages.

Lenient in form, and careful in what it takes for an answer: a wrong name is worse than one more question.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence

from agent.onboarding import Answers, language_tag, zone_name

VALUE_MAX = 80  # characters of one answer
FACTS_FROM_MAX = 300  # characters; a longer text is work for the model

_LABELS = {
    "bot_name": r"(?:your |bot |bot's )?name|(?:あなたの|ボットの)?名前|(?:你的|机器人)?名字",
    "address": r"(?:form of )?address|my name|呼び方|呼び名|称呼|我的名字",
    "style": r"style|tone|manner|スタイル|話し方|口調|风格|風格|语气|語氣",
    "language": r"language|言語|语言|語言",
    "timezone": r"time ?zone|zone|タイムゾーン|时区|時區",
}
_LABELLED = {field: re.compile(rf"(?:{label})\s*[:：=]\s*(.+)", re.IGNORECASE) for field, label in _LABELS.items()}
_CALLED = (
    ("address", re.compile(r"(?:please )?call me\s+(.+)|(?:请|就)?叫我\s*(.+)|(.+?)と呼んで(?:ください|下さい|ね)?", re.IGNORECASE)),
    (
        "bot_name",
        re.compile(r"(?:your name is|i(?:'ll| will) call you|you are called)\s+(.+)|你(?:就)?叫\s*(.+)|あなたは(.+?)(?:です|だよ?)", re.IGNORECASE),
    ),
)
_SENTENCES = re.compile(r"(?<!Mr\.)(?<!Ms\.)(?<!Dr\.)(?<!St\.)(?<!Mrs\.)(?<!Prof\.)(?<=[.!?])\s+|(?<=[。！？])\s*|\n")
_OF_ONESELF = re.compile(  # what somebody tells of themselves: by its first words, in Japanese, which leaves them out, by what it is about
    r"(?:and |but |also |well,? )?(?:i|i'm|i've|my|we|we're|we've|our)\b(?!'d).*"
    r"|.*(?:私|わたし|僕|ぼく|俺|うちの|我が家|好き|嫌い|苦手|得意|アレルギー|飼って|住んで|働いて|勤めて|通って|生まれ|歳).*(?:す|した|せん|だ|る|た|い|歳)[ねよ]?"
    r"|.*(?:我|咱).*"
)
_ASKS = re.compile(  # of a model, though in the same words
    r".*(?:[?？]|[:：](?!\d)).*|(?:i|we) (?:want|need|would|wonder|wish|don't (?:know|understand)|do not (?:know|understand)|have a question)\b.*"
    r"|.*(?:ください|下さい|お願いします|ほしい|欲しい|ましょう|か|たい(?:です)?)"
    r"|(?:请|帮|给我|告诉我|替我).*|.*(?:我想|我要|我需要|帮我|给我|告诉我|吗|呢|什么|怎么|为什么|能不能|可不可以).*"
)
_INTRODUCES = re.compile(r"[:：]\s*$", re.MULTILINE)  # what follows is material for a task
_NUMBERED = re.compile(r"([1-9])\s*[.)、．:：]\s*(.+)")
_LEADING = re.compile(r"(?:[-*•]|[1-9][.)、．]|[①-⑨])\s*")
_NO_PART = re.compile(r"[:：=]|^/|[,;，、；]$")
_QUOTED = "\"'“”‘’「」『』《》"
_NOTHING = frozenset({"", "-", "–", "—", "?", "？", "x", "なし", "无", "無"})

_YES = re.compile(
    "yes|yes please|yep|yeah|y|ok|okay|sure|right|correct|fine|はい|うん|ええ|いいよ|オッケー|大丈夫|それで|是|是的|好|好的|对|對|可以|行|没问题"
)
_SKIP = re.compile(
    "skip|skip it|skip this|skip that|skip please|please skip|skip the questions|スキップ|スキップして|スキップで|スキップします|スキップしてください"
    "|跳过|跳過|跳过吧|先跳过|略过|略過|跳过问题"
)
_RATHER_NOT = re.compile(
    "no|no thanks|no thank you|not now|later|maybe later|never mind|nevermind|i'd rather not|rather not|don't ask|no questions|pass"
    "|あとで|後で|また今度|また後で|結構です|けっこうです|いいです|いらない|いりません|今はいい|パス|やめておく"
    "|不用了|不用|不要|不需要|以后再说|以後再說|稍后|稍后再说|下次吧|下次再说|算了|不想回答|先不用"
)
_GREETINGS = re.compile(
    "hi|hi there|hello|hello there|hey|hey there|good morning|good afternoon|good evening|greetings|yo|こんにちは|こんばんは|おはよう"
    "|おはようございます|はじめまして|初めまして|やあ|どうも|もしもし|你好|您好|你好啊|嗨|哈喽|哈囉|早|早上好|下午好|晚上好|大家好|在吗|/start"
)


def is_skip(text: str, *, just_asked: bool) -> bool:
    """Whether the person would rather not answer. "Later" and its kind count only right after the questions: else they answer something else."""
    said = _bare(text)
    return bool(_SKIP.fullmatch(said) or (just_asked and _RATHER_NOT.fullmatch(said)))


def is_greeting(text: str) -> bool:
    return bool(_GREETINGS.fullmatch(_bare(text)))


def is_yes(text: str) -> bool:
    return bool(_YES.fullmatch(_bare(text)))


def parse(text: str, fields: Sequence[str], *, language: str, zone: str, name: str = "") -> Answers | None:
    """The answers in what was written right after the program asked for `fields`; None when it looks like something else.

    Taken are lines with a label or a number, and 2 or more short parts with slashes between or one to a line, in the order of the questions. A plain
    yes takes the proposed `language`, `zone` and, while it is open, `name`. A whole sentence about the person is a fact, word for word, and so is an
    answer that is too long for one. Anything else is talk: a wrong name is worse than one more question.
    """
    found: dict[str, str] = {}
    facts: list[str] = []
    parts = _parts(text, len(fields))
    if is_yes(text):
        found = {"language": language, "timezone": zone} | ({"address": name} if "address" in fields else {})
    elif parts:
        found = dict(zip(fields, map(_value, parts), strict=False))
        if len(parts) > len(fields) and is_yes(parts[len(fields)]):
            found |= {"language": language, "timezone": zone}
    else:
        tells = len(text) <= FACTS_FROM_MAX and not _INTRODUCES.search(text)
        for line in map(str.strip, text.splitlines()):
            if marked := _line(line, fields):
                found |= marked
                continue
            for sentence in _SENTENCES.split(_LEADING.sub("", line, count=1)):
                if called := _called(sentence):
                    found |= called
                elif tells and _is_fact(sentence):
                    facts.append(sentence.strip())
    facts += [value for value in found.values() if VALUE_MAX < len(value) <= FACTS_FROM_MAX]
    kept = {field: value if len(value) <= VALUE_MAX else "" for field, value in found.items()}
    answers = Answers(
        bot_name=kept.get("bot_name", ""), style=kept.get("style", ""), address=kept.get("address", ""),
        language=language_tag(kept.get("language", "")), timezone=zone_name(kept.get("timezone", "")), facts=tuple(facts),
    )  # fmt: skip
    return answers if answers.values or answers.facts else None


def _is_fact(sentence: str) -> bool:
    said = _bare(sentence)
    return bool(_OF_ONESELF.fullmatch(said)) and not _ASKS.fullmatch(sentence.strip().casefold().replace("’", "'").rstrip(".。!！ "))


def _line(line: str, fields: Sequence[str]) -> dict[str, str]:
    bare = _LEADING.sub("", line, count=1)
    for field, pattern in _LABELLED.items():
        if match := pattern.fullmatch(bare):
            return {field: _value(match[1])}
    if (match := _NUMBERED.fullmatch(line)) and int(match[1]) <= len(fields):
        return {fields[int(match[1]) - 1]: _value(match[2])}
    return {}


def _called(sentence: str) -> dict[str, str]:
    for field, pattern in _CALLED:
        if match := pattern.fullmatch(sentence.strip().rstrip(".。!！")):
            return {field: _value(next(filter(None, match.groups())))}
    return {}


def _parts(text: str, count: int) -> list[str]:
    """Two to `count` short answers and perhaps a yes, parted by slashes or lines; empty when the text is not of that form."""
    text = text.strip()
    if "://" in text or re.search(r"[?？]", text):
        return []
    tight = "/" in text and not re.search(r"\s/|/\s|\n", text)
    parts = [part.strip() for part in (text.split("/") if tight else re.split(r"\s+/\s*|\s*/\s+|／|\n", text))]
    most = 40 if "\n" in text or tight else VALUE_MAX
    fits = all(len(part) <= most and not _NUMBERED.fullmatch(part) and not _NO_PART.search(part) for part in parts)
    fits = fits and (len(parts) <= count or is_yes(parts[-1]))
    words = not tight or (len(parts) >= count and not any(part.isdigit() for part in parts))
    named = not _is_fact(parts[0])  # no name is a whole sentence about oneself
    return parts if 2 <= len(parts) <= count + 1 and fits and words and named else []


def _value(text: str) -> str:
    value = text.strip().strip(_QUOTED).strip()
    return "" if value.casefold() in _NOTHING or is_skip(value, just_asked=False) else value


def _bare(text: str) -> str:
    """For comparing: width and case folded, without signs around."""
    folded = re.sub(r"\s*[,、]\s*", " ", unicodedata.normalize("NFKC", text).casefold().replace("’", "'"))
    return re.sub(r"^[\s\"'“”「」.,]+|[\s\"'“”「」.,!…。、，~〜ー\U0001f000-\U0001faff\u2600-\u27bf\ufe0f]+$", "", folded)
