"""Requests of commands to the running agent. Imports only click."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

if TYPE_CHECKING:
    from agent import Layout

T = TypeVar("T")

EXIT_NO_AGENT: Final = 3
_UNITS: Final = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


class NoAgent(click.ClickException):
    """machine-agent does not run. click prints the message on standard error."""

    exit_code = EXIT_NO_AGENT


def duration(text: str) -> float:
    """Return the seconds of a time such as 90m."""
    unit = _UNITS.get(text[-1:])
    if unit is None or not text[:-1].isascii() or not text[:-1].isdecimal() or len(text) > 6:
        raise click.BadParameter(f"{text!r} is not a time: write for example 90m, 12h or 2d", param_hint="--for")
    return int(text[:-1]) * unit


def last(layout: Layout, command: str, /, **arguments: Any) -> Any:
    """Return the last value of a command of the running agent; end the program with its error, if it fails."""
    from agent.console import NoAgentError
    from schema import MachineError

    try:
        return run(ask(layout, command, **arguments))[-1]
    except NoAgentError as error:
        raise NoAgent(str(error)) from None
    except MachineError as error:
        raise click.ClickException(str(error)) from None


def ask(layout: Layout, command: str, /, **arguments: Any) -> Callable[[], AsyncIterator[Any]]:
    """Return a function that sends a command and yields its values."""
    from agent.console import request

    return lambda: request(layout.console, command, **arguments)


def run(request: Callable[[], AsyncIterator[T]]) -> list[T]:
    """Return all values of a request. Raises the MachineError with which it ends."""
    from command.interrupts import run_until_interrupted

    async def collect() -> list[T]:
        return [value async for value in request()]

    return run_until_interrupted(collect)
