"""The half of the composition root that is about memory in files: who writes them, who searches them, what the night does (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from pathlib import Path

import sqlalchemy as sa

from channels.message import Account
from channels.port import Capabilities
from gateway import deep_gate, followups, index_rebuild, link_files, memory_export, notices, scope_removal
from gateway.adoption import Adoption
from gateway.app_panel import PanelParts, build_panel
from gateway.app_recall import RecallParts, build_recall
from gateway.app_saved import SavedParts, build_saved
from gateway.app_summaries import SummaryParts, build_summaries
from gateway.app_tending import TendingParts, build_tending
from gateway.attachments import Attachments
from gateway.audit import Actor
from gateway.background import Background
from gateway.commands.desks import Desks, Foretell
from gateway.commands.results import Results
from gateway.company import Company
from gateway.config import Config
from gateway.day_files import DayFiles
from gateway.digesting import Digester
from gateway.dream_asking import DreamAsking
from gateway.dream_desk import Desk
from gateway.dream_job import KIND as DREAM
from gateway.dream_job import DreamJob
from gateway.dream_night import question_of_refused
from gateway.dream_reading import DreamReading, FindManagers
from gateway.dream_writing import DreamWriting
from gateway.dreaming import Dreaming
from gateway.embedder_making import find_former
from gateway.embedding_change import EmbeddingChange
from gateway.embedding_desk import EmbeddingDesk
from gateway.embedding_source import source_of
from gateway.equipping import Equipping, MoreTools
from gateway.file_changes import FileChanges
from gateway.file_writer import FileWriter
from gateway.followups import Followups
from gateway.forgetting import Forgetting
from gateway.heads import Heads
from gateway.importing import Importing
from gateway.index_rebuild import IndexRebuild
from gateway.indexing import Indexing, IndexSettings
from gateway.job_store import Job
from gateway.jobs import Handler, JobContext, JobResult
from gateway.link_files import LinkFiles
from gateway.log_tail import LogTail
from gateway.memory_export import MemoryExport
from gateway.memory_status import MemoryStatus
from gateway.models import Models
from gateway.nightly import Nightly
from gateway.onboarding import Onboarding
from gateway.overrides import Overrides
from gateway.people import Changes, People
from gateway.profile import Profile
from gateway.prompt_shelf import PromptShelf
from gateway.replies import Replies
from gateway.saved_forgetting import SavedForgetter
from gateway.scope_folders import ScopeFolders
from gateway.scope_removal import ScopeRemoval
from gateway.streams import Streams
from gateway.summarist import Summarist
from gateway.summarizing import Summarizing
from gateway.talk_forgetting import TalkForgetter
from gateway.tasks import Tasks
from gateway.toolmaking import Toolmaking
from gateway.undoing import Undoing
from gateway.whys import Whys
from gateway.zone_names import otherwise
from memory.chroma_home import ChromaHome
from memory.database import Database
from memory.head_files import HeadFiles
from memory.lore_pages import LorePages
from memory.ports import Embedder
from memory.scopes import Kind, Scope, parse_scope
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads

CHROMA_FOLDER, TALK_FOLDER = "chroma", "chroma-talk"  # one for files and one for the talk: a damaged one is put aside without the other


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What the memory needs of the rest of the gateway. `wake_jobs`: there is new work in the job table; `page`: the address of the web page;
    `managers`: who of some people manages a space; `prompts`: of the newest replies."""

    db: Database
    config: Callable[[], Config]
    clock: Callable[[], datetime]
    models: Models
    replies: Replies
    streams: Streams
    attachments: Attachments
    people: People
    can: Callable[[Account], Capabilities | None]
    page: Callable[[], str]
    wake_jobs: Callable[[], None]
    managers: FindManagers
    prompts: PromptShelf


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """`handlers`: of the jobs about memory, `errands` of those that somebody waits for; `desk`: the page's side of dreams."""

    files: WorkspaceThreads
    folders: ScopeFolders
    head_files: HeadFiles
    heads: Heads
    writer: FileWriter
    changes: FileChanges
    indexing: Indexing
    nightly: Nightly
    dreaming: Dreaming
    desk: Desk
    undoing: Undoing
    forgetting: Forgetting
    onboarding: Onboarding
    toolmaking: Toolmaking
    status: MemoryStatus
    importing: Importing
    adoption: Adoption
    saved: SavedParts
    recall: RecallParts
    embeddings: EmbeddingDesk
    chats: SummaryParts
    panel: PanelParts
    tending: TendingParts
    handlers: Mapping[str, Handler]
    errands: Mapping[str, Handler]

    def equipping(self, *more: MoreTools) -> Equipping:
        """What the turns are given; `more`: tools of other parts."""
        return Equipping(
            folders=self.folders,
            heads=self.heads,
            toolmaking=self.toolmaking,
            onboarding=self.onboarding,
            lore=self.indexing.search,
            saved=self.saved.turns,
            recalling=self.recall.turns,
            more=more,
        )

    def desks(
        self,
        db: Database,
        *,
        tasks: Tasks,
        company: Company,
        logs: LogTail,
        restart: Callable[[], None],
        wake_jobs: Callable[[], None],
        foretell: Foretell,
    ) -> Desks:
        return Desks(
            files=self.files,
            wake_jobs=wake_jobs,
            company=company,
            search=self.indexing.search,
            status=self.status,
            dreams=self.dreaming,
            changes=self.changes,
            undoing=self.undoing,
            whys=Whys(db, self.files),
            forgetting=self.forgetting,
            tasks=tasks,
            onboarding=self.onboarding,
            overrides=Overrides(db),
            logs=logs,
            restart=restart,
            saved=self.panel.desk,
            shelves=self.panel.shelves,
            recall=self.tending.recall,
            summaries=self.tending.summaries,
            entries=self.tending.entries,
            foretell=foretell,
        )


def build_memory(stack: AsyncExitStack, around: Surroundings, embedder: Embedder | None) -> MemoryParts:
    """Tie the memory together; nothing runs yet, and what must be closed is on `stack`."""
    db, config, clock = around.db, around.config, around.clock
    settings = config()
    workspace = Workspace(
        settings.agent_workspace,
        settings.data_dir,
        clock,
        backups_keep=settings.memory.backups_keep,
        backup_days=settings.memory.backup_days,
    )
    files = WorkspaceThreads(workspace)
    stack.push_async_callback(files.close)
    source = source_of(settings)
    change = EmbeddingChange(db, clock, find_former(settings), is_paid=source.is_paid)
    indexing = _indexing(stack, around, files, embedder, change)
    on_written = indexing.changed
    writer = FileWriter(db=db, files=files, clock=clock, on_written=on_written)
    changes = FileChanges(db=db, files=files, writer=writer, clock=clock)
    reading = DreamReading(db=db, files=files, clock=clock, config=config, managers=around.managers)
    writing = DreamWriting(db=db, files=files, clock=clock, on_written=on_written)
    dreaming = Dreaming(db=db, files=files, clock=clock, config=config, reading=reading, writing=writing)
    undoing = Undoing(db=db, files=files, clock=clock, writer=writer)
    background = Background(db=db, models=around.models, config=config, clock=clock)
    summaries = Summarizing(
        db=db,
        digester=Digester(models=around.models, background=background, config=config),
        day_files=DayFiles(files=files, clock=clock, on_written=on_written),
        config=config,
        clock=clock,
    )
    dream = DreamJob(
        db=db,
        models=around.models,
        config=config,
        clock=clock,
        reading=reading,
        asking=DreamAsking(background),
        writing=writing,
        notify=partial(_notify, clock=clock),
    )
    adoption = Adoption(db=db, files=files, clock=clock, workspace=settings.agent_workspace, home=Path.home())

    async def dream_well(job: Job, context: JobContext) -> JobResult:
        await adoption.book()  # lines of a CowAgent folder used in place are nobody's fresh words (WD-28)
        return await dream.run(job, context)

    results = Results(db=db, dreams=dreaming, attachments=around.attachments, page=around.page, can=around.can)
    told = Followups(db=db, clock=clock, replies=around.replies, streams=around.streams, words={**results.words, notices.WHAT: notices.words})
    summarist = Summarist(models=around.models, background=background, config=config)
    chats = build_summaries(db=db, clock=clock, config=config, summarist=summarist, wake_jobs=around.wake_jobs)
    talk_home = _home(stack, around, TALK_FOLDER) if embedder else None
    recall = build_recall(db=db, clock=clock, config=config, embedder=embedder, home=talk_home, change=change)
    saved = build_saved(db=db, clock=clock, config=config, embedder=embedder, change=change)
    kinds = {"files": indexing.status, "messages": recall.indexing.status, "rows": saved.vectors.status}
    export = MemoryExport(db=db, files=files, attachments=around.attachments, timezone=lambda: config().timezone, clock=clock)
    removal = ScopeRemoval(files=files, forget_index=indexing.forget_scope, clock=clock)
    head_files = HeadFiles(workspace)
    profile = Profile(db=db, files=files, writer=writer, changes=changes, change_person=partial(_change_person, around.people), clock=clock)
    return MemoryParts(
        files=files,
        folders=ScopeFolders(files, around.db),
        head_files=head_files,
        heads=Heads(
            db=db,
            threads=files,
            files=head_files,
            pages=LorePages(workspace),
            curated_max=lambda: config().memory.prompt_max_tokens,
        ),
        writer=writer,
        changes=changes,
        indexing=indexing,
        nightly=Nightly(db=db, files=files, config=config, clock=clock, on_enqueued=around.wake_jobs),
        dreaming=dreaming,
        desk=Desk(db=db, files=files, clock=clock, dreaming=dreaming, undoing=undoing, changes=changes, wake_jobs=around.wake_jobs),
        undoing=undoing,
        forgetting=Forgetting(
            db=db,
            files=files,
            clock=clock,
            writing=writing,
            on_written=on_written,
            also=(SavedForgetter(db=db, clock=clock), TalkForgetter(db=db, changed=recall.indexing.changed), around.prompts),
        ),
        onboarding=Onboarding(db=db, profile=profile, config=config, clock=clock),
        toolmaking=Toolmaking(db=db, files=files, writer=writer, changes=changes, search=indexing.search, config=config),
        status=MemoryStatus(db=db, files=files, index=indexing, config=config, clock=clock),
        importing=Importing(
            db=db,
            files=files,
            clock=clock,
            workspace=settings.agent_workspace,
            timezone=lambda: config().timezone,
            on_written=on_written,
        ),
        adoption=adoption,
        saved=saved,
        recall=recall,
        embeddings=EmbeddingDesk(db=db, clock=clock, config=config, change=change, embedder=embedder, source=source, kinds=kinds),
        chats=chats,
        tending=build_tending(
            db=db,
            clock=clock,
            config=config,
            indexing=recall.indexing,
            summarist=summarist,
            managers=around.managers,
            wake_jobs=around.wake_jobs,
        ),
        panel=build_panel(saved, db=db, clock=clock, config=config, models=around.models, background=background, managers=around.managers),
        handlers={
            **summaries.handlers,
            **chats.handlers,
            DREAM: dream_well,
            deep_gate.KIND: saved.deep(db=db, clock=clock, config=config, models=around.models, background=background).run,
            index_rebuild.KIND: IndexRebuild(indexing).run,
            memory_export.KIND: export.run,
            scope_removal.KIND: removal.run,
            link_files.KIND: LinkFiles(files=files, on_written=on_written).run,
        },
        errands={followups.KIND: told.run},
    )


def _indexing(stack: AsyncExitStack, around: Surroundings, files: WorkspaceThreads, embedder: Embedder | None, change: EmbeddingChange) -> Indexing:
    config, settings = around.config, around.config()
    home = None
    if embedder is not None:
        stack.push_async_callback(embedder.close)
        home = _home(stack, around, CHROMA_FOLDER)

    async def list_scopes() -> list[Scope]:
        return list(await files.read(lambda workspace: workspace.scopes()))

    return Indexing(
        db=around.db,
        files=files,
        clock=around.clock,
        today=lambda: around.clock().astimezone(otherwise(config().timezone)).date(),
        list_scopes=list_scopes,
        embedder=embedder,
        home=home,
        change=change,
        settings=IndexSettings(
            chunk_tokens=settings.memory.chunk_tokens,
            chunk_overlap=settings.memory.chunk_overlap,
            canary_samples=settings.chroma.canary_samples,
            words_weight=lambda: config().search.words_weight.files,
        ),
    )


def _home(stack: AsyncExitStack, around: Surroundings, folder: str) -> ChromaHome:
    settings = around.config()
    home = ChromaHome(settings.data_dir / folder, settings.chroma.url)
    stack.push_async_callback(home.close)
    return home


def _notify(connection: sa.Connection, scope: str, key: str, values: Mapping[str, object], *, clock: Callable[[], datetime]) -> None:
    if followups.awaited(connection, scope, DREAM):
        return  # somebody asked for it in a chat and is told there
    now, proposal = clock(), str(values.get("id", ""))
    own = parse_scope(scope).kind is not Kind.SPACE  # a group's is decided there, and told to the owner elsewhere
    ask = partial(question_of_refused, proposal) if proposal and own else notices.nothing
    notices.tell(connection, scope, key, values, once=f"{scope}:{key}:{now.isoformat()}", now=now, ask=ask)


async def _change_person(people: People, person_id: str, columns: Mapping[str, str]) -> None:
    """`columns`: name, language and timezone, those that the person named."""
    if "name" in columns:
        await people.call(Actor(id=person_id), person_id, columns["name"])
    changes: Changes = {}
    if "language" in columns:
        changes["language"] = columns["language"]
    if "timezone" in columns:
        changes["timezone"] = columns["timezone"]
    await people.change(Actor(id=person_id), person_id, **changes)
