"""What `/memory search` lists when meaning is compared too: what fits, and beside it little of what does not (WD-102, RS-174)."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent.llm.scripted import ScriptedModel
from memory.embedders.hashed import hash_embedder
from tests.harness import Running, eventually, running

CASES = {
    "en": ("the heron Otto", "Heron number {n} is called Otto.", "The nearest else:", "Could somebody repair bicycles?"),
    "ja": ("オットーの名前", "サギの名前はオットー{n}です。", "ほかに近いもの：", "自転車はどこ？"),
    "zh": ("苍鹭奥托", "苍鹭的名字叫奥托{n}。", "其他最接近的：", "电脑坏掉了吗？"),
}
OTHERS = ("Plums are cut in March.", "梅の木は三月に切る。", "梅树在三月修剪。", "Boats sleep.", "舟は眠る。")


async def listed(gateway: Running, chat: str, words: str) -> list[str]:
    before = len(await gateway.messages(chat))
    await gateway.say(chat, f"/memory search {words}")

    async def answered() -> str:
        said = (await gateway.messages(chat))[before:]
        return said[-1]["text"] if said and said[-1]["role"] != "user" else ""

    return (await eventually(answered)).splitlines()


@pytest.mark.rule("WD-102", "RS-174")
@pytest.mark.parametrize("language", CASES)
@pytest.mark.parametrize("fitting", [1, 5])
async def test_finds_that_do_not_fit_stand_apart_and_make_no_list_longer_than_three(tmp_path: Path, language: str, fitting: int) -> None:
    words, text, apart, unrelated = CASES[language]
    pages = tmp_path / "workspace" / "knowledge"
    pages.mkdir(parents=True)
    written = (*(text.format(n=n) for n in range(fitting)), *OTHERS)
    for n, line in enumerate(written):
        (pages / f"p{n}.md").write_text(f"{line}\n", encoding="utf-8")
    async with running(tmp_path, ScriptedModel(lambda _: "Noted."), embedder=lambda _: hash_embedder(256)) as gateway:
        async with gateway.http.patch(f"{gateway.url}/api/me", json={"language": language}) as done:
            assert done.status == 200

        async def read() -> bool:
            index = (await gateway.get("/api/memory/status"))["index"]
            return index["vectors"] == "ok" and index["files"] >= len(written)

        chat = await gateway.chat()
        await listed(gateway, chat, words)  # the first question makes a scope be read
        await eventually(read)
        said = await listed(gateway, chat, words)
        assert (apart in said) is (fitting < 3)
        assert len(said) == (4 if fitting < 3 else fitting)
        assert all(text[:6] in line for line in said[:fitting])
        nothing = await listed(gateway, chat, unrelated)
        assert nothing[0] == apart and len(nothing) == 4
