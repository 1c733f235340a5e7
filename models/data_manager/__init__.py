"""The attributes of the data manager, which is a part of the server.

Public, in the order in which to read them:

* `attributes`: Attributes of `data_manager`
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from models.data_manager.attributes import DataManagerConfig as DataManagerConfig
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "attributes": ["DataManagerConfig"],
        },
    )
