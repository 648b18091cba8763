"""The files of a memory for the page: list, read, write, remove, older texts (WD-17, WD-19, WD-20, WD-23)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import partial

from aiohttp import web

from gateway.file_view import blocks, marks
from gateway.file_writer import FileWriter
from gateway.http.base import Body, HttpFault, answer, body, language_of, not_found
from gateway.http.memory_scope import MemoryScopes, access_to
from memory import provenance, scope_switches, scope_templates
from memory.database import Database
from memory.file_errors import FileRefused, FileUnreadable, TooLarge
from memory.head_files import HeadFiles
from memory.layout import CURATED, KNOWLEDGE_INDEX, Role, place
from memory.line_diff import difference
from memory.lore import ALWAYS_MAX_TOKENS, always_page, standing
from memory.lore_pages import always_pages
from memory.markdown_lines import in_style_of
from memory.prompt_budget import share
from memory.scopes import Scope
from memory.texts import Conflict, FileInfo, Written
from memory.workspace import FILE_MAX_BYTES, Workspace
from memory.workspace_threads import WorkspaceThreads

READ_ONLY = frozenset({Role.DIARY})
"""What dreams write for people to read (WD-78)."""


class FileText(Body):
    """`based_on`: the hash that the editor began from; null makes a new file. `base`: the text of that hash, so that what was changed meanwhile can
    be shown also when that text is kept nowhere else."""

    content: str
    based_on: str | None
    base: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRow:
    """A file in the list; `size` in bytes. One that is not there yet has `exists` false and can be made under this name."""

    path: str
    role: Role
    size: int
    changed_at: datetime | None
    exists: bool
    editable: bool
    in_prompt: bool


class MemoryFileRoutes:
    """`prompt_max`: `memory.prompt_max_tokens` now; `knowledge`: the setting of that name now. `count_tokens`: tokens of a text."""

    def __init__(
        self,
        *,
        scopes: MemoryScopes,
        db: Database,
        files: WorkspaceThreads,
        head_files: HeadFiles,
        writer: FileWriter,
        prompt_max: Callable[[], int],
        knowledge: Callable[[], bool],
        count_tokens: Callable[[str], int],
    ) -> None:
        self._scopes = scopes
        self._db = db
        self._files = files
        self._head_files = head_files
        self._writer = writer
        self._prompt_max = prompt_max
        self._knowledge = knowledge
        self._count_tokens = count_tokens

    def routes(self) -> list[web.RouteDef]:
        path = r"/api/memory/files/{path:.+\.md}"
        return [
            web.get("/api/memory/files", self.list_files),
            web.get(f"{path}/revisions", self.revisions),
            web.get(f"{path}/revisions/{{id}}", self.revision),
            web.get("/api/memory/files/{path:.+}", self.read),
            web.put("/api/memory/files/{path:.+}", self.write),
            web.delete("/api/memory/files/{path:.+}", self.remove),
        ]

    async def list_files(self, request: web.Request) -> web.Response:
        scope = await self._scopes.of(request)
        rows, switched = await self._db.read(
            lambda connection: (
                provenance.lines_of(connection, str(scope), CURATED),
                scope_switches.knowledge_of(connection, str(scope)),
            )
        )
        uses_knowledge = self._knowledge() and switched is not False

        def look(workspace: Workspace) -> dict[str, object]:
            heads = {each.path: each for each in self._head_files.head(scope)}
            listed = workspace.files(scope)
            missing = [name for name in scope_templates.names_for(scope) if name not in {file.path for file in listed}]
            curated = heads.get(CURATED)
            most, text = self._prompt_max(), curated.text if curated else ""
            lore = standing(always_pages(workspace, access_to(scope)) if uses_knowledge else ())
            index = {KNOWLEDGE_INDEX} if uses_knowledge and self._head_files.text(scope, KNOWLEDGE_INDEX) else set[str]()
            in_prompt = heads.keys() | index | {page.path for page in lore.pages}
            return {
                "scope": str(scope),
                "files": [*(_missing(scope, name) for name in missing), *(_row(file, file.path in in_prompt) for file in listed)],
                "problems": workspace.problems(scope),
                "prompt": {
                    "tokens": self._count_tokens(text) if text else 0,
                    "max_tokens": most,
                    "left_out": share(text, rows, most, self._count_tokens).left_out,
                    "pages_left_out": lore.left_out,
                },
            }

        return answer(await self._files.read(look))

    async def read(self, request: web.Request) -> web.Response:
        scope, path = await self._scopes.of(request), request.match_info["path"]
        try:
            found, listed = await self._files.read(lambda workspace: (workspace.read(scope, path), workspace.stamp(scope, path)))
        except (FileRefused, FileUnreadable) as error:
            raise refusal(error) from error
        if found is None or listed is None:
            raise not_found()
        rows = await self._db.read(partial(provenance.lines_of, scope=str(scope), path=found.path))
        lines, shown = await asyncio.to_thread(lambda: (marks(found.content, rows), blocks(found.content)))  # seconds, for a large file
        return answer(
            {
                "path": found.path,
                "role": found.role,
                "content": found.content,
                "hash": found.hash,
                "changed_at": datetime.fromtimestamp(listed[1].changed_ns / 1e9, UTC),
                "editable": found.role not in READ_ONLY,
                "lines": lines,
                "blocks": shown,
            }
        )

    async def write(self, request: web.Request) -> web.Response:
        """A person's edit. 409 with both differences when somebody changed the file since `based_on`; nothing was written then (WD-17)."""
        scope, wish = await self._scopes.of(request), await body(request, FileText)
        path = self._editable(scope, request.match_info["path"])
        try:
            old = await self._files.read(lambda workspace: workspace.read(scope, path))
            text = in_style_of(old.content if old else "", wish.content)
            await self._check_lore(scope, path, old.content if old else "", text)
            done = await self._writer.save(scope, path, text, based_on=wish.based_on)
        except (FileRefused, FileUnreadable) as error:
            raise refusal(error) from error
        return _outcome(done, language_of(request), base=wish.base)

    async def remove(self, request: web.Request) -> web.Response:
        scope, based_on = await self._scopes.of(request), request.query.get("based_on", "")
        path = self._editable(scope, request.match_info["path"])
        try:
            done = await self._files.write(scope, lambda workspace: workspace.remove(scope, path, based_on=based_on))
        except FileUnreadable as error:
            raise refusal(error) from error
        if isinstance(done, Written):
            self._writer.on_written(scope, path)
        elif done.current is None:
            raise not_found()
        return _outcome(done, language_of(request))

    async def revisions(self, request: web.Request) -> web.Response:
        scope, path = await self._scopes.of(request), request.match_info["path"]
        try:
            found = await self._files.read(lambda workspace: workspace.revisions(scope, path))
        except FileRefused as error:
            raise refusal(error) from error
        return answer({"path": path, "revisions": [{"id": each.id, "replaced_at": each.replaced_at, "hash": each.hash} for each in found]})

    async def revision(self, request: web.Request) -> web.Response:
        """An older text, and what has changed from it to the file as it is now."""
        scope, path, wanted = await self._scopes.of(request), request.match_info["path"], request.match_info["id"]
        try:
            text, now = await self._files.read(lambda workspace: (workspace.revision(scope, path, wanted), workspace.read(scope, path)))
        except (FileRefused, FileUnreadable) as error:
            raise refusal(error) from error
        if text is None:
            raise not_found()
        current = now.content if now else ""
        return answer({"id": wanted, "path": path, "content": text, "hash": now.hash if now else None, "difference": difference(text, current)})

    async def _check_lore(self, scope: Scope, path: str, before: str, after: str) -> None:
        """All pages that always stand in prompts keep within their tokens; what makes them fewer is never refused (WD-139)."""
        page, was = always_page(path, after), always_page(path, before)
        if place(scope, path).role not in (Role.KNOWLEDGE, Role.PUBLIC) or page is None or (was is not None and page.tokens <= was.tokens):
            return
        others = await self._files.read(lambda workspace: always_pages(workspace, access_to(scope)))
        total = page.tokens + sum(other.tokens for other in others if other.path != path)
        if total > ALWAYS_MAX_TOKENS:
            raise HttpFault(422, "no_room", "error_file_lore", param="content", total=f"{total:,}", limit=f"{ALWAYS_MAX_TOKENS:,}")

    def _editable(self, scope: Scope, path: str) -> str:
        try:
            found = place(scope, path)
        except FileRefused as error:
            raise refusal(error) from error
        if found.role in READ_ONLY:
            raise HttpFault(422, "read_only", "error_file_read_only", param="path")
        return found.path


def refusal(error: FileRefused | FileUnreadable) -> HttpFault:
    """The 422 for what the workspace refuses: the path, the size, or a file that is no text (WD-20, WD-23)."""
    match error:
        case TooLarge():
            return HttpFault(422, "too_large", "error_file_large", param="content", limit=f"{FILE_MAX_BYTES // 1024} KiB")
        case FileUnreadable():
            return HttpFault(422, "unreadable", "error_file_unreadable", param="path")
        case _:
            return HttpFault(422, "bad_path", "error_file_path", param="path")


def _row(file: FileInfo, in_prompt: bool) -> FileRow:
    return FileRow(
        path=file.path, role=file.role, size=file.size, changed_at=file.changed_at, exists=True, editable=file.role not in READ_ONLY,
        in_prompt=in_prompt,
    )  # fmt: skip


def _missing(scope: Scope, name: str) -> FileRow:
    """A standard file before its first line (WD-2)."""
    return FileRow(path=name, role=place(scope, name).role, size=0, changed_at=None, exists=False, editable=True, in_prompt=False)


def _outcome(done: Written | Conflict, language: str, *, base: str | None = None) -> web.Response:
    if isinstance(done, Written):
        return answer({"hash": done.text.hash if done.text else None, "changed": done.changed, "revision": done.revision})
    fault = HttpFault(409, "conflict", "error_file_conflict", param="based_on")
    theirs = (replace(done, base=base) if done.base is None else done).theirs()
    current = {"content": done.current.content, "hash": done.current.hash} if done.current else None
    return answer({**fault.shown(language), "current": current, "mine": done.difference(), "theirs": theirs}, status=409)
