"""The ports of the portal: pages on 80, the gRPC API on 4772 and 80, on the interface of the hotspot only."""

from __future__ import annotations

import secrets
import socket
from typing import Final

import trio

from netmgr.portal.access import Visitors
from netmgr.portal.backend import PortalActions
from netmgr.portal.pages import PortalPages
from netmgr.portal.provisioning_service import SERVICE, PortalTarget, ProvisioningService
from rpc import Limits, ServerCore
from rpc.access import Origins
from rpc.api import ApiRouter
from rpc.http import HttpLimits
from rpc.server import serve
from schema import ErrorKind, MachineError

PORTS: Final = (80, 4772)
"""HTTP, which the tests of phones use, and the port of the published API."""
NAME: Final = "machine.setup"
"""Name of the portal in its hotspot, also where only names below `.setup` are redirected."""
BACKLOG: Final = 64
LIMITS: Final = Limits(max_connections=128, max_message=64 * 1024)
HTTP_LIMITS: Final = HttpLimits(max_body=64 * 1024, max_per_address=32)


async def serve_portal(
    backend: PortalActions,
    address: str,
    *,
    interface: str = "",
    ports: tuple[int, ...] = PORTS,
    task_status: trio.TaskStatus[tuple[int, ...]] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the portal at an IPv4 address until cancelled; report the ports.

    With `interface`, only requests that arrive through it are answered, so that neighbors in another network of the
    device cannot reach the portal. Raises MachineError if a port is in use.
    """
    visitors = Visitors(secrets.token_bytes(32), (address, NAME))
    router = ApiRouter(PortalTarget(backend, visitors), bases={}, services={SERVICE: ProvisioningService})
    origins = Origins(keys=False, names=visitors.hosts)
    core = ServerCore(router, limits=LIMITS, origins=lambda: origins)
    listeners: list[trio.SocketListener] = []
    try:
        listeners += (_listener(address, port, interface) for port in ports)
    except MachineError:
        for listener in listeners:
            listener.socket.close()
        raise
    numbers = tuple(int(listener.socket.getsockname()[1]) for listener in listeners)
    async with trio.open_nursery() as nursery:
        await nursery.start(
            lambda task_status: serve(
                listeners,
                core,
                app=PortalPages(backend, visitors).application(),
                limits=HTTP_LIMITS,
                task_status=task_status,
            )
        )
        task_status.started(numbers)


def _listener(address: str, port: int, interface: str) -> trio.SocketListener:
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if interface:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_BINDTODEVICE, interface.encode())
        listener.bind((address, port))
        listener.listen(BACKLOG)
    except OSError as error:
        listener.close()
        raise MachineError(
            f"the portal cannot use port {port} of {address}: {error.strerror}", kind=ErrorKind.UNAVAILABLE,
            remedy=f"end the program that uses it: ss -ltnp 'sport = :{port}'",
        ) from None  # fmt: skip
    listener.setblocking(False)
    return trio.SocketListener(trio.socket.from_stdlib_socket(listener))
