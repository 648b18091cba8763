"""Dreams over HTTP: what they did and why, what waits for a yes, asking for one, undoing one. The dreams' own rules are proved elsewhere."""

from __future__ import annotations

import hashlib
import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from agent.llm.port import ModelRequest
from agent.llm.scripted import Reply, ScriptedModel
from gateway.dreams.look import story
from memory import dream_store, proposal_store, proposed_changes
from memory.diary import Happened, Kind, diary_section
from memory.dream_store import Booking, Dream
from memory.lines import line_hash
from memory.proposal_store import Candidate
from memory.proposed_changes import Passage, ProposedChange
from memory.provenance import ChangedLine, LineRow, Origin
from tests.conftest import FakeClock
from tests.gateway.test_memory_files import add_space, call, house, put, remember_line, root, somebody, store
from tests.harness import Running, eventually, running

WORDS = {kind: kind for kind in ("added", "changed", "merged", "dropped", "candidate", "left_out", "kept_out", "outdated", "secret")}
STORIES = {
    "en": "The journey came up twice.\n\nI put it in one place.",
    "ja": "旅の話が二度出ました。\n\n一か所にまとめました。",
    "zh": "旅行说到两次。\n\n我放在一处。",
}
NOW = datetime.now(UTC)


def line(words: str, *, section: str = "") -> ChangedLine:
    return ChangedLine(text=words, section=section, row=LineRow(hash=line_hash(words), origin=Origin.PERSON, author="dream", evidence=("e" * 64,)))


def happened(kind: Kind, words: str, reason: str = "") -> Happened:
    return Happened(kind=kind, text=words, reason=reason, hashes=(line_hash(words),))


def dreamt(gateway: Running, *, added: str, dropped: str, language: str = "en", days: int = 0) -> str:
    """A dream that has changed MEMORY.md, as it is booked: `added` took the place of `dropped`."""
    before = (root(gateway) / "MEMORY.md").read_text(encoding="utf-8")
    after = before.replace(f"- {dropped}\n", "") + f"- {added}\n"
    remember_line(gateway, "root", "MEMORY.md", dropped, Origin.PERSON)
    changes = (happened("added", added), happened("dropped", dropped, "outdated"), happened("left_out", "sk-nothing"))
    dream = Dream(
        id=dream_store.new_id(),
        scope="root",
        local_date="2026-03-08",
        state="applying",
        trigger="night",
        old_hash=hashlib.sha256(before.encode()).hexdigest(),
        new_hash=hashlib.sha256(after.encode()).hexdigest(),
        staged=after,
        booking=Booking(added=(line(added),), removed=(line(dropped),)),
        changes=changes,
        diary=diary_section("23:55", STORIES[language], changes, WORDS),
    )

    def work(connection: sa.Connection) -> None:
        at = NOW - timedelta(days=days)
        dream_store.put(connection, dream, at)
        dream_store.book(connection, dream, "", at)
        dream_store.finish(connection, dream.id, at)

    put(gateway, "MEMORY.md", after)
    store(gateway, work)
    return dream.id


def candidate(gateway: Running, words: str, scope: str = "root") -> str:
    """A line that waits for a yes, as a dream leaves it; its id."""
    waits = Candidate(text=words, section="", row=LineRow(hash=line_hash(words), origin=Origin.MIXED, author="dream"))
    dream = Dream(id="n-any", scope=scope, local_date="2026-03-08", state="done", trigger="night", booking=Booking(candidates=(waits,)))

    def work(connection: sa.Connection) -> str:
        now = datetime.now(UTC)  # each later than the one before, for they are told in that order
        dream_store.settle(connection, dream, now)
        return next(each.id for each in proposal_store.open_proposals(connection, scope, now) if each.payload.get("text") == words)

    return store(gateway, work)


async def look(gateway: Running, **query: Any) -> Any:
    status, found = await call(gateway, "GET", "dreams", params=query)
    assert status == 200, found
    return found


@pytest.mark.rule("WD-77", "WD-78")
@pytest.mark.parametrize("language", STORIES)
async def test_a_dream_tells_its_story_and_every_line_with_its_reason(tmp_path: Path, language: str) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "MEMORY.md", "- the old inn\n- mine\n")
        dreamt(gateway, added="京都へ二〇二六年十一月", dropped="the old inn", language=language)
        (dream,) = (await look(gateway))["dreams"]
        assert (dream["date"], dream["state"], dream["trigger"], dream["refusal"]) == ("2026-03-08", "done", "night", None)
        assert [(each["kind"], each["before"], each["after"], each["reason"]) for each in dream["changes"]] == [
            ("added", [], "京都へ二〇二六年十一月", ""), ("dropped", ["the old inn"], "", "outdated"), ("left_out", [], "sk-nothing", ""),
        ]  # fmt: skip
        assert [part for part in STORIES[language].split("\n\n") if part not in dream["story"]] == []
        assert "23:55" not in dream["story"]
        assert "outdated" not in dream["story"]


def test_a_story_that_is_itself_a_list_is_kept_as_far_as_it_is_not_ours() -> None:
    assert story("## 23:55\n\nTwo things:\nboth small.\n\n- a thought\n\nadded:\n- one\n- two") == "Two things:\nboth small.\n\n- a thought"
    assert story("") == story("## 23:55") == ""


async def test_dreams_are_paged_newest_first(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "MEMORY.md", "- zero\n")
        ids = [dreamt(gateway, added=f"fact {n}", dropped="zero" if n == 0 else f"fact {n - 1}", days=9 - n) for n in range(5)]
        first = await look(gateway, limit="2")
        assert ([each["id"] for each in first["dreams"]], first["more"]) == ([ids[4], ids[3]], True)
        rest = await look(gateway, limit="9", before=ids[3])
        assert ([each["id"] for each in rest["dreams"]], rest["more"]) == ([ids[2], ids[1], ids[0]], False)


@pytest.mark.rule("WD-89")
async def test_undoing_names_what_it_would_reverse_and_says_what_it_did(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        assert (await look(gateway))["undo"] is None
        status, refused = await call(gateway, "POST", "dreams/undo", {})
        assert (status, refused["error"]["code"]) == (409, "nothing_to_undo")
        put(gateway, "MEMORY.md", "- old\n- mine\n")
        dreamt(gateway, added="new", dropped="old")
        undo = (await look(gateway))["undo"]
        assert (undo["cause"], undo["path"], undo["lines"]) == ("dream", "MEMORY.md", 2)
        put(gateway, "MEMORY.md", "- mine, and more\n- new\n")
        status, done = await call(gateway, "POST", "dreams/undo", {})
        assert (status, done["whole"], done["removed"], done["restored"]) == (200, False, ["new"], ["old"])
        assert sorted((root(gateway) / "MEMORY.md").read_text().splitlines()) == ["- mine, and more", "- old"]
        found = await look(gateway)
        assert (found["undo"], found["dreams"][0]["state"]) == (None, "undone")


@pytest.mark.rule("WD-63", "WD-64")
async def test_a_dream_is_asked_for_once_and_its_days_are_clamped(tmp_path: Path) -> None:
    model = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}
    async with house(tmp_path, deep_dream_enabled=False, model=model) as gateway, somebody(gateway, "user") as ben:
        status, started = await call(ben, "POST", "dreams", {"days": 99, "force": True})
        assert (status, started["days"], started["clamped"], started["running_since"]) == (202, 30, True, None)
        for days in ("3", 2.5, None):
            assert (await call(ben, "POST", "dreams", {"days": days}))[0] == 400
        _, found = await call(gateway, "GET", "dreams")
        assert found["running_since"] is None  # of another scope


@pytest.mark.rule("WD-79")
async def test_a_dream_that_the_model_cannot_dream_is_refused_at_once(tmp_path: Path) -> None:
    async with house(tmp_path, model={"provider": "demo"}) as gateway:
        status, answer = await call(gateway, "POST", "dreams", {"days": 3})
        assert (status, answer["error"]["code"]) == (409, "no_model") and "demo model" in answer["error"]["message"]
        assert (await look(gateway))["running_since"] is None


@pytest.mark.rule("WD-63", "WD-77", "WD-89")
async def test_a_dream_asked_for_on_the_page_is_dreamt_told_and_taken_back(tmp_path: Path, clock: FakeClock) -> None:
    def model(request: ModelRequest) -> Reply:
        shown = request.messages[-1].text
        (note,) = [json.loads(each) for each in shown.split("\n") if "京都へ行く" in each]
        entry = {"text": "母と京都へ行く。", "evidence": [note["id"]]}
        return json.dumps({"entries": [entry], "dropped": [], "diary": "旅の話がありました。"}, ensure_ascii=False)

    config = {"model": {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": "scripted"}}
    async with running(tmp_path, ScriptedModel(model), config=config, clock=clock) as gateway:
        put(gateway, "MEMORY.md", "- mine\n")
        put(gateway, f"memory/{clock().date()}.md", "- 母と京都へ行く\n")
        assert (await call(gateway, "POST", "dreams", {"days": 1}))[0] == 202

        async def dreamt() -> Any:
            found = await look(gateway)
            return found if found["dreams"] and not found["running_since"] else None

        found = await eventually(dreamt)
        (dream,) = found["dreams"]
        assert [(each["kind"], each["after"]) for each in dream["changes"]] == [("added", "母と京都へ行く。")]
        assert "旅の話がありました。" in dream["story"]
        assert (found["last"]["state"], found["last"]["skipped"], found["undo"]["lines"]) == ("done", "", 1)
        assert (root(gateway) / "MEMORY.md").read_text(encoding="utf-8") == "- mine\n- 母と京都へ行く。\n"
        assert (await call(gateway, "POST", "dreams/undo", {}))[1]["whole"] is True
        assert (root(gateway) / "MEMORY.md").read_text(encoding="utf-8") == "- mine\n"


@pytest.mark.rule("WD-68", "WD-81")
async def test_what_waits_is_shown_as_a_difference_and_settled_by_a_word(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "MEMORY.md", "- mine\n")
        yes, no = candidate(gateway, "お茶は十一時半から"), candidate(gateway, "never this")
        waiting = (await look(gateway))["proposals"]
        assert [(each["id"], each["kind"], each["path"], each["origin"]) for each in waiting] == [
            (yes, "candidate", "MEMORY.md", "mixed"), (no, "candidate", "MEMORY.md", "mixed"),
        ]  # fmt: skip
        assert [[(change["kind"], change["text"]) for change in each["difference"]] for each in waiting] == [
            [("added", "お茶は十一時半から")], [("added", "never this")],
        ]  # fmt: skip
        status, done = await call(gateway, "POST", f"proposals/{yes}/apply", {})
        assert (status, done["state"], [change["text"] for change in done["difference"]]) == (200, "applied", ["お茶は十一時半から"])
        assert (root(gateway) / "MEMORY.md").read_text(encoding="utf-8") == "- mine\n- お茶は十一時半から\n"
        assert (await call(gateway, "POST", f"proposals/{no}/discard", {}))[0] == 200
        assert (await look(gateway))["proposals"] == []
        for settled in (no, "q-nothing22", "..%2f"):
            assert (await call(gateway, "POST", f"proposals/{settled}/discard", {}))[0] == 404
        assert (await call(gateway, "POST", f"proposals/{no}/apply", {}))[0] in (404, 409)
        assert (await look(gateway))["dreams"][0]["trigger"] == "accepted"


@pytest.mark.rule("WD-105")
async def test_a_tools_change_waits_and_is_made_or_is_stale(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway:
        put(gateway, "user.md", "- tea\n")

        def wish(new: str) -> str:
            change = ProposedChange(
                scope="root", path="user.md", removed=("- tea",), added=(f"- {new}",),
                based_on=hashlib.sha256(b"- tea\n").hexdigest(), text=f"- {new}\n", passage=Passage(old="tea", new=new),
            )  # fmt: skip
            return store(gateway, lambda connection: proposed_changes.propose(connection, change, datetime.now(UTC)))

        green, black = wish("green tea"), wish("black tea")
        waiting = (await look(gateway))["proposals"]
        assert (waiting[0]["kind"], waiting[0]["path"]) == ("change", "user.md")
        assert [change["text"] for change in waiting[0]["difference"]] == ["- tea", "- green tea"]
        assert (await call(gateway, "POST", f"proposals/{green}/apply", {}))[0] == 200
        assert (root(gateway) / "user.md").read_text() == "- green tea\n"
        put(gateway, "user.md", "- coffee\n")
        status, refused = await call(gateway, "POST", f"proposals/{black}/apply", {})
        assert (status, refused["error"]["code"]) == (409, "gone")
        assert (root(gateway) / "user.md").read_text() == "- coffee\n"
        assert (await call(gateway, "POST", f"proposals/{black}/discard", {}))[0] == 200


@pytest.mark.rule("WD-10")
async def test_a_proposal_and_an_undo_of_another_memory_are_not_there(tmp_path: Path) -> None:
    async with house(tmp_path) as gateway, somebody(gateway, "admin") as ben:
        space = add_space(gateway)
        put(gateway, "MEMORY.md", "- old\n")
        dreamt(gateway, added="new", dropped="old")
        mine, theirs = candidate(gateway, "mine"), candidate(gateway, "of the circle", space)
        for proposal in (mine, theirs):
            for what in ("apply", "discard"):
                assert (await call(ben, "POST", f"proposals/{proposal}/{what}", {}))[0] == 404
        assert (await call(ben, "POST", "dreams/undo", {}))[0] == 409
        for scope in ("root", space):
            for what in ("dreams", "dreams/undo", f"proposals/{mine}/apply"):
                assert (await call(ben, "POST", what, {}, params={"scope": scope}))[0] == 404
            assert (await call(ben, "GET", "dreams", params={"scope": scope}))[0] == 404
        assert (await call(gateway, "POST", f"proposals/{theirs}/discard", {}))[0] == 404
        assert (await call(gateway, "POST", f"proposals/{theirs}/discard", {}, params={"scope": space}))[0] == 200
        assert (await look(gateway))["undo"]["lines"] == 2
