"""The state machine of provisioning: when to join which wifi network, run the hotspot, or reboot. Pure.

Public, in the order in which to read them:

* `states`: State and events of provisioning, and its times
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netmgr.provisioning.states import Forced as Forced
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "states": ["Forced"],
        },
    )
