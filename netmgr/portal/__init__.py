"""The pages and the gRPC API with which a person gets the device online, in its hotspot.

Public, in the order in which to read them:

* `access`: Rules of access to the portal: host names, pages of other sites, tokens of forms, rates, and the lock
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from netmgr.portal.access import Lock as Lock
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "access": ["Lock"],
        },
    )
