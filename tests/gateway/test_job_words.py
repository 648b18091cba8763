"""Why work failed is said in words: the name of a fault reaches nobody but the operator's log."""

from __future__ import annotations

import importlib
import pkgutil
from pathlib import Path
from types import ModuleType

import pytest
import sqlalchemy as sa

import agent
import gateway
import memory
from agent.llm.scripted import ScriptedModel
from gateway.config import Config
from gateway.job_words import WORDS, failure
from gateway.jobs.table import Job, enqueue
from gateway.language import LANGUAGES, catalogue
from gateway.store import open_database
from memory.database import Database
from memory.schema import jobs
from tests.harness import eventually, running


def _modules() -> list[ModuleType]:
    found: list[ModuleType] = []
    for package in (agent, gateway, memory):
        for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".migrations" not in each.name and not each.name.endswith("__main__"):
                found.append(importlib.import_module(each.name))
    return found


def _faults() -> set[str]:
    """The names of all exceptions of ours."""
    return {name for module in _modules() for name, thing in vars(module).items() if isinstance(thing, type) and issubclass(thing, Exception)}


@pytest.mark.rule("WD-100")
def test_every_fault_is_said_in_words_without_its_name() -> None:
    faults = _faults()
    assert {name for name in WORDS if name[0].isupper()} <= faults, "a fault that was renamed"
    for language in LANGUAGES:
        sentences = {failure(language, name) for name in (*faults, *WORDS, "", "OperationalError")}
        assert sentences <= {text for key, text in catalogue(language).items() if key.startswith("job_error_")}
        assert not [(name, text) for text in sentences for name in faults if name in text]


def test_what_nobody_foresaw_points_to_the_log() -> None:
    assert failure("en", "ZeroDivisionError") == "something unforeseen happened; the log says more"


@pytest.mark.rule("WD-100", "WO-30")
async def test_the_lists_of_jobs_say_the_fault_in_words_and_keep_its_name_beside_them(tmp_path: Path) -> None:
    opened: list[Database] = []

    def open_it(wanted: Config) -> Database:
        opened.append(open_database(wanted))
        return opened[-1]

    def fail(connection: sa.Connection) -> None:
        enqueue(connection, Job(kind="of-nobody", key="1"))
        connection.execute(sa.update(jobs).where(jobs.c.kind == "of-nobody").values(state="parked", error_class="AnswerUnusable", error="no list"))

    async with running(tmp_path, ScriptedModel([]), database=open_it) as gateway:
        await opened[0].write(fail)
        listed = (await gateway.get("/api/operator/jobs?state=parked", headers={"Accept-Language": "zh"}))["jobs"]
        assert [(job["error_class"], job["error"]) for job in listed] == [("AnswerUnusable", failure("zh", "AnswerUnusable"))]
        chat = await gateway.chat()
        await gateway.say(chat, "/jobs")

        async def told() -> str:
            return next((message["text"] for message in await gateway.messages(chat) if message["role"] == "notice"), "")

        line = next(line for line in (await eventually(told)).splitlines() if "of-nobody" in line)
        assert line.partition(" ")[2] == "of-nobody: put aside after failures · the model’s answer could not be used"
