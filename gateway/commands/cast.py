"""Commands about who answers in a chat, and who the person is in it (WO-40)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from gateway import cast_changes
from gateway.access import includes
from gateway.audit import Actor
from gateway.casting import MEMBERS_MAX
from gateway.commands.asked import Answer, Around, Asked
from gateway.config import Config
from memory import conversations

PERSONA_MAX = 2_000  # characters
YES = "yes"
DELETE = "delete"
_COMMAS = re.compile(r"[,、，;；]")


async def character(around: Around, asked: Asked) -> str | Answer:
    """Who answers here, and who else could; with names, parted by commas, those from now on. There are no subcommands: any word may be a name."""
    config = around.house.config()
    if not asked.rest:
        here = _here(config, asked)
        others = _names(config, [name for name in config.characters if name not in here]) or "–"
        return asked.say("character_list", name=_names(config, here), others=others)
    if asked.words[0].lower() == DELETE and named(config, asked.rest) is None:
        return await _delete(around, asked, asked.words[1:])
    found: list[str] = []
    for words in filter(str.strip, _COMMAS.split(asked.rest)):
        one = named(config, words)
        if one is None:
            return asked.say("character_unknown", name=words.strip(), others=_names(config, list(config.characters)))
        found.append(one)
    names = list(dict.fromkeys(found))
    if len(names) > MEMBERS_MAX:
        return asked.say("character_many", limit=MEMBERS_MAX)
    return await _set(around, asked, names) if names else asked.say("character_unknown", name=asked.rest, others="")


async def _delete(around: Around, asked: Asked, words: Sequence[str]) -> str | Answer:
    """`/character delete ID` says what deleting a character would move, `… yes` does it (SM-92). For admins: it touches rows of everybody."""
    line = f"{asked.line} {DELETE}"
    if not includes(asked.call.sender.role, "admin"):
        return asked.say("not_allowed", command=line, role="admin")
    if asked.in_group:
        return asked.say("only_private", command=line)
    config = around.house.config()
    wanted, confirmed = (words[0] if words else ""), [word.lower() for word in words[1:]] == [YES]
    if wanted in config.characters:
        return asked.say("character_there", name=wanted)
    gone = {each.id: each for each in await around.db.read(partial(cast_changes.removed, config=config))}
    found = gone.get(wanted)
    if found is None:
        waiting = ", ".join(each.id for each in gone.values() if each.waits) or "–"
        return asked.say("character_gone_list", names=waiting, command=line)
    counts = {"rows": found.counts.rows, "people": found.counts.people, "spaces": found.counts.space_rows}
    if not confirmed:
        command = f"{line} {wanted} {YES}"
        return asked.confirming(asked.say("character_delete_ask", name=found.name, command=command, **counts), ("button_go_on", command))
    by = Actor(id=asked.call.sender.id, address=asked.address)
    await around.db.write(partial(cast_changes.delete, config=config, by=by, character=wanted, now=asked.now))
    return asked.say("character_deleted", name=found.name, **counts)


async def persona(around: Around, asked: Asked) -> str:
    if asked.chat.kind == "challenge":
        return asked.say("challenge_persona")
    text = asked.rest[:PERSONA_MAX]
    if not text:
        return asked.say("persona_now", persona=asked.chat.persona) if asked.chat.persona else asked.say("persona_none")
    persona = "" if text == "-" else text
    await around.db.write(partial(conversations.change, conversation_id=asked.chat.id, persona=persona))
    return asked.say("persona_now", persona=persona) if persona else asked.say("persona_cleared")


def named(config: Config, words: str) -> str | None:
    """The id of the character that is called so: by its id, its name or an alias."""
    folded = words.strip().casefold()
    for name, each in config.characters.items():
        if folded in (name.casefold(), each.name.casefold(), *(alias.casefold() for alias in each.aliases)):
            return name
    return None


async def _set(around: Around, asked: Asked, names: Sequence[str]) -> str:
    if asked.chat.challenge:
        return asked.say("challenge_cast")
    if asked.chat.kind == "challenge" and len(names) > 1:
        return asked.say("error_challenge_one")
    several = list(names) if len(names) > 1 else None
    await around.db.write(partial(conversations.change, conversation_id=asked.chat.id, character=names[0], characters=several))
    key = "character_now_several" if several else "character_now"
    return asked.say(key, name=_names(around.house.config(), names))


def _here(config: Config, asked: Asked) -> list[str]:
    """Those of the chat that there still are; the default one otherwise."""
    return [name for name in asked.chat.members if name in config.characters] or ["default"]


def _names(config: Config, ids: Sequence[str]) -> str:
    return ", ".join(config.characters[name].name or name for name in ids)
