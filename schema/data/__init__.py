"""What captured data must look like, checked in the same way where they are captured, uploaded and stored. Pure.

Public, in the order in which to read them:

* `annotations`: Labels and boxes of a picture, brought into the form that everything stores and trains on
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from schema.data.annotations import MAX_ANNOTATIONS as MAX_ANNOTATIONS
    from schema.data.annotations import MAX_LABEL as MAX_LABEL
    from schema.data.annotations import Annotation as Annotation
    from schema.data.annotations import mended as mended
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "annotations": ["MAX_ANNOTATIONS", "MAX_LABEL", "Annotation", "mended"],
        },
    )
