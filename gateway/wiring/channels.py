"""The part of the composition root that is about chat platforms: from the configuration to the accounts that run (see `gateway/app.py`).

An SDK is imported when the first account of its platform is built, and an absent one switches that platform off with one line (CH-14).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

from channels.discord import settings as discord
from channels.message import Account, Attachment
from channels.port import Channel, QrLogin
from channels.telegram import settings as telegram
from channels.wechat.ilink import settings as ilink
from channels.wechat.official import settings as official
from channels.wechat.wecom import settings as wecom
from gateway.access import Rules
from gateway.arrivals import inbox
from gateway.channel_set import Plan
from gateway.commands import usable_by
from gateway.config import Channels, Config
from gateway.config.channels import DiscordAccount, TelegramAccount, WeChatIlinkAccount, WeChatOfficialAccount, WeComAccount
from gateway.config.checks import accounts_of
from gateway.language import LANGUAGES, guess, say
from gateway.vault import StoreVault
from gateway.version import VERSION
from memory.database import Database

_MENU_NAME = re.compile("[a-z0-9_]{1,32}")
_DISCORD_TAGS = {"ja": "ja", "zh": "zh-CN"}
_DESCRIPTION_MAX = 100  # the least that all platforms take


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    """What adapters are given of the gateway. `read_file`: the bytes of a stored attachment, OSError when they are gone."""

    db: Database
    clock: Callable[[], datetime]
    read_file: Callable[[Attachment], Awaitable[bytes]]

    async def load_cursor(self, account: Account, name: str) -> str:
        return await self.db.read(partial(inbox.load_cursor, channel=account.channel, account=account.name, name=name))


def channel_plans(config: Config, outside: Outside) -> list[Plan]:
    """Every account of a chat platform that `config` enables."""
    channels = config.channels
    plans = [_telegram(account, section, outside) for account, section in _enabled(channels, "telegram")]
    plans += [_discord(account, section, outside, config.command_prefixes[0]) for account, section in _enabled(channels, "discord")]
    plans += [_ilink(account, section, outside) for account, section in _enabled(channels, "wechat_ilink")]
    plans += [_official(account, section, outside) for account, section in _enabled(channels, "wechat_official")]
    return plans + [_wecom(account, section, outside) for account, section in _enabled(channels, "wecom")]


def needs_webhooks(config: Config) -> bool:
    """Whether an enabled account is called by its platform, so that the port for such calls must be open."""
    called = [section.mode == "webhook" for name in ("telegram", "wecom") for _, section in _enabled(config.channels, name)]
    return any(called) or any(_enabled(config.channels, "wechat_official"))


def _enabled(channels: Channels, name: str) -> Iterator[tuple[Account, Any]]:
    for path, section in accounts_of(channels, name):
        if section.enabled:
            yield Account(channel=name, name=str(path[3]) if len(path) > 2 else "main"), section


def _telegram(account: Account, section: TelegramAccount, outside: Outside) -> Plan:
    settings = telegram.TelegramSettings(
        token=section.token.get_secret_value(),
        base_url=section.base_url,
        mode=section.mode,
        webhook_url=section.webhook_url,
        channel_posts=section.channel_posts,
        attachment_bytes=section.attachment_bytes,
        menus=tuple(
            telegram.Menu("" if language == "en" else language, tuple(telegram.MenuEntry(name, words) for name, words in menu(language)))
            for language in LANGUAGES
        ),
    )

    def build() -> Channel:
        from channels.telegram.adapter import TelegramChannel
        from channels.telegram.webhook import TelegramWebhook

        if settings.mode == "webhook":
            return TelegramWebhook(settings, account=account, read_file=outside.read_file, clock=outside.clock)
        load = partial(outside.load_cursor, account, "updates")
        return TelegramChannel(settings, account=account, load_cursor=load, read_file=outside.read_file, clock=outside.clock)

    rules = Rules(allow=frozenset(section.allow), groups=frozenset(section.groups))
    return Plan(account=account, settings=settings, capabilities=settings.capabilities, build=build, rules=lambda: rules)


def _discord(account: Account, section: DiscordAccount, outside: Outside, prefix: str) -> Plan:
    localized = {language: dict(menu(language)) for language in _DISCORD_TAGS}
    settings = discord.DiscordSettings(
        token=section.token.get_secret_value(),
        api_base=section.api_base,
        gateway_url=section.gateway_url,
        attachment_bytes=section.attachment_bytes,
        prefix=prefix,
        commands=tuple(
            discord.SlashCommand(name=name, description=words, localized={tag: localized[language][name] for language, tag in _DISCORD_TAGS.items()})
            for name, words in menu("en")
        ),
    )

    def build() -> Channel:
        from channels.discord.adapter import DiscordChannel

        load = partial(outside.load_cursor, account)
        return DiscordChannel(settings, account=account, load_cursor=load, read_file=outside.read_file, note=_note, clock=outside.clock)

    rules = Rules(allow=frozenset(section.allow), groups=frozenset(section.guilds))
    return Plan(account=account, settings=settings, capabilities=settings.capabilities, build=build, rules=lambda: rules)


def _ilink_settings(section: WeChatIlinkAccount) -> ilink.IlinkSettings:
    return ilink.IlinkSettings(
        base_url=section.base_url,
        cdn_url=section.cdn_url,
        trusted_hosts=section.trusted_hosts,
        route_tag=section.route_tag,
        keep_typing=section.keep_typing,
        attachment_bytes=section.attachment_bytes,
        version=VERSION,
    )


def _ilink(account: Account, section: WeChatIlinkAccount, outside: Outside) -> Plan:
    settings = _ilink_settings(section)

    def build() -> Channel:
        from channels.wechat.ilink.adapter import IlinkChannel

        return IlinkChannel(
            settings,
            vault=StoreVault(outside.db, account, clock=outside.clock),
            account=account,
            load_cursor=partial(outside.load_cursor, account, "updates"),
            read_file=outside.read_file,
            clock=outside.clock,
        )

    rules = Rules(allow=frozenset(section.allow))
    return Plan(account=account, settings=settings, capabilities=settings.capabilities, build=build, rules=lambda: rules)


def _official(account: Account, section: WeChatOfficialAccount, outside: Outside) -> Plan:
    settings = official.OfficialSettings(
        app_id=section.app_id,
        token=section.token.get_secret_value(),
        aes_key=section.aes_key.get_secret_value(),
        app_secret=section.app_secret.get_secret_value(),
        mode=section.mode,
        path=section.path,
        api_base=section.api_base,
        customer_service=section.customer_service,
        passive_tries=section.passive_tries,
        welcome=section.welcome,
        menu=section.menu,
        typing=section.typing,
        trusted_hosts=section.trusted_hosts,
        attachment_bytes=section.attachment_bytes,
    )

    def build() -> Channel:
        from channels.wechat.official.adapter import OfficialChannel

        vault = StoreVault(outside.db, account, clock=outside.clock)
        return OfficialChannel(settings, vault=vault, account=account, say=_say, read_file=outside.read_file, clock=outside.clock)

    rules = Rules(allow=frozenset(section.allow))
    return Plan(account=account, settings=settings, capabilities=settings.capabilities, build=build, rules=lambda: rules)


def _wecom(account: Account, section: WeComAccount, outside: Outside) -> Plan:
    settings = wecom.WeComSettings(
        bot_id=section.bot_id,
        secret=section.secret.get_secret_value(),
        url=section.url,
        mode=section.mode,
        token=section.token.get_secret_value(),
        aes_key=section.aes_key.get_secret_value(),
        path=section.path,
        welcome=section.welcome,
        trusted_hosts=section.trusted_hosts,
        attachment_bytes=section.attachment_bytes,
    )
    rules = Rules(allow=frozenset(section.allow), groups=frozenset(section.groups))

    def build() -> Channel:
        from channels.wechat.wecom.adapter import WeComChannel
        from channels.wechat.wecom.webhook import WeComWebhook

        if settings.mode == "webhook":
            return WeComWebhook(settings, account=account, say=_say, admits=rules.admits, read_file=outside.read_file, clock=outside.clock)
        vault = StoreVault(outside.db, account, clock=outside.clock)
        return WeComChannel(settings, vault=vault, account=account, say=_say, admits=rules.admits, read_file=outside.read_file, clock=outside.clock)

    return Plan(account=account, settings=settings, capabilities=settings.capabilities, build=build, rules=lambda: rules)


def _say(like: str, key: str, **values: object) -> str:
    return say(guess(like), key, **values)


def find_login(config: Config, outside: Outside, account: Account) -> QrLogin | None:
    """A login by scanning a code, for an enabled account that is logged in this way; None for any other."""
    found = next((section for known, section in _enabled(config.channels, "wechat_ilink") if known == account), None)
    if found is None:
        return None
    from channels.wechat.ilink.login import IlinkLogin

    return IlinkLogin(_ilink_settings(found), account=account, vault=StoreVault(outside.db, account, clock=outside.clock))


def _note(key: str, text: str) -> str:
    """A sentence for the reader of `text`."""
    return say(guess(text), key)


def menu(language: str) -> list[tuple[str, str]]:
    """The commands that everybody paired may use, as a platform's menu lists them: names without a sign in front, and what each does."""
    return [(command.name, say(language, command.help)[:_DESCRIPTION_MAX]) for command in usable_by("user") if _MENU_NAME.fullmatch(command.name)]
