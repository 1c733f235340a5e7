"""Write docs/reference/machine-command.md from the help of the command line."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import click

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "machine-command.md"

HEAD = """\
# The command `machine`

<!-- Written by tools/gen_command_reference.py; `make generate` brings it up to date. -->

{doc}

| Exit code | Meaning |
|---|---|
| 0 | success |
| 1 | the machine returned an error; for `machine check`: the file has mistakes |
| 2 | wrong usage |
| 3 | the machine cannot be reached |
| 130 | ended by Ctrl-C |
"""


def page() -> str:
    """Return the text of the page."""
    from command.cli import main as group

    parts = [HEAD.format(doc="Inspects and controls a machine over its RPC.")]
    parts += [_section(name, command) for name, command in _all("", group)]
    return "\n".join(parts)


def _all(prefix: str, group: click.Group) -> Iterator[tuple[str, click.Command]]:
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{prefix}{name}", command
        if isinstance(command, click.Group):
            yield from _all(f"{prefix}{name} ", command)


def _section(name: str, command: click.Command) -> str:
    command = copy.copy(command)
    vars(command)["_help_option"] = None  # click caches this option with the names of an earlier context
    context = click.Context(
        command,
        info_name=f"machine {name}",
        max_content_width=100,
        terminal_width=100,
        help_option_names=["-h", "--help"],
    )
    return f"## machine {name}\n\n```text\n{command.get_help(context)}\n```\n"
