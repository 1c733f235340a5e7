"""Shell service `builtin`: clients can do everything on the computer that machine-server can.

Public, in the order in which to read them:

* `receive`: Receiving files from a client
* `send`: Sending files to a client, one after the other, each acknowledged before the next
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.shell.receive import files_to as files_to
    from models.shell.send import files_from as files_from
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "receive": ["files_to"],
            "send": ["files_from"],
        },
    )
