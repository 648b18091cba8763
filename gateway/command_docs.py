"""docs/commands.md, made from the table of commands and the console's own help. `python -m gateway.command_docs` writes it; a test compares."""

from __future__ import annotations

from pathlib import Path

import typer
from typer.core import TyperArgument, TyperGroup

from gateway.cli import app
from gateway.commands.table import Command, every_row
from gateway.commands.who import Who
from gateway.language import LANGUAGES, say

PAGE = "docs/commands.md"

_WHO = {
    Who.ALL: "all",
    Who.MAKER: "whoever began it, or a manager",
    Who.USER: "user",
    Who.MEMBER: "user; in a group a manager too",
    Who.PERSON: "user; in a group a manager",
    Who.ADMIN: "admin",
    Who.OWNER: "owner",
}

_INTRO = """# Commands

Made from the code by `python -m gateway.command_docs`; edit the table in `gateway/commands/table.py` or the texts there.

## In a chat

They work in every channel and never wait behind an answer that is being written. `/` is the prefix unless `command_prefixes` says otherwise. Each
role includes the ones before it: guest, user, admin, owner; every admin and the owner manage every group. In a group an answer is about that group
alone. A near miss gets a suggestion and is never run or sent to the model. Commands and their answers are not part of the talk.

Lane C is answered at once; B is accepted at once and its result follows in the same chat; N takes effect with the next message.

| command | who | lane | does | 日本語 | 中文 |
|---|---|---|---|---|---|
"""

_CONSOLE = """
## On the console

In a clone that `make` set up, `yumegate` is `.venv/bin/yumegate`; elsewhere `python -m gateway …` is the same.
`--config PATH` stands after the command's name; without it the file is `config.json` in the present folder.
A command that needs the store asks the running gateway; when none runs it takes the lock of the data directory itself.

| command | does |
|---|---|
"""


def render() -> str:
    """The whole page."""
    chat = [_row(path, command) for path, command in every_row()]
    root = typer.main.get_command(app)
    assert isinstance(root, TyperGroup), "the console has subcommands"
    console = [f"| `{name}` | {help_text} |" for name, help_text in _console(root, "")]
    return _INTRO + "\n".join(chat) + "\n" + _CONSOLE + "\n".join(console) + "\n"


def _row(path: tuple[str, ...], command: Command) -> str:
    name = f"`/{' '.join(path)}{' ' + command.args if command.args else ''}`".replace("|", "\\|")
    also = "".join(f", `/{' '.join((*path[:-1], alias))}`" for alias in command.aliases)
    who = f"{_WHO[command.who].partition(';')[0]}, private chat" if command.private else _WHO[command.who]
    return "| " + " | ".join((name + also, who, command.lane, *(say(language, command.help) for language in LANGUAGES))) + " |"


def _console(group: TyperGroup, prefix: str) -> list[tuple[str, str]]:
    """Each command with what it takes and the first line of its help; a group too where it does something by itself."""
    found: list[tuple[str, str]] = []
    for name, command in sorted(group.commands.items()):
        within = isinstance(command, TyperGroup)
        help_text = (command.callback.__doc__ if within and command.callback else command.help) or ""
        names = [
            str(parameter.name).upper() if isinstance(parameter, TyperArgument) else f"[--{str(parameter.name).replace('_', '-')}]"
            for parameter in command.params
            if parameter.name != "help"
        ]
        options = " ".join(names).replace("[--as-json]", "[--json]").replace("[--config-path]", "[--config]")
        if not within or command.invoke_without_command:
            found.append((f"{prefix}{name} {options}".strip(), help_text.strip().split("\n")[0]))
        if within:
            found += _console(command, f"{prefix}{name} ")
    return found


if __name__ == "__main__":
    Path(PAGE).write_text(render(), encoding="utf-8")
