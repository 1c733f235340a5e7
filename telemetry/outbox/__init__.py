"""A queue on disk that survives crashes and power cuts.

Public, in the order in which to read them:

* `queue`: A queue on disk: records are appended, read in batches and acknowledged, across crashes and power cuts
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from telemetry.outbox.queue import Outbox as Outbox
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "queue": ["Outbox"],
        },
    )
