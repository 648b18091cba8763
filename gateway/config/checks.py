"""What the types alone cannot say: keys that need one another, names that must exist, settings that leave a door open.

Each check takes the whole tree and yields findings; `CHECKS` lists them. A check may be given a tree in which faulty values were replaced by
defaults, so that one look at the file shows everything; findings at such places are dropped by the caller.
"""

from __future__ import annotations

import difflib
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import SecretStr

from gateway.config import MAIN_ACCOUNT, POLICY_DEFAULTS, Channels, Config, ModelAccount
from gateway.config.recall import CEILING_LEAST
from gateway.config.types import Section, is_loopback
from gateway.embedding.source import half_an_address, source_faults
from gateway.jsonfile import KeyPath
from gateway.zone_names import system_zone
from memory.profiles import BUILT_IN
from memory.recall.budget import margin

Severity = Literal["error", "warning", "note"]
"""`note`: as it is shipped, nothing to repair; a start says it plainly, and `doctor` in its own words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """`fails_check`: whether `check` fails on it even though a start goes on; errors always do. `at_key`: the key is wrong, not its value."""

    path: KeyPath
    message: str
    hint: str = ""
    severity: Severity = "error"
    fails_check: bool = False
    at_key: bool = False


def accounts_of(channels: Channels, name: str) -> Iterator[tuple[KeyPath, Any]]:
    """A channel's own section, then its further accounts, each with its path."""
    section = getattr(channels, name)
    yield ("channels", name), section
    for account, keys in getattr(section, "accounts", {}).items():
        yield ("channels", name, "accounts", account), keys


def _model_accounts(config: Config) -> Iterator[tuple[KeyPath, ModelAccount]]:
    yield (MAIN_ACCOUNT,), config.model
    for name, account in config.models.items():
        yield ("models", name), account


def _model_keys(config: Config) -> Iterator[Finding]:
    if MAIN_ACCOUNT in config.models:
        yield Finding(path=("models", MAIN_ACCOUNT), message='"model" names the default account and cannot be an id here', hint="rename it")
    for path, account in _model_accounts(config):
        if account.provider == "openai":
            yield from _missing(path, account, ("base_url", "name"), 'for the provider "openai"')
        for key in ("base_url", "api_key", "name"):
            embeds = bool(account.embedding_model) and key != "name"
            if account.provider == "demo" and _set(account, key) and not embeds:
                yield Finding(
                    path=(*path, key), message='has no effect with the provider "demo"', hint='set "provider" to "openai"', severity="warning"
                )
    if config.embedding.provider == "openai":
        yield from _missing(("embedding",), config.embedding, ("base_url", "model"), 'for the provider "openai"')
    if config.transcription.provider == "openai":
        yield from _missing(("transcription",), config.transcription, ("base_url", "model"), 'for the provider "openai"')


def _answers(config: Config) -> Iterator[Finding]:
    """Longest answers that leave no room for a prompt in the window of their model (RS-70)."""
    for path, account in _model_accounts(config):
        most = account.context_window - margin(account.context_window) - CEILING_LEAST
        if account.answer_tokens > max(most, 0):
            message = f"an answer of {account.answer_tokens} tokens leaves no room for a prompt in a window of {account.context_window}"
            hint = f"lower it to {most} or less, or choose a model with a larger window" if most > 0 else "choose a model with a larger window"
            yield Finding(path=(*path, "max_output_tokens"), message=message, hint=hint, severity="warning", fails_check=True)


def _set(section: Section, key: str) -> bool:
    value = getattr(section, key)
    return bool(value.get_secret_value() if isinstance(value, SecretStr) else value)


def _missing(path: KeyPath, section: Section, keys: tuple[str, ...], why: str) -> Iterator[Finding]:
    for key in keys:
        if not _set(section, key):
            yield Finding(path=(*path, key), message=f"is needed {why}", hint=f'add "{key}"')


def _references(config: Config) -> Iterator[Finding]:
    known = [*config.models, MAIN_ACCOUNT]
    named: list[tuple[KeyPath, str]] = [(("helper_model",), config.helper_model), (("fallback_model",), config.fallback_model)]
    named += [(("summary", "model"), config.summary.model), (("dream", "model"), config.dream.model), (("entries", "model"), config.entries.model)]
    named += [(("characters", name, "model"), character.model) for name, character in config.characters.items()]
    named += [((*path, "embedding_from"), account.embedding_from) for path, account in _model_accounts(config)]
    for path, name in named:
        if name and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
            yield Finding(path=path, message=f'there is no model account "{name}"', hint=hint)
    for path, account in _model_accounts(config):
        seen, current = [str(path[-1])], account.embedding_from
        while current in known and current not in seen:
            seen.append(current)
            current = config.account(current).embedding_from
        if current == seen[0]:
            yield Finding(path=(*path, "embedding_from"), message=f"borrows in a circle: {' → '.join([*seen, current])}", hint="end it at an account")


def _embeddings(config: Config) -> Iterator[Finding]:
    """Accounts that were to give embeddings and have none (RS-26)."""
    for fault in source_faults(config):
        yield Finding(path=fault.path, message=fault.message, hint=fault.hint)
    for path, meant in half_an_address(config):
        yield Finding(path=path, message="is not Google's address for OpenAI's form", hint=f"write {meant}", severity="warning", fails_check=True)


def _profiles(config: Config) -> Iterator[Finding]:
    """Who names a window profile that is not there, for it may have been left out, has the default one (RS-2)."""
    for name in config.profiles:
        if name in BUILT_IN:
            yield Finding(
                path=("profiles", name), message=f'"{name}" is a built-in profile: this one is left out', hint="rename it", severity="warning",
                fails_check=True, at_key=True,
            )  # fmt: skip
    known = [*BUILT_IN, *config.profiles]
    named: list[tuple[KeyPath, str]] = [(("characters", name, "profile"), character.profile) for name, character in config.characters.items()]
    named += [(("channel_profiles", name), profile) for name, profile in config.channel_profiles.items()]
    for path, name in named:
        if name and name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = f'did you mean "{near[0]}"?' if near else f"known: {', '.join(known)}"
            yield Finding(path=path, message=f'there is no window profile "{name}"', hint=hint, severity="warning", fails_check=True)


_NEEDED = {"telegram": ("token",), "discord": ("token",), "wechat_official": ("app_id", "token"), "wecom": ("bot_id", "secret")}
_CALLED = {"wecom": ("token", "aes_key")}  # what is needed instead where the platform calls us


def _credentials(config: Config) -> Iterator[Finding]:
    for channel, keys in _NEEDED.items():
        holders: dict[str, KeyPath] = {}
        for path, account in accounts_of(config.channels, channel):
            if not account.enabled:
                continue
            if getattr(account, "mode", "") == "webhook":
                keys = _CALLED.get(channel, keys)
            yield from _missing(path, account, keys, "by an enabled channel")
            if channel == "wechat_official" and account.customer_service:
                yield from _missing(path, account, ("app_secret",), "by customer_service")
            if channel == "wechat_official" and account.mode != "plain":
                yield from _missing(path, account, ("aes_key",), f'in the mode "{account.mode}"')
            credential = getattr(account, keys[0])
            name = credential.get_secret_value() if isinstance(credential, SecretStr) else credential
            if name and name in holders:  # one holder per credential (CH-104)
                yield Finding(path=(*path, keys[0]), message="two accounts have the same credential", hint="each bot may run once")
            holders.setdefault(name, path)


def _webhook_paths(config: Config) -> Iterator[Finding]:
    taken: dict[str, KeyPath] = {}
    for channel in ("wechat_official", "wecom"):
        for path, account in accounts_of(config.channels, channel):
            if not account.enabled or (channel == "wecom" and account.mode != "webhook"):
                continue
            if (first := taken.get(account.path)) is not None:
                message = f"{'.'.join(map(str, first))} has the path {account.path} too"
                yield Finding(path=(*path, "path"), message=message, hint="give each its own (WX-10)")
            taken.setdefault(account.path, path)


def _open_lists(config: Config) -> Iterator[Finding]:
    for channel in Channels.model_fields:
        for path, account in accounts_of(config.channels, channel):
            for key in ("allow", "groups", "guilds"):
                entries: tuple[str, ...] = getattr(account, key, ())
                if "*" in entries:
                    yield Finding(path=(*path, key), message='"*" admits everybody', hint="list ids instead (CH-110)", severity="warning")


def _telegram_webhook(config: Config) -> Iterator[Finding]:
    for path, account in accounts_of(config.channels, "telegram"):
        if account.enabled and account.mode == "webhook":
            yield from _missing(path, account, ("webhook_url",), 'for the mode "webhook"')


def _listeners(config: Config) -> Iterator[Finding]:
    web, hooks = config.channels.web, config.webhooks
    proxy: KeyPath = ("channels", "web", "trusted_proxy")
    if web.trusted_proxy.header:
        yield from _missing(proxy, web.trusted_proxy, ("secret",), "with a header: anybody could send the header alone")
    elif _set(web.trusted_proxy, "secret"):
        yield from _missing(proxy, web.trusted_proxy, ("header",), "with a secret")
    if web.enabled and not is_loopback(web.host) and not web.trusted_proxy.header:
        hint = "the start is refused until an account has a password or trusted_proxy is set"
        yield Finding(path=("channels", "web", "host"), message="other machines can reach the page", hint=hint, severity="warning")
    if web.enabled and web.port and (web.host, web.port) == (hooks.host, hooks.port):
        message = f"the page listens on port {web.port} already"
        yield Finding(path=("webhooks", "port"), message=message, hint="webhooks have a port of their own (WX-10)")


def _fixed_policies(config: Config) -> Iterator[Finding]:
    for platform, defaults in POLICY_DEFAULTS.items():
        closed = platform in ("challenge", "signed_out")
        for key, fixed in defaults.items():
            if (closed or (key == "deep_memory" and platform != "web")) and getattr(getattr(config.policies, platform), key) != fixed:
                why = "nothing is read from memory or written to it there" if closed else "deep memory exists on the web only"
                yield Finding(path=("policies", platform, key), message=f"cannot be changed: {why}", hint="delete the key")


def _one_name_each(config: Config) -> Iterator[Finding]:
    owners: dict[str, set[str]] = defaultdict(set)
    for identifier, character in config.characters.items():
        for name in (identifier, character.name, *character.aliases):
            owners[name.casefold()].add(identifier)
            if len(owners[name.casefold()]) > 1 and name:
                message = f'two characters answer to "{name}"'
                yield Finding(path=("characters", identifier), message=message, hint="the first one will", severity="warning", fails_check=True)


def _zone(config: Config) -> Iterator[Finding]:
    if not config.timezone:
        hint = 'set it, for example "Asia/Tokyo"'
        yield Finding(path=("timezone",), message=f"empty: days begin in the system's zone, {system_zone().key}", hint=hint, severity="note")


CHECKS: tuple[Callable[[Config], Iterator[Finding]], ...] = (
    _model_keys, _references, _credentials, _webhook_paths, _telegram_webhook, _open_lists, _listeners, _fixed_policies, _one_name_each, _zone,
    _profiles, _embeddings, _answers,
)  # fmt: skip
