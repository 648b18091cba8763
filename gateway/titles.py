"""Titles of web chats: the first words at once, a better one from the helper model after the reply (WO-16)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from datetime import datetime

import sqlalchemy as sa

from agent.llm.port import ChatModel, ModelMessage, ModelRequest, Role
from agent.llm.whole import whole
from agent.prompt import words
from agent.turn import ModelCall
from channels.markdown import without_marks
from gateway.config import Config
from gateway.jobs.handling import JobContext, JobResult
from gateway.jobs.table import Job, enqueue
from gateway.model_calls import record_calls
from gateway.models import Models
from gateway.shapes import chat_json
from gateway.streams import Streams
from gateway.turn_store import TurnEnd, TurnStart
from memory import conversations
from memory.database import Database

KIND = "title"
WORDS_MAX = 48  # characters
OUTPUT_TOKENS = 40
INPUT_MAX = 1_500  # characters of each side of the first exchange


def from_words(text: str) -> str:
    """The first line of a message, cut at a word where the script has some."""
    line = " ".join(text.strip().split("\n", 1)[0].split())
    if len(line) <= WORDS_MAX:
        return line
    cut = line[:WORDS_MAX]
    return f"{cut.rsplit(' ', 1)[0] if ' ' in cut[WORDS_MAX // 2 :] else cut}…"


def after_turn(connection: sa.Connection, start: TurnStart, ending: TurnEnd, *, with_model: bool) -> None:
    """In the transaction that ends a chat's first turn: a title of words, and the job for a better one."""
    chat = start.conversation
    if chat.title_origin or chat.kind not in ("web", "challenge") or ending.state not in ("answered", "stopped"):
        return
    named = conversations.change_title(connection, chat.id, from_words(start.questions[0].text), over="", origin="words")
    if named and with_model:
        enqueue(connection, Job(kind=KIND, key=chat.id, payload={"conversation": chat.id}))


_LABEL = re.compile(r"^(?:[\s#>*_-]+|(?:title|タイトル|题目|题名|标题|標題)[\s*]*[:：])+", re.IGNORECASE)
_LINK = re.compile(r"!?\[([^\[\]]+)\]\([^()\s]*\)")
_QUOTES = ('""', "''", "“”", "‘’", "«»", "「」", "『』", "《》", "〈〉", "【】")
_APOSTROPHE = re.compile(r"(?<=\w)['’](?=\w)")


def clean_title(text: str) -> str:
    """A model's title without quotes around it, labels, Markdown and line ends; empty when nothing fit is left."""
    line = next((line for line in text.strip().splitlines() if line.strip()), "")
    while line != (line := _bare(line)):
        pass
    return from_words(line)


def _bare(line: str) -> str:
    line = without_marks(_LINK.sub(r"\1", line))
    line = _LABEL.sub("", line).strip(" *_.。")
    return line[1:-1] if len(line) > 1 and line[0] + line[-1] in _QUOTES and _one_quote(line) else line


def _one_quote(line: str) -> bool:
    """Whether the first and the last sign belong together: not in `"Boats" and "sails"`."""
    return not {line[0], line[-1]} & set(_APOSTROPHE.sub("", line[1:-1]))


class Titles:
    """The job's handler."""

    def __init__(
        self,
        *,
        db: Database,
        models: Models,
        streams: Streams,
        config: Callable[[], Config],
        clock: Callable[[], datetime],
        is_running: Callable[[str], bool],
    ) -> None:
        """`is_running` says of a chat's address whether an answer is being made there."""
        self._db = db
        self._models = models
        self._streams = streams
        self._config = config
        self._clock = clock
        self._is_running = is_running

    async def run(self, job: Job, _context: JobContext) -> JobResult:
        chat_id = str(job.payload["conversation"])
        chat, log = await self._db.read(lambda connection: _first_exchange(connection, chat_id))
        if chat is None or chat.title_origin != "words" or len(log) < 2:
            return JobResult(skipped="the chat is gone, or has a title of its own")
        characters = self._config().characters
        character = characters.get(chat.character, characters["default"])
        asked = "\n\n".join(f"{message.role}: {message.text[:INPUT_MAX]}" for message in log[:2])
        request = ModelRequest(
            messages=(ModelMessage(role=Role.SYSTEM, text=words("title")), ModelMessage(role=Role.USER, text=asked)),
            max_output_tokens=OUTPUT_TOKENS,
            purpose=KIND,
        )
        async with self._models.helper(character.model) as model:
            text, call = await _asked(model, request)
        title = clean_title(text)
        of: dict[str, object] = {"conversation_id": chat.id, "channel": chat.channel, "purpose": KIND, "person_id": chat.person_id or ""}
        of["cost"] = self._models.cost(call)

        def work(connection: sa.Connection) -> conversations.Conversation | None:
            record_calls(connection, [(call, of)], self._clock())
            taken = bool(title) and conversations.change_title(connection, chat.id, title, over="words")
            return conversations.conversation(connection, chat.id) if taken else None

        renamed = await self._db.write(work)
        if renamed is not None:
            self._streams.publish(chat.id, "chat", chat_json(renamed, language="en", running=self._is_running(renamed.key)))
        return JobResult(output={"title": title}) if title else JobResult(skipped="the model named no title")


async def _asked(model: ChatModel, request: ModelRequest) -> tuple[str, ModelCall]:
    """The whole text of an answer and what it cost."""
    began = time.monotonic()
    text, end = await whole(model, request)
    milliseconds = round((time.monotonic() - began) * 1000)
    return text, ModelCall(model=model.name, provider=model.provider, outcome="ok", usage=end.usage, milliseconds=milliseconds)


def _first_exchange(connection: sa.Connection, chat_id: str) -> tuple[conversations.Conversation | None, list[conversations.Message]]:
    chat = conversations.conversation(connection, chat_id)
    return chat, conversations.window(connection, chat_id, 0)[:4] if chat else []
