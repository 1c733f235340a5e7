"""machine-server: command line, composition, port and shutdown.

Public, in the order in which to read them:

* `machine`: Machine: the records of one machine-server
* `memory`: A whole machine in memory: machine-server without process, files and sockets, for tests and experiments
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from runtime.server.machine import Machine as Machine
    from runtime.server.memory import MemoryMachine as MemoryMachine
    from runtime.server.memory import open_machine as open_machine
else:
    from schema.doors import open_door

    __getattr__, __dir__, __all__ = open_door(
        __name__,
        {
            "machine": ["Machine"],
            "memory": ["MemoryMachine", "open_machine"],
        },
    )
