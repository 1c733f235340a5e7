"""Discovery of the hardware connected to this computer: buses, addresses, ports, cameras, controllers.

Public, in the order in which to read them:

* `entries`: Configuration entries of built-in models for the findings of an inventory
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.discovery.entries import discovered_entries as discovered_entries
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "entries": ["discovered_entries"],
        },
    )
