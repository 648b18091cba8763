"""One bot that is called: Telegram posts each update to us, and waits with the next until this one is stored (CH-12, CH-50)."""

from __future__ import annotations

import asyncio
import hmac
import json
from collections.abc import Callable
from datetime import UTC, datetime

from telegram import WebhookInfo

from channels.errors import ChannelError, ConnectionLost, CredentialRefused
from channels.given import ReadFile, no_file
from channels.message import Account
from channels.port import Deliver, WebhookRequest, WebhookResponse
from channels.telegram.adapter import TelegramChannel
from channels.telegram.api import Api
from channels.telegram.settings import TelegramSettings
from channels.telegram.side_calls import answer_presses, register_menus

SECRET_HEADER = "x-telegram-bot-api-secret-token"
LOOK_EVERY_S = 60.0


class TelegramWebhook(TelegramChannel):
    """Has `Webhook` beside the ports of `TelegramChannel`.

    A call with the right secret proves that we hear, and so does Telegram's own word that it would call this address and has no trouble doing so:
    on a quiet day nothing else could.
    """

    def __init__(
        self,
        settings: TelegramSettings,
        *,
        account: Account | None = None,
        read_file: ReadFile = no_file,
        clock: Callable[[], datetime] = lambda: datetime.now(UTC),
        look_every_s: float = LOOK_EVERY_S,
    ) -> None:
        super().__init__(settings, account=account, read_file=read_file, clock=clock)
        self.path = f"/telegram/{self.account.name}"
        self._url = settings.webhook_url.rstrip("/") + self.path
        self._look_every_s = look_every_s
        self._deliver: Deliver | None = None
        self._in_order = asyncio.Lock()

    async def receive(self, api: Api, deliver: Deliver) -> None:
        """Has Telegram call us, and sees to it that it goes on doing so. At the end the address stays: what comes meanwhile waits there."""
        if not self.settings.webhook_url:
            raise CredentialRefused("Telegram must know where to call: set `webhook_url`, or `mode` to polling", code="no_webhook_url")
        await api.bot.set_webhook(
            self._url,
            secret_token=self.settings.webhook_secret,
            allowed_updates=list(self.settings.update_kinds),
            max_connections=1,  # one at a time: order is by arrival
        )
        self._deliver = deliver
        try:
            await register_menus(api, self.account, self.settings.menus)
            while True:
                info = await api.bot.get_webhook_info()
                if info.url != self._url:
                    raise ConnectionLost("somebody else set another webhook for this bot, or removed it")
                if not self._fails(info):
                    self.prove()
                await asyncio.sleep(self._look_every_s)
        finally:
            self._deliver = None

    async def handle(self, request: WebhookRequest) -> WebhookResponse:
        """One update: stored when this returns 200. Anything else makes Telegram send it again (CH-22, CH-24)."""
        if request.method != "POST":
            return WebhookResponse(status=405)
        given = next((value for name, value in request.headers.items() if name.lower() == SECRET_HEADER), "")
        if not hmac.compare_digest(given.encode("utf-8", "surrogateescape"), self.settings.webhook_secret.encode()):
            return WebhookResponse(status=403)
        if self._deliver is None:
            return WebhookResponse(status=503)
        try:
            raw: object = json.loads(request.body)
        except (ValueError, RecursionError):  # a broken encoding too, and what nests without end
            return WebhookResponse(status=400)
        self.prove()
        try:
            async with self._in_order:
                events = self.events([raw])
                accepted = await self._deliver(events)
        except ChannelError:  # draining: it comes again after the start
            return WebhookResponse(status=503)
        if api := self.api:
            await answer_presses(api, self.account, [raw], events, accepted)
        return WebhookResponse()

    def _fails(self, info: WebhookInfo) -> bool:
        """Has Telegram something for us that it cannot bring?"""
        failed = info.last_error_date
        return bool(info.pending_update_count) and failed is not None and (self.proven_at is None or failed > self.proven_at)
