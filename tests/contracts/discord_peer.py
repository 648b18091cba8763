"""Discord as a peer of the contract suite: the adapter and discord.py against our fake Discord, over real sockets."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Any

from channels.discord.adapter import DiscordChannel
from channels.discord.position import Place as Spot
from channels.discord.position import Position
from channels.discord.settings import CAPABILITIES, DiscordSettings
from channels.message import Account, Address, ChatType, EventKind
from channels.port import Channel
from tests.contracts.channel_contract import GOOD, Fault, File, Peer, Place, Post, Seen, utc_now
from tests.peers.discord.server import FakeDiscord
from tests.peers.discord.world import ANN, BOB, DM, GENERAL, GUILD, HALL, ME, ROBOT, THREAD, TOKEN

ACCOUNT = Account(channel="discord")
CHANNELS = {ChatType.DM: DM, ChatType.GROUP: GENERAL, ChatType.THREAD: THREAD}
PEOPLE = {"ann": ANN, "bob": BOB, "robot": ROBOT, "us": ME}
PLANS: dict[Fault, dict[str, Any]] = {
    Fault.CUT: {"cut": True},
    Fault.SERVER_ERROR: {"status": 503, "message": "Service Unavailable"},
    Fault.BLOCKED: {"status": 403, "code": 50007, "message": "Cannot send messages to this user"},
    Fault.REMOVED: {"status": 403, "code": 50001, "message": "Missing Access"},
    Fault.BAD_MARKUP: {"status": 400, "code": 50035, "message": "Invalid Form Body"},
    Fault.BAD_CREDENTIAL: {"status": 401, "code": 0, "message": "401: Unauthorized"},
    Fault.HANGS: {"hang": True},
}


class DiscordPeer:
    """There is no acknowledgement on Discord: what was not stored is found in the history of conversations that are known (CH-190).

    So an adapter without a stored cursor gets that of an account which knows our three places and has read all there was when the peer was made.
    Before its first connection nobody writes for real: people wait until it is there (only who is connected is told any number of things at once).
    """

    def __init__(self, server: FakeDiscord) -> None:
        self.account = ACCOUNT
        self.capabilities = CAPABILITIES
        self.kinds = frozenset({EventKind.EDITED, EventKind.DELETED})
        self.credentials: tuple[str, ...] = (TOKEN, TOKEN.rpartition(".")[2])
        self.server = server
        self.world = server.world
        self._posted: dict[str, dict[str, Any]] = {}
        self._down = False
        self._held: list[dict[str, Any]] = []
        self._known = str(Position({
            DM: (Spot(channel_id=DM), "1"),
            GENERAL: (Spot(channel_id=GENERAL, guild_id=GUILD), "1"),
            THREAD: (Spot(channel_id=THREAD, guild_id=GUILD, parent_id=HALL), "1"),
        }))  # fmt: skip

    def adapter(self, *, cursor: str = "", credential: str = GOOD, clock: Callable[[], datetime] = utc_now) -> Channel:
        async def load_cursor(name: str) -> str:
            return (cursor or self._known) if name == "seen" else ""

        self.server.listens(not self._down)
        token = TOKEN if credential == GOOD else f"{TOKEN}-revoked"
        settings = DiscordSettings(token=token, api_base=self.server.url, gateway_url=self.server.gateway_url)
        return DiscordChannel(settings, account=ACCOUNT, load_cursor=load_cursor, clock=clock, check_s=0.02, identify_pause_s=0.05)

    def place(self, kind: ChatType) -> Place:
        if kind is ChatType.THREAD:
            return Place(address=Address(account=ACCOUNT, chat_id=HALL, thread_id=THREAD), kind=kind, parent=HALL)
        return Place(address=Address(account=ACCOUNT, chat_id=CHANNELS[kind]), kind=kind)

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
        channel = CHANNELS[place.kind]
        more: dict[str, Any] = {}
        if answers_us:
            more = self.world.reference(self.world.message(channel, self.world.users[ME], "what we said"))
        if answers is not None:
            more = self.world.reference(self._posted[answers.message_id])
        more["attachments"] = [self.world.file(file.name, None if file.broken else file.data) for file in files]
        author: dict[str, Any] = {**self.world.users[PEOPLE[sender]], "bot": bot or sender == "us"}
        message = self.world.message(channel, author, f"<@{ME}> {text}" if mentions_us else text, **more)
        self._posted[message["id"]] = message
        if self.server.identified:
            self.server.posts(message)
        else:
            if not self._held:
                self.server.at_connect.append(self._post_held)
            self._held.append(message)
        return Post(place=place, message_id=message["id"], event_id=message["id"], sender_id=author["id"])

    async def _post_held(self) -> None:
        for message in self._held:
            await self.server.post(message)

    async def edits(self, post: Post, text: str) -> None:
        self.server.edits(self._posted[post.message_id], text)

    async def deletes(self, post: Post) -> None:
        self.server.deletes(self._posted[post.message_id])

    async def migrates(self, place: Place, new_chat_id: str) -> None:
        raise AssertionError("channels keep their ids there")

    async def repeats(self, post: Post, *, as_number: bool = False) -> None:
        told = self.world.announced(self._posted[post.message_id])
        self.server.dispatch("MESSAGE_CREATE", told | ({"id": int(told["id"])} if as_number else {}))

    async def sends_strange(self, hint: str) -> None:
        self.server.dispatch(hint, {"light": "blue"})

    async def sends_broken(self) -> None:
        told = self.world.announced(self.world.message(DM, self.world.users[ANN], "?"))
        del told["author"]
        self.server.dispatch("MESSAGE_CREATE", told)

    def seen(self, place: Place) -> list[Seen]:
        channel = CHANNELS[place.kind]
        thread_id = channel if place.kind is ChatType.THREAD else ""
        return [
            Seen(
                id=message["id"],
                text=message["content"],
                chat_id=place.address.chat_id,
                thread_id=thread_id,
                reply_to=message["message_reference"]["message_id"] if "message_reference" in message else "",
                files=tuple(file["filename"] for file in message["attachments"]),
            )
            for message in self.world.messages.get(channel, [])
            if message["author"]["id"] == ME and message["id"] not in self._posted
        ]

    def buttons(self, place: Place) -> list[list[str]]:
        return self.world.buttons(CHANNELS[place.kind])

    async def presses(self, place: Place, label: str, *, sender: str = "ann") -> None:
        shown = self.world.messages[CHANNELS[place.kind]]
        found = next(each for each in shown if any(button["label"] == label for row in each["components"] for button in row["components"]))
        self.server.presses(found, label, user_id=PEOPLE[sender])

    def asides(self) -> list[str]:
        return [words for _, words in self.world.asides]

    def typing(self, place: Place) -> list[bool]:
        return [True for call in self.world.calls if call.what == "typing" and call.path.endswith(f"/{CHANNELS[place.kind]}/typing")]

    async def removes(self, message_id: str, place: Place) -> None:
        channel = CHANNELS[place.kind]
        self.world.messages[channel] = [message for message in self.world.messages[channel] if message["id"] != message_id]

    def plan(self, *faults: Fault) -> None:
        self.server.listens(Fault.UNREACHABLE not in faults)  # the event stream that stands is not touched
        self.server.plan(*(PLANS[fault] for fault in faults if fault is not Fault.UNREACHABLE))

    def limits(self, wait_s: float) -> None:
        self.server.plan({"retry_after": wait_s})

    def fail_typing(self) -> None:
        self.world.typing_fails = True

    def network(self, up: bool) -> None:
        self._down = not up
        self.server.network(up)


async def discord() -> AsyncGenerator[Peer, None]:
    with FakeDiscord() as server:
        yield DiscordPeer(server)
