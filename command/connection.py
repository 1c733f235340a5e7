"""The connection of a command to its machine, and the conversion of failures to exit codes."""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import click

from command.output import print_json

if TYPE_CHECKING:
    import ssl

    from rpc.api import ApiClient
    from rpc.client import DialTarget
    from schema import MachineError

ROBOT: Final = "viam.robot.v1.RobotService"

EXIT_UNREACHABLE: Final = 3  # click uses 1 for failures (here: the machine refuses) and 2 for wrong usage
LOST: Final = "the connection was lost"  # text of rpc and of rpc.client.blocking; a TLS server closes plain connections
EXIT_INTERRUPTED: Final = 130  # the shells' exit code after Ctrl-C
NO_METHOD: Final = "no method /"  # text of rpc
SIGN_IN: Final = "set the address of the cloud with `machine cloud login ADDRESS --key-id ID` or in MACHINE_CLOUD"


Command: TypeAlias = "Callable[[ApiClient], Coroutine[Any, Any, None]]"
Open: TypeAlias = "Callable[[Connection], AbstractAsyncContextManager[ApiClient]]"


@dataclass(frozen=True, slots=True)
class Connection:
    """The address and the credentials of a machine. repr() does not contain the key."""

    address: str
    tls: bool = False
    insecure: bool = False
    ca: Path | None = None
    api_key_id: str = ""
    api_key: str = field(default="", repr=False)
    json: bool = False
    cloud: bool = False  # whether this is a machine-cloud instead of a machine
    through: str = ""  # name or id of a machine of the cloud; then `address` is only shown
    open: Open | None = field(default=None, repr=False)  # how to connect, instead of to `address`

    @property
    def terminal(self) -> bool:
        """Whether standard output is a terminal."""
        return sys.stdout.isatty()

    @property
    def colour(self) -> bool:
        """Whether to print colors: standard output is a terminal and NO_COLOR is not set (no-color.org)."""
        return self.terminal and not os.environ.get("NO_COLOR") and not self.json


class Unreachable(click.ClickException):
    """The machine cannot be reached. click prints the message on standard error."""

    exit_code = EXIT_UNREACHABLE


def run(connection: Connection, command: Command) -> None:
    """Connect, run a command that only waits for its calls, and convert failures to click's exceptions.

    Calls block, without an event loop, unless the way to the machine needs one. Commands that also do something else at
    the same time, or send a stream of requests, use `run_on_trio`.
    """
    if connection.open is not None:
        run_on_trio(connection, command)
        return
    from rpc.client import run_blocking

    with _failures(connection):
        run_blocking(_called(connection, command))


def run_on_trio(connection: Connection, command: Command) -> None:
    """Connect, run the command on Trio, and convert failures to click's exceptions."""
    from command.interrupts import run_until_interrupted

    async def main() -> None:
        async with open_client(connection) as client:
            await command(client)

    with _failures(connection):
        run_until_interrupted(main)


async def _called(connection: Connection, command: Command) -> None:
    from rpc.api import ApiClient
    from rpc.client import PlainHttp, StreamingWebChannel

    http = PlainHttp(target_of(connection), tls_context(connection, ("http/1.1",)))
    with closing(http), _explained(connection, lambda: http.connected):
        await command(ApiClient(StreamingWebChannel(http, connection.api_key_id, connection.api_key)))


@contextmanager
def _failures(connection: Connection) -> Iterator[None]:
    from schema import MachineError

    try:
        yield
    except MachineError as error:
        raise failure(error, connection) from None
    except (FileNotFoundError, PermissionError, IsADirectoryError, NotADirectoryError, FileExistsError) as error:
        if error.filename is None:
            raise
        raise click.ClickException(f"{error.filename}: {error.strerror}") from None
    except BrokenPipeError:  # the reader of the output has ended, as with `| head`
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - else the interpreter fails to flush at exit


@asynccontextmanager
async def open_client(connection: Connection) -> AsyncIterator[ApiClient]:
    """Provide a client over a channel that is open during the context. Raises MachineError or Unreachable."""
    from rpc.api import ApiClient
    from rpc.client import ApiKey, Channel

    if connection.open is not None:
        async with connection.open(connection) as client:
            yield client
        return
    credentials = ApiKey(connection.api_key_id, connection.api_key) if connection.api_key else None
    target_of(connection)
    channel = Channel(connection.address, tls=tls_context(connection), credentials=credentials)
    async with channel:
        with _explained(connection, lambda: bool(channel.statistics.connections)):
            yield ApiClient(channel)


@contextmanager
def _explained(connection: Connection, connected: Callable[[], bool]) -> Iterator[None]:
    """Say why nothing answers; `connected` tells whether the connection was ever open."""
    from schema import ErrorKind, MachineError

    try:
        yield
    except MachineError as error:
        if error.kind is not ErrorKind.UNAVAILABLE:
            raise
        if not connected():
            raise Unreachable(unreachable(connection, error.message)) from None
        if not _secure(connection) and error.message == LOST:
            remedy = "if it uses TLS, give --tls, or --ca FILE to also trust its certificate"
            raise MachineError(error.message, kind=error.kind, remedy=remedy) from None
        raise


def target_of(connection: Connection) -> DialTarget:
    """Parse the address of a connection. Raises click.UsageError if it is wrong."""
    from rpc.client import DialTarget

    try:
        return DialTarget.parse(connection.address)
    except ValueError as error:
        raise click.UsageError(str(error)) from None


def _secure(connection: Connection) -> bool:
    return bool(connection.tls or connection.insecure or connection.ca or connection.address.startswith("https://"))


def tls_context(connection: Connection, protocols: Sequence[str] = ()) -> ssl.SSLContext | None:
    """Return the TLS context, or None for plain text. `protocols` are offered by ALPN, by default all.

    Raises MachineError if the file of authorities is invalid.
    """
    if not _secure(connection):
        return None
    from rpc.network import ALPN, MACHINE_AUTHORITY, client_context

    return client_context(
        authorities=connection.ca,
        verify=not connection.insecure,
        protocols=protocols or ALPN,
        except_subject=MACHINE_AUTHORITY if connection.cloud else "",
    )


def failure(error: MachineError, connection: Connection) -> click.ClickException:
    """Convert a MachineError to a click exception. With --json, also print it as JSON."""
    from schema import ErrorKind

    message = str(error)
    if error.kind is ErrorKind.UNAUTHENTICATED and not connection.api_key:
        message = f"{error.message}: give --api-key-id and set MACHINE_API_KEY"
    if connection.cloud and error.kind is ErrorKind.UNSUPPORTED and error.message.startswith(NO_METHOD):
        message = f"{connection.address} is not a machine-cloud ({error.message}): {SIGN_IN}"
    if connection.json:
        print_json({"error": message, "kind": error.kind.value})
    return click.ClickException(message)


def unreachable(connection: Connection, reason: str) -> str:
    """Return the message for a failed connection, with a remedy."""
    address, text = connection.address, reason.lower()
    if connection.cloud:
        return _cloud_unreachable(address, text, reason)
    if "wrong_version_number" in text:
        return f"{address} does not use TLS: leave out --tls, --insecure, --ca and https:// ({reason})"
    if "certificate" in text or "ssl" in text or "tls" in text:
        advice = "give --ca FILE to trust its certificate, or --insecure to accept any"
        return f"{address} uses TLS, but the handshake failed ({reason}): {advice}"
    if _unresolved(text):
        return f"the host name in {address} cannot be resolved: check --address, or use the machine's IP address"
    where = "start it with `machine-server -config FILE`, or give another machine with --address HOST:PORT"
    return f"nothing answers at {address}: is machine-server running? {where} ({reason})"


def _cloud_unreachable(address: str, text: str, reason: str) -> str:
    if "wrong_version_number" in text:
        return f"{address} does not use TLS: write http:// instead of https:// ({reason}); {SIGN_IN}"
    if "certificate" in text or "ssl" in text or "tls" in text:
        advice = "`machine cloud login ADDRESS --key-id ID --ca FILE` trusts what `machine-cloud ca` prints"
        return f"{address} uses TLS, but the handshake failed ({reason}): {advice}"
    if _unresolved(text):
        return f"the host name in {address} cannot be resolved: {SIGN_IN}"
    return f"nothing answers at {address}: is machine-cloud running there? Or {SIGN_IN} ({reason})"


def _unresolved(text: str) -> bool:
    return "name or service" in text or "getaddrinfo" in text or "nodename" in text
