"""Logging an account in by a code that a phone scans: begun by a person, shown on the operator's page and in the terminal (WX-21, WX-24).

One login for each account at a time. When it is done, whoever scanned is let in and the account starts anew; an operator who began it may say that it
was they who scanned, and the two become one person (WD-13).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import segno

from channels.errors import ChannelError
from channels.message import Account
from channels.port import LoginState, LoginView, QrLogin
from gateway.audit import Actor
from gateway.channel_set import ChannelSet
from gateway.company import Company
from gateway.person import Identity
from memory.errors import StoreUnavailable

log = logging.getLogger(__name__)

UNSTORED = "store"  # the `reason` of a login that could not be kept
ENDED = (LoginState.DONE, LoginState.FAILED)


@dataclass(slots=True, kw_only=True)
class _Running:
    login: QrLogin
    by: Actor
    view: LoginView
    task: asyncio.Task[None] | None = None

    @property
    def ended(self) -> bool:
        return self.task is None or self.task.done()


@dataclass(frozen=True, slots=True, kw_only=True)
class Drawing:
    """A QR code as a picture: a square of `size` units with its margin, and the dark cells as the path of an SVG."""

    size: int
    path: str


MARGIN = 4  # units; less and some cameras find no code


def drawing(text: str) -> Drawing:
    """`text` as a QR code. Pure."""
    code = segno.make(text, micro=False)
    cells = list(code.matrix)
    path = "".join(f"M{x + MARGIN} {y + MARGIN}h1v1h-1z" for y, row in enumerate(cells) for x, dark in enumerate(row) if dark)
    return Drawing(size=len(cells) + 2 * MARGIN, path=path)


def sentence(view: LoginView) -> str:
    """The key of what a person is told now; empty while a code is being fetched."""
    match view.state:
        case LoginState.STARTING:
            return ""
        case LoginState.SCAN:
            return "login_scan"
        case LoginState.CONFIRM:
            return "login_confirm"
        case LoginState.NUMBER:
            return "login_wrong_number" if view.wrong_number else "login_number"
        case LoginState.DONE:
            return "login_already_bound" if view.already_bound else "login_done"
        case LoginState.FAILED:
            return f"login_failed_{view.reason}"


class Logins:
    """`find` makes a login for a configured account; None for one that is not logged in this way."""

    def __init__(
        self, *, group: asyncio.TaskGroup, find: Callable[[Account], QrLogin | None], company: Company, channels: ChannelSet
    ) -> None:
        self._group = group
        self._find = find
        self._company = company
        self._channels = channels
        self._known: dict[str, _Running] = {}

    def start(self, by: Actor, account: Account) -> LoginView | None:
        """Begin, or the view of the one that runs; None for an account without such a login."""
        running = self._known.get(str(account))
        if running is not None and not running.ended:
            return running.login.view
        login = self._find(account)
        if login is None:
            return None
        running = self._known[str(account)] = _Running(login=login, by=by, view=login.view)
        running.task = self._group.create_task(self._run(running), name=f"login {account}")
        return running.login.view

    def view(self, account: Account) -> LoginView | None:
        """As people see it now; None when none was begun. It is done only when everything that follows is done too."""
        running = self._known.get(str(account))
        if running is None:
            return None
        if running.ended:
            return running.view
        now = running.login.view
        return LoginView(state=LoginState.CONFIRM, code=now.code, codes=now.codes) if now.state is LoginState.DONE else now

    async def changed(self, account: Account, seen: LoginView, limit_s: float) -> LoginView | None:
        """The view once it differs from `seen`, or as it is after `limit_s`."""
        running = self._known.get(str(account))
        if running is None or running.task is None:
            return None
        if self.view(account) == seen and not running.ended:
            if running.login.view.state in ENDED:  # what follows it is still being done
                await asyncio.wait([running.task], timeout=limit_s)
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(limit_s):
                        await running.login.changed(running.login.view)
        return self.view(account)

    def begun_by(self, account: Account) -> str:
        """The id of whoever began the login of this account; empty for none."""
        running = self._known.get(str(account))
        return running.by.id if running is not None else ""

    def give_number(self, account: Account, number: str) -> bool:
        running = self._known.get(str(account))
        if running is None or running.ended:
            return False
        running.login.give_number(number)
        return True

    def cancel(self, account: Account) -> bool:
        running = self._known.pop(str(account), None)
        if running is None or running.task is None:
            return False
        running.task.cancel()
        return True

    async def mine(self, by: Actor, account: Account) -> bool:
        """Whoever began a login says that they scanned it: both are one person. False when there is nothing to say so of."""
        running = self._known.get(str(account))
        if running is None or not running.ended or running.view.state is not LoginState.DONE or not running.view.person_id or running.by.id != by.id:
            return False
        scanned = await self._company.people.find_by_identity(account.channel, account.name, running.view.person_id)
        if scanned is None:
            return False
        if scanned.id != by.id:
            await self._company.linking.join(by, by.id, scanned.id)
        self._known.pop(str(account), None)
        return True

    async def _run(self, running: _Running) -> None:
        account = running.login.account
        try:
            view = await running.login.run()
            if view.state is LoginState.DONE:
                if view.person_id and not view.already_bound:
                    who = Identity(channel=account.channel, account=account.name, platform_user_id=view.person_id)
                    await self._company.pairing.admit(running.by, who)
                await self._channels.restart(account)
        except (ChannelError, StoreUnavailable, OSError) as error:
            log.error("%s: the login could not be kept: %s", account, error)
            view = LoginView(state=LoginState.FAILED, reason=UNSTORED)
        running.view = view
