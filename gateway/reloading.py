"""A changed configuration, taken over by the running gateway section by section (WO-31, WO-32)."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from pathlib import Path

from agent.errors import ModelError
from gateway import cast_changes, overrides
from gateway.app import Choices, Parts, plans
from gateway.asked_models import free_parked
from gateway.config import Config, changed_sections, secret_values
from gateway.config.env import SECRETS_FILE
from gateway.config.load import Loaded
from gateway.config.walk import restart_keys
from gateway.http.views import FaultView
from gateway.logs import Redactor
from gateway.models import Models
from gateway.standing import Standing
from gateway.wiring.channels import needs_webhooks
from memory.database import Database
from memory.errors import StoreError
from memory.markdown_lines import one_line
from memory.profile_lines import answered
from memory.scopes import ROOT, SYSTEM
from memory.whole_file import Stamp
from memory.workspace_threads import WorkspaceThreads

log = logging.getLogger(__name__)

WATCH_EVERY_S = 2.0
NAME_MAX = 100  # characters, as of a configured name


class Reloading:
    """`load` reads the files again; the redactor learns every secret that they hold."""

    def __init__(self, standing: Standing, choices: Choices, *, load: Callable[[], Loaded], redactor: Redactor) -> None:
        self._standing = standing
        self._choices = choices
        self._load = load
        self._redactor = redactor
        self._system_seen: tuple[str, Stamp] | None = None  # the state of system.md when it was last read

    async def watch(self, parts: Parts) -> None:
        """Reads the configuration again whenever its files change, and the name in system.md whenever that one does; until cancelled."""
        path = Path(self._standing.config_path)
        files = (path, path.parent / SECRETS_FILE)
        seen = await asyncio.to_thread(_marks, files)
        while True:
            await asyncio.sleep(WATCH_EVERY_S)
            await self.learn_name(parts.memory.files)
            now = await asyncio.to_thread(_marks, files)
            if now != seen:
                seen = now
                try:
                    await self.reload(parts)
                except Exception:  # a home of its own: whatever a file holds, the running gateway goes on (invariant 11)
                    log.exception("the changed configuration could not be taken over")

    async def reload(self, parts: Parts) -> tuple[list[str], list[str]]:
        """Take a valid configuration over; an invalid one leaves everything as it is and is shown. Returns what changed, and what is wrong."""
        loaded = await asyncio.to_thread(self._load)
        self._standing.faults = grave(loaded)
        if loaded.config is None or not loaded.accepted:
            for fault in loaded.errors:
                log.error("configuration not taken: %s", fault)
            return [], [str(fault) for fault in loaded.errors]
        for fault in loaded.faults:
            log.log(logging.INFO if fault.severity == "note" else logging.WARNING, "configuration: %s", fault)
        config = await overridden(loaded.config, parts.around.db)
        if waiting := restart_keys(self._standing.config, config):
            log.warning("these keys take effect with the next start: %s", ", ".join(sorted(waiting)))
        changed = sorted(changed_sections(self._standing.config, config))
        self._redactor.know(secret_values(config))
        logging.getLogger().setLevel(config.log.level.upper())
        self._standing.config, self._standing.loaded_at = config, self._choices.clock()
        await self._apply(config, parts)
        if await self.free_parked(parts.around.db):
            parts.around.wake_jobs()
        log.info("configuration read again, changed: %s", ", ".join(changed) or "nothing")
        return changed, []

    async def _apply(self, config: Config, parts: Parts) -> None:
        await parts.around.models.reload(config)
        if needs_webhooks(config):
            try:
                await parts.webhooks.listen()
            except OSError as error:
                log.error("nobody can call: the webhook port is taken (%s); set another webhooks.port and start again", error.strerror)
        await self.keep_cast(parts.around.db)
        await parts.delivery.channels.apply(plans(config, parts, self._choices))
        await self.warm(parts.around.models)

    async def keep_cast(self, db: Database) -> None:
        """The lineages of characters follow the configuration; who left it keeps memories until an admin says otherwise (SM-92)."""
        config, now = self._standing.named, self._choices.clock()
        gone = await db.write(lambda connection: cast_changes.keep_in_step(connection, config, now))
        for name in gone:
            log.warning("the character %s is no longer in the configuration; its memories wait: put it back, or confirm its deletion", name)

    async def learn_name(self, files: WorkspaceThreads) -> None:
        """The name that the owner gave in system.md is shown wherever the character is named (WD-34)."""
        try:
            stamp = await files.read(lambda workspace: workspace.stamp(ROOT, SYSTEM))
            if stamp == self._system_seen:
                return
            found = await files.read(lambda workspace: workspace.read(ROOT, SYSTEM))
        except StoreError:
            return  # the name that is known stays; the search index tells of a file that cannot be read
        self._system_seen = stamp
        self._standing.given_name = one_line(answered(found.content, "bot_name"))[:NAME_MAX] if found else ""

    async def free_parked(self, db: Database) -> int:
        """Parked jobs run next if the models or their keys are others than before (WD-100)."""
        config, now = self._standing.config, self._choices.clock()
        if freed := await db.write(lambda connection: free_parked(connection, config, now)):
            log.info("the models have changed: %d parked jobs run next", freed)
        return freed

    async def warm(self, models: Models) -> None:
        """Make the default model before somebody waits for it; one that cannot be made is shown, not fatal: people are told when they ask."""
        try:
            await models.warm()
            self._standing.model_fault = ""
        except ModelError as error:
            log.error("the model cannot be used: %s", error)
            self._standing.model_fault = str(error)


async def overridden(config: Config, db: Database) -> Config:
    """The file's values with those set by `/config` over them; one that does not fit any more is left out and said (WD-119)."""
    config, left_out = overrides.applied(config, await db.read(overrides.stored))
    for key, reason in left_out.items():
        log.warning("the value of %s set by /config is left out: %s", key, reason)
    return config


def grave(loaded: Loaded) -> tuple[FaultView, ...]:
    """The faults that `check` would fail for; advice (an empty time zone) is said at the start and by `doctor`."""
    return tuple(FaultView.of(fault) for fault in loaded.faults if fault.fails_check or fault.severity == "error")


def _marks(files: Sequence[Path]) -> list[tuple[int, int]]:
    """When each file was last changed, and its size; zeros for one that is not there."""
    marks: list[tuple[int, int]] = []
    for file in files:
        try:
            stat = file.stat()
            marks.append((stat.st_mtime_ns, stat.st_size))
        except OSError:
            marks.append((0, 0))
    return marks
