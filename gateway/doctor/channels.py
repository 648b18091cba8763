"""`yumegate doctor` about channels: what the running gateway says of them, and what stands in its way at a platform (CH-180, CH-214)."""

from __future__ import annotations

import asyncio

import aiohttp
from pydantic import BaseModel, ValidationError

from channels.discord.intents import INTENT_MISSING, reads_content
from channels.errors import ConnectionLost, CredentialRefused
from gateway import channel_words
from gateway.config import Config
from gateway.config.channels import DiscordAccount
from gateway.config.checks import accounts_of
from gateway.doctor.finding import Finding, Verdict, fail, ok, warn
from memory.instance_lock import Info

GATEWAY_LIMIT_S = 5.0
PLATFORM_LIMIT_S = 10.0


class _ChannelState(BaseModel):
    channel: str
    account: str
    state: str
    reason: str = ""


class _Dependency(BaseModel):
    name: str
    ok: bool
    reason: str = ""


class _Readiness(BaseModel):
    """What `GET /readyz` says."""

    phase: str
    channels: list[_ChannelState]
    dependencies: list[_Dependency] = []  # pydantic copies defaults


_STATES = {"ready": Verdict.OK, "auth_required": Verdict.FAIL}
_WAYS_OUT = {"auth_required": "renew its credential in config.json", "stopped": "see why in the log, then /reload"}


async def running(holder: Info | None) -> list[Finding]:
    """What the running gateway says of itself."""
    if holder is None or "url" not in holder:
        return [ok("channels", "no gateway runs, so none was asked")]
    try:
        timeout = aiohttp.ClientTimeout(total=GATEWAY_LIMIT_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as http, http.get(f"{holder['url']}/readyz") as answer:
            ready = _Readiness.model_validate_json(await answer.read())
    except (aiohttp.ClientError, TimeoutError, ValidationError, OSError) as error:
        why = type(error).__name__
        return [fail("gateway", f"process {holder['pid']} does not answer at {holder['url']} ({why})", "look at its log, then start it anew")]
    found = [ok("gateway", f"it answers and is {ready.phase}")]
    for channel in ready.channels:
        verdict = _STATES.get(channel.state, Verdict.WARN)
        text = f"{channel.state} ({channel.reason})" if channel.reason else channel.state
        way_out = "" if verdict is Verdict.OK else _WAYS_OUT.get(channel.state, "wait a minute and look again; the log says why")
        found.append(Finding(what=f"channel {channel.channel}:{channel.account}", verdict=verdict, text=text, next_step=way_out))
    found += [warn(each.name, each.reason, "look at the operators' page") for each in ready.dependencies if not each.ok]
    return found


async def intents(config: Config) -> list[Finding]:
    """Whether every bot of Discord that is switched on gets the words of what is said in servers."""
    accounts = [(".".join(map(str, path)), account) for path, account in accounts_of(config.channels, "discord") if account.enabled]
    timeout = aiohttp.ClientTimeout(total=PLATFORM_LIMIT_S)
    async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as http, asyncio.TaskGroup() as group:
        asked = [group.create_task(_intent(what, account, http)) for what, account in accounts]
    return [task.result() for task in asked]


async def _intent(what: str, account: DiscordAccount, http: aiohttp.ClientSession) -> Finding:
    try:
        reads = await reads_content(http, api_base=account.api_base, token=account.token.get_secret_value())
    except CredentialRefused as error:
        return fail(what, "Discord does not know its token", str(error).partition(": ")[2])
    except ConnectionLost as error:
        way_out = channel_words.reason("discord", error.code, "").partition(". ")[2]
        return warn(what, str(error), way_out or "see whether this machine reaches it")
    if not reads:
        fault, _, way_out = INTENT_MISSING.partition(": ")
        return fail(what, fault, way_out)
    return ok(what, "messages in servers come with their words")
