"""The fake Bot API's memory and rules: chats, people, messages, files, and what the real server refuses. No sockets here.

Every method of the Bot API that it knows is a method `do_<name in lower case>` taking the parsed parameters; it returns the `result`, or raises
`ApiError`. Wordings follow the real server's.
"""

from __future__ import annotations

import itertools
import json
import time
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

TOKEN = "123456789:AAfake-token-of-the-fake-bot-api-00"
ME = {"id": 5550001, "is_bot": True, "first_name": "Yume", "username": "yume_bot"}
TEXT_MAX, CAPTION_MAX, ENTITIES_MAX = 4096, 1024, 100
DATA_MAX = 64
PHOTO_MAX, FILE_MAX, DOWNLOAD_MAX = 10_000_000, 50_000_000, 20_000_000
# Some of the closed list of reactions.
REACTIONS = frozenset("👍👎❤🔥🥰👏😁🤔🤯😱😢🎉🤩🙏👌🕊😍💯🤣⚡🏆😐😴🤓👻👀🙈😇🤝✍🤗🫡🆒🙉🙊😎")
PARSED = (
    "entities", "caption_entities", "reply_parameters", "allowed_updates", "commands", "media", "reaction", "link_preview_options", "reply_markup",
)  # fmt: skip


class ApiError(Exception):
    def __init__(self, status: int, description: str, **parameters: Any) -> None:
        super().__init__(description)
        self.status, self.description, self.parameters = status, description, parameters


def bad(description: str, **parameters: Any) -> ApiError:
    return ApiError(400, f"Bad Request: {description}", **parameters)


def units(text: str) -> int:
    return len(text.encode("utf-16-le", "surrogatepass")) // 2


@dataclass(slots=True)
class Chat:
    """`topics` of a forum; `admins` by user id; `moved_to`: it became a supergroup; `gone`: why we may not write there."""

    id: int
    type: str
    title: str = ""
    topics: set[int] = field(default_factory=set[int])
    admins: set[int] = field(default_factory=set[int])
    moved_to: int = 0
    gone: str = ""

    def json(self) -> dict[str, Any]:
        shown: dict[str, Any] = {"id": self.id, "type": self.type}
        if self.type == "private":
            return shown | {"first_name": self.title or "Ada"}
        return shown | {"title": self.title or "A group"} | ({"is_forum": True} if self.topics else {})


@dataclass(frozen=True, slots=True)
class Call:
    """One request that reached us: method, parameters, and the uploaded files as (field, name, size)."""

    method: str
    given: Mapping[str, Any]
    files: tuple[tuple[str, str, int], ...] = ()


Fault = Mapping[str, Any]


class World:
    """`fail_next` plays a fault for each of the next calls that show or change something: {"status": 429, "description": …, "parameters": {…}},
    {"cut": True} (done, then no answer), {"hang": True}, {"html": 502}; with {"if": "entities"} it waits for a call that has them."""

    def __init__(self, token: str = TOKEN) -> None:
        self.token = token
        self.me = dict(ME)
        self.chats: dict[int, Chat] = {}
        self.messages: dict[tuple[int, int], dict[str, Any]] = {}
        self.files: dict[str, tuple[str, bytes | None, int]] = {}
        self.updates: list[dict[str, Any]] = []
        self.everything: list[dict[str, Any]] = []  # every update that there ever was
        self.again: list[dict[str, Any]] = []  # given out once more, whatever was confirmed
        self.confirmed = 0
        self.allowed: list[str] = []
        self.faults: deque[Fault] = deque()
        self.poll_faults: deque[Fault] = deque()
        self.refused_replies = False  # as if nobody could send without the message that is answered
        self.typing_fails = False
        self.calls: list[Call] = []
        self.menus: dict[str, list[dict[str, str]]] = {}
        self.reactions: list[tuple[int, int, str]] = []
        self.presses: list[str] = []
        self.asides: dict[str, str] = {}  # what who pressed was told, by the id of the press
        self.webhook: dict[str, Any] = {"url": ""}
        self.webhook_error = 0
        self._update_ids = itertools.count(1001)
        self._message_ids = itertools.count(11)
        self._file_ids = itertools.count(1)
        self._press_ids = itertools.count(1)

    # People

    def chat(self, chat_id: int, kind: str = "", **more: Any) -> Chat:
        if chat_id not in self.chats:
            self.chats[chat_id] = Chat(chat_id, kind or ("private" if chat_id > 0 else "supergroup"), **more)
        return self.chats[chat_id]

    def message(self, chat: Chat, sender: Mapping[str, Any] | None, **content: Any) -> dict[str, Any]:
        """A message as the server would send it, remembered."""
        message: dict[str, Any] = {"message_id": next(self._message_ids), "date": int(time.time()), "chat": chat.json(), **content}
        if sender is not None:
            message["from"] = dict(sender)
        self.messages[chat.id, message["message_id"]] = message
        return message

    def renumber(self, start: int) -> None:
        """The next messages are numbered from `start` on: a supergroup begins anew, also when it was a group before."""
        self._message_ids = itertools.count(start)

    def put(self, **update: Any) -> dict[str, Any]:
        """A raw update, with the next id unless it has one."""
        found = {"update_id": next(self._update_ids)} | update
        self.updates.append(found)
        self.everything.append(found)
        return found

    def file(self, name: str, data: bytes | None, size: int | None = None) -> dict[str, Any]:
        """A file that people can send; `data` None: the server has lost it. Returns the fields of a document."""
        file_id = f"F{next(self._file_ids)}"
        length = size if size is not None else len(data or b"lost")
        self.files[file_id] = (name, data, length)
        return {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_name": name, "file_size": length}

    def fail_next(self, *faults: Fault) -> None:
        self.faults.extend(faults)

    def fault_for(self, call: Call) -> Fault | None:
        """The planned fault that this call meets, taken from the plan."""
        if not self.faults or not shows(call.method):
            return None
        wanted = self.faults[0].get("if")
        if wanted and not any(wanted in name for name in call.given):
            return None
        return self.faults.popleft()

    # What is on show

    def ours(self, chat_id: int, thread: int | None = None) -> list[dict[str, Any]]:
        """Our messages in a chat, in order; with `thread` those of one topic (0: of none)."""
        found = [message for (chat, _), message in self.messages.items() if chat == chat_id and message.get("from", {}).get("id") == self.me["id"]]
        return [message for message in found if thread is None or message.get("message_thread_id", 0) == thread]

    def texts(self, chat_id: int) -> list[str]:
        return [message.get("text", message.get("caption", "")) for message in self.ours(chat_id)]

    def buttons(self, chat_id: int) -> list[list[str]]:
        """The labels of the buttons in a chat, row by row."""
        return [[button["text"] for button in row] for message in self.ours(chat_id) for row in _rows(message)]

    def has(self, message: Mapping[str, Any], label: str) -> bool:
        return any(button["text"] == label for row in _rows(message) for button in row)

    def press(self, message: Mapping[str, Any], label: str, sender: Mapping[str, Any]) -> dict[str, Any]:
        """Somebody presses the button that is called so; the fields of the update."""
        found = next(button for row in _rows(message) for button in row if button["text"] == label)
        return {"id": f"press-{next(self._press_ids)}", "from": dict(sender), "message": dict(message), "data": found["callback_data"]}

    def called(self, method: str) -> list[Call]:
        return [call for call in self.calls if call.method.lower() == method.lower()]

    # The methods

    def perform(self, call: Call) -> Any:
        do = getattr(self, f"do_{call.method.lower()}", None)
        if do is None:
            raise ApiError(404, "Not Found")
        return do(call.given, call)

    def do_getme(self, given: Mapping[str, Any], call: Call) -> Any:
        return self.me | {"can_join_groups": True, "can_read_all_group_messages": True, "supports_inline_queries": False}

    def pending(self, offset: int | None, allowed: list[str]) -> list[dict[str, Any]]:
        """What a poll gives out; asking from an offset confirms everything before it."""
        if offset is not None:
            self.confirmed = offset - 1
            for update in [update for update in self.updates if update["update_id"] < offset]:
                self.updates.remove(update)  # in place: people write from another thread
        again = [self.again.pop(0) for _ in range(len(self.again))]
        self.allowed = allowed or self.allowed
        return (again + self.updates)[:100]

    def do_sendmessage(self, given: Mapping[str, Any], call: Call) -> Any:
        chat = self._open(given)
        text = given.get("text", "")
        self._check(text, given.get("entities", []), TEXT_MAX, "message")
        if not text.strip():
            raise bad("message text is empty")
        return self._show(chat, given, text=text, **_said(entities=given.get("entities")))

    def do_editmessagetext(self, given: Mapping[str, Any], call: Call) -> Any:
        chat = self._open(given)
        found = self.messages.get((chat.id, int(given["message_id"])))
        text, entities = given.get("text", ""), given.get("entities", [])
        if found is None:
            raise bad("message to edit not found")
        if found["from"]["id"] != self.me["id"]:
            raise bad("message can't be edited")
        self._check(text, entities, TEXT_MAX, "message")
        if not text.strip():
            raise bad("message text is empty")
        if (found.get("text"), found.get("entities", [])) == (text, entities):
            raise bad(
                "message is not modified: specified new message content and reply markup are exactly the same as a current content and reply "
                "markup of the message"
            )
        found.pop("reply_markup", None)
        found.update(text=text, entities=entities, edit_date=int(time.time()), **_keyboard(given))
        return found

    def do_sendphoto(self, given: Mapping[str, Any], call: Call) -> Any:
        return self._medium("photo", given, call)

    def do_senddocument(self, given: Mapping[str, Any], call: Call) -> Any:
        return self._medium("document", given, call)

    def do_sendaudio(self, given: Mapping[str, Any], call: Call) -> Any:
        return self._medium("audio", given, call)

    def do_sendmediagroup(self, given: Mapping[str, Any], call: Call) -> Any:
        chat, media = self._open(given), given["media"]
        if not 2 <= len(media) <= 10:
            raise bad("group of media must have 2 to 10 items")
        names = {where: name for where, name, _ in call.files}
        shown: list[dict[str, Any]] = []
        for number, each in enumerate(media):
            caption = each.get("caption", "")
            self._check(caption, each.get("caption_entities", []), CAPTION_MAX, "message caption")
            file = self.file(names.get(each["media"].removeprefix("attach://"), "?"), b"sent")
            content = {each["type"]: [file | {"width": 1, "height": 1}] if each["type"] == "photo" else file | {"duration": 0}}
            about = dict(given) if number == 0 else {key: value for key, value in given.items() if key != "reply_parameters"}
            said = _said(caption=caption, caption_entities=each.get("caption_entities"))
            shown.append(self._show(chat, about, **content, **said, media_group_id="g1"))
        return shown

    def do_sendchataction(self, given: Mapping[str, Any], call: Call) -> Any:
        if self.typing_fails:
            raise ApiError(500, "Internal Server Error")
        chat = self._open(given)
        thread = int(given.get("message_thread_id", 0))
        if thread and thread not in chat.topics | {1}:
            raise bad("message thread not found")
        return True

    def do_setmessagereaction(self, given: Mapping[str, Any], call: Call) -> Any:
        chat = self._open(given)
        if (chat.id, int(given["message_id"])) not in self.messages:
            raise bad("message to react not found")
        for reaction in given.get("reaction", []):
            if reaction["emoji"] not in REACTIONS:
                raise bad("REACTION_INVALID")
            self.reactions.append((chat.id, int(given["message_id"]), reaction["emoji"]))
        return True

    def do_getchatmember(self, given: Mapping[str, Any], call: Call) -> Any:
        chat, user = self._open(given), int(given["user_id"])
        shown = {"user": {"id": user, "is_bot": False, "first_name": "Somebody"}, "status": "administrator" if user in chat.admins else "member"}
        rights = (
            "can_be_edited", "is_anonymous", "can_manage_chat", "can_delete_messages", "can_manage_video_chats", "can_restrict_members",
            "can_promote_members", "can_change_info", "can_invite_users", "can_post_stories", "can_edit_stories", "can_delete_stories",
        )  # fmt: skip
        return shown | (dict.fromkeys(rights, False) if user in chat.admins else {})

    def do_getfile(self, given: Mapping[str, Any], call: Call) -> Any:
        file_id = given["file_id"]
        if file_id not in self.files:
            raise bad("wrong file_id or the file is temporarily unavailable")
        _, _, size = self.files[file_id]
        if size > DOWNLOAD_MAX:
            raise bad("file is too big")
        return {"file_id": file_id, "file_unique_id": f"u{file_id}", "file_size": size, "file_path": f"documents/{file_id}"}

    def do_setmycommands(self, given: Mapping[str, Any], call: Call) -> Any:
        commands = given["commands"]
        if len(commands) > 100:
            raise bad("BOT_COMMANDS_TOO_MUCH")
        for command in commands:
            name = command["command"]
            if not 1 <= len(name) <= 32 or not all(c.isascii() and (c.islower() or c.isdigit() or c == "_") for c in name):
                raise bad("BOT_COMMAND_INVALID")
            if not 1 <= len(command["description"]) <= 256:
                raise bad("BOT_COMMAND_DESCRIPTION_INVALID")
        self.menus[given.get("language_code", "")] = commands
        return True

    def do_answercallbackquery(self, given: Mapping[str, Any], call: Call) -> Any:
        self.presses.append(given["callback_query_id"])
        self.asides[given["callback_query_id"]] = given.get("text", "")
        return True

    def do_editmessagereplymarkup(self, given: Mapping[str, Any], call: Call) -> Any:
        chat = self._open(given)
        found = self.messages.get((chat.id, int(given["message_id"])))
        if found is None:
            raise bad("message to edit not found")
        keyboard = _keyboard(given)
        if found.get("reply_markup", {}) == keyboard.get("reply_markup", {}):
            raise bad("message is not modified: specified new message content and reply markup are exactly the same as a current one")
        found.pop("reply_markup", None)
        found.update(keyboard)
        return found

    def do_setwebhook(self, given: Mapping[str, Any], call: Call) -> Any:
        if not given.get("url", "").startswith("http"):
            raise bad("bad webhook: An HTTPS URL must be provided for webhook")
        self.webhook = {"url": given["url"], "secret": given.get("secret_token", "")}
        self.allowed = given.get("allowed_updates", self.allowed)
        return True

    def do_deletewebhook(self, given: Mapping[str, Any], call: Call) -> Any:
        self.webhook = {"url": ""}
        if given.get("drop_pending_updates"):
            self.updates.clear()
        return True

    def do_getwebhookinfo(self, given: Mapping[str, Any], call: Call) -> Any:
        info = {"url": self.webhook["url"], "has_custom_certificate": False, "pending_update_count": len(self.updates)}
        return info | ({"last_error_date": self.webhook_error, "last_error_message": "Wrong response"} if self.webhook_error else {})

    # Rules

    def _open(self, given: Mapping[str, Any]) -> Chat:
        chat = self.chats.get(int(given["chat_id"]))
        if chat is None:
            raise bad("chat not found")
        if chat.moved_to:
            raise bad("group chat was upgraded to a supergroup chat", migrate_to_chat_id=chat.moved_to)
        if chat.gone:
            raise ApiError(403, f"Forbidden: {chat.gone}")
        return chat

    def _check(self, text: str, entities: list[Mapping[str, Any]], most: int, what: str) -> None:
        if "\x00" in text or any("\ud800" <= c <= "\udfff" for c in text):
            raise bad("strings must be encoded in UTF-8")
        if units(text) > most:
            raise bad(f"{what} is too long")
        if len(entities) > ENTITIES_MAX:
            raise bad("too many entities")  # the real server drops the rest without a word
        encoded = text.encode("utf-16-le")
        for entity in entities:
            start, end = entity["offset"], entity["offset"] + entity["length"]
            if not 0 <= start < end <= len(encoded) // 2:
                raise bad("can't parse entities: entity does not fit the text")
            for edge in (start, end):
                if 0xDC00 <= int.from_bytes(encoded[2 * edge : 2 * edge + 2], "little") <= 0xDFFF:
                    raise bad("can't parse entities: entity begins or ends in the middle of a UTF-16 symbol")

    def _show(self, chat: Chat, given: Mapping[str, Any], **content: Any) -> dict[str, Any]:
        thread = int(given.get("message_thread_id", 0))
        if thread and thread not in chat.topics:
            raise bad("message thread not found")
        reply = given.get("reply_parameters")
        if reply and (self.refused_replies or (chat.id, reply["message_id"]) not in self.messages):
            if self.refused_replies or not reply.get("allow_sending_without_reply"):
                raise bad("message to be replied not found")
            reply = None
        about: dict[str, Any] = {"message_thread_id": thread, "is_topic_message": True} if thread else {}
        if reply:
            about["reply_to_message"] = self.messages[chat.id, reply["message_id"]]
        return self.message(chat, self.me, **about, **_keyboard(given), **content)

    def _medium(self, kind: str, given: Mapping[str, Any], call: Call) -> Any:
        chat, caption = self._open(given), given.get("caption", "")
        self._check(caption, given.get("caption_entities", []), CAPTION_MAX, "message caption")
        ((_, name, size),) = call.files
        if size > (PHOTO_MAX if kind == "photo" else FILE_MAX):
            raise ApiError(413, "Request Entity Too Large")
        file = self.file(name, b"sent", size)
        content = {kind: [file | {"width": 1, "height": 1}] if kind == "photo" else file | ({"duration": 0} if kind == "audio" else {})}
        return self._show(chat, given, **content, **_said(caption=caption, caption_entities=given.get("caption_entities")))


def shows(method: str) -> bool:
    name = method.lower()
    return name.startswith(("send", "edit", "setmessagereaction")) and name != "sendchataction"


def _rows(message: Mapping[str, Any]) -> list[list[dict[str, Any]]]:
    return message.get("reply_markup", {}).get("inline_keyboard", [])


def _keyboard(given: Mapping[str, Any]) -> dict[str, Any]:
    """The buttons of a call, as the message has them."""
    rows = given.get("reply_markup", {}).get("inline_keyboard", [])
    if any(not 1 <= len(button["callback_data"].encode()) <= DATA_MAX for row in rows for button in row):
        raise bad("BUTTON_DATA_INVALID")
    return {"reply_markup": {"inline_keyboard": rows}} if rows else {}


def _said(**content: Any) -> dict[str, Any]:
    return {key: value for key, value in content.items() if value}


def parsed(given: Mapping[str, str]) -> dict[str, Any]:
    """Parameters as the server reads them: what is JSON inside a form field is decoded."""
    return {name: json.loads(value) if name in PARSED else value for name, value in given.items()}
