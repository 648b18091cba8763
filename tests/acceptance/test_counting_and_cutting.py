"""Counting twelve scripts against a provider's tokenizer, and cutting at every place without breaking a sign in two (AT-24, AT-25).

`token_counts.json`: twenty times each text, in tokens of `o200k_base`, counted once with the tokenizer itself.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import regex

from agent.characters import Character
from agent.giving_way import CUT
from agent.llm.calibration import Calibration
from agent.llm.port import Role
from agent.prompt import assemble, room_for_prompt
from agent.turn import Said, Turn
from gateway.config import Config
from memory import tokens
from memory.extract import Words, extract
from memory.recall import answers, block
from memory.recall.block import Passage
from memory.recall.chunks import Spoken

COUNTED = json.loads((Path(__file__).parent / "token_counts.json").read_text(encoding="utf-8"))
STATED = {"Arabic": 0.7, "Hindi": 0.75, "Thai": 0.95}  # their start values (WD-41) are above this tokenizer: prompts are smaller until it is learned
NOW = datetime(2026, 3, 8, 12, tzinfo=UTC)


@pytest.mark.rule("RS-172", "WD-41")
@pytest.mark.case("AT-24", "K36")
@pytest.mark.parametrize("script", COUNTED)
def test_the_count_of_each_script_is_near_the_providers_at_first_and_nearer_after_twenty_calls(script: str) -> None:
    text, real = COUNTED[script]["text"] * 20, COUNTED[script]["tokens"]
    counted, learned = tokens.count(text), Calibration()
    assert -0.2 <= counted / real - 1 <= STATED.get(script, 0.6)
    for _ in range(20):
        learned.learn("model", counted=counted, reported=real)
    assert -0.05 <= counted * learned.factor("model") / real - 1 <= 0.35


@pytest.mark.rule("RS-63", "RS-172", "WD-38")
@pytest.mark.case("AT-24")
@pytest.mark.parametrize("context", [2_048, 16_384])
@pytest.mark.parametrize("script", COUNTED)
def test_a_full_prompt_is_never_above_the_models_context(script: str, context: int) -> None:
    text, real = COUNTED[script]["text"], COUNTED[script]["tokens"] / 20
    history = tuple(Said(text=text * 3, by_us=n % 2 == 1) for n in range(1 + 2 * context // tokens.count(text * 3)))
    turn = Turn(character=Character(id="c", name="Yume"), newest=Said(text=text, by_us=False), now=NOW, zone="UTC", history=history)
    room = room_for_prompt(context, Config().agent_max_context_tokens)
    prompt = assemble(turn, room=room)
    assert prompt.tokens <= room
    assert prompt.left_out
    sent = "".join(message.text for message in prompt.messages if message.role is not Role.SYSTEM)
    head = sum(tokens.count(message.text) for message in prompt.messages if message.role is Role.SYSTEM)
    assert head + sent.count(text) * real + tokens.MESSAGE_TOKENS * len(prompt.messages) <= context


SIGNS = ("👨‍👩‍👧‍👦", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🇯🇵", "👍🏽", "❤️", "🤷🏿‍♀️", "é", "𠮷", "𰻝", "か゚", "葛󠄀", "นี้", "각")


def whole(text: str) -> set[str]:
    return set(regex.findall(r"\X", text))


@pytest.mark.rule("RS-171")
@pytest.mark.case("AT-25", "K32")
@pytest.mark.parametrize("sign", SIGNS)
def test_no_cut_anywhere_breaks_a_sign(sign: str) -> None:
    for shift in range(7):
        text = "x" * shift + sign * 600
        allowed = whole(text) | whole(CUT) | {"…"}
        cut = [piece.text for piece in answers.pieces([text], 120)]
        cut += [item.text for item in extract([Words(id="m", speaker="", text=text, by_person=True)])]
        said = [spoken(n, text) for n in range(5)]
        cut += [each.text for each in quoted(said)]
        newest = Said(text=text, by_us=False)
        prompt = assemble(Turn(character=Character(id="c", name="Yume"), newest=newest, now=NOW, zone="UTC"), room=300 + shift)
        assert prompt.shortened
        assert CUT.strip() in prompt.messages[-1].text, "a cut is marked"
        cut.append(prompt.messages[-1].text.rpartition("[end of notes]")[2].strip())
        for piece in cut:
            piece.encode("utf-8")
            assert whole(piece.replace(":", "").replace(" ", "")) <= allowed | {"\n"}, (sign, shift)


def spoken(n: int, text: str) -> Spoken:
    return Spoken(seq=n + 1, id=f"m{n}", at=NOW + timedelta(minutes=n), speaker="", text=text, fingerprint="f")


def quoted(said: list[Spoken]) -> list[Spoken]:
    """A passage is cut between messages: each is whole or left out."""
    found = block.excerpts([Passage(chunk_id=1, chat="c", messages=tuple(said), best=2)], 10_000)
    return [message for quote in found for message in quote.messages]
