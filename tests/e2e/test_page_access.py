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
from tests.peers.wechat.ilink_desk import ANN
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


@pytest.mark.case("CF-12")
@pytest.mark.rule("CH-115", "CH-116", "WO-30")
async def test_the_desk_shows_what_holds_in_a_group_and_what_somebody_set(chromium: Browser, tmp_path: Path) -> None:
    platform = LoopbackPlatform()
    plan = loopback_plan(platform, rules=Rules(groups=frozenset({"g1"})))
    async with house_over(tmp_path, chromium, channels=(plan,), name="groups") as house, house.tab() as tab:
        await tab.go("operate/people")
        await expect(tab.page.locator(".groups")).to_have_count(0)
        house.will("Yes.")
        platform.says("g1", "@yume hello", sender="zoe", group=True)
        await eventually(lambda: _shown(platform))
        await tab.go("operate/config")
        await expect(tab.page.get_by_role("list", name="Set by hand")).not_to_contain_text("busy.mode")
        await tab.begin()
        await tab.say("/config busy.mode queue")
        await expect(tab.notices).to_have_count(1)
        await tab.go("operate/config")
        mode = tab.page.get_by_role("list", name="Set by hand").get_by_role("listitem").filter(has_text="busy.mode")
        for words in ("/config", '"queue"', 'default "steer"'):
            await expect(mode).to_contain_text(words)
        await tab.go("operate/people")
        group = tab.page.locator(".groups .row")
        for words in ("g1", "Answered by config.json", "only when mentioned (default)"):
            await expect(group).to_contain_text(words)


async def _shown(platform: LoopbackPlatform) -> bool:
    return bool(platform.shown)


@pytest.mark.rule("WO-30", "WX-24")
async def test_an_account_is_logged_in_by_a_code_on_the_page(chromium: Browser, tmp_path: Path) -> None:
    with FakeIlink(World(hold_s=600, rate_limited=False)) as server:
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
            card = tab.page.locator(".channel").filter(has_text="WeChat")
            await expect(card.locator(".pill")).to_have_text("Starting")  # nothing has proven yet that it hears
            await expect(card).to_contain_text("ready as soon as WeChat has answered")
            await tab.dialog.get_by_role("button", name="Close").last.click()
            server.says(ANN, "hello")
            await expect(card.locator(".pill")).to_have_text("Ready")
            await expect(card).not_to_contain_text("ready as soon as")
        assert server.world.numbers == ["42"]
