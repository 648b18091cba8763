"""Where vectors come from: the order of four places, what is refused with which words, and that every field reaches the request."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from gateway.config import Config
from gateway.config.load import Loaded, load
from gateway.doctor.embeddings import embeddings
from gateway.doctor.finding import Verdict
from gateway.embedding.making import embedder_of, find_former, make_embedder
from gateway.embedding.source import PICK, SourceFault, source_faults, source_of
from memory.embedders.builtin import fast_encoder, nano_e5
from memory.embedders.endpoint import fingerprint_of
from tests.peers.embeddings import FakeEmbeddings, serving

OWN = {"embedding_model": "own", "embedding_url": "https://own.example/v1", "api_key": "key-own"}
LENT = {"provider": "openai", "name": "chat", "base_url": "https://lent.example/v1", "api_key": "key-lent", "embedding_model": "lent"}
DEFAULT = {"provider": "openai", "base_url": "https://app.example/v1", "api_key": "key-app", "model": "app"}


def config(**keys: Any) -> Config:
    return Config.model_validate(keys, strict=False)


def read(folder: Path, **keys: Any) -> Loaded:
    (folder / "config.json").write_text(json.dumps(keys), encoding="utf-8")
    return load(folder / "config.json", {"HOME": str(folder)})


@pytest.mark.rule("RS-24", "WO-41")
@pytest.mark.parametrize(("own", "borrowed", "application"), list(product((True, False), repeat=3)))
def test_the_own_embeddings_go_before_borrowed_ones_these_before_the_applications_and_the_built_in_is_last(
    own: bool, borrowed: bool, application: bool
) -> None:
    account = {**(OWN if own else {}), **({"embedding_from": "friend"} if borrowed else {})}
    chosen = config(model=account, models={"friend": LENT}, **({"embedding": DEFAULT} if application else {}))
    source = source_of(chosen)
    wanted = "own" if own else "lent" if borrowed else "app" if application else ""
    assert (source.kind, source.model) == ("openai" if wanted else "builtin", wanted)
    assert source.place == {"own": ("model",), "lent": ("models", "friend"), "app": ("embedding",), "": ()}[wanted]
    assert source.api_key.get_secret_value() == (f"key-{wanted}" if wanted else "")
    assert list(source_faults(chosen)) == []


@pytest.mark.rule("RS-24", "WO-41")
def test_an_account_borrows_through_another_and_without_an_address_of_its_own_its_endpoint_is_asked() -> None:
    chosen = config(model={"embedding_from": "a"}, models={"a": {"embedding_from": "b"}, "b": LENT})
    assert (source_of(chosen).base_url, source_of(chosen).place) == ("https://lent.example/v1", ("models", "b"))
    off = config(embedding={"provider": "none"})
    assert source_of(off).kind == "none" and make_embedder(off) is None
    assert source_of(config(model=OWN, embedding={"provider": "none"})).model == "own"


FAULTS: list[tuple[dict[str, Any], str, str]] = [
    ({"model": {"embedding_from": "b"}, "models": {"b": {}}}, "model.embedding_from", "no embeddings"),
    ({"model": {"embedding_from": "b"}, "models": {"b": {"embedding_from": "c"}, "c": {}}}, "models.b.embedding_from", "no embeddings"),
    ({"model": {"embedding_model": "e"}}, "model.embedding_url", "no endpoint of its own"),
    ({"models": {"b": {"embedding_url": "https://x.example/v1"}}}, "models.b.embedding_model", "is needed with embedding_url"),
]


@pytest.mark.rule("RS-26")
@pytest.mark.parametrize(("keys", "path", "words"), FAULTS)
def test_an_account_without_embeddings_asks_to_pick_a_dedicated_one(tmp_path: Path, keys: dict[str, Any], path: str, words: str) -> None:
    (fault,) = [each for each in read(tmp_path, **keys).errors if each.path == path]
    assert words in fault.message and fault.hint == PICK
    assert "OpenAI-compatible" in PICK and "Google" in PICK and "built-in" in PICK


@pytest.mark.rule("RS-24", "WO-41")
def test_a_circle_is_refused_with_its_keys(tmp_path: Path) -> None:
    keys = {"model": {"embedding_from": "a"}, "models": {"a": {"embedding_from": "model"}}}
    with pytest.raises(SourceFault, match=r"model\.embedding_from → models\.a\.embedding_from → model\.embedding_from"):
        source_of(config(**keys))
    told = [each for each in read(tmp_path, **keys).errors if "circle" in each.message]
    assert {each.path for each in told} == {"model.embedding_from", "models.a.embedding_from"}
    with pytest.raises(SourceFault, match="no such account"):
        source_of(config(model={"embedding_from": "nobody"}))


@pytest.mark.rule("RS-26")
def test_googles_own_address_is_not_that_of_openais_form_and_the_right_one_is_named(tmp_path: Path) -> None:
    google = {"provider": "openai", "model": "gemini-embedding-001", "base_url": "https://generativelanguage.googleapis.com/v1beta"}
    (told,) = read(tmp_path, timezone="UTC", embedding=google).warnings
    assert told.path == "embedding.base_url" and "v1beta/openai" in told.hint
    google["base_url"] += "/openai"
    assert not read(tmp_path, timezone="UTC", embedding=google).faults


@pytest.mark.rule("RS-29")
@pytest.mark.parametrize(
    ("address", "paid"),
    [
        ("https://api.example.com/v1", True), ("http://8.8.8.8/v1", True), ("http://127.0.0.1:11434/v1", False), ("http://localhost:1234/v1", False),
        ("http://192.168.1.5:8080/v1", False), ("http://ollama:11434/v1", False), ("http://box.local/v1", False), ("http://[::1]:1/v1", False),
    ],
)  # fmt: skip
def test_what_is_asked_on_this_machine_or_in_this_network_is_not_paid_for(address: str, paid: bool) -> None:
    assert source_of(config(embedding={"provider": "openai", "base_url": address, "model": "e"})).is_paid is paid


@pytest.mark.rule("RS-178")
@pytest.mark.parametrize(
    ("model", "english"),
    [
        ("text-embedding-3-small", False), ("gemini-embedding-001", False), ("bge-m3", False), ("paraphrase-multilingual-MiniLM-L12-v2", False),
        ("all-MiniLM-L6-v2", True), ("BAAI/bge-small-en-v1.5", True), ("nomic-embed-text", True), ("nomic-embed-text-v2-moe", False),
        ("jina-embeddings-v2-base-en", True),
    ],
)  # fmt: skip
async def test_a_model_for_english_alone_is_labelled_so(model: str, english: bool) -> None:
    source = source_of(config(embedding={"provider": "openai", "base_url": "http://127.0.0.1:9/v1", "model": model}))
    assert source.is_english_only is english
    assert not source_of(config()).is_english_only


@pytest.mark.rule("RS-27")
async def test_with_nothing_set_the_built_in_model_is_used_and_nothing_is_loaded() -> None:
    made = make_embedder(config())
    better = make_embedder(config(embedding={"model": "e5"}))
    assert made is not None and better is not None
    fast, e5 = fast_encoder(), nano_e5()
    assert (made.fingerprint, better.fingerprint) == (fast.fingerprint, e5.fingerprint)
    for each in (made, better, fast, e5):
        await each.close()
    (found,) = await embeddings(config())
    assert found.verdict is Verdict.OK


# -- a real endpoint ---------------------------------------------------------------------------------------------------


@pytest.fixture
async def fake() -> AsyncIterator[FakeEmbeddings]:
    async with serving(FakeEmbeddings(24)) as made:
        yield made


@pytest.mark.rule("RS-25", "WO-41")
async def test_each_field_of_an_account_reaches_the_request(fake: FakeEmbeddings) -> None:
    account = {"embedding_model": "vectors-1", "embedding_url": fake.url, "api_key": "sk-TEST-embed"}
    for keys in ({"model": account}, {"model": {"embedding_from": "x"}, "models": {"x": account}}):
        made = make_embedder(config(**keys))
        assert made is not None and await made.dimension() == 24
        assert (fake.models[-1], fake.keys[-1]) == ("vectors-1", "Bearer sk-TEST-embed")
        await made.close()


@pytest.mark.rule("SM-95", "RS-183")
async def test_whoever_served_is_found_as_long_as_the_configuration_names_it(fake: FakeEmbeddings) -> None:
    old = fingerprint_of(fake.url, "vectors-1")
    named = config(embedding={"base_url": fake.url, "model": "vectors-1"})  # the provider is the built-in one by now
    former = find_former(named)(old)
    assert former is not None and former.fingerprint == old and await former.dimension() == 24
    await former.close()
    assert find_former(config())(old) is None
    fast = fast_encoder()
    built_in = find_former(config())(fast.fingerprint)
    assert built_in is not None
    await built_in.close()
    await fast.close()


@pytest.mark.rule("WO-35", "RS-26", "RS-178")
async def test_doctor_asks_the_endpoint_and_says_what_to_pick_where_there_are_no_embeddings(fake: FakeEmbeddings) -> None:
    named = config(embedding={"provider": "openai", "base_url": fake.url, "model": "all-minilm"})
    well, english = await embeddings(named)
    assert (well.verdict, english.verdict) == (Verdict.OK, Verdict.WARN) and "24" in well.text
    fake.status = 404
    refused = (await embeddings(named))[0]
    assert (refused.verdict, refused.next_step) == (Verdict.FAIL, PICK)
    fake.status = 503
    assert "can be reached" in (await embeddings(named))[0].next_step
    assert (await embeddings(config(embedding={"provider": "none"})))[0].verdict is Verdict.OK
    source = source_of(named)
    made = embedder_of(source)
    assert made is not None and made.label == "all-minilm"
    await made.close()
