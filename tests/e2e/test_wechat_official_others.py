"""Our crypto and our replies against implementations that this project did not write: each reads what the other sealed, and refuses what it must.

wechatpy, WeRoBot (both Python) and @wecom/crypto (JavaScript) play the vendor's side. They are development tools, not parts of the product.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import secrets
import shutil
import subprocess
import tarfile
import warnings
from collections.abc import AsyncGenerator, Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from channels.message import Account
from channels.wechat import crypto
from channels.wechat.official import xml
from channels.wechat.official.adapter import OfficialChannel
from channels.wechat.official.settings import OfficialSettings
from memory.database import Database
from tests.peers.wechat.ilink_vault import Kept
from tests.peers.wechat.official_house import House, speak

TOKEN, APP_ID = "tok-of-the-console", "wx49f0ab532d5d035a"
KEY = "kWxPEV2UEDyxWpmPdKC3F4dgPDmOvfKX1HGnEUDS1aR"  # with spare bits in its last character
WECOM_CRYPTO = "@wecom/crypto@1.0.1"
TEXTS = ["hi", "", "你好😀 مرحبا", "x" * 26, "a]]>b & <c>", "字" * 3000]


@dataclass(frozen=True, slots=True)
class Other:
    """`seal(text)` → ciphertext, `open(ciphertext)` → text, `sign(stamp, nonce, ciphertext)` → signature."""

    seal: Callable[[str], str]
    open: Callable[[str], str]
    sign: Callable[[str, str, str], str]


def package(module: str, name: str) -> Any:
    """A test-only package; its own deprecation warnings are not ours."""
    if importlib.util.find_spec(module.partition(".")[0]) is None:
        pytest.skip(f"{name} is not installed: make test installs it")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(module)


def wechatpy(_folder: Path) -> Other:
    module = package("wechatpy.crypto", "wechatpy optionaldict python-dateutil six xmltodict")
    cipher = module.PrpCrypto(crypto.key_of(KEY))
    signature: Any = package("wechatpy.crypto", "wechatpy")._get_signature
    return Other(
        seal=lambda text: cipher.encrypt(text, APP_ID).decode(),
        open=lambda sealed: cipher.decrypt(sealed, APP_ID),
        sign=lambda stamp, nonce, sealed: signature(TOKEN, stamp, nonce, sealed),
    )


def werobot(_folder: Path) -> Other:
    module = package("werobot.crypto", "werobot bottle xmltodict")
    cipher = module.PrpCrypto(crypto.key_of(KEY))
    utils = package("werobot.utils", "werobot")
    return Other(
        seal=lambda text: cipher.encrypt(text, APP_ID).decode(),
        open=lambda sealed: cipher.decrypt(sealed, APP_ID).decode(),
        sign=lambda stamp, nonce, sealed: utils.get_signature(TOKEN, stamp, nonce, sealed),
    )


_SCRIPT = """
const { getSignature, decrypt, encrypt } = require(process.argv[2]);
const asked = JSON.parse(require('fs').readFileSync(0, 'utf8'));
const key = Buffer.from(asked.key + '=', 'base64').toString('base64').replace('=', '');
const does = {
  seal: () => encrypt(key, asked.text, asked.id),
  open: () => { const found = decrypt(key, asked.text); return found.id === asked.id ? found.message : null; },
  sign: () => getSignature(asked.token, asked.stamp, asked.nonce, asked.text),
};
process.stdout.write(JSON.stringify(does[asked.do]()));
"""


def wecom_crypto(folder: Path) -> Other:
    node, npm = shutil.which("node"), shutil.which("npm")
    if node is None or npm is None:
        pytest.skip("there is no Node with npm")
    packed = subprocess.run([npm, "pack", "--offline", WECOM_CRYPTO], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    archives = list(folder.glob("*.tgz"))
    if packed.returncode or not archives:
        pytest.skip(f"npm has not cached {WECOM_CRYPTO}: make peers")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    script = folder / "ask.cjs"
    script.write_text(_SCRIPT)

    def ask(**asked: str) -> Any:
        given = json.dumps(asked | {"key": KEY, "id": APP_ID, "token": TOKEN})
        done = subprocess.run(
            [node, str(script), str(folder / "package" / "lib" / "index.js")], input=given, capture_output=True, text=True, check=True, timeout=60
        )
        return json.loads(done.stdout)

    return Other(
        seal=lambda text: ask(do="seal", text=text),
        open=lambda sealed: ask(do="open", text=sealed),
        sign=lambda stamp, nonce, sealed: ask(do="sign", text=sealed, stamp=stamp, nonce=nonce),
    )


@pytest.fixture(params=[wechatpy, werobot, wecom_crypto], ids=lambda make: make.__name__)
def other(request: pytest.FixtureRequest, tmp_path: Path) -> Other:
    return request.param(tmp_path)


@pytest.mark.rule("WX-2", "WX-3", "WX-6", "WX-150")
def test_each_reads_what_the_other_sealed(other: Other) -> None:
    key = crypto.key_of(KEY)
    for text in TEXTS:
        assert crypto.decrypt(other.seal(text), key, APP_ID) == text
        assert other.open(crypto.encrypt(text, key, APP_ID, secrets.token_bytes(16))) == text
    sealed = other.seal("hello")
    assert other.sign("1700000000", "n0nce", sealed) == crypto.sign([TOKEN, "1700000000", "n0nce", sealed])


# A whole conversation with one of them as the vendor


@pytest.fixture
async def house(sqlite: Database) -> AsyncGenerator[tuple[House, str]]:
    settings = OfficialSettings(app_id=APP_ID, token=TOKEN, aes_key=KEY)

    def make() -> OfficialChannel:
        return OfficialChannel(settings, vault=Kept(), account=Account(channel="wechat_official"), say=speak)

    house = House(
        db=sqlite, account=Account(channel="wechat_official"), make=make, script=lambda text: (0, [f"Re: {text}]]>"]),
        clock=lambda: datetime.now(UTC), second=1.0,
    )  # fmt: skip
    urls: list[str] = []
    async with house.running(urls.append):
        await asyncio.sleep(0.05)
        yield house, urls[0]


def _message(text: str) -> str:
    return (
        f"<xml><ToUserName><![CDATA[gh_yume]]></ToUserName><FromUserName><![CDATA[o_user_A]]></FromUserName>"
        f"<CreateTime>{int(datetime.now(UTC).timestamp())}</CreateTime><MsgType><![CDATA[text]]></MsgType>"
        f"<Content><![CDATA[{text}]]></Content><MsgId>23456789012345678</MsgId></xml>"
    )


@pytest.mark.rule("WX-73", "WX-151", "WX-181")
async def test_wechatpy_as_the_vendor_reads_our_answer(house: tuple[House, str]) -> None:
    module = package("wechatpy.crypto", "wechatpy")
    parse: Any = package("wechatpy", "wechatpy").parse_message
    vendor = module.WeChatCrypto(TOKEN, KEY, APP_ID)
    stamp, nonce = str(int(datetime.now(UTC).timestamp())), "n0nce"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        envelope = xml.read(vendor.encrypt_message(_message("你好"), nonce, stamp).encode())
    body = xml.write({"ToUserName": "gh_yume", "Encrypt": envelope["Encrypt"]}).encode()
    query = {"timestamp": stamp, "nonce": nonce, "signature": crypto.sign([TOKEN, stamp, nonce]), "encrypt_type": "aes",
             "msg_signature": envelope["MsgSignature"], "openid": "o_user_A"}  # fmt: skip
    async with aiohttp.ClientSession() as session, session.post(house[1], params=query, data=body) as answer:
        assert answer.status == 200
        told = await answer.text()
    fields = xml.read(told.encode())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        opened = vendor.decrypt_message(told, fields["MsgSignature"], fields["TimeStamp"], fields["Nonce"])
        reply = parse(opened)
    assert (reply.content, reply.target, reply.source) == ("Re: 你好]]>", "o_user_A", "gh_yume")


@pytest.mark.rule("WX-73", "WX-151")
async def test_werobot_as_the_vendor_reads_our_answer(house: tuple[House, str]) -> None:
    module = package("werobot.crypto", "werobot")
    vendor = module.MessageCrypt(token=TOKEN, encoding_aes_key=KEY, app_id=APP_ID)
    stamp, nonce = str(int(datetime.now(UTC).timestamp())), "n0nce"
    envelope = xml.read(vendor.encrypt_message(_message("hello"), stamp, nonce).encode())
    body = xml.write({"ToUserName": "gh_yume", "Encrypt": envelope["Encrypt"]}).encode()
    query = {"timestamp": stamp, "nonce": nonce, "signature": crypto.sign([TOKEN, stamp, nonce]), "encrypt_type": "aes",
             "msg_signature": envelope["MsgSignature"]}  # fmt: skip
    async with aiohttp.ClientSession() as session, session.post(house[1], params=query, data=body) as answer:
        fields = xml.read(await answer.read())
    opened = vendor.decrypt_message(fields["TimeStamp"], fields["Nonce"], fields["MsgSignature"], fields["Encrypt"])
    assert xml.read(opened)["Content"] == "Re: hello]]>"
