"""What a fake Discord knows: people, servers, channels, messages, and what it refuses. No sockets here; `server.py` speaks for it."""

from __future__ import annotations

import itertools
import re
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

TOKEN = "MTEwMDAwMDAwMDAwMDAwMDAwMQ.GfAkEx.4u5hF0rAfakeDiscordOnLoopback0123456789"
ME, APPLICATION = "1100000000000000001", "1100000000000000009"
GUILD, GENERAL, HALL, THREAD, DM = (
    "1100000000000000100", "1100000000000000110", "1100000000000000111", "1100000000000000120", "1100000000000000130",
)  # fmt: skip
ANN, BOB, ROBOT = "1100000000000000201", "1100000000000000202", "1100000000000000209"
OUR_ROLE, STAFF_ROLE = "1100000000000000301", "1100000000000000302"
EPOCH_MS = 1_420_070_400_000
TEXT_MAX, ROWS_MAX, LABEL_MAX, ID_MAX = 2000, 5, 80, 100
NONCE_KEPT = timedelta(minutes=5)
CONTENT_INTENT, CONTENT_FLAG = 1 << 15, 1 << 18
ADMINISTRATOR, MANAGE_GUILD, TALKING = 1 << 3, 1 << 5, 1 << 10 | 1 << 11 | 1 << 16


class ApiError(Exception):
    """An answer that refuses: a status, Discord's code, and more fields of the body."""

    def __init__(self, status: int, code: int, message: str, **more: Any) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"message": message, "code": code, **more}


@dataclass(slots=True)
class Call:
    """One request. `what`: send, edit, typing, react, history, message, channel, open, commands, defer, answer, take back, or other."""

    what: str
    path: str
    body: Mapping[str, Any]
    at: datetime


@dataclass(slots=True, kw_only=True)
class Channel:
    id: str
    type: int
    guild_id: str = ""
    parent_id: str = ""
    name: str = ""
    archived: bool = False
    locked: bool = False
    may_open: bool = True

    def json(self) -> dict[str, Any]:
        about: dict[str, Any] = {"id": self.id, "type": self.type, "name": self.name, "position": 0, "permission_overwrites": [], "nsfw": False}
        if self.type == 1:
            return {"id": self.id, "type": 1, "recipients": [], "last_message_id": None}
        about |= {"guild_id": self.guild_id, "parent_id": self.parent_id or None, "last_message_id": None, "rate_limit_per_user": 0}
        if self.type in (10, 11, 12):
            about |= {
                "owner_id": ANN, "message_count": 1, "member_count": 1,
                "thread_metadata": {
                    "archived": self.archived, "locked": self.locked, "auto_archive_duration": 1440,
                    "archive_timestamp": "2026-01-01T00:00:00+00:00",
                },
            }  # fmt: skip
        return about


@dataclass(slots=True)
class World:
    """`content_switch`: the Message Content Intent of the developer portal. `closes_without_it`: as Discord does; servers that look like it may not.

    `plan`: faults of the next calls that send, edit or answer, one each: {"status", "code", "message"}, {"retry_after"}, {"edge": true},
    {"cut": true}, {"hang": true}. With "after" the call is carried out first, with "bare" the limit comes as from a server that has no network in
    front. `api_down`: every call is answered with 503.
    """

    clock: Callable[[], datetime] = lambda: datetime.now(UTC)
    content_switch: bool = True
    closes_without_it: bool = True
    users: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    channels: dict[str, Channel] = field(default_factory=dict[str, Channel])
    managers: dict[str, int] = field(default_factory=dict[str, int])  # permissions of the staff role's members
    messages: dict[str, list[dict[str, Any]]] = field(default_factory=dict[str, list[dict[str, Any]]])
    nonces: dict[tuple[str, str], tuple[dict[str, Any], datetime]] = field(default_factory=dict[tuple[str, str], tuple[dict[str, Any], datetime]])
    files: dict[str, bytes] = field(default_factory=dict[str, bytes])
    plan: deque[dict[str, Any]] = field(default_factory=deque[dict[str, Any]])
    api_down: bool = False
    typing_fails: bool = False
    calls: list[Call] = field(default_factory=list[Call])
    reactions: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    commands: list[dict[str, Any]] = field(default_factory=list[dict[str, Any]])
    commands_refused: ApiError | None = None
    asides: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])  # what one alone was told: who, and the words
    interactions: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    url: str = ""  # of the server: files are under it
    _count: itertools.count[int] = field(default_factory=lambda: itertools.count(1))

    def __post_init__(self) -> None:
        self.user(ME, "yume", bot=True)
        self.user(ANN, "ann", global_name="Ann")
        self.user(BOB, "bob", global_name="Bob")
        self.user(ROBOT, "robot", bot=True)
        self.channel(GENERAL, 0, guild_id=GUILD, name="general")
        self.channel(HALL, 0, guild_id=GUILD, name="hall")
        self.channel(THREAD, 11, guild_id=GUILD, parent_id=HALL, name="tea")
        self.channel(DM, 1)

    def user(self, user_id: str, username: str, **more: Any) -> dict[str, Any]:
        about = {"id": user_id, "username": username, "discriminator": "0", "avatar": None, "global_name": None, "bot": False, **more}
        self.users[user_id] = about
        return about

    def channel(self, channel_id: str, kind: int, **more: Any) -> Channel:
        self.channels[channel_id] = Channel(id=channel_id, type=kind, **more)
        return self.channels[channel_id]

    def snowflake(self, at: datetime | None = None) -> str:
        ms = int((at or self.clock()).timestamp() * 1000)
        return str((ms - EPOCH_MS) << 22 | next(self._count) & 0x3FFFFF)

    # What people do

    def message(self, channel_id: str, author: Mapping[str, Any], content: str, **more: Any) -> dict[str, Any]:
        """A message as the history shows it; not yet written."""
        at = self.clock()
        return {
            "id": self.snowflake(at), "channel_id": channel_id, "type": 0, "content": content, "author": dict(author),
            "timestamp": at.isoformat(), "edited_timestamp": None, "tts": False, "mention_everyone": False, "pinned": False,
            "mentions": [self.users[found] for found in dict.fromkeys(re.findall(r"<@!?(\d+)>", content)) if found in self.users],
            "mention_roles": re.findall(r"<@&(\d+)>", content), "attachments": [], "embeds": [], "components": [], **more,
        }  # fmt: skip

    def write(self, message: dict[str, Any]) -> dict[str, Any]:
        self.messages.setdefault(message["channel_id"], []).append(message)
        return message

    def announced(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """A message as its event shows it: with the server, and who wrote it there."""
        channel = self.channels[message["channel_id"]]
        if not channel.guild_id:
            return dict(message)
        member: dict[str, Any] = {"nick": None, "roles": [], "joined_at": "2026-01-01T00:00:00+00:00", "deaf": False, "mute": False}
        named = any(user["id"] == ME for user in message["mentions"])
        content = message["content"] if self.content_switch or named else ""
        return {**message, "guild_id": channel.guild_id, "member": member, "content": content}

    def reference(self, answered: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a message that answers another."""
        where = {"type": 0, "message_id": answered["id"], "channel_id": answered["channel_id"]}
        return {"type": 19, "message_reference": where, "referenced_message": dict(answered)}

    def file(self, name: str, data: bytes | None, mime: str = "") -> dict[str, Any]:
        """An attachment; without `data` it is listed and not given out."""
        file_id = self.snowflake()
        if data is not None:
            self.files[file_id] = data
        url = f"{self.url}/files/{file_id}/file?ex=1&is=2&hm=signed-{file_id}"
        about: dict[str, Any] = {"id": file_id, "filename": name, "size": len(data or b""), "url": url, "proxy_url": url}
        return about | ({"content_type": mime} if mime else {})

    def found(self, channel_id: str, message_id: str) -> dict[str, Any]:
        self.room(channel_id)
        for message in self.messages.get(channel_id, []):
            if message["id"] == message_id:
                return message
        raise ApiError(404, 10008, "Unknown Message")

    def room(self, channel_id: str) -> Channel:
        if channel_id not in self.channels:
            raise ApiError(404, 10003, "Unknown Channel")
        return self.channels[channel_id]

    # What the bot does

    def send(self, channel_id: str, body: Mapping[str, Any], files: Mapping[str, bytes]) -> tuple[dict[str, Any], bool]:
        """The message, and whether it is new: one with the nonce of an earlier one is that one."""
        channel = self.room(channel_id)
        nonce = str(body.get("nonce") or "")
        known = self.nonces.get((channel_id, nonce)) if nonce and body.get("enforce_nonce") else None
        if known is not None and self.clock() - known[1] < NONCE_KEPT:
            return known[0], False
        if channel.locked:
            raise ApiError(400, 50083, "Thread is archived") if channel.archived else ApiError(400, 160005, "Thread is locked")
        content = self.text(body, has_files=bool(files))
        held = [self.file(name, data) for name, data in files.items()]
        message = self.message(channel_id, self.users[ME], content, attachments=held, nonce=nonce, allowed_mentions=body.get("allowed_mentions"))
        message |= {"flags": body.get("flags", 0), "components": components(body)}
        if reference := body.get("message_reference"):
            answered = [each for each in self.messages.get(channel_id, []) if each["id"] == str(reference["message_id"])]
            if not answered and reference.get("fail_if_not_exists", True):
                raise ApiError(400, 50035, "Invalid Form Body", errors={"message_reference": {"_errors": [{"message": "Unknown message"}]}})
            message |= self.reference(answered[0]) if answered else {}
        self.write(message)
        if nonce:
            self.nonces[channel_id, nonce] = (message, self.clock())
        return message, True

    def edit(self, channel_id: str, message_id: str, body: Mapping[str, Any], files: Mapping[str, bytes] | None = None) -> dict[str, Any]:
        message = self.found(channel_id, message_id)
        if message["author"]["id"] != ME:
            raise ApiError(403, 50005, "Cannot edit a message authored by another user")
        held = [self.file(name, data) for name, data in (files or {}).items()]
        if "content" in body:
            message["content"] = self.text(body, has_files=bool(files))
        if "components" in body:
            message["components"] = components(body)
        message["attachments"] += held
        message["edited_timestamp"] = self.clock().isoformat()
        return message

    def buttons(self, channel_id: str) -> list[list[str]]:
        """The labels of the buttons in a channel, row by row."""
        return [[each["label"] for each in row["components"]] for message in self.messages.get(channel_id, []) for row in message["components"]]

    def text(self, body: Mapping[str, Any], *, has_files: bool) -> str:
        content = str(body.get("content") or "").strip()
        if len(content.encode("utf-16-le", "surrogatepass")) // 2 > TEXT_MAX or re.search("[\x00\ud800-\udfff]", content):
            raise ApiError(400, 50035, "Invalid Form Body", errors={"content": {"_errors": [{"message": "Must be 2000 or fewer in length."}]}})
        if not content and not has_files:
            raise ApiError(400, 50006, "Cannot send an empty message")
        return content

    def history(self, channel_id: str, *, after: str = "", limit: int = 50) -> list[dict[str, Any]]:
        """Those next to `after`, or the newest; newest first, as the platform lists them."""
        self.room(channel_id)
        kept = sorted(self.messages.get(channel_id, []), key=lambda message: int(message["id"]))
        if after:
            return [message for message in kept if int(message["id"]) > int(after)][:limit][::-1]
        return kept[-limit:][::-1]

    # What it shows at the start

    def guild(self) -> dict[str, Any]:
        channels = [channel.json() for channel in self.channels.values() if channel.guild_id and channel.type not in (10, 11, 12)]
        threads = [channel.json() for channel in self.channels.values() if channel.type in (10, 11, 12) and not channel.archived]
        return {
            "id": GUILD, "name": "The Tea House", "owner_id": BOB, "icon": None, "unavailable": False, "member_count": 3, "large": False,
            "roles": [
                _role(GUILD, "@everyone", TALKING, 0), _role(OUR_ROLE, "Yume", TALKING, 1, tags={"bot_id": ME}),
                _role(STAFF_ROLE, "Staff", MANAGE_GUILD, 2),
            ],
            "channels": channels, "threads": threads, "members": [], "emojis": [], "stickers": [], "features": [], "presences": [],
            "voice_states": [], "stage_instances": [], "guild_scheduled_events": [], "soundboard_sounds": [], "premium_tier": 0,
            "verification_level": 0, "default_message_notifications": 0, "explicit_content_filter": 0, "mfa_level": 0, "nsfw_level": 0,
            "preferred_locale": "en-US", "afk_timeout": 300, "system_channel_flags": 0, "premium_progress_bar_enabled": False,
            "afk_channel_id": None, "system_channel_id": None, "rules_channel_id": None, "public_updates_channel_id": None,
            "joined_at": "2026-01-01T00:00:00+00:00", "vanity_url_code": None, "description": None, "banner": None, "splash": None,
            "discovery_splash": None, "application_id": None, "max_members": 500000, "premium_subscription_count": 0,
        }  # fmt: skip

    def member(self, user_id: str) -> dict[str, Any]:
        if user_id not in self.users:
            raise ApiError(404, 10007, "Unknown Member")
        roles = [STAFF_ROLE] if user_id in self.managers else []
        return {
            "user": self.users[user_id], "nick": None, "roles": roles, "joined_at": "2026-01-01T00:00:00+00:00", "deaf": False, "mute": False,
            "flags": 0, "avatar": None, "premium_since": None, "pending": False,
        }  # fmt: skip

    def application(self) -> dict[str, Any]:
        flags = CONTENT_FLAG if self.content_switch else 0
        return {
            "id": APPLICATION, "name": "Yume", "description": "", "icon": None, "bot_public": True, "bot_require_code_grant": False,
            "verify_key": "0" * 64, "flags": flags, "owner": self.users[BOB], "team": None, "summary": "",
        }  # fmt: skip


def components(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of buttons of a call, as the message has them."""
    rows: list[dict[str, Any]] = body.get("components") or []
    buttons = [button for row in rows for button in row["components"]]
    if len(rows) > ROWS_MAX or any(row["type"] != 1 or not 1 <= len(row["components"]) <= ROWS_MAX for row in rows):
        raise ApiError(400, 50035, "Invalid Form Body", errors={"components": {"_errors": [{"message": "Must be between 1 and 5 in length."}]}})
    if any(button["type"] != 2 or not button["label"] or len(button["label"]) > LABEL_MAX or len(button["custom_id"]) > ID_MAX for button in buttons):
        raise ApiError(400, 50035, "Invalid Form Body", errors={"components": {"_errors": [{"message": "A button is not valid."}]}})
    return rows


def _role(role_id: str, name: str, permissions: int, position: int, **more: Any) -> dict[str, Any]:
    return {
        "id": role_id, "name": name, "permissions": str(permissions), "position": position, "color": 0, "hoist": False, "managed": False,
        "mentionable": True, "icon": None, "unicode_emoji": None, "flags": 0,
        "colors": {"primary_color": 0, "secondary_color": None, "tertiary_color": None}, **more,
    }  # fmt: skip
