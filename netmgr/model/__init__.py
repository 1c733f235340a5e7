"""Records that the parts of netmgr exchange: networks, settings, what was observed, and what is to be. Pure.

Public, in the order in which to read them:

* `network`: Networks that the device may use, with their credentials
* `settings`: Settings of netmgr: `network_configuration` of the agent's settings, with times in seconds
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netmgr.model.network import HIGHEST_PRIORITY as HIGHEST_PRIORITY
    from netmgr.model.network import Enterprise as Enterprise
    from netmgr.model.network import Open as Open
    from netmgr.model.network import Personal as Personal
    from netmgr.model.network import Security as Security
    from netmgr.model.network import StaticAddress as StaticAddress
    from netmgr.model.network import UsableNetwork as UsableNetwork
    from netmgr.model.settings import Hotspot as Hotspot
    from netmgr.model.settings import NetworkSettings as NetworkSettings
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "network": [
                "HIGHEST_PRIORITY",
                "Enterprise",
                "Open",
                "Personal",
                "Security",
                "StaticAddress",
                "UsableNetwork",
            ],
            "settings": ["Hotspot", "NetworkSettings"],
        },
    )
