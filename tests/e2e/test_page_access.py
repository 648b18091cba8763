"""The operators' desk lets people in: by the code that they were given, and by scanning one (WO-30, CH-113, WX-24)."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from channels.loopback import LoopbackPlatform
from gateway.access import Rules
from tests.e2e import browser
from tests.e2e.browser import house_over
from tests.harness import eventually, loopback_plan
from tests.peers.wechat.ilink_server import FakeIlink
from tests.peers.wechat.ilink_world import World

chromium = browser.chromium  # a fixture
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


@pytest.mark.rule("CH-113", "WO-30")
async def test_a_stranger_waits_on_the_page_and_is_let_in_by_the_code(chromium: Browser, tmp_path: Path) -> None:
    platform = LoopbackPlatform()
    plan = loopback_plan(platform, rules=Rules())
    async with house_over(tmp_path, chromium, channels=(plan,), name="pairing") as house, house.tab() as tab:
        platform.says("c1", "hello there", sender="zoe")

        async def told() -> str:
            return platform.shown[0].text if platform.shown else ""

        code = (await eventually(told)).split(": ")[1].split("\n")[0]
        await tab.go("operate/people")
        waiting = tab.page.locator(".pairings .row")
        await expect(waiting).to_contain_text("zoe")
        await tab.page.get_by_role("button", name="Enter a code").click()
        await tab.dialog.get_by_label("Code").fill("ABCD-EFGH")
        tab.forgives("400")
        await tab.dialog.get_by_role("button", name="Let in").click()
        await expect(tab.dialog).to_contain_text("unknown")
        await tab.dialog.get_by_label("Code").fill(code.lower())
        await tab.dialog.get_by_role("button", name="Let in").click()
        await expect(waiting).to_have_count(0)
        await expect(tab.page.locator(".row").filter(has_text="zoe")).to_contain_text("User")


@pytest.mark.rule("WO-30", "WX-24")
async def test_an_account_is_logged_in_by_a_code_on_the_page(chromium: Browser, tmp_path: Path) -> None:
    with FakeIlink(World(hold_s=0.1, rate_limited=False)) as server:
        server.world.qr.extend([*[{"status": "wait"}] * 3, {"status": "need_verifycode"}, {"status": "confirmed"}])
        ilink = {"wechat_ilink": {"enabled": True, "base_url": server.url, "cdn_url": server.cdn_url}}
        async with house_over(tmp_path, chromium, config={"channels": {"web": {"port": 0}, **ilink}}, name="login") as house, house.tab() as tab:
            await tab.go("operate/channels")
            await tab.page.get_by_role("button", name="Log in").click()
            await expect(tab.dialog.get_by_role("img", name="Code to scan")).to_be_visible()
            await tab.dialog.get_by_label("Number on the phone").fill("42")
            await tab.dialog.get_by_role("button", name="Send").click()
            await expect(tab.dialog).to_contain_text("Logged in.")
            await expect(tab.dialog.get_by_role("button", name="It was me who scanned")).to_be_visible()
            await tab.dialog.get_by_role("button", name="Close").last.click()
        assert server.world.numbers == ["42"]
