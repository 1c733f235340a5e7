"""A channel between programs of the same computer, for its owner: a Unix socket, on Windows a named pipe.

Both have the same name, a path. A Unix socket can be used by the user of the program that listens, and by root. The
pipe can be used by that user, by Administrators and by the system, not through the network; its name is made from the
path, where no file is created.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from rpc.network.local_windows import open_local_listener as open_local_listener
    from rpc.network.local_windows import open_local_stream as open_local_stream

    PRIVILEGED = "in a console that was opened with “Run as administrator”"
else:
    from pathlib import Path

    import trio

    from rpc.network.listeners import open_unix_listener

    PRIVILEGED = "as root, with sudo"
    """How to run a program that may use the channels of services."""

    async def open_local_listener(path: Path) -> trio.abc.Listener[trio.abc.Stream]:
        """Listen at a path. MachineError if that is not possible, or another program listens there."""
        return await open_unix_listener(path)

    async def open_local_stream(path: Path) -> trio.abc.Stream:
        """Connect to the program that listens at a path.

        PermissionError if it is that of another user; other OSErrors if no program listens.
        """
        return await trio.open_unix_socket(str(path))
