"""Which row of the platform matrix a chat falls under (SM 3.5). Pure."""

from __future__ import annotations

from gateway.config import Policies, Policy
from memory.saved.policy import MemoryPolicy, Notice


def resolve(policies: Policies, *, platform: str, chat_kind: str, in_space: bool, signed_in: bool) -> MemoryPolicy:
    """`platform`: of the channel, as `telegram`; `chat_kind`: dm, group, web, api, challenge; `in_space`: several people can speak there.

    Signed out goes before all, then challenges, then clients that bring their own window. A platform without a row of its own has the row of
    Telegram, which tells what it keeps.
    """
    return _memory(_row(policies, platform=platform, chat_kind=chat_kind, in_space=in_space, signed_in=signed_in))


def _row(policies: Policies, *, platform: str, chat_kind: str, in_space: bool, signed_in: bool) -> Policy:
    if not signed_in:
        return policies.signed_out
    if chat_kind == "challenge":
        return policies.challenge
    if chat_kind == "api":
        return policies.api
    if "web" in (chat_kind, platform):
        return policies.web
    if platform == "discord":
        return policies.discord_space if in_space else policies.discord_direct
    return policies.wechat if platform.startswith("wechat") or platform == "wecom" else policies.telegram


def _memory(policy: Policy) -> MemoryPolicy:
    return MemoryPolicy(
        read_rows=policy.read_rows,
        write_rows=policy.write_rows,
        ageing=policy.ageing,
        head_rows=None if policy.head_rows == "all" else policy.head_rows,
        deep_memory=policy.deep_memory == "subscriber",
        dreams=policy.dreams,
        chat_summaries=policy.chat_summaries,
        notice=Notice(policy.notice),
    )
