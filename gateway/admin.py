"""What the command line may do with the store, in one table: run by the gateway when one runs, else under the lock of the data directory (WD-120).

Each takes plain JSON arguments and returns plain JSON, so that both ways give the same answer.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import date, datetime
from functools import partial
from types import MappingProxyType
from typing import Any

from gateway import nightly
from gateway.audit import CONSOLE
from gateway.commands import explain
from gateway.config import Config
from gateway.dreams import runs as dream_runs
from gateway.jobs.table import JobRow, list_jobs, run_now
from gateway.login_links import LoginLinks
from gateway.people import People
from gateway.person import Person
from gateway.tokens import ApiTokens
from memory.database import Database
from memory.scopes import scope_or_none

Arguments = Mapping[str, Any]
AdminCommand = Callable[[Arguments], Awaitable[dict[str, Any]]]
STATES = ("waiting", "running", "done", "parked", "cancelled")
MANUAL = {"daily-summary": nightly.summarise_now, "dream": dream_runs.dream_now}


class AdminFault(Exception):
    """A sentence for the operator: what is wrong and what to do."""


class Admin:
    def __init__(
        self,
        *,
        db: Database,
        clock: Callable[[], datetime],
        people: People,
        links: LoginLinks,
        tokens: ApiTokens,
        page: Callable[[], str],
        wake_jobs: Callable[[], None] = lambda: None,
        release: Callable[[], Awaitable[int]] | None = None,
        restart: Callable[[], None] | None = None,
        more: Mapping[str, AdminCommand] = MappingProxyType({}),
        config: Callable[[], Config] = Config,
    ) -> None:
        """`page`: the address of the web page. `release`: takes up parked deliveries, `restart`: begins again; None while no gateway runs. `more`:
        commands of other parts."""
        self._db = db
        self._clock = clock
        self._people = people
        self._links = links
        self._tokens = tokens
        self._page = page
        self._wake_jobs = wake_jobs
        self._release = release
        self._restart = restart
        self._more = more
        self._config = config

    async def run(self, name: str, arguments: Arguments) -> dict[str, Any]:
        """Carry out one command. Raises AdminFault."""
        commands: dict[str, AdminCommand] = {
            "login-link": self._login_link,
            "token create": self._token_create,
            "job list": self._job_list,
            "job run": self._job_run,
            "why": self._why,
            "release": self._release_parked,
            "restart": self._begin_again,
            **self._more,
        }
        if name not in commands:
            raise AdminFault(f"there is no command {name}")
        return await commands[name](arguments)

    async def _login_link(self, arguments: Arguments) -> dict[str, Any]:
        person = await self._person(arguments.get("person", ""))
        code = await self._links.make(CONSOLE, person.id)
        return {"url": f"{self._page()}/login/{code}"}

    async def _token_create(self, arguments: Arguments) -> dict[str, Any]:
        name = str(arguments.get("name", "")).strip()
        if not name:
            raise AdminFault("a token needs a name: --name NAME")
        person = await self._person(arguments.get("person", ""))
        token, text = await self._tokens.make(CONSOLE, person.id, name)
        return {"id": token.id, "token": text, "person": person.name}

    async def _job_list(self, arguments: Arguments) -> dict[str, Any]:
        state = arguments.get("state") or None
        if state is not None and state not in STATES:
            raise AdminFault(f"there is no job state {state}; one of {', '.join(STATES)}")
        rows = await self._db.read(partial(list_jobs, state=state))
        return {"jobs": [job_line(row) for row in rows]}

    async def _job_run(self, arguments: Arguments) -> dict[str, Any]:
        job = str(arguments.get("job", ""))
        if job in MANUAL:
            return await self._run_by_hand(job, arguments)
        if not job.isdecimal():
            raise AdminFault(f"{job!r} is no job number and none of {', '.join(MANUAL)}; `job list` shows the numbers")
        if not await self._db.write(partial(run_now, job_id=int(job), now=self._clock())):
            raise AdminFault(f"job {job} is unknown, runs already or is done; `job list` shows its state")
        self._wake_jobs()
        return {"job": int(job), "running": self._release is not None}

    async def _run_by_hand(self, kind: str, arguments: Arguments) -> dict[str, Any]:
        """A daily summary or a dream of its own, beside the one of the night (WD-130)."""
        scope, text = str(arguments.get("scope") or "root"), str(arguments.get("date") or "")
        if scope_or_none(scope) is None:
            raise AdminFault(f"there is no scope {scope}; one of root, people/<id>, spaces/<id>")
        try:
            day = date.fromisoformat(text) if text else None
        except ValueError:
            raise AdminFault(f"{text!r} is no date; write it as 2026-03-08") from None
        make = partial(MANUAL[kind], scope=scope, config=self._config(), now=self._clock(), day=day)
        job = await self._db.write(make)
        self._wake_jobs()
        return {"job": job, "running": self._release is not None}

    async def _why(self, arguments: Arguments) -> dict[str, Any]:
        address = str(arguments.get("address", ""))
        text = await explain(self._db, address, before=2**62, language="en", now=self._clock())
        return {"text": text}

    async def _release_parked(self, _arguments: Arguments) -> dict[str, Any]:
        if self._release is None:
            raise AdminFault("no gateway runs; start it first")
        return {"released": await self._release()}

    async def _begin_again(self, _arguments: Arguments) -> dict[str, Any]:
        if self._restart is None:
            raise AdminFault("no gateway runs; start it first")
        self._restart()
        return {}

    async def _person(self, wanted: object) -> Person:
        """The owner when nobody is named; else the one person with that id, or that name."""
        if not wanted:
            return await self._people.ensure_owner()
        everybody = [person for person, _ in await self._people.everybody()]
        found = [person for person in everybody if wanted in (person.id, person.name)]
        if len(found) != 1:
            known = ", ".join(f"{person.name} ({person.id})" for person in everybody)
            raise AdminFault(f"{'several people are' if found else 'nobody is'} called {wanted}; there are: {known}")
        return found[0]


def job_line(row: JobRow) -> dict[str, Any]:
    return {
        "id": row.id,
        "kind": row.job.kind,
        "key": row.job.key,
        "scope": row.job.scope,
        "state": row.state,
        "attempts": row.attempts,
        "not_before": row.job.not_before.isoformat(),
        "error": row.error_class,
        "skipped": str((row.result or {}).get("skipped", "")),
        "updated_at": row.updated_at.isoformat(),
    }
