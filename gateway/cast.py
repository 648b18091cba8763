"""The characters of the configuration as the agent knows them (WO-40)."""

from __future__ import annotations

from agent.characters import Character
from gateway.config import DEFAULT_CHARACTER, Config


def character_of(config: Config, name: str) -> Character:
    """The character called `name`, or the default one when the configuration has it no more."""
    found = name if name in config.characters else DEFAULT_CHARACTER
    chosen = config.characters[found]
    return Character(
        id=found,
        name=chosen.name or found,
        aliases=tuple(chosen.aliases),
        prompt=chosen.prompt,
        attributes=chosen.attributes,
        model=chosen.model,
        profile=chosen.profile,
    )
