"""What operators read of an app that cannot be had: a sentence in their language that says what to do, and no exception (CH-212, CH-213, WO-30)."""

from __future__ import annotations

import ast
import json
import logging
import re
import socket
from pathlib import Path
from typing import Any

import pytest

from agent.llm.scripted import ScriptedModel
from channels.errors import ConnectionLost, CredentialRefused
from gateway import channel_words
from gateway.language import say
from tests.harness import Running, eventually, running

APPS: dict[str, dict[str, Any]] = {
    "telegram": {"token": "700001:abcdefghijklmnopqrstuvwxyz123456789", "base_url": "http://{nobody}"},
    "discord": {"token": "MTEx.aaaaaa.bbbbbbbbbbbbbbbbbbbbbbbb", "api_base": "http://{nobody}/api", "gateway_url": "ws://{nobody}"},
    "wecom": {"bot_id": "bot", "secret": "s" * 20, "url": "ws://{nobody}"},
}
CHANNELS = Path(channel_words.__file__).parents[1] / "channels"
CODES = (
    "unreachable", "broken", "pause", "other_program", "token", "intent", "no_api", "fault", "no_webhook_url", "too_many_servers",
    "scan", "scan_again", "odd_host", "outdated", "bad_app", "bad_bot", "bad_key",
)  # fmt: skip
TECHNICAL = re.compile(r"[A-Z]\w+(Error|Exception)|\w+\.\w+Error|Errno|httpx|aiohttp|127\.0\.0\.1")


def nobody() -> str:
    """An address where nobody listens."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{taken.getsockname()[1]}"


async def shown(gateway: Running, language: str) -> list[dict[str, Any]]:
    async with gateway.http.get(f"{gateway.url}/api/operator/overview", headers={"Accept-Language": language}) as answer:
        return [each for each in (await answer.json())["channels"] if each["channel"] in APPS]


@pytest.mark.rule("CH-212", "CH-213", "WO-30", "WO-12")
async def test_an_app_that_is_not_reached_is_told_of_in_plain_words_and_the_log_has_the_rest(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    at = nobody()
    sections = {name: {"enabled": True, **{key: value.format(nobody=at) for key, value in section.items()}} for name, section in APPS.items()}
    async with running(tmp_path, ScriptedModel("yes"), config={"channels": sections}) as gateway:

        async def all_known() -> bool:
            return {each["state"] for each in await shown(gateway, "en")} == {"degraded"}

        await eventually(all_known, within_s=30)
        for language in ("en", "ja", "zh"):
            for each in await shown(gateway, language):
                wanted = channel_words.reason(each["channel"], "unreachable", "", language)
                assert (each["reason"], each["last_error"]) == (wanted, wanted), each["channel"]
                assert not TECHNICAL.search(json.dumps(each, ensure_ascii=False))
        async with gateway.http.get(f"{gateway.url}/readyz") as answer:
            assert not TECHNICAL.search(await answer.text())
        for name in APPS:
            logged = [line for line in caplog.messages if f"channel {name}:main" in line]
            assert any(TECHNICAL.search(line) or "no connection" in line for line in logged), logged


@pytest.mark.rule("CH-212", "WO-12")
@pytest.mark.parametrize("code", CODES)
@pytest.mark.parametrize("channel", ["telegram", "discord", "wechat_ilink", "wechat_official", "wecom", "loopback"])
def test_each_kind_of_fault_has_its_sentence_in_each_language(channel: str, code: str) -> None:
    told = [channel_words.reason(channel, code, "KeyError: x", language) for language in ("en", "ja", "zh")]
    assert len(set(told)) == 3
    assert not any("{" in each or "KeyError" in each for each in told)


@pytest.mark.rule("CH-212")
def test_a_fault_without_a_kind_is_told_as_it_says_itself() -> None:
    assert channel_words.reason("telegram", "", "set `webhook_url`", "ja") == "set `webhook_url`"
    assert (ConnectionLost("x").code, CredentialRefused("x", code="token").code) == ("", "token")
    assert say("en", "app_wecom") in channel_words.reason("wecom", "token", "")


@pytest.mark.rule("CH-212", "WX-21")
@pytest.mark.parametrize("file", sorted(CHANNELS.rglob("*.py")), ids=lambda file: str(file.relative_to(CHANNELS)))
def test_no_adapter_asks_for_an_operator_without_a_kind_that_there_are_words_for(file: Path) -> None:
    """Else it would speak English to everybody. The loopback channel is for tests."""
    if file.parent.name == "loopback":
        return
    for call in ast.walk(ast.parse(file.read_text())):
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in ("CredentialRefused", "NeedsOperator"):
            kinds = [*call.args[1:], *(each.value for each in call.keywords)]
            assert kinds, f"line {call.lineno}"
            assert all(not isinstance(kind, ast.Constant) or kind.value in CODES for kind in kinds), f"line {call.lineno}"


@pytest.mark.rule("CH-212", "WX-21", "WO-12")
async def test_who_has_to_scan_a_code_is_told_so_in_their_language(tmp_path: Path) -> None:
    sections = {"wechat_ilink": {"enabled": True}}
    async with running(tmp_path, ScriptedModel("yes"), config={"channels": sections}) as gateway:

        async def told(language: str) -> str:
            async with gateway.http.get(f"{gateway.url}/api/operator/overview", headers={"Accept-Language": language}) as answer:
                found = [each for each in (await answer.json())["channels"] if each["channel"] == "wechat_ilink"]
                return found[0]["reason"] if found[0]["state"] == "auth_required" else ""

        await eventually(lambda: told("en"))
        for language in ("en", "ja", "zh"):
            assert await told(language) == channel_words.reason("wechat_ilink", "scan", "", language)
