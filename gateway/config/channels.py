"""The accounts of chat platforms, of which `gateway.config.Config` is made."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Literal

from pydantic import Field, SecretStr

from gateway.config.types import (
    AesKey,
    HeaderValue,
    Host,
    Id,
    NumericIds,
    OpaqueIds,
    SameAs,
    Secret,
    Section,
    SocketUrl,
    Url,
    WebPath,
    WeChatIds,
)

_ENABLED = "Whether this channel runs."
_ALLOW = 'Ids of the people who may write; empty admits nobody but offers pairing, "*" admits everybody.'
_LARGEST = "Largest file in bytes that is fetched of what people send."
_TRUSTED = "Hosts beside the vendor's from which files may be fetched."
_ACCOUNTS = "More accounts of this platform, each under an id of its own."


class TelegramAccount(Section):
    enabled: bool = Field(default=False, description=_ENABLED)
    token: Secret = Field(default=SecretStr(""), description="The bot's token.")
    base_url: Url = Field(default="https://api.telegram.org", description="Address of the Bot API, for a server of your own.")
    mode: Literal["polling", "webhook"] = Field(default="polling", description="How messages come in.")
    webhook_url: Url = Field(default="", description="Public https address under which Telegram reaches the webhook listener; for the mode webhook.")
    channel_posts: bool = Field(default=False, description="Whether posts of Telegram channels count as messages.")
    attachment_bytes: int = Field(default=20_000_000, ge=1, le=1_000_000_000, description=_LARGEST)
    allow: NumericIds = Field(default=(), description=_ALLOW)
    groups: NumericIds = Field(default=(), description="Ids of the groups in which it answers.")


class Telegram(TelegramAccount):
    accounts: Annotated[Mapping[Id, TelegramAccount], SameAs("channels.telegram")] = Field(default={}, description=_ACCOUNTS)


class DiscordAccount(Section):
    enabled: bool = Field(default=False, description=_ENABLED)
    token: Secret = Field(default=SecretStr(""), description="The bot's token.")
    api_base: Url = Field(default="https://discord.com/api/v10", description="Address of the API, for a compatible server.")
    gateway_url: SocketUrl = Field(default="", description="Address of the event stream; empty is what the API names.")
    attachment_bytes: int = Field(default=20_000_000, ge=1, le=1_000_000_000, description=_LARGEST)
    allow: NumericIds = Field(default=(), description=_ALLOW)
    guilds: NumericIds = Field(default=(), description="Ids of the servers in which it answers.")


class Discord(DiscordAccount):
    accounts: Annotated[Mapping[Id, DiscordAccount], SameAs("channels.discord")] = Field(default={}, description=_ACCOUNTS)


class WeChatIlinkAccount(Section):
    enabled: bool = Field(default=False, description=_ENABLED)
    base_url: Url = Field(default="https://ilinkai.weixin.qq.com", description="Address of the vendor's bot interface.")
    cdn_url: Url = Field(default="https://novac2c.cdn.weixin.qq.com/c2c", description="Address for pictures and files.")
    trusted_hosts: tuple[Host, ...] = Field(
        default=(), description="Hosts beside the vendor's that may be the bot's server, or from which files may be fetched."
    )
    route_tag: HeaderValue = Field(default="", description="The route tag that the vendor gave out; mostly there is none.")
    keep_typing: bool = Field(
        default=False, description="Whether the typing sign is renewed all the time, which may use up the messages of an answer."
    )
    attachment_bytes: int = Field(default=100_000_000, ge=1, le=100_000_000, description=_LARGEST)
    allow: WeChatIds = Field(default=(), description=_ALLOW)


class WeChatIlink(WeChatIlinkAccount):
    accounts: Annotated[Mapping[Id, WeChatIlinkAccount], SameAs("channels.wechat_ilink")] = Field(default={}, description=_ACCOUNTS)


class WeChatOfficialAccount(Section):
    enabled: bool = Field(default=False, description=_ENABLED)
    app_id: str = Field(default="", description="The account's app id.")
    app_secret: Secret = Field(default=SecretStr(""), description="The account's app secret.")
    token: Secret = Field(default=SecretStr(""), description="The token entered in the vendor's console.")
    aes_key: AesKey = Field(default=SecretStr(""), description="The message key entered in the vendor's console.")
    mode: Literal["plain", "compatible", "aes"] = Field(default="aes", description="How messages are encrypted, as set in the console.")
    path: WebPath = Field(default="/wechat", description="Path of the webhook; one for each account.")
    api_base: Url = Field(default="https://api.weixin.qq.com", description="Address of the vendor's API.")
    customer_service: bool = Field(default=False, description="Whether answers may be sent by the API too; for verified accounts.")
    passive_tries: int = Field(default=3, ge=1, le=3, description="Calls of 5 seconds after which people are told that an answer comes later.")
    welcome: str = Field(default="", description="What new followers read; empty is a sentence of ours.")
    menu: Mapping[str, str] = Field(default={}, description="The command that each key of the account's menu stands for.")
    typing: bool = Field(default=False, description="Whether the typing sign is shown; with `customer_service` only.")
    trusted_hosts: tuple[Host, ...] = Field(default=(), description=_TRUSTED)
    attachment_bytes: int = Field(default=100_000_000, ge=1, le=100_000_000, description=_LARGEST)
    allow: OpaqueIds = Field(default=(), description=_ALLOW)


class WeChatOfficial(WeChatOfficialAccount):
    accounts: Annotated[Mapping[Id, WeChatOfficialAccount], SameAs("channels.wechat_official")] = Field(default={}, description=_ACCOUNTS)


class WeComAccount(Section):
    enabled: bool = Field(default=False, description=_ENABLED)
    bot_id: str = Field(default="", description="The bot's id.")
    secret: Secret = Field(default=SecretStr(""), description="The bot's secret.")
    url: SocketUrl = Field(default="wss://openws.work.weixin.qq.com", description="Address of the long connection.")
    mode: Literal["socket", "webhook"] = Field(default="socket", description="Whether the gateway connects to WeCom, or WeCom calls it.")
    token: Secret = Field(default=SecretStr(""), description="The token entered in WeCom's console, for the mode webhook.")
    aes_key: AesKey = Field(default=SecretStr(""), description="The message key entered in WeCom's console, for the mode webhook.")
    path: WebPath = Field(default="/wecom", description="Path of the webhook; one for each account.")
    welcome: str = Field(default="", description="What people read who open the chat; empty is a sentence of ours.")
    trusted_hosts: tuple[Host, ...] = Field(default=(), description=_TRUSTED)
    attachment_bytes: int = Field(default=100_000_000, ge=1, le=100_000_000, description=_LARGEST)
    allow: OpaqueIds = Field(default=(), description=_ALLOW)
    groups: OpaqueIds = Field(default=(), description="Ids of the group chats in which it answers.")


class WeCom(WeComAccount):
    accounts: Annotated[Mapping[Id, WeComAccount], SameAs("channels.wecom")] = Field(default={}, description=_ACCOUNTS)
