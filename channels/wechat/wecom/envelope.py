"""What the platform signs and seals when it calls a bot, opened; and our answers, sealed likewise (WX-9, WX-120)."""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, cast

from channels.newest import keep_newest
from channels.port import WebhookRequest, WebhookResponse
from channels.wechat import crypto
from channels.wechat.call_time import in_time
from channels.wechat.crypto import Step, Unverified
from channels.wechat.wecom.settings import WeComSettings
from channels.wechat.wecom.streams import KEPT_MAX


class Envelope:
    """Opens and seals for one bot, by the token and the key of its settings. Unverified names what is wrong with a call."""

    def __init__(self, settings: WeComSettings, clock: Callable[[], datetime]) -> None:
        self._settings = settings
        self._clock = clock
        self._heard: dict[str, datetime] = {}  # when each message first came

    def echoed(self, request: WebhookRequest) -> bytes:
        """The answer to the call by which a console proves the address."""
        return self._plain(request.query, request.query.get("echostr", "")).encode()

    def opened(self, request: WebhookRequest) -> dict[str, Any]:
        """What the platform says, when it is the platform's and was said just now."""
        sealed = _json(request.body).get("encrypt")
        body = _json(self._plain(request.query, sealed if isinstance(sealed, str) else "").encode())
        self._check_time(request.query.get("timestamp", ""), str(body.get("msgid", "")))
        return body

    def sealed(self, body: Mapping[str, Any]) -> WebhookResponse:
        """An answer that only the platform can read."""
        text = json.dumps(body, ensure_ascii=False)
        sealed = crypto.encrypt(text, crypto.key_of(self._settings.aes_key), "", secrets.token_bytes(crypto.RANDOM_BYTES))
        stamp, nonce = str(int(self._clock().timestamp())), secrets.token_hex(8)
        signature = crypto.sign([self._settings.token, stamp, nonce, sealed])
        told = {"encrypt": sealed, "msgsignature": signature, "timestamp": int(stamp), "nonce": nonce}
        return WebhookResponse(body=json.dumps(told).encode(), content_type="application/json")

    def _plain(self, query: Mapping[str, str], sealed: str) -> str:
        crypto.check(query.get("msg_signature", ""), [self._settings.token, query.get("timestamp", ""), query.get("nonce", ""), sealed])
        return crypto.decrypt(sealed, crypto.key_of(self._settings.aes_key), "")

    def _check_time(self, stamp: str, msgid: str) -> None:
        now = self._clock()
        if not in_time(stamp, now, self._heard.get(msgid)):
            raise Unverified(Step.TIME)
        if msgid:
            self._heard.setdefault(msgid, now)
            keep_newest(self._heard, KEPT_MAX)


def _json(body: bytes) -> dict[str, Any]:
    try:
        told = json.loads(body)
    except (ValueError, RecursionError):  # the latter: nested without end
        raise Unverified(Step.DOCUMENT) from None
    if not isinstance(told, dict):
        raise Unverified(Step.DOCUMENT)
    return cast("dict[str, Any]", told)
