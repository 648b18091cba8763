"""May this event be answered? One fixed order, pure; the first rule that applies decides, and its name is stored with the event (CH-112).

Decisions use ids only: names and titles never admit anyone (CH-111). Empty lists admit nobody (CH-110).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

ANYBODY = "*"
ROLES = ("guest", "user", "admin", "owner")


def includes(role: str, needed: str) -> bool:
    """Each role includes the ones before it (CH-118)."""
    return role in ROLES and ROLES.index(role) >= ROLES.index(needed)


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the operator set for one account of a channel: ids, or `*` written out."""

    allow: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    bots: frozenset[str] = frozenset()
    mention_needed: bool = True
    paused: bool = False

    def admits(self, sender_id: str) -> bool:
        return sender_id in self.allow or ANYBODY in self.allow

    def admits_group(self, *chat_ids: str) -> bool:
        return ANYBODY in self.groups or any(chat_id in self.groups for chat_id in chat_ids)


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything the decision looks at. `role` is empty for an unknown sender; `needed_role` is that of the command, empty for plain talk."""

    rules: Rules = field(default_factory=Rules)
    paused: bool = False
    own_message: bool = False
    is_bot: bool = False
    bot_listed: bool = False
    blocked: bool = False
    role: str = ""
    admitted: bool = False
    in_group: bool = False
    group_allowed: bool = False
    privacy_full: bool = False
    for_other_bot: bool = False
    mentioned: bool = False
    needed_role: str = ""
    manages: bool = False
    over_rate: bool = False
    queue_full: bool = False
    yours: bool = True


def _lacks_role(facts: Facts) -> bool:
    return bool(facts.needed_role) and not includes(facts.role or "guest", facts.needed_role)


_ORDER: tuple[tuple[str, Callable[[Facts], bool]], ...] = (
    ("paused", lambda facts: facts.paused or facts.rules.paused),
    ("self", lambda facts: facts.own_message),
    ("bot", lambda facts: facts.is_bot and not facts.bot_listed),
    ("blocked", lambda facts: facts.blocked),
    ("not-yours", lambda facts: not facts.yours),
    ("dm-unpaired", lambda facts: not facts.in_group and not facts.admitted),
    ("group-not-allowed", lambda facts: facts.in_group and not facts.group_allowed),
    ("privacy", lambda facts: facts.in_group and facts.privacy_full),
    ("other-bot", lambda facts: facts.for_other_bot),
    ("not-mentioned", lambda facts: facts.in_group and facts.rules.mention_needed and not facts.mentioned),
    ("role", _lacks_role),
    ("rate", lambda facts: facts.over_rate),
    ("full", lambda facts: facts.queue_full),
)
RULE_NAMES = tuple(name for name, _ in _ORDER)


def decide(facts: Facts) -> str:
    """The name of the first rule that refuses the event; empty when it is admitted."""
    return next((name for name, applies in _ORDER if applies(facts)), "")
