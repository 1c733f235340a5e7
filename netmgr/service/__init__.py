"""The task that runs network management: observes, decides, and applies.

Public, in the order in which to read them:

* `proofs`: Proofs that the cloud answers through an interface, after each change of the network and from time to time
* `release`: Give the network back after the agent has ended: interfaces to their former managers, and what netmgr has
  added
* `core`: Network management as one task: it observes, decides, and applies, until it is cancelled
* `backend`: What the portal and the gRPC API of provisioning show, and what follows from what people enter there
* `commands`: Commands for people at the device: status, scan, join, forget and explain
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netmgr.service.backend import PortalBackend as PortalBackend
    from netmgr.service.backend import Product as Product
    from netmgr.service.commands import NetworkCommands as NetworkCommands
    from netmgr.service.commands import network_explanation as network_explanation
    from netmgr.service.commands import network_status as network_status
    from netmgr.service.core import Inputs as Inputs
    from netmgr.service.core import NetworkService as NetworkService
    from netmgr.service.core import stores_of as stores_of
    from netmgr.service.proofs import ProofCloud as ProofCloud
    from netmgr.service.release import give_back as give_back
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "proofs": ["ProofCloud"],
            "release": ["give_back"],
            "core": ["Inputs", "NetworkService", "stores_of"],
            "backend": ["PortalBackend", "Product"],
            "commands": ["NetworkCommands", "network_explanation", "network_status"],
        },
    )
