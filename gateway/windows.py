"""Which window profile a chat has, and what of it the configuration and the chat may set (RS-1, RS-2, RS-12, RS-62). Pure but for the zone."""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from zoneinfo import ZoneInfo

import sqlalchemy as sa

from agent.prompt import reserve_of
from gateway.config import Config, ModelAccount
from gateway.config.recall import Profile
from gateway.trimming import Into
from gateway.zone_names import is_zone
from gateway.zones import zone_of
from memory.conversations import CLEARED as CLEARED  # these two beside the other questions about a window
from memory.conversations import Conversation
from memory.conversations import cleared as cleared
from memory.profiles import BUILT_IN, MessageSize, WindowProfile, edge_after
from memory.recall import budget
from memory.recall.calendar_plan import Clock
from memory.recall.kinds import CALENDAR, ROLLING, Kind

DEFAULT = "assistant"
_KINDS: Mapping[str, tuple[Kind, ...]] = {"": (), "blocks": (), "rolling": ROLLING, "calendar": CALENDAR}
_STRICT = ("none", "recall_only", "full")

log = logging.getLogger(__name__)


def known(config: Config) -> dict[str, WindowProfile]:
    """Every profile that there is, the built-in ones with the limits of the configuration (RS-3, RS-5)."""
    companion = config.companion
    own = {name: _own(name, each) for name, each in config.profiles.items() if name not in BUILT_IN}
    return {
        **own,
        **BUILT_IN,
        DEFAULT: replace(BUILT_IN[DEFAULT], turns=config.agent_max_context_turns, tokens=config.agent_max_context_tokens),
        "companion": replace(
            BUILT_IN["companion"],
            messages=companion.messages,
            tokens=companion.tokens,
            context_share=companion.context_share,
            block=companion.block,
        ),
    }


def profile_of(config: Config, chat: Conversation) -> WindowProfile:
    """The one profile of a chat: its own, that of its first character, of its account or channel, else the default one. A name that is not known, for
    its profile was left out, counts as none."""
    profiles = known(config)
    character = config.characters.get(chat.members[0]) or config.characters["default"]
    named = (
        chat.profile,
        character.profile,
        config.channel_profiles.get(f"{chat.channel}:{chat.account}", ""),
        config.channel_profiles.get(chat.channel, ""),
    )
    return profiles[next((name for name in named if name in profiles), DEFAULT)]


def model_window(config: Config, chat: Conversation) -> int:
    """Tokens that the model of a chat's first character can hold."""
    return _account(config, chat).window_tokens


def _account(config: Config, chat: Conversation) -> ModelAccount:
    character = config.characters.get(chat.members[0]) or config.characters["default"]
    return config.account(character.model)


def record_of(config: Config, chat: Conversation) -> str:
    """What may be kept of a chat: the stricter of the configuration's and its own rule (RS-12)."""
    if chat.kind == "challenge" or not chat.memory_on:
        return "none"
    rules = [config.recall.record, *([chat.record] if chat.record in _STRICT else [])]
    return min(rules, key=_STRICT.index)


def keeps_summaries(config: Config, chat: Conversation) -> bool:
    return record_of(config, chat) == "full"


def into(config: Config, chat: Conversation) -> Into:
    """What turns that leave the window of a chat become (RS-12, RS-43)."""
    if not keeps_summaries(config, chat):
        return "nothing"
    return "rolling" if stands(profile_of(config, chat), ROLLING) else "blocks"


def into_at_the_ceiling(config: Config, chat: Conversation) -> Into:
    """The same of turns that leave because the prompt reached its ceiling: the days of a window by days get their rows anyway (RS-162)."""
    profile = profile_of(config, chat)
    return "days" if keeps_summaries(config, chat) and profile.days and stands(profile, CALENDAR) and profile.sent else into(config, chat)


def prompt_limit(config: Config, chat: Conversation) -> int:
    """Tokens that the whole prompt of a chat may have, the room for the answer apart: the ceiling, and in the assistant's chats the older setting,
    which counts the whole prompt too (RS-63, WD-38)."""
    ceiling = config.context.ceiling
    return min(ceiling, config.agent_max_context_tokens) if profile_of(config, chat).name == DEFAULT else ceiling


def edge_before(config: Config, chat: Conversation, profile: WindowProfile, window: Sequence[MessageSize], *, oldest_question: int) -> int | None:
    """What leaves before a question is answered, so that the limit of a window that moves in blocks is exact (RS-6); the other windows move when
    the answer is stored. Nothing leaves that was not answered. `window`: the talk with the question at its end."""
    if profile.drop != "block":
        return None
    edge = edge_after(profile, window, model_window=model_window(config, chat))
    return None if edge is None else min(edge, oldest_question - 1)


def stands(profile: WindowProfile, kinds: tuple[Kind, ...]) -> bool:
    """Whether summaries of these kinds are made in chats of this profile."""
    return bool(set(kinds) & {*profile.sent, *profile.stored})


def setting(config: Config, chat: Conversation, key: str) -> Any:
    """The value of a key such as `days.tail`: the chat's own, else the configuration's. One of another type is left out."""
    section, _, name = key.partition(".")
    base: Any = getattr(getattr(config, section), name)
    own = chat.settings.get(key)
    return own if own is not None and type(own) is type(base) else base


def clock_of(connection: sa.Connection, config: Config, chat: Conversation, scope: str) -> Clock:
    """How a chat counts its days. The zone: its own, that of `days.zone`, that of its memory (RS-62); a wrong name is the next one's (RS-160)."""
    zone = _zone(chat) or (ZoneInfo(config.days.zone) if config.days.zone else None) or zone_of(connection, scope, config.timezone)
    return Clock(
        zone=zone,
        rollover_hour=setting(config, chat, "days.rollover_hour"),
        idle=timedelta(minutes=setting(config, chat, "days.idle_minutes")),
        latest=timedelta(hours=setting(config, chat, "days.latest_hours")),
    )


def wrong_zone(chat: Conversation) -> str:
    """The chat's own zone, if it is none (RS-160)."""
    return chat.timezone if chat.timezone.strip() and not is_zone(chat.timezone) else ""


def standing_room(config: Config, chat: Conversation) -> int:
    """Tokens at which the standing summaries of a chat aim, by the window of its model (RS-64, RS-66)."""
    given = config.context
    return budget.standing_room(budget.memory_budget(given.memory_budget, ceiling_of(config, chat)), given.standing_share_percent)


def ceiling_of(config: Config, chat: Conversation) -> int:
    """Tokens that the largest prompt of a chat may have, with the answer kept free in the window of its model (RS-63)."""
    account = _account(config, chat)
    reserve = reserve_of(account.window_tokens, account.answer_tokens)
    return budget.effective_ceiling(config.context.ceiling, account.window_tokens, reserve)


def _zone(chat: Conversation) -> ZoneInfo | None:
    if wrong_zone(chat):
        log.warning("the time zone of chat %s is %r, which is none: that of its memory counts", chat.id, chat.timezone)
        return None
    return ZoneInfo(chat.timezone) if chat.timezone.strip() else None


def _own(name: str, given: Profile) -> WindowProfile:
    values = given.model_dump(exclude={"sent", "stored"})
    return WindowProfile(name=name, **values, sent=_KINDS[given.sent], stored=_KINDS[given.stored])
