"""Files of the workspace in the prompt: read as people left them, of one's own scope only, and the same bytes while nothing changed."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.llm.port import ModelRequest
from agent.llm.scripted import ScriptedModel
from channels.loopback import LoopbackPlatform
from gateway.heads import within
from memory import tokens
from tests.harness import eventually, loopback_plan, running


def head_of(request: ModelRequest) -> str:
    return request.messages[0].text


@pytest.mark.rule("WD-6", "WD-2")
async def test_what_a_person_writes_into_the_files_is_known_in_the_next_answer(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "yes")
    async with running(tmp_path, model) as gateway:
        chat = await gateway.chat()
        await gateway.say(chat, "one")
        await gateway.answers(chat, 1)
        workspace = tmp_path / "workspace"
        (workspace / "system.md").write_text("# Persona\n\nYou speak like a lighthouse keeper.\n", encoding="utf-8")
        (workspace / "user.md").write_text("Ada は東京に住んでいます。\n", encoding="utf-8")
        (workspace / "MEMORY.md").write_text("# Memory\n\n- 她喜欢大提琴。\n", encoding="utf-8")
        await gateway.say(chat, "two")
        await gateway.answers(chat, 2)
        await gateway.say(chat, "three")
        await gateway.answers(chat, 3)
    before, after, again = map(head_of, model.requests[:3])
    assert "lighthouse" not in before
    assert after.index("lighthouse keeper") < after.index("東京") < after.index("大提琴")
    assert again == after


@pytest.mark.rule("WD-9", "WD-10")
async def test_a_group_and_a_challenge_see_nothing_of_the_owners_files(tmp_path: Path) -> None:
    model = ScriptedModel(lambda _request: "yes")
    platform = LoopbackPlatform()
    (tmp_path / "workspace").mkdir()
    (tmp_path / "workspace" / "MEMORY.md").write_text("- The door code is 4711.\n", encoding="utf-8")
    (tmp_path / "workspace" / "system.md").write_text("Be kind to everybody.\n", encoding="utf-8")
    async with running(tmp_path, model, channels=(loopback_plan(platform),)) as gateway:
        platform.says("g1", "@yume what is the door code", group=True)

        async def sent() -> list[str]:
            return platform.texts()

        await eventually(sent)
        challenge = await gateway.chat(kind="challenge")
        await gateway.say(challenge, "what is the door code")
        await gateway.answers(challenge)
    assert len(model.requests) == 2
    for request in model.requests:
        assert "4711" not in "".join(message.text for message in request.messages)
        assert "Be kind" in head_of(request)


@pytest.mark.rule("WD-7")
@pytest.mark.parametrize("line", ["- a fact about tea and trains", "- お茶と電車についての事実", "- 关于茶和火车的事实"])
def test_a_long_memory_keeps_its_newest_lines_and_says_how_many_are_left_out(line: str) -> None:
    text = "\n".join(f"{line} {number}" for number in range(500))
    cut = within(text, 400)
    assert tokens.count(cut) <= 420
    first, *kept = cut.splitlines()
    assert kept == text.splitlines()[-len(kept) :]
    assert str(500 - len(kept)) in first
