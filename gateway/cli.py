"""The command line. Nothing heavy is imported at the top: `check`, `login-link` and `token` must answer at once.

A command that needs the store asks the running gateway; when none runs it takes the lock of the data directory itself (WD-120).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from typing import Annotated, Any

import typer

from gateway.console.asking import DEFAULT_CONFIG, EXIT_CONFIG, EXIT_FAULT, ConfigPath, admin, ask, complain, the_running
from gateway.console.jobs import embeddings_app, job_app
from gateway.console.login import login
from gateway.console.moving import backup, import_app, restore
from gateway.console.pairing import pair_app

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Yumegate: one agent for Telegram, Discord, WeChat and the web.")
token_app = typer.Typer(no_args_is_help=True, help="API tokens.")
app.add_typer(pair_app, name="pair")
app.add_typer(token_app, name="token")
app.add_typer(job_app, name="job")
app.add_typer(import_app, name="import")
app.add_typer(embeddings_app, name="embeddings")


@app.command()
def run(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Start the gateway and print the page's address with a one-time login link."""
    import asyncio
    import signal

    from gateway.config.load import load
    from gateway.logs import start_logging
    from gateway.running import Gateway, Started
    from gateway.starting import CannotStart
    from memory.errors import StoreError

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy is not imported yet; its idle threads would spin on the cores that answer
    loaded = load(config, os.environ)
    page_is_off = any(fault.section == "channels.web" and fault.severity == "error" for fault in loaded.faults)
    if loaded.config is None or page_is_off:  # without its page nobody could reach the gateway, or see why
        complain(loaded.faults)
        raise typer.Exit(EXIT_CONFIG)
    redactor = start_logging(loaded.config.log.level, loaded.config.log.format)
    complain(loaded.faults)
    gateway = Gateway(loaded, load=lambda: load(config, os.environ), redactor=redactor)

    def ready(started: Started) -> None:
        print(welcome(started.page, started.login_link, demo=loaded.config is not None and loaded.config.model.provider == "demo"), flush=True)

    async def serve() -> None:
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, _stop_or_leave, stop)
        await gateway.run(stop, ready)

    try:
        asyncio.run(serve())
    except (CannotStart, StoreError, OSError) as error:
        print(f"Yumegate does not start: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_FAULT) from error
    if gateway.restarting:  # the same process under the same number: whoever supervises it notices nothing
        os.execv(sys.executable, [sys.executable, "-m", "gateway", *sys.argv[1:]])


def welcome(page: str, link: str, *, demo: bool) -> str:
    """What a start prints; its first two lines are read by programs too."""
    lines = [f"Yumegate is ready: {page}", f"Sign in once with this link (10 minutes): {link}", "Another link: the command login-link. Ctrl+C stops."]
    if demo:
        lines.append("A tiny demo model answers for now; “Set up a model” on the page connects a real one.")
    return "\n".join(lines)


def _stop_or_leave(stop: Any) -> None:
    """The first signal drains; a second leaves at once, which is safe: everything acknowledged is stored (CH-100)."""
    if stop.is_set():
        os._exit(EXIT_FAULT)
    stop.set()


@app.command()
def check(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Check the configuration and say everything that is wrong with it."""
    from gateway.config.load import load

    loaded = load(config, os.environ)
    complain(loaded.faults)
    if loaded.check_failed:
        raise typer.Exit(EXIT_CONFIG if loaded.config is None else EXIT_FAULT)
    print(f"{config}: in order")


@app.command()
def doctor(config: ConfigPath = DEFAULT_CONFIG, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Look at everything the gateway needs and say what is wrong and what to do."""
    import asyncio

    from gateway.doctor.examining import examine
    from gateway.doctor.finding import Verdict

    findings = asyncio.run(examine(config, os.environ))
    if as_json:
        print(json.dumps([finding.as_json() for finding in findings], ensure_ascii=False, indent=2))
    else:
        for finding in findings:
            print(finding)
    if any(finding.verdict is Verdict.FAIL for finding in findings):
        raise typer.Exit(EXIT_FAULT)


@app.command("login-link")
def login_link(config: ConfigPath = DEFAULT_CONFIG, person: Annotated[str, typer.Option(help="Whose; the owner's when left out.")] = "") -> None:
    """Print a one-time link to sign in with."""
    print(admin(config, "login-link", person=person)["url"])


@app.command()
def why(address: Annotated[str, typer.Argument(help="channel:account:chat[:thread]")], config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Say what happened to the last message of a chat."""
    print(admin(config, "why", address=address)["text"])


@app.command()
def release(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Take up the deliveries that were parked after several unclean ends."""
    print(f"{admin(config, 'release')['released']} messages are being taken up")


@app.command()
def chat(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Talk in the terminal with the running gateway."""
    import asyncio

    from gateway.terminal import talk

    info = the_running(config)
    made = ask(info, "token create", {"name": "terminal"})
    asyncio.run(talk(str(info["url"]), made["token"], token_id=made["id"]))


@token_app.command("create")
def token_create(
    name: Annotated[str, typer.Option(help="What it is for.")],
    person: Annotated[str, typer.Option(help="Whose: a name or id; the owner's when left out.")] = "",
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Make an API token and print it, alone on the last line."""
    made = admin(config, "token create", name=name, person=person)
    print(f"A token for {made['person']}; it is shown only now:", file=sys.stderr)
    print(made["token"])


for of_its_own in (backup, restore, login):
    app.command()(of_its_own)


def main() -> None:
    """The script `yumegate`. Output never fails on a console that cannot show a character (CF-02); files are ours alone (WD-16)."""
    os.umask(0o077)
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Callable[..., None] | None = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    app()
