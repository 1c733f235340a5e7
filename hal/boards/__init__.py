"""Board definitions as data: the chip and line of each header pin.

Public, in the order in which to read them:

* `definition`: The definition of a board: its pins and buses
* `catalogue`: All defined boards, found by name or by the device tree
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from hal.boards.catalogue import boards as boards
    from hal.boards.catalogue import compatible as compatible
    from hal.boards.definition import BoardDefinition as BoardDefinition
    from hal.boards.definition import BoardPin as BoardPin
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "definition": ["BoardDefinition", "BoardPin"],
            "catalogue": ["boards", "compatible"],
        },
    )
