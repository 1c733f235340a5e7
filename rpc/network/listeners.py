"""Listening sockets for TCP addresses such as `localhost:8080`, `:8080` or `[::1]:8080`, and for Unix sockets."""

from __future__ import annotations

import errno
import os
import socket
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import trio

from rpc.network.holder import holder
from schema import ConfigError, ErrorKind, MachineError

BACKLOG: Final = 128
_UNIX: Final[int | None] = getattr(socket, "AF_UNIX", None)
HAS_UNIX_SOCKETS: Final = _UNIX is not None
"""Whether Python supports Unix sockets here; it does not on Windows."""

_LOCALHOST: Final = ("127.0.0.1", "::1")
_EVERYWHERE: Final = ("0.0.0.0", "::")
_NO_SUCH_FAMILY: Final = frozenset({errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL})
_REMEDIES: Final = {
    errno.EACCES: "choose a port of 1024 or higher, or allow this program to bind lower ports",
    errno.EADDRNOTAVAIL: "choose an address of this computer",
}


def parse_address(text: str, *, path: str = "network.bind_address") -> tuple[str, int]:
    """Parse `host:port` into host ("" for all addresses) and port; ConfigError at `path` if malformed."""
    host, colon, port = text.rpartition(":")
    if host.startswith("[") and host.endswith("]"):
        host = host[1:-1]
    elif ":" in host:
        colon = ""
    if not colon or not (port.isascii() and port.isdigit() and int(port) <= 65535):
        raise ConfigError(
            path,
            f"{text!r} is not an address to listen on",
            value=text,
            remedy="write host:port, such as localhost:8080",
        )
    return host, int(port)


async def open_listeners(address: str, *, setting: str = "") -> list[trio.SocketListener]:
    """Open listeners on the TCP `address`.

    `localhost` and an empty host listen on IPv4 and IPv6 with the same port; port 0 selects a free port. `setting` is
    the option or key of `address` for error messages. Raises ConfigError for a malformed address, and MachineError if
    the address is unavailable; all listeners are then closed.
    """
    host, port = parse_address(address, path=setting or "network.bind_address")
    hosts = {"": _EVERYWHERE, "localhost": _LOCALHOST}.get(host, (host,))
    listeners: list[trio.SocketListener] = []
    try:
        for name in hosts:
            try:
                opened = await trio.open_tcp_listeners(port, host=name, backlog=BACKLOG)
            except OSError as error:
                # errno belongs to one of several addresses, or to the name resolution
                if listeners and error.errno in _NO_SUCH_FAMILY:
                    continue  # this computer has no IPv6
                process = await holder(port) if error.errno == errno.EADDRINUSE else ""
                raise _unavailable(address, error, process=process, setting=setting) from None
            listeners += opened
            port = port or opened[0].socket.getsockname()[1]
    except BaseException:
        await _close(listeners)
        raise
    return listeners


async def open_unix_listener(path: Path, *, mode: int = 0o600) -> trio.SocketListener:
    """Listen on a Unix socket with these permissions. A stale socket, on which no process listens, is replaced.

    Raises MachineError if the path is unavailable.
    """
    if _UNIX is None:
        raise MachineError(
            f"cannot listen on {path}: this system has no Unix sockets",
            kind=ErrorKind.UNSUPPORTED,
            remedy="use an address such as localhost:8080",
        )
    sock = trio.socket.socket(_UNIX, trio.socket.SOCK_STREAM)
    try:
        if await trio.Path(path).is_socket() and not await _answered(path):
            await trio.Path(path).unlink(missing_ok=True)
        await sock.bind(os.fspath(path))
        os.chmod(path, mode)  # no client can connect before `listen`; a umask would be that of all threads
        sock.listen(BACKLOG)
        return trio.SocketListener(sock)
    except OSError as error:
        sock.close()
        raise _unavailable(str(path), error) from None
    except BaseException:
        sock.close()
        raise


def names_of(listeners: Sequence[trio.SocketListener]) -> list[str]:
    """Return the addresses for display, as `host:port` or path."""
    names = []
    for listener in listeners:
        address = listener.socket.getsockname()
        if isinstance(address, tuple):
            host = f"[{address[0]}]" if ":" in address[0] else address[0]
            names.append(f"{host}:{address[1]}")
        else:
            names.append(os.fsdecode(address))
    return names


def only_loopback(listeners: Sequence[trio.SocketListener]) -> bool:
    """Return True if no listener is reachable from another computer."""
    return all(
        listener.socket.family == _UNIX
        or listener.socket.getsockname()[0] in ("::1",)
        or str(listener.socket.getsockname()[0]).startswith("127.")
        for listener in listeners
    )


async def _answered(path: Path) -> bool:
    try:
        stream = await trio.open_unix_socket(path)
    except OSError:
        return False
    await trio.aclose_forcefully(stream)
    return True


async def _close(listeners: Sequence[trio.SocketListener]) -> None:
    with trio.CancelScope(shield=True):
        for listener in listeners:
            await listener.aclose()


def _unavailable(address: str, error: OSError, *, process: str = "", setting: str = "") -> MachineError:
    if isinstance(error, socket.gaierror):
        return MachineError(
            f"cannot listen on {address}: the host name cannot be resolved",
            kind=ErrorKind.INVALID,
            remedy="choose localhost, an address of this computer, or leave the host empty for all",
        )
    if error.errno == errno.EADDRINUSE:
        reason = f"it is in use by {process}" if process else "it is in use"
        other = f"set another port in {setting}" if setting else "choose another port"
        remedy = f"stop {'it' if process else 'the program that uses it'}, or {other}"
    else:
        reason = (error.strerror or str(error)).lower()
        remedy = _REMEDIES.get(error.errno or 0, "choose another address")
    return MachineError(f"cannot listen on {address}: {reason}", kind=ErrorKind.PRECONDITION, remedy=remedy)
