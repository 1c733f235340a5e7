"""Go-style command lines: long options with one or two dashes, `-ftdc=false`, and boolean options without a value.

A path on a command line is relative to the folder in which the program was started. Its types here make it absolute, so
that it means the same in child programs, which may run in other folders. Imports only click, so that `-version` and
usage errors are fast.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

_BOOLEAN = "BOOLEAN"


class AbsolutePath(click.Path):
    """A path, made absolute without resolving links. The parameters are those of click.Path; values are Paths."""

    def __init__(self, *, exists: bool = False, file_okay: bool = True, dir_okay: bool = True) -> None:
        super().__init__(exists=exists, file_okay=file_okay, dir_okay=dir_okay, path_type=Path)

    def convert(self, value: str | os.PathLike[str], param: click.Parameter | None, ctx: click.Context | None) -> Path:
        """Return the absolute path; fails as click.Path does."""
        return Path(os.fsdecode(super().convert(value, param, ctx))).absolute()


class ProgramPath(click.ParamType[str]):
    """A program: a name, which is looked up in PATH when it is started, or a path, which is made absolute."""

    name = "program"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the name, or the absolute path."""
        return os.path.abspath(value) if os.sep in value else value


def switch_option(name: str, help_text: str, *, default: bool = False) -> Callable[[Function], Function]:
    """Add a boolean option that is given alone or with `=true` or `=false`."""
    return click.option(
        f"-{name}",
        f"--{name}",
        type=click.BOOL,
        is_flag=False,
        flag_value="true",
        default=default,
        metavar=_BOOLEAN,
        help=f"{help_text}{' [default: true]' if default else ''}",
    )


def value_option(name: str, kind: Any, metavar: str, help_text: str) -> Callable[[Function], Function]:
    """Add an option with a value of the click type `kind`, None by default."""
    return click.option(f"-{name}", f"--{name}", type=kind, metavar=metavar, help=help_text)


class LongOptions(click.Command):
    """A command that accepts long options after one dash; for an unknown option it suggests the most similar name."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Parse as click does, but do not split an unknown option into single letters."""
        options = {name: param for param in self.get_params(ctx) for name in param.opts}
        rest = iter(args)
        for argument in rest:
            name, equals, _ = argument.partition("=")
            if argument == "--":
                break
            if not argument.startswith("-") or argument == "-":
                continue
            if name not in options:
                raise click.NoSuchOption(name, possibilities=_similar(name, options), ctx=ctx)
            if not equals and not _is_boolean(options[name]):
                next(rest, None)
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write one line per option."""
        rows = []
        for param in self.get_params(ctx):
            assert isinstance(param, click.Option)
            metavar = "" if _is_boolean(param) else f" {param.metavar}"
            rows.append((f"{param.opts[0]}{metavar}", param.help or ""))
        with formatter.section("Options"):
            formatter.write_dl(rows, col_max=max(len(name) for name, _ in rows))


def _similar(name: str, options: Iterable[str]) -> list[str]:
    import difflib

    words = {option.lstrip("-") for option in options}
    return [f"-{word}" for word in difflib.get_close_matches(name.lstrip("-").lower(), words, n=1, cutoff=0.6)]


def _is_boolean(param: click.Parameter) -> bool:
    return isinstance(param, click.Option) and (param.is_flag or param.metavar == _BOOLEAN)
