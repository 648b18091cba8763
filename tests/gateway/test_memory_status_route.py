from __future__ import annotations

from pathlib import Path

import pytest

from agent.llm.scripted import ScriptedModel
from tests.harness import running


@pytest.mark.rule("WD-7", "WD-23")
async def test_the_page_learns_how_full_a_memory_is_and_what_cannot_be_read(tmp_path: Path) -> None:
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / "MEMORY.md").write_text("- 住在杭州\n- お茶が好き\n", encoding="utf-8")
    (workspace / "user.md").write_bytes(b"\xff\xfe\x00broken")
    async with running(tmp_path, ScriptedModel(lambda _request: "yes")) as gateway:
        seen = await gateway.get("/api/memory/status")
        async with gateway.http.get(f"{gateway.url}/api/memory/status?scope=people/p-aaaaaaaaaa") as other:
            assert other.status == 404
    assert seen["scope"] == "root"
    assert seen["curated"]["lines"] == seen["curated"]["yours"] == 2
    assert 0 < seen["curated"]["tokens"] < seen["curated"]["max_tokens"] == 4000
    assert [problem["path"] for problem in seen["problems"]] == ["user.md"]
    assert seen["index"]["vectors"] == "off"
