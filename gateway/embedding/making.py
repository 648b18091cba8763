"""Makes the embedder of a source, and finds the one that served before (RS-24, SM-95). Nothing is loaded before the first text."""

from __future__ import annotations

import logging
from collections.abc import Callable

from gateway.config import Config
from gateway.embedding.source import EmbeddingSource, source_of, sources_named
from memory.embedders.builtin import builtin_of, fast_encoder, is_installed, nano_e5
from memory.embedders.endpoint import EndpointEmbedder, fingerprint_of
from memory.embedders.resting import RestingEmbedder
from memory.ports import Embedder

log = logging.getLogger(__name__)

BETTER_AND_SLOW = "e5"  # `embedding.model` with the built-in provider (docs/decisions/0007)


def make_embedder(config: Config) -> Embedder | None:
    """Who makes vectors of texts; None: search by words alone, for it is switched off or its package is not there (RS-13)."""
    return embedder_of(source_of(config))


def embedder_of(source: EmbeddingSource) -> Embedder | None:
    match source.kind:
        case "builtin":
            built_in = nano_e5() if source.model == BETTER_AND_SLOW else fast_encoder()
            if not is_installed(built_in):
                log.warning("the built-in embedder %s is not installed: everything is found by its words alone", built_in.label)
                return None
            return RestingEmbedder(built_in)
        case "openai":
            return RestingEmbedder(_endpoint(source))
        case "none":
            return None


def find_former(config: Config) -> Callable[[str], Embedder | None]:
    """An embedder that served before, by its fingerprint: a built-in one, or an endpoint that the configuration names still. None for any other."""

    def find(fingerprint: str) -> Embedder | None:
        if (built_in := builtin_of(fingerprint)) is not None:
            return RestingEmbedder(built_in)
        for source in sources_named(config):
            if fingerprint_of(source.base_url, source.model) == fingerprint:
                return RestingEmbedder(_endpoint(source))
        return None

    return find


def _endpoint(source: EmbeddingSource) -> EndpointEmbedder:
    return EndpointEmbedder(base_url=source.base_url, api_key=source.api_key.get_secret_value(), model=source.model)
