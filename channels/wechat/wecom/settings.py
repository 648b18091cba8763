"""What an operator sets for one WeCom AI bot, what it can do (CH-8), and the figures nobody has proven yet, each with its rule."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal
from urllib.parse import urlsplit

from channels.port import Capabilities, Markup, TextUnit

TEXT_MAX = 20480  # bytes, WX-105 [unverified]
SENT_MAX = 4000  # characters of a message that answers nothing, WX-112 [unverified]
SNAPSHOT_S = 1.0  # WX-105
ACK_S = 5.0  # WX-108
LATE_ACK_S = 30.0  # WX-108: an end of a stream that was not acknowledged is waited for so long
SUBSCRIBE_S = 10.0  # WX-101
PING_S, PONG_S, MISSED_MAX = 30.0, 5.0, 2  # WX-102
RECONNECT_S = (2.0, 5.0, 10.0, 30.0, 60.0)  # WX-102
TAKEN_OVER_S = 300.0  # WX-103
STREAM_S = 330.0  # WX-106: of the 6 minutes that a stream lives [unverified]
CONFLICT_WAITS_S = (0.2, 0.6, 2.0)  # WX-107
POLLED_S = 6.0  # WX-121: without a poll for so long, nobody asks any more
RESPONSE_URL_S = 3600.0  # WX-122 [unverified]
ITEM_MAX = 512_000  # bytes of a picture in the finishing answer, WX-123 [unverified]
IMAGE_MAX, VOICE_MAX, VIDEO_MAX, FILE_MAX = 2_000_000, 2_000_000, 10_000_000, 20_000_000  # bytes, WX-110 [unverified]
MEDIA_IN_MAX = 100_000_000  # WX-110: unless the operator says otherwise
CHUNK = 512 * 1024  # bytes before base64
CHUNKS_MAX = 100
VENDOR_DOMAINS = ("weixin.qq.com", "qq.com", "myqcloud.com", "qpic.cn")  # where the bot's files lie [unverified]

CAPABILITIES = Capabilities(
    text_unit=TextUnit.BYTES,
    text_max=TEXT_MAX,
    markup=Markup.MARKDOWN,
    edit_interval_s=SNAPSHOT_S,
    media_max_bytes=FILE_MAX,
    documents=True,
    fetch_max_bytes=MEDIA_IN_MAX,
    preview_key_s=STREAM_S,  # a question has one stream, under an id made of its own
    liveness_s=75.0,  # CH-210
    reconnect_s=RECONNECT_S,
)
WEBHOOK_CAPABILITIES = replace(
    CAPABILITIES, media_max_bytes=ITEM_MAX, documents=False, preview_key_s=None, liveness_s=10 * 365 * 86400.0, called=True, reconnect_s=(),
    proactive=False,
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class WeComSettings:
    """`mode`: the long connection needs `bot_id` and `secret`, the webhook `token`, `aes_key` and `path`. `welcome`: for who opens the chat; empty is
    ours. `trusted_hosts`: hosts beside the vendor's that files are fetched from, `attachment_bytes`: none larger than this."""

    bot_id: str = ""
    secret: str = field(default="", repr=False)
    url: str = "wss://openws.work.weixin.qq.com"
    mode: Literal["socket", "webhook"] = "socket"
    token: str = field(default="", repr=False)
    aes_key: str = field(default="", repr=False)
    path: str = "/wecom"
    welcome: str = ""
    trusted_hosts: tuple[str, ...] = ()
    attachment_bytes: int = MEDIA_IN_MAX

    @property
    def capabilities(self) -> Capabilities:
        return replace(CAPABILITIES if self.mode == "socket" else WEBHOOK_CAPABILITIES, fetch_max_bytes=self.attachment_bytes)

    def trusts(self, url: str) -> bool:
        """May something be fetched from, or posted to, this address? HTTPS under the vendor's domains; for trusted hosts HTTP too."""
        try:
            asked = urlsplit(url)
            host, _ = asked.hostname or "", asked.port
        except ValueError:
            return False
        if asked.username is not None or asked.scheme not in ("http", "https"):
            return False
        if host in self.trusted_hosts:
            return True
        return asked.scheme == "https" and any(host == name or host.endswith(f".{name}") for name in VENDOR_DOMAINS)
