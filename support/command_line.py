"""Go-style command lines: long options with one or two dashes, `-ftdc=false`, and boolean options without a value.

Imports only click, so that `-version` and usage errors are fast.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

Function = TypeVar("Function", bound=Callable[..., Any])

_BOOLEAN = "BOOLEAN"


def switch(name: str, help_text: str, *, default: bool = False) -> Callable[[Function], Function]:
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


def value(name: str, kind: Any, metavar: str, help_text: str) -> Callable[[Function], Function]:
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
