"""`yumegate login`: an account of a platform that is logged in with a phone."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.console.asking import DEFAULT_CONFIG, ConfigPath, ask, leave, the_running


def login(
    channel: Annotated[str, typer.Argument(help="wechat, or channel:account.")],
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Log an account in by scanning a code with the phone."""
    import segno

    info = the_running(config)
    told, drawn, said = ask(info, "login start", {"account": channel}), 0, ""
    while not told["ended"]:
        if told["text"] != said:
            said = told["text"]
            print(said, flush=True)
        if told["code"] and told["number"] != drawn:
            drawn = told["number"]
            segno.make(told["code"], micro=False).terminal(compact=True)
            print(told["code"], flush=True)
        if told["state"] == "number":
            ask(info, "login number", {"account": channel, "number": input("> ")})
        told = ask(info, "login follow", {"account": channel})
    if not told["ok"]:
        leave(told["text"])
    print(told["text"])
