"""What the model is told about its memory, for the tools it has (WD-106). Part of the head, after character and persona (WD-6)."""

from __future__ import annotations

from collections.abc import Collection

from agent.prompt import words

_SINGLE = "memory_save"
_NEEDED = frozenset({"memory_search", "memory_get", "file_edit"})


def memory_words(tools: Collection[str]) -> str:
    """The instructions for a turn with tools of these names; empty for one that cannot both find and keep something.

    A single fact goes to `memory_save` where that tool is there, else to MEMORY.md: a tool that does not exist is never named (MD-11).
    """
    if not _NEEDED.issubset(tools):
        return ""
    return words("memory").replace("{single}", _SINGLE if _SINGLE in tools else "MEMORY.md (file_edit)")
