"""A chat with a past: its messages, their chunks, vectors of a hash embedder, and a search over them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

from memory import conversations, vectors
from memory.database import Database
from memory.embedders.calibration import Calibration, calibrate
from memory.file_search import Serving
from memory.hot_areas import HotAreas
from memory.index_kinds import MESSAGES
from memory.ports import Embedder
from memory.query import Query
from memory.recall import asking, chunk_store, chunks, real_talk
from memory.recall.reach import Reach
from memory.recall.talk_search import Asked, Recalled, TalkSearch

START = datetime(2026, 1, 5, 9, tzinfo=UTC)
GAP = timedelta(hours=6)


@dataclass(slots=True)
class Talks:
    """`embedder`: None for words alone."""

    db: Database
    embedder: Embedder | None = None
    calibration: Calibration | None = None
    hot: HotAreas = field(default_factory=lambda: HotAreas(MESSAGES))
    clock: datetime = START

    async def chat(self, key: str = "web::1") -> str:
        return await self.db.write(lambda c: conversations.create_conversation(c, now=START, key=key, channel="web", account="", kind="web"))

    async def say(self, of: str, *lines: str, by_us: bool = False, speaker: str = "Ann", **more: object) -> list[conversations.Message]:
        said: list[conversations.Message] = []
        for line in lines:
            self.clock += timedelta(minutes=1)
            values: dict[str, object] = {
                "role": "assistant" if by_us else "user", "origin": "assistant" if by_us else "person", "scope": "root", "author_name": speaker,
            } | more  # fmt: skip
            now = self.clock
            said.append(await self.db.write(
                lambda c, now=now, line=line, values=values: conversations.add_message(c, conversation_id=of, text=line, now=now, **values)  # pyright: ignore
            ))  # fmt: skip
        return said

    async def cut(self, of: str) -> int:
        """Chunks of what no chunk holds, with their vectors; how many are new."""
        part = self.embedder.passage_tokens if self.embedder is not None else 0
        talk = await self.db.read(lambda c: real_talk.uncut(c, of))
        made = chunks.cut(talk, (), gap=GAP, part_tokens=part)
        for chunk in made:
            await self.db.write(lambda c, chunk=chunk: chunk_store.add(c, of, chunk, self.clock))
        await self.embed()
        return len(made)

    async def embed(self) -> None:
        if self.embedder is None:
            return
        embedder = self.embedder
        if self.calibration is None:
            self.calibration = await calibrate(embedder)
        found = await self.db.read(lambda c: vectors.missing(c, MESSAGES, embedder.fingerprint, 100_000))
        rows = await embedder.documents([each.text for each in found])
        made = {each.text_hash: row for each, row in zip(found, rows, strict=True) if row is not None}
        await self.db.write(lambda c: vectors.put(c, embedder.fingerprint, made))
        self.hot.vectors_changed()

    def serving(self) -> Serving:
        return Serving(vectors="ok" if self.embedder is not None else "off", embedder=self.embedder, calibration=self.calibration)

    async def ask(
        self, text: str, of: str, *, edge: int = 10**9, names: Sequence[str] = (), not_telling: Sequence[str] = (), **more: object
    ) -> Recalled:
        search = TalkSearch(
            self.db, self.hot, serving=self.serving, words_weight=lambda: 0.5, name_weight=lambda: 8.0, floor_percentile=lambda: 97.0,
            text_share=lambda: 0.55,
        )  # fmt: skip
        asked = Asked(text=text, names=asking.names_in(text, names, not_telling), query=Query(text, time_limit_s=1.5))
        reach = Reach(**{"conversation_id": of, "audiences": ("",), "edge": edge, **more})  # pyright: ignore[reportArgumentType]
        return await search.search(asked, [reach])


def told(found: Recalled) -> list[str]:
    """The best line of each find."""
    return [passage.messages[passage.best].text for passage in found.passages]
