"""What a dream may write: each entry of its answer held against the lines it rests on (WD-22, WD-67 to WD-70, WD-81, WD-90). Pure.

An entry that may not stand costs only itself: what it would have replaced stays as it was, and the diary says why. So a single invented number or a
stranger's command takes no other fact down with it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from memory.dream_contract import Answer, Entry, clean
from memory.dream_input import DayLine, Material, OldLine
from memory.evidence import unsupported
from memory.languages import guess
from memory.lines import as_bullet, entries
from memory.provenance import EVIDENCE, Bar, LineRow, Origin
from memory.secret_patterns import find_secret


class Why(StrEnum):
    """Why an entry was not taken."""

    SECRET = "secret"
    UNSUPPORTED = "unsupported"
    NO_EVIDENCE = "no_evidence"
    NOT_PROMOTED = "not_promoted"
    BARRED = "barred"
    DUPLICATE = "duplicate"
    ADD_ONLY = "add_only"
    NO_ROOM = "no_room"


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`add_only`: the night after a refusal (WD-81). `in_space`: lines about the bot's conduct need one of `admins` (WD-69). `silent`: people of whom
    nothing is promoted (WD-51). `bars`: each with when it was made. `max_items`, `max_new`: program lines in the file, and new ones of one run."""

    max_items: int = 50
    max_new: int = 20
    add_only: bool = False
    in_space: bool = False
    admins: frozenset[str] = frozenset()
    silent: frozenset[str] = frozenset()
    bars: tuple[tuple[Bar, datetime], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """One line of the new file, with the old lines it replaces; none for a new one. `settled`: its provenance as a person accepted it."""

    text: str
    hash: str
    section: str
    replaces: tuple[OldLine, ...] = ()
    evidence: tuple[DayLine, ...] = ()
    settled: LineRow | None = None

    @property
    def row(self) -> LineRow:
        """Its provenance: what it rests on and what the lines before it rested on. It is a person's only if all of that is (WD-68)."""
        if self.settled is not None:
            return self.settled
        before = [line.row for line in self.replaces]
        weaker = next((row.origin for row in before if row.origin is not Origin.PERSON), Origin.PERSON)
        return LineRow(
            hash=self.hash,
            origin=weaker,
            author="dream",
            sources=_joined(*(row.sources for row in before), *(line.sources for line in self.evidence)),
            evidence=_joined(*(row.evidence for row in before), [line.hash for line in self.evidence]),
            speakers=_joined(*(row.speakers for row in before), *(line.speakers for line in self.evidence)),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    text: str
    why: Why


@dataclass(frozen=True, slots=True, kw_only=True)
class Dropped:
    """`reason`: one of `dream_contract.Reason`."""

    line: OldLine
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """`taken`: new, changed and merged lines; an old line that is neither in it nor in `dropped` stays. `candidates` wait for a person (WD-68).
    `waiting`: daily lines that stay unused, for what rests on them found no room."""

    taken: tuple[Taken, ...] = ()
    dropped: tuple[Dropped, ...] = ()
    candidates: tuple[Taken, ...] = ()
    left_out: tuple[LeftOut, ...] = ()
    waiting: tuple[DayLine, ...] = ()

    @property
    def changes(self) -> bool:
        return bool(self.taken or self.dropped)


def judge(answer: Answer, given: Material, policy: Policy) -> Judged:
    """What of a checked answer may stand (`dream_contract.check`)."""
    ids = given.ids
    old = {ids[line.hash]: line for line in given.old}
    daily: dict[str, list[DayLine]] = {}
    for line in given.day_lines:
        daily.setdefault(ids[line.hash], []).append(line)
    dropped = () if policy.add_only else tuple(Dropped(line=old[drop.id], reason=drop.reason) for drop in answer.dropped)
    standing = {line.hash for line in given.old} - {drop.line.hash for drop in dropped} | {entry.hash for entry in given.fixed}
    taken: list[Taken] = []
    candidates: list[Taken] = []
    left_out: list[LeftOut] = []
    for entry in answer.entries:
        wanted = _wanted(entry, old, daily)
        if [line.hash for line in wanted.replaces] == [wanted.hash]:
            continue  # it stands as it stood
        found, why = _judge(wanted, given, policy)
        gone = {line.hash for line in found.replaces}
        if why is None and found.hash in standing - gone:
            why = Why.DUPLICATE
        if why is None and _rests_on_foreign(wanted.evidence):
            candidates.append(found)
        elif why is None:
            taken.append(found)
            standing = standing - gone | {found.hash}
        else:
            left_out.append(LeftOut(text=found.text, why=why))
    room = max(0, policy.max_items - (len(given.old) - len(dropped) - sum(max(0, len(line.replaces) - 1) for line in taken)))
    return _within(taken, dropped, candidates, left_out, min(room, policy.max_new))


def tells_the_bot(text: str) -> bool:
    """Whether a line is about how the bot should behave, or whom it should obey (WD-69). In doubt yes: then it only needs an admin.

    English, Japanese and Chinese with care; of some other languages the words that orders are mostly made of.
    """
    return bool(_CONDUCT.search(text))


_CONDUCT = re.compile(
    r"\b(?:always|never|must(?: not)?|mustn't|should(?:n't| not)?|do not|don't|from now on|stop \w+ing|make sure|ignore|obey)\b"
    r"|\b(?:bot|assistant|yumegate|ai)\b.{0,200}\b(?:is|to|has|will|may|can|needs?)\b|^\s*(?:please\s+)?(?:answer|reply|respond|call|speak|write|use|say|tell|treat)\b"
    r"|ボット|アシスタント|必ず|絶対に|常に|いつも.*(?:答|話|返)|てください|て下さい|ないで|なさい|すること|べき|返事は|呼んで|命令|指示"
    r"|机器人|機器人|助手|必须|必須|总是|總是|永远|永遠|不要|不准|不许|禁止|以后|以後|从现在|從現在|请|請|回答|回复|称呼|叫我|听从|服从|命令|指令"
    r"|^\s*(?:you|your|trust)\b|\b(?:admin|administrator|moderator|owner)s?\b|管理者|管理人|管理员|管理員|オーナー|群主"
    r"|\b(?:immer|niemals|nie|ab (?:jetzt|sofort)|du (?:bist|sollst|musst|darfst)|ignorier\w*|antworte\w*|gehorch\w*|befolg\w*)\b"
    r"|\b(?:toujours|jamais|désormais|dorénavant|tu (?:es|dois)|ignore[rz]?|répond(?:s|ez|re)|obéi\w*)\b"
    r"|\b(?:siempre|nunca|jamás|a partir de ahora|eres|debes|ignora|responde|obedece|sempre|mai più)\b"
    r"|\b(?:всегда|никогда|отныне|теперь ты|ты должен|игнорируй\w*|отвечай\w*|слушайся)\b|항상|절대|앞으로|무시하|대답해|따르",
    re.IGNORECASE,
)
_ASKED = re.compile(r" (?:has )?asked\b|(?:さん)?(?:の希望|の要望|は.*(?:と頼んだ|を頼んだ|と希望))|希望|要求", re.IGNORECASE)
_REQUESTS = {"en": "{who} asked that: “{text}”", "ja": "{who}さんの希望: 「{text}」", "zh": "{who}希望：“{text}”"}


def _judge(wanted: Taken, given: Material, policy: Policy) -> tuple[Taken, Why | None]:
    cited = wanted.evidence
    firm = tuple(line for line in cited if line.origin in EVIDENCE)
    foreign = _rests_on_foreign(cited)
    held = Taken(text=wanted.text, hash=wanted.hash, section=wanted.section, replaces=wanted.replaces, evidence=cited if foreign else firm)
    if policy.add_only and wanted.replaces:
        return held, Why.ADD_ONLY
    if find_secret(wanted.text):
        return Taken(text="", hash="", section=""), Why.SECRET  # the value is told to nobody (WD-22)
    if cited and not firm and not foreign:
        return held, Why.NO_EVIDENCE
    if policy.silent & {speaker for line in cited for speaker in line.speakers}:
        return held, Why.NOT_PROMOTED
    supports = [line.text for line in (*held.replaces, *held.evidence)]
    days = [line.date for line in held.evidence] + [line.row.created_at.date() for line in held.replaces if line.row.created_at]
    if unsupported(held.text, supports, days):
        return held, Why.UNSUPPORTED
    if is_barred(held, policy.bars):
        return held, Why.BARRED
    if policy.in_space and not foreign and tells_the_bot(held.text):
        return _as_request(held, given.names, policy)
    return held, None


def _wanted(entry: Entry, old: Mapping[str, OldLine], daily: Mapping[str, list[DayLine]]) -> Taken:
    text = clean(entry.text)
    return Taken(
        text=text,
        hash=entries(as_bullet(text))[0].hash,
        section=" ".join(clean(entry.section).split()).lstrip("# "),
        replaces=tuple(old[id_] for id_ in entry.sources),
        evidence=tuple(line for id_ in entry.evidence for line in daily[id_]),
    )


def _rests_on_foreign(cited: tuple[DayLine, ...]) -> bool:
    return any(line.origin in (Origin.MIXED, Origin.IMPORTED) for line in cited)


def is_barred(held: Taken, bars: Sequence[tuple[Bar, datetime]]) -> bool:
    """Whether a line was undone, deleted or forgotten and nobody has said it anew since (WD-90, WD-92)."""
    sources = {each for bar, _ in bars for each in bar.sources}

    def stale(line: DayLine) -> bool:
        if line.sources and sources.issuperset(line.sources):
            return True
        return any((line.hash == bar.hash or line.hash in bar.evidence) and not _since(line, at) for bar, at in bars)

    if held.evidence and all(map(stale, held.evidence)):
        return True
    made = [at for bar, at in bars if bar.hash == held.hash]
    return bool(made) and not any(not stale(line) and _since(line, max(made)) for line in held.evidence)


def _since(line: DayLine, at: datetime) -> bool:
    """Whether a daily line is newer than `at`: the program's by its row, a human's by the day it stands under."""
    return line.row.created_at > at if line.row and line.row.created_at else line.date > at.date()


def _as_request(held: Taken, names: Mapping[str, str], policy: Policy) -> tuple[Taken, Why | None]:
    """A line about the bot's conduct that no admin said, as what somebody asked for: a fact, without force (WD-69)."""
    by = [names[speaker] for speaker in _joined(*(line.speakers for line in held.evidence)) if speaker in names]
    said_by_admins = all(line.origin is Origin.HUMAN or policy.admins & set(line.speakers) for line in held.evidence)
    if _asks(held.text, names) or (held.evidence and said_by_admins):
        return held, None
    if not held.evidence:  # a wish does not become a rule by being said another way
        firm = any(tells_the_bot(line.text) and not _asks(line.text, names) for line in held.replaces)
        return held, None if firm else Why.NOT_PROMOTED
    if not by or "\n" in held.text:
        return held, Why.NOT_PROMOTED
    text = _REQUESTS[guess(held.text)].format(who=", ".join(by), text=held.text)
    asked = Taken(text=text, hash=entries(as_bullet(text))[0].hash, section=held.section, replaces=held.replaces, evidence=held.evidence)
    return asked, Why.BARRED if is_barred(asked, policy.bars) else None


def _asks(text: str, names: Mapping[str, str]) -> bool:
    """Whether a line only tells that a member asked for something."""
    return any(name and text.startswith(name) and _ASKED.match(text[len(name) :]) for name in names.values())


def _within(
    taken: list[Taken], dropped: tuple[Dropped, ...], candidates: list[Taken], left_out: list[LeftOut], room: int
) -> Judged:
    """New lines as far as there is room; what the others rest on waits for another night (WD-73)."""
    kept: list[Taken] = []
    over: list[Taken] = []
    for line in taken:
        if line.replaces:
            kept.append(line)
        elif room > 0:
            kept.append(line)
            room -= 1
        else:
            over.append(line)
    used = {each.hash for line in kept for each in line.evidence}
    waiting = {each.hash: each for line in over for each in line.evidence if each.hash not in used}
    return Judged(
        taken=tuple(kept),
        dropped=dropped,
        candidates=tuple(candidates),
        left_out=(*left_out, *(LeftOut(text=line.text, why=Why.NO_ROOM) for line in over)),
        waiting=tuple(waiting.values()),
    )


def _joined(*lists: tuple[str, ...] | list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(each for some in lists for each in some))
