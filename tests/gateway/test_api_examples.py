"""The shell examples of docs/http-api.md work as written, with the address of the test's gateway."""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
from pathlib import Path

import pytest

from agent.llm.scripted import ScriptedModel
from tests.harness import running

PAGE = Path(__file__).resolve().parents[2] / "docs" / "http-api.md"
EXAMPLES = re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
PRELUDE = 'set -eu\nyumegate() {{ "{python}" -m gateway "$@" --config "{config}"; }}\n'


SUBJECTS = ("/api/chats", "/api/memory", "/v1/")


def test_there_are_examples_for_the_chat_the_memory_and_openais_interface() -> None:
    found = [[subject for subject in SUBJECTS if subject in example] for example in EXAMPLES]
    assert found == [[subject] for subject in SUBJECTS]


@pytest.mark.rule("WO-50", "WO-51")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
@pytest.mark.parametrize(("example", "answers"), list(zip(EXAMPLES[::2], (3, 2), strict=True)), ids=["chat", "openai"])
async def test_an_example_works_as_written(example: str, answers: int, tmp_path: Path) -> None:
    """`answers`: how often the model's words are seen: streamed, and in the stored log."""
    said = await _said(example, tmp_path)
    assert '"error"' not in said
    assert said.count("門が開いた") >= answers, said


@pytest.mark.rule("WO-51", "WD-17")
@pytest.mark.skipif(shutil.which("curl") is None, reason="curl is not installed")
async def test_the_example_of_the_memory_works_as_written(tmp_path: Path) -> None:
    said = await _said(EXAMPLES[1], tmp_path)
    assert '"error"' not in said
    assert said.count("roses by the wall") == 2, said  # the old text, and what has changed since
    assert '<li dir="auto">they walked by the river</li>' in said.replace('\\"', '"')
    assert not (tmp_path / "workspace" / "knowledge" / "garden.md").exists()


async def _said(example: str, tmp_path: Path) -> str:
    async with running(tmp_path, ScriptedModel(lambda _: "門が開いた")) as gateway:
        here = example.replace("http://127.0.0.1:8420", gateway.url).replace("-m 10", "-m 2").replace(".venv/bin/yumegate", "yumegate")
        script = PRELUDE.format(python=sys.executable, config=gateway.config_path) + here
        shell = await asyncio.create_subprocess_exec("bash", "-c", script, cwd=PAGE.parents[1], stdout=-1, stderr=-1)
        said, faults = (text.decode() for text in await shell.communicate())
    assert shell.returncode == 0, faults
    return said
