"""Network management: links, addresses, routes, DNS, Wi-Fi, the provisioning hotspot and its portal.

Started by machine-agent. docs/design/netmgr.md describes the parts.

Public, in the order in which to read them:

* `programs` (module): Run a program of the system with a time limit and bounded output
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netmgr import programs as programs
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {},
        modules=["programs"],
    )
