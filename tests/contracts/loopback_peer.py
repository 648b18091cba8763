"""The shipped loopback platform as a peer of the contract suite."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from datetime import datetime
from typing import Any

from channels.loopback import CAPABILITIES, LoopbackChannel, LoopbackPlatform
from channels.message import Account, Address, ChatType, EventKind
from channels.port import Channel
from tests.contracts.channel_contract import GOOD, Fault, File, Peer, Place, Post, Seen, utc_now

TOKEN = "loopback-token-3141592653"
CHATS = {ChatType.DM: ("d1", ""), ChatType.GROUP: ("g1", ""), ChatType.THREAD: ("g2", "t7")}
PLANS: dict[Fault, dict[str, Any]] = {
    Fault.UNREACHABLE: {"unreachable": True},
    Fault.CUT: {"unknown": "after"},
    Fault.SERVER_ERROR: {"unknown": "before"},
    Fault.BLOCKED: {"refuse": "blocked by the person"},
    Fault.REMOVED: {"refuse": "removed from the group"},
    Fault.BAD_MARKUP: {"markup": "refused"},
    Fault.BAD_CREDENTIAL: {"operator": "loopback: the token is wrong; set the right one"},
    Fault.HANGS: {"hang": True},
}


class LoopbackPeer:
    def __init__(self) -> None:
        self.account = Account(channel="loopback")
        self.capabilities = CAPABILITIES
        self.kinds = frozenset({EventKind.EDITED, EventKind.DELETED, EventKind.MIGRATED})
        self.credentials: tuple[str, ...] = (TOKEN,)
        self.platform = LoopbackPlatform(token=TOKEN, hold_s=0.02)

    def adapter(self, *, cursor: str = "", credential: str = GOOD, clock: Callable[[], datetime] = utc_now) -> Channel:
        self.platform.clock = clock
        token = TOKEN if credential == GOOD else f"{TOKEN}-revoked"
        return LoopbackChannel(self.platform, token=token, start_after=int(cursor or 0))

    def place(self, kind: ChatType) -> Place:
        chat, thread = CHATS[kind]
        return Place(
            address=Address(account=self.account, chat_id=chat, thread_id=thread), kind=kind, parent="g2" if kind is ChatType.THREAD else ""
        )

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
        more: dict[str, Any] = {"group": place.kind is not ChatType.DM, "bot": bot, "files": [self._kept(file) for file in files]}
        if place.address.thread_id:
            more |= {"thread": place.address.thread_id, "parent": place.parent}
        if answers_us:
            more["reply_to"] = {"id": "b1", "ours": True, "text": "what we said"}
        if answers is not None:
            more["reply_to"] = {"id": answers.message_id, "text": "what somebody said"}
        said = f"@{self.platform.me} {text}" if mentions_us else text
        update = self.platform.says(place.address.chat_id, said, sender=self.platform.me if sender == "us" else sender, **more)
        return Post(place=place, message_id=update["message"], event_id=str(update["n"]), sender_id=update["sender"])

    async def edits(self, post: Post, text: str) -> None:
        self.platform.edits(self._raw(post), text)

    async def deletes(self, post: Post) -> None:
        self.platform.deletes(self._raw(post))

    async def migrates(self, place: Place, new_chat_id: str) -> None:
        self.platform.says(place.address.chat_id, "", kind="migrated", group=True, target=new_chat_id)

    async def repeats(self, post: Post, *, as_number: bool = False) -> None:
        self.platform.repeats(self._raw(post), event=int(post.event_id) if as_number else post.event_id)

    async def sends_strange(self, hint: str) -> None:
        self.platform.says("d1", "?", kind=hint)

    async def sends_broken(self) -> None:
        update = self.platform.says("d1", "?")
        del update["sender"]

    def seen(self, place: Place) -> list[Seen]:
        return [
            Seen(id=shown.id, text=shown.text, chat_id=shown.address.chat_id, thread_id=shown.address.thread_id, reply_to=shown.reply_to,
                 files=shown.files)
            for shown in self.platform.shown
            if shown.address == place.address
        ]  # fmt: skip

    def buttons(self, place: Place) -> list[list[str]]:
        here = [shown for shown in self.platform.shown if shown.address == place.address]
        return [[action.label for action in row] for shown in here for row in shown.actions]

    async def presses(self, place: Place, label: str, *, sender: str = "ann") -> None:
        wanted = (shown for shown in self.platform.shown if any(action.label == label for row in shown.actions for action in row))
        parent = {"parent": place.parent} if place.address.thread_id else {}
        self.platform.presses(next(wanted), label, sender=sender, group=place.kind is not ChatType.DM, **parent)

    def asides(self) -> list[str]:
        return [words for _, words in self.platform.asides]

    def typing(self, place: Place) -> list[bool]:
        return self.platform.typed.get(str(place.address), [])

    async def removes(self, message_id: str, place: Place) -> None:
        self.platform.shown = [shown for shown in self.platform.shown if shown.id != message_id]

    def plan(self, *faults: Fault) -> None:
        self.platform.fail_next(*(PLANS[fault] for fault in faults))

    def limits(self, wait_s: float) -> None:
        self.platform.fail_next({"later": wait_s})

    def fail_typing(self) -> None:
        self.platform.typing_fails = True

    def network(self, up: bool) -> None:
        self.platform.down = not up
        self.platform.redeliver()

    def _raw(self, post: Post) -> dict[str, Any]:
        return next(update for update in self.platform.updates if str(update["n"]) == post.event_id)

    def _kept(self, file: File) -> dict[str, Any]:
        reference = f"f{len(self.platform.files) + 1}"
        self.platform.files[reference] = file.data
        if file.broken:
            del self.platform.files[reference]
        return {"kind": file.kind, "name": file.name, "size": len(file.data), "ref": reference}


async def loopback() -> AsyncGenerator[Peer, None]:
    yield LoopbackPeer()
