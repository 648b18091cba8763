"""What an operator sets for one bot, and what Telegram can do (CH-8)."""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field, replace
from typing import Literal

from channels.port import Capabilities, Markup, TextUnit

CAPABILITIES = Capabilities(
    text_unit=TextUnit.UTF16,
    text_max=4096,
    markup=Markup.ENTITIES,
    caption_max=1024,
    edit_interval_s=1.2,
    group_edit_interval_s=3.0,
    typing_refresh_s=4.0,
    threads=True,
    reactions=True,
    buttons=True,
    media_max_bytes=50_000_000,
    documents=True,
    liveness_s=120.0,
)

WEBHOOK_CAPABILITIES = replace(CAPABILITIES, liveness_s=300.0)  # it is looked at every minute whether Telegram still calls


@dataclass(frozen=True, slots=True)
class MenuEntry:
    """One line of the menu of commands: the name without a slash."""

    name: str
    description: str


@dataclass(frozen=True, slots=True)
class Menu:
    """The menu for clients in one language (a two-letter code); the empty language is everybody else's."""

    language: str
    entries: tuple[MenuEntry, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TelegramSettings:
    """`webhook_url`: the public https address under which Telegram reaches the webhook listener; the path of the account is added to it.

    `menus`: the commands to register at start; without any, what is registered stays. `channel_posts`: posts of channels count as messages.
    `attachment_bytes`: the largest file that is fetched; without a server of one's own Telegram gives out none above 20 MB (CH-160).
    """

    token: str = field(repr=False)
    base_url: str = "https://api.telegram.org"
    mode: Literal["polling", "webhook"] = "polling"
    webhook_url: str = ""
    channel_posts: bool = False
    menus: tuple[Menu, ...] = ()
    attachment_bytes: int = CAPABILITIES.fetch_max_bytes

    @property
    def capabilities(self) -> Capabilities:
        return replace(WEBHOOK_CAPABILITIES if self.mode == "webhook" else CAPABILITIES, fetch_max_bytes=self.attachment_bytes)

    @property
    def webhook_secret(self) -> str:
        """What Telegram sends along with every call, so that nobody else can make one. Made from the token: nothing to configure or to store."""
        return hmac.new(self.token.encode(), b"yumegate webhook", hashlib.sha256).hexdigest()

    @property
    def update_kinds(self) -> tuple[str, ...]:
        """Always written out: the server remembers the last list it was given (CH-151)."""
        posts = ("channel_post", "edited_channel_post") if self.channel_posts else ()
        return ("message", "edited_message", "callback_query", "my_chat_member", *posts)
