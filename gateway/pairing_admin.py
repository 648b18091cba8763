"""`pair` on the command line: who waits, letting them in, the first owner (CH-113, CH-114). Commands for the table of `gateway.admin`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.admin import AdminCommand, AdminFault, Arguments
from gateway.arrivals.hygiene import ID_MAX
from gateway.audit import CONSOLE
from gateway.pairing import Pairing, PairingError
from gateway.person import Identity, Person, Role

_ROLES: Mapping[str, Role] = {"user": "user", "admin": "admin"}


class PairingAdmin:
    def __init__(self, pairing: Pairing) -> None:
        self._pairing = pairing

    @property
    def commands(self) -> dict[str, AdminCommand]:
        return {"pair list": self._list, "pair approve": self._approve, "pair decline": self._decline, "pair owner": self._owner}

    async def _list(self, _arguments: Arguments) -> dict[str, Any]:
        waiting = [
            {
                "number": each.id,
                "name": each.identity.name,
                "account": f"{each.identity.channel}:{each.identity.account}",
                "user": each.identity.platform_user_id,
                "until": each.expires_at.isoformat(),
            }
            for each in await self._pairing.waiting()
        ]
        return {"waiting": waiting}

    async def _approve(self, arguments: Arguments) -> dict[str, Any]:
        role = str(arguments.get("role") or "user")
        if role not in _ROLES:
            raise AdminFault(f"there is no role {role} here; one of {', '.join(_ROLES)}, or `pair --owner CODE`")
        return await self._by_code(str(arguments.get("code", "")), _ROLES[role])

    async def _decline(self, arguments: Arguments) -> dict[str, Any]:
        number = str(arguments.get("number", ""))
        known = number.isascii() and number.isdecimal() and len(number) < 19
        if not known or not await self._pairing.decline(CONSOLE, int(number)):
            raise AdminFault(f"nobody waits under {number!r}; `pair list` shows the numbers")
        return {}

    async def _owner(self, arguments: Arguments) -> dict[str, Any]:
        """By code, or by an account that is known: `telegram:main:700123`."""
        who = str(arguments.get("who", ""))
        if ":" not in who:
            return await self._by_code(who, "owner")
        channel, account, user = [*who.split(":", 2), "", ""][:3]
        if not (channel and account and 0 < len(user) <= ID_MAX):
            raise AdminFault(f"{who!r} is no account; write it as telegram:main:ID, or give the code")
        return _told(await self._pairing.admit(CONSOLE, Identity(channel=channel, account=account, platform_user_id=user), role="owner"))

    async def _by_code(self, code: str, role: Role) -> dict[str, Any]:
        try:
            return _told((await self._pairing.approve(CONSOLE, code, role=role)).person)
        except PairingError as error:
            raise AdminFault(str(error)) from error


def _told(person: Person) -> dict[str, Any]:
    return {"person": person.id, "name": person.name, "role": person.role}
