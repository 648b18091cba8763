"""What the fake iLink knows and refuses (rules WX-170 to WX-177): people, context tokens with their budget, the feed, what people see, files.

Plain state and answers; `ilink_server.py` puts it on a socket. Codes are the vendor's: -14 session gone, -2 limited, -3 invalid.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import itertools
import re
import time
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

TOKEN = "0123456789abcdef@im.bot:06000000aabbccddeeff00112233"
BOT_ID = "0123456789abcdef@im.bot"
HARD_BUDGET = 10  # messages per context token
WINDOW_S = 24 * 3600
TEXT_MAX = 2048  # UTF-16 units
PER_SECOND = 3
GONE, LIMITED, INVALID = -14, -2, -3
_CODE = re.compile(r"```.*?(?:```|\Z)|`[^`\n]*`", re.DOTALL)

Json = dict[str, Any]


def padded(size: int) -> int:
    return -(-(size + 1) // 16) * 16


def seal(plain: bytes, key: bytes) -> bytes:
    """Written apart from the adapter's own: two hands, one result."""
    pad = 16 - len(plain) % 16
    return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(plain + bytes([pad]) * pad)


def unseal(data: bytes, key: bytes) -> bytes:
    plain = Cipher(algorithms.AES(key), modes.ECB()).decryptor().update(data)
    pad = plain[-1]
    if not 1 <= pad <= 16 or plain[-pad:] != bytes([pad]) * pad:
        raise ValueError("bad padding")
    return plain[:-pad]


@dataclass(slots=True, kw_only=True)
class Call:
    name: str
    method: str
    headers: Mapping[str, str]
    body: Json
    raw: bytes = b""
    at: float = 0.0


@dataclass(slots=True, kw_only=True)
class Token:
    person: str
    issued: float
    sent: int = 0
    dead: bool = False


@dataclass(slots=True, kw_only=True)
class Stored:
    """A file in the store. `announced`: a length that the store claims, `missing`: it is not given out, `elsewhere`: it redirects there."""

    data: bytes
    announced: int = 0
    missing: bool = False
    elsewhere: str = ""


@dataclass(slots=True, kw_only=True)
class Shown:
    """A message of the bot's, as the person has it."""

    person: str
    message_id: str
    client_id: str
    item: Json
    text: str = ""
    file: bytes = b""
    name: str = ""


@dataclass(slots=True)
class World:
    """`clock`: seconds, which tests may set. `switches`: what the server does differently, see the class body."""

    token: str = TOKEN
    bot_id: str = BOT_ID
    clock: Callable[[], float] = time.time
    hold_s: float = 0.2
    token_life_s: float | None = None  # after so long a context token is dead
    rate_limited: bool = True
    fresh_tokens: bool = False  # getconfig names a fresh context token
    typing_counts: bool = False  # each typing call uses up the context token
    full_urls: bool = True  # getuploadurl names the whole address
    unknown_cursor_refused: bool = False
    refuses_known_tokens: bool = False  # a login code is refused with -3 when old tokens are named
    typing_fails: bool = False
    deaf: bool = False  # polls are accepted and never answered
    empty_cursors: bool = False  # a poll without news moves the cursor all the same
    expired: bool = False
    number: str = "42"  # what the phone shows
    qr: deque[Json] = field(default_factory=deque[Json])  # statuses to come; the last one stays
    codes: int = 0
    known_tokens: list[list[str]] = field(default_factory=list[list[str]])  # as they were named with each code
    numbers: list[str] = field(default_factory=list[str])
    faults: dict[str, deque[Json]] = field(default_factory=lambda: defaultdict[str, deque[Json]](deque))
    calls: list[Call] = field(default_factory=list[Call])
    violations: list[str] = field(default_factory=list[str])
    feed: list[Json] = field(default_factory=list[Json])
    again: list[Json] = field(default_factory=list[Json])
    tokens: dict[str, Token] = field(default_factory=dict[str, Token])
    shown: list[Shown] = field(default_factory=list[Shown])
    typing: list[tuple[str, bool]] = field(default_factory=list[tuple[str, bool]])
    notices: list[str] = field(default_factory=list[str])
    files: dict[str, Stored] = field(default_factory=dict[str, Stored])
    uploads: dict[str, Json] = field(default_factory=dict[str, Json])
    _uin: str = ""
    _ids: itertools.count[int] = field(default_factory=lambda: itertools.count(7_400_000_000_000_000_001))  # past 2^53, as theirs
    _numbers: itertools.count[int] = field(default_factory=lambda: itertools.count(1))
    _sends: deque[float] = field(default_factory=deque[float])

    # What people do

    def says(self, person: str, *texts: str, items: list[Json] | None = None, **more: Any) -> Json:
        """A person writes: a new context token, and the raw message in the feed. `more`: fields added or replaced."""
        given = [{"type": 1, "text_item": {"text": text}} for text in texts] + (items or [])
        message: Json = {
            "seq": len(self.feed) + 1, "message_id": next(self._ids), "from_user_id": person, "to_user_id": self.bot_id,
            "client_id": f"c{len(self.feed)}", "create_time_ms": int(self.clock() * 1000), "update_time_ms": 0, "delete_time_ms": 0,
            "session_id": "s", "group_id": "", "message_type": 1, "message_state": 2, "item_list": given,
            "context_token": self.issue(person),
        } | more  # fmt: skip
        return self.put(message)

    def put(self, message: Json) -> Json:
        self.feed.append(message)
        return message

    def issue(self, person: str) -> str:
        token = f"ctx-{next(self._numbers)}-{person.partition('@')[0]}-secret"
        self.tokens[token] = Token(person=person, issued=self.clock())
        return token

    def image(self, data: bytes, *, key_as: str = "hex", **more: Any) -> Json:
        """An image item. `key_as`: hex, base64 of the raw bytes, base64 of the hex, or none (not encrypted)."""
        media, key = self.media(data, key_as=key_as)
        return {"type": 2, "image_item": {"media": media, "mid_size": padded(len(data))} | ({"aeskey": key.hex()} if key_as == "hex" else {}) | more}

    def file(self, name: str, data: bytes, *, missing: bool = False) -> Json:
        media, _ = self.media(data, key_as="base64 hex", missing=missing)
        return {"type": 4, "file_item": {"media": media, "file_name": name, "len": str(len(data)), "md5": hashlib.md5(data).hexdigest()}}

    def video(self, data: bytes) -> Json:
        media, _ = self.media(data, key_as="base64 hex")
        return {"type": 5, "video_item": {"media": media, "video_size": padded(len(data)), "play_length": 3}}

    def voice(self, data: bytes, text: str = "") -> Json:
        media, _ = self.media(data, key_as="base64 hex")
        return {"type": 3, "voice_item": {"media": media, "encode_type": 6, "sample_rate": 24000, "playtime": 2000, "text": text}}

    def media(self, data: bytes, *, key_as: str = "base64 hex", missing: bool = False) -> tuple[Json, bytes]:
        key = hashlib.md5(f"key {len(self.files)}".encode()).digest()
        parameter = f"param+/={len(self.files)}"  # it needs escaping, as theirs does
        self.files[parameter] = Stored(data=data if key_as == "none" else seal(data, key), missing=missing)
        spelled = {
            "hex": key.hex(), "base64": base64.b64encode(key).decode(), "base64 hex": base64.b64encode(key.hex().encode()).decode(), "none": "",
        }[key_as]  # fmt: skip
        return {"encrypt_query_param": parameter, "aes_key": "" if key_as == "hex" else spelled, "encrypt_type": 1}, key

    # What the server says

    def checked(self, call: Call) -> Json | None:
        """Why a call is refused before it is looked at; None when it is not (WX-170)."""
        headers = call.headers
        if not headers.get("iLink-App-Id") or not headers.get("iLink-App-ClientVersion", "").isdigit():
            return self._violated(f"{call.name}: an iLink header is missing", GONE)
        if call.method == "GET":
            return self._violated("GET carries Authorization", INVALID) if "Authorization" in headers else None
        if call.name.startswith("get_bot_qrcode"):
            return self._violated("a login carries Authorization", INVALID) if "Authorization" in headers else None
        if not (isinstance(call.body.get("base_info"), dict) and call.body["base_info"].get("channel_version")):
            return self._violated(f"{call.name}: base_info is missing", INVALID)
        uin = headers.get("X-WECHAT-UIN", "")
        if not _is_uin(uin) or uin == self._uin:
            return self._violated(f"{call.name}: X-WECHAT-UIN is not a fresh uint32", INVALID)
        self._uin = uin
        if headers.get("AuthorizationType") != "ilink_bot_token" or headers.get("Authorization") != f"Bearer {self.token}" or self.expired:
            return {"ret": GONE, "errcode": GONE, "errmsg": "session timeout"}
        return None

    def _violated(self, what: str, code: int) -> Json:
        self.violations.append(what)
        return {"errcode": code}

    def pending(self, cursor: str) -> tuple[list[Json], str] | None:
        """The feed after a cursor, and the next one; None for a cursor that is refused."""
        place = _place(cursor)
        if place is None or place > len(self.feed):
            if self.unknown_cursor_refused:
                return None
            place = 0
        again, self.again = self.again, []
        return again + self.feed[place:], _cursor(len(self.feed))

    def sent(self, body: Json) -> Json:
        """`sendmessage` (WX-174)."""
        message: Json = body.get("msg") or {}
        known = next((each for each in self.shown if message.get("client_id") and each.client_id == message["client_id"]), None)
        if known is not None:
            return {"message_id": int(known.message_id)}
        items: list[Json] = message.get("item_list") or []
        person = message.get("to_user_id", "")
        if len(items) != 1 or message.get("message_type") != 2 or message.get("from_user_id") != "":
            return {"ret": INVALID, "errmsg": "invalid argument"}
        text = items[0].get("text_item", {}).get("text", "") if items[0].get("type") == 1 else ""
        if len(text.encode("utf-16-le", "surrogatepass")) // 2 > TEXT_MAX:
            return {"ret": INVALID, "errmsg": "too long"}
        if refused := self._limited(person, message.get("context_token", "")):
            return {"ret": LIMITED, "errmsg": refused}
        self.tokens[message["context_token"]].sent += 1
        shown = Shown(person=person, message_id=str(next(self._ids)), client_id=message.get("client_id", ""), item=items[0], text=visible(text))
        if items[0].get("type") in (2, 4, 5):
            shown.file, shown.name = self._received(items[0])
        self.shown.append(shown)
        return {"message_id": int(shown.message_id)}

    def _limited(self, person: str, token: str) -> str:
        now, context = self.clock(), self.tokens.get(token)
        if context is None or context.person != person or context.dead:
            return "no such context"
        if self.token_life_s is not None and now - context.issued > self.token_life_s:
            return "context is outdated"
        if now - context.issued > WINDOW_S:
            return "outside the window"
        if context.sent >= HARD_BUDGET:
            return "too many messages"
        if self.rate_limited:
            while self._sends and now - self._sends[0] >= 1:
                self._sends.popleft()
            if len(self._sends) >= PER_SECOND:
                return "too fast"
            self._sends.append(now)
        return ""

    def _received(self, item: Json) -> tuple[bytes, str]:
        content = next(value for name, value in item.items() if name.endswith("_item"))
        media = content["media"]
        key = bytes.fromhex(base64.b64decode(media["aes_key"]).decode())
        return unseal(self.files[media["encrypt_query_param"]].data, key), content.get("file_name", "")

    def configured(self, body: Json) -> Json:
        person = body.get("ilink_user_id", "")
        fresh = {"context_token": self.issue(person)} if self.fresh_tokens else {}
        return {"ret": 0, "typing_ticket": base64.b64encode(f"ticket {person}".encode()).decode()} | fresh

    def typed(self, body: Json) -> Json:
        person = body.get("ilink_user_id", "")
        if self.typing_fails or body.get("typing_ticket") != base64.b64encode(f"ticket {person}".encode()).decode():
            return {"ret": 1, "errmsg": "bad ticket"}
        self.typing.append((person, body.get("status") == 1))
        if self.typing_counts:
            newest = [token for token in self.tokens.values() if token.person == person][-1:]
            for token in newest:
                token.sent += 1
        return {"ret": 0}

    def upload_place(self, body: Json, base: str) -> Json:
        sizes = body.get("filesize") == padded(body.get("rawsize", -1))
        keys = len(body.get("filekey", "")) == 32 and len(bytes.fromhex(body.get("aeskey", ""))) == 16
        if not sizes or not keys or body.get("media_type") not in (1, 2, 3, 4):
            return {"ret": INVALID, "errmsg": "invalid argument"}
        self.uploads[body["filekey"]] = body
        parameter = f"up+/={body['filekey']}"
        return {"upload_full_url": f"{base}/full-upload/{body['filekey']}?sig=a%2Bb"} if self.full_urls else {"upload_param": parameter}

    def uploaded(self, filekey: str, data: bytes) -> tuple[str, str]:
        """The download parameter, or an error's text (WX-176)."""
        asked = self.uploads.get(filekey)
        if asked is None:
            return "", "unknown filekey"
        try:
            plain = unseal(data, bytes.fromhex(asked["aeskey"]))
        except ValueError:
            return "", "not encrypted with the key"
        if len(data) != asked["filesize"] or len(plain) != asked["rawsize"] or hashlib.md5(plain).hexdigest() != asked["rawfilemd5"]:
            return "", "size or md5 differ"
        parameter = f"down+/={filekey}"
        self.files[parameter] = Stored(data=data)
        return parameter, ""

    def login_code(self, body: Json) -> Json:
        tokens = body.get("local_token_list", [])
        self.known_tokens.append(tokens)
        if tokens and self.refuses_known_tokens:
            return {"ret": INVALID, "errmsg": "invalid argument"}
        self.codes += 1
        return {"ret": 0, "qrcode": f"qr{self.codes}", "qrcode_img_content": f"https://liteapp.weixin.qq.com/q/fake?qrcode=qr{self.codes}"}

    def login_status(self, number: str) -> Json:
        """The next status of the script; the last stays. A confirmed one brings what `credentials` says unless the script says otherwise."""
        if number:
            self.numbers.append(number)
        script = self.qr[0] if len(self.qr) == 1 else self.qr.popleft() if self.qr else {"status": "wait"}
        return dict(script)

    def credentials(self, base_url: str) -> Json:
        return {"status": "confirmed", "bot_token": self.token, "ilink_bot_id": self.bot_id, "baseurl": base_url, "ilink_user_id": "ann@im.wechat"}

    # What tests look at

    def texts(self, person: str | None = None) -> list[str]:
        return [each.text for each in self.shown if person is None or each.person == person]

    def called(self, name: str) -> list[Call]:
        return [call for call in self.calls if call.name == name]

    def fail(self, call: str, *plan: Json) -> None:
        """Faults of the next calls of a name, one each: {"cut": "before" or "after"}, {"status": 500}, {"retry_after": s}, {"slow": s},
        {"text": body}, {"hang": True}, {"bad_json": True}, {"empty": True}, or an answer such as {"ret": -2}."""
        self.faults[call].extend(plan)


def visible(text: str) -> str:
    """What the client shows: nothing after a bare `<` outside code (WX-39)."""
    bare = _CODE.sub(lambda found: "\0" * len(found[0]), text).find("<")
    return text if bare < 0 else text[:bare]


def _is_uin(text: str) -> bool:
    try:
        decoded = base64.b64decode(text, validate=True).decode("ascii")
    except (binascii.Error, UnicodeDecodeError):
        return False
    return decoded.isdigit() and 0 <= int(decoded) < 1 << 32


def _cursor(place: int) -> str:
    return base64.b64encode(str(place).encode()).decode()


def _place(cursor: str) -> int | None:
    try:
        return int(base64.b64decode(cursor, validate=True)) if cursor else 0
    except ValueError:
        return None
