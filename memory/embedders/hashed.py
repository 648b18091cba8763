"""A stand-in for an embedder: the words of a text, hashed into a vector. Texts that share words are near; meaning it knows none.

For tests and benches.
"""

from __future__ import annotations

import hashlib

import numpy as np

from memory import words
from memory.embedders.local import LocalEmbedder
from memory.ports import Matrix


class HashModel:
    def __init__(self, dimension: int) -> None:
        self.dimension = dimension

    def documents(self, texts: list[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for row, text in zip(rows, texts, strict=True):
            for token in words.tokens(text):
                digest = hashlib.blake2b(token.encode("utf-8", "surrogatepass"), digest_size=9).digest()
                row[int.from_bytes(digest[:8]) % self.dimension] += 1.0 if digest[8] & 1 else -1.0
        return rows

    def questions(self, texts: list[str]) -> Matrix:
        return self.documents(texts)


def hash_embedder(dimension: int = 64, name: str = "hash") -> LocalEmbedder:
    """`name` tells two of them apart, as a changed setting would."""
    return LocalEmbedder(lambda: HashModel(dimension), fingerprint=f"{name}/{words.VERSION}/{dimension}", label=name)
