"""docs/configuration.md and config.json.example, made from the tree (WO-33). `python -m gateway.config.docs` writes both; tests compare them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from gateway.config import Config, masked
from gateway.config.walk import ENTRY, Leaf, dotted, leaves

_HEAD = ("| key | takes | default | range | what it does | applies |", "|---|---|---|---|---|---|")
EXAMPLE = "config.json.example"
PAGE = "docs/configuration.md"

_INTRO = """# Configuration

Made from `gateway/config/` by `python -m gateway.config.docs`; edit the descriptions there.

Everything is set in one file, `config.json`. Every key may be left out; `config.json.example` shows them all with their defaults. The file is
read, never written. `yumegate check` lists all faults at once, each with line, column and key, and fails if there is any, an unknown key included.

- **Form.** JSON in UTF-8 (a byte order mark is fine, UTF-16 with one too). Comments, trailing commas, duplicate keys and `NaN` are refused.
  Types are strict: `"8080"` is not a number, `700666` is not a text. Sizes are bytes, times seconds, unless the key says otherwise.
- **Secrets.** `${NAME}` in any text is replaced by the environment variable `NAME`, else by a line `NAME=value` of `secrets.env` in the same
  folder (mode 0600). A variable that is missing is a fault. `$${NAME}` stands for the signs themselves.
- **Paths.** `~` and `$NAME` are expanded; a relative path counts from the folder of `config.json`.
- **Changes** apply while the gateway runs, section by section, unless the last column says `restart`. A file with an error changes nothing: the
  gateway goes on with what it has and shows the fault.
- **At a start** an unknown key is ignored with a warning, a fault inside one channel's section switches that channel off, and any other fault
  ends the start with exit code 78.
- **0** means off, unlimited or unknown where the description says so; a negative number is always refused.
- **Ids.** `<ID>` is a name of your own: 1 to 64 letters, digits, `_`, `.`, `-`.
"""


def render() -> str:
    """The page: one table for each section, one row for each key."""
    groups: dict[str, list[str]] = {}
    for leaf in leaves():
        groups.setdefault(_group(leaf), []).append(_row(leaf))
    tables = ("\n".join((f"## {name}\n", *_HEAD, *rows)) for name, rows in groups.items())
    return "\n\n".join((_INTRO.rstrip(), *tables)) + "\n"


def example() -> str:
    """The file with every key at its default."""
    return json.dumps(masked(Config()), indent=2, ensure_ascii=False) + "\n"


def documented() -> Iterator[str]:
    """Every key of the page, as its first column has it."""
    return (dotted(leaf.path) for leaf in leaves())


def _group(leaf: Leaf) -> str:
    depth = 2 if leaf.path[0] in ("channels", "policies", "characters") else 1
    return f"`{dotted(leaf.path[:depth])}`" if len(leaf.path) > 1 else "General"


def _row(leaf: Leaf) -> str:
    spot = leaf.spot
    takes = f"an object of ids, each with the keys of `{spot.same_as}`" if spot.same_as else spot.what()
    what = spot.description or f"One {ENTRY} each."
    cells = (f"`{dotted(leaf.path)}`", takes, _default(leaf.default), spot.limits(), what, "restart" if spot.needs_restart else "live")
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |"


def _default(value: object) -> str:
    if isinstance(value, Path):
        value = "" if value == Path() else str(value)
    elif hasattr(value, "get_secret_value"):
        value = ""
    return f"`{json.dumps(value, ensure_ascii=False)}`"


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent.parent
    (root / EXAMPLE).write_text(example(), encoding="utf-8")
    (root / PAGE).write_text(render(), encoding="utf-8")
