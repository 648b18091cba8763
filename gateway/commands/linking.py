"""`/link`: two accounts become one person, by a code from the one and a yes in both (WD-13)."""

from __future__ import annotations

from collections.abc import Sequence

from gateway.audit import Actor
from gateway.buttons import Question
from gateway.commands.asked import Answer, Around, Asked
from gateway.linking import Pending, question


async def link(around: Around, asked: Asked) -> str | Answer:
    """Without more a code for the other chat; with a code, whose it is."""
    linking, person = around.desks.company.linking, asked.call.sender.id
    if not asked.rest:
        code = await linking.begin(person, asked.chat.id)
        return asked.say("link_code", code=code, command=asked.command("link", code))
    other = await linking.give(asked.rest, person, asked.chat.id)
    if other is None:
        return asked.say("link_wrong")
    if other.person_id == person:
        return asked.say("link_same")
    around.desks.wake_jobs()
    yes, no = asked.command("link", "yes"), asked.command("link", "no")
    offers = await linking.offers(person)
    text = asked.say("link_offer", name=other.name or "–", accounts=other.accounts, yes=yes, no=no)
    return Answer(text=text, questions=_questions(asked, [each for each in offers if each.other == other]))


async def yes(around: Around, asked: Asked) -> str | Answer:
    """To the one link there is, or to the one of that number: a yes is never taken for another than was meant."""
    linking, person = around.desks.company.linking, asked.call.sender.id
    became = await linking.agree(_actor(asked), person, link_id=_number(asked))
    if became == "which":
        return _which(asked, await linking.offers(person))
    keys = {"none": "link_none", "waits": "link_waits", "joined": "link_done"}
    return asked.say(keys[became], command=asked.command("link"))


async def no(around: Around, asked: Asked) -> str | Answer:
    linking, person = around.desks.company.linking, asked.call.sender.id
    ended = await linking.refuse(person, link_id=_number(asked))
    if not ended and (others := await linking.offers(person)):
        return _which(asked, others)
    return asked.say("link_dropped" if ended else "link_none", command=asked.command("link"))


async def off(around: Around, asked: Asked) -> str:
    """This account is a person of its own again."""
    if asked.chat.kind != "dm":
        return asked.say("link_off_page")
    if not await around.desks.company.linking.unlink(_actor(asked), asked.chat, asked.call.event.sender_id, before=asked.call.row_id):
        return asked.say("link_off_alone")
    around.lanes.drop_waiting(asked.address, before=asked.call.row_id)
    around.lanes.discard(asked.address, before=asked.call.row_id)
    return asked.say("link_off_done")


def _number(asked: Asked) -> int | None:
    """The number of the link that is meant; 0, which is none's, for words that are no number."""
    if not asked.rest:
        return None
    return int(asked.rest) if asked.rest.isascii() and asked.rest.isdigit() and len(asked.rest) < 16 else 0


def _which(asked: Asked, offers: Sequence[Pending]) -> Answer:
    lines = [
        asked.say("link_which_line", yes=asked.command("link", "yes", str(each.id)), name=each.other.name or "–", accounts=each.other.accounts)
        for each in offers
        if each.other is not None
    ]
    return Answer(text=asked.say("link_which", links="\n".join(lines)), questions=_questions(asked, offers))


def _questions(asked: Asked, offers: Sequence[Pending]) -> tuple[Question, ...]:
    return tuple(question(asked.language, each.id, each.other, asked.command("link")) for each in offers if each.other is not None)


def _actor(asked: Asked) -> Actor:
    return Actor(id=asked.call.sender.id, address=asked.address)
