"""Chroma, embedded or as a server: the one place that speaks to it (WD-120, WD-125 to WD-128). One thread of its own does all the calls.

Only `upsert`, never `add`; our own vectors, never its embedding function; telemetry off. Errors of any kind become IndexFailed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar, cast
from urllib.parse import urlsplit

import numpy as np

from memory import chroma_guard
from memory.areas import IndexArea
from memory.index_errors import IndexFailed
from memory.ports import Vector

if TYPE_CHECKING:
    from chromadb import Collection as ChromaCollection
    from chromadb.api import ClientAPI
    from chromadb.api.collection_configuration import CreateHNSWConfiguration
    from chromadb.base_types import Metadata

T = TypeVar("T")

CALL_S = 60.0
QUERY_S = 2.0
_PAGE = 5_000
# With half the neighbours, its default, up to one in a hundred of vectors that lie close together is reached from nowhere: checks fail for nothing.
_HNSW: CreateHNSWConfiguration = {"space": "cosine", "max_neighbors": 32, "ef_construction": 200}
_ITS_MODULES = frozenset({"chromadb", "httpx", "httpcore", "pyo3_runtime"})



class ChromaIndex:
    """A `VectorIndex`, opened at the first call. `folder`: of the embedded database, held by this process alone (WD-120); `url`: of a server."""

    def __init__(self, *, folder: Path | None = None, url: str = "") -> None:
        self._folder = folder
        self._url = url
        self._client: ClientAPI | None = None
        self._collections: dict[str, ChromaCollection] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="chroma")

    async def upsert(self, collection: str, area: Mapping[str, IndexArea], vectors: Mapping[str, Vector]) -> None:
        kept = chroma_guard.usable(vectors)
        if kept:
            await self._run(lambda: self._upsert(collection, area, kept), CALL_S)

    async def delete(self, collection: str, keys: Collection[str]) -> None:
        wanted = sorted({key for key in map(chroma_guard.clean_text, keys) if key})
        if wanted:
            await self._run(lambda: self._delete(collection, wanted), CALL_S)

    async def query(self, collection: str, areas: Sequence[IndexArea], vector: Vector, count: int) -> dict[str, float]:
        if not areas or not chroma_guard.usable({"question": vector}):
            return {}
        return await self._run(lambda: self._query(collection, areas, vector, max(1, count)), QUERY_S)

    async def keys(self, collection: str) -> set[str]:
        return await self._run(lambda: self._keys(collection), CALL_S)

    async def drop(self, collection: str) -> None:
        await self._run(lambda: self._drop(collection), CALL_S)

    async def close(self) -> None:
        """Forget the client; it has no close of its own."""
        self._collections.clear()
        self._client = None
        await asyncio.to_thread(self._thread.shutdown, wait=True, cancel_futures=True)

    # -- in the thread

    def _upsert(self, name: str, area: Mapping[str, IndexArea], vectors: Mapping[str, Vector]) -> None:
        client = self._open()
        collection = self._collection(name, make=True)
        for part in chroma_guard.batches(list(vectors), client.get_max_batch_size()):
            metadatas = cast("list[Metadata]", [chroma_guard.clean_metadata({"area": area.get(key)}) for key in part])
            collection.upsert(ids=list(part), embeddings=np.stack([vectors[key] for key in part]).astype(np.float32), metadatas=metadatas)

    def _delete(self, name: str, keys: list[str]) -> None:
        client = self._open()
        for part in chroma_guard.batches(keys, client.get_max_batch_size()):
            self._collection(name, make=True).delete(ids=list(part))

    def _query(self, name: str, areas: Sequence[IndexArea], vector: Vector, count: int) -> dict[str, float]:
        found = self._collection(name, make=False).query(
            query_embeddings=np.asarray([vector], dtype=np.float32),
            n_results=count,
            where={"area": {"$in": [chroma_guard.clean_text(area) for area in areas]}},
            include=["distances"],
        )
        distances = (found["distances"] or [[]])[0]
        return {key: 1.0 - float(distance) for key, distance in zip(found["ids"][0], distances, strict=True)}

    def _keys(self, name: str) -> set[str]:
        if name not in {each.name for each in self._open().list_collections()}:
            return set()
        collection, found = self._collection(name, make=False), set[str]()
        while page := collection.get(include=[], limit=_PAGE, offset=len(found))["ids"]:
            found.update(page)
        return found

    def _drop(self, name: str) -> None:
        self._collections.pop(name, None)
        if name in {each.name for each in self._open().list_collections()}:
            self._open().delete_collection(name)

    def _collection(self, name: str, *, make: bool) -> ChromaCollection:
        if name not in self._collections:
            client = self._open()
            self._collections[name] = (
                client.get_or_create_collection(name, configuration={"hnsw": _HNSW}, embedding_function=None)
                if make
                else client.get_collection(name, embedding_function=None)
            )
        return self._collections[name]

    def _open(self) -> ClientAPI:
        if self._client is None:
            self._client = open_client(self._folder, self._url)
        return self._client

    async def _run(self, work: Callable[[], T], limit_s: float) -> T:
        """`work` in the thread. A call that takes too long goes on there and is IndexFailed here."""
        try:
            future = asyncio.get_running_loop().run_in_executor(self._thread, work)
        except RuntimeError as error:
            raise IndexFailed("the vector index is closed") from error
        done, _ = await asyncio.wait({future}, timeout=limit_s)
        if not done:
            raise IndexFailed(f"the vector index took more than {limit_s:g} s")
        error = future.exception()
        if error is None:
            return future.result()
        if isinstance(error, IndexFailed):
            raise error
        if is_chromas(error):
            raise IndexFailed(f"the vector index failed: {error}") from error
        raise error


def open_client(folder: Path | None, url: str) -> ClientAPI:
    """A client, telemetry off. IndexFailed with `missing` where Chroma cannot be loaded: it is not installed, or this Python's SQLite is too old."""
    try:
        import chromadb
        from chromadb.config import Settings
    except (ImportError, RuntimeError) as error:
        raise IndexFailed(f"Chroma cannot be loaded: {error}", missing="chromadb, with SQLite 3.35 or newer") from error
    settings = Settings(anonymized_telemetry=False)
    if url:
        parts = urlsplit(url)
        secure = parts.scheme == "https"
        return chromadb.HttpClient(host=parts.hostname or "", port=parts.port or (443 if secure else 80), ssl=secure, settings=settings)
    assert folder is not None
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    return chromadb.PersistentClient(path=str(folder), settings=settings)


def is_chromas(error: BaseException) -> bool:
    """Whether something is wrong with Chroma, its folder or its server. A panic of its Rust core is no Exception, and it must not end us either."""
    return isinstance(error, ValueError | TypeError | RuntimeError | KeyError | OSError) or type(error).__module__.partition(".")[0] in _ITS_MODULES
