"""The option `--json`, and printing for programs. Imports only click."""

from __future__ import annotations

from typing import Any, Final

import click

json_option: Final = click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")
"""Adds the argument `as_json`. A command that prints several things prints a line for each."""


def print_json(value: Any) -> None:
    """Print a value as one line of JSON."""
    from support.text import terminal

    click.echo(terminal.one_line(value))
