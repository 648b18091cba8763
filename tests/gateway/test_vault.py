"""What an account keeps: written with its cursor, renewed as a whole, apart from every other account's."""

from __future__ import annotations

import pytest

from channels.message import Account
from channels.port import Cursor, Vault
from gateway import vault
from gateway.arrivals import inbox
from gateway.vault import StoreVault
from memory.database import Database
from memory.errors import StoreUnavailable
from tests.conftest import FakeClock

OURS, OTHER = Account(channel="wechat_ilink"), Account(channel="wechat_ilink", name="second")


@pytest.mark.rule("WX-11", "WX-40")
async def test_what_is_put_is_there_again_and_nobody_elses(database: Database, clock: FakeClock) -> None:
    ours: Vault = StoreVault(database, OURS, clock=clock)
    assert await ours.get("context/你好@im.wechat") is None
    await ours.put({"context/你好@im.wechat": b"\x00\xff", "credentials": b"{}"})
    await ours.put({"credentials": b'{"token": "t"}'})
    again = StoreVault(database, OURS, clock=clock)
    assert (await again.get("context/你好@im.wechat"), await again.get("credentials")) == (b"\x00\xff", b'{"token": "t"}')
    assert await StoreVault(database, OTHER, clock=clock).get("credentials") is None


@pytest.mark.rule("WX-25")
async def test_a_renewal_takes_the_cursor_along_and_touches_no_other_account(database: Database, clock: FakeClock) -> None:
    ours, other = StoreVault(database, OURS, clock=clock), StoreVault(database, OTHER, clock=clock)
    for each, account in ((ours, OURS), (other, OTHER)):
        await each.put({"credentials": b"old", "context/a": b"old"})
        cursor = Cursor(name="updates", value="c1")
        await database.write(
            lambda connection, account=account, cursor=cursor: inbox.save_cursor(
                connection, channel=account.channel, account=account.name, cursor=cursor, now=clock()
            )
        )

    await ours.renew({"credentials": b"new"})
    assert [await ours.get(key) for key in ("credentials", "context/a")] == [b"new", None]
    assert [await other.get(key) for key in ("credentials", "context/a")] == [b"old", b"old"]
    kept = await database.read(
        lambda connection: [
            inbox.load_cursor(connection, channel=account.channel, account=account.name, name="updates") for account in (OURS, OTHER)
        ]
    )
    assert kept == ["", "c1"]


@pytest.mark.rule("WX-31")
async def test_entries_are_written_with_the_cursor_or_not_at_all(database: Database, clock: FakeClock) -> None:
    ours = StoreVault(database, OURS, clock=clock)
    cursor = Cursor(name="updates", value="c2", vault={"context/a": b"token"})

    def store(connection: object, *, full: bool) -> None:
        inbox.save_cursor(connection, channel=OURS.channel, account=OURS.name, cursor=cursor, now=clock())  # type: ignore[arg-type]
        vault.keep(connection, OURS, cursor.vault, clock())  # type: ignore[arg-type]
        if full:
            raise StoreUnavailable("the disk is full")

    with pytest.raises(StoreUnavailable):
        await database.write(lambda connection: store(connection, full=True))
    assert await ours.get("context/a") is None
    await database.write(lambda connection: store(connection, full=False))
    assert await ours.get("context/a") == b"token"
