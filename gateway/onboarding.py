"""The first-start questions in the turns of the owner (WD-30 to WD-35): who is asked, when, and where the answers go.

With a model that calls tools a note has it ask below its answer and store what comes by `profile_set`. With one that cannot, our own questions stand
below its answer, and the next plain answer is read here. The files are looked at only while the questions are open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date, datetime
from functools import partial

import sqlalchemy as sa

from agent import onboarding as rules
from agent.onboarding import Answers, Step
from agent.plain_answers import is_greeting, is_skip, parse
from agent.tools.port import Tool
from agent.tools.profile_set import ProfileSet
from gateway.config import Config
from gateway.language import LANGUAGES, guess, say
from gateway.people import UNNAMED
from gateway.profile import Profile
from gateway.turn_files import TurnFacts
from gateway.turn_store import TurnStart
from gateway.zone_names import first_known, otherwise
from memory import onboarding as rows
from memory.database import Database
from memory.errors import StoreUnavailable
from memory.file_errors import FileRefused, FileUnreadable
from memory.onboarding import Progress, State
from memory.profile_lines import labelled
from memory.schedule import local_date
from memory.scopes import ROOT


@dataclass(frozen=True, slots=True, kw_only=True)
class OnboardingTurn:
    """What one turn does about the questions. `note`: for the tail of its prompt; `tool`: offered beside the others; `append`: below the stored
    answer; `asks`: whether this turn has taken it upon itself to ask."""

    note: str = ""
    tool: Tool | None = None
    append: str = ""
    asks: bool = False
    turn_id: str = ""
    person_id: str = ""


NOTHING = OnboardingTurn()


@dataclass(frozen=True, slots=True, kw_only=True)
class _Look:
    """What a turn sees of the questions. `name`: of the account, where somebody chose one; `zone`: IANA, empty when nobody named one;
    `just_asked`: the answer before this turn held them."""

    turn: TurnFacts
    progress: Progress
    text: str
    language: str
    name: str
    zone: str
    just_asked: bool

    @property
    def open(self) -> Sequence[str]:
        return rules.open_fields(self.progress)


class Onboarding:
    def __init__(self, *, db: Database, profile: Profile, config: Callable[[], Config], clock: Callable[[], datetime]) -> None:
        self._db = db
        self._profile = profile
        self._config = config
        self._clock = clock

    async def for_turn(self, start: TurnStart, turn: TurnFacts, *, model_supports_tools: bool) -> OnboardingTurn:
        """What this turn asks, stores or says; nothing for anybody but the owner in a private chat or on the page (WD-30, N14).

        A disk or a database that does not answer costs the questions, never the reply.
        """
        if turn.access.scope != ROOT or start.conversation.kind not in ("dm", "web") or start.dead:
            return NOTHING
        try:
            return await self._for_owner(start, turn, tools=model_supports_tools)
        except StoreUnavailable:
            return NOTHING

    def after(self, connection: sa.Connection, asked: OnboardingTurn, *, answered: bool, now: datetime) -> None:
        """In the transaction that ends the turn: without an answer the questions did not reach the person, and the next turn asks them."""
        if asked.asks and not answered:
            rows.release(connection, asked.person_id, asked.turn_id, now)

    async def reopen(self, person_id: str, language: str) -> str:
        """`/setup`: the next turn of this person asks everything once more (WD-35). The sentence to answer with."""
        await self._db.write(partial(rows.reopen, person_id=person_id, now=self._clock()))
        return say(language, "setup_reopened")

    async def _for_owner(self, start: TurnStart, turn: TurnFacts, *, tools: bool) -> OnboardingTurn:
        progress = await self._db.read(partial(rows.progress, person_id=turn.person_id))
        if progress.state in (State.DONE, State.DISMISSED) or not (self._config().onboarding or progress.reopened):
            return NOTHING
        look = self._look(start, turn, progress)
        today = self._today(look.zone)
        step = rules.next_step(progress, today=today, turn_id=turn.turn_id, by_hand=await self._by_hand())
        if step is Step.FINISH:
            await self._db.write(partial(rows.end, person_id=turn.person_id, state=State.DONE, now=self._clock()))
            return NOTHING
        if progress.state is State.ASKED and progress.turn != turn.turn_id and is_skip(look.text, just_asked=look.just_asked):
            await self._dismiss(turn.person_id)
            return OnboardingTurn(note=rules.SKIPPED_NOTE) if tools else OnboardingTurn(append=say(look.language, "onboarding_skipped"))
        if not tools and look.just_asked and (stored := await self._plain(look)) is not None:
            return stored
        if step is Step.ASK and not await self._claimed(turn, progress, today):
            step = Step.LISTEN  # another message of the same moment asks
        asks = step is Step.ASK
        if tools:
            note = rules.note(step, look.open, language=look.language, zone=look.zone, name=look.name)
            return OnboardingTurn(note=note, tool=self._tool(look.turn), asks=asks, turn_id=turn.turn_id, person_id=turn.person_id)
        return OnboardingTurn(append=questions(look) if asks else "", asks=asks, turn_id=turn.turn_id, person_id=turn.person_id)

    async def _claimed(self, turn: TurnFacts, progress: Progress, today: date) -> bool:
        """Whether this turn is the one that asks, or was before it was begun again."""
        if progress.turn == turn.turn_id and progress.asked_on == today:
            return True
        claim = partial(rows.claim, person_id=turn.person_id, turn_id=turn.turn_id, today=today, seen=progress, now=self._clock())
        return await self._db.write(claim)

    def _look(self, start: TurnStart, turn: TurnFacts, progress: Progress) -> _Look:
        text = "\n".join(question.text for question in start.questions)
        answers = [message for message in start.history if message.role == "assistant"]
        just_asked = bool(progress.turn) and bool(answers) and answers[-1].turn_id == progress.turn
        asked_with = "\n".join(message.text for message in start.history if message.role == "user" and message.turn_id == progress.turn)
        language = start.person.get("language") or (_language(text, asked_with) if just_asked else turn.language)
        return _Look(
            turn=replace(turn, language=language),
            progress=progress,
            text=text,
            language=language,
            name=name if (name := str(start.person.get("name") or "")) != UNNAMED else "",
            zone=first_known(start.conversation.timezone, str(start.person.get("timezone") or ""), self._config().timezone),
            just_asked=just_asked,
        )

    def _today(self, zone: str) -> date:
        return local_date(self._clock(), otherwise(zone))

    async def _by_hand(self) -> bool:
        try:
            return await self._profile.by_hand()
        except FileUnreadable:
            return True  # somebody's file, though we cannot read it (WD-23)

    async def _dismiss(self, person_id: str) -> None:
        await self._db.write(partial(rows.end, person_id=person_id, state=State.DISMISSED, now=self._clock()))

    def _tool(self, turn: TurnFacts) -> Tool:
        async def store(answers: Answers) -> str:
            if answers.skip and not answers.values and not answers.facts:
                await self._dismiss(turn.person_id)
                return "The questions are closed; /setup brings them back."
            said = await self._profile.store(answers, turn)
            if answers.skip:
                await self._dismiss(turn.person_id)
            return said

        return ProfileSet(store)

    async def _plain(self, look: _Look) -> OnboardingTurn | None:
        """What the person answered to our own questions, stored as given (WD-34); None when they talk of something else."""
        if look.turn.foreign():
            return None
        answers = parse(look.text, look.open, language=look.language, zone=look.zone, name=look.name)
        if answers is None:
            return None
        try:
            await self._profile.store(answers, look.turn)
        except (FileRefused, FileUnreadable) as error:
            return OnboardingTurn(append=say(look.language, "onboarding_not_stored", reason=error))
        what = "; ".join([*(labelled(field, value, look.language) for field, value in answers.values.items()), *map(_unended, answers.facts)])
        stored = say(look.language, "onboarding_stored", what=what)
        return OnboardingTurn(append=stored if answers.values else f"{stored} {say(look.language, 'onboarding_setup')}")


def _language(text: str, asked_with: str) -> str:
    """Of an answer to our questions. `asked_with`: what made us ask. A name in another script changes no language: what has Latin letters too is in
    that of the questions."""
    return guess(asked_with if _LATIN.search(text) else text)


def _unended(sentence: str) -> str:
    return sentence.rstrip(".。!！")


_LATIN = re.compile("[A-Za-z]")
_ASK = {"bot_name": "onboarding_ask_bot_name", "address": "onboarding_ask_address", "style": "onboarding_ask_style"}
_ASK_KNOWN = {**_ASK, "address": "onboarding_ask_address_known"}


def questions(look: _Look) -> str:
    """Our own questions, in at most 100 words (WD-33); after a greeting one line says what the bot can do (WD-32)."""
    language, fields = look.language, look.open
    lines = [say(language, "onboarding_hello")] if is_greeting(look.text) else []
    lines.append(say(language, "onboarding_intro"))
    ask = _ASK_KNOWN if look.name else _ASK
    lines += [f"{number}. {say(language, ask[field], known=look.name)}" for number, field in enumerate(fields, start=1)]
    name = say(language, "onboarding_language") if language in LANGUAGES else language
    lines.append("")  # or Markdown takes what follows for the last question
    lines.append(say(language, "onboarding_propose" if look.zone else "onboarding_propose_language", name=name, zone=look.zone))
    one = say(language, "onboarding_how_one", label=labelled(fields[0], "…", language))
    lines.append(say(language, "onboarding_how") if len(fields) > 1 else one)
    return "\n".join(lines)
