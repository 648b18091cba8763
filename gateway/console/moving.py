"""`yumegate backup`, `restore` and `import`: everything that is remembered, out and in."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from gateway.config import Config
from gateway.console.asking import DEFAULT_CONFIG, ConfigPath, admin, known_config, leave, running

import_app = typer.Typer(no_args_is_help=True, help="Memory from other programs.")


def backup(
    target: Annotated[Path | None, typer.Argument(help="The archive to make; one named by the time, here, when left out.")] = None,
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Pack everything that was said and remembered into one archive, also while the gateway runs."""
    from gateway.backup_commands import CannotDo, back_up

    known = known_config(config)
    try:
        print(back_up(known, target))
    except CannotDo as fault:
        leave(str(fault))


def restore(archive: Annotated[Path, typer.Argument(help="What `backup` made.")], config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Put an archive in the place of everything; a gateway that runs begins again with it. What was there before is packed first."""
    from gateway.backup_commands import CannotDo, bring_back

    known = known_config(config)
    try:
        print(bring_back(known, archive, lambda: admin(config, "restart")))
    except CannotDo as fault:
        leave(str(fault))


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
    known = known_config(config)
    if dry_run and running(known) is None and not known.data_dir.exists():  # before the first start nothing is made, not even a folder
        print(_preview(known, arguments)["text"])
    else:
        print(admin(config, "import cowagent", **arguments)["text"])


def _preview(config: Config, arguments: dict[str, str]) -> dict[str, Any]:
    from gateway.admin import AdminFault
    from gateway.importing import preview
    from gateway.store import utc_now

    try:
        return preview(arguments, config.agent_workspace, config.timezone, utc_now)
    except AdminFault as fault:
        leave(str(fault))
