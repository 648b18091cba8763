"""One view as it is at both widths and in both themes, for tests that go through every view of a page. `SHOTS=1` keeps pictures."""

from __future__ import annotations

import os

from tests.e2e import page_audit
from tests.e2e.browser import NARROW, WIDE, Tab


async def look(tab: Tab, name: str, language: str, faults: list[str]) -> None:
    """Adds to `faults` what an audit finds. `name`: of the view and of its pictures. The tab is wide again afterwards."""
    for size in (WIDE, NARROW):
        await tab.page.set_viewport_size({"width": size[0], "height": size[1]})
        for theme in ("light", "dark"):
            await tab.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
            if os.environ.get("SHOTS") == "1":
                await tab.shoot(f"{name}-{size[0]}-{theme}-{language}")
            found = await page_audit.contrast(tab.page)
            if theme == "light":
                found = [*found, *await page_audit.width(tab.page), *await page_audit.structure(tab.page)]
            faults += [f"{name} {size[0]} {theme} {language}: {fault}" for fault in found]
    await tab.page.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
