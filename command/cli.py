"""The command line `machine`. Imports what a command needs when it is used, so that each starts fast."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from command.cloud import login as cloud_login
from command.connection import EXIT_INTERRUPTED, Connection, run, run_on_trio
from command.groups import Commands
from command.machine.access import add_commands
from command.output import json_option

if TYPE_CHECKING:
    from rpc.api import ApiClient

Function = TypeVar("Function", bound=Callable[..., Any])

EXIT_CODES = """\b
Exit codes: 0 success; 1 failure, such as a refused call; 2 wrong usage; 3 the machine cannot be reached."""


CONNECTION: Final = {
    "--address": 1,
    "--cloud": 1,
    "--tls": 0,
    "--insecure": 0,
    "--ca": 1,
    "--api-key-id": 1,
    "--api-key": 1,
    "--json": 0,
}
"""Options of all commands for a machine, with the number of their values."""


class Main(Commands):
    """The group of all commands, listed in the order of their definition."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands in the order of their definition."""
        return [*(name for name in self.commands if name not in self.places), *self.places]

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Move options of the connection from before the command to after it, so that both orders are accepted."""
        moved: list[str] = []
        while args and args[0].partition("=")[0] in CONNECTION:
            count = 1 if "=" in args[0] else 1 + CONNECTION[args[0]]
            moved, args = moved + args[:count], args[count:]
        position, command = 0, self.get_command(ctx, args[0]) if args else None
        while command is not None:
            position += 1
            if not isinstance(command, click.Group) or position >= len(args):
                break
            command = command.get_command(ctx, args[position])
        return super().parse_args(ctx, args[:position] + moved + args[position:])

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command. Ctrl-C ends it without a traceback, even if KeyboardInterrupt comes in an exception group."""
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
        except BaseExceptionGroup as group:
            if group.subgroup(KeyboardInterrupt) is None:
                raise
            raise click.exceptions.Exit(EXIT_INTERRUPTED) from None


def _version(context: click.Context, _: click.Parameter, requested: bool) -> None:
    if requested and not context.resilient_parsing:
        from support import version

        click.echo(f"machine {version()}")
        context.exit()


def _open_through(connection: Connection) -> AbstractAsyncContextManager[ApiClient]:
    from command.machine.through.connect import open_through

    return open_through(connection)


def connected(function: Function) -> Function:
    """Add the options of the connection to a command, and pass them as one Connection."""

    @wraps(function)
    def command(
        address: str,
        tls: bool,
        insecure: bool,
        ca: Path | None,
        api_key_id: str,
        api_key: str,
        as_json: bool,
        through: str,
        **arguments: Any,
    ) -> Any:
        if through:
            if tls or insecure or ca is not None:
                raise click.UsageError("--cloud finds out how to connect: leave out --tls, --insecure and --ca")
            login = cloud_login.load(os.environ).connection(json=as_json)
            shown = f"{through} in {login.address}"
            return function(
                replace(login, address=shown, through=through, open=_open_through, cloud=False), **arguments
            )
        if bool(api_key) != bool(api_key_id):
            missing, present = ("--api-key-id", "--api-key") if api_key else ("--api-key", "--api-key-id")
            raise click.UsageError(f"{present} needs {missing} too: a key consists of an id and a secret")
        return function(Connection(address, tls, insecure, ca, api_key_id, api_key, as_json), **arguments)

    options = (
        click.option(
            "--address",
            envvar="MACHINE_ADDRESS",
            default="localhost:8080",
            show_default=True,
            show_envvar=True,
            metavar="HOST:PORT",
            help="Address of the machine; unix:PATH and https://HOST are accepted too.",
        ),
        click.option(
            "--cloud",
            "through",
            default="",
            metavar="NAME",
            help="A machine of the cloud, by name or id: connect directly if it answers at once, or through the cloud.",
        ),
        click.option("--tls", is_flag=True, help="Use TLS and verify the certificate."),
        click.option("--insecure", is_flag=True, help="Use TLS and accept any certificate."),
        click.option(
            "--ca",
            type=click.Path(exists=True, dir_okay=False, path_type=Path),
            help="Use TLS and also trust the certificates in this PEM file.",
        ),
        click.option("--api-key-id", envvar="MACHINE_API_KEY_ID", default="", show_envvar=True, metavar="ID"),
        click.option(
            "--api-key",
            envvar="MACHINE_API_KEY",
            default="",
            show_envvar=True,
            metavar="KEY",
            help="Prefer the environment variable: other users of this computer can see the options of a command.",
        ),
        json_option,
    )
    for option in reversed(options):
        command = option(command)
    return command  # type: ignore[return-value]


@click.group(cls=Main, context_settings={"help_option_names": ["-h", "--help"]}, epilog=EXIT_CODES)
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_version, help="Print the version."
)
def main() -> None:
    """Inspect and control a machine over its RPC.

    \b
    machine status
    machine call left-motor set_power power_pct=0.5
    machine --address rover.local:8080 status
    machine --help, machine COMMAND --help
    """


@main.command(epilog="\b\nExample:\n  machine status --address rover.local:8080")
@connected
def status(connection: Connection) -> None:
    """Show the state of the machine, and resources that are not ready."""

    async def command(client: ApiClient) -> None:
        from command.machine import show

        await show.status(client, connection)

    run(connection, command)


@main.command(epilog="\b\nExample:\n  machine resources --json")
@connected
def resources(connection: Connection) -> None:
    """List every configured resource with its state and reason."""

    async def command(client: ApiClient) -> None:
        from command.machine import show

        await show.resources(client, connection)

    run(connection, command)


@main.command(
    epilog="""\b
Examples:
  machine call left-motor                                  list its methods and their arguments
  machine call left-motor set_power power_pct=0.5
  machine call rdk:component:motor/left-motor stop
  machine call thermometer do_command 'command={"calibrate": true}'
  machine call local stream_ticks pin_names=left,right     a line of JSON for each tick, until Ctrl-C"""
)
@connected
@click.argument("name")
@click.argument("method", required=False, default="")
@click.argument("arguments", nargs=-1, metavar="[KEY=VALUE]...")
def call(connection: Connection, name: str, method: str, arguments: tuple[str, ...]) -> None:
    """Call METHOD of the resource NAME and print its result.

    NAME is simple (left-motor) or full (rdk:component:motor/left-motor). Values are numbers, text, true or false. Lists
    are JSON or separated by commas, bytes are base64, and everything else is JSON.
    """

    async def command(client: ApiClient) -> None:
        from command.machine.call import call as do

        await do(client, connection, name, method, arguments)

    run(connection, command)


@main.command(epilog="\b\nExamples:\n  machine watch\n  machine watch thermometer --interval 0.2 --json")
@connected
@click.argument("names", nargs=-1)
@click.option(
    "--interval",
    type=click.FloatRange(0.05, 3600),
    default=1.0,
    show_default=True,
    help="Seconds between two requests: the API has no stream of states.",
)
def watch(connection: Connection, names: tuple[str, ...], interval: float) -> None:
    """Show changes of states and readings until Ctrl-C.

    On a terminal, the screen is redrawn; otherwise each change is printed as a line. NAMES are the resources to watch;
    the default is all.
    """

    async def command(client: ApiClient) -> None:
        from command.machine.watch import watch as do

        await do(client, connection, names, interval)

    run_on_trio(connection, command)


@main.command(
    epilog="""\b
Examples:
  machine logs -f --level warn
  machine logs --since 10m --logger 'rdk.components.motor'
  machine logs --text timeout --json | jq .fields"""
)
@connected
@click.option("-f", "--follow", is_flag=True, help="Print new lines until Ctrl-C, also after a restart.")
@click.option(
    "-n", "--newest", type=click.IntRange(0), default=100, show_default=True, help="Number of lines to print first."
)
@click.option(
    "--level", type=click.Choice(["debug", "info", "warn", "error"]), default="debug", help="Lowest level to print."
)
@click.option(
    "--logger", default="", metavar="PATTERN", help="Only these loggers; patterns as in `log` of a configuration."
)
@click.option(
    "--since",
    default="",
    metavar="TIME",
    help="Only lines since this time, such as 2006-01-02T15:04:05Z, or 10m for the last ten minutes.",
)
@click.option("--text", default="", help="Only lines that contain this text; case is ignored.")
@click.option("-q", "--quiet", is_flag=True, help="Print messages only.")
def logs(connection: Connection, newest: int, follow: bool, quiet: bool, since: str, **filters: str) -> None:
    """Show the newest lines of the machine's log."""
    query = {"newest": str(newest), "after": since, **filters}
    if connection.through:
        _logs_of_the_cloud(connection, query, follow=follow, quiet=quiet)
        return

    async def command(client: ApiClient) -> None:
        from command.machine.logs import logs as do

        await do(
            connection,
            {key: value for key, value in query.items() if value},
            follow=follow,
            style="json" if connection.json else "quiet" if quiet else "table",
        )

    run_on_trio(connection, command)


def _logs_of_the_cloud(connection: Connection, query: Mapping[str, str], *, follow: bool, quiet: bool) -> None:
    if quiet or query["after"] or query["logger"] or query["level"] not in ("debug", "error"):
        raise click.UsageError("with --cloud, only -f, -n, --text, --level error and --json apply to logs")
    from command.cloud.group import print_logs

    errors, count = query["level"] == "error", int(query["newest"])
    print_logs(connection.through, count, follow=follow, errors=errors, text=query["text"], as_json=connection.json)


@main.command(
    "open",
    epilog="""\b
Examples:
  machine open                    the pages of the machine at --address, by default on this computer
  machine open rover              the page of a machine in the cloud
  machine open rover --print      a link that logs in once, for another browser""",
)
@connected
@click.argument("name", required=False, default="")
@click.option("--print", "only_print", is_flag=True, help="Print the link instead of opening a browser.")
def open_(connection: Connection, name: str, only_print: bool) -> None:
    """Open the page of a machine in the browser, logged in.

    NAME is a machine of the cloud; --cloud NAME means the same. Without it, the machine at --address is opened.
    """
    if part := name or connection.through:
        from command.cloud.group import open_pages

        open_pages(part, only_print=only_print, as_json=connection.json)
        return
    from command.open import link_to, show

    links: list[str] = []

    async def command(_: ApiClient) -> None:
        links.append(await link_to(connection))

    run_on_trio(connection, command)
    show(links[0], only_print=only_print)


@main.command(epilog="\b\nExample:\n  machine check examples/bench.json")
@click.argument("config", type=click.Path(path_type=Path))
@json_option
def check(config: Path, as_json: bool) -> None:
    """Find all errors in the configuration file CONFIG without starting anything.

    The exit code is 1 if there is an error; warnings do not count.
    """
    from command.check import main_check

    raise click.exceptions.Exit(main_check(config, as_json))


@main.command(
    epilog="""\b
Examples:
  machine tunnel 8081:80 --address rover.local:8080        its web server at http://127.0.0.1:8081
  machine tunnel 5432 0:22                                 port 5432 on both sides; a free local port to its port 22"""
)
@connected
@click.argument("ports", nargs=-1, required=True, metavar="[LOCAL:]REMOTE...")
def tunnel(connection: Connection, ports: tuple[str, ...]) -> None:
    """Reach TCP ports of the machine through its RPC, until Ctrl-C.

    Connections to 127.0.0.1:LOCAL are forwarded to port REMOTE of the machine. The machine allows the ports in
    network.traffic_tunnel_endpoints of its configuration.
    """

    async def command(client: ApiClient) -> None:
        from command.machine.tunnel import parse_pair
        from command.machine.tunnel import tunnel as do

        await do(client, connection, [parse_pair(text) for text in ports])

    run_on_trio(connection, command)


@main.command(epilog="\b\nExamples:\n  machine discover\n  machine discover --wait 5 --json")
@click.option(
    "--wait", type=click.FloatRange(0.1, 60), default=2.0, show_default=True, help="Seconds to wait for answers."
)
@json_option
def discover(wait: float, as_json: bool) -> None:
    """List the machines that announce themselves on the local network, by multicast DNS."""
    from command.interrupts import run_until_interrupted
    from command.machine.discover import discover as do

    run_until_interrupted(partial(do, wait, as_json))


add_commands(main, connected)
main.add_later(
    {
        "hal": "command.hal.group:hal",
        "agent": "command.agent.group:agent",
        "ftdc": "command.recordings.ftdc:ftdc",
        "data": "command.recordings.data:data",
        "module": "command.modules.group:module",
        "micro": "command.micro.group:micro",
        "cloud": "command.cloud.group:cloud",
    }
)

if __name__ == "__main__":
    main()
