"""The network of an isolated program: connections to one address, which the engine serves."""

from __future__ import annotations

import array
import logging
import socket
from typing import Final

import trio

from training.engine.port import Connect

_log: Final = logging.getLogger("training.network")


async def network_of(received: socket.socket, connect: Connect) -> None:
    """Receive a listening socket from inside the program's network, and serve its connections until cancelled.

    Return if the other end is closed without sending one. A connection that fails does not affect the others.
    """
    with trio.socket.from_stdlib_socket(received.dup()) as receiving:
        message, ancillary, _, _ = await receiving.recvmsg(1, socket.CMSG_LEN(array.array("i", [0]).itemsize))
    descriptors = array.array("i")
    for level, kind, data in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            descriptors.frombytes(data)
    if not message or not descriptors:
        return
    listener = trio.SocketListener(trio.socket.from_stdlib_socket(socket.socket(fileno=descriptors[0])))

    async def serve(stream: trio.abc.Stream) -> None:
        try:
            await connect(stream)
        except Exception:
            _log.exception("a connection of a training program failed")

    await trio.serve_listeners(serve, [listener])
