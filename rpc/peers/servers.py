"""Checks of the ICE servers of a peer connection, the same for all engines. Pure."""

from __future__ import annotations

import re
from typing import Final

from rpc.peers.port import PeerOptions
from schema import ErrorKind, MachineError

MAX_URLS: Final = 16  # each one may cost an engine several sockets

_URL: Final = re.compile(
    r"(?P<scheme>stuns?|turns?):(?P<host>[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::(?P<port>\d{1,5}))?"
    r"(?P<transport>\?transport=(?:udp|tcp))?"
)
"""RFC 7064 and RFC 7065."""


def check_servers(options: PeerOptions) -> None:
    """Raise MachineError (INVALID) if an address of a server is not valid, or TURN has no credentials."""
    urls = [url for server in options.servers for url in server.urls]
    if len(urls) > MAX_URLS:
        raise invalid_servers(f"there are {len(urls)} addresses; at most {MAX_URLS} are used")
    for server in options.servers:
        for url in server.urls:
            match = _URL.fullmatch(url)
            if match is None or not 0 < int(match["port"] or 1) < 65_536:
                raise invalid_servers("an address does not have the form stun:HOST:PORT or turn:HOST:PORT")
            turn = match["scheme"].startswith("turn")
            if match["transport"] and not turn:
                raise invalid_servers("the address of a STUN server has a transport")
            if turn and not (server.username and server.credential):
                raise invalid_servers("a TURN server has no user name or credential")


def invalid_servers(reason: str) -> MachineError:
    """Create the error of ICE servers that cannot be used. It does not quote them: they may contain secrets."""
    return MachineError(
        f"the ICE servers cannot be used: {reason}",
        kind=ErrorKind.INVALID,
        remedy="correct the STUN and TURN servers in the configuration of the cloud",
    )
