"""Groups of commands. Imports only click."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Final

import click

SAME: Final[Mapping[str, str]] = {"list": "ls", "ls": "list"}
"""Aliases: a group accepts both words, whichever it defines."""


class Commands(click.Group):
    """A group whose help shows the whole first sentence of each command, which click would truncate."""

    group_class = type  # subgroups use this class, too

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.places: dict[str, str] = {}  # of commands that are imported when they are used

    def add_later(self, places: Mapping[str, str]) -> None:
        """Add commands by name that are imported when they are used: `package.module:attribute`."""
        self.places |= places

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of all commands in alphabetical order."""
        return sorted({*self.commands, *self.places})

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
        return self._loaded(ctx, cmd_name) or self._loaded(ctx, SAME.get(cmd_name, ""))

    def _loaded(self, ctx: click.Context, name: str) -> click.Command | None:
        if name in self.places and name not in self.commands:
            module, _, attribute = self.places[name].partition(":")
            self.add_command(getattr(import_module(module), attribute), name)
        return super().get_command(ctx, name)
