"""What an operator sets for one bot, and what Discord can do (CH-8)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from channels.port import Capabilities, Markup, TextUnit

API_BASE = "https://discord.com/api/v10"

CAPABILITIES = Capabilities(
    text_unit=TextUnit.UTF16,
    text_max=2000,
    markup=Markup.MARKDOWN,
    edit_interval_s=1.2,
    typing_refresh_s=8.0,
    threads=True,
    reactions=True,
    buttons=True,
    media_max_bytes=10_000_000,  # a server may allow more; what is really too large is told with the text (40005)
    documents=True,
    resend_key_s=120.0,
    reconcile=True,
    liveness_s=60.0,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SlashCommand:
    """A command to register. `localized`: descriptions by Discord's language tags (`ja`, `zh-CN`)."""

    name: str
    description: str
    localized: Mapping[str, str] = field(default_factory=dict[str, str])


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscordSettings:
    """`gateway_url`: empty is what the API names. `prefix`: what a slash command becomes a text with, so that it is read like one that was typed.

    `commands`: what to register; without any, what is registered stays. `attachment_bytes`: the largest file that is fetched (CH-7).
    """

    token: str = field(repr=False)
    api_base: str = API_BASE
    gateway_url: str = ""
    prefix: str = "/"
    commands: tuple[SlashCommand, ...] = ()
    attachment_bytes: int = CAPABILITIES.fetch_max_bytes

    @property
    def capabilities(self) -> Capabilities:
        return replace(CAPABILITIES, fetch_max_bytes=self.attachment_bytes)
