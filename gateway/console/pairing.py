"""`yumegate pair`: who may talk."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.console.asking import DEFAULT_CONFIG, ConfigPath, admin

pair_app = typer.Typer(help="Who may talk: people who wait to be let in.")


@pair_app.callback(invoke_without_command=True)
def pair(
    context: typer.Context,
    owner: Annotated[str, typer.Option("--owner", help="Make somebody the owner: their code, or channel:account:id.")] = "",
    config: ConfigPath = DEFAULT_CONFIG,
) -> None:
    """Make an account the owner's, or list who waits."""
    if owner and context.invoked_subcommand is None:
        _let_in(admin(config, "pair owner", who=owner))
    elif context.invoked_subcommand is None:
        pair_list(config)


@pair_app.command("list")
def pair_list(config: ConfigPath = DEFAULT_CONFIG) -> None:
    """List who waits to be let in; their codes are not kept, so ask them."""
    waiting = admin(config, "pair list")["waiting"]
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
    _let_in(admin(config, "pair approve", code=code, role=role))


@pair_app.command("decline")
def pair_decline(number: Annotated[str, typer.Argument(help="From the list.")], config: ConfigPath = DEFAULT_CONFIG) -> None:
    """Turn somebody away, without a word to them."""
    admin(config, "pair decline", number=number)
    print("turned away")


def _let_in(told: dict[str, Any]) -> None:
    print(f"{told['name'] or told['person']} ({told['person']}) is let in with the role {told['role']}")
