"""The talk on the page, in a real browser: words go out once, answers come in whole, and both can be taken back (WO-10, WO-11, WO-15, WO-16)."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from playwright.async_api import Browser, Route, expect

from agent.errors import ModelMisconfigured
from agent.llm.port import Usage
from agent.llm.scripted import Call, End, Fail, Reply, Say, Until
from tests.e2e import browser
from tests.e2e.browser import House, house_at_the_end_of_a_line, until

chromium, shared_house, house = browser.chromium, browser.shared_house, browser.house  # fixtures
pytestmark = [pytest.mark.browser, pytest.mark.asyncio(loop_scope="module")]

TRIP = """## Two quiet days in Kyoto

Start **early**: the lanes are empty before nine.

| Day | Morning | Evening |
|---|---|---|
| 1 | Fushimi Inari | Pontochō |
| 2 | Philosopher's Path | Gion |

```python
days = ["one", "two"]
print(len(days))
```

See [the timetable](https://example.com/trains).
"""


# -- a talk ------------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-10", "WO-13", "WO-16")
async def test_first_words_make_a_chat_with_an_answer_and_a_title_of_its_own(house: House) -> None:
    house.will(TRIP)
    house.script.title = "Two days in Kyoto"
    async with house.tab() as tab:
        await tab.say("Plan two days in Kyoto, please")
        prose = tab.answers.first
        await expect(prose.get_by_role("heading", name="Two quiet days in Kyoto")).to_be_visible()
        await expect(prose.locator("strong")).to_have_text("early")
        await expect(prose.get_by_role("row")).to_have_count(3)
        await expect(prose.get_by_role("link", name="the timetable")).to_have_attribute("rel", re.compile("noopener noreferrer"))
        await expect(tab.asked).to_have_text("Plan two days in Kyoto, please")
        await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Two days in Kyoto")
        await expect(tab.row("Two days in Kyoto")).to_have_attribute("data-active", "true")
        await expect(tab.page).to_have_title("Two days in Kyoto · Yumegate")
        await expect(tab.field).to_be_focused()
        await expect(tab.field).to_have_value("")
        await tab.page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await prose.get_by_role("button", name="Copy code").click()
        await expect(prose.get_by_role("button", name="Copied")).to_be_visible()
        assert await tab.page.evaluate("navigator.clipboard.readText()") == 'days = ["one", "two"]\nprint(len(days))\n'


@pytest.mark.rule("WO-10", "WO-12")
async def test_an_answer_appears_while_it_is_written_and_is_spoken_in_sentences(house: House) -> None:
    more, rest = asyncio.Event(), asyncio.Event()
    second = Say(" is **quiet**. We may", chars=3, pause_s=0.1)
    house.will([Say("The lamp is on. The night", chars=4), Until(more), second, Until(rest), Say(" talk.")])
    async with house.tab() as tab:
        spoken = tab.page.get_by_role("log")
        await tab.say("Good evening")
        await expect(tab.growing).to_have_text("The lamp is on. The night")
        await expect(tab.stop).to_be_visible()
        await expect(tab.send).to_be_hidden()
        await expect(tab.rows.locator(".running-mark")).to_have_count(1)
        assert await spoken.all_inner_texts() == ["The lamp is on."]
        more.set()
        await expect(tab.growing.locator("strong")).to_have_text("quiet")
        await expect(tab.growing).to_have_text("The lamp is on. The night is quiet. We may")
        rest.set()
        await tab.says("The lamp is on. The night is quiet. We may talk.")
        await expect(tab.rows.locator(".running-mark")).to_have_count(0)
        await expect(spoken.locator("p")).to_have_text(["The lamp is on.", "The night is quiet.", "We may talk."])


@pytest.mark.rule("WO-12")
async def test_what_a_command_answers_is_spoken_without_its_marks(house: House) -> None:
    async with house.tab() as tab:
        await tab.say("/remember The lamp is **green**, see data_dir")
        await tab.say("/memory list")
        spoken = tab.page.get_by_role("log").locator("p").last
        await expect(spoken).to_contain_text("Saved memories · page 1 of 1")
        await expect(spoken).to_contain_text("The lamp is green, see data_dir")
        assert "*" not in await spoken.inner_text() and "`" not in await spoken.inner_text()


@pytest.mark.rule("WO-11", "WO-12")
@pytest.mark.parametrize(
    ("asked", "spoken"),
    [("Good evening", ["The lamp is on.", "We may talk."]), ("/remember The lamp is **green**", [re.compile("The lamp is green")])],
    ids=["an answer", "a command"],
)
async def test_what_was_answered_before_the_stream_of_a_new_chat_was_open_is_spoken_too(house: House, asked: str, spoken: list[str]) -> None:
    answered = asyncio.Event()

    async def open_late(route: Route) -> None:
        await answered.wait()
        await route.continue_()

    house.will("The lamp is on. We may talk.")
    async with house.tab() as tab:
        await tab.page.route("**/events", open_late)
        await tab.say(asked)
        await expect(tab.page).to_have_url(re.compile("#/chat/."))

        async def stored() -> bool:
            return any(message["role"] != "user" for message in await house.me.api.messages(tab.chat))

        await until(stored, True)
        answered.set()
        await expect(tab.page.get_by_role("log").locator("p")).to_have_text(spoken)
        await tab.quiet()
        await expect(tab.page.locator(".message:not(.is-user)")).to_have_count(1)


@pytest.mark.rule("WO-12")
async def test_who_reads_further_up_is_not_dragged_along(house: House) -> None:
    more = asyncio.Event()
    lines = "\n\n".join(f"Line {number}" for number in range(60))
    house.will([Say(lines), Until(more), Say("\n\nAnd the last line.")])
    async with house.tab() as tab:
        talk, latest = tab.page.get_by_role("region", name="Messages"), tab.page.get_by_role("button", name="Latest")
        await tab.say("Tell me")
        await expect(tab.growing.get_by_text("Line 59")).to_be_in_viewport()
        await expect(latest).to_be_hidden()
        await talk.hover()
        end = "addEventListener('scrollend', () => (window.scrolled = true), { capture: true, once: true })"
        await tab.page.evaluate(end)
        await tab.page.mouse.wheel(0, -900)
        await expect(latest).to_be_visible()
        await tab.until("window.scrolled")  # a wheel turns the page little by little
        top = await talk.evaluate("(node) => node.scrollTop")
        more.set()
        await tab.quiet()
        await expect(tab.answers.get_by_text("And the last line.")).to_have_count(1)
        assert abs(await talk.evaluate("(node) => node.scrollTop") - top) < 2
        await latest.click()
        await expect(tab.answers.get_by_text("And the last line.")).to_be_in_viewport()
        await expect(latest).to_be_hidden()


# -- nothing lost, nothing doubled -------------------------------------------------------------------------------------


WORDS = [f"word{number:03} " for number in range(200)]


def two_hundred(go_on: asyncio.Event) -> Reply:
    """An answer of 200 deltas that waits after 50."""
    size = len(WORDS[0])
    return [Say("".join(WORDS[:50]), chars=size, pause_s=0.002), Until(go_on), Say("".join(WORDS[50:]), chars=size, pause_s=0.002)]


def first(count: int) -> str:
    return "".join(WORDS[:count]).strip()


@pytest.mark.rule("WO-11")
@pytest.mark.case("WP-01")
async def test_a_reload_in_the_middle_of_an_answer_loses_and_doubles_nothing(house: House) -> None:
    go_on = asyncio.Event()
    house.will(two_hundred(go_on))
    async with house.tab() as tab:
        await tab.say("Count to two hundred")
        await expect(tab.growing).to_have_text(first(50))
        await tab.restarted()
        await expect(tab.growing).to_have_text(first(50))
        await expect(tab.asked).to_have_text("Count to two hundred")
        await expect(tab.stop).to_be_visible()
        go_on.set()
        await tab.says(first(200))
        await tab.restarted()
        await tab.says(first(200))
        await expect(tab.asked).to_have_count(1)
    assert len(house.script.requests) == 1


@pytest.mark.rule("WO-11")
@pytest.mark.case("WP-01")
async def test_a_broken_connection_is_taken_up_at_the_last_event(chromium: Browser, tmp_path: Path) -> None:
    go_on = asyncio.Event()
    async with house_at_the_end_of_a_line(tmp_path, chromium, "broken connection") as (house, line), house.tab(url=line.url) as tab:
        tab.forgives("ERR_", "a broken line")
        taken_up: list[str] = []
        tab.page.on("request", lambda request: taken_up.append(request.headers.get("last-event-id", "")) if "/events" in request.url else None)
        house.will(two_hundred(go_on))
        await tab.say("Count to two hundred")
        await expect(tab.growing).to_have_text(first(50))
        line.cut()
        await expect(tab.page.locator(".banner")).to_contain_text("cannot be reached")
        go_on.set()
        await house.me.api.answers(tab.chat)  # it is whole before anybody looks again
        await expect(tab.growing).to_have_text(first(50))
        line.mend()
        await tab.says(first(200))
        await expect(tab.asked).to_have_count(1)
        assert taken_up[0] == "begin" and taken_up[-1] not in ("", "begin")


@pytest.mark.rule("WO-11")
async def test_words_written_without_a_connection_stay_and_go_out_once(chromium: Browser, tmp_path: Path) -> None:
    async with house_at_the_end_of_a_line(tmp_path, chromium, "without a connection") as (house, line), house.tab(url=line.url) as tab:
        tab.forgives("ERR_")
        house.will("Hello.", "Welcome back.")
        await tab.say("Are you there?")
        await tab.says("Hello.")
        banner = tab.page.get_by_role("status").filter(has_text="cannot be reached")
        line.cut()
        await expect(banner).to_be_visible()
        await tab.field.fill("Half a thou")
        await tab.until("Object.entries(localStorage).some(([name, value]) => name.includes('draft') && value.includes('Half a thou'))")
        await tab.say("Still there?")
        waiting = tab.page.locator(".message.is-pending")
        await expect(waiting).to_contain_text("Still there?")
        await expect(waiting).to_contain_text("Not sent yet.")
        await tab.field.fill("A draft")
        line.mend()
        await tab.says("Hello.", "Welcome back.")
        await expect(banner).to_be_hidden()
        await expect(waiting).to_have_count(0)
        await expect(tab.field).to_have_value("A draft")
        await tab.restarted()
        await expect(tab.asked).to_have_text(["Are you there?", "Still there?"])
        await expect(tab.field).to_have_value("A draft")
        assert len(house.script.requests) == 2


@pytest.mark.rule("WO-11")
async def test_an_answer_is_seen_as_soon_as_its_question_could_go_out_again(chromium: Browser, tmp_path: Path) -> None:
    async with house_at_the_end_of_a_line(tmp_path, chromium, "back at once") as (house, line), house.tab(url=line.url) as tab:
        tab.forgives("ERR_")
        house.will("Hello.", "Welcome back.")
        await tab.say("Are you there?")
        await tab.says("Hello.")
        # From here on the stream waits for ever between two tries: its first wait is of half a second, more or less.
        await tab.page.evaluate(
            """() => {
              const { setTimeout } = window;
              window.setTimeout = (act, ms, ...more) => (ms > 300 && ms < 700 ? 0 : setTimeout(act, ms, ...more));
            }"""
        )
        line.cut()
        await tab.say("Still there?")
        await expect(tab.page.locator(".message.is-pending")).to_contain_text("Not sent yet.")
        line.mend()
        await tab.says("Hello.", "Welcome back.")


@pytest.mark.rule("WO-11")
async def test_what_is_sent_and_typed_while_a_chat_is_made_goes_there(house: House) -> None:
    make = asyncio.Event()

    async def hold(route: Route) -> None:
        if route.request.method == "POST":
            await make.wait()
        await route.continue_()

    async with house.tab() as tab:
        await tab.page.route("**/api/chats", hold)
        for text in ("/whoami", "/status"):  # commands: what becomes of messages that follow each other closely is the busy mode's
            await tab.say(text)
        await tab.field.fill("Half a thought")
        await expect(tab.page.locator(".message.is-pending")).to_have_text(["/whoami", "/status"])
        make.set()
        await expect(tab.notices).to_have_count(2)
        await expect(tab.field).to_have_value("Half a thought")
        await expect(tab.rows).to_have_count(1)
        await tab.restarted()
        await expect(tab.field).to_have_value("Half a thought")
        await tab.begin()
        await expect(tab.field).to_have_value("")


@pytest.mark.rule("WO-11")
async def test_words_for_a_chat_that_cannot_be_made_come_back_and_outlive_a_reload(house: House) -> None:
    fail = asyncio.Event()

    async def refuse(route: Route) -> None:
        if route.request.method == "POST":
            await fail.wait()
            await route.fulfill(status=500, body="broken")
        else:
            await route.continue_()

    async with house.tab() as tab:
        tab.forgives("500")
        await tab.page.route("**/api/chats", refuse)
        await tab.say("First")
        await tab.say("Second")
        await tab.field.fill("Half a thought")
        fail.set()
        all_of_it = "First\n\nSecond\n\nHalf a thought"
        await expect(tab.field).to_have_value(all_of_it)
        await expect(tab.page.locator(".message")).to_have_count(0)
        fail.clear()
        await tab.field.press("Enter")
        await expect(tab.page.locator(".message.is-pending")).to_have_count(1)
        await expect(tab.field).to_have_value("")
        await tab.page.reload()
        await expect(tab.field).to_have_value(all_of_it)
        fail.set()


@pytest.mark.rule("WO-11")
async def test_two_tabs_follow_the_same_talk(house: House) -> None:
    go_on = asyncio.Event()
    house.will([Say("From ", chars=5), Until(go_on), Say("one house.")], "From the other tab.")
    async with house.tab() as one, house.another(one.page.context) as other:
        await one.say("Where from?")
        await expect(one.growing).to_have_text("From")
        await other.go(f"chat/{one.chat}")
        await expect(other.growing).to_have_text("From")
        await expect(other.asked).to_have_text("Where from?")
        go_on.set()
        for tab in (one, other):
            await tab.says("From one house.")
        await other.say("And now?")
        for tab in (other, one):
            await expect(tab.asked).to_have_text(["Where from?", "And now?"])
            await tab.says("From one house.", "From the other tab.")


@pytest.mark.rule("WO-16")
async def test_an_answer_that_nobody_saw_is_marked_until_it_is_read(house: House) -> None:
    go_on = asyncio.Event()
    house.will([Say("Soon"), Until(go_on), Say(" done.")])
    async with house.tab() as tab:
        await tab.say("Take your time")
        await expect(tab.growing).to_have_text("Soon")
        await tab.begin()
        row = tab.rows.first
        await expect(row).to_contain_text("answering")
        go_on.set()
        await expect(row).to_contain_text("unread")
        await expect(row).not_to_contain_text("answering")
        await row.get_by_role("link").click()
        await tab.says("Soon done.")
        await tab.begin()
        await expect(row).to_be_visible()
        await expect(row).not_to_contain_text("unread")


@pytest.mark.rule("WO-16")
async def test_an_answer_that_was_read_is_marked_so_however_soon_one_leaves_it(house: House) -> None:
    chat = await house.me.api.chat(title="Lamp")
    house.will("Soon done.")
    await house.me.api.say(chat, "Take your time")
    await house.me.api.answers(chat)
    go = asyncio.Event()

    async def slow(route: Route) -> None:
        if route.request.method == "PATCH":
            await go.wait()
        await route.continue_()

    async with house.tab() as tab:
        row = tab.row("Lamp")
        await expect(row).to_contain_text("unread")
        await tab.page.route("**/api/chats/*", slow)
        await row.get_by_role("link").click()
        await tab.says("Soon done.")
        async with tab.page.expect_response("**/api/chats"):
            await tab.begin()
        await expect(row).to_contain_text("unread")  # as the gateway still has it
        go.set()
        await expect(row).not_to_contain_text("unread")


# -- taking back -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("WO-10")
async def test_stop_keeps_what_was_said(house: House) -> None:
    house.will([Say("This much was said", chars=6), Until(asyncio.Event())], "Going on.")
    async with house.tab() as tab:
        await tab.say("A long story")
        await expect(tab.growing).to_have_text("This much was said")
        await tab.stop.click()
        await tab.says("This much was said")
        await expect(tab.page.locator(".message.is-assistant")).to_contain_text("Stopped here")
        await tab.restarted()
        await tab.says("This much was said")
        await tab.say("Go on")
        await tab.says("This much was said", "Going on.")


@pytest.mark.rule("WO-10")
async def test_an_answer_is_made_again_in_its_place(house: House) -> None:
    go_on = asyncio.Event()
    house.will("First try.", [Say("Second"), Until(go_on), Say(" try.")])
    async with house.tab() as tab:
        await tab.say("Try")
        await tab.says("First try.")
        await tab.page.get_by_role("button", name="Answer again").click()
        await expect(tab.growing).to_have_text("Second")
        await expect(tab.answers).to_have_count(0)
        go_on.set()
        await tab.says("Second try.")
        await tab.restarted()
        await tab.says("Second try.")
        await expect(tab.asked).to_have_count(1)


@pytest.mark.rule("WO-10")
async def test_an_edited_message_takes_everything_after_it_out_of_the_talk(house: House) -> None:
    house.will("Paris.", "Lyon.", "Rome.")
    async with house.tab() as tab:
        await tab.say("Capital of France?")
        await tab.says("Paris.")
        await tab.say("Second city?")
        await tab.says("Paris.", "Lyon.")
        edit = tab.page.get_by_role("button", name="Edit and send again").first
        box = tab.page.get_by_role("textbox", name="Edit and send again")
        await edit.click()
        await expect(box).to_be_focused()
        await box.fill("never mind")
        await box.press("Escape")
        await expect(tab.asked).to_have_text(["Capital of France?", "Second city?"])
        await edit.click()
        await box.fill("Capital of Italy?")
        await box.press("Enter")
        await tab.says("Rome.")
        await expect(tab.asked).to_have_text(["Capital of Italy?"])
        await tab.restarted()
        await tab.says("Rome.")
        await expect(tab.asked).to_have_text(["Capital of Italy?"])
    assert [message.text for message in house.script.requests[-1].messages if message.text in ("Paris.", "Lyon.")] == []


@pytest.mark.rule("WO-10", "WO-11")
async def test_an_answer_that_is_faster_than_the_word_that_its_question_arrived_is_cut_with_it(house: House) -> None:
    confirmed = asyncio.Event()

    async def confirm_late(route: Route) -> None:
        answer = await route.fetch()
        await confirmed.wait()
        await route.fulfill(response=answer)

    house.will("One.", "Two.", "Three.")
    async with house.tab() as tab:
        await tab.say("First")
        await tab.says("One.")
        await tab.page.route("**/messages", confirm_late)
        await tab.say("Second")
        await expect(tab.answers).to_have_text(["One.", "Two."])
        await expect(tab.page.locator(".is-pending")).to_have_count(1)
        confirmed.set()
        await expect(tab.asked).to_have_text(["First", "Second"])
        await tab.asked.last.hover()
        await tab.page.get_by_role("button", name="Edit and send again").last.click()
        await tab.page.keyboard.type(", edited")
        await tab.page.keyboard.press("Enter")
        await tab.says("One.", "Three.")
        await expect(tab.asked).to_have_text(["First", "Second, edited"])


@pytest.mark.rule("WO-10")
async def test_a_fork_begins_at_any_message_and_leaves_the_first_chat_alone(house: House) -> None:
    house.will("One.", "Two.", "Another two.")
    async with house.tab() as tab:
        await tab.say("Count")
        await tab.says("One.")
        await tab.say("More")
        await tab.says("One.", "Two.")
        before = tab.chat
        await tab.answers.first.hover()
        await tab.page.locator(".message.is-assistant").first.get_by_role("button", name="New chat from here").click()
        await tab.told("A new chat with everything up to there")
        await tab.says("One.")
        assert tab.chat != before
        await tab.say("Otherwise")
        await tab.says("One.", "Another two.")
        await tab.go(f"chat/{before}")
        await tab.says("One.", "Two.")
        await tab.act_here("Copy as a new chat")
        await expect(tab.page).not_to_have_url(re.compile(before))
        await tab.says("One.", "Two.")
        await expect(tab.rows).to_have_count(3)


@pytest.mark.rule("WO-10")
async def test_a_chat_is_renamed_from_the_list_and_from_its_head(house: House) -> None:
    chat = await house.me.api.chat(title="Old name")
    async with house.tab() as tab:
        await tab.act("Old name", "Rename")
        title = tab.dialog.get_by_role("textbox", name="Title")
        await expect(title).to_be_focused()
        await title.fill("  ")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.dialog.get_by_role("alert")).to_be_visible()
        tab.forgives("400")
        await title.fill("New name")
        await title.press("Enter")
        await expect(tab.dialog).to_have_count(0)
        await tab.row("New name").get_by_role("link").click()
        await expect(tab.page.get_by_role("heading", level=1)).to_have_text("New name")
        await tab.act_here("Rename")
        await title.fill("Newest name")
        await tab.dialog.get_by_role("button", name="Save").click()
        await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Newest name")
        await expect(tab.row("Newest name")).to_be_visible()
    assert (await house.me.api.get(f"/api/chats/{chat}"))["title"] == "Newest name"


@pytest.mark.rule("WO-10")
async def test_deleting_names_the_chat_and_asks_once(house: House) -> None:
    house.will("One.", "Two.")
    async with house.tab() as tab:
        for text in ("Keep me", "Drop me"):
            await tab.begin()
            await tab.say(text)
            await expect(tab.answers).to_have_count(1)
            await tab.quiet()
        await tab.field.fill("a draft that goes too")
        await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Drop me")
        await tab.act_here("Delete")
        await expect(tab.dialog.get_by_role("heading")).to_have_text("Delete “Drop me”?")
        await expect(tab.dialog).to_contain_text("The chat and its 2 messages are deleted. This cannot be undone.")
        await expect(tab.dialog.get_by_role("button", name="Cancel")).to_be_focused()
        await tab.page.keyboard.press("Escape")
        await expect(tab.dialog).to_have_count(0)
        await expect(tab.rows).to_have_count(2)
        gone = tab.chat
        await tab.act_here("Delete")
        await tab.dialog.get_by_role("button", name="Delete chat").click()
        await tab.told("“Drop me” is deleted")
        await expect(tab.page.locator("main.is-new")).to_be_visible()
        await expect(tab.rows).to_have_count(1)
        assert await tab.page.evaluate("Object.keys(localStorage)") == []
        await tab.act("Keep me", "Delete")
        await expect(tab.dialog).to_contain_text("The chat and all its messages are deleted.")
        await tab.dialog.get_by_role("button", name="Delete chat").click()
        await expect(tab.page.get_by_text("No chats yet")).to_be_visible()
        await tab.go(f"chat/{gone}")
        await expect(tab.page.get_by_text("This chat is not here")).to_be_visible()
        tab.forgives("404")
    assert (await house.me.api.get("/api/chats"))["chats"] == []


@pytest.mark.rule("WO-10")
async def test_deleting_a_chat_ends_what_is_being_written_there(house: House) -> None:
    house.will([Say("Begun"), Until(asyncio.Event())])
    before = house.script.model.cancelled
    async with house.tab() as tab:
        tab.forgives("404")  # it may ask once more while it is being deleted
        await tab.say("Never mind")
        await expect(tab.growing).to_have_text("Begun")
        await tab.act_here("Delete")
        await tab.dialog.get_by_role("button", name="Delete chat").click()
        await expect(tab.page.locator("main.is-new")).to_be_visible()

        async def left() -> int:
            return house.script.model.cancelled

        await until(left, before + 1)
        await tab.glance()
        await expect(tab.page.get_by_text("No chats yet")).to_be_visible()


@pytest.mark.rule("WO-10")
async def test_search_finds_titles_and_words_in_three_scripts(house: House) -> None:
    for title, text in (("Trip to Kyoto", "Maple leaves in autumn"), ("京都の旅", "紅葉を見たい"), ("去京都旅行", "我想看红叶")):
        chat = await house.me.api.chat(title=title)
        house.will("OK.")
        await house.me.api.say(chat, text)
        await house.me.api.answers(chat)
    async with house.tab() as tab:
        search = tab.page.get_by_role("searchbox", name="Search chats")
        await expect(tab.rows).to_have_count(3)
        await tab.page.keyboard.press("Control+k")
        await expect(search).to_be_focused()
        for words, title, snippet in (("maple", "Trip to Kyoto", "Maple"), ("紅葉", "京都の旅", "紅葉"), ("红叶", "去京都旅行", "红叶")):
            await search.fill(words)
            await expect(tab.rows).to_have_count(1)
            await expect(tab.rows).to_contain_text(title)
            await expect(tab.rows.locator("mark")).to_have_text(snippet)
        await search.fill("nowhere")
        await expect(tab.page.get_by_text("No title or message has “nowhere”.")).to_be_visible()
        await search.press("Escape")
        await expect(tab.rows).to_have_count(3)
        await search.fill("trip")
        await expect(tab.rows).to_have_count(1)
        await search.press("Enter")
        await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Trip to Kyoto")


@pytest.mark.rule("WO-10")
async def test_enter_in_the_search_opens_what_was_found_and_never_what_stood_there_before(house: House) -> None:
    for title in ("Trip to Kyoto", "Soba"):
        await house.me.api.chat(title=title)
    go = asyncio.Event()

    async def slow(route: Route) -> None:
        await go.wait()
        await route.continue_()

    async with house.tab() as tab:
        await expect(tab.rows).to_have_count(2)
        await tab.page.route("**/api/chats?q=*", slow)
        search = tab.page.get_by_role("searchbox", name="Search chats")
        await search.fill("kyoto")
        await search.press("Enter")
        await expect(tab.rows).to_have_count(2)
        await expect(tab.page.locator("main.is-new")).to_be_visible()
        go.set()
        await expect(tab.page.get_by_role("heading", level=1)).to_have_text("Trip to Kyoto")


# -- what went in, and what went wrong ---------------------------------------------------------------------------------


@pytest.mark.rule("WO-15")
async def test_the_receipt_tells_the_numbers_of_its_reply(house: House) -> None:
    usage = Usage(input_tokens=1234, output_tokens=56, cached_tokens=617)
    house.will([Say("Here you are."), End(usage=usage)])
    async with house.tab() as tab:
        await tab.say("Give me a receipt")
        await tab.says("Here you are.")
        await tab.page.get_by_role("button", name="Receipt of this reply").click()
        drawer = tab.page.get_by_role("complementary", name="Receipt")
        nothing = "Nothing was used: there is nothing earlier to remember."
        for words in ("scripted", "First words", "In1,234", "Out56", "From cache617 · 50%", "Instructions", "Your message", nothing):
            await expect(drawer).to_contain_text(words)
        turn = (await house.me.api.messages(tab.chat))[-1]["turn_id"]
        receipt = await house.me.api.get(f"/api/chats/{tab.chat}/turns/{turn}/receipt")
        parts = [part for part in receipt["sections"] if part["tokens"]]
        await expect(drawer.locator(".token-row")).to_have_count(len(parts))
        await expect(drawer.locator(".token-row .num:not(.dim)")).to_have_text([f"{part['tokens']:,}" for part in parts])
        await tab.page.keyboard.press("Escape")
        await expect(drawer).to_be_hidden()


@pytest.mark.rule("WO-10", "RL-20")
@pytest.mark.parametrize("said", ["", "Half an ans"], ids=["before a word", "after some words"])
async def test_an_error_of_the_model_is_told_in_our_words_and_the_talk_goes_on(house: House, said: str) -> None:
    fault = Fail(ModelMisconfigured("401 sk-secret", excerpt="Incorrect API key sk-secret"))
    house.will([Say(said), fault] if said else fault, "Well again.", "Better.")
    async with house.tab() as tab:
        sentence = "The model is not set up correctly. The operator can see what to do."
        await tab.say("Hello?")
        await expect(tab.notices).to_have_text([sentence])
        await expect(tab.stop).to_be_hidden()
        await expect(tab.page.locator("body")).not_to_contain_text("sk-secret")
        await tab.restarted()
        await expect(tab.notices).to_have_text([sentence])
        await tab.page.get_by_role("button", name="Try again").click()
        await tab.says("Well again.")
        await expect(tab.page.get_by_text(sentence)).to_have_count(0)
        await tab.say("And now?")
        await tab.says("Well again.", "Better.")
        await expect(tab.asked).to_have_count(2)


@pytest.mark.rule("WO-10")
async def test_a_tool_that_is_used_is_told_while_it_works(house: House) -> None:
    go_on = asyncio.Event()
    house.will([Call("no_such_tool")], [Until(go_on), Say("Without it, then.")])
    async with house.tab() as tab:
        await tab.say("Use a tool")
        await expect(tab.page.locator(".message.is-growing")).to_contain_text("unknown tool · failed")
        go_on.set()
        await tab.says("Without it, then.")


@pytest.mark.rule("WO-10", "CH-63")
async def test_a_message_sent_while_an_answer_is_written_is_shown_once_and_answered(house: House) -> None:
    go_on = asyncio.Event()
    house.will([Say("One"), Until(go_on), Say(" first.")], "And two.")
    async with house.tab() as tab:
        await tab.say("/busy queue")
        await expect(tab.notices).to_have_count(1)
        await tab.say("First")
        await expect(tab.growing).to_have_text("One")
        await tab.say("Second")
        await expect(tab.page.locator(".message.is-user").last).to_contain_text("Waits for its turn")
        await tab.told("Queued, 1 ahead.")
        go_on.set()
        await tab.says("One first.", "And two.")
        await expect(tab.asked.filter(has_not_text="/busy")).to_have_text(["First", "Second"])
        await expect(tab.page.get_by_text("Waits for its turn")).to_have_count(0)
        order = await tab.page.locator(".message:not(.is-notice) :is(.bubble, .prose)").all_inner_texts()
        assert order[-4:] == ["First", "One first.", "Second", "And two."]
