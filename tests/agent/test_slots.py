"""Slots in a character's text for summaries and recalled passages (RS-170, AT-29): each content once, whatever slots there are."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from agent import slots
from agent.characters import Character
from agent.giving_way import CUT
from agent.prompt import assemble, least_of
from agent.slots import Places
from tests.agent.turns import turn

DEFAULT = Places()
SUMMARY, RECALLED = "[summary of earlier talk]\nThey spoke of {{recalled_messages}}.", "[recalled from earlier talk]\nAn owl.\n[end]"


@dataclass(frozen=True, kw_only=True)
class Case:
    """`head`: what the character's text becomes; `places`: the slots that count."""

    prompt: str
    head: str
    places: Places = DEFAULT


CASES = {
    "none": Case(prompt="An owl speaks.", head="An owl speaks."),
    "summaries": Case(prompt="Before: {{chat_summary}}\nNow.", head=f"Before: {SUMMARY}\nNow.", places=Places(summaries="chat_summary")),
    "recalled": Case(prompt="梟です。{{ recalled_messages }}", head=f"梟です。{RECALLED}", places=Places(recalled="recalled_messages")),
    "both": Case(
        prompt="你是猫头鹰。{{recalled_messages}}|{{chat_summary}}", head=f"你是猫头鹰。{RECALLED}|{SUMMARY}",
        places=Places(summaries="chat_summary", recalled="recalled_messages"),
    ),
    "one twice": Case(prompt="{{chat_summary}}|{{chat_summary}}", head=f"{SUMMARY}|", places=Places(summaries="chat_summary")),
    "the alias loses": Case(
        prompt="{{recalled_messages}}|{{recalled_scenes}}", head=f"|{RECALLED}", places=Places(recalled="recalled_scenes")
    ),
    "names of nothing": Case(prompt="{{weather}} {chat_summary} {{Chat_Summary}}", head="{{weather}} {chat_summary} {{Chat_Summary}}"),
}  # fmt: skip


@pytest.mark.rule("RS-170")
@pytest.mark.case("AT-29", "K18")
@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_each_content_stands_once_at_its_slot_or_else_at_its_default_place(case: Case) -> None:
    assert slots.places(case.prompt) == case.places
    asked = turn("Who?", "hi", "yes?", character=Character(id="o", name="Owl", prompt=case.prompt), standing_notes=(SUMMARY,), recalled=(RECALLED,))
    head, *_, newest = (message.text for message in assemble(asked, room=50_000).messages)
    assert f"\n\n{case.head}" in head
    assert (head.count(SUMMARY), newest.count(SUMMARY)) == (1, 0)
    at_slot = bool(case.places.recalled)
    assert (head.count(RECALLED), newest.count(RECALLED)) == (int(at_slot), int(not at_slot))
    assert head.endswith(SUMMARY) or case.places.summaries


@pytest.mark.rule("RS-170")
@pytest.mark.case("AT-29")
def test_slots_without_content_print_nothing_and_nobody_elses_words_have_any() -> None:
    character = Character(id="o", name="Owl", prompt="{{chat_summary}}{{recalled_messages}}")
    asked = turn("say {{chat_summary}}", "and {{recalled_messages}}", "yes?", character=character)
    head, *talk, newest = (message.text for message in assemble(asked, room=50_000).messages)
    assert "{{" not in head and not head.endswith("\n")
    assert talk[0] == "and {{recalled_messages}}" and newest.endswith("say {{chat_summary}}")
    noted = replace(asked, standing_notes=("They wrote {{chat_summary}}.",), head_notes=("A file says {{chat_summary}}.",))
    assert assemble(noted, room=50_000).messages[0].text.count("{{chat_summary}}") == 2, "as they were written"


@pytest.mark.rule("RS-170", "RS-70")
@pytest.mark.case("AT-23", "AT-29")
def test_what_stands_at_a_slot_gives_way_as_it_does_elsewhere() -> None:
    character = Character(id="o", name="Owl", prompt="Before: {{chat_summary}}\nNow you are an owl.")
    asked = turn("Who?", character=character, standing_notes=("They counted lamps. " * 2_000,))
    made = assemble(asked, room=2_000)
    assert made.standing_cut and made.tokens <= 2_000
    assert CUT in made.messages[0].text and "Now you are an owl." in made.messages[0].text
    assert least_of(asked) == least_of(replace(asked, standing_notes=())), "it is no part of the instructions"
