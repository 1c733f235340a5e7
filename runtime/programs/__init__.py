"""Programs of modules: unpacks archives, runs first-run programs, builds command lines, and stores packages.

Public, in the order in which to read them:

* `archive`: Module archives: a `.tgz` with a `meta.json`, unpacked once per content
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.programs.archive import BOUNDS as BOUNDS
    from runtime.programs.archive import read_meta as read_meta
    from runtime.programs.archive import unpack_here as unpack_here
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "archive": ["BOUNDS", "read_meta", "unpack_here"],
        },
    )
