"""The WeCom bot on the long connection as a peer of the contract suite: the adapter against our fake of the platform's side."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Any

from channels.message import Account, Address, ChatType, EventKind
from channels.port import Channel
from channels.wechat.wecom import convert
from channels.wechat.wecom.adapter import WeComChannel
from channels.wechat.wecom.settings import CAPABILITIES, WeComSettings
from tests.contracts.channel_contract import GOOD, Fault, File, Peer, Place, Post, Seen, utc_now
from tests.patience import patience
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.wecom_server import BOT_ID, SECRET, FakeWeCom, World

ACCOUNT = Account(channel="wecom")
CHATS = {ChatType.DM: "ann", ChatType.GROUP: "wr-group-1"}
PLANS: dict[Fault, dict[str, Any]] = {
    Fault.CUT: {"cut": "after"},
    Fault.SERVER_ERROR: {"drop": True},  # it never says that it failed: it says nothing
    Fault.BLOCKED: {"errcode": 60011},
    Fault.REMOVED: {"errcode": 86001},
    Fault.BAD_CREDENTIAL: {"errcode": 40013},
    Fault.HANGS: {"drop": True},
}


class WeComPeer:
    chats = frozenset(CHATS)
    lacking = frozenset({"mentions", "bots", "order to wait", "refused connections", "edits of whole messages"})

    def __init__(self, server: FakeWeCom) -> None:
        self.account = ACCOUNT
        self.capabilities = CAPABILITIES
        self.kinds: frozenset[EventKind] = frozenset()
        self.credentials: tuple[str, ...] = (SECRET,)
        self.server = server
        self.world = server.world
        self.kept = Kept()
        self.kept.entries[f"group/{CHATS[ChatType.GROUP]}"] = b"1"

    def adapter(self, *, cursor: str = "", credential: str = GOOD, clock: Callable[[], datetime] = utc_now) -> Channel:
        settings = WeComSettings(
            bot_id=BOT_ID, secret=SECRET if credential == GOOD else "revoked", url=self.server.socket_url, trusted_hosts=("127.0.0.1",)
        )
        return WeComChannel(settings, vault=self.kept, account=ACCOUNT, clock=clock, second=self.world.second)

    def place(self, kind: ChatType) -> Place:
        return Place(address=Address(account=ACCOUNT, chat_id=CHATS[kind]), kind=kind)

    async def writes(
        self,
        text: str,
        place: Place,
        *,
        sender: str = "ann",
        mentions_us: bool = False,
        answers_us: bool = False,
        answers: Post | None = None,
        files: Sequence[File] = (),
        bot: bool = False,
    ) -> Post:
        group = place.address.chat_id if place.kind is ChatType.GROUP else ""
        if files:
            items: list[dict[str, Any]] = [{"msgtype": "text", "text": {"content": text}}] if text else []
            items += [{"msgtype": "file", "file": self.server.file(file.name, file.data, missing=file.broken)} for file in files]
            frame = self.server.says(sender, group=group, msgtype="mixed", mixed={"msg_item": items})
        else:
            frame = self.server.says(sender, text, group=group)
        msgid, req_id = frame["body"]["msgid"], frame["headers"]["req_id"]
        return Post(place=place, message_id=convert.message_id(msgid, req_id), event_id=msgid, sender_id=sender)

    async def edits(self, post: Post, text: str) -> None:
        raise AssertionError("nothing is edited there")

    async def deletes(self, post: Post) -> None:
        raise AssertionError("nothing is deleted there")

    async def migrates(self, place: Place, new_chat_id: str) -> None:
        raise AssertionError("no chat moves there")

    async def repeats(self, post: Post, *, as_number: bool = False) -> None:
        self.server.put(next(frame for frame in self.world.sent if frame["body"]["msgid"] == post.event_id))

    async def sends_strange(self, hint: str) -> None:
        self.server.says("ann", msgtype=hint, **{hint: {"light": "blue"}})

    async def sends_broken(self) -> None:
        self.server.says("ann", "of nobody", **{"from": {}})

    def seen(self, place: Place) -> list[Seen]:
        return [Seen(id=shown.id, text=shown.text, chat_id=shown.chat) for shown in self.world.shown if shown.chat == place.address.chat_id]

    def typing(self, place: Place) -> list[bool]:
        return []

    async def removes(self, message_id: str, place: Place) -> None:
        raise AssertionError("nothing is removed there")

    def plan(self, *faults: Fault) -> None:
        self.server.network(True)
        for fault in faults:
            if fault is Fault.UNREACHABLE:
                self.server.network(False)
            elif fault is not Fault.BAD_MARKUP:  # it takes every text
                self.world.fail("aibot_send_msg", PLANS[fault])

    def limits(self, wait_s: float) -> None:
        raise AssertionError("nobody is told to wait there")

    def fail_typing(self) -> None:
        raise AssertionError("no typing is shown there")

    def network(self, up: bool) -> None:
        self.server.network(up)


async def wechat_wecom() -> AsyncGenerator[Peer, None]:
    with FakeWeCom(World(second=min(patience(0.05), 0.2), redelivers=True)) as server:
        yield WeComPeer(server)
