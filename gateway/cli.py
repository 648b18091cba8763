"""The command line. Nothing heavy is imported at the top: `check`, `login-link` and `token` must answer at once.

A command that needs the store asks the running gateway; when none runs it takes the lock of the data directory itself (WD-120).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from gateway.config import Config

EXIT_CONFIG = 78  # a supervisor must not restart for ever (WD-119)
EXIT_FAULT = 1
ANSWER_LIMIT_S = 120  # an import of years of notes; anything else answers at once

app = typer.Typer(add_completion=False, no_args_is_help=True, help="Yumegate: one agent for Telegram, Discord, WeChat and the web.")
token_app = typer.Typer(no_args_is_help=True, help="API tokens.")
job_app = typer.Typer(no_args_is_help=True, help="Background jobs.")
import_app = typer.Typer(no_args_is_help=True, help="Memory from other programs.")
pair_app = typer.Typer(help="Who may talk: people who wait to be let in.")
app.add_typer(pair_app, name="pair")
app.add_typer(token_app, name="token")
app.add_typer(job_app, name="job")
app.add_typer(import_app, name="import")
embeddings_app = typer.Typer(help="Vectors of texts: where they come from, and the yes to a change that is paid for.")
app.add_typer(embeddings_app, name="embeddings")

ConfigPath = Annotated[Path, typer.Option("--config", help="The configuration file.")]
DEFAULT_CONFIG = Path("config.json")


@app.command()
def run(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Start the gateway and print the page's address with a one-time login link."""
    import asyncio
    import signal

    from gateway.config_load import load
    from gateway.logs import start_logging
    from gateway.running import CannotStart, Gateway, Started
    from memory.errors import StoreError

    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy is not imported yet; its idle threads would spin on the cores that answer
    loaded = load(config, os.environ)
    page_is_off = any(fault.section == "channels.web" and fault.severity == "error" for fault in loaded.faults)
    if loaded.config is None or page_is_off:  # without its page nobody could reach the gateway, or see why
        _complain(loaded.faults)
        raise typer.Exit(EXIT_CONFIG)
    redactor = start_logging(loaded.config.log.level, loaded.config.log.format)
    _complain(loaded.faults)
    gateway = Gateway(loaded, load=lambda: load(config, os.environ), redactor=redactor)

    def ready(started: Started) -> None:
        print(f"Yumegate is ready: {started.page}\nSign in once with this link (10 minutes): {started.login_link}", flush=True)

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


def _stop_or_leave(stop: Any) -> None:
    """The first signal drains; a second leaves at once, which is safe: everything acknowledged is stored (CH-100)."""
    if stop.is_set():
        os._exit(EXIT_FAULT)
    stop.set()


@app.command()
def check(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Check the configuration and say everything that is wrong with it."""
    from gateway.config_load import load

    loaded = load(config, os.environ)
    _complain(loaded.faults)
    if loaded.check_failed:
        raise typer.Exit(EXIT_CONFIG if loaded.config is None else EXIT_FAULT)
    print(f"{config}: in order")


@app.command()
def doctor(config: ConfigPath = DEFAULT_CONFIG, as_json: Annotated[bool, typer.Option("--json", help="For programs.")] = False) -> None:
    """Look at everything the gateway needs and say what is wrong and what to do."""
    import asyncio

    from gateway.doctor import Verdict, examine

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
    print(_admin(config, "login-link", person=person)["url"])


@app.command()
def why(address: Annotated[str, typer.Argument(help="channel:account:chat[:thread]")], config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Say what happened to the last message of a chat."""
    print(_admin(config, "why", address=address)["text"])


@app.command()
def release(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Take up the deliveries that were parked after several unclean ends."""
    print(f"{_admin(config, 'release')['released']} messages are being taken up")


@app.command()
def backup(
    target: Annotated[Path | None, typer.Argument(help="The archive to make; one named by the time, here, when left out.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Pack everything that was said and remembered into one archive, also while the gateway runs."""
    from gateway.backup_commands import CannotDo, back_up

    known = _config(config)
    try:
        print(back_up(known, target))
    except CannotDo as fault:
        _leave(str(fault))


@app.command()
def restore(archive: Annotated[Path, typer.Argument(help="What `backup` made.")], config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Put an archive in the place of everything; a gateway that runs begins again with it. What was there before is packed first."""
    from gateway.backup_commands import CannotDo, bring_back

    known = _config(config)
    try:
        print(bring_back(known, archive, lambda: _admin(config, "restart")))
    except CannotDo as fault:
        _leave(str(fault))


@app.command()
def chat(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Talk in the terminal with the running gateway."""
    import asyncio

    from gateway.terminal import talk

    info = _running(_config(config))
    if info is None:
        _leave("no gateway runs: start it first with `yumegate run`")
    made = _ask(info, "token create", {"name": "terminal"})
    asyncio.run(talk(str(info["url"]), made["token"], token_id=made["id"]))


@token_app.command("create")
def token_create(
    name: Annotated[str, typer.Option(help="What it is for.")],
    person: Annotated[str, typer.Option(help="Whose: a name or id; the owner's when left out.")] = "",
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Make an API token and print it, alone on the last line."""
    made = _admin(config, "token create", name=name, person=person)
    print(f"A token for {made['person']}; it is shown only now:", file=sys.stderr)
    print(made["token"])


@job_app.command("list")
def job_list(state: Annotated[str, typer.Option(help="Only those in this state.")] = "", config: ConfigPath = DEFAULT_CONFIG) -> None:
    """List background jobs, last changed first."""
    jobs = _admin(config, "job list", state=state)["jobs"]
    for job in jobs:
        print(f"{job['id']:>6}  {job['state']:<9} {job['kind']:<16} {job['key']}  {job['error']}".rstrip())
    if not jobs:
        print("no jobs")


@job_app.command("run")
def job_run(
    job: Annotated[str, typer.Argument(help="The job's number; or daily-summary or dream, for a run of its own.")],
    scope: Annotated[str, typer.Option(help="Whose memory, for a run of its own: root, people/<id> or spaces/<id>.")] = "",
    date: Annotated[str, typer.Option(help="Up to which day the summary goes, or from which the dream begins: 2026-03-08.")] = "",
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Let a waiting or parked job run now, or start a daily summary or a dream by hand."""
    told = _admin(config, "job run", job=job, scope=scope, date=date)
    print(f"job {told['job']} runs now" if told["running"] else f"job {told['job']} runs with the next start")


@embeddings_app.callback(invoke_without_command=True)
def embeddings(context: typer.Context, config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Say which embedding model runs, how far it has read, and what waits."""
    if context.invoked_subcommand is not None:
        return
    told = _in_running(config, "embeddings")
    print(f"{told['model'] or 'no embedding model'}" + ("; the configuration names another one, for the next start" if told["restart"] else ""))
    for each in told["kinds"]:
        print(f"{each['kind']:<10} {each['state']:<9} {each['embedded']:,} of {each['texts']:,}")
    if told["waits"]:
        print(f"{told['texts']:,} texts, about {told['tokens']:,} tokens, wait to be read: `yumegate embeddings confirm` lets it begin")


@embeddings_app.command("confirm")
def embeddings_confirm(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Let a new embedding model that costs money read everything."""
    told = _in_running(config, "embeddings confirm")
    print(f"it begins: {told['texts']:,} texts, about {told['tokens']:,} tokens; the old model answers until it is done")


@pair_app.callback(invoke_without_command=True)
def pair(
    context: typer.Context,
    owner: Annotated[str, typer.Option("--owner", help="Make somebody the owner: their code, or channel:account:id.")] = "",
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Make an account the owner's, or list who waits."""
    if owner and context.invoked_subcommand is None:
        _let_in(_admin(config, "pair owner", who=owner))
    elif context.invoked_subcommand is None:
        pair_list(config)


@pair_app.command("list")
def pair_list(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """List who waits to be let in; their codes are not kept, so ask them."""
    waiting = _admin(config, "pair list")["waiting"]
    for each in waiting:
        print(f"{each['number']:>6}  {each['account']:<20} {each['user']}  {each['name']}  until {each['until'][:16]} UTC")
    if not waiting:
        print("nobody waits")


@pair_app.command("approve")
def pair_approve(
    code: Annotated[str, typer.Argument(help="What the person was given: ABCD-EFGH.")],
    role: Annotated[str, typer.Option(help="user or admin.")] = "user",
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Let the person with this code in."""
    _let_in(_admin(config, "pair approve", code=code, role=role))


@pair_app.command("decline")
def pair_decline(number: Annotated[str, typer.Argument(help="From the list.")], config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Turn somebody away, without a word to them."""
    _admin(config, "pair decline", number=number)
    print("turned away")


def _let_in(told: dict[str, Any]) -> None:
    print(f"{told['name'] or told['person']} ({told['person']}) is let in with the role {told['role']}")


@app.command()
def login(
    channel: Annotated[str, typer.Argument(help="wechat, or channel:account.")],
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Log an account in by scanning a code with the phone."""
    import segno

    info = _running(_config(config))
    if info is None:
        _leave("no gateway runs: start it first with `yumegate run`")
    told, drawn, said = _ask(info, "login start", {"account": channel}), 0, ""
    while not told["ended"]:
        if told["text"] != said:
            said = told["text"]
            print(said, flush=True)
        if told["code"] and told["number"] != drawn:
            drawn = told["number"]
            segno.make(told["code"], micro=False).terminal(compact=True)
            print(told["code"], flush=True)
        if told["state"] == "number":
            _ask(info, "login number", {"account": channel, "number": input("> ")})
        told = _ask(info, "login follow", {"account": channel})
    if not told["ok"]:
        _leave(told["text"])
    print(told["text"])


@import_app.command("cowagent")
def import_cowagent(
    path: Annotated[Path, typer.Argument(help="Its folder.")] = Path("~/cow"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be copied.")] = False,
    their_config: Annotated[Path | None, typer.Option(help="CowAgent's config.json, if it lies elsewhere.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Copy a CowAgent folder into the owner's memory; the folder is not changed."""
    arguments = {"path": str(path.expanduser().absolute()), "dry_run": "yes" if dry_run else ""}
    if their_config is not None:
        arguments["their_config"] = str(their_config.expanduser().absolute())
    known = _config(config)
    if dry_run and _running(known) is None and not known.data_dir.exists():  # before the first start nothing is made, not even a folder
        print(_preview(known, arguments)["text"])
    else:
        print(_admin(config, "import cowagent", **arguments)["text"])


def _config(path: Path) -> Config:
    from gateway.config_load import load

    loaded = load(path, os.environ)
    if loaded.config is None:
        _complain(loaded.faults)
        raise typer.Exit(EXIT_CONFIG)
    return loaded.config


def _running(config: Config) -> dict[str, str | int] | None:
    """What the running gateway of this data directory says about itself; None when none runs."""
    from memory.instance_lock import read_info

    info = read_info(config.data_dir)
    return info if info and "url" in info else None


def _admin(path: Path, command: str, /, **arguments: str) -> dict[str, Any]:
    """Carry out a command of `gateway.admin`: in the running gateway, or here."""
    config = _config(path)
    info = _running(config)
    return _ask(info, command, arguments) if info else _alone(config, command, arguments)


def _in_running(path: Path, command: str) -> dict[str, Any]:
    """The same for what only a running gateway knows."""
    info = _running(_config(path))
    if info is None:
        _leave("no gateway runs: start it first with `yumegate run`")
    return _ask(info, command, {})


def _ask(info: dict[str, str | int], command: str, arguments: dict[str, str]) -> dict[str, Any]:
    from http.client import HTTPException
    from urllib.request import ProxyHandler, Request, build_opener

    body = json.dumps({"command": command, "arguments": arguments}).encode()
    headers = {"Content-Type": "application/json", "X-Control-Secret": str(info["secret"])}
    try:
        with build_opener(ProxyHandler({})).open(Request(f"{info['url']}/control", body, headers), timeout=ANSWER_LIMIT_S) as answer:
            told = json.load(answer)
    except (OSError, HTTPException, ValueError) as error:
        _leave(f"the running gateway (process {info['pid']}) does not answer: {error}")
    if "fault" in told:
        _leave(told["fault"])
    return told["ok"]


def _alone(config: Config, command: str, arguments: dict[str, str]) -> dict[str, Any]:
    import asyncio

    from gateway.offline import carry_out
    from memory.errors import StoreError

    try:
        told = asyncio.run(carry_out(config, command, arguments))
    except (StoreError, OSError) as error:
        _leave(str(error))
    if "fault" in told:
        _leave(told["fault"])
    return told["ok"]


def _preview(config: Config, arguments: dict[str, str]) -> dict[str, Any]:
    from gateway.admin import AdminFault
    from gateway.importing import preview
    from gateway.store import utc_now

    try:
        return preview(arguments, config.agent_workspace, config.timezone, utc_now)
    except AdminFault as fault:
        _leave(str(fault))


def _complain(faults: Any) -> None:
    for fault in faults:
        print(fault, file=sys.stderr)
        if fault.excerpt and fault.severity != "note":
            print(fault.excerpt, file=sys.stderr)


def _leave(sentence: str) -> NoReturn:
    print(sentence, file=sys.stderr)
    raise typer.Exit(EXIT_FAULT)


def main() -> None:
    """The script `yumegate`. Output never fails on a console that cannot show a character (CF-02); files are ours alone (WD-16)."""
    os.umask(0o077)
    for stream in (sys.stdout, sys.stderr):
        reconfigure: Callable[..., None] | None = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="replace")
    app()
