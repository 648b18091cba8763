"""Saved memories out and in again (SM-91)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import pytest

from memory.database import Database
from memory.saved import transfer
from memory.saved.rows import ListKey
from memory.saved.transfer import Fault, ImportRefused, Mode, NotAnExport, Preview, Reason, Wish
from tests.conftest import FakeClock
from tests.memory.saved.stage import ANN, BOB, DEN, GLOBAL, MINE, PLACE, SMALL, YUKI, Stage


@pytest.fixture
def stage(database: Database, clock: FakeClock) -> Stage:
    return Stage.of(database, clock)


def exported(stage: Stage, *keys: ListKey) -> str:
    return stage.do(lambda connection: transfer.export(connection, keys, stage.clock()))


def bring_in(stage: Stage, text: str, targets: Mapping[int, ListKey], **more: Any) -> Preview:
    wish = Wish(document=transfer.parse(text), targets=targets, **more)
    shown = stage.do(lambda connection: transfer.preview(connection, wish, limits=SMALL))
    done = stage.do(lambda connection: transfer.bring_in(connection, wish, stage.clock(), by=ANN, limits=SMALL))
    assert done == shown
    return done


def document(*rows: str, kind: str = "character", **more: Any) -> str:
    at = "2026-01-02T03:04:05+00:00"
    listed = [{"content": row, "created_at": at, "updated_at": at, **more} for row in rows]
    lists = [{"kind": kind, "owner": "elsewhere", "character": "yuki", "character_name": "雪", "rows": listed}]
    return json.dumps({"format": "yumegate-memories", "version": 1, "exported_at": at, "lists": lists})


@pytest.mark.rule("SM-91")
def test_what_goes_out_comes_in_unprotected_unpinned_active_and_private_with_its_dates(stage: Stage) -> None:
    stage.add("likes tea 🍵")
    pinned = stage.add("誕生日は五月三日", pinned=True).memory
    assert pinned is not None
    stage.sleep(stage.rows(MINE)[0].id)
    text = exported(stage, MINE, GLOBAL)
    assert "誕生日は五月三日" in text
    assert "vector" not in text
    before = stage.rows(MINE)
    for memory in before:
        stage.remove(memory.id)
    stage.clock.advance(days=3)
    done = bring_in(stage, text, {0: MINE})
    assert (done.new, done.standing, done.replaced, done.left_out) == (2, 0, 0, (1,))
    for old, new in zip(before, stage.rows(MINE), strict=True):
        assert (new.content, new.created_at, new.updated_at) == (old.content, old.created_at, old.updated_at)
        assert (new.pinned, new.protected, new.dormant, new.unused_days, new.last_matched_at) == (False, False, False, 0, None)
        assert (new.origin, new.author_kind, new.author_id, new.private_origin) == ("import", "person", ANN, True)
        assert new.last_tick_day == stage.clock().date()


@pytest.mark.rule("SM-91")
def test_ones_own_backup_keeps_its_pins_by_choice(stage: Stage) -> None:
    stage.add("a pin", pinned=True)
    text = exported(stage, MINE)
    stage.remove(stage.rows(MINE)[0].id)
    bring_in(stage, text, {0: MINE}, keep_pins=True)
    assert [(memory.pinned, memory.protected) for memory in stage.rows(MINE)] == [(True, True)]


@pytest.mark.rule("SM-91")
def test_dates_to_come_are_now(stage: Stage) -> None:
    later = (stage.clock() + timedelta(days=9)).isoformat()
    bring_in(stage, document("a", updated_at=later, created_at=later), {0: MINE})
    assert stage.rows(MINE)[0].updated_at == stage.rows(MINE)[0].created_at == stage.clock()


@pytest.mark.rule("SM-91", "SM-4")
def test_a_merge_adds_what_is_new(stage: Stage) -> None:
    stage.add("likes tea")
    done = bring_in(stage, document("Likes  TEA", "likes cake", "likes cake"), {0: MINE})
    assert (done.new, done.standing) == (1, 2)
    assert stage.texts() == ["likes tea", "likes cake"]


@pytest.mark.rule("SM-91")
def test_a_replacement_spares_pins_and_is_one_transaction(stage: Stage) -> None:
    stage.fill()
    stage.add("a pin", pinned=True)
    stage.save("of the ai", GLOBAL)
    done = bring_in(stage, document("one", "two", "a pin"), {0: MINE}, mode=Mode.REPLACE)
    assert (done.new, done.standing, done.replaced) == (2, 1, 4)
    assert stage.texts() == ["a pin", "one", "two"]
    assert stage.texts(GLOBAL) == ["of the ai"]
    with pytest.raises(ImportRefused):
        bring_in(stage, document("1", "2", "3", "4", "5"), {0: MINE}, mode=Mode.REPLACE)
    assert stage.texts() == ["a pin", "one", "two"]


@pytest.mark.rule("SM-91", "SM-3", "SM-49")
def test_over_a_cap_or_too_long_nothing_comes_and_the_rows_are_named(stage: Stage) -> None:
    stage.fill()  # all asleep, but an import evicts none
    stage.remove(stage.rows(MINE)[0].id)
    with pytest.raises(ImportRefused) as refused:
        bring_in(stage, document("fits", "x" * 501, " ", "too many"), {0: MINE})
    assert refused.value.preview.faults == (Fault(0, 1, Reason.TOO_LONG), Fault(0, 2, Reason.EMPTY), Fault(0, 3, Reason.FULL))
    with pytest.raises(ImportRefused) as refused:
        bring_in(stage, document("1", "2", "3", pinned=True), {0: MINE}, keep_pins=True)
    assert refused.value.preview.faults == (Fault(0, 2, Reason.PINS_FULL),)
    assert len(stage.rows(MINE)) == 3


@pytest.mark.rule("SM-91")
def test_between_a_space_and_a_person_rows_go_only_after_a_warning(stage: Stage) -> None:
    for text, key in ((document("of the place", kind="space"), MINE), (document("of mine"), PLACE)):
        with pytest.raises(ImportRefused) as refused:
            bring_in(stage, text, {0: key})
        assert refused.value.preview.crosses
        assert stage.rows(key) == []
        bring_in(stage, text, {0: key}, agreed_to_cross=True)
    assert [memory.private_origin for memory in stage.rows(MINE, PLACE)] == [True, False]


@pytest.mark.rule("SM-91")
def test_lists_of_unknown_characters_and_of_spaces_of_others_wait_for_a_choice(stage: Stage) -> None:
    stage.add("a")
    stage.add("b", GLOBAL)
    stage.add("c", PLACE)
    read = transfer.parse(exported(stage, MINE, GLOBAL, PLACE).replace('"yuki"', '"gone"', 1))

    def targets(person: str, spaces: tuple[str, ...]) -> dict[int, ListKey]:
        return stage.do(lambda connection: transfer.targets_of(connection, read, person=person, spaces=spaces))

    assert targets(ANN, (DEN,)) == {1: GLOBAL, 2: PLACE}
    assert targets(BOB, ()) == {1: ListKey(GLOBAL.kind, BOB)}
    known = transfer.parse(document("a"))
    assert stage.do(lambda connection: transfer.targets_of(connection, known, person=ANN)) == {0: MINE}
    assert MINE.character == YUKI


@pytest.mark.rule("SM-91")
@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("no json", "no export of saved memories"),
        ("[]", "no export of saved memories"),
        ('{"format": "something", "version": 1, "exported_at": "2026-01-02T03:04:05Z"}', "format does not fit"),
        ('{"format": "yumegate-memories", "version": 2, "exported_at": "2026-01-02T03:04:05Z"}', "version 2"),
        (document("a").replace("+00:00", ""), "created_at"),
    ],
)
def test_another_file_is_refused_with_what_is_wrong(text: str, says: str) -> None:
    with pytest.raises(NotAnExport, match=says):
        transfer.parse(text)
