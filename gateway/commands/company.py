"""Commands about who may talk: letting people in, groups, blocks, roles (CH-112 to CH-118). Whoever is meant is named by an id; a name is enough
only where nobody gains anything by it (CH-111)."""

from __future__ import annotations

from typing import get_args

import sqlalchemy as sa

from channels.message import Address
from gateway.access import includes
from gateway.audit import Actor
from gateway.commands.asked import Around, Asked
from gateway.pairing import Locked, WrongCode
from gateway.people import LastOwner
from gateway.person import Identity, Person, Role, may_change
from gateway.talk import duration
from memory import conversations

ON, OFF = ("on",), ("off",)
MANAGER = "manager"
_ROLES: dict[str, Role] = {each: each for each in get_args(Role)}
SHOWN_MAX = 5  # people that a name may mean


# -- letting in ---------------------------------------------------------------------------------------------------------------


async def waiting(around: Around, asked: Asked) -> str:
    found = await around.desks.company.pairing.waiting()
    if not found:
        return asked.say("pair_none")
    lines = [
        asked.say(
            "pair_line", number=each.id, name=each.identity.name or "–", account=f"{each.identity.channel}:{each.identity.account}",
            user=each.identity.platform_user_id, left=duration(each.expires_at - asked.now, asked.language),
        )
        for each in found
    ]  # fmt: skip
    return "\n".join([asked.say("pair_head", command=asked.command("pair", "approve")), *lines])


async def approve(around: Around, asked: Asked) -> str:
    if not asked.rest:
        return asked.say("pair_usage", command=asked.line)
    try:
        let_in = await around.desks.company.pairing.approve(_actor(asked), asked.rest)
    except WrongCode:
        return asked.say("pair_wrong")
    except Locked as error:
        return asked.say("pair_locked", left=duration(error.until - asked.now, asked.language))
    who = let_in.identity
    return asked.say("pair_done", name=let_in.person.name or who.platform_user_id, account=f"{who.channel}:{who.account}", user=who.platform_user_id)


async def decline(around: Around, asked: Asked) -> str:
    if not asked.rest.isascii() or not asked.rest.isdecimal() or len(asked.rest) > 18:
        return asked.say("pair_decline_usage", command=asked.line)
    done = await around.desks.company.pairing.decline(_actor(asked), int(asked.rest))
    return asked.say("pair_declined" if done else "pair_none")


# -- groups -------------------------------------------------------------------------------------------------------------------


async def allow(around: Around, asked: Asked) -> str:
    """`/allow`, and `/allow off`: whether this group is answered."""
    if asked.chat.space_id is None:
        return asked.say("allow_only_groups", command=asked.line)
    word = asked.rest.lower()
    if word not in ("", *ON, *OFF):
        return asked.say("allow_usage", command=asked.line)
    allowed = word not in OFF
    ended = await around.desks.company.places.allow(_actor(asked), asked.chat.space_id, Address.parse(asked.address), allowed=allowed)
    if allowed:
        return asked.say("allowed", command=asked.command("allow", "mention", "off"))
    return asked.say("allow_ended" if ended else "allow_listed")


async def mention(around: Around, asked: Asked) -> str:
    if asked.chat.space_id is None:
        return asked.say("allow_only_groups", command=asked.line)
    word = asked.rest.lower()
    if word not in (*ON, *OFF):
        return asked.say("mention_usage", command=asked.line)
    await around.desks.company.places.want_mention(_actor(asked), asked.chat.space_id, wanted=word in ON)
    return asked.say("mention_on" if word in ON else "mention_off")


# -- people -------------------------------------------------------------------------------------------------------------------


async def block(around: Around, asked: Asked) -> str:
    return await _set_blocked(around, asked, blocked=True)


async def unblock(around: Around, asked: Asked) -> str:
    return await _set_blocked(around, asked, blocked=False)


async def _set_blocked(around: Around, asked: Asked, *, blocked: bool) -> str:
    found = await meant(around, asked, asked.rest)
    if len(found) != 1:
        return whom(asked, found)
    target, accounts = found[0]
    asker = await around.desks.company.people.person(asked.call.sender.id)
    if asker is None or asker.id == target.id or not may_change(asker, target):
        return asked.say("block_not_yours", name=_shown(target, accounts))
    try:
        await around.desks.company.people.change(_actor(asked), target.id, blocked=blocked)
    except LastOwner:
        return asked.say("role_last_owner")
    return asked.say("blocked_now" if blocked else "unblocked_now", name=_shown(target, accounts))


async def role(around: Around, asked: Asked) -> str:
    """`/role PERSON user`; `/role PERSON manager` gives the right to run this group, `/role PERSON manager off` takes it."""
    words = asked.rest.split()
    taken = len(words) > 1 and words[-1].lower() in OFF and words[-2].lower() == MANAGER
    words = words[:-1] if taken else words
    wanted = words[-1].lower() if words else ""
    if wanted not in (*_ROLES, MANAGER):
        return asked.say("role_usage", command=asked.line)
    name = " ".join(words[:-1])
    found = await meant(around, asked, name)
    if len(found) != 1:
        return whom(asked, found)
    target, accounts = found[0]
    gains = not taken if wanted == MANAGER else not includes(target.role, wanted)
    if gains and name and not _is_id(asked, name, target, accounts):
        return asked.say("role_by_id", name=_shown(target, accounts), command=f"{asked.line} {target.id} {wanted}")
    if wanted == MANAGER:
        if asked.chat.space_id is None:
            return asked.say("allow_only_groups", command=asked.line)
        await around.desks.company.places.let_manage(_actor(asked), asked.chat.space_id, target.id, manages=not taken)
        return asked.say("manager_ended" if taken else "manager_now", name=_shown(target, accounts))
    try:
        changed = await around.desks.company.people.change(_actor(asked), target.id, role=_ROLES[wanted])
    except LastOwner:
        return asked.say("role_last_owner")
    return asked.say("role_now", name=_shown(target, accounts), role=changed.role)


Known = tuple[Person, tuple[Identity, ...]]


async def meant(around: Around, asked: Asked, words: str) -> list[Known]:
    """Whom the words may mean: an id of ours, an id of the platform, a name; without words whoever wrote the message that this one answers."""
    everybody = await around.desks.company.people.everybody()
    if not words:
        author = await around.db.read(lambda connection: _author(connection, asked))
        return [known for known in everybody if known[0].id == author]
    exact = [known for known in everybody if _is_id(asked, words, *known)]
    return exact or [known for known in everybody if known[0].name.casefold() == words.removeprefix("@").casefold()]


def _is_id(asked: Asked, words: str, person: Person, accounts: tuple[Identity, ...]) -> bool:
    here = (asked.chat.channel, asked.chat.account)
    return words == person.id or any(each.platform_user_id == words and (each.channel, each.account) == here for each in accounts)


def _author(connection: sa.Connection, asked: Asked) -> str:
    event = asked.call.event
    if event.reply_to is None or event.reply_to.author_is_us:
        return ""
    found = conversations.by_ref(
        connection, channel=event.account.channel, account=event.account.name, chat_id=event.chat_id,
        platform_message_id=event.reply_to.message_id,
    )  # fmt: skip
    return found.author_person_id if found is not None else ""


def whom(asked: Asked, found: list[Known]) -> str:
    if not found:
        return asked.say("person_unknown", command=asked.line)
    return "\n".join([asked.say("person_several"), *(f"- {_shown(*known)}" for known in found[:SHOWN_MAX])])


def _shown(person: Person, accounts: tuple[Identity, ...]) -> str:
    where = ", ".join(f"{each.channel}:{each.account} {each.platform_user_id}" for each in accounts)
    return f"{person.name or '–'} ({'; '.join(part for part in (person.id, where) if part)})"


def _actor(asked: Asked) -> Actor:
    return Actor(id=asked.call.sender.id, address=asked.address)
