"""Keys of saved memories that types alone do not settle: the floor of an embedder, and the one switch of the environment (SM-33, SM-97)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gateway.config import Config
from gateway.config.load import EXIT_CONFIG, load
from gateway.saved.turn import limits_of
from gateway.wiring.saved import search_settings


def loaded(folder: Path, text: str = "{}", **env: str) -> Any:
    (folder / "config.json").write_text(text)
    return load(folder / "config.json", env)


@pytest.mark.rule("SM-97")
@pytest.mark.parametrize(
    ("value", "ageing"),
    [
        (None, True), ("", True), ("true", True), ("1", True), ("Yes", True), ("ON", True), ("false", False), ("0", False), ("NO", False),
        ("Off", False), (" off ", False),
    ],
)  # fmt: skip
def test_the_environment_switches_ageing_off(tmp_path: Path, value: str | None, ageing: bool) -> None:
    env = {} if value is None else {"MEMORY_DECAY_ENABLED": value}
    assert loaded(tmp_path, **env).config.saved.ageing is ageing


@pytest.mark.rule("SM-97")
@pytest.mark.parametrize("value", ["maybe", "2", "disabled", "オフ", "关"])
def test_any_other_word_stops_the_start(tmp_path: Path, value: str) -> None:
    found = loaded(tmp_path, MEMORY_DECAY_ENABLED=value)
    assert found.config is None and EXIT_CONFIG == 78
    assert any("MEMORY_DECAY_ENABLED" in str(fault) and "true or false" in str(fault) for fault in found.faults)
    assert not any(value in str(fault) for fault in found.faults), "a value of the environment is not repeated"


@pytest.mark.rule("SM-97")
def test_the_environment_goes_before_the_file(tmp_path: Path) -> None:
    assert loaded(tmp_path, '{"saved": {"ageing": false}}', MEMORY_DECAY_ENABLED="on").config.saved.ageing
    assert not loaded(tmp_path, '{"saved": {"ageing": true}}', MEMORY_DECAY_ENABLED="off").config.saved.ageing
    assert loaded(tmp_path, '{"saved": 5}', MEMORY_DECAY_ENABLED="off").config is None


@pytest.mark.rule("SM-33")
def test_a_bare_floor_for_every_embedder_is_refused_and_one_for_a_named_one_is_taken(tmp_path: Path) -> None:
    refused = loaded(tmp_path, '{"saved": {"match_floor": 0.8}}')
    assert refused.config is None and any("for each embedder" in str(fault) for fault in refused.faults)
    taken = loaded(tmp_path, '{"saved": {"match_floor": {"e5": 0.8}}}').config
    assert search_settings(taken).match_floor == {"e5": 0.8}
    assert search_settings(Config()).match_floor == {}


@pytest.mark.rule("SM-2", "SM-3")
def test_the_defaults_are_those_of_the_rules() -> None:
    saved, limits = Config().saved, limits_of(Config())
    assert (limits.unpinned, limits.pinned, limits.content) == (100, 20, 500)
    assert (saved.dormant_after_days, saved.matches_max, saved.recent_days, saved.participants_max) == (7, 3, 7, 8)
    assert (saved.deep_ops_max, saved.deep_min_messages, saved.tool_ops_max, saved.tags_max, saved.journal_days) == (5, 20, 10, 5, 30)
    assert (saved.query_min_chars, saved.query_min_chars_cjk, saved.query_max_chars, saved.match_floor_percentile) == (3, 2, 1000, 60)
    assert (saved.generate_drafts_max, saved.from_chat_drafts_max, saved.match_floor) == (20, 5, "auto")
