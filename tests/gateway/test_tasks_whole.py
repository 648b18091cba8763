"""Tasks through the whole gateway: a model sets one by its tool, commands show and run it, and the talk knows what it said."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.llm.port import ModelRequest, Role
from agent.llm.scripted import Call, Reply
from tests.talks import model, talk


def reply(request: ModelRequest) -> Reply:
    if request.messages[-1].role is Role.TOOL:
        return f"Done. {request.messages[-1].text}"
    if "remind me" in request.messages[-1].text:
        return Call("task_create", {"text": "take the pills", "when": "0 9 * * mon-fri"})
    return "ok"


@pytest.mark.rule("WD-132", "WD-138")
@pytest.mark.case("SC-16", "N30")
async def test_a_reminder_is_set_shown_run_by_hand_and_known_to_the_talk(tmp_path: Path) -> None:
    async with talk(tmp_path, model(reply)) as house:
        house.says("remind me of the pills on workdays at nine")
        (told,) = await house.shown(1)
        assert "every Monday to Friday at 09:00 (UTC)" in told
        house.says("/tasks")
        listed = (await house.shown(2))[1]
        number = listed.splitlines()[1].partition(".")[0]
        assert "take the pills" in listed
        house.says(f"/tasks run {number}")
        await house.until(lambda: "take the pills" in house.texts())
        await house.until(lambda: len(house.texts()) == 4)
        house.says("what did you just say")
        await house.shown(5)
        asked = "\n".join(message.text for message in house.requests[-1].messages)
        assert "(sent by a scheduled task) take the pills" in asked
        assert "/tasks" not in asked
