"""What a checker of accessibility looks at (`page_audit.js`). Each function gives faults as sentences, none when all is well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from playwright.async_api import Page

_CHECKS = Path(__file__).with_suffix(".js").read_text(encoding="utf-8")


async def _run(page: Page, name: str) -> Any:
    return await page.evaluate(f"() => {{\n{_CHECKS}\nreturn {name}();\n}}")


async def structure(page: Page) -> Sequence[str]:
    """Names, landmarks, headings, references, lists, sizes of targets."""
    return await _run(page, "structure")


async def contrast(page: Page) -> Sequence[str]:
    """Text that stands out too little from what is behind it: 4.5 to 1, large text 3 to 1."""
    return await _run(page, "contrast")


async def width(page: Page) -> Sequence[str]:
    """What sticks out of the page at its side, and what scrolls sideways without being code."""
    return await _run(page, "width")


async def tab_order(page: Page) -> Sequence[str]:
    """Goes through the page with Tab: each control is reached once, in the order of the page, can be seen there, and none holds the focus."""
    await page.evaluate("document.querySelectorAll('.toast .icon-button').forEach((button) => button.click())")  # they go by themselves meanwhile
    await _run(page, "leave")
    names: list[str] = await _run(page, "tabStops")
    faults: list[str] = []
    reached: list[int] = []
    for _ in range(len(names) + 2):
        await page.keyboard.press("Tab")
        focused: dict[str, object] | None = await _run(page, "focused")
        if focused is None or focused["at"] in reached:
            break
        assert isinstance(focused["at"], int)
        reached.append(focused["at"])
        if not focused["ring"]:
            faults.append(f"{focused['name']} does not show that it has the focus")
        if not focused["seen"]:
            faults.append(f"{focused['name']} has the focus and cannot be seen")
    faults += [f"{name} is not reached" for at, name in enumerate(names) if at not in reached]
    if reached != sorted(reached):
        faults.append(f"the order of the focus is not that of the page: {reached}")
    return faults
