"""Login by a code that a phone scans (WX-20 to WX-26). A person starts it; the terminal and the operator page show its `LoginView`."""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum

from channels.errors import ConnectionLost
from channels.message import Account
from channels.port import LoginState, LoginView, Vault
from channels.wechat.ilink import credentials
from channels.wechat.ilink.api import INVALID, Api, Declined, connected
from channels.wechat.ilink.credentials import Credentials
from channels.wechat.ilink.frames import Code, CodeStatus
from channels.wechat.ilink.settings import IlinkSettings, at

log = logging.getLogger(__name__)

POLL_LIMIT_S, PAUSE_S, LOGIN_S = 35.0, 1.0, 480.0  # WX-23
CODES_MAX = 3


class Failure(StrEnum):
    """Why a login failed: the `reason` of its last view, a word that the gateway has sentences for."""

    EXPIRED = "expired"  # three codes were not scanned in time, or the number was wrong too often
    TOO_LONG = "too_long"
    NO_BOT = "no_bot"  # confirmed, and the vendor named no bot
    NOT_BOUND_HERE = "not_bound_here"  # bound already, but nothing of that login is kept here
    ODD_HOST = "odd_host"  # the vendor named a server that is not its own (WX-20)
    REFUSED = "refused"  # no code is given out
    UNREACHABLE = "unreachable"


class LoginFailed(Exception):
    def __init__(self, reason: Failure) -> None:
        super().__init__(reason.value)
        self.reason = reason


class IlinkLogin:
    """A `QrLogin`. `pause_s` and `login_s` are for tests."""

    def __init__(
        self,
        settings: IlinkSettings,
        *,
        account: Account,
        vault: Vault,
        pause_s: float = PAUSE_S,
        login_s: float = LOGIN_S,
        poll_limit_s: float = POLL_LIMIT_S,
    ) -> None:
        self.account = account
        self._settings = settings
        self._vault = vault
        self._pause_s = pause_s
        self._login_s = login_s
        self._poll_limit_s = poll_limit_s
        self._view = LoginView(state=LoginState.STARTING)
        self._news = asyncio.Condition()
        self._number: asyncio.Future[str] | None = None
        self._told: set[str] = set()

    @property
    def view(self) -> LoginView:
        return self._view

    async def changed(self, seen: LoginView) -> LoginView:
        async with self._news:
            await self._news.wait_for(lambda: self._view != seen)
            return self._view

    def give_number(self, number: str) -> None:
        """What the phone shows; ignored when nothing asks for it."""
        digits = "".join(character for character in number if character.isascii() and character.isdigit())[:16]
        if digits and self._number is not None and not self._number.done():
            self._number.set_result(digits)

    async def run(self) -> LoginView:
        await self._show(LoginView(state=LoginState.STARTING))
        try:
            async with asyncio.timeout(self._login_s), connected(self._settings, self._settings.base_url, "") as api:
                found = await self._logged_in(api)
            if found is None:
                return await self._show(LoginView(state=LoginState.DONE, codes=self._view.codes, already_bound=True))
            await credentials.replace_all(self._vault, found)
            return await self._show(LoginView(state=LoginState.DONE, codes=self._view.codes, person_id=found.person_id))
        except TimeoutError:
            return await self._failed(Failure.TOO_LONG)
        except LoginFailed as failed:
            return await self._failed(failed.reason)
        except Declined as error:
            return await self._failed(Failure.REFUSED, str(error))
        except ConnectionLost as error:
            return await self._failed(Failure.UNREACHABLE, str(error))
        finally:
            self._number = None

    async def _logged_in(self, api: Api) -> Credentials | None:
        """What the vendor gave, or None when the bot is bound here already (WX-23)."""
        for number in range(1, CODES_MAX + 1):
            code = await self._code(api)
            await self._show(LoginView(state=LoginState.SCAN, code=code.qrcode_img_content, codes=number))
            status = await self._followed(api, code)
            match status.status:
                case "confirmed":
                    return self._credentials(status)
                case "binded_redirect":
                    if await credentials.load(self._vault) is None:
                        raise LoginFailed(Failure.NOT_BOUND_HERE)
                    return None
                case other:
                    log.info("%s: login code %d of %d ended: %s", self.account, number, CODES_MAX, other)
        raise LoginFailed(Failure.EXPIRED)

    async def _code(self, api: Api) -> Code:
        tokens = await credentials.known_tokens(self._vault)
        code = await api.code(tokens)
        if code.code == INVALID and tokens:
            code = await api.code([])  # WX-22 [unverified]
        if code.code or not code.qrcode or not code.qrcode_img_content:
            raise Declined(code.code, f"the vendor gives out no login code {code.errmsg[:200]}".rstrip())
        return code

    async def _followed(self, api: Api, code: Code) -> CodeStatus:
        """Poll one code until it ends: `confirmed`, `binded_redirect`, `expired` or `verify_code_blocked`."""
        base_url, number = self._settings.base_url, ""
        while True:
            try:
                status = await api.code_status(base_url, code.qrcode, number, limit_s=self._poll_limit_s)
            except (ConnectionLost, Declined) as error:  # counts as `wait` (WX-23)
                log.info("%s: the login's state could not be read: %s", self.account, error)
                status = CodeStatus()
            match status.status:
                case "confirmed" | "binded_redirect" | "expired" | "verify_code_blocked":
                    return status
                case "need_verifycode":
                    number = await self._asked_number(wrong=bool(number))
                    continue  # sent with the next poll at once
                case "scaned":
                    number = ""
                    await self._show(self._same(LoginState.CONFIRM))
                case "scaned_but_redirect":
                    base_url = self._redirected(status.redirect_host) or base_url
                    await self._show(self._same(LoginState.CONFIRM))
                case "wait":
                    pass
                case other:
                    self._tell_once(other)
            await asyncio.sleep(self._pause_s)

    async def _asked_number(self, *, wrong: bool) -> str:
        self._number = asyncio.get_running_loop().create_future()
        await self._show(self._same(LoginState.NUMBER, wrong_number=wrong))
        number = await self._number
        await self._show(self._same(LoginState.CONFIRM))
        return number

    def _redirected(self, host: str) -> str:
        """Where to poll on; empty to stay. The login's secret goes only to the vendor (WX-20)."""
        if host and not self._settings.trusts(at(host)):
            raise LoginFailed(Failure.ODD_HOST)
        return at(host) if host else ""

    def _credentials(self, status: CodeStatus) -> Credentials:
        if not status.ilink_bot_id or not status.bot_token:
            raise LoginFailed(Failure.NO_BOT)
        base_url = at(status.baseurl) if status.baseurl else self._settings.base_url
        if not self._settings.trusts(base_url):
            raise LoginFailed(Failure.ODD_HOST)
        return Credentials(token=status.bot_token, bot_id=status.ilink_bot_id, base_url=base_url, person_id=status.ilink_user_id)

    def _tell_once(self, status: str) -> None:
        if status not in self._told:
            self._told.add(status)
            log.warning("%s: the login has a state that is not known: %s", self.account, status[:40])

    def _same(self, state: LoginState, *, wrong_number: bool = False) -> LoginView:
        return LoginView(state=state, code=self._view.code, codes=self._view.codes, wrong_number=wrong_number)

    async def _failed(self, reason: Failure, detail: str = "") -> LoginView:
        log.warning("%s: the login failed: %s %s", self.account, reason.value, detail)
        return await self._show(LoginView(state=LoginState.FAILED, codes=self._view.codes, reason=reason.value))

    async def _show(self, view: LoginView) -> LoginView:
        async with self._news:
            self._view = view
            self._news.notify_all()
        return view
