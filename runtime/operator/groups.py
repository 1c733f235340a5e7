"""Groups of commands, as they list themselves. Only click is imported here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import click

SAME: Final[Mapping[str, str]] = {"list": "ls", "ls": "list"}
"""Either word is understood, whichever a group has."""


class Commands(click.Group):
    """Tells of each command by its whole first sentence, where click would cut it off at the edge of the terminal."""

    group_class = type  # groups inside are of this class, too

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The list in the help."""
        found = [(name, self.get_command(ctx, name)) for name in self.list_commands(ctx)]
        rows = [(name, one.get_short_help_str(limit=1000)) for name, one in found if one is not None and not one.hidden]
        if rows:
            with formatter.section("Commands"):
                formatter.write_dl(rows)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """By its name; `list` and `ls` are one."""
        return super().get_command(ctx, cmd_name) or super().get_command(ctx, SAME.get(cmd_name, ""))
