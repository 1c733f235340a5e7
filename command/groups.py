"""Groups of commands. Imports only click."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

SAME: Final[Mapping[str, str]] = {"list": "ls", "ls": "list"}
"""Aliases: a group accepts both words, whichever it defines."""


class Commands(click.Group):
    """A group whose help shows the whole first sentence of each command, which click would truncate."""

    group_class = type  # subgroups use this class, too

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for the help."""
        commands = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        visible = [(name, command) for name, command in commands if command is not None and not command.hidden]
        rows = [(name, command.get_short_help_str(limit=1000)) for name, command in visible]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command by its name or its alias in SAME."""
        return super().get_command(ctx, cmd_name) or super().get_command(ctx, SAME.get(cmd_name, ""))
