"""A CowAgent folder used in place (WD-24, WD-25, WD-28): which of its files plays which role. Data, and no reading.

Its `MEMORY.md`, `memory/`, `memory/dreams/` and `knowledge/` bear our names and are read as ours. Nothing is renamed; a role that one of its files
plays is written back into that file.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

SIGN = "AGENT.md"
"""The file that tells such a folder from others."""

USUAL_FOLDER = "cow"
"""Where it keeps its workspace, below the person's home, unless told otherwise."""

NAMES: Mapping[str, str] = {"AGENT.md": "system.md", "USER.md": "user.md"}
"""Its name -> ours. Where both exist ours wins (WD-21, WD-24)."""

RULES = "RULE.md"
"""Read after `user.md`, in the owner's scope only."""

LEFT_ALONE = frozenset({"BOOTSTRAP.md", "memory/evolution", "memory/.evolution_backups", "memory/users", "memory/long-term", "skills", "tmp"})
"""Neither loaded nor indexed nor changed; nor are its database and its key file, which are hidden or no Markdown."""


def is_folder(names: Collection[str]) -> bool:
    """Whether `names`, those of the files in a workspace, are a CowAgent folder's."""
    return SIGN in names


def is_left_alone(path: str) -> bool:
    return any(path == name or path.startswith(f"{name}/") for name in LEFT_ALONE)
