"""Files that people sent: how large one may be is the account's setting, handed down as what its channel can do (CH-7, WX-53, WX-110)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from channels.errors import AttachmentRefused, ConnectionLost
from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, Attachment, to_json
from gateway.arrivals.fetching import AT_ONCE, PAUSES_S, Fetcher
from gateway.attachments import Attachments
from gateway.config import Config
from gateway.wiring.channels import Outside, channel_plans
from memory import conversations
from memory.conversations import Message
from memory.database import Database
from tests.conftest import FakeClock

ACCOUNT = Account(channel="loopback")


def attached(*names: str) -> list[dict[str, Any]]:
    return [to_json(Attachment(kind="file", name=name, fetch_ref=name)) for name in names]


async def message(db: Database, clock: FakeClock, files: Sequence[dict[str, Any]]) -> Message:
    def work(c: Any) -> Message:
        chat = conversations.create_conversation(c, now=clock(), key="loopback:main:c1", channel="loopback", account="main", kind="dm")
        return conversations.add_message(
            c, now=clock(), conversation_id=chat, role="user", text="here", author_person_id="", attachments=files, turn_id="t"
        )

    return await db.write(work)


@pytest.mark.rule("CH-7", "WX-53", "WX-110")
@pytest.mark.parametrize(("size", "fits"), [(1000, True), (1001, False)])
async def test_a_file_above_what_its_channel_takes_stays_where_it_is(
    sqlite: Database, clock: FakeClock, tmp_path: Path, size: int, fits: bool
) -> None:
    platform = LoopbackPlatform(files={"a.txt": b"a" * size})
    channel = LoopbackChannel(platform, account=ACCOUNT, capabilities=replace(CAPABILITIES, fetch_max_bytes=1000))
    fetcher = Fetcher(db=sqlite, attachments=Attachments(tmp_path / "files", sqlite), find_channel=lambda _account: channel, clock=clock)
    (file,) = await fetcher.files(await message(sqlite, clock, attached("a.txt")), ACCOUNT)
    assert bool(file.get("stored_path")) is fits


class Slow(LoopbackChannel):
    """How many files are on their way at most."""

    under_way = most = 0

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        Slow.under_way += 1
        Slow.most = max(Slow.most, Slow.under_way)
        await asyncio.sleep(0)
        Slow.under_way -= 1
        return b"x"


@pytest.mark.rule("CH-7")
async def test_every_file_is_fetched_and_only_some_lie_in_memory_at_a_time(sqlite: Database, clock: FakeClock, tmp_path: Path) -> None:
    channel = Slow(LoopbackPlatform(), account=ACCOUNT)
    fetcher = Fetcher(db=sqlite, attachments=Attachments(tmp_path / "files", sqlite), find_channel=lambda _account: channel, clock=clock)
    files = await fetcher.files(await message(sqlite, clock, attached(*map(str, range(3 * AT_ONCE)))), ACCOUNT)
    assert all(file.get("stored_path") for file in files)
    assert 1 < Slow.most <= AT_ONCE


class Late(LoopbackChannel):
    """Connected only after some tries."""

    tries = 0
    fails: Sequence[Exception] = ()

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes:
        self.tries += 1
        if self.tries <= len(self.fails):
            raise self.fails[self.tries - 1]
        return b"x"


LOST, NEVER = ConnectionLost("the account is not running"), AttachmentRefused("it is not there")


@pytest.mark.rule("CH-7", "RL-2")
@pytest.mark.parametrize(
    ("absent", "fails", "arrives", "tries"),
    [
        (False, (LOST,) * 2, True, 3), (False, (LOST,) * 4, True, 5), (False, (LOST,) * 9, False, 5), (False, (NEVER,), False, 1),
        (False, (LOST, NEVER), False, 2), (True, (), True, 1),
    ],
)
async def test_a_file_that_cannot_be_had_just_now_is_asked_for_again(
    sqlite: Database, clock: FakeClock, tmp_path: Path, absent: bool, fails: Sequence[Exception], arrives: bool, tries: int
) -> None:
    """After a kill a turn may go on before its account is connected: without another try its pictures would be missing."""
    channel, waits, there = Late(LoopbackPlatform(), account=ACCOUNT), list[float](), [None] if absent else []
    channel.fails = fails

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    def find(_account: Account) -> LoopbackChannel | None:
        return there.pop() if there else channel

    fetcher = Fetcher(db=sqlite, attachments=Attachments(tmp_path / "files", sqlite), find_channel=find, clock=clock, sleep=sleep)
    (file,) = await fetcher.files(await message(sqlite, clock, attached("a.png")), ACCOUNT)
    assert (bool(file.get("stored_path")), channel.tries) == (arrives, tries)
    assert waits == list(PAUSES_S[: tries - 1 + absent])


# -- from the configuration to the account -------------------------------------------------------------------------------------


def plan_of(sqlite: Database, clock: FakeClock, name: str, **section: Any) -> Any:
    async def read(_file: Attachment) -> bytes:
        raise FileNotFoundError

    config = Config.model_validate({"channels": {name: {"enabled": True, **section}}}, strict=False)
    (plan,) = channel_plans(config, Outside(db=sqlite, clock=clock, read_file=read))
    return plan


@pytest.mark.rule("CH-7", "WX-53", "WX-110")
@pytest.mark.parametrize(
    ("name", "default"),
    [("telegram", 20_000_000), ("discord", 20_000_000), ("wechat_ilink", 100_000_000), ("wechat_official", 100_000_000), ("wecom", 100_000_000)],
)
@pytest.mark.parametrize("mode", ["", "webhook"])
async def test_how_large_a_file_may_be_is_said_for_each_account(sqlite: Database, clock: FakeClock, name: str, default: int, mode: str) -> None:
    section = {"mode": mode} if mode and name in ("telegram", "wecom") else {}
    assert plan_of(sqlite, clock, name, **section).capabilities.fetch_max_bytes == default
    assert plan_of(sqlite, clock, name, attachment_bytes=5, **section).capabilities.fetch_max_bytes == 5


@pytest.mark.rule("WX-20", "WX-27", "WX-46", "WX-53", "WX-82", "WX-110")
async def test_hosts_tags_and_signs_of_wechat_reach_their_adapters(sqlite: Database, clock: FakeClock) -> None:
    hosts = ["files.example.org"]
    bot = plan_of(sqlite, clock, "wechat_ilink", trusted_hosts=hosts, route_tag="r-7", keep_typing=True).settings
    assert bot.trusts("https://files.example.org/x")
    assert not bot.trusts("https://other.example.org/x")
    assert (bot.route_tag, bot.capabilities.typing_refresh_s) == ("r-7", 5.0)
    assert not plan_of(sqlite, clock, "wechat_ilink").settings.keep_typing
    assert plan_of(sqlite, clock, "wecom", trusted_hosts=hosts).settings.trusts("https://files.example.org/x")
    public = plan_of(sqlite, clock, "wechat_official", trusted_hosts=hosts, typing=True, customer_service=True).settings
    assert (public.trusted_hosts, public.capabilities.typing_refresh_s) == (("files.example.org",), 4.0)
    assert plan_of(sqlite, clock, "wechat_official", customer_service=True).settings.capabilities.typing_refresh_s is None
