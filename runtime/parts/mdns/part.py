"""The part of machine-server that announces it by multicast DNS. The implementation is imported when the port is open.

This keeps the start fast.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import trio

from engine import PartContext
from engine.planning import INTERNAL, RPC
from nursery_graph import Node, Restart
from runtime.parts.mdns.names import Names, names_of
from schema.document import MachineDocument

NODE: Final = f"{INTERNAL}mdns"


class Mdns:
    """Announces the machine while its port is open."""

    def __init__(self, context: PartContext) -> None:
        pass

    def nodes(self, document: MachineDocument) -> list[Node]:
        """Return one node for the names of `document`. It requires the port, and restarts with it."""
        names = names_of(_full_names(document), socket.gethostname())
        return [
            Node(
                NODE,
                partial(_run, names),
                requires={RPC},
                version=names,
                stop_timeout=5.0,
                restart=Restart(intensity=1_000_000, max_delay=60.0),
            )
        ]


async def _run(names: Names, deps: Mapping[str, Any], /, *, task_status: trio.TaskStatus[None]) -> None:
    task_status.started()  # before any failure: a machine that cannot be announced works nevertheless
    await trio.lowlevel.checkpoint()
    from runtime.parts.mdns.follower import Follower

    await Follower(names, deps[RPC] or ()).run()


def _full_names(document: MachineDocument) -> list[str]:
    cloud = document.cloud
    return [document.network.fqdn, *((cloud.fqdn, cloud.local_fqdn) if cloud is not None else ())]
