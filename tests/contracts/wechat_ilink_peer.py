"""Personal WeChat as a peer of the contract suite: the adapter against our fake iLink. There are direct chats only (WX-34)."""

from __future__ import annotations

import time
from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Any

from channels.message import Account, Address, ChatType, EventKind
from channels.port import Channel
from channels.wechat.ilink import contexts
from channels.wechat.ilink.adapter import IlinkChannel
from channels.wechat.ilink.contexts import Context
from channels.wechat.ilink.settings import CAPABILITIES, IlinkSettings
from tests.contracts.channel_contract import GOOD, Fault, File, Peer, Place, Post, Seen, utc_now
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.ilink_world import BOT_ID, TOKEN, World

ACCOUNT = Account(channel="wechat_ilink")
ANN = "ann@im.wechat"
PLANS: dict[Fault, dict[str, Any]] = {
    Fault.CUT: {"cut": "after"},
    Fault.SERVER_ERROR: {"status": 500},
    Fault.BLOCKED: {"ret": 1, "errmsg": "blocked"},
    Fault.BAD_CREDENTIAL: {"ret": -14, "errcode": -14},
    Fault.HANGS: {"hang": True},
}


class IlinkPeer:
    chats = frozenset({ChatType.DM})

    def __init__(self, server: FakeIlink) -> None:
        self.account = ACCOUNT
        self.capabilities = CAPABILITIES
        self.kinds = frozenset({EventKind.DELETED})
        self.server = server
        self.world = server.world
        self.context_token = self.world.issue(ANN)
        self.credentials: tuple[str, ...] = (TOKEN, TOKEN.partition(":")[2], self.context_token)

    def adapter(self, *, cursor: str = "", credential: str = GOOD, clock: Callable[[], datetime] = utc_now) -> Channel:
        """A process that starts with what the store has: the login, and a context that ann opened a moment ago."""

        async def load_cursor() -> str:
            return cursor

        kept = Kept()
        kept.logged_in(TOKEN if credential == GOOD else f"{TOKEN}00", BOT_ID, self.server.url)
        context = Context(token=self.context_token, received_at=clock(), last_inbound_at=clock())
        kept.entries[contexts.key(ANN)] = contexts.dumped(context)
        settings = IlinkSettings(base_url=self.server.url, cdn_url=self.server.cdn_url)
        return IlinkChannel(
            settings, vault=kept, account=ACCOUNT, load_cursor=load_cursor, clock=clock, pause_s=0.01, again_s=0.02, pace_s=0, hold_s=1
        )

    def place(self, kind: ChatType) -> Place:
        assert kind is ChatType.DM
        return Place(address=Address(account=ACCOUNT, chat_id=ANN), kind=kind)

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
        items = [self.world.file(file.name, file.data, missing=file.broken) for file in files]
        ours = {"from_user_id": BOT_ID, "to_user_id": place.address.chat_id, "message_type": 2, "context_token": ""} if sender == "us" else {}
        person = f"{sender}@im.bot" if bot else place.address.chat_id
        message = self.server.says(person, *([text] if text else []), items=items, **ours)
        return Post(place=place, message_id=str(message["message_id"]), event_id=str(message["message_id"]), sender_id=message["from_user_id"])

    async def edits(self, post: Post, text: str) -> None:
        raise AssertionError("nothing is edited there")

    async def deletes(self, post: Post) -> None:
        self.server.put(self._raw(post) | {"delete_time_ms": int(time.time() * 1000), "item_list": [], "seq": len(self.world.feed) + 1})

    async def migrates(self, place: Place, new_chat_id: str) -> None:
        raise AssertionError("no chat moves there")

    async def repeats(self, post: Post, *, as_number: bool = False) -> None:
        self.server.repeat(self._raw(post) | {"message_id": int(post.event_id) if as_number else post.event_id})

    def _raw(self, post: Post) -> dict[str, Any]:
        return next(message for message in self.world.feed if str(message["message_id"]) == post.event_id)

    async def sends_strange(self, hint: str) -> None:
        self.server.says(ANN, "from tomorrow", message_type=hint)

    async def sends_broken(self) -> None:
        self.server.says(ANN, "of nobody", from_user_id=None)

    def seen(self, place: Place) -> list[Seen]:
        return [
            Seen(id=shown.message_id, text=shown.text, chat_id=shown.person, files=(shown.name,) if shown.name else ())
            for shown in self.world.shown
            if shown.person == place.address.chat_id
        ]

    def typing(self, place: Place) -> list[bool]:
        return [on for person, on in self.world.typing if person == place.address.chat_id]

    async def removes(self, message_id: str, place: Place) -> None:
        raise AssertionError("nothing is edited there")

    def plan(self, *faults: Fault) -> None:
        self.server.network(True)
        for fault in faults:
            if fault is Fault.UNREACHABLE:
                self.server.refuse()
            elif fault is not Fault.BAD_MARKUP:  # it takes every text
                self.world.fail("sendmessage", PLANS[fault])

    def limits(self, wait_s: float) -> None:
        self.world.fail("sendmessage", {"retry_after": int(wait_s)})

    def fail_typing(self) -> None:
        self.world.typing_fails = True

    def network(self, up: bool) -> None:
        self.server.network(up)


async def wechat_ilink() -> AsyncGenerator[Peer, None]:
    with FakeIlink(World(hold_s=0.05, rate_limited=False)) as server:
        yield IlinkPeer(server)


