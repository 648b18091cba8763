"""`docs/acceptance.md` names tests that exist, for every acceptance test and every complaint."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
PAGE = ROOT / "docs" / "acceptance.md"
NOT_BUILT = {"K29", "K30"}  # of scenes


@cache
def names(path: str) -> frozenset[str]:
    """The tests of a file; none when it is not there."""
    file = ROOT / path
    body = ast.parse(file.read_text(encoding="utf-8")).body if file.is_file() else []
    return frozenset(each.name for each in body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef) and each.name.startswith("test_"))


def rows() -> dict[str, str]:
    """The last cell of each row, by its id."""
    found = re.findall(r"^\| (AT-\d+|K\d+) \|.*\| ([^|]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert len(found) == len({name for name, _ in found}), "an id stands twice"
    return dict(found)


def test_every_acceptance_test_and_every_complaint_has_a_row() -> None:
    assert {f"AT-{n}" for n in range(1, 35)} | {f"K{n}" for n in range(1, 41)} <= set(rows())


def test_every_test_that_the_table_names_exists() -> None:
    table = rows()
    for name, cell in table.items():
        tests = re.findall(r"`([^`]+)::([^`]+)`", cell)
        assert [f"{path}::{test}" for path, test in tests if test not in names(path)] == [], name
        others = re.findall(r"AT-\d+", cell)
        assert set(others) <= set(table), name
        assert tests or others or name in NOT_BUILT, f"{name} has no test"
