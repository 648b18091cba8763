"""Every limit of the product in one table (WO-21): the page of limits and docs/limits.md come from it. `python -m gateway.limits` writes the latter.

A row with a key shows what is configured now; the others are fixed, and taken from where they are kept to.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from channels.web.adapter import TEXT_MAX
from gateway import attachments, casting, chats, picture_size
from gateway.config import Config
from gateway.language import say
from gateway.saved import drafts as saved_drafts
from gateway.saved import picks as saved_picks
from gateway.tasks import rules as task_rules
from memory.lore import ALWAYS_MAX_TOKENS
from memory.workspace import FILE_MAX_BYTES

PAGE = "docs/limits.md"
GROUPS = ("saved", "files", "recall", "talk", "answer", "cost")

_INTRO = """# Limits

Made from the code by `python -m gateway.limits`; edit the table in `gateway/limits.py` or the texts there. The page *Limits* shows the same with the
values that are configured now.

A value with a key is its default and can be changed ([configuration](configuration.md)); the others are fixed.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """`name`: its sentence is `limit_<name>` of the catalogue. `key`: of the configuration, empty for a fixed `value`. `zero`: 0 is no limit."""

    group: str
    name: str
    key: str = ""
    value: int = 0
    zero: bool = False

    def now(self, config: Config) -> float:
        found: Any = config
        for part in self.key.split(".") if self.key else ():
            found = getattr(found, part)
        return found if self.key else self.value


LIMITS: tuple[Limit, ...] = (
    Limit(group="saved", name="unpinned", key="saved.unpinned_max"),
    Limit(group="saved", name="pinned", key="saved.pinned_max"),
    Limit(group="saved", name="content", key="saved.content_max"),
    Limit(group="saved", name="dormant", key="saved.dormant_after_days"),
    Limit(group="saved", name="recent", key="saved.recent_days"),
    Limit(group="saved", name="matches", key="saved.matches_max"),
    Limit(group="saved", name="tags", key="saved.tags_max"),
    Limit(group="saved", name="participants", key="saved.participants_max"),
    Limit(group="saved", name="tool_ops", key="saved.tool_ops_max"),
    Limit(group="saved", name="deep_ops", key="saved.deep_ops_max"),
    Limit(group="saved", name="deep_messages", key="saved.deep_min_messages"),
    Limit(group="saved", name="description", value=saved_drafts.DESCRIPTION_MAX),
    Limit(group="saved", name="generate_drafts", key="saved.generate_drafts_max"),
    Limit(group="saved", name="picked", value=saved_picks.PICKED_MAX),
    Limit(group="saved", name="chat_drafts", key="saved.from_chat_drafts_max"),
    Limit(group="saved", name="journal", key="saved.journal_days"),
    Limit(group="files", name="curated", key="memory.prompt_max_tokens"),
    Limit(group="files", name="lore", value=ALWAYS_MAX_TOKENS),
    Limit(group="files", name="file", value=FILE_MAX_BYTES),
    Limit(group="files", name="revisions", key="memory.backups_keep"),
    Limit(group="files", name="revision_days", key="memory.backup_days"),
    Limit(group="files", name="dream_items", key="dream.max_items"),
    Limit(group="files", name="dream_new", key="dream.max_new_items"),
    Limit(group="files", name="dream_loss", key="dream.max_loss_percent"),
    Limit(group="files", name="dreams_by_hand", key="dream.manual_per_day"),
    Limit(group="recall", name="window_turns", key="agent_max_context_turns"),
    Limit(group="recall", name="window_tokens", key="agent_max_context_tokens"),
    Limit(group="recall", name="companion_messages", key="companion.messages"),
    Limit(group="recall", name="companion_tokens", key="companion.tokens"),
    Limit(group="recall", name="recall_tokens", key="recall.block_tokens_max"),
    Limit(group="recall", name="recall_seconds", key="recall.time_limit_s"),
    Limit(group="recall", name="backfill", key="days.backfill_days"),
    Limit(group="talk", name="message", value=TEXT_MAX),
    Limit(group="talk", name="title", value=chats.TITLE_MAX),
    Limit(group="talk", name="attachments", key="channels.web.attachments_max"),
    Limit(group="talk", name="attachment_bytes", key="channels.web.attachment_bytes"),
    Limit(group="talk", name="text_file", value=attachments.TEXT_MAX),
    Limit(group="talk", name="pictures", value=attachments.IMAGES_MAX),
    Limit(group="talk", name="picture_side", value=picture_size.SIDE_MAX),
    Limit(group="talk", name="cast", value=casting.MEMBERS_MAX),
    Limit(group="talk", name="waiting", key="busy.waiting_max"),
    Limit(group="talk", name="person_rate", key="rate.person_per_minute", zero=True),
    Limit(group="talk", name="chat_rate", key="rate.chat_per_minute", zero=True),
    Limit(group="talk", name="tasks", value=task_rules.TASKS_MAX),
    Limit(group="answer", name="steps", key="turn.max_steps"),
    Limit(group="answer", name="answer_tokens", key="turn.max_tokens"),
    Limit(group="answer", name="answer_seconds", key="turn.max_seconds"),
    Limit(group="cost", name="person_day", key="budgets.person_day_tokens", zero=True),
    Limit(group="cost", name="chat_day", key="budgets.chat_day_tokens", zero=True),
    Limit(group="cost", name="day", key="budgets.day_tokens", zero=True),
    Limit(group="cost", name="background_day", key="background.daily_token_budget", zero=True),
)


def shown(config: Config, language: str) -> list[dict[str, object]]:
    """The groups with their rows, as the page has them. `value` is null where there is no limit."""

    def row(limit: Limit) -> Mapping[str, object]:
        now = limit.now(config)
        return {"what": say(language, f"limit_{limit.name}"), "key": limit.key, "value": None if limit.zero and not now else now}

    return [{"name": say(language, f"limits_{group}"), "rows": [row(limit) for limit in LIMITS if limit.group == group]} for group in GROUPS]


def render() -> str:
    """The page of the documentation."""
    defaults = Config()
    parts = [_INTRO]
    for group in GROUPS:
        rows = [limit for limit in LIMITS if limit.group == group]
        head = (f"## {say('en', f'limits_{group}')}", "", "| limit | value | key |", "|---|---|---|")
        parts.append("\n".join((*head, *(_row(each, defaults) for each in rows))))
    return "\n".join(part.rstrip() + "\n" for part in parts)


def _row(limit: Limit, defaults: Config) -> str:
    now = limit.now(defaults)
    value = "none" if limit.zero and not now else f"{now:,}"
    return f"| {say('en', f'limit_{limit.name}')} | {value} | {f'`{limit.key}`' if limit.key else ''} |"


if __name__ == "__main__":
    root = Path(__file__).resolve().parent.parent
    (root / PAGE).write_text(render(), encoding="utf-8")
