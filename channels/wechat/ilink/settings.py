"""What an operator sets for one bot, what the interface can do (CH-8), and the figures nobody has proven yet, each with its rule."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from urllib.parse import urlsplit

from channels.port import Capabilities, Markup, TextUnit

HOLD_S = 35.0  # WX-30: how long the server holds a poll until it says otherwise
BUDGET = 8  # WX-41: messages per context token; the last is kept for the answer itself
WINDOW_S = 24 * 3600.0  # WX-43: after the person's last message
FRESH_S = 60.0  # WX-42: an older context token is asked about before it is used
PACE_S = 1.0  # WX-38: between two messages to one person
TEXT_MAX = 1800  # WX-38: UTF-16 units
RESEND_S = 120.0  # WX-37: so long the same client id shows a message once
MEDIA_OUT_MAX = 20_000_000  # bytes, section 6
MEDIA_IN_MAX = 100_000_000  # bytes, WX-53: unless the operator says otherwise
ONCE_PER_TURN_S = 3600.0  # WX-46: longer than any turn
KEEP_ALIVE_S = 5.0
VENDOR_DOMAIN = "weixin.qq.com"  # WX-20, WX-53

CHANNEL_VERSION = "2.4.3"  # WX-28: the version of the vendor's client whose conduct this is
CLIENT_VERSION = str(2 << 16 | 4 << 8 | 3)  # WX-27: the same as one number
BOT_AGENT_MAX = 256  # bytes

CAPABILITIES = Capabilities(
    text_unit=TextUnit.UTF16,
    text_max=TEXT_MAX,
    markup=Markup.LIGHT,
    typing_refresh_s=ONCE_PER_TURN_S,
    media_max_bytes=MEDIA_OUT_MAX,
    documents=True,
    fetch_max_bytes=MEDIA_IN_MAX,
    proactive=True,  # within the window (WX-43); outside it a part waits for the person
    send_budget=BUDGET,
    resend_key_s=RESEND_S,
    liveness_s=2 * HOLD_S + 15,  # CH-210
    auth_probe_s=3600.0,  # section 2.8: one probe per hour
)


@dataclass(frozen=True, slots=True, kw_only=True)
class IlinkSettings:
    """`trusted_hosts`: hosts beside the vendor's that may be named as the bot's server or a file's (WX-20, WX-53). `route_tag`: the `SKRouteTag`
    that the vendor gave out, if any. `keep_typing`: renew the typing sign every 5 s, which may use up the budget (WX-46).
    `attachment_bytes`: the largest file that is fetched. `version`: ours.
    """

    base_url: str = "https://ilinkai.weixin.qq.com"
    cdn_url: str = "https://novac2c.cdn.weixin.qq.com/c2c"
    trusted_hosts: tuple[str, ...] = ()
    route_tag: str = field(default="", repr=False)
    keep_typing: bool = False
    attachment_bytes: int = MEDIA_IN_MAX
    version: str = "0.1.0"

    @property
    def capabilities(self) -> Capabilities:
        refresh_s = KEEP_ALIVE_S if self.keep_typing else ONCE_PER_TURN_S
        return replace(CAPABILITIES, typing_refresh_s=refresh_s, fetch_max_bytes=self.attachment_bytes)

    @property
    def bot_agent(self) -> str:
        """`name/version`, ASCII, at most 256 bytes (WX-28)."""
        version = re.sub(r"[^A-Za-z0-9_.+-]", "", self.version)[:32] or "0"
        return f"Yumegate/{version}"[:BOT_AGENT_MAX]

    def trusts(self, url: str) -> bool:
        """May the token, or a request for a file, go to `url`? HTTPS under the vendor's domain, the addresses set here, or a trusted host (WX-20,
        WX-53). Plain HTTP is for what is set, and for this machine itself."""
        try:
            asked = urlsplit(url)
            host, origin, _ = asked.hostname or "", (asked.scheme, asked.netloc), asked.port  # reading the port checks it
        except ValueError:
            return False
        if origin in ((each.scheme, each.netloc) for each in map(urlsplit, (self.base_url, self.cdn_url))):
            return asked.scheme in ("http", "https")
        if asked.username is not None or asked.password is not None:
            return False
        known = host == VENDOR_DOMAIN or host.endswith(f".{VENDOR_DOMAIN}") or host in self.trusted_hosts
        return known and (asked.scheme == "https" or (asked.scheme == "http" and host in ("127.0.0.1", "::1", "localhost")))


def at(host_or_url: str) -> str:
    """A host as the server names it, as an address: `redirect_host` comes without a scheme (WX-23)."""
    return host_or_url.rstrip("/") if "://" in host_or_url else f"https://{host_or_url.rstrip('/')}"
