"""An Official Account with the customer-service API as a peer of the contract suite: the adapter, called by our fake of the vendor's side."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from channels.message import Account, Address, ChatType, EventKind, clean
from channels.port import Channel
from channels.wechat.official import people
from channels.wechat.official.adapter import OfficialChannel
from channels.wechat.official.people import Standing
from channels.wechat.official.settings import CAPABILITIES, OfficialSettings
from gateway.config import Webhooks
from gateway.webhooks import WebhookListener
from tests.contracts.channel_contract import GOOD, Fault, File, Peer, Place, Post, Seen, utc_now
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.official_server import AES_KEY, APP_ID, APP_SECRET, TOKEN, FakeOfficial, World

ACCOUNT = Account(channel="wechat_official")
PEOPLE = {"ann": "o_user_A", "bob": "o_user_B"}
ANN = PEOPLE["ann"]
PLANS: dict[Fault, dict[str, Any]] = {
    Fault.CUT: {"cut": "after"},
    Fault.SERVER_ERROR: {"status": 500},
    Fault.BLOCKED: {"errcode": 43004, "errmsg": "require subscribe"},
    Fault.BAD_CREDENTIAL: {"errcode": 40013, "errmsg": "invalid appid"},
    Fault.HANGS: {"hang": True},
}


class OfficialPeer:
    chats = frozenset({ChatType.DM})
    lacking = frozenset({"bots", "files beside words", "connection to lose"})

    def __init__(self, server: FakeOfficial) -> None:
        self.account = ACCOUNT
        self.capabilities = replace(CAPABILITIES, typing_refresh_s=4.0)
        self.kinds: frozenset[EventKind] = frozenset()
        self.credentials: tuple[str, ...] = (TOKEN, AES_KEY, APP_SECRET)
        self.server = server
        self.world = server.world
        self.world.acted[ANN] = utc_now()
        self.mounted: list[OfficialChannel] = []

    def adapter(self, *, cursor: str = "", credential: str = GOOD, clock: Callable[[], datetime] = utc_now) -> Channel:
        """A process that starts with what the store has: ann wrote a moment ago. The console sees that it is ours."""
        kept = Kept()
        standing = Standing(acted_at=datetime.now(UTC))
        kept.entries[people.key(ANN)] = b'{"at": "%s", "sent": 0, "gone": false}' % str(standing.acted_at).encode()
        settings = OfficialSettings(
            app_id=APP_ID, token=TOKEN, aes_key=AES_KEY, app_secret=APP_SECRET if credential == GOOD else "revoked", api_base=self.server.url,
            customer_service=True, typing=True,
        )  # fmt: skip
        channel = OfficialChannel(settings, vault=kept, account=ACCOUNT, clock=clock, pace_s=0, second=0.1)
        self.mounted[:] = [channel]
        self.server.begin(self._checked(after=len(self.world.tokens)))
        return channel

    async def _checked(self, *, after: int) -> None:
        """Not before the adapter has its token: who is proven can send."""
        while len(self.world.tokens) == after:  # noqa: ASYNC110  # the world tells nobody
            await asyncio.sleep(0.005)
        await self.server._checked()

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
        """The vendor's XML holds no broken characters; a message is words or one file."""
        if files:
            self.world.media[files[0].name] = files[0].data
            message = self.world.message(PEOPLE[sender], MsgType="image", MediaId=files[0].name)
        else:
            message = self.world.message(PEOPLE[sender], Content=clean(text))
        self.server.deliver(message)
        return Post(place=place, message_id=message["MsgId"], event_id=message["MsgId"], sender_id=PEOPLE[sender])

    async def edits(self, post: Post, text: str) -> None:
        raise AssertionError("nothing is edited there")

    async def deletes(self, post: Post) -> None:
        raise AssertionError("nothing is deleted there")

    async def migrates(self, place: Place, new_chat_id: str) -> None:
        raise AssertionError("no chat moves there")

    async def repeats(self, post: Post, *, as_number: bool = False) -> None:
        self.server.deliver(self.world.message(post.sender_id, MsgId=post.event_id, Content="once"))

    async def sends_strange(self, hint: str) -> None:
        self.server.deliver(self.world.message(ANN, MsgType=hint, Light="blue"))

    async def sends_broken(self) -> None:
        self.server.deliver(self.world.message("", Content="of nobody"))

    def seen(self, place: Place) -> list[Seen]:
        return [Seen(id=shown.id, text=shown.text, chat_id=shown.person) for shown in self.world.shown if shown.person == place.address.chat_id]

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
                self.world.fail("send", PLANS[fault])

    def limits(self, wait_s: float) -> None:
        self.world.fail("send", {"retry_after": int(wait_s)})

    def fail_typing(self) -> None:
        self.world.fail("typing", {"errcode": 45081})

    def network(self, up: bool) -> None:
        self.server.network(up)


async def wechat_official() -> AsyncGenerator[Peer, None]:
    with FakeOfficial(World(second=0.1, in_turn=True, budgeted=False)) as server:
        peer = OfficialPeer(server)
        async with WebhookListener(lambda: peer.mounted, lambda: Webhooks(port=0), shutdown_s=0.02) as listener:
            server.callback = f"http://127.0.0.1:{listener.port}/wechat"
            yield peer
