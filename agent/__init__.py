"""machine-agent: installs, updates and supervises machine-server, and gets the device online (docs/design/agent.md).

Public, in the order in which to read them:

* `layout`: Files and folders of machine-agent on a device
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent.layout import PROGRAMS as PROGRAMS
    from agent.layout import Layout as Layout
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "layout": ["PROGRAMS", "Layout"],
        },
    )
