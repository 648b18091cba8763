"""The report of an import, as the command line prints it (WD-26, WD-28, WD-29). Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from gateway.cowagent_config import TheirConfig
from memory.cowagent_import import NOT_READ, Plan, Step
from memory.cowagent_source import Skipped
from memory.layout import CURATED, KNOWLEDGE_FOLDER


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`plan`: what was decided; `failed`: files that were to be written and could not; with `dry_run` nothing was."""

    source: Path
    workspace: Path
    plan: Plan
    dry_run: bool
    failed: tuple[Skipped, ...] = ()
    config: TheirConfig | None = None

    @property
    def written(self) -> tuple[Step, ...]:
        failed = {each.path for each in self.failed}
        return tuple(step for step in self.plan.steps if step.name not in failed)


def report(outcome: Outcome) -> str:
    """Everything that was or would be done, and what was left out, each with its reason. No words of any file."""
    return "\n".join(_lines(outcome))


def _lines(outcome: Outcome) -> Iterator[str]:
    plan, steps = outcome.plan, outcome.written
    did = "would be copied" if outcome.dry_run else "copied"
    yield f"CowAgent folder {outcome.source} -> {outcome.workspace}, the owner's memory. The source is not changed."
    yield f"{len(steps)} files, {sum(step.lines for step in steps)} lines {did}; {len(plan.unchanged)} files are here already."
    yield from _listed("", [_step(step) for step in steps])
    skipped = (*outcome.failed, *plan.skipped)
    yield from _listed("Not copied:", [f"{each.path}: {each.reason}" for each in skipped])
    yield from _listed(
        "Lines left out because they seem to hold a secret, which is never kept here:",
        [f"{each.path}, line {each.line}: {each.kind}" for each in plan.secrets],
    )
    if plan.barred:
        yield f"{plan.barred} lines left out because they were removed from this memory before."
    yield from _listed("Scheduled tasks, which are not imported: ask for them anew in the chat where they should arrive.", plan.tasks)
    if outcome.config is not None:
        yield from _config(outcome.config)
    if steps:
        yield "Please look through it: CowAgent keeps one memory for everybody, so talk of groups may be inside. It is the owner's memory here."
        yield "system.md serves everyone who talks with the bot, so nothing private should stand in it."
        yield from _hints(steps)
    if outcome.dry_run:
        yield "This was a dry run: nothing was written."


def _step(step: Step) -> str:
    how = ", beside your own file, which is kept" if step.beside else ""
    return f"{step.name} -> {step.path} ({step.lines} lines){how}"


def _hints(steps: Sequence[Step]) -> Iterator[str]:
    if any(step.path in NOT_READ for step in steps):
        yield "RULE.md is kept for you to read; what should hold on here belongs into user.md."
    if any(step.beside and not step.path.startswith(f"{KNOWLEDGE_FOLDER}/") for step in steps):
        yield f"Files beside yours (….imported-….md) are not used until you put what you want of them into your own, for example {CURATED}."


def _config(config: TheirConfig) -> Iterator[str]:
    if config.fault:
        yield f"Its config.json was not read: {config.fault}."
    yield from _listed("Settings to put into config.json by hand:", config.lines)
    yield from _listed("Settings that cannot be taken over:", [f"{key}: {why}" for key, why in config.refused])
    if config.unknown:
        yield f"Keys that Yumegate does not have, or means something else by: {', '.join(config.unknown)}."


def _listed(title: str, lines: Sequence[str]) -> Iterator[str]:
    if lines and title:
        yield title
    yield from (f"  {line}" for line in lines)
