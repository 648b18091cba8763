"""A child process that opens a Chroma database and asks it for vectors it must know (WD-121): what is damaged may end the process that opens it.

    python -m memory.chroma_probe FOLDER     the rest as one JSON value on standard input, the answer as one on standard output

In: {"url", "collection", "samples": {key: base64 of float32}}. Out: {"count": rows of the collection, "found": samples that found themselves}.
"""

from __future__ import annotations

import base64
import json
import sys
from pathlib import Path
from typing import TextIO, TypedDict

import numpy as np

from memory.chroma_client import open_client

_NEAR = 5
_SAME = 1e-3  # a distance so small is the vector itself, under the key of a text that says the same


class Question(TypedDict):
    url: str
    collection: str
    samples: dict[str, str]


class Answer(TypedDict):
    count: int
    found: int


def probe(folder: Path, question: Question) -> Answer:
    """Raises whatever Chroma raises: the parent sees the exit code. A collection that is not there, as after a restore, holds nothing."""
    client = open_client(folder, question["url"])
    if question["collection"] not in {each.name for each in client.list_collections()}:
        return {"count": 0, "found": 0}
    collection = client.get_collection(question["collection"], embedding_function=None)
    count, found = collection.count(), 0
    for key, encoded in question["samples"].items() if count else ():
        vector = np.frombuffer(base64.b64decode(encoded), dtype=np.float32)
        answer = collection.query(query_embeddings=vector[None, :], n_results=min(_NEAR, count), include=["distances"])
        distances = (answer["distances"] or [[]])[0]
        found += key in answer["ids"][0] or bool(distances and distances[0] <= _SAME)
    return {"count": count, "found": found}


def main(arguments: list[str], stdin: TextIO, stdout: TextIO) -> None:
    json.dump(probe(Path(arguments[0]), json.load(stdin)), stdout)


if __name__ == "__main__":
    main(sys.argv[1:], sys.stdin, sys.stdout)
