"""The child process of the demo model: `python -m agent.llm.demo_server GGUF THREADS`, key in the environment variable DEMO_KEY.

A process of its own, because loading holds the interpreter lock for most of a second and generation stalls the event loop. Writes one line of JSON,
`{"url": …}` or `{"error": …}`, then serves until its stdin ends: so it dies with the gateway, however that dies.
"""

from __future__ import annotations

import json
import os
import sys
from typing import NoReturn

import xllamacpp

from agent.llm.demo_window import CONTEXT_TOKENS

PARALLEL = 4
"""Requests that are answered at once; more wait their turn. Measured on one thread: the fourth of four people sees the first word after 0.9 s,
with two slots after 3.7 s, with eight all wait 1.4 s; the sum stays at 40 to 60 tokens a second. 516 MB instead of 339 MB."""
OUTPUT_TOKENS = 256
"""Where the request names no limit: so small a model repeats itself rather than end."""
TEMPERATURE = 0.5
REPEAT_PENALTY, REPEAT_WITHIN = 1.1, 256
"""Without them "Hello" may be answered by one sign five hundred times over, for a minute."""


def params(gguf: str, threads: int, key: str) -> xllamacpp.CommonParams:
    settings = xllamacpp.CommonParams()
    settings.model.path = gguf
    settings.n_ctx = CONTEXT_TOKENS * PARALLEL
    settings.n_parallel = PARALLEL
    settings.n_predict = OUTPUT_TOKENS
    settings.cpuparams.n_threads = threads
    settings.sampling.temp = TEMPERATURE
    settings.sampling.penalty_repeat = REPEAT_PENALTY
    settings.sampling.penalty_last_n = REPEAT_WITHIN
    settings.hostnames = ["127.0.0.1"]
    settings.port = 0
    settings.api_keys = [key]
    settings.use_jinja = True
    settings.warmup = False
    settings.verbosity = -1
    settings.ui = False
    settings.endpoint_slots = False
    settings.cors_origins = ""
    settings.cache_ram_mib = 0  # its default keeps up to 8 GB of old prompts in memory
    settings.cache_idle_slots = False
    return settings


def main() -> NoReturn:
    gguf, threads = sys.argv[1], int(sys.argv[2])
    try:
        server = xllamacpp.Server(params(gguf, threads, os.environ.pop("DEMO_KEY")))
    except RuntimeError as error:
        _say({"error": str(error)})
        os._exit(1)
    _say({"url": server.listening_address})
    sys.stdin.buffer.read()
    os._exit(0)  # the server has no stop; its threads would keep the process


def _say(line: dict[str, str]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
