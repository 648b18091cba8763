"""The port: everything a chat platform must do for the gateway, and what it may do.

`Channel` is the whole of what is required. The other Protocols are optional; an adapter has one exactly when its `Capabilities` say so (CH-8), and
the contract suite tries every one that is declared (CH-20 to CH-43).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Protocol, TypeAlias, runtime_checkable

from channels.message import Account, Action, Address, Attachment, Entity, InboundEvent


class TextUnit(StrEnum):
    """In what a platform counts its limit of a text."""

    UTF16 = "utf16"
    BYTES = "bytes"
    CODEPOINTS = "codepoints"


class Markup(StrEnum):
    """How a platform takes formatting; `channels.dialects` says what each writes. `ENTITIES`: plain text, and the formatting beside it."""

    PLAIN = "plain"
    MARKDOWN = "markdown"
    LIGHT = "light"
    ENTITIES = "entities"
    HTML = "html"


@dataclass(frozen=True, slots=True, kw_only=True)
class Capabilities:
    """What a platform can do, as data (the table of CH-8). The gateway decides from this alone, never from a channel's name.

    `text_max`: the longest text of one message, in `text_unit`; `caption_max`: of one beside a medium, None where there are no captions.
    `edit_interval_s` and `group_edit_interval_s`: least seconds between two edits of a preview, or None without edits.
    `typing_refresh_s`: how often the typing sign must be renewed, or None. `proactive`: something may be sent that answers nothing, as a reminder.
    `send_budget`: sends per token or window, or None. `reconcile`: it can be asked whether an earlier try arrived.
    `resend_key_s`: for how many seconds the same part may be sent again and be shown once, or None when it cannot.
    `preview_key_s`: the same for a preview, where that is another time; None: it is not.
    `media_max_bytes`: the largest file that may be sent, 0 = none; `fetch_max_bytes`: the largest that is fetched of what people sent (CH-7).
    `hold_s`: quiet time after which texts of one sender join into one turn (CH-65); 0 = never.
    `log_is_delivery`: readers see the stored log itself (the web page), so a part is delivered by being stored.
    `senders_are_people`: sender ids are our own person ids, proven by signing in.
    `auth_probe_s`: a refused credential is tried once more every so many seconds, or None: then only after the operator acted (CH-212).
    """

    text_unit: TextUnit
    text_max: int
    markup: Markup = Markup.PLAIN
    caption_max: int | None = None
    edit_interval_s: float | None = None
    group_edit_interval_s: float | None = None
    typing_refresh_s: float | None = None
    threads: bool = False
    reactions: bool = False
    buttons: bool = False  # shows `OutboundPart.actions`, and delivers a press as an action with the hint `button`
    streams: bool = False  # shows every delta by itself (the web page): no previews are made for it
    media_max_bytes: int = 0
    documents: bool = False  # files of any kind may be sent, not pictures and sounds alone
    fetch_max_bytes: int = 20_000_000
    proactive: bool = True
    send_budget: int | None = None
    resend_key_s: float | None = None
    preview_key_s: float | None = None
    reconcile: bool = False
    hold_s: float = 0.6
    log_is_delivery: bool = False
    senders_are_people: bool = False
    liveness_s: float = 120.0  # CH-210: without proof for this long the channel is deaf
    auth_probe_s: float | None = None
    called: bool = False  # the platform calls us: until its first call the channel is ready, though nothing proves that (CH-210)
    reconnect_s: tuple[float, ...] = ()  # the platform's own waits before each further try; empty: the usual ones


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboundPart:
    """One message to be sent. `part_id` never changes between tries of the same part; `resend_key` is derived from it.

    Where sends are budgeted: `aside` marks what is no answer of a turn (a notice, a reminder) and so never takes the last message of a budget;
    `more_note`, set while further parts of the same answer follow, is what to add to the text when the budget ends with this one;
    `earlier_note` stands before the words of an earlier answer. Both are short (100 units at most) and outside `text_max`.
    `file_note` is what to say in place of a file that the platform does not take. `actions`: rows of buttons below it, where there are such; what
    they do can also be typed, and the text says so.
    """

    part_id: str
    address: Address
    text: str
    markup: Markup = Markup.MARKDOWN
    entities: tuple[Entity, ...] = ()  # where the platform takes formatting beside the text
    reply_to: str = ""
    attachments: tuple[Attachment, ...] = ()
    edit_of: str = ""  # platform message id of the preview that this part replaces
    sent_again: bool = False  # the text says that it may be a second copy (CH-80)
    aside: bool = False
    preview: bool = False  # a growing answer as it is now: more of it, or its end, follows by `edit`
    more_note: str = ""
    earlier_note: str = ""
    file_note: str = ""
    actions: tuple[tuple[Action, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Sent:
    """`thread_gone`: the topic exists no longer, so it went to the chat itself; nothing is to be sent to that topic any more."""

    platform_ids: tuple[str, ...] = ()
    thread_gone: bool = False


@dataclass(frozen=True, slots=True)
class TryLater:
    """Provably not sent; `after_s` is the platform's order, 0 when it named none.

    `until_written`: nothing can be sent before the person writes again; the part waits for that, as `waiting(user)` (WX-44). `whole_account`: the
    order is for every chat of the account (CH-90).
    """

    after_s: float = 0.0
    until_written: bool = False
    whole_account: bool = False


@dataclass(frozen=True, slots=True)
class Unknown:
    """The bytes left and no answer came: it may have been shown."""

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Refused:
    """Give up on this part. `gone` tells a vanished edit target or thread apart from a refusal of the person or chat."""

    reason: str
    gone: bool = False


@dataclass(frozen=True, slots=True)
class NeedsOperator:
    """The account is the problem, not the part; `reason` says what to do. `code`: the kind of fault, as of a `ChannelError`."""

    reason: str
    code: str = ""


@dataclass(frozen=True, slots=True)
class ChatMoved:
    """Not sent: the chat has another id from now on, under which the part is to be sent (CH-166)."""

    new_chat_id: str


SendOutcome: TypeAlias = Sent | TryLater | Unknown | Refused | NeedsOperator | ChatMoved


class Arrival(StrEnum):
    NEW = "new"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What became of one delivered event. For a duplicate, all ids and the state are the first delivery's (CH-10, CH-52).

    `message_id` and `turn_id` are empty when the event made none (a command, a refused or unknown event). Of a pressed button: `aside` is a short
    sentence for who pressed it alone, `spent` says that its row is good for nothing any more and should go from below the message.
    """

    arrival: Arrival
    delivery_id: str
    state: str
    message_id: str = ""
    turn_id: str = ""
    rule: str = ""
    aside: str = ""
    spent: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """Where an account will go on receiving; stored in the same transaction as the events before it, with the entries of `vault` (see `Vault`)."""

    name: str
    value: str
    vault: Mapping[str, bytes] = field(default_factory=dict[str, bytes])


class Deliver(Protocol):
    """Store events and cursor in one transaction and say what became of each, in order. If it raises, nothing moved (CH-10, CH-24)."""

    async def __call__(self, events: Sequence[InboundEvent], cursor: Cursor | None = None) -> list[Accepted]: ...


class Channel(Protocol):
    """One account of one platform.

    `run` connects and receives until it is cancelled, or raises; the supervisor owns every retry (CH-9). It acknowledges to the platform only after
    `deliver` has returned. `send` says exactly one outcome, never sleeps to wait out a limit, and never tries again once the request may have left
    (CH-11). `proven_at` is the time of the last event that proves the channel hears (CH-210), None before the first.
    """

    account: Account
    capabilities: Capabilities

    @property
    def proven_at(self) -> datetime | None: ...

    async def run(self, deliver: Deliver) -> None: ...

    async def send(self, part: OutboundPart) -> SendOutcome: ...


@runtime_checkable
class Editing(Protocol):
    """Editing is idempotent, so `Unknown` may be repeated; a vanished target is `Refused(gone=True)`; unchanged text is success (CH-36)."""

    async def edit(self, address: Address, message_id: str, part: OutboundPart) -> SendOutcome: ...


@runtime_checkable
class Typing(Protocol):
    """Show or hide the typing sign. A failure changes nothing else (CH-37)."""

    async def typing(self, address: Address, on: bool) -> None: ...


@runtime_checkable
class Reactions(Protocol):
    """Put a sign to a message of somebody's. `emoji` is a plain emoji, for which the adapter may put one that the platform has. Tried once."""

    async def react(self, address: Address, message_id: str, emoji: str) -> SendOutcome: ...


@runtime_checkable
class Reconcile(Protocol):
    """Look up whether an earlier try of this part arrived: its platform ids, or None when it provably did not."""

    async def find(self, part: OutboundPart, since: datetime) -> tuple[str, ...] | None: ...


@runtime_checkable
class Managers(Protocol):
    """Does the platform name this sender an administrator of the chat? Asked when a command needs it, kept 10 minutes (CH-12)."""

    async def manages(self, address: Address, sender_id: str) -> bool: ...


@runtime_checkable
class Fetching(Protocol):
    """Fetch an attachment by its `fetch_ref`, at most `max_bytes`; raises ChannelError when it cannot (CH-7)."""

    async def fetch(self, attachment: Attachment, max_bytes: int) -> bytes: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookRequest:
    """One call of the platform, as it came: names of headers in any letter case, of a repeated field of the query the first value alone."""

    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class WebhookResponse:
    """What the platform is answered."""

    status: int = 200
    body: bytes = b""
    content_type: str = "text/plain"
    silent: bool = False  # close the connection and answer nothing: the platform is to ask again
    written: Callable[[bool], None] | None = None  # told whether the connection took the answer


@runtime_checkable
class Webhook(Protocol):
    """A platform that calls us; the gateway mounts `path` on the webhook listener (CH-12)."""

    path: str

    async def handle(self, request: WebhookRequest) -> WebhookResponse: ...


@runtime_checkable
class Apologising(Protocol):
    """A `Webhook` that has something to answer when `handle` raised; without this the connection is closed and the platform asks again."""

    def apology(self, request: WebhookRequest) -> WebhookResponse: ...


TakePart: TypeAlias = Callable[[Address, float], Awaitable[OutboundPart | None]]
SettlePart: TypeAlias = Callable[[OutboundPart, SendOutcome], Awaitable[None]]


@runtime_checkable
class Pull(Protocol):
    """A platform whose answer travels in the reply to its own request: it takes parts and settles them within 30 s (CH-12)."""

    def connect_outbox(self, take: TakePart, settle: SettlePart) -> None: ...


class Vault(Protocol):
    """The small durable secrets of one account, by key: credentials, tokens (WX-11). The gateway keeps them in the shared store; they never reach
    a log, an error, a prompt or an export. Each call is one transaction; when it raises, nothing changed.
    """

    async def get(self, key: str) -> bytes | None:
        """None when nothing is kept under that key."""
        ...

    async def put(self, entries: Mapping[str, bytes]) -> None:
        """Keep these; others stay."""
        ...

    async def renew(self, entries: Mapping[str, bytes]) -> None:
        """Everything that was kept for the account goes, its cursors included; then only `entries` stand (WX-25)."""
        ...


class LoginState(StrEnum):
    STARTING = "starting"  # a code is being fetched
    SCAN = "scan"  # show the code
    CONFIRM = "confirm"  # scanned: the person confirms on the phone
    NUMBER = "number"  # ask for the number that the phone shows
    DONE = "done"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class LoginView:
    """A login as people see it now. `code` is the text to draw as a QR code, of the `codes`-th code so far; `wrong_number`: the last number given
    was not the one on the phone. When done, `person_id` is the platform's id of who scanned, or empty when the account was bound here already
    (`already_bound`). `reason` is why it failed, a word of the adapter's that the gateway has sentences for.
    """

    state: LoginState
    code: str = ""
    codes: int = 0
    wrong_number: bool = False
    person_id: str = ""
    already_bound: bool = False
    reason: str = ""


@runtime_checkable
class QrLogin(Protocol):
    """One login by scanning a code, started by a person and never by an unattended process (WX-21).

    `run` is the whole of it and ends within minutes; cancelling gives up, and it may be run again. Beside it, `changed(seen)` returns the view once
    it differs from `seen`, and `give_number` answers `NUMBER`. After `DONE` the credentials are stored: the caller lets the person in (unless the
    account was bound already) and starts the channel anew at once, for one that still runs would write on where the old login stood.
    """

    account: Account

    @property
    def view(self) -> LoginView: ...

    async def run(self) -> LoginView: ...

    async def changed(self, seen: LoginView) -> LoginView: ...

    def give_number(self, number: str) -> None: ...
