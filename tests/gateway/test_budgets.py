"""Daily budgets of tokens and cost (WO-38)."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from agent.llm.port import Usage
from agent.llm.scripted import End, Say, ScriptedModel
from agent.turn import ModelCall
from gateway.budgets import Budgets
from gateway.config import Config
from gateway.language import say
from gateway.model_calls import record_calls
from gateway.models import Models
from gateway.turn_store import TurnStart
from memory.database import Database
from tests.conftest import FakeClock
from tests.harness import eventually, running

pytestmark = pytest.mark.rule("WO-38")


def settings(zone: str = "UTC", **limits: float) -> Config:
    return Config.model_validate({"timezone": zone, "budgets": limits, "agent_workspace": "/w", "data_dir": "/d"}, strict=False)


def asked_by(person: str, chat: str = "c1") -> TurnStart:
    return cast("TurnStart", SimpleNamespace(person={"id": person}, conversation=SimpleNamespace(id=chat)))


def call(tokens: int, model: str = "m") -> ModelCall:
    usage = Usage(input_tokens=tokens - 10, output_tokens=10)
    return ModelCall(model=model, provider="openai", outcome="ok", usage=usage, milliseconds=1)


def of(person: str, chat: str = "c1", **more: Any) -> dict[str, Any]:
    return {"person_id": person, "conversation_id": chat, "channel": "web", **more}


async def test_without_limits_nothing_is_ever_used_up(sqlite: Database, clock: FakeClock) -> None:
    budgets = Budgets(sqlite, clock=clock, config=settings)
    budgets.spend(asked_by("ann"), [call(10**9)], 10**6)
    assert budgets.used_up(asked_by("ann")) == ""


@pytest.mark.parametrize(
    ("limits", "name", "others_too"),
    [
        ({"day_tokens": 100}, "day", True),
        ({"person_day_tokens": 100}, "person", False),
        ({"chat_day_tokens": 100}, "chat", False),
        ({"day_cost": 2.0}, "cost", True),
    ],
)
async def test_a_limit_stops_those_it_is_for(sqlite: Database, clock: FakeClock, limits: dict[str, float], name: str, others_too: bool) -> None:
    budgets = Budgets(sqlite, clock=clock, config=lambda: settings(**limits))
    budgets.spend(asked_by("ann"), [call(60)], 1.0)
    assert budgets.used_up(asked_by("ann")) == ""
    budgets.spend(asked_by("ann"), [call(60)], 1.0)
    assert budgets.used_up(asked_by("ann")) == name
    assert bool(budgets.used_up(asked_by("ben", "c2"))) is others_too


async def test_a_changed_limit_holds_at_once(sqlite: Database, clock: FakeClock) -> None:
    now = settings(day_tokens=50)
    budgets = Budgets(sqlite, clock=clock, config=lambda: now)
    budgets.spend(asked_by("ann"), [call(60)], 0)
    assert budgets.used_up(asked_by("ann")) == "day"
    now = settings(day_tokens=500)
    assert budgets.used_up(asked_by("ann")) == ""


@pytest.mark.parametrize(("zone", "hours"), [("UTC", 15), ("Asia/Tokyo", 6), ("America/New_York", 19)])
async def test_a_day_begins_at_midnight_of_the_configured_zone(sqlite: Database, zone: str, hours: int) -> None:
    """The clock stands at 09:26:53 UTC: midnight is so many hours off."""
    clock = FakeClock(datetime(2026, 3, 14, 9, 26, 53, tzinfo=UTC))
    budgets = Budgets(sqlite, clock=clock, config=lambda: settings(zone, day_tokens=50))
    budgets.spend(asked_by("ann"), [call(60)], 0)
    clock.advance(hours=hours - 1, minutes=30)
    assert budgets.used_up(asked_by("ann")) == "day"
    clock.advance(hours=1)
    assert budgets.used_up(asked_by("ann")) == ""


async def test_a_restart_remembers_what_the_day_has_cost(database: Database, clock: FakeClock) -> None:
    def work(connection: Any) -> None:
        record_calls(connection, [(call(60), of("ann", cost=1.5)), (call(30), of("ben", "c2"))], clock())
        yesterday = datetime(2026, 3, 13, 23, 59, tzinfo=UTC)
        record_calls(connection, [(call(500), of("ann"))], yesterday)

    await database.write(work)
    limits = {"person_day_tokens": 60, "day_tokens": 91, "day_cost": 1.6}
    budgets = Budgets(database, clock=clock, config=lambda: settings(**limits))
    await budgets.load()
    assert budgets.used_up(asked_by("ann", "c9")) == "person"
    assert budgets.used_up(asked_by("ben", "c9")) == ""
    budgets.spend(asked_by("cat", "c3"), [call(11)], 0.2)
    assert budgets.used_up(asked_by("dan", "c9")) == "day"


async def test_background_work_silences_nobody(sqlite: Database, clock: FakeClock) -> None:
    await sqlite.write(lambda connection: record_calls(connection, [(call(900), of("ann", purpose="title"))], clock()))
    budgets = Budgets(sqlite, clock=clock, config=lambda: settings(day_tokens=100))
    await budgets.load()
    assert budgets.used_up(asked_by("ann")) == ""


async def test_the_warning_comes_once_when_the_share_is_passed(sqlite: Database, clock: FakeClock) -> None:
    budgets = Budgets(sqlite, clock=clock, config=lambda: settings(person_day_tokens=100, day_tokens=1_000, warn_percent=80))
    assert budgets.spend(asked_by("ann"), [call(79)], 0) == []
    assert budgets.spend(asked_by("ann"), [call(11)], 0) == ["person"]
    assert budgets.spend(asked_by("ann"), [call(11)], 0) == []
    clock.advance(days=1)
    assert budgets.spend(asked_by("ann"), [call(85)], 0) == ["person"]


async def test_a_request_costs_what_its_account_says() -> None:
    price = {"input": 2.0, "output": 10.0, "cached": 0.5}
    account = {"provider": "openai", "base_url": "http://127.0.0.1:1/v1", "name": "m", "price": price}
    config = Config.model_validate({"model": account, "agent_workspace": "/w", "data_dir": "/d"}, strict=False)
    models = Models(lambda _: pytest.fail("no model is needed to know a price"), config)
    usage = Usage(input_tokens=1_000_000, output_tokens=100_000, cached_tokens=400_000)
    asked = ModelCall(model="m", provider="openai", outcome="ok", usage=usage, milliseconds=1)
    assert models.cost(asked) == pytest.approx(0.6 * 2 + 0.4 * 0.5 + 0.1 * 10)
    assert models.cost(call(10**6, "unknown")) == 0.0


@pytest.mark.parametrize(("language", "question"), [("en", "hello"), ("ja", "こんにちは"), ("zh", "你好")])
async def test_a_used_up_budget_is_told_kindly_and_a_nearly_used_up_one_before(tmp_path: Path, language: str, question: str) -> None:
    model = ScriptedModel(lambda _: [Say("Yes."), End(usage=Usage(input_tokens=80, output_tokens=10))])
    async with running(tmp_path, model, config={"budgets": {"person_day_tokens": 85}}) as gateway:
        chat = await gateway.chat(title="A title")
        async with gateway.following(chat) as heard:
            await gateway.say(chat, question)
        warned = [data for _, name, data in heard.result() if name == "notice"]
        assert warned == [{"text": say(language, "budget_warn", percent=80, what="person"), "level": "warning"}]
        await gateway.say(chat, question)

        async def told() -> str | None:
            return next((one["text"] for one in await gateway.messages(chat) if one["role"] == "notice"), None)

        assert await eventually(told) == say(language, "budget_stop", what="person")
    assert len(model.requests) == 1
