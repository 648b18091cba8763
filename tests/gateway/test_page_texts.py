"""The texts of the web page: one catalogue for each language, alike and complete, and no key in the modules that none has (WO-12)."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from agent.tools.file_write import FileEdit, FileWrite
from agent.tools.memory_delete import MemoryDelete
from agent.tools.memory_get import MemoryGet
from agent.tools.memory_save import MemorySave
from agent.tools.memory_search import MemorySearch
from agent.tools.memory_update import MemoryUpdate
from agent.tools.profile_set import ProfileSet
from agent.tools.tasks import TaskCancel, TaskCreate, TaskList
from gateway import attempts, followups, housekeeping, index_rebuild, link_files, memory_export, scope_removal, titles
from gateway.dreams import asking as dream_asking
from gateway.dreams import job as dream_job
from gateway.dreams import night as dream_night
from gateway.entries import jobs as entries
from gateway.language import LANGUAGES
from gateway.saved import deep_gate, deep_memory
from gateway.saved import drafts as saved_drafts
from gateway.summaries import calendar_days, digesting, restating, summarist, summarizing
from gateway.summaries.calendar_state import FOLD
from gateway.summaries.day_pieces import DAY
from gateway.summaries.plan import DAILY, OVERFLOW, TRIM
from gateway.tasks import asking as task_asking
from gateway.tasks import jobs as task_jobs
from gateway.trimming import ROLLING

STATIC = Path(__file__).resolve().parents[2] / "gateway" / "static"
CATALOGUES: dict[str, dict[str, str]] = {tag: json.loads((STATIC / "texts" / f"{tag}.json").read_text(encoding="utf-8")) for tag in LANGUAGES}
MODULES = "\n".join(path.read_text(encoding="utf-8") for path in sorted(STATIC.glob("*.js")))


@pytest.mark.rule("WO-12")
@pytest.mark.parametrize("language", LANGUAGES)
def test_each_catalogue_has_the_same_keys_in_order_with_the_same_blanks_and_does_not_shout(language: str) -> None:
    texts, english = CATALOGUES[language], CATALOGUES["en"]
    assert list(texts) == sorted(english)
    for key, text in texts.items():
        assert text.strip() == text != "", key
        assert not set("!！") & set(text), key
        assert set(re.findall(r"\{(\w+)[:}]", text)) == set(re.findall(r"\{(\w+)[:}]", english[key])), key


@pytest.mark.rule("WO-12")
def test_every_text_that_a_module_asks_for_is_there() -> None:
    plain, counted = (set(re.findall(rf'\b{name}\("([\w. ]+)"', MODULES)) for name in ("t", "tn"))
    assert {"memory.title", "files.saved"} <= plain
    assert "files.leftOut" in counted
    wanted = plain | {f"{key}.{form}" for key in counted for form in ("one", "other")}
    assert sorted(wanted - set(CATALOGUES["en"])) == []


@pytest.mark.rule("WO-12")
def test_whatever_the_gateway_names_on_the_page_has_a_word_there_and_nothing_else_has() -> None:
    named = {
        "configSource": {"file", "override"},
        "groupAnswered": {"config", "command", "no"},
        "groupMention": {"default", "command"},
        "jobKind": {
            DAILY, TRIM, OVERFLOW, dream_job.KIND, followups.KIND, housekeeping.KIND, index_rebuild.KIND, link_files.KIND, memory_export.KIND,
            scope_removal.KIND, task_jobs.KIND, titles.KIND, attempts.JUDGE, entries.KIND, deep_gate.KIND, restating.KIND, DAY, FOLD, ROLLING,
        },
        "memoryHow": {"head", "lore", "search", "get"},
        "purpose": {
            "reply", "api", "guest", "test", digesting.PURPOSE, dream_asking.PURPOSE, saved_drafts.PURPOSE, task_asking.PURPOSE, titles.KIND,
            attempts.JUDGE, summarist.PURPOSE, deep_memory.PURPOSE,
        },
        "section": {"tools", "instructions", "saved", "history", "time", "message"},
        "tool": {
            each.name
            for each in (
                MemorySearch, MemoryGet, MemorySave, MemoryUpdate, MemoryDelete, FileWrite, FileEdit, ProfileSet, TaskCreate, TaskList, TaskCancel,
            )
        },
    }  # fmt: skip
    known: dict[str, set[str]] = {stem: set() for stem in named}
    for key in CATALOGUES["en"]:
        stem, _, word = key.partition(".")
        if stem in known:
            known[stem].add(word)
    assert known == named


@pytest.mark.rule("WO-12")
def test_each_reason_for_which_a_job_had_nothing_to_do_has_a_sentence() -> None:
    written = "\n".join(path.read_text(encoding="utf-8") for path in STATIC.parent.glob("*.py"))
    reasons = {
        *re.findall(r'skipped="([^"]+)"', written), calendar_days.NO_MESSAGES, calendar_days.NOT_OVER, dream_night.NOTHING_NEW, dream_night.NO_MODEL,
        dream_night.CHANGED, summarizing.UNCHANGED, summarist.GONE, summarist.RULE, summarist.NO_MODEL,
    }  # fmt: skip
    assert len(reasons) > 12
    slugs = {f"jobSkipped.{re.sub('[^A-Za-z]+', '_', reason)}" for reason in reasons}
    assert slugs <= CATALOGUES["en"].keys()


@pytest.mark.parametrize("language", ["ja", "zh"])
def test_the_texts_of_the_memory_page_are_translated(language: str) -> None:
    heads = ("memory", "saved", "me.", "limits", "files", "origin", "author", "conflict", "revisions", "days", "dreams", "proposals")
    same = {key for key, text in CATALOGUES[language].items() if key.startswith(heads) and text == CATALOGUES["en"][key]}
    assert same == set()
