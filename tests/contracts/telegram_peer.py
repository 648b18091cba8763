"""Telegram as a peer of the contract suite: the adapter against our fake Bot API, polling and called."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Any

from channels.message import Account, Address, ChatType, EventKind
from channels.port import Channel
from channels.telegram.adapter import TelegramChannel
from channels.telegram.settings import CAPABILITIES, TelegramSettings
from tests.contracts.channel_contract import GOOD, Fault, File, Peer, Place, Post, Seen, utc_now
from tests.peers.telegram.server import FakeBotApi
from tests.peers.telegram.world import TOKEN

ACCOUNT = Account(channel="telegram")
TOPIC = 42
CHATS: dict[ChatType, tuple[int, int]] = {ChatType.DM: (700001, 0), ChatType.GROUP: (-1001234500001, 0), ChatType.THREAD: (-1001234500002, TOPIC)}
PEOPLE = {"ann": 700001, "bob": 700002, "robot": 700009}
PLANS: dict[Fault, dict[str, Any]] = {
    Fault.CUT: {"cut": True},
    Fault.SERVER_ERROR: {"status": 500, "description": "Internal Server Error"},
    Fault.BLOCKED: {"status": 403, "description": "Forbidden: bot was blocked by the user"},
    Fault.REMOVED: {"status": 403, "description": "Forbidden: bot was kicked from the supergroup chat"},
    Fault.BAD_MARKUP: {"status": 400, "description": "Bad Request: can't parse entities: can't find end of the entity", "if": "entities"},
    Fault.BAD_CREDENTIAL: {"status": 401, "description": "Unauthorized"},
    Fault.HANGS: {"hang": True},
}


class TelegramPeer:
    def __init__(self, server: FakeBotApi) -> None:
        self.account = ACCOUNT
        self.capabilities = CAPABILITIES
        self.kinds = frozenset({EventKind.EDITED, EventKind.MIGRATED})  # nobody is told of deletions there
        self.credentials: tuple[str, ...] = (TOKEN, TOKEN.partition(":")[2])
        self.server = server
        self.world = server.world
        for chat_id, topic in CHATS.values():
            self.world.chat(chat_id).topics.update({topic} if topic else ())

    def adapter(self, *, cursor: str = "", credential: str = GOOD, clock: Callable[[], datetime] = utc_now) -> Channel:
        async def load_cursor() -> str:
            return cursor

        token = TOKEN if credential == GOOD else f"{TOKEN[:-2]}xx"
        return TelegramChannel(TelegramSettings(token=token, base_url=self.server.url), account=ACCOUNT, load_cursor=load_cursor, clock=clock)

    def place(self, kind: ChatType) -> Place:
        chat_id, topic = CHATS[kind]
        address = Address(account=ACCOUNT, chat_id=str(chat_id), thread_id=str(topic) if topic else "")
        return Place(address=address, kind=kind, parent=str(chat_id) if topic else "")

    async def writes(
        self,
        text: str,
        place: Place,
        *,
        sender: str = "ann",
        mentions_us: bool = False,
        answers_us: bool = False,
        answers: Post | None = None,
        files: Sequence[File] = (),
        bot: bool = False,
    ) -> Post:
        chat = self.world.chat(int(place.address.chat_id))
        person = self.world.me if sender == "us" else {"id": PEOPLE[sender], "is_bot": bot, "first_name": sender.title()}
        content: dict[str, Any] = {}
        if place.address.thread_id:  # in a topic, each message answers the one that opened it
            content |= {"message_thread_id": TOPIC, "is_topic_message": True}
            opened = {"message_id": TOPIC, "chat": chat.json(), "date": 1, "from": self.world.me, "forum_topic_created": {"name": "Tea"}}
            content["reply_to_message"] = opened
        if answers_us:
            content["reply_to_message"] = self.world.message(chat, self.world.me, text="what we said")
        if answers is not None:
            content["reply_to_message"] = self.world.messages[chat.id, int(answers.message_id)]
        if mentions_us and place.kind is not ChatType.DM:
            name = f"@{self.world.me['username']}"
            text = f"{name} {text}"
            content["entities"] = [{"type": "mention", "offset": 0, "length": len(name)}]
        for field, file in zip(("document", "video"), files, strict=False):
            content[field] = self.world.file(file.name, None if file.broken else file.data) | {"width": 1, "height": 1, "duration": 1}
        if files and text:
            content["caption"], text = text, ""
        update = self.server.says(chat.id, text, sender=person, **content)
        return self._post(place, update)

    def _post(self, place: Place, update: dict[str, Any]) -> Post:
        message = update["message"]
        return Post(
            place=place,
            message_id=str(message["message_id"]),
            event_id=str(update["update_id"]),
            sender_id=str(message["from"]["id"]),
        )

    async def edits(self, post: Post, text: str) -> None:
        old = self.world.messages[int(post.place.address.chat_id), int(post.message_id)]
        self.server.put(edited_message={**old, "text": text, "edit_date": int(time.time())})

    async def deletes(self, post: Post) -> None:
        raise AssertionError("nobody is told of deletions there")

    async def migrates(self, place: Place, new_chat_id: str) -> None:
        chat = self.world.chat(int(place.address.chat_id))
        self.server.says(chat.id, sender={"id": 700001, "is_bot": False, "first_name": "Ada"}, migrate_to_chat_id=new_chat_id)

    async def repeats(self, post: Post, *, as_number: bool = False) -> None:
        found = next(update for update in self.posted if str(update["update_id"]) == post.event_id)
        self.server.repeat({**found, "update_id": int(post.event_id) if as_number else found["update_id"]})

    @property
    def posted(self) -> list[dict[str, Any]]:
        return self.world.everything

    async def sends_strange(self, hint: str) -> None:
        self.server.put(**{hint: {"light": "blue"}})

    async def sends_broken(self) -> None:
        self.server.put(message={"message_id": 9, "date": 1, "text": "of nobody, nowhere"})

    def seen(self, place: Place) -> list[Seen]:
        return [
            Seen(
                id=str(message["message_id"]),
                text=message.get("text", message.get("caption", "")),
                chat_id=str(message["chat"]["id"]),
                thread_id=str(message.get("message_thread_id", "")),
                reply_to=str(message.get("reply_to_message", {}).get("message_id", "")),
                files=tuple(message[kind]["file_name"] for kind in ("document", "audio") if kind in message),
            )
            for message in self.world.ours(int(place.address.chat_id))
            if message.get("text") != "what we said"
        ]

    def buttons(self, place: Place) -> list[list[str]]:
        return self.world.buttons(int(place.address.chat_id))

    async def presses(self, place: Place, label: str, *, sender: str = "ann") -> None:
        person = {"id": PEOPLE[sender], "is_bot": False, "first_name": sender.title()}
        found = next(message for message in self.world.ours(int(place.address.chat_id)) if self.world.has(message, label))
        self.server.put(callback_query=self.world.press(found, label, person))

    def asides(self) -> list[str]:
        return [words for words in self.world.asides.values() if words]

    def typing(self, place: Place) -> list[bool]:
        return [True for call in self.world.called("sendChatAction") if call.given["chat_id"] == place.address.chat_id]

    async def removes(self, message_id: str, place: Place) -> None:
        del self.world.messages[int(place.address.chat_id), int(message_id)]

    def plan(self, *faults: Fault) -> None:
        self.server.network(True)
        for fault in faults:
            if fault is Fault.UNREACHABLE:
                self.server.refuse()
            else:
                self.world.fail_next(PLANS[fault])

    def limits(self, wait_s: float) -> None:
        after = int(wait_s)
        self.world.fail_next({"status": 429, "description": f"Too Many Requests: retry after {after}", "parameters": {"retry_after": after}})

    def fail_typing(self) -> None:
        self.world.typing_fails = True

    def network(self, up: bool) -> None:
        self.server.network(up)


async def telegram() -> AsyncGenerator[Peer, None]:
    with FakeBotApi() as server:
        yield TelegramPeer(server)
