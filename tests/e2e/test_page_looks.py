"""How the page looks and whom it lets in: every page in three languages, two widths and two themes, by measure and by eye (WO-12).

    SHOTS=1 make web-test              puts pictures of everything into .shots/, to be looked at
    UPDATE_IMAGES=1 make web-test      makes those of the docs anew
"""

from __future__ import annotations

import os
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path

import pytest
from playwright.async_api import Browser, expect

from tests.e2e import browser, page_audit
from tests.e2e.browser import NARROW, ROOT, WIDE, House, Tab
from tests.e2e.page_scenes import LANGUAGES, LIVES, lived_in

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

IMAGES = ROOT / "docs" / "images"
STATIC = ROOT / "gateway" / "static"
IMAGE_MAX = 150_000  # bytes of one picture in the docs


# -- every page --------------------------------------------------------------------------------------------------------


async def _chat(tab: Tab, chat: str) -> None:
    await tab.go(f"chat/{chat}")
    await expect(tab.answers).to_have_count(2)


async def _receipt(tab: Tab, chat: str) -> None:
    await tab.page.locator(".message.is-assistant [data-receipt]").last.click()
    await expect(tab.page.locator(".token-row").first).to_be_visible()


async def _commands(tab: Tab, chat: str) -> None:
    await tab.page.keyboard.press("Escape")
    await tab.field.fill("/")
    await expect(tab.page.locator(".command").first).to_be_visible()


async def _delete(tab: Tab, chat: str) -> None:
    await tab.field.fill("")
    await tab.page.locator(".chat-head .icon-button").last.click()
    await tab.page.locator(".menu-item.is-danger").click()
    await expect(tab.dialog).to_be_visible()


async def _new(tab: Tab, chat: str) -> None:
    await tab.page.keyboard.press("Escape")
    await tab.go("chat")
    await expect(tab.page.locator("main.is-new")).to_be_visible()


def _plain(address: str) -> Callable[[Tab, str], Awaitable[None]]:
    async def visit(tab: Tab, _: str) -> None:
        await tab.go(address)
        await expect(tab.page.locator("main.plain h1")).to_be_visible()
        await expect(tab.page.locator(".skeleton")).to_have_count(0)

    return visit


async def _setup(tab: Tab, chat: str) -> None:
    await _plain("setup")(tab, chat)
    await tab.page.locator("input[value=endpoint]").check()
    await tab.page.locator("input[type=url]").fill("http://127.0.0.1:9/v1")
    await tab.page.locator("input[type=password]").fill("sk-of-nobody")
    await tab.page.locator("form .input").last.fill("qwen3-30b")
    await tab.page.locator("form button[type=submit]").click()
    await expect(tab.page.locator(".test-outcome .pill.tone-good")).to_be_visible()


PAGES: Mapping[str, Callable[[Tab, str], Awaitable[None]]] = {
    "chat": _chat,
    "receipt": _receipt,
    "commands": _commands,
    "delete": _delete,
    "new": _new,
    "settings": _plain("settings"),
    "setup": _setup,
    **{f"operate-{name}": _plain(f"operate/{name}") for name in ("overview", "channels", "people", "jobs", "usage", "log", "config")},
}


async def _look(tab: Tab, name: str, language: str, faults: list[str]) -> None:
    """The present page in both widths and both themes."""
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


@pytest.mark.slow
@pytest.mark.rule("WO-12")
async def test_every_page_is_whole_in_each_language_width_and_theme(chromium: Browser, tmp_path: Path) -> None:
    faults: list[str] = []
    async with lived_in(tmp_path, chromium) as scene:
        for language in LANGUAGES:
            person, chat = scene.people[language]
            async with scene.house.tab(who=person, locale=language, timezone_id=LIVES[language].zone) as tab:
                for name, visit in PAGES.items():
                    await visit(tab, chat)
                    await _look(tab, name, language, faults)
                if os.environ.get("UPDATE_IMAGES") == "1":
                    await _draw(tab, chat, language)
            async with scene.house.tab(stranger=True, locale=language) as tab:
                await tab.go("chat")
                await expect(tab.page.locator(".welcome")).to_be_visible()
                await _look(tab, "guest", language, faults)
                await tab.page.goto(f"{scene.house.url}/#/signin?error=link")
                await expect(tab.page.get_by_role("alert")).to_be_visible()
                await _look(tab, "signin", language, faults)
    assert not faults, "\n".join(faults)


async def _draw(tab: Tab, chat: str, language: str) -> None:
    """The pictures of the docs."""
    IMAGES.mkdir(exist_ok=True)
    wanted = {
        "en": {
            "chat": ((1280, 720), "light", _chat),
            "receipt": ((1280, 640), "light", _receipt),
            "operate": ((1280, 720), "light", PAGES["operate-overview"]),
        },
        "ja": {"chat-dark-360": (NARROW, "dark", _chat)},
    }.get(language, {})
    for name, (size, theme, visit) in wanted.items():
        await tab.page.set_viewport_size({"width": size[0], "height": size[1]})
        await tab.page.emulate_media(color_scheme=theme, reduced_motion="reduce")
        await visit(tab, chat)
        await tab.page.mouse.move(0, 0)
        path = IMAGES / f"{name}.png"
        await tab.page.screenshot(path=path, animations="disabled", caret="hide")
        assert path.stat().st_size < IMAGE_MAX


# -- by measure --------------------------------------------------------------------------------------------------------


SAMPLES: Mapping[str, tuple[str, str]] = {
    "a button without a name": ("structure", "<button></button>"),
    "a field whose hint is its only name": ("structure", "<input placeholder='Name'>"),
    "two main parts": ("structure", "<main></main>"),
    "a control outside every landmark": ("structure", "</main><button>Lost</button>"),
    "an id given twice": ("structure", "<p id=a></p><p id=a></p>"),
    "a label for nothing": ("structure", "<label for=nowhere>Name</label>"),
    "a picture without words": ("structure", "<img width=30 height=30>"),
    "an item of no list": ("structure", "<div><li>One</li></div>"),
    "a tiny target": ("structure", "<button style='width:12px;height:12px;padding:0'>x</button>"),
    "a hidden control that takes the focus": ("structure", "<div aria-hidden=true><button>Ghost</button></div>"),
    "a tab order of its own": ("structure", "<button tabindex=3>Third</button>"),
    "grey on grey": ("contrast", "<p style='color:#999;background:#bbb'>faint</p>"),
    "see-through words": ("contrast", "<p style='opacity:.4'>faint</p>"),
    "a faint hint": ("contrast", "<style>::placeholder{color:#ccc}</style><input aria-label=Name placeholder=Name>"),
    "a box wider than the page": ("width", "<div style='width:2000px;height:9px'>wide</div>"),
    "a part that scrolls sideways": ("width", "<div style='overflow-x:auto'><p style='width:2000px'>wide</p></div>"),
    "a control that keeps the focus": ("tab_order", "<button onkeydown='event.preventDefault()'>Trap</button><button>Never</button>"),
    "a focus that cannot be seen": ("tab_order", "<button style='outline:none'>Where</button>"),
    "an order that is not the page's": ("tab_order", "<button tabindex=2>Last</button><button tabindex=1>First</button>"),
}


async def test_each_measure_finds_what_it_is_for(chromium: Browser) -> None:
    page = await chromium.new_page(viewport={"width": 400, "height": 400})
    frame = "<!doctype html><html lang=en><title>Sample</title><body><main><h1>Head</h1>{}<p>Words</p></main>"
    for name, (measure, sample) in SAMPLES.items():
        await page.set_content(frame.format(sample))
        assert await getattr(page_audit, measure)(page), name
    code = f"<pre style='overflow:auto' tabindex=0 role=group aria-label=Code>{'x' * 900}</pre>"
    await page.set_content(frame.format(f"<style>button,input{{height:30px}}</style><button>Fine</button><label>Name <input></label>{code}"))
    for measure in ("structure", "contrast", "width", "tab_order"):
        assert not await getattr(page_audit, measure)(page), measure
    await page.close()


@pytest.mark.rule("WO-12")
async def test_states_out_of_the_ordinary_are_whole_too(house: House) -> None:
    faults: list[str] = []
    wide = "antidisestablishment" * 20
    table = "| " + " | ".join(f"Column {n}" for n in range(9)) + " |\n|" + "---|" * 9 + "\n| " + " | ".join(f"value {n}" for n in range(9)) + " |"
    house.will(f"{wide}\n\n`{wide}`\n\n{table}\n\n```\n{wide}\n```\n\n> {wide}\n\n1. {wide}")
    async with house.tab(size=NARROW) as tab:
        tab.forgives("404", "500", "ERR_")
        await tab.say(wide)
        await expect(tab.answers).to_have_count(1)
        await tab.quiet()
        await _look(tab, "state-wide", "en", faults)
        await tab.say("And a fault")
        await expect(tab.notices).to_have_count(1)
        await _look(tab, "state-fault", "en", faults)
        await tab.act_here("Rename")
        await _look(tab, "state-rename", "en", faults)
        await tab.page.keyboard.press("Escape")
        await tab.page.context.set_offline(True)
        await tab.page.evaluate("dispatchEvent(new Event('offline'))")
        await expect(tab.page.get_by_text("You are offline. Your words stay in the field.")).to_be_visible()
        await tab.say("Unsent words")
        await expect(tab.page.locator(".message.is-pending")).to_contain_text("Not sent yet.")
        await _look(tab, "state-offline", "en", faults)
        await tab.page.get_by_role("button", name="Back to the field").click()
        await expect(tab.field).to_have_value("Unsent words")
        await tab.page.context.set_offline(False)
        await expect(tab.page.locator(".banner")).to_be_hidden()
        await tab.field.fill("")
        await tab.go("chat/c-nowhere")
        await expect(tab.page.get_by_text("This chat is not here")).to_be_visible()
        await _look(tab, "state-gone", "en", faults)
        await tab.page.route("**/api/operator/usage*", lambda route: route.fulfill(status=500, body="broken"))
        await tab.go("operate/usage")
        await expect(tab.page.get_by_role("alert")).to_contain_text("(500)")
        await _look(tab, "state-error", "en", faults)
        await tab.page.unroute("**/api/operator/usage*")
        await tab.page.get_by_role("button", name="Try again").click()
        await expect(tab.page.locator(".figure").first).to_be_visible()
    assert not faults, "\n".join(faults)


@pytest.mark.rule("WO-12")
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
async def test_the_keyboard_reaches_everything_and_is_held_nowhere(house: House, size: tuple[int, int]) -> None:
    house.will("Hello.\n\n```\ncode\n```")
    async with house.tab(size=size) as tab:
        await tab.say("Hello")
        await expect(tab.answers).to_have_count(1)
        await tab.quiet()
        assert await page_audit.tab_order(tab.page) == []
        for address in ("settings", "setup", "operate/people", "operate/usage"):
            await _plain(address)(tab, "")
            assert await page_audit.tab_order(tab.page) == [], address


@pytest.mark.rule("WO-12")
async def test_a_whole_talk_needs_no_mouse(house: House) -> None:
    house.will("One.", "Two.", "Three.")
    async with house.tab() as tab:
        keys = tab.page.keyboard
        await expect(tab.field).to_be_focused()
        await keys.type("First")
        await keys.press("Enter")
        await tab.says("One.")
        await _tab_to(tab, "Answer again")
        await keys.press("Enter")
        await tab.says("Two.")
        await _tab_to(tab, "Receipt of this reply")
        await keys.press("Enter")
        await expect(tab.page.get_by_role("complementary", name="Receipt")).to_be_visible()
        await keys.press("Escape")
        await expect(tab.page.get_by_role("complementary", name="Receipt")).to_be_hidden()
        await _tab_to(tab, "Actions")
        await keys.press("Enter")
        menu = tab.page.get_by_role("menu")
        await expect(menu.get_by_role("menuitem").first).to_be_focused()
        await keys.press("End")
        await expect(menu.get_by_role("menuitem", name="Delete")).to_be_focused()
        await keys.press("ArrowDown")
        await expect(menu.get_by_role("menuitem").first).to_be_focused()
        await keys.press("Escape")
        await expect(menu).to_have_count(0)
        await expect(tab.page.get_by_role("button", name="Actions", exact=True)).to_be_focused()
        await keys.press("Enter")
        await keys.press("End")
        await keys.press("Enter")
        await expect(tab.dialog.get_by_role("button", name="Cancel")).to_be_focused()
        for _ in range(4):  # the focus stays in the dialog
            await keys.press("Tab")
            assert await tab.page.evaluate("document.activeElement === document.body || !!document.activeElement.closest('dialog')")
        await keys.press("Escape")
        await expect(tab.dialog).to_have_count(0)
        await keys.press("Control+k")
        await keys.type("first")
        await expect(tab.rows.locator("mark")).to_have_text("First")
        await keys.press("ArrowDown")
        await expect(tab.rows.first.get_by_role("link")).to_be_focused()


async def _tab_to(tab: Tab, name: str) -> None:
    """Goes on with Tab until the control of that name has the focus."""
    wanted = tab.page.get_by_role("button", name=name, exact=True).last
    for _ in range(60):
        await tab.page.keyboard.press("Tab")
        if await wanted.evaluate("(node) => node === document.activeElement"):
            return
    raise AssertionError(f"{name} is not reached with Tab")


@pytest.mark.rule("WO-12")
async def test_a_chosen_theme_stays_and_the_systems_is_followed_otherwise(house: House) -> None:
    async with house.tab() as tab:
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        await tab.page.emulate_media(color_scheme="light")
        light = await tab.page.evaluate(ground)
        await tab.page.emulate_media(color_scheme="dark")
        dark = await tab.page.evaluate(ground)
        assert light != dark
        for choice, expected in (("Light", light), ("Dark", dark), ("As the system", dark)):
            await tab.page.get_by_role("button", name="Account").click()
            await tab.page.get_by_role("menuitemradio", name=choice).click()
            assert await tab.page.evaluate(ground) == expected
            await tab.restarted()
            assert await tab.page.evaluate(ground) == expected


async def test_all_modules_are_asked_for_at_once() -> None:
    named = re.findall(r'"modulepreload" href="/static/([a-z0-9-]+\.js)"', (STATIC / "index.html").read_text(encoding="utf-8"))
    assert sorted(named) == sorted({path.name for path in STATIC.glob("*.js")} - {"app.js", "theme.js"})
