"""OpenAI's chat completions for any client of theirs: `/v1/models` and `/v1/chat/completions` (WO-50).

Without `X-Yumegate-Chat` the client's messages are the whole talk, and a client that leaves ends the answer. With it the newest message joins that
chat like one of the page: stored first, answered in its lane, and a client that leaves stops nothing. Deep memory never runs for either.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from datetime import datetime
from functools import partial

from aiohttp import web

from agent.turn import Said
from channels.message import Attachment, clean
from channels.web.adapter import TEXT_MAX, WebChannel
from gateway import chats, too_large
from gateway.attachments import Attachments
from gateway.chat_answers import ChatAnswers
from gateway.config import Config
from gateway.http.asker import language_of, require_person
from gateway.http.base import answer
from gateway.http.body import body
from gateway.http.fault import HttpFault, not_found
from gateway.http.openai_shapes import BODY_MAX, Completion, Written, bytes_of, model_json, models_json
from gateway.http.sse_writer import EventWriter, has_left
from gateway.http.talk import refusal
from gateway.person import Person
from gateway.progress import Appended, Ended, Grown, Restarted, Step
from gateway.stateless import UNKEPT, Asked, Stateless
from memory.database import Database
from memory.ids import opaque

CHAT_HEADER = "X-Yumegate-Chat"
TURN_HEADER = "X-Yumegate-Turn"
KEY_HEADER = "Idempotency-Key"
KEY_MAX = 200
SILENT_S = 10.0  # without a word for so long, a stream begins all the same: proxies give up on an answer without a head

_STATUS = {"too_long": 400, "model_broken": 502, "no_room": 502, "model_busy": 503, "model_setup": 503, "store": 503, "budget": 503}
_FINAL = {"x-should-retry": "false"}  # OpenAI's own clients try again after 429 and 5xx unless told that it cannot help


class OpenAIRoutes:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        config: Callable[[], Config],
        channel: Callable[[], WebChannel],
        attachments: Attachments,
        stateless: Stateless,
        answers: ChatAnswers,
    ) -> None:
        self._db = db
        self._clock = clock
        self._config = config
        self._channel = channel
        self._attachments = attachments
        self._stateless = stateless
        self._answers = answers
        self._since = int(clock().timestamp())

    def routes(self) -> list[web.RouteDef]:
        return [
            web.get("/v1/models", self.models),
            web.get("/v1/models/{id}", self.model),
            web.post("/v1/chat/completions", self.complete),
        ]

    async def models(self, request: web.Request) -> web.Response:
        return answer(models_json(list(self._config().characters), self._since))

    async def model(self, request: web.Request) -> web.Response:
        name = request.match_info["id"]
        self._check_model(name)
        return answer(model_json(name, self._since))

    async def complete(self, request: web.Request) -> web.StreamResponse:
        person = require_person(request)
        wish = await body(request, Completion, size_max=BODY_MAX)
        self._check_model(wish.model)
        given = request.headers.get(CHAT_HEADER)
        chat_id = None if given is None else clean(given)
        sent = await (self._alone(request, person, wish) if chat_id is None else self._in_chat(request, person, wish, chat_id))
        if isinstance(sent, HttpFault):
            raise sent
        return sent

    async def _alone(self, request: web.Request, person: Person, wish: Completion) -> web.StreamResponse | HttpFault:
        asked = Asked(
            purpose="api",
            channel="api",
            person_id=person.id,
            rate_key=f"api {person.id}",
            character=wish.model,
            said=wish.talk(),
            instructions=wish.instructions(),
            timezone=person.timezone,
            temperature=wish.temperature,
            max_output_tokens=wish.limit,
        )
        if refused := self._stateless.refusal(asked):
            return _fault(refused)
        async with asyncio.TaskGroup() as group, aclosing(self._stateless.answer(asked, group)) as steps:
            return await _Reply(request, self._written(wish), kept=False).send(steps, stream=bool(wish.stream))

    async def _in_chat(self, request: web.Request, person: Person, wish: Completion, chat_id: str) -> web.StreamResponse | HttpFault:
        chat = await self._db.read(partial(chats.find, chat_id=chat_id, person_id=person.id))
        if chat is None:
            return not_found()
        newest = wish.newest()
        if len(newest.text) > TEXT_MAX:
            return HttpFault(422, "text_too_long", "error_text_long", param="messages", length=len(newest.text), limit=TEXT_MAX)
        key = _key(request) or opaque("c")
        files = await self._kept(newest, person)
        here = self._answers.here(chat.id)
        accepted = await self._channel().post(
            chat_id=chat.id,
            person_id=person.id,
            client_id=key,
            text=newest.text,
            attachments=files,
            language=request.headers.get("Accept-Language", ""),
            by_program=True,
        )
        if not accepted.message_id:
            return _fault("rate") if accepted.rule == "rate" else refusal(accepted.rule, self._config().busy.waiting_max)
        headers = {TURN_HEADER: accepted.turn_id} if accepted.turn_id else {}
        async with aclosing(self._answers.follow(chat.id, accepted.message_id, accepted.turn_id, here)) as steps:
            return await _Reply(request, self._written(wish), kept=True, headers=headers).send(steps, stream=bool(wish.stream))

    async def _kept(self, newest: Said, person: Person) -> tuple[Attachment, ...]:
        """The pictures of a message as files of the chat."""
        web_settings = self._config().channels.web
        if len(newest.images) > web_settings.attachments_max:
            raise HttpFault(422, "too_many_files", "error_attachments_many", param="messages", limit=web_settings.attachments_max)
        kept: list[Attachment] = []
        for image in newest.images:
            data = bytes_of(image)
            if len(data) > web_settings.attachment_bytes:
                raise HttpFault(413, "too_large", "error_too_large", limit=f"{web_settings.attachment_bytes // 1_000_000} MB")
            name = f"picture.{image.mime.partition('/')[2]}"
            kept.append((await self._attachments.keep(data, name=name, person_id=person.id, now=self._clock())).attachment)
        return tuple(kept)

    def _check_model(self, name: str) -> None:
        characters = self._config().characters
        if name not in characters:
            raise HttpFault(404, "model_not_found", "character_unknown", param="model", name=name, others=", ".join(characters))

    def _written(self, wish: Completion) -> Written:
        return Written(id=opaque("chatcmpl-"), created=int(self._clock().timestamp()), model=wish.model, with_usage=wish.wants_usage)


class _Reply:
    """One answer on its way to a client of OpenAI's interface.

    Their clients append what comes and can take nothing back. So nothing is sent before the first word, and a fault until then is an HTTP status; and
    when the model begins again after that, the stream goes on only if the same words come again, else it ends with an error and without `[DONE]`
    (`Appended`). Of a chat the whole answer is stored all the same.
    """

    def __init__(self, request: web.Request, written: Written, *, kept: bool, headers: dict[str, str] | None = None) -> None:
        """`kept`: the message is stored and its turn over, so that asking again would only ask twice."""
        self._request = request
        self._written = written
        self._kept = kept
        self._writer = EventWriter(request, headers)

    async def send(self, steps: AsyncGenerator[Step], *, stream: bool) -> web.StreamResponse | HttpFault:
        """The finished response; or the fault, when nothing was sent yet."""
        if stream:
            return await self._streamed(steps)
        async for step in steps:
            if isinstance(step, Ended):
                return self._fault(step) or self._whole(step)
            if has_left(self._request):
                break
        return web.Response()  # nobody hears it

    def _whole(self, ended: Ended) -> web.Response:
        response = answer(self._written.whole(ended))
        response.headers.update(self._writer.headers)
        return response

    async def _streamed(self, steps: AsyncGenerator[Step]) -> web.StreamResponse | HttpFault:
        began = time.monotonic()
        appended = Appended()
        async for step in steps:
            try:
                if isinstance(step, Ended):
                    return await self._last(step, appended)
                more = appended.more(step.text) if isinstance(step, Grown) else ""
            except Restarted:
                return await self._broken_off(_fault("restarted"))
            if more:
                await self._say(more)
            elif self._writer.begun or time.monotonic() - began > SILENT_S:
                await self._begin()
                await self._writer.keep_alive()
            if has_left(self._request):
                break
        return self._writer.response

    async def _last(self, ended: Ended, appended: Appended) -> web.StreamResponse | HttpFault:
        if (fault := self._fault(ended)) is not None:
            return await self._broken_off(fault) if self._writer.begun else fault
        if more := appended.more(ended.text, whole=True):
            await self._say(more)
        await self._begin()
        await self._writer.write(self._written.last(ended))
        return self._writer.response

    async def _begin(self) -> None:
        if not self._writer.begun:
            await self._writer.write(self._written.first())

    async def _say(self, text: str) -> None:
        await self._begin()
        await self._writer.write(self._written.words(text))

    async def _broken_off(self, fault: HttpFault) -> web.StreamResponse:
        await self._writer.event(fault.shown(language_of(self._request), openai=True))
        return self._writer.response

    def _fault(self, ended: Ended) -> HttpFault | None:
        if ended.state != "failed":
            return None
        fault = _fault(ended.code, kept=self._kept)
        fault.headers |= self._writer.headers
        return fault


def _fault(code: str, *, kept: bool = False) -> HttpFault:
    """Why there is no answer, as OpenAI's clients understand it: `code` is the turn's."""
    kind, _, what = code.partition(":")
    final = _FINAL if kept or kind in ("model_setup", "too_long", "no_room", "budget") else {}
    match kind:
        case "rate":
            return HttpFault(429, "rate_limit_exceeded", "rate", headers={"Retry-After": "60"})
        case "budget" if what:
            return HttpFault(429, "insufficient_quota", "budget_stop", headers=_FINAL, what=what)
        case "restarted":
            return HttpFault(502, "restarted", "answer_restarted", headers=final)
        case "draining":
            return HttpFault(503, "draining", "error_draining", headers={"Retry-After": "5"})
        case "gone":
            return not_found()
        case "too_long":
            return HttpFault(400, "context_length_exceeded", "too_long", param="messages")
        case _ if kind in too_large.UNKEPT:
            return HttpFault(400, "context_length_exceeded", too_large.UNKEPT[kind], param="messages")
        case _:
            sentence = kind if kept else UNKEPT.get(kind, kind)
            return HttpFault(_STATUS.get(kind, 500), kind, sentence, headers=final)


def _key(request: web.Request) -> str:
    """The client's own id of this message; empty when it gives none."""
    key = request.headers.get(KEY_HEADER, "").strip()
    if len(key) > KEY_MAX:
        raise HttpFault(400, "bad_field", "error_bad_field", param=KEY_HEADER, field=KEY_HEADER, reason=f"at most {KEY_MAX} characters")
    return key
