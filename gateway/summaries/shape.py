"""How a summary of each kind is asked for: which instruction, how long, and how the rows that it is made of are shown (RS-45, RS-55, RS-164)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from gateway.entries import asking as entry_asking
from gateway.entries.refused_merges import Merging
from gateway.jobs.handling import JobContext
from gateway.summaries.summarist import HALF_LEAST, Summarist, words_in
from memory.conversations import Conversation
from memory.recall import standing_text
from memory.recall.answers import Answer
from memory.recall.kinds import ROLLING, Kind
from memory.recall.summary_rows import Summary

_SHORTER = 0.75  # of what rows take together, for what is asked for in their place
_WORDS: Mapping[Kind, int] = {Kind.CONSOLIDATED: 200, Kind.LONG_TERM: 250, Kind.WEEK: 160, Kind.MONTH: 200, Kind.YEAR: 260}


def prompts(kind: Kind) -> tuple[str, str]:
    """The instructions for a summary of talk, and for joining the pieces of a long one."""
    if kind is Kind.ENTRY:
        return entry_asking.PROMPT, entry_asking.MERGE
    return ("rolling_summary", "rolling_merge") if kind in ROLLING else ("day_summary", "day_merge")


async def joined(summarist: Summarist, context: JobContext, chat: Conversation, kind: Kind, inputs: Sequence[Summary], *, most: int = 0) -> Answer:
    """One summary of `kind` in the place of several. `most`: words, 0 for those of its kind. Details that are settled stay behind in their own rows
    (RS-165). Raises MergeRefused when it cannot be said shorter."""
    said = [row for row in inputs if row.text or row.details]
    if not most and len(said) < 2:  # nothing to join
        return _open(Answer(text=said[0].text, details=said[0].details)) if said else Answer(text="")
    below = sum(row.tokens for row in said)
    values = {"words": most or min(_WORDS.get(kind, 160), max(HALF_LEAST, words_in(below * _SHORTER))), "period": kind.value}
    if kind in ROLLING:
        texts, merging = [row.text for row in said], Merging(below=below, kept=_text_alone)
        return await summarist.of_summaries(context, chat, texts, prompt="rolling_merge", values=values, merging=merging)
    shown = [f"[{standing_text.label(row)}]\n{Answer(text=row.text, details=row.details).shown}" for row in said]
    merging = Merging(below=below, kept=_open)
    return await summarist.of_summaries(context, chat, shown, prompt="period_summary", values=values, merging=merging)


def _text_alone(answer: Answer) -> Answer:
    return Answer(text=answer.text)


def _open(answer: Answer) -> Answer:
    return replace(answer, details=tuple(detail for detail in answer.details if detail.state == "open"))
