"""A turn while it runs: what is known of it so far, and how its thinking ended."""

from __future__ import annotations

from dataclasses import dataclass, field

from agent.characters import Character
from agent.turn import Record
from gateway.ceiling import Held
from gateway.lanes import RunningTurn
from gateway.onboarding import NOTHING, OnboardingTurn
from gateway.recall.recalling import NO_RECALL, RecallTurn
from gateway.saved.turn import NO_SAVED_TURN, SavedTurn
from gateway.turn_store import TurnStart
from gateway.turnstile import Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How thinking ended: `state` answered, empty, silent, stopped or failed; `notice` is the key of a sentence for the person,
    `told` the sentence itself where it has more to say."""

    state: str
    text: str = ""
    error_code: str = ""
    notice: str = ""
    told: str = ""


@dataclass(slots=True, kw_only=True)
class Sitting:
    """What is known of a turn while it runs, and stays known when it is stopped or fails. `began`: on the monotonic clock, in seconds."""

    start: TurnStart
    running: RunningTurn
    place: Place
    began: float
    record: Record = field(default_factory=Record)
    asked: OnboardingTurn = NOTHING
    saved: SavedTurn = NO_SAVED_TURN
    recall: RecallTurn = NO_RECALL
    character: Character | None = None  # as it answers, once that is known
    held: Held | None = None  # what of the talk is sent, once that is settled
