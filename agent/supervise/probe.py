"""Requests to machine-server on this computer, at the address that it has written to a file."""

from __future__ import annotations

import ipaddress
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec
import trio

from agent.supervise.processes import listening
from rpc.network import client_context

_REQUEST: Final = b"GET %b HTTP/1.1\r\nHost: localhost\r\nUser-Agent: machine-agent\r\nConnection: close\r\n\r\n"
_START: Final = b"HTTP/1."
_MAX_FILE: Final = 4096
_MAX_RESPONSE: Final = 64 * 1024


class ServerAddress(NamedTuple):
    """A local TCP address. `tls` is None if it is not known whether it needs TLS."""

    host: str
    port: int
    tls: bool | None = None


class _File(msgspec.Struct):
    pid: int
    addresses: list[str]
    tls: bool = False


class RestartStatus(msgspec.Struct, frozen=True):
    """Answer of machine-server at `/restart_status`. A program that does not serve this page allows everything."""

    restart_allowed: bool = True
    reason: str = ""
    """Why a restart is not allowed."""
    configured: bool = True
    """It has fetched its configuration from the cloud since its start, and uses it. Programs other than ours do not
    report this."""


def read_addresses(path: Path, pid: int) -> tuple[ServerAddress, ...]:
    """Return the addresses at which process `pid` serves, loopback first; none while it does not. Blocks briefly.

    They are those in the file. If there is no file of this process, because the program is one that does not write it,
    they are all addresses at which the process listens.
    """
    pairs: list[tuple[str, bool | None]] | None
    try:
        with path.open("rb") as file:
            content = msgspec.json.decode(file.read(_MAX_FILE), type=_File)
        pairs = [(text, content.tls) for text in content.addresses] if content.pid == pid else None
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        pairs = None
    if pairs is None:
        pairs = [(text, None) for text in listening(pid)]
    addresses = {address for text, tls in pairs if (address := _local(text, tls)) is not None}
    return tuple(sorted(addresses, key=lambda address: (not address.host.startswith("127."), address[:2])))


def writer(path: Path) -> int:
    """Return the id of the process that has written the file, 0 if there is none. Blocks briefly."""
    try:
        return msgspec.json.decode(path.read_bytes()[:_MAX_FILE], type=_File).pid
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return 0


class AddressProbe:
    """Asks the process at the address in a file. `run` calls blocking functions in a worker."""

    def __init__(self, path: Path, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> None:
        self._path, self._run = path, run

    async def __call__(self, pid: int) -> bool:
        """Return whether process `pid` answers a request; bound it with a cancel scope."""
        for address in await self._run(partial(read_addresses, self._path, pid)):
            if await answers(address):
                return True
        return False


def _local(text: str, tls: bool | None) -> ServerAddress | None:
    """Return `host:port` as an address of this computer; every address is reached by loopback."""
    host, _, port = text.rpartition(":")
    try:
        address = ipaddress.ip_address(host.strip("[]"))
        number = int(port)
    except ValueError:
        return None
    if address.is_unspecified:
        return ServerAddress("127.0.0.1" if address.version == 4 else "::1", number, tls)
    return ServerAddress(str(address), number, tls)


async def answers(address: ServerAddress) -> bool:
    """Return whether an HTTP server answers at this address; bound it with a cancel scope."""
    return await _get(address, "/", len(_START)) != b""


async def may_restart(path: Path, pid: int, run: Callable[[Callable[[], Any]], Awaitable[Any]]) -> bool:
    """Return whether process `pid`, whose address is in a file, allows a restart; bound it with a cancel scope.

    A program without this page always allows it. One that does not answer has not allowed it.
    """
    status = await restart_status(path, pid, run)
    return status is not None and status.restart_allowed


async def restart_status(
    path: Path, pid: int, run: Callable[[Callable[[], Any]], Awaitable[Any]]
) -> RestartStatus | None:
    """Return what process `pid`, whose address is in a file, says about itself; bound it with a cancel scope.

    None if it does not answer.
    """
    for address in await run(partial(read_addresses, path, pid)):
        response = await _get(address, "/restart_status", _MAX_RESPONSE)
        if response:
            return _status(response)
    return None


def _status(response: bytes) -> RestartStatus:
    head, _, body = response.partition(b"\r\n\r\n")
    if head.split(b" ", 2)[1:2] != [b"200"]:
        return RestartStatus()
    try:
        return msgspec.json.decode(body, type=RestartStatus)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return RestartStatus()


async def _get(address: ServerAddress, page: str, most: int) -> bytes:
    """Return the first `most` bytes of the response to a request; empty if no HTTP server answers.

    The certificate is not checked: it is issued for the machine's public name, and the address is one of this computer.
    Nothing secret is sent.
    """
    for tls in (False, True) if address.tls is None else (address.tls,):
        if response := await _response(address, tls, page, most):
            return response
    return b""


async def _response(address: ServerAddress, tls: bool, page: str, most: int) -> bytes:
    try:
        tcp = await trio.open_tcp_stream(address.host, address.port)
        async with tcp:
            stream: trio.abc.Stream = tcp
            if tls:
                context = client_context(verify=False, protocols=["http/1.1"])
                stream = trio.SSLStream(tcp, context, server_hostname="localhost", https_compatible=True)
            await stream.send_all(_REQUEST % page.encode())
            received = b""
            while len(received) < most and (data := await stream.receive_some(most - len(received))):
                received += bytes(data)
            return received if received.startswith(_START) else b""
    except (OSError, trio.BrokenResourceError, ssl.SSLError):
        return b""
