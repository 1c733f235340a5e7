"""The part of a machine that announces it. What it needs is imported when the port is open, not before."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from functools import partial
from typing import Any, Final

import trio

from nursery_graph import Node, Restart
from runtime.machine import INTERNAL
from runtime.mdns.names import Names, names_of
from runtime.parts import Surroundings
from runtime.serving import NODE as RPC
from schema.machine import MachineDocument

NODE: Final = f"{INTERNAL}mdns"


class Mdns:
    """Announces the machine where its port can be reached, until its port closes."""

    def __init__(self, surroundings: Surroundings) -> None:
        pass

    def nodes(self, document: MachineDocument) -> list[Node]:
        """One node, for the names of `document`; it lives as long as the port is open as it is."""
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
    task_status.started()  # whatever comes: a machine that cannot be announced works all the same
    await trio.lowlevel.checkpoint()
    from runtime.mdns.follower import Follower

    await Follower(names, deps[RPC] or ()).run()


def _full_names(document: MachineDocument) -> list[str]:
    cloud = document.cloud
    return [document.network.fqdn, *((cloud.fqdn, cloud.local_fqdn) if cloud is not None else ())]
