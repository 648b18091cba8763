"""Around the talk, in a real browser: signing in and out, guests, settings, setting a model, the operators' desk (WO-1, WO-3, WO-17, WO-30)."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Route, expect

from agent.errors import ModelMisconfigured
from agent.llm.scripted import Fail, Say, Until
from channels.loopback import LoopbackPlatform
from gateway.model_making import make_model
from tests.e2e import browser
from tests.e2e.browser import MODEL, House, Tab, house_over, until
from tests.harness import loopback_plan
from tests.peers.model.faults import FAULTS
from tests.peers.model.replies import text
from tests.peers.model.server import FakeModel

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]


async def sign_in(tab: Tab, name: str, password: str) -> None:
    await tab.page.get_by_label("Name").fill(name)
    await tab.page.get_by_label("Password").fill(password)
    await tab.page.get_by_role("button", name="Sign in").click()


# -- the door ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-1", "WO-61")
async def test_a_link_signs_in_once_and_leaves_no_secret_behind(house: House) -> None:
    link = await house.link(house.me.id)
    async with house.tab(stranger=True) as tab:
        await tab.page.goto(link)
        await expect(tab.field).to_be_visible()
        code = link.rpartition("/")[2]
        assert code not in tab.page.url
        assert code not in await tab.page.evaluate("JSON.stringify([{ ...localStorage }, { ...sessionStorage }, document.cookie])")
        (cookie,) = await tab.page.context.cookies()
        assert (cookie.get("httpOnly"), cookie.get("sameSite")) == (True, "Strict")
        assert await tab.page.evaluate("document.cookie") == ""
        async with house.tab(stranger=True) as other:
            await other.page.goto(link)
            await expect(other.page.get_by_role("alert")).to_contain_text("This link was used or is too old.")
            assert await other.page.context.cookies() == []


@pytest.mark.rule("WO-17", "WO-61")
async def test_a_password_signs_in_and_a_wrong_one_does_not(house: House) -> None:
    await house.add({"name": "Kaede", "role": "user", "password": "a lantern by the river"})
    async with house.tab(stranger=True) as tab:
        tab.forgives("401")
        await tab.go("settings")
        await expect(tab.page.get_by_role("heading", name="Welcome to Yumegate")).to_be_visible()
        await expect(tab.page.get_by_label("Name")).to_be_focused()
        await sign_in(tab, "Kaede", "not this")
        await expect(tab.page.get_by_role("alert")).to_have_text("Name and password do not fit together.")
        await expect(tab.page.get_by_label("Password")).to_be_focused()
        await sign_in(tab, "Kaede", "a lantern by the river")
        await expect(tab.page.get_by_role("heading", name="Settings")).to_be_visible()
        await expect(tab.page.get_by_role("link", name="Overview")).to_have_count(0)
        for address in ("operate/overview", "setup"):
            await tab.go(address)
            await expect(tab.page.locator("main.is-new")).to_be_visible()


@pytest.mark.rule("WO-61")
async def test_signing_out_ends_the_session_and_forgets_unsent_words(house: House) -> None:
    async with house.tab() as tab:
        await tab.field.fill("Half a secret")
        await tab.until("Object.keys(localStorage).length", 1)
        cookies = await tab.page.context.cookies()
        async with house.another(tab.page.context) as other:
            other.forgives("401")
            await other.go("chat")
            await expect(other.field).to_have_value("Half a secret")
            await tab.page.get_by_role("button", name="Account").click()
            await tab.page.get_by_role("menuitem", name="Sign out").click()
            await expect(tab.page.get_by_role("heading", name="Welcome to Yumegate")).to_be_visible()
            await other.field.fill("")
            await other.glance()
            await expect(other.page.get_by_role("heading", name="Welcome to Yumegate")).to_be_visible()
        assert await tab.page.evaluate("Object.keys(localStorage)") == []
        await tab.page.context.add_cookies([{"name": each["name"], "value": each["value"], "url": house.url} for each in cookies])  # type: ignore[typeddict-item]
        await tab.go("chat")
        await tab.page.reload()
        await expect(tab.page.get_by_role("heading", name="Welcome to Yumegate")).to_be_visible()


@pytest.mark.rule("WO-17")
async def test_without_guests_a_stranger_meets_only_the_door(house: House) -> None:
    async with house.tab(stranger=True) as tab:
        for address in ("", "chat", "chat/c-x", "settings", "operate/people", "setup", "nowhere"):
            await tab.go(address)
            await expect(tab.page.get_by_role("heading", name="Welcome to Yumegate")).to_be_visible()
            await expect(tab.page.get_by_role("link", name="Go on as a guest")).to_have_count(0)


@pytest.mark.rule("WO-17")
async def test_a_guest_talks_and_nothing_of_it_is_kept(chromium: Browser, tmp_path: Path) -> None:
    config = {"channels": {"web": {"port": 0, "guests": True}}}
    async with house_over(tmp_path, chromium, config=config, name="guests") as house, house.tab(stranger=True) as tab:
        house.will([Say("**Welcome**, ", chars=6), Say("stranger.")], "You said: hello.", [Fail(ModelMisconfigured("no key"))], "All well.")
        answers = tab.page.locator(".message.is-assistant .prose")
        await tab.go()
        await expect(tab.page.get_by_text("Not signed in", exact=True)).to_be_visible()
        await expect(tab.page.get_by_text("Nothing said here is kept", exact=False)).to_be_visible()
        await expect(tab.page.get_by_role("button", name="Add files")).to_have_count(0)
        await expect(tab.field).to_have_attribute("placeholder", "Write a message")
        await tab.field.press_sequentially("/")
        await expect(tab.page.get_by_role("listbox")).to_have_count(0)
        await tab.say("hello")
        await expect(answers).to_have_text(["Welcome, stranger."])
        await tab.quiet()  # a guest has one answer at a time
        await expect(answers.locator("strong")).to_have_text("Welcome")
        await tab.say("What did I say?")
        await expect(answers).to_have_text(["Welcome, stranger.", "You said: hello."])
        await tab.quiet()
        assert [message.text for message in house.script.requests[1].messages[1:3]] == ["hello", "**Welcome**, stranger."]
        await tab.say("And now?")
        await expect(tab.page.locator(".message-note")).to_contain_text("The model is not set up correctly.")
        await tab.quiet()
        await tab.say("Again?")
        await expect(answers.last).to_have_text("All well.")
        assert await tab.page.evaluate("[localStorage.length, sessionStorage.length].join()") == "0,0"
        await tab.page.reload()
        await expect(tab.page.get_by_role("heading", name="Welcome, guest")).to_be_visible()
        await expect(tab.page.locator(".message")).to_have_count(0)
        await tab.page.get_by_role("link", name="Sign in").click()
        await tab.page.get_by_role("link", name="Go on as a guest").click()
        await expect(tab.page.get_by_role("heading", name="Welcome, guest")).to_be_visible()
        assert (await house.gateway.get("/api/chats"))["chats"] == []


@pytest.mark.rule("WO-17")
async def test_a_guests_answer_can_be_stopped(chromium: Browser, tmp_path: Path) -> None:
    config = {"channels": {"web": {"port": 0, "guests": True}}}
    async with house_over(tmp_path, chromium, config=config, name="a guest stops") as house, house.tab(stranger=True) as tab:
        house.will([Say("So far"), Until(asyncio.Event())], "Then on.")
        await tab.go()
        await tab.say("A story")
        await expect(tab.growing).to_have_text("So far")
        await tab.stop.click()
        await tab.quiet()
        await expect(tab.page.locator(".message.is-assistant .prose")).to_have_text(["So far"])
        await tab.say("Go on")
        await expect(tab.page.locator(".message.is-assistant .prose").last).to_have_text("Then on.")


# -- settings ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-12")
async def test_name_language_and_zone_are_kept_with_the_account(house: House) -> None:
    async with house.tab() as tab:
        await tab.go("settings")
        await tab.page.get_by_label("Name", exact=True).fill("夢子")
        await tab.page.get_by_label("Time zone").select_option("Asia/Tokyo")
        for language, save, title in (("ja", "Save", "設定"), ("zh", "保存", "设置"), ("en", "保存", "Settings")):
            await tab.page.locator("main select").first.select_option(language)
            await tab.page.get_by_role("button", name=save, exact=True).click()
            await expect(tab.page.get_by_role("heading", level=1)).to_have_text(title)
            assert await tab.page.evaluate("document.documentElement.lang") == language
            await expect(tab.page.locator(".account-name")).to_have_text("夢子")
            await tab.page.reload()
            await expect(tab.page.get_by_role("heading", level=1)).to_have_text(title)
        me = (await house.me.api.get("/api/me"))["person"]
        assert (me["name"], me["language"], me["timezone"]) == ("夢子", "en", "Asia/Tokyo")


@pytest.mark.rule("WO-12")
async def test_the_door_speaks_the_browsers_language_or_the_chosen_one(house: House) -> None:
    async with house.tab(stranger=True, locale="ja-JP") as tab:
        await tab.go()
        await expect(tab.page.get_by_role("button", name="サインイン")).to_be_visible()
        await tab.page.get_by_label("言語").select_option("zh")
        await expect(tab.page.get_by_role("button", name="登录")).to_be_visible()
        await tab.page.reload()
        await expect(tab.page.get_by_role("button", name="登录")).to_be_visible()


@pytest.mark.rule("WO-61")
async def test_a_token_is_shown_once_works_and_ends_when_deleted(house: House) -> None:
    async with house.tab() as tab:
        await tab.go("settings")
        await tab.page.get_by_role("button", name="New token").click()
        await tab.dialog.get_by_role("textbox", name="What is it for?").fill("my script")
        await tab.dialog.get_by_role("button", name="Make token").click()
        token = await tab.dialog.locator("code").inner_text()
        status = """async (token) => {
          const headers = { Authorization: `Bearer ${token}` };
          return (await fetch("/api/chats", { credentials: "omit", headers })).status;
        }"""
        assert await tab.page.evaluate(status, token) == 200
        await tab.dialog.get_by_role("button", name="Done").click()
        await expect(tab.page.get_by_text("my script")).to_be_visible()
        await expect(tab.page.locator("body")).not_to_contain_text(token)
        await tab.page.get_by_role("button", name="Delete token my script").click()
        await expect(tab.dialog.get_by_role("heading")).to_have_text("Delete the token “my script”?")
        await tab.dialog.get_by_role("button", name="Delete token").click()
        await expect(tab.page.get_by_text("my script")).to_have_count(0)
        assert await tab.page.evaluate(status, token) == 401
        tab.forgives("401")


@pytest.mark.rule("WO-61")
async def test_a_password_is_set_and_then_changed_only_with_the_old_one(house: House) -> None:
    async with house.tab() as tab:
        tab.forgives("40[013]")
        await tab.go("settings")
        await tab.page.get_by_label("New password").fill("moss on the temple roof")
        await tab.page.get_by_role("button", name="Set password").click()
        await expect(tab.page.get_by_label("Current password")).to_be_visible()
        await tab.page.get_by_label("Current password").fill("wrong")
        await tab.page.get_by_label("New password").fill("snow on the temple roof")
        await tab.page.get_by_role("button", name="Change password").click()
        await expect(tab.page.locator(".field-error:visible, .problem:visible")).to_have_count(1)
        await tab.page.get_by_label("Current password").fill("moss on the temple roof")
        await tab.page.get_by_role("button", name="Change password").click()
        await expect(tab.page.get_by_label("New password")).to_have_value("")  # emptied once it holds
    async with house.tab(stranger=True) as tab:
        await tab.go()
        await sign_in(tab, house.me.name, "snow on the temple roof")
        await expect(tab.field).to_be_visible()


# -- setting a model ---------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-1")
async def test_the_page_says_plainly_that_the_tiny_demo_model_answers(chromium: Browser, tmp_path: Path) -> None:
    async with house_over(tmp_path, chromium, config={"model": {"provider": "demo"}}, name="demo") as house, house.tab() as tab:
        line = tab.page.locator(".model-line")
        await expect(line).to_contain_text("the tiny demo model, which knows little.")
        await line.get_by_role("link", name="Set up a real one").click()
        await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Set up a model")
        await expect(tab.page.locator(".now-card")).to_contain_text("Answers now. This is the tiny demo model.")


@pytest.mark.rule("WO-1", "WO-31")
async def test_the_line_of_the_model_follows_a_changed_configuration_without_a_reload(chromium: Browser, tmp_path: Path) -> None:
    async with house_over(tmp_path, chromium, config={"model": {"provider": "demo"}}, name="followed") as house, house.tab() as tab:
        line, now = tab.page.locator(".model-line"), tab.page.locator(".now-card")
        await expect(line).to_contain_text("the tiny demo model, which knows little.")
        path = house.gateway.config_path

        async def answering() -> str:
            return (await house.gateway.get("/api/me"))["model"]["name"]

        async def answers(name: str) -> None:
            model = {"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "name": name}
            path.write_text(json.dumps({**json.loads(path.read_text(encoding="utf-8")), "model": model}), encoding="utf-8")
            await until(answering, name)
            await tab.page.evaluate("dispatchEvent(new Event('focus'))")

        await answers("first-model")
        await expect(line).to_have_text("first-model")
        await tab.go("setup")
        await expect(now).to_contain_text("first-model")  # the page is there, and looks when it is looked at
        await answers("second-model")
        await expect(now).to_contain_text("second-model")


@pytest.mark.rule("WO-3")
async def test_an_endpoint_is_tried_with_one_request_and_shows_its_answer_or_its_very_error(chromium: Browser, tmp_path: Path) -> None:
    async with FakeModel() as model, house_over(tmp_path, chromium, model=make_model, name="endpoint") as house, house.tab() as tab:
        tab.forgives("400")  # an address that is none
        model.will(text("Hello from the peer."), *FAULTS["401"], *FAULTS["404"])
        await tab.go("setup")
        await tab.page.get_by_role("radio", name="An endpoint").check()
        await tab.page.get_by_role("textbox", name="Address").fill(model.url)
        await tab.page.get_by_label("Key", exact=True).fill("sk-abcd1234efgh5678")
        await tab.page.get_by_role("textbox", name="Model").fill("fake")
        outcome, test = tab.page.locator(".test-outcome"), tab.page.get_by_role("button", name="Test", exact=True)
        await test.click()
        await expect(outcome).to_contain_text("It answers")
        await expect(outcome).to_contain_text("Hello from the peer.")
        lines = tab.page.get_by_role("group", name="config.json")
        shown = json.loads("{" + await lines.inner_text() + "}")
        assert shown["model"] == {"provider": "openai", "base_url": model.url, "name": "fake", "api_key": "${YUMEGATE_MODEL_KEY}"}
        secrets, before = house.gateway.config_path.with_name("secrets.env"), house.gateway.config_path.read_text()
        assert not secrets.exists()
        await tab.page.get_by_role("button", name="Write the key to secrets.env").click()
        await expect(tab.page.get_by_text("Written", exact=True)).to_be_visible()
        assert secrets.stat().st_mode & 0o777 == 0o600
        assert "sk-abcd1234efgh5678" in secrets.read_text()
        assert house.gateway.config_path.read_text() == before
        assert len(model.requests) == 1
        assert model.requests[0].headers["Authorization"] == "Bearer sk-abcd1234efgh5678"
        await test.click()
        await expect(outcome).to_contain_text("This does not work yet")
        await expect(outcome).to_contain_text("The endpoint refuses the key.")
        await expect(outcome).to_contain_text("Incorrect API key provided")
        await expect(lines).to_have_count(0)  # what did not work is not offered
        await test.click()
        await expect(outcome).to_contain_text("The endpoint answers, but knows no model of this name.")
        await expect(outcome).to_contain_text("does not exist")
        await expect(outcome).not_to_contain_text("base_url")
        await expect(lines).to_have_count(0)
        await tab.page.get_by_role("textbox", name="Address").fill("ftp://127.0.0.1/v1")
        await test.click()
        await expect(outcome).to_contain_text("The address has to begin with http://")
        await expect(outcome).not_to_contain_text("base_url")
        await tab.page.get_by_role("textbox", name="Address").fill("http://127.0.0.1:9/v1")
        await test.click()
        await expect(outcome).to_contain_text("No usable answer came")
        await tab.page.get_by_role("radio", name="The demo model").check()
        assert json.loads("{" + await lines.inner_text() + "}") == {"model": {"provider": "demo"}}


# -- the desk ----------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-30")
async def test_the_overview_and_the_channels_tell_what_was_proved(chromium: Browser, tmp_path: Path) -> None:
    platform = LoopbackPlatform()
    async with house_over(tmp_path, chromium, channels=(loopback_plan(platform),), name="channels") as house, house.tab() as tab:
        house.will("Received.", "Likewise.")
        await tab.say("One message")
        await tab.says("Received.")
        platform.says("c1", "Hello from there")
        await until(lambda: _texts(platform), ["Likewise."])
        await tab.go("operate/overview")
        cards = tab.page.locator(".glance-card")
        await expect(cards.filter(has_text="Gate")).to_contain_text("Ready")
        await expect(cards.filter(has_text="Channels")).to_contain_text("2 of 2 ready")
        await expect(cards.filter(has_text="Model")).to_contain_text("scripted")
        await expect(cards.filter(has_text="Configuration")).to_contain_text("No faults")
        await expect(tab.page.get_by_text("No recent errors")).to_be_visible()
        await cards.filter(has_text="Channels").click()
        for name, proofs in (("Web page", ("Proven", "Last in")), ("loopback", ("Proven", "Last in", "Last out"))):
            channel = tab.page.locator(".channel").filter(has_text=name)
            await expect(channel).to_contain_text("Ready")
            for label in proofs:
                await expect(channel.locator(".fact").filter(has_text=label)).to_contain_text("just now")
            await expect(channel.locator(".fact").filter(has_text="Waiting")).to_contain_text("0")


async def _texts(platform: LoopbackPlatform) -> list[str]:
    return [shown.text for shown in platform.shown]


@pytest.mark.rule("WO-30", "WO-64")
async def test_people_are_added_changed_blocked_and_let_in_and_the_audit_has_it_all(house: House) -> None:
    async with house.tab() as tab:
        await tab.go("operate/people")
        rows = tab.page.locator(".row")
        await tab.page.get_by_role("button", name="Add a person").click()
        await tab.dialog.get_by_label("Name").fill("Sora")
        await tab.dialog.get_by_label("Password").fill("short")
        await tab.dialog.get_by_role("button", name="Add person").click()
        await expect(tab.dialog).to_be_visible()
        await tab.dialog.get_by_label("Password").fill("a longer lantern")
        await tab.dialog.get_by_role("button", name="Add person").click()
        sora = rows.filter(has_text="Sora")
        await expect(sora).to_contain_text("User")
        await _person(tab, "Sora", "Edit")
        await tab.dialog.get_by_label("Name").fill("Sora K.")
        await tab.dialog.get_by_label("Role").select_option("admin")
        await tab.dialog.get_by_label("Subscriber until").fill("2031-05-01")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(sora).to_contain_text("Admin")
        await expect(sora).to_contain_text("subscriber until May 1, 2031")
        await _person(tab, "Sora K.", "One-time sign-in link")
        link = await tab.dialog.locator("code").inner_text()
        await tab.dialog.get_by_role("button", name="Done").click()
        async with house.tab(stranger=True) as theirs:
            theirs.forgives("401")
            await theirs.page.goto(link)
            await expect(theirs.page.locator(".account-name")).to_have_text("Sora K.")
            await _person(tab, "Sora K.", "Block")
            await expect(tab.dialog.get_by_role("heading")).to_have_text("Block Sora K.?")
            await tab.dialog.get_by_role("button", name="Block").click()
            await tab.page.get_by_role("button", name="Undo").focus()  # it stays as long as somebody is at it
            await expect(sora).to_contain_text("Blocked")
            await theirs.glance()
            await expect(theirs.page.get_by_role("heading", name="Welcome to Yumegate")).to_be_visible()
        await tab.page.get_by_role("button", name="Undo").click()
        await expect(sora).not_to_contain_text("Blocked")
        await tab.page.get_by_role("searchbox", name="Search people").fill("sora")
        await expect(rows).to_have_count(1)
        await tab.page.get_by_role("link", name="Errors and audit").click()
        audit = tab.page.locator(".row").filter(has_text="Sora K.")
        for deed in ("added", "changed", "made a sign-in link for"):
            await expect(audit.filter(has_text=deed).first).to_contain_text(house.me.name)
        await audit.filter(has_text="changed").first.locator("summary").click()
        await expect(audit.filter(has_text="changed").first.locator(".diff")).to_contain_text("blocked")
        await expect(tab.page.locator("body")).not_to_contain_text("a longer lantern")


@pytest.mark.rule("WO-30", "WO-12")
async def test_what_can_be_undone_stays_while_somebody_is_at_it(house: House) -> None:
    await house.add({"name": "Rin", "role": "user"})
    async with house.tab() as tab:
        await tab.go("operate/people")
        await tab.page.clock.install()
        await _person(tab, "Rin", "Block")
        await tab.dialog.get_by_role("button", name="Block").click()
        undo = tab.page.get_by_role("button", name="Undo")
        await undo.focus()
        await tab.page.clock.fast_forward(60_000)
        await expect(undo).to_be_focused()
        await undo.evaluate("(button) => button.blur()")
        await tab.page.clock.fast_forward(60_000)
        await expect(undo).to_have_count(0)


async def _person(tab: Tab, name: str, item: str) -> None:
    await tab.page.get_by_role("button", name=f"Actions for {name}", exact=True).click()
    await tab.page.get_by_role("menuitem", name=item, exact=True).click()


@pytest.mark.rule("WO-30")
async def test_jobs_and_usage_show_what_was_done(house: House) -> None:
    house.will("Noted.")
    house.script.title = "A note"
    async with house.tab() as tab:
        await tab.say("Please note this")
        await tab.says("Noted.")
        await expect(tab.row("A note")).to_be_visible()
        await tab.go("operate/jobs")
        title = tab.page.locator(".row").filter(has_text="Chat title").first
        await expect(title).to_contain_text("Done")
        await expect(title).to_contain_text("title A note")
        await expect(tab.page.locator(".row").filter(has_text="Summary of a day").filter(has_text=house.me.name)).to_have_count(1)
        await expect(tab.page.locator("main")).not_to_contain_text("people/")
        await tab.page.get_by_text("Parked", exact=True).click()
        await expect(tab.page.get_by_text("No jobs here")).to_be_visible()
        await tab.go("operate/usage")
        usage = tab.page.locator(".table tbody tr").filter(has_text=house.me.name)
        await expect(usage.locator("td").first).to_have_text("2")
        await tab.page.get_by_text("Purpose", exact=True).click()
        await expect(tab.page.locator(".table tbody")).to_contain_text("Replies")
        await expect(tab.page.locator(".table tbody")).to_contain_text("Titles")
        rows = (await house.me.api.get("/api/operator/usage?days=30"))["rows"]
        calls = sum(row["calls"] for row in rows)
        await expect(tab.page.locator(".figure").filter(has_text="Calls").locator(".figure-value")).to_have_text(f"{calls:,}")


@pytest.mark.rule("WO-30")
async def test_a_slow_answer_to_an_earlier_choice_does_not_replace_the_chosen_list(house: House) -> None:
    house.will("Noted.")
    house.script.title = "A note"
    async with house.tab() as tab:
        await tab.say("Please note this")
        await tab.says("Noted.")
        await expect(tab.row("A note")).to_be_visible()
        held, go = asyncio.Event(), asyncio.Event()

        async def slow(route: Route) -> None:
            held.set()
            await go.wait()
            await route.continue_()

        await tab.page.route(re.compile(r"/api/operator/jobs$"), slow, times=1)
        await tab.go("operate/jobs")
        await held.wait()
        await tab.page.get_by_text("Parked", exact=True).click()
        await expect(tab.page.get_by_text("No jobs here")).to_be_visible()
        async with tab.page.expect_response(re.compile(r"/api/operator/jobs$")) as late:
            go.set()
        await (await late.value).finished()
        await tab.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        await expect(tab.page.get_by_text("No jobs here")).to_be_visible()


@pytest.mark.rule("WO-30")
async def test_a_slow_answer_about_another_span_does_not_replace_the_chosen_one(house: House) -> None:
    house.will("Noted.")
    async with house.tab() as tab:
        await tab.say("Please note this")
        await tab.says("Noted.")
        await tab.go("operate/usage")
        columns = tab.page.locator(".chart .bar-ground")
        await expect(columns).to_have_count(30)
        held, go = asyncio.Event(), asyncio.Event()

        async def slow(route: Route) -> None:
            held.set()
            await go.wait()
            await route.continue_()

        await tab.page.route(re.compile(r"usage\?days=7$"), slow)
        await tab.page.get_by_text("7 days", exact=True).click()
        await held.wait()
        await tab.page.get_by_text("90 days", exact=True).click()
        await expect(columns).to_have_count(90)
        async with tab.page.expect_response(re.compile(r"usage\?days=7$")) as late:
            go.set()
        await (await late.value).finished()
        await tab.page.evaluate("new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn)))")
        await expect(columns).to_have_count(90)


@pytest.mark.rule("WO-30", "WO-31", "WO-32")
async def test_a_broken_configuration_is_shown_with_its_places_while_everything_runs_on(chromium: Browser, tmp_path: Path) -> None:
    async with house_over(tmp_path, chromium, name="broken configuration") as house, house.tab() as tab:
        path = house.gateway.config_path
        good: dict[str, Any] = json.loads(path.read_text())
        await tab.go("operate/config")
        state = tab.page.locator(".config-state")
        await expect(state).to_contain_text("No faults")
        await expect(tab.page.get_by_role("group", name="In force")).to_contain_text('"name": "scripted"')
        path.write_text(json.dumps(good | {"timezon": "UTC", "model": {**MODEL, "context_window": "wide"}}, indent=2))
        await _reload(tab)
        await tab.go("operate/config")
        await expect(state).to_contain_text("2 faults")
        faults = tab.page.get_by_role("list", name="Faults in the configuration").get_by_role("listitem")
        await expect(faults.filter(has_text="timezon")).to_contain_text("timezone")
        await expect(faults.filter(has_text="context_window")).to_contain_text("line ")
        await expect(tab.page.get_by_role("group", name="In force")).to_contain_text('"name": "scripted"')
        await tab.go("operate/overview")
        await expect(tab.page.locator(".glance-card").filter(has_text="Configuration")).to_contain_text("2 faults")
        path.write_text('{"model": {,}}')
        await _reload(tab)
        await tab.go("operate/config")
        await expect(faults.first).to_contain_text("line 1, column 12")
        house.will("Still here.")
        await tab.begin()
        await tab.say("Are you there?")
        await tab.says("Still here.")
        path.write_text(json.dumps(good))
        await _reload(tab)
        await tab.go("operate/config")
        await expect(state).to_contain_text("No faults")


@pytest.mark.rule("WO-30")
async def test_an_error_is_on_the_desk_with_the_way_of_its_message(house: House) -> None:
    async with house.tab() as tab:
        await tab.say("A model without an answer is a fault of ours here")
        await expect(tab.notices).to_have_count(1)
        await tab.go("operate/log")
        error = tab.page.locator(".card").first.locator(".row").filter(has_text="failed unforeseen")
        await error.get_by_role("button").click()
        await expect(tab.dialog.get_by_role("heading")).to_have_text("The way of this message")
        await expect(tab.dialog.locator("pre")).to_contain_text("failed")


async def _reload(tab: Tab) -> None:
    """Has the file read now, as an operator would who does not want to wait."""
    await tab.begin()
    await tab.say("/reload")
    await expect(tab.notices).to_have_count(1)
