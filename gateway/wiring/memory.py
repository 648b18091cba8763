"""The part of the composition root that is about memory: its files, saved memories, recall, summaries and dreams (see `gateway/app.py`)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from gateway import followups, index_rebuild, link_files, memory_export, notices, scope_removal
from gateway.audit import Actor
from gateway.background import Background
from gateway.commands.desks import Desks, Foretell
from gateway.commands.results import Results
from gateway.company import Company
from gateway.day_files import DayFiles
from gateway.embedding.change import EmbeddingChange
from gateway.embedding.desk import EmbeddingDesk
from gateway.embedding.making import find_former
from gateway.embedding.source import source_of
from gateway.equipping import Equipping, MoreTools
from gateway.file_changes import FileChanges
from gateway.file_writer import FileWriter
from gateway.followups import Followups
from gateway.forgetting import Forgetting
from gateway.heads import Heads
from gateway.importing import Importing
from gateway.index_rebuild import IndexRebuild
from gateway.indexing import Indexing
from gateway.jobs.handling import Handler
from gateway.link_files import LinkFiles
from gateway.log_tail import LogTail
from gateway.memory_export import MemoryExport
from gateway.memory_status import MemoryStatus
from gateway.nightly import Nightly
from gateway.onboarding import Onboarding
from gateway.overrides import Overrides
from gateway.people import Changes, People
from gateway.profile import Profile
from gateway.recall.talk_forgetting import TalkForgetter
from gateway.saved import deep_gate
from gateway.saved.forgetting import SavedForgetter
from gateway.scope_folders import ScopeFolders
from gateway.scope_removal import ScopeRemoval
from gateway.summaries.digesting import Digester
from gateway.summaries.summarist import Summarist
from gateway.summaries.summarizing import Summarizing
from gateway.tasks.desk import Tasks
from gateway.toolmaking import Toolmaking
from gateway.undoing import Undoing
from gateway.whys import Whys
from gateway.wiring.dreams import DreamParts, build_dreams
from gateway.wiring.panel import PanelParts, build_panel
from gateway.wiring.recall import RecallParts, build_recall
from gateway.wiring.saved import SavedParts, build_saved
from gateway.wiring.search import TALK_FOLDER, build_indexing, open_home
from gateway.wiring.summaries import SummaryParts, build_summaries
from gateway.wiring.surroundings import Surroundings
from gateway.wiring.tending import TendingParts, build_tending
from memory.head_files import HeadFiles
from memory.lore_pages import LorePages
from memory.ports import Embedder
from memory.workspace import Workspace
from memory.workspace_threads import WorkspaceThreads


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryParts:
    """`handlers`: of the jobs about memory, `errands` of those that somebody waits for."""

    files: WorkspaceThreads
    folders: ScopeFolders
    head_files: HeadFiles
    heads: Heads
    writer: FileWriter
    changes: FileChanges
    indexing: Indexing
    nightly: Nightly
    dreams: DreamParts
    undoing: Undoing
    forgetting: Forgetting
    onboarding: Onboarding
    toolmaking: Toolmaking
    status: MemoryStatus
    importing: Importing
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

    def desks(self, around: Surroundings, *, tasks: Tasks, company: Company, logs: LogTail, restart: Callable[[], None], foretell: Foretell) -> Desks:
        """What the commands are given."""
        return Desks(
            files=self.files,
            wake_jobs=around.wake_jobs,
            company=company,
            search=self.indexing.search,
            status=self.status,
            dreams=self.dreams.dreaming,
            changes=self.changes,
            undoing=self.undoing,
            whys=Whys(around.db, self.files),
            forgetting=self.forgetting,
            tasks=tasks,
            onboarding=self.onboarding,
            overrides=Overrides(around.db),
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
    db, config, clock, models, wake_jobs = around.db, around.config, around.clock, around.models, around.wake_jobs
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
    indexing = build_indexing(stack, around, files, embedder, change)
    on_written = indexing.changed
    head_files = HeadFiles(workspace)
    writer = FileWriter(db=db, files=files, clock=clock, on_written=on_written)
    changes = FileChanges(db=db, files=files, writer=writer, clock=clock)
    undoing = Undoing(db=db, files=files, clock=clock, writer=writer)
    profile = Profile(db=db, files=files, writer=writer, changes=changes, change_person=partial(_change_person, around.people), clock=clock)

    background = Background(db=db, models=models, config=config, clock=clock)
    summarist = Summarist(models=models, background=background, config=config)
    summaries = Summarizing(
        db=db,
        digester=Digester(models=models, background=background, config=config),
        day_files=DayFiles(files=files, clock=clock, on_written=on_written),
        config=config,
        clock=clock,
    )
    dreams = build_dreams(around, files, background=background, changes=changes, undoing=undoing, on_written=on_written)
    chats = build_summaries(db=db, clock=clock, config=config, summarist=summarist, wake_jobs=wake_jobs)
    talk_home = open_home(stack, around, TALK_FOLDER) if embedder else None
    recall = build_recall(db=db, clock=clock, config=config, embedder=embedder, home=talk_home, change=change)
    saved = build_saved(db=db, clock=clock, config=config, embedder=embedder, change=change)

    kinds = {"files": indexing.status, "messages": recall.indexing.status, "rows": saved.vectors.status}
    results = Results(db=db, dreams=dreams.dreaming, attachments=around.attachments, page=around.page, can=around.can)
    told = Followups(db=db, clock=clock, replies=around.replies, streams=around.streams, words={**results.words, notices.WHAT: notices.words})
    export = MemoryExport(db=db, files=files, attachments=around.attachments, timezone=lambda: config().timezone, clock=clock)
    removal = ScopeRemoval(files=files, forget_index=indexing.forget_scope, clock=clock)
    return MemoryParts(
        files=files,
        folders=ScopeFolders(files, db),
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
        nightly=Nightly(db=db, files=files, config=config, clock=clock, on_enqueued=wake_jobs),
        dreams=dreams,
        undoing=undoing,
        forgetting=Forgetting(
            db=db,
            files=files,
            clock=clock,
            writing=dreams.writing,
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
            wake_jobs=wake_jobs,
        ),
        panel=build_panel(saved, db=db, clock=clock, config=config, models=models, background=background, managers=around.managers),
        handlers={
            **summaries.handlers,
            **chats.handlers,
            **dreams.handlers,
            deep_gate.KIND: saved.deep(db=db, clock=clock, config=config, models=models, background=background).run,
            index_rebuild.KIND: IndexRebuild(indexing).run,
            memory_export.KIND: export.run,
            scope_removal.KIND: removal.run,
            link_files.KIND: LinkFiles(files=files, on_written=on_written).run,
        },
        errands={followups.KIND: told.run},
    )


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
