"""`yumegate job` and `yumegate embeddings`: what goes on beside the talk."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.console.asking import DEFAULT_CONFIG, ConfigPath, admin, in_running

job_app = typer.Typer(no_args_is_help=True, help="Background jobs.")
embeddings_app = typer.Typer(help="Vectors of texts: where they come from, and the yes to a change that is paid for.")


@job_app.command("list")
def job_list(state: Annotated[str, typer.Option(help="Only those in this state.")] = "", config: ConfigPath = DEFAULT_CONFIG) -> None:
    """List background jobs, last changed first."""
    jobs = admin(config, "job list", state=state)["jobs"]
    for job in jobs:
        became = job["error"] or (job["skipped"] and f"nothing to do: {job['skipped']}")
        print(f"{job['id']:>6}  {job['state']:<9} {job['kind']:<16} {job['key']}  {became}".rstrip())
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
    told = admin(config, "job run", job=job, scope=scope, date=date)
    print(f"job {told['job']} runs now" if told["running"] else f"job {told['job']} runs with the next start")


@embeddings_app.callback(invoke_without_command=True)
def embeddings(context: typer.Context, config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Say which embedding model runs, how far it has read, and what waits."""
    if context.invoked_subcommand is not None:
        return
    told = in_running(config, "embeddings")
    print(f"{told['model'] or 'no embedding model'}" + ("; the configuration names another one, for the next start" if told["restart"] else ""))
    for each in told["kinds"]:
        print(f"{each['kind']:<10} {each['state']:<9} {each['embedded']:,} of {each['texts']:,}")
    if told["waits"]:
        print(f"{told['texts']:,} texts, about {told['tokens']:,} tokens, wait to be read: `yumegate embeddings confirm` lets it begin")


@embeddings_app.command("confirm")
def embeddings_confirm(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Let a new embedding model that costs money read everything."""
    told = in_running(config, "embeddings confirm")
    print(f"it begins: {told['texts']:,} texts, about {told['tokens']:,} tokens; the old model answers until it is done")
