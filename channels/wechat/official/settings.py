"""What an operator sets for one Official Account, what such an account can do (CH-8), and the figures of the vendor, each with its rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from channels.port import Capabilities, Markup, TextUnit

TEXT_MAX = 2048  # bytes, WX-71 [unverified]
NOTE_ROOM = 128  # bytes: for the note that more waits, and for the start of a question
TRY_S = 5.0  # the vendor waits so long for each try (3.2)
READY_S = 4.5  # WX-67: what is ready by then is the answer to that try
TRIES = 3
QUIET_S = 6.0  # WX-70: no further try for so long, and the reply has arrived
EARLY_S = 1.0  # a message that is not answered at all may still get a sentence of ours, soon
WINDOW_S = 48 * 3600.0  # WX-80: after the person's last act
BUDGET = 5  # WX-80: messages of the API per window [unverified]
UNCOUNTED = 1_000  # without the API: each message of a person opens one reply, and what that cannot hold waits again (WX-72)
PACE_S = 0.5  # WX-80: between two messages of the API to one person
BUSY_S, BUSY_MAX = 2.0, 3  # section 3.3, -1
IMAGE_MAX, VOICE_MAX, VIDEO_MAX = 10_000_000, 2_000_000, 10_000_000  # bytes, section 6 [unverified]
MEDIA_IN_MAX = 100_000_000  # bytes, CH-7: unless the operator says otherwise
TYPING_S = 4.0  # WX-82 [unverified]: how long the sign stays
UNPROVEN_S = 10 * 365 * 86400.0  # CH-210: shown with the age of its last call, never called deaf

CAPABILITIES = Capabilities(
    text_unit=TextUnit.BYTES,
    text_max=TEXT_MAX,
    markup=Markup.PLAIN,
    media_max_bytes=IMAGE_MAX,
    fetch_max_bytes=MEDIA_IN_MAX,
    proactive=True,  # within the window (WX-80); outside it, and without the API, a part waits for the person
    send_budget=BUDGET,
    liveness_s=UNPROVEN_S,
    called=True,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class OfficialSettings:
    """`mode`: how messages are encrypted, as set in the vendor's console. `customer_service`: the account may send by the API (WX-80).
    `passive_tries`: after how many tries the placeholder is given, or the API takes over (WX-69). `welcome`: for new followers; empty is ours.
    `menu`: the command that each key of the account's menu stands for. `typing`: show the typing sign, where the API may be used
    (WX-82 [unverified]). `trusted_hosts`: hosts beside the vendor's that files are fetched from, `attachment_bytes`: none larger than this.
    """

    app_id: str
    token: str = field(repr=False)
    aes_key: str = field(default="", repr=False)
    app_secret: str = field(default="", repr=False)
    mode: Literal["plain", "compatible", "aes"] = "aes"
    path: str = "/wechat"
    api_base: str = "https://api.weixin.qq.com"
    customer_service: bool = False
    passive_tries: int = TRIES
    welcome: str = ""
    menu: Mapping[str, str] = field(default_factory=dict[str, str])
    typing: bool = False
    trusted_hosts: tuple[str, ...] = ()
    attachment_bytes: int = MEDIA_IN_MAX

    @property
    def capabilities(self) -> Capabilities:
        """Without the API, room is left in each message for the note that more waits, and nothing is counted."""
        shows_typing = self.customer_service and self.typing
        return replace(
            CAPABILITIES,
            text_max=TEXT_MAX - (0 if self.customer_service else NOTE_ROOM),
            send_budget=BUDGET if self.customer_service else UNCOUNTED,
            typing_refresh_s=TYPING_S if shows_typing else None,
            fetch_max_bytes=self.attachment_bytes,
        )
