"""What is around a call of the vendor's, and around our answer: signature, time, encryption (WX-5, WX-9, WX-60, WX-61, WX-73)."""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Mapping
from datetime import datetime

from channels.errors import CredentialRefused
from channels.port import WebhookRequest
from channels.wechat import crypto
from channels.wechat.call_time import in_time
from channels.wechat.crypto import Step, Unverified
from channels.wechat.official import xml
from channels.wechat.official.settings import OfficialSettings

SKEWED_TOLD = (3, 30, 300)  # after so many calls in a row whose time is off, the operator is told
log = logging.getLogger(__name__)


class Envelope:
    """Opens calls and seals answers for one account."""

    def __init__(self, settings: OfficialSettings, *, clock: Callable[[], datetime], account: str) -> None:
        self._settings = settings
        self._clock = clock
        self._account = account
        self._skewed = 0

    def check_key(self) -> None:
        """CredentialRefused when the key could open nothing."""
        if self._settings.mode == "plain":
            return
        try:
            crypto.key_of(self._settings.aes_key)
        except ValueError as error:
            raise CredentialRefused(f"aes_key of {self._account}: {error}", code="bad_key") from None

    def echoed(self, query: Mapping[str, str]) -> bytes:
        """The answer to the vendor's question whether this address is ours (WX-60)."""
        crypto.check(query.get("signature", ""), self._signed(query))
        if "echostr" not in query:
            raise Unverified(Step.DOCUMENT)
        return query["echostr"].encode("utf-8", "surrogateescape")

    def opened(self, request: WebhookRequest) -> dict[str, str]:
        """The fields of a delivery that the vendor signed; Unverified for any other (WX-5, WX-61)."""
        query = request.query
        if self._settings.mode == "plain":
            crypto.check(query.get("signature", ""), self._signed(query))
            return xml.read(request.body)
        sealed = xml.read(request.body).get("Encrypt", "")
        crypto.check(query.get("msg_signature", ""), self._signed(query, sealed))
        return xml.read(crypto.decrypt(sealed, crypto.key_of(self._settings.aes_key), self._settings.app_id).encode())

    def check_time(self, stamp: str, stored_at: datetime | None) -> None:
        """A call that is more than 5 minutes off is refused, unless it is a late try of what was stored a moment ago (WX-9)."""
        if in_time(stamp, self._clock(), stored_at):
            self._skewed = 0
            return
        self._skewed += 1
        if self._skewed in SKEWED_TOLD:
            log.error("%s: call after call has a time that is minutes off: check the clock of this machine", self._account)
        raise Unverified(Step.TIME)

    def sealed(self, document: str) -> str:
        """A document as it leaves: sealed when the calls are, each time with fresh random bytes, nonce and time (WX-73)."""
        if self._settings.mode == "plain":
            return document
        random = secrets.token_bytes(crypto.RANDOM_BYTES)
        sealed = crypto.encrypt(document, crypto.key_of(self._settings.aes_key), self._settings.app_id, random)
        stamp, nonce = int(self._clock().timestamp()), secrets.token_hex(8)
        signature = crypto.sign([self._settings.token, str(stamp), nonce, sealed])
        return xml.write({"Encrypt": sealed, "MsgSignature": signature, "TimeStamp": stamp, "Nonce": nonce})

    def _signed(self, query: Mapping[str, str], *more: str) -> list[str]:
        return [self._settings.token, query.get("timestamp", ""), query.get("nonce", ""), *more]
