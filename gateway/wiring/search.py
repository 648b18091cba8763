"""The part of the composition root that is about the search of files, and where the vectors of large areas live (see `gateway/app.py`)."""

from __future__ import annotations

from contextlib import AsyncExitStack

from gateway.embedding.change import EmbeddingChange
from gateway.indexing import Indexing, IndexSettings
from gateway.wiring.surroundings import Surroundings
from gateway.zone_names import otherwise
from memory.chroma_home import ChromaHome
from memory.ports import Embedder
from memory.scopes import Scope
from memory.workspace_threads import WorkspaceThreads

FILES_FOLDER, TALK_FOLDER = "chroma", "chroma-talk"  # one for files and one for the talk: a damaged one is put aside without the other


def build_indexing(
    stack: AsyncExitStack, around: Surroundings, files: WorkspaceThreads, embedder: Embedder | None, change: EmbeddingChange
) -> Indexing:
    """`change`: which embedder serves. The embedder is closed by `stack`."""
    config, settings = around.config, around.config()
    home = None
    if embedder is not None:
        stack.push_async_callback(embedder.close)
        home = open_home(stack, around, FILES_FOLDER)

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


def open_home(stack: AsyncExitStack, around: Surroundings, folder: str) -> ChromaHome:
    settings = around.config()
    home = ChromaHome(settings.data_dir / folder, settings.chroma.url)
    stack.push_async_callback(home.close)
    return home
