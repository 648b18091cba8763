"""`/memory learn`, `privacy`, `share` and `blacklist`: the switches over saved memories (SM-13 to SM-15, SM-87).

In a private chat they are the person's own; in a group a manager sets those of the group.
"""

from __future__ import annotations

from functools import partial

import sqlalchemy as sa

from gateway import memory_switches
from gateway.audit import Actor
from gateway.commands.asked import Around, Asked
from gateway.commands.cast import named
from gateway.commands.company import meant, whom
from gateway.memory_switches import Flip
from memory.saved.lists import Privacy

WORDS = {"on": True, "off": False}
LEVELS = {Privacy.NORMAL: "privacy_normal", Privacy.PARTIAL: "privacy_partial", Privacy.FULL: "privacy_full"}


async def learn(around: Around, asked: Asked) -> str:
    """`learn` says how it stands, `learn on|off [NAME]` flips both bits, without a name for every character of this chat."""
    if asked.chat.kind == "challenge":
        return asked.say("memory_challenge")
    config = around.house.config()
    word, _, name = asked.rest.partition(" ")
    on = WORDS.get(word.lower())
    if word and on is None:
        return asked.say("learn_usage", command=asked.line)
    meant_one = named(config, name) if name.strip() else ""
    if meant_one is None:
        return asked.say("character_unknown", name=name, others=", ".join(each.name or key for key, each in config.characters.items()))
    chosen = [meant_one] if meant_one else [each for each in asked.chat.members if each in config.characters] or ["default"]
    space, person = asked.chat.space_id, asked.call.sender.id

    def work(connection: sa.Connection) -> list[tuple[str, bool]]:
        if on is not None:
            flips = {each: Flip(learn=on, use=on) for each in chosen}
            if space is None:
                memory_switches.flip(connection, config, person, flips, asked.now)
            else:
                by = Actor(id=person, address=asked.address)
                memory_switches.flip_space(connection, config, by, space, flips, asked.now)
        if space is None:
            rows = memory_switches.own(connection, config, person, asked.now).characters
        else:
            found = memory_switches.of_space(connection, config, space, asked.now)
            rows = found.characters if found else ()
        return [(each.name, each.learning.learn and each.learning.use) for each in rows if on is None or each.character in chosen]

    switched_on, switched_off = ("learn_on", "learn_off") if space is None else ("learn_space_on", "learn_space_off")
    return "\n".join(asked.say(switched_on if each_on else switched_off, name=name) for name, each_on in await around.db.write(work))


async def privacy(around: Around, asked: Asked) -> str:
    word, person = asked.rest.lower(), asked.call.sender.id
    if word and word not in list(Privacy):
        return asked.say("privacy_usage", command=asked.line)
    if word:
        await around.db.write(partial(memory_switches.set_privacy, person=person, level=Privacy(word)))
    found = await around.db.write(partial(memory_switches.own, config=around.house.config(), person=person, now=asked.now))
    return asked.say(LEVELS[found.privacy])


async def share(around: Around, asked: Asked) -> str:
    word, person = asked.rest.lower(), asked.call.sender.id
    if word and word not in WORDS:
        return asked.say("share_usage", command=asked.line)
    if word:
        await around.db.write(partial(memory_switches.set_sharing, person=person, shares=WORDS[word]))
    found = await around.db.write(partial(memory_switches.own, config=around.house.config(), person=person, now=asked.now))
    return asked.say("share_on" if found.share_private else "share_off")


async def blacklist(around: Around, asked: Asked) -> str:
    """Who is on it; with a person they are from now on, with `PERSON off` no more. Only for the group where it is asked."""
    space = asked.chat.space_id
    if space is None:
        return asked.say("allow_only_groups", command=asked.line)
    if not asked.rest and asked.call.event.reply_to is None:
        names = await around.db.read(partial(memory_switches.barred, space=space))
        if not names:
            return asked.say("blacklist_none", command=asked.line)
        return asked.say("blacklist_is", names=", ".join(name or person for person, name in names.items()))
    words = asked.words
    barred = not (words and words[-1].lower() == "off")
    found = await meant(around, asked, " ".join(words if barred else words[:-1]))
    if len(found) != 1:
        return whom(asked, found)
    target = found[0][0]
    by = Actor(id=asked.call.sender.id, address=asked.address)
    await around.db.write(partial(memory_switches.bar, by=by, space=space, person=target.id, barred=barred, now=asked.now))
    return asked.say("blacklist_on" if barred else "blacklist_off", name=target.name or target.id)
