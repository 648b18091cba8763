"""`login` on the command line: the same login as on the page, followed step by step. Only a running gateway has one (WX-21)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from channels.message import Account
from channels.port import LoginState, LoginView
from gateway.admin import AdminCommand, AdminFault, Arguments
from gateway.audit import CONSOLE
from gateway.language import say
from gateway.logins import ENDED, Logins, sentence

WAIT_S = 20.0
NAMES: Mapping[str, str] = {"wechat": "wechat_ilink"}


class LoginAdmin:
    def __init__(self, logins: Logins) -> None:
        self._logins = logins
        self._seen: dict[str, LoginView] = {}

    @property
    def commands(self) -> dict[str, AdminCommand]:
        return {"login start": self._start, "login follow": self._follow, "login number": self._number}

    async def _start(self, arguments: Arguments) -> dict[str, Any]:
        account = _account(arguments)
        view = self._logins.start(CONSOLE, account)
        if view is None:
            raise AdminFault(f"{account} is not switched on in config.json, or is not logged in by a code")
        return self._told(account, view)

    async def _follow(self, arguments: Arguments) -> dict[str, Any]:
        """The next step, or the same after a while."""
        account = _account(arguments)
        seen = self._seen.get(str(account))
        view = await self._logins.changed(account, seen, WAIT_S) if seen else self._logins.view(account)
        if view is None:
            raise AdminFault("no login runs for this account")
        return self._told(account, view)

    async def _number(self, arguments: Arguments) -> dict[str, Any]:
        return {"taken": self._logins.give_number(_account(arguments), str(arguments.get("number", "")))}

    def _told(self, account: Account, view: LoginView) -> dict[str, Any]:
        self._seen[str(account)] = view
        key = sentence(view)
        return {
            "state": view.state.value,
            "text": say("en", key) if key else "",
            "code": view.code if view.state is LoginState.SCAN else "",
            "number": view.codes,
            "ended": view.state in ENDED,
            "ok": view.state is LoginState.DONE,
        }


def _account(arguments: Arguments) -> Account:
    channel, _, name = str(arguments.get("account", "")).partition(":")
    return Account(channel=NAMES.get(channel, channel), name=name or "main")
