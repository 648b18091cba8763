"""`/context`: how full the context of a chat is, by the limits of its own profile, and what leaves next."""

from __future__ import annotations

import sqlalchemy as sa

from agent.errors import ModelError
from gateway import live_window, too_large, windows
from gateway.commands.asked import Around, Asked
from gateway.config import Config
from gateway.prompt_desk import BEGIN_SHOWN
from gateway.talk import message_sizes, sizes
from memory import tokens
from memory.conversations import Message
from memory.extract import shortened
from memory.markdown_lines import one_line
from memory.profiles import MessageSize, WindowProfile, edge_after, token_limit
from memory.window import TurnSize, edge_after_trim


async def context(around: Around, asked: Asked) -> str:
    """How full the context is, what stands for the turns that left it, and what the next message would make leave."""

    def look(connection: sa.Connection) -> tuple[list[Message], str]:
        log = live_window.window(connection, asked.chat, profile, config, asked.now).log
        return log, live_window.standing(connection, asked.chat, profile, config, asked.now).text

    config = around.house.config()
    profile = windows.profile_of(config, asked.chat)
    log, block = await around.db.read(look)
    standing = [asked.say("context_block", tokens=f"{tokens.count(block):,}")] if block else []
    if profile.name == windows.DEFAULT:
        first, *others = _assistants(config, asked, sizes(log))
    else:
        first, *others = _of_profile(config, asked, profile, log)
    ceiling, foretold = await _foretold(around, asked)
    told = asked.say("context_ceiling", ceiling=f"{ceiling or windows.ceiling_of(config, asked.chat):,}")
    return "\n".join([first, *standing, *others, told, *foretold])


async def _foretold(around: Around, asked: Asked) -> tuple[int, list[str]]:
    """At how many tokens the window jumps, 0 for not known, and that this would happen before the next message, or that this could not be sent at
    all (RS-70, RS-78)."""
    person = {"timezone": "", **{name: getattr(asked.call.sender, name) for name in ("id", "name", "role", "scope", "language")}}
    try:
        found = await around.desks.foretell(asked.chat, person, language=asked.language)
    except ModelError:  # the next message tells of it
        return 0, []
    if found.fault is not None:
        return 0, [asked.say("context_fault", reason=too_large.told(found.fault, around.house.config(), asked.chat, asked.language))]
    if found.jump is None:
        return found.ceiling, []
    lines = [asked.say("context_would_jump", messages=f"{found.left:,}", tokens=f"{found.prompt.tokens:,}")]
    if found.begins is not None:
        begin = shortened(one_line(found.begins.text), BEGIN_SHOWN)
        lines.append(asked.say("context_would_begin", text=begin))
    return found.ceiling, lines


def _assistants(config: Config, asked: Asked, turns: list[TurnSize]) -> list[str]:
    most_turns, most_tokens = config.agent_max_context_turns, config.agent_max_context_tokens
    used = sum(turn.tokens for turn in turns)
    lines = [asked.say("context", turns=len(turns), max_turns=most_turns, tokens=f"{used:,}", max_tokens=f"{most_tokens:,}")]
    next_turn = TurnSize(last_seq=asked.chat.last_seq + 1, tokens=tokens.MESSAGE_TOKENS)
    edge = edge_after_trim([*turns, next_turn], max_turns=most_turns, max_tokens=most_tokens, floor_tokens=config.context.trim_floor_tokens)
    leaving = [turn for turn in turns if edge is not None and turn.last_seq <= edge]
    if leaving:
        lines.append(asked.say("context_next", turns=len(leaving), tokens=f"{sum(turn.tokens for turn in leaving):,}"))
    else:
        lines.append(asked.say("context_room"))
    return lines


def _of_profile(config: Config, asked: Asked, profile: WindowProfile, log: list[Message]) -> list[str]:
    """What the window holds, its own limits, and what the next message would make leave."""
    held = message_sizes(log)
    used = f"{sum(message.tokens for message in held):,}"
    lines = [asked.say("context_plain", turns=len(sizes(log)), messages=len(log), tokens=used)]
    window = windows.model_window(config, asked.chat)
    if profile.days:
        tail = windows.setting(config, asked.chat, "days.tail")
        return [*lines, asked.say("context_days", profile=profile.name, tail=tail)]
    limits = {
        "context_limit_turns": profile.turns,
        "context_limit_messages": profile.messages,
        "context_limit_tokens": token_limit(profile, window),
    }
    told = [asked.say(key, n=f"{most:,}") for key, most in limits.items() if most]
    if told:
        lines.append(asked.say("context_limits", profile=profile.name, limits=" · ".join(told)))
    new = MessageSize(seq=asked.chat.last_seq + 1, tokens=tokens.MESSAGE_TOKENS)
    edge = edge_after(profile, [*held, new], model_window=window, floor_tokens=config.context.trim_floor_tokens)
    gone = [message for message in held if edge is not None and message.seq <= edge]
    size = f"{sum(message.tokens for message in gone):,}"
    return [*lines, asked.say("context_next_messages", messages=len(gone), tokens=size) if gone else asked.say("context_stays")]
