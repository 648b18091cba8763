"""Whether the process lives, is ready, and what it counts."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from pydantic import SecretStr

from gateway.audit import CONSOLE
from gateway.config import TrustedProxy, Web
from gateway.http.health import Dependency, Phase, Readiness
from gateway.http.views import ChannelView, FaultView
from gateway.metrics import new_metrics
from tests.gateway.web_house import House

WEB = ChannelView(channel="web", account="main", state="ready")
DEAF = ChannelView(channel="telegram", account="main", state="degraded", reason="no getUpdates for 130 s")
READY = Readiness(phase=Phase.RUNNING, database_ok=True, channels=(WEB, DEAF))


@pytest.mark.rule("CH-214")
@pytest.mark.parametrize(
    ("readiness", "ready"),
    [
        pytest.param(READY, True, id="one of two hears"),
        pytest.param(replace(READY, dependencies=(Dependency(name="embedder", ok=False),)), True, id="words alone will do"),
        pytest.param(replace(READY, config_faults=(FaultView(path="a", line=1, column=1, message="m"),)), True, id="the old configuration runs on"),
        pytest.param(replace(READY, phase=Phase.STARTING), False, id="starting"),
        pytest.param(replace(READY, phase=Phase.DRAINING), False, id="draining"),
        pytest.param(replace(READY, database_ok=False), False, id="the database is down"),
        pytest.param(replace(READY, channels=(DEAF,)), False, id="no channel hears"),
        pytest.param(replace(READY, channels=()), False, id="no channel is enabled"),
    ],
)
async def test_readyz_is_503_until_the_gateway_can_work(house: House, readiness: Readiness, ready: bool) -> None:
    house.readiness = readiness
    async with house.client.get("/readyz") as response:
        assert response.status == (200 if ready else 503)
        assert (await response.json())["ready"] is ready
    async with house.client.get("/healthz") as response:
        assert response.status == 200


@pytest.mark.rule("CH-214", "WO-31")
async def test_readyz_lists_every_account_and_the_place_of_each_fault_but_quotes_nothing(house: House) -> None:
    proven = replace(WEB, proven_at=house.clock.now)
    fault = FaultView(path="model.api_key", line=7, column=3, message="wanted a text, found sk-TEST-1111")
    house.readiness = replace(READY, channels=(proven, DEAF), config_faults=(fault,))
    house.clock.advance(seconds=12.34)
    async with house.client.get("/readyz") as response:
        answered: dict[str, Any] = await response.json()
    assert answered["channels"] == [
        {"channel": "web", "account": "main", "state": "ready", "reason": "", "proof_age_s": 12.3},
        {"channel": "telegram", "account": "main", "state": "degraded", "reason": "no getUpdates for 130 s", "proof_age_s": None},
    ]
    assert answered["config_faults"] == [{"path": "model.api_key", "line": 7}]


@pytest.mark.rule("WO-37")
async def test_metrics_are_for_this_machine_and_for_admins(house: House) -> None:
    house.metrics.messages_in.labels("telegram", "answered").inc()
    async with house.client.get("/metrics") as response:
        text = await response.text()
        assert response.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert 'yumegate_messages_in_total{channel="telegram",outcome="answered"} 1.0' in text


@pytest.mark.rule("WO-37")
@pytest.mark.case("WP-10")
@pytest.mark.parametrize("header", ["X-Forwarded-For", "X-Forwarded-Proto", "X-Forwarded-Host", "X-Real-IP", "Forwarded", "Via"])
async def test_a_proxy_on_this_machine_is_not_this_machine(house: House, header: str) -> None:
    async with house.client.get("/metrics", headers={header: "127.0.0.1"}) as response:
        assert response.status == 401
    user = await house.people.create(CONSOLE, name="Ada", role="user")
    async with house.client.get("/metrics", headers={header: "x", **await house.bearer(user)}) as response:
        assert response.status == 403
    admin = await house.people.create(CONSOLE, name="Ben", role="admin")
    async with house.client.get("/metrics", headers={header: "x", **await house.bearer(admin)}) as response:
        assert response.status == 200


@pytest.mark.case("WP-10")
async def test_the_trusted_proxy_itself_is_not_this_machine(house: House) -> None:
    house.settings = Web(trusted_proxy=TrustedProxy(header="X-User", secret=SecretStr("a-long-secret-of-the-proxy")))
    for forwarded in ({}, {"X-Forwarded-For": "127.0.0.1"}):
        async with house.client.get("/metrics", headers={"X-Proxy-Secret": "a-long-secret-of-the-proxy", **forwarded}) as response:
            assert response.status == 401


@pytest.mark.rule("WO-37")
def test_everything_that_is_promised_is_counted_and_nothing_is_global() -> None:
    metrics = new_metrics()
    names = {family.name for family in metrics.registry.collect()}
    assert names == {
        f"yumegate_{name}"
        for name in (
            "messages_in", "messages_out", "turn_seconds", "first_token_seconds", "model_calls", "tokens", "recall_seconds", "lane_depth",
            "oldest_waiting_seconds", "jobs", "loop_lag_seconds",
        )
    }  # fmt: skip
    metrics.tokens.labels("input").inc(5)
    assert b'yumegate_tokens_total{kind="input"} 5.0' in metrics.exposition()
    assert b"kind=" not in new_metrics().exposition()
