"""The files that one turn may change by `file_write` and `file_edit`: where, what, and when only as a proposal (WD-8, WD-104, WD-105, WD-139)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from agent.turn import Used
from gateway.file_changes import FileChanges
from gateway.file_writer import Compose, FileWriter
from memory import file_edits, lore, scope_templates, tokens
from memory.errors import StoreUnavailable
from memory.file_edits import EditRefused
from memory.file_errors import FileRefused, FileUnreadable, PathRefused
from memory.layout import KNOWLEDGE_INDEX, Place, Role, local_date_of, locate, tool_may_write
from memory.lines import Entry
from memory.lore_pages import always_pages
from memory.markdown_lines import one_line
from memory.proposed_changes import Passage, ProposedChange
from memory.provenance import Change, LineRow, Origin
from memory.scopes import Access, Scope
from memory.workspace_threads import WorkspaceThreads

ASKED_FIRST = frozenset({Role.CURATED, Role.ABOUT, Role.SYSTEM})
"""Roles whose files wait for the person's yes once foreign text was read (WD-105)."""

OF_OTHERS = "text of others (a file, a quote, a forwarded message, a tool's result) came into this answer"
TAKES_MUCH = "it would take out much of what stands there (to add one thing, use file_edit with an empty `old`)"
SHOWN = 40  # lines that go, in the answer to the model
TITLE_MAX = 80  # characters of a page's title in its index
_INDEX_TITLES = {"en": "# Knowledge", "ja": "# 知識", "zh": "# 知识"}
_REFUSALS = {
    Role.DIARY: "diaries are written by dreams alone",
    Role.PUBLIC: "pages for everyone are put there by the owner's own hand",
    Role.SYSTEM: "only the owner's private chat may change system.md",
    Role.ABOUT: "space.md belongs to the group's admins",
    Role.KNOWLEDGE: "knowledge pages are switched off here",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFacts:
    """Of the turn whose tools these are. `foreign()`: whether text of others has entered the run by now (WD-67). `sources`: ids of its questions,
    `speakers`: of who asked. `prefix`: what commands begin with; `note`: what the model was given is written down for the receipt."""

    access: Access
    turn_id: str
    person_id: str = ""
    sources: tuple[str, ...] = ()
    speakers: tuple[str, ...] = ()
    foreign: Callable[[], bool] = field(default=lambda: False)
    knowledge: bool = True
    language: str = "en"
    prefix: str = "/"
    prompt_max_tokens: int = 4_000
    note: Callable[[Used], None] = field(default=lambda _used: None)

    def row(self, entry: Entry, path: str, *, author: str = "tool") -> LineRow:
        """Whose words a new line rests on: the person's, unless others were read (WD-67)."""
        return LineRow(
            hash=entry.hash, origin=Origin.MIXED if self.foreign() else Origin.PERSON, author=author, run_id=self.turn_id, sources=self.sources,
            speakers=self.speakers, local_date=local_date_of(path),
        )  # fmt: skip

    def proposal(self) -> ProposedChange:
        """What a proposal of this turn says of its origin."""
        return ProposedChange(sources=self.sources, speakers=self.speakers, run_id=self.turn_id, person_id=self.person_id)


class TurnFiles:
    """`agent.tools.file_write.Files` for one turn."""

    def __init__(self, turn: TurnFacts, *, files: WorkspaceThreads, writer: FileWriter, changes: FileChanges) -> None:
        self._turn = turn
        self._files = files
        self._writer = writer
        self._changes = changes

    async def write(self, path: str, text: str) -> str:
        found = self._place(path)
        return await self._change(found, lambda before: file_edits.whole(before, text), None)

    async def edit(self, path: str, old: str, new: str) -> str:
        found = self._place(path)
        if old:
            return await self._change(found, lambda before: file_edits.edited(before, old, new), Passage(old=old, new=new))
        return await self._change(found, lambda before: file_edits.with_line(before, found.path, found.role, new), Passage(old="", new=new))

    def _place(self, path: str) -> Place:
        """PathRefused, with the reason, for a file that this turn may not change."""
        found = locate(self._turn.access, path)
        if not tool_may_write(self._turn.access, found, knowledge=self._turn.knowledge):
            raise PathRefused(_REFUSALS.get(found.role, f"{found.path} is not a file that tools may change here"))
        return found

    async def _change(self, found: Place, compose: Compose, passage: Passage | None) -> str:
        compose = await self._checked(found, compose)
        foreign = self._turn.foreign()
        if found.role in ASKED_FIRST and (foreign or await self._takes_much(found, compose)):
            kept = await self._changes.propose(found.scope, found.path, compose, passage, self._turn.proposal())
            return waiting_words(kept, self._turn.prefix, why=OF_OTHERS if foreign else TAKES_MUCH)
        after = ""

        def composed(before: str) -> str:
            nonlocal after
            after = compose(before)
            return after

        change = await self._write(found.scope, found.path, composed)
        if change is None:
            return f"Nothing was changed: {found.path} says that already."
        said = f"Written: {found.path}, {len(change.added)} added, {len(change.removed)} removed."
        if found.role is Role.SYSTEM:
            said += " Everybody is served by this file: what is about a person belongs in user.md."
        if found.role is Role.CURATED:
            said += f" {self._fullness(after)}"
        if found.role is Role.KNOWLEDGE and not change.before_hash and found.path != KNOWLEDGE_INDEX:
            said += await self._listed(found, after)
        return said

    async def _takes_much(self, found: Place, compose: Compose) -> bool:
        """Whether much of what stands there would go: a whole memory is not lost by one call of a tool."""
        old = await self._files.read(lambda workspace: workspace.read(found.scope, found.path))
        return old is not None and file_edits.takes_much(old.content, compose(old.content))

    async def _write(self, scope: Scope, path: str, compose: Compose) -> Change | None:
        turn = self._turn
        return await self._writer.change(scope, path, compose, cause="tool", cause_id=turn.turn_id, row_of=lambda entry: turn.row(entry, path))

    async def _checked(self, found: Place, compose: Compose) -> Compose:
        access = self._turn.access
        standing: tuple[lore.Page, ...] = ()
        if found.role is Role.KNOWLEDGE:
            standing = await self._files.read(lambda workspace: always_pages(workspace, access))

        def checked(before: str) -> str:
            after = compose(before)
            file_edits.check(before, after, found.path, found.role)
            _check_lore(found, before, after, standing)
            return after

        return checked

    async def _listed(self, found: Place, text: str) -> str:
        """A new page gets its one line in the index of its scope (WD-8)."""
        name = found.path.removeprefix("knowledge/")
        title = one_line(file_edits.title_of(found.path, text)).translate({ord("["): "(", ord("]"): ")"})[:TITLE_MAX]
        heading = _INDEX_TITLES.get(self._turn.language, _INDEX_TITLES["en"])

        def listed(before: str) -> str:
            if f"]({name})" in before:
                return before
            after = file_edits.with_line(before or f"{heading}\n", KNOWLEDGE_INDEX, Role.KNOWLEDGE, f"- [{title}]({name})")
            file_edits.check(before, after, KNOWLEDGE_INDEX, Role.KNOWLEDGE)
            return after

        try:
            await self._write(found.scope, KNOWLEDGE_INDEX, listed)
        except (FileRefused, FileUnreadable, StoreUnavailable) as error:
            return f" It could not be listed in {KNOWLEDGE_INDEX} ({error}): tell the person."
        return f" It is listed in {KNOWLEDGE_INDEX}."

    def _fullness(self, text: str) -> str:
        """A full memory is told, never a silent loss (WD-7)."""
        most = self._turn.prompt_max_tokens
        size = tokens.count(scope_templates.for_prompt("MEMORY.md", text))
        if not most:
            return ""
        share = f"{round(100 * size / most)} % of what a prompt holds ({size:,} of {most:,} tokens)"
        if size <= most:
            return f"It now takes {share}."
        return f"It now takes {share}, so its older lines are found by search alone. Tell the person this figure, and offer to merge lines."


def waiting_words(change: ProposedChange | None, prefix: str, *, why: str = OF_OTHERS) -> str:
    """What the model is told of a change that waits for the person's yes."""
    if change is None:
        return "Nothing was changed: the file says that already."
    gone = [f"- taken out: {line}" for line in change.removed[:SHOWN]]
    if len(change.removed) > SHOWN:
        gone.append(f"- taken out: {len(change.removed) - SHOWN} lines more, which `{prefix}memory dream show {change.id}` shows")
    lines = "\n".join([*gone, *(f"- added: {line}" for line in change.added)])
    return (
        f"Not written yet: {why}, so this change of {change.path} waits for the person's yes. Show the person exactly these lines and ask; they say "
        f"yes with `{prefix}memory apply {change.id}`, or no with `{prefix}memory discard {change.id}`.\n{lines}"
    )


def _check_lore(found: Place, before: str, after: str, standing: tuple[lore.Page, ...]) -> None:
    """All pages that always stand in the head together keep within their tokens (WD-139); what makes them fewer is never refused."""
    page, was = lore.always_page(found.path, after), lore.always_page(found.path, before)
    if page is None or (was is not None and page.tokens <= was.tokens):
        return
    total = page.tokens + sum(other.tokens for other in standing if other.path != found.path)
    if total > lore.ALWAYS_MAX_TOKENS:
        raise EditRefused(
            f"pages with `lore: always` may have {lore.ALWAYS_MAX_TOKENS:,} tokens together, and with this one they would have {total:,}: "
            "shorten it, or write `lore: match`"
        )
