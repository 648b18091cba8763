"""The row of the platform matrix that a chat falls under."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.config import Policies
from gateway.policy import resolve
from memory.saved import policy
from memory.saved.policy import Notice

POLICIES = Policies.model_validate({})


def of(platform: str, kind: str = "dm", *, in_space: bool = False, signed_in: bool = True) -> policy.MemoryPolicy:
    return resolve(POLICIES, platform=platform, chat_kind=kind, in_space=in_space, signed_in=signed_in)


# Place; unpinned rows in the head; deep memory; dreams; chat summaries; notice.
MATRIX: list[Any] = [
    (of("web", "web"), 100, True, True, True, Notice.TOAST),
    (of("telegram"), 100, False, True, True, Notice.SHORT),
    (of("telegram", "group", in_space=True), 100, False, True, True, Notice.SHORT),
    (of("discord", "group", in_space=True), None, False, True, True, Notice.FULL),
    (of("discord"), 100, False, True, True, Notice.FULL),
    (of("wechat_ilink"), 100, False, True, True, Notice.HIDDEN),
    (of("wechat_official"), 100, False, True, True, Notice.HIDDEN),
    (of("wecom", "group", in_space=True), 100, False, True, True, Notice.HIDDEN),
    (of("web", "api"), 100, False, False, True, Notice.RESULT),
]


@pytest.mark.rule("SM-21", "SM-61")
@pytest.mark.parametrize(("found", "head_rows", "deep", "dreams", "summaries", "notice"), MATRIX)
def test_the_matrix(found: policy.MemoryPolicy, head_rows: int | None, deep: bool, dreams: bool, summaries: bool, notice: Notice) -> None:
    assert found.read_rows and found.write_rows and found.ageing
    assert (found.head_rows, found.deep_memory, found.dreams, found.chat_summaries, found.notice) == (head_rows, deep, dreams, summaries, notice)


@pytest.mark.rule("SM-88", "SM-89")
@pytest.mark.parametrize("platform", ["web", "telegram", "discord", "wechat_ilink"])
def test_in_a_challenge_and_signed_out_all_is_off(platform: str) -> None:
    assert of(platform, "challenge") == policy.OFF
    for kind in ("dm", "group", "web", "api", "challenge"):
        assert of(platform, kind, signed_in=False) == policy.OFF


@pytest.mark.rule("SM-21")
def test_the_file_can_say_otherwise() -> None:
    told = Policies.model_validate({"telegram": {"notice": "hidden", "head_rows": "all"}})
    found = resolve(told, platform="telegram", chat_kind="dm", in_space=False, signed_in=True)
    assert (found.notice, found.head_rows, found.deep_memory) == (Notice.HIDDEN, None, False)
