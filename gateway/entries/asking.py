"""How the model is asked for entries: of talk by the chat's own instruction, of entries that become one with their private parts apart (RS-88, RS-89,
RS-95, RS-109 to RS-111)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import sqlalchemy as sa

from agent.prompt import words
from gateway.config import Config
from gateway.entries import settings as entry_settings
from gateway.entries.refused_merges import Merging
from gateway.jobs.handling import JobContext
from gateway.summaries.summarist import HALF_LEAST, Summarist, Wish, half_in_words
from memory import tokens
from memory.conversations import Conversation
from memory.recall import private_parts
from memory.recall.answers import Answer

PROMPT, MERGE = "entry_summary", "entry_merge"
PRIVATE_LEAST = 64  # tokens of private parts under which they are not sent, but kept as they are


def wish(connection: sa.Connection, config: Config, summarist: Summarist, chat: Conversation) -> Wish:
    own = entry_settings.of_chat(config, chat)
    instruction = f"{entry_settings.instruction(connection, own)}\n\n{words('entry_form')}"
    return Wish(account=summarist.entry_account(chat), max_output=own.max_output, instruction=instruction)


async def merged(summarist: Summarist, context: JobContext, chat: Conversation, texts: Sequence[str], wish: Wish) -> Answer:
    """One recap of several, of about half their length. What only some know is joined by who knows it, never in one request with what others may
    read, and stands under its condition again (RS-110). Raises MergeRefused when a part cannot be said shorter (RS-111)."""
    open_ = [text for text in map(private_parts.public, texts) if text]
    told = await _halved(summarist, context, chat, open_, wish) if open_ else Answer(text="")
    kept = [told.text] if told.text else []
    for names, parts in private_parts.private(texts).items():
        whole = "\n".join(parts)
        if tokens.count(whole) >= PRIVATE_LEAST and len(parts) > 1:
            whole = (await _halved(summarist, context, chat, parts, wish)).text
        kept.append(private_parts.wrapped(names, whole))
    return Answer(text="\n".join(kept), title=told.title)


async def _halved(summarist: Summarist, context: JobContext, chat: Conversation, texts: Sequence[str], wish: Wish) -> Answer:
    below = sum(map(tokens.count, texts))
    values = {"words": max(HALF_LEAST, half_in_words(below))}
    return await summarist.of_summaries(context, chat, texts, prompt=MERGE, values=values, merging=Merging(below=below, kept=_told), wish=wish)


def _told(answer: Answer) -> Answer:
    return replace(answer, details=())
