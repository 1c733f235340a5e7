"""The command line `machine` for operators.

Public, in the order in which to read them:

* `connection`: The connection of a command to its machine, and the conversion of failures to exit codes
* `open`: `machine open`: opens the pages of a machine or a cloud in the browser, logged in by a link with a ticket
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from command.connection import Connection as Connection
    from command.connection import Unreachable as Unreachable
    from command.open import link_to as link_to
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "connection": ["Connection", "Unreachable"],
            "open": ["link_to"],
        },
    )
