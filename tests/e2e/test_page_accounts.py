"""The settings page links an account in another app: a code, a yes in both, and what each step shows (WD-13)."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from channels.loopback import LoopbackPlatform
from tests.e2e import browser
from tests.e2e.browser import house_over
from tests.harness import eventually, loopback_plan

chromium = browser.chromium  # a fixture
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]
CODE = re.compile(r"[A-HJ-NP-Z2-9]{4}-[A-HJ-NP-Z2-9]{4}")


@pytest.mark.rule("WD-13", "WO-12")
async def test_an_app_is_linked_by_a_code_from_the_page(chromium: Browser, tmp_path: Path) -> None:
    platform = LoopbackPlatform(hold_s=0.05)
    async with house_over(tmp_path, chromium, channels=(loopback_plan(platform),), name="accounts") as house, house.tab() as tab:
        await tab.go("settings")
        await expect(tab.page.get_by_text("No other account is linked")).to_be_visible()
        await tab.page.get_by_role("button", name="Get a code").click()
        command = await tab.dialog.locator("code").inner_text()
        await tab.dialog.get_by_role("button", name="Done").click()
        await expect(tab.page.get_by_text("A code is out")).to_be_visible()
        platform.says("c1", command, sender="ann")
        await expect(tab.page.get_by_text("Is ann (loopback:main ann) you as well?")).to_be_visible(timeout=15_000)
        await tab.page.get_by_role("button", name="Yes, link them").click()
        await expect(tab.page.get_by_text("You said yes.")).to_be_visible()
        platform.says("c1", "/link yes", sender="ann")
        await expect(tab.page.locator(".row-title").filter(has_text="ann")).to_be_visible(timeout=15_000)
        await expect(tab.page.get_by_role("button", name="Get a code")).to_be_visible()


@pytest.mark.rule("WD-13", "WO-12")
async def test_a_code_from_the_app_is_entered_on_the_page_and_a_wrong_one_is_told(chromium: Browser, tmp_path: Path) -> None:
    platform = LoopbackPlatform(hold_s=0.05)
    async with house_over(tmp_path, chromium, channels=(loopback_plan(platform),), name="accounts-2") as house, house.tab() as tab:
        platform.says("c1", "/link", sender="ann")

        async def told() -> re.Match[str] | None:
            return CODE.search("\n".join(platform.texts("c1")))

        code = (await eventually(told))[0]
        await tab.go("settings")
        await tab.page.get_by_role("button", name="Enter a code").click()
        await tab.dialog.get_by_role("textbox").fill("ABCD-EFGH")
        tab.forgives("400")
        await tab.dialog.get_by_role("button", name="Enter a code").click()
        await expect(tab.dialog).to_contain_text("unknown")
        await tab.dialog.get_by_role("textbox").fill(code)
        await tab.dialog.get_by_role("button", name="Enter a code").click()
        await tab.page.get_by_role("button", name="No", exact=True).click()
        await expect(tab.page.get_by_text("No other account is linked")).to_be_visible()
