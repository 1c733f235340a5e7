"""Pictures from cameras, people and files, which are decoded in one way everywhere.

Public, in the order in which to read them:

* `pictures` (module): The decoder of all pictures: for vision, video, training, thumbnails and labelling
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from support.media import pictures as pictures
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {},
        modules=["pictures"],
    )
