"""The owner's answers to the first-start questions, brought to their files, to the person's row and to the list of what was answered (WD-34)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from functools import partial

from agent.onboarding import ASKED_FIELDS, Answers
from gateway.file_changes import FileChanges
from gateway.file_writer import FileWriter
from gateway.language import from_tag
from gateway.turn_files import TurnFacts, waiting_words
from memory import file_edits, provenance
from memory import onboarding as rows
from memory.database import Database
from memory.file_edits import EditRefused
from memory.layout import place
from memory.lines import entries
from memory.profile_lines import FACTS, PLACES, files_of, with_answers
from memory.scopes import ROOT
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

AUTHOR = "onboarding"
FILES = ("system.md", "user.md")

ChangePerson = Callable[[str, Mapping[str, str]], Awaitable[None]]
"""Sets `name` (where nobody chose one), `language` and `timezone` of a person, those that are named."""


class Profile:
    """Writes answers; what a person wrote by hand is never touched."""

    def __init__(
        self,
        *,
        db: Database,
        files: WorkspaceThreads,
        writer: FileWriter,
        changes: FileChanges,
        change_person: ChangePerson,
        clock: Callable[[], datetime],
    ) -> None:
        self._db = db
        self._files = files
        self._writer = writer
        self._changes = changes
        self._change_person = change_person
        self._clock = clock

    async def store(self, answers: Answers, turn: TurnFacts) -> str:
        """Bring each answer to its place, partial ones too (WD-35); a sentence for the model. Raises what the workspace raises.

        With text of others in the run nothing is written: the lines wait for the person's yes (WD-105), and the questions stay open.
        """
        _check_public(answers)
        given = {*answers.values, *((FACTS,) if answers.facts else ())}
        said: list[str] = []
        for name in files_of(given):
            said.append(await self._write(name, answers, turn))
        if turn.foreign():
            return "\n".join(said)
        person = {"name": answers.address, "language": from_tag(answers.language) or answers.language, "timezone": answers.timezone}
        if changed := {column: value for column, value in person.items() if value}:
            await self._change_person(turn.person_id, changed)
        give = partial(rows.give, person_id=turn.person_id, fields=given, now=self._clock(), all_of=ASKED_FIELDS)
        progress = await self._db.write(give)
        open_rest = [field for field in ASKED_FIELDS if field not in progress.given]
        return "\n".join([*said, f"Still open: {', '.join(open_rest)}." if open_rest else "That is all that was asked."])

    async def by_hand(self) -> bool:
        """Whether a person or an import wrote something into the files of the answers (WD-31). Raises what the workspace raises."""
        texts = await self._files.read(_contents)
        known = await self._db.read(lambda connection: {name: provenance.lines_of(connection, str(ROOT), name) for name in FILES})
        ours = {name: {row.hash for row in lines.values() if row.author != "import"} for name, lines in known.items()}
        return any(entry.hash not in ours[name] for name, text in texts.items() for entry in entries(text))

    async def _write(self, name: str, answers: Answers, turn: TurnFacts) -> str:
        known = await self._db.read(partial(provenance.lines_of, scope=str(ROOT), path=name))
        own = {row.hash for row in known.values() if row.author == AUTHOR}

        def compose(before: str) -> str:
            after = with_answers(before, name, answers.values, answers.facts, turn.language, own)
            file_edits.check(before, after, name, place(ROOT, name).role)
            return after

        if turn.foreign():
            return waiting_words(await self._changes.propose(ROOT, name, compose, None, turn.proposal()), turn.prefix)
        change = await self._writer.change(
            ROOT, name, compose, cause=AUTHOR, cause_id=turn.turn_id, row_of=lambda entry: turn.row(entry, name, author=AUTHOR)
        )
        lines = "; ".join(line.text for line in change.added) if change else ""
        return f"Stored in {name}: {lines}." if lines else f"{name} says that already."


def _contents(workspace: Workspace) -> dict[str, str]:
    """The texts of the files that have one."""
    texts = {name: workspace.read(ROOT, name) for name in FILES}
    return {name: text.content for name, text in texts.items() if text is not None}


def _check_public(answers: Answers) -> None:
    """`system.md` serves everybody, so nothing about the person goes into it (WD-11)."""
    public = " ".join(value for field, value in answers.values.items() if PLACES[field][0] == "system.md").casefold()
    private = [answers.address, *answers.facts]
    for value in private:
        if len(value) > 1 and value.casefold() != answers.bot_name.casefold() and value.casefold() in public:
            raise EditRefused(f"name and style stand in system.md, which everybody is served by: leave {value!r} out of them")
