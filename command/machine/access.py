"""The commands shell, cp, operations and cancel. Imports only click."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from command.connection import Connection, run, run_on_trio

if TYPE_CHECKING:
    from rpc.api import ApiClient


def add_commands(main: click.Group, connected: Callable[[Any], Any]) -> None:
    """Add the commands to `main`. `connected` adds the options of the connection."""
    service = click.option(
        "--service", default="", metavar="NAME", help="Name of the shell service; needed if there are several."
    )

    @main.command(
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
        epilog="""\b
Examples:
  machine shell                                  a terminal on the machine
  machine shell uname -a                         one command, with its exit status
  machine shell --directory /var/log 'ls | wc'   in quotes: interpreted by the machine's shell
  machine shell < script.sh""",
    )
    @connected
    @service
    @click.option("--directory", default="", metavar="PATH", help="Folder on the machine to start in.")
    @click.argument("command", nargs=-1, type=click.UNPROCESSED)
    def shell(connection: Connection, service: str, directory: str, command: tuple[str, ...]) -> None:
        """Open a shell on the machine, or run COMMAND there.

        The machine must have a shell service. Options come before COMMAND. Processes of the shell end with it.
        """

        async def work(client: ApiClient) -> None:
            from command.machine.shell import shell as run_shell

            await run_shell(client, service, " ".join(command), directory)

        run_on_trio(connection, work)

    @main.command(
        epilog="""\b
Examples:
  machine cp notes.txt :                         into the machine's home directory
  machine cp -r site :/srv/site
  machine cp :/var/log/syslog :/etc/hosts logs/""",
    )
    @connected
    @service
    @click.option("-r", "--recursive", is_flag=True, help="Copy directories with all their content.")
    @click.option("-p", "--preserve", is_flag=True, help="Keep permissions and times.")
    @click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
    @click.argument("destination")
    def cp(
        connection: Connection,
        service: str,
        recursive: bool,
        preserve: bool,
        sources: tuple[str, ...],
        destination: str,
    ) -> None:
        """Copy files to the machine or from it.

        Paths on the machine begin with a colon. Relative ones are below the directory of its shell service.
        """

        async def work(client: ApiClient) -> None:
            from command.machine.copy import copy

            await copy(client, service, sources, destination, recursive=recursive, preserve=preserve)

        run_on_trio(connection, work)

    @main.command(epilog="\b\nExample:\n  machine operations --json")
    @connected
    def operations(connection: Connection) -> None:
        """List the calls that are in progress."""

        async def work(client: ApiClient) -> None:
            from command.machine.calls import operations as show

            await show(client, connection)

        run(connection, work)

    @main.command(epilog="\b\nExample:\n  machine cancel 5f0c")
    @connected
    @click.argument("ids", nargs=-1, required=True, metavar="ID...")
    def cancel(connection: Connection, ids: tuple[str, ...]) -> None:
        """Cancel calls that are in progress, by their ids or prefixes of them."""

        async def work(client: ApiClient) -> None:
            from command.machine.calls import cancel as do_cancel

            await do_cancel(client, ids)

        run(connection, work)
