"""How a command gets at the gateway: the running one is asked; when none runs the command takes the lock of the data directory itself (WD-120)."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gateway.config import Config

EXIT_CONFIG = 78  # a supervisor must not restart for ever (WD-119)
EXIT_FAULT = 1
ANSWER_LIMIT_S = 120  # an import of years of notes; anything else answers at once

ConfigPath = Annotated[Path, typer.Option("--config", help="The configuration file.")]
DEFAULT_CONFIG = Path("config.json")


def known_config(path: Path) -> Config:
    from gateway.config.load import load

    loaded = load(path, os.environ)
    if loaded.config is None:
        complain(loaded.faults)
        raise typer.Exit(EXIT_CONFIG)
    return loaded.config


def running(config: Config) -> dict[str, str | int] | None:
    """What the running gateway of this data directory says about itself; None when none runs."""
    from memory.instance_lock import read_info

    info = read_info(config.data_dir)
    return info if info and "url" in info else None


def the_running(path: Path) -> dict[str, str | int]:
    """The same, or the end of the command."""
    info = running(known_config(path))
    if info is None:
        leave("no gateway runs: start it first with `yumegate run`")
    return info


def admin(path: Path, command: str, /, **arguments: str) -> dict[str, Any]:
    """Carry out a command of `gateway.admin`: in the running gateway, or here."""
    config = known_config(path)
    info = running(config)
    return ask(info, command, arguments) if info else _alone(config, command, arguments)


def in_running(path: Path, command: str) -> dict[str, Any]:
    """The same for what only a running gateway knows."""
    return ask(the_running(path), command, {})


def ask(info: dict[str, str | int], command: str, arguments: dict[str, str]) -> dict[str, Any]:
    from http.client import HTTPException
    from urllib.request import ProxyHandler, Request, build_opener

    body = json.dumps({"command": command, "arguments": arguments}).encode()
    headers = {"Content-Type": "application/json", "X-Control-Secret": str(info["secret"])}
    try:
        with build_opener(ProxyHandler({})).open(Request(f"{info['url']}/control", body, headers), timeout=ANSWER_LIMIT_S) as answer:
            told = json.load(answer)
    except (OSError, HTTPException, ValueError) as error:
        leave(f"the running gateway (process {info['pid']}) does not answer: {error}")
    return _result(told)


def _alone(config: Config, command: str, arguments: dict[str, str]) -> dict[str, Any]:
    import asyncio

    from gateway.offline import carry_out
    from memory.errors import StoreError

    try:
        told = asyncio.run(carry_out(config, command, arguments))
    except (StoreError, OSError) as error:
        leave(str(error))
    return _result(told)


def _result(told: dict[str, Any]) -> dict[str, Any]:
    if "fault" in told:
        leave(told["fault"])
    return told["ok"]


def complain(faults: Any) -> None:
    for fault in faults:
        print(fault, file=sys.stderr)
        if fault.excerpt and fault.severity != "note":
            print(fault.excerpt, file=sys.stderr)


def leave(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    raise typer.Exit(EXIT_FAULT)
