"""Ctrl-C ends every command with the exit code that shells expect, wherever Trio raises it."""

from __future__ import annotations

import click
import pytest
import trio
from click.testing import CliRunner

from command.cli import Main
from command.connection import EXIT_INTERRUPTED


def ended(body: BaseException | None, *, nested: bool) -> int:
    """Return the exit code of a command whose task raises `body`, itself or in a nursery's child."""

    async def task() -> None:
        if body is not None:
            raise body

    async def main() -> None:
        if not nested:
            return await task()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(task)
            nursery.start_soon(trio.sleep_forever if body is not None else task)
        return None

    group = Main()
    group.add_command(click.command("do")(lambda: trio.run(main)))
    return CliRunner().invoke(group, ["do"]).exit_code


@pytest.mark.parametrize("nested", [False, True])
def test_ctrl_c_is_130(nested: bool) -> None:
    assert ended(KeyboardInterrupt(), nested=nested) == EXIT_INTERRUPTED == 130
    assert ended(None, nested=nested) == 0
    assert ended(ValueError("a defect"), nested=nested) == 1
