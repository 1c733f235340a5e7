"""Advisory locks of open files, which the kernel releases when their process ends: none is ever stale.

A lock belongs to the descriptor that `os.open` returned, and to its copies in other processes, until all are closed.
On Windows it is a lock of one byte far behind the end of the file, because locks of content stop its readers.
"""

from __future__ import annotations

import sys

if sys.platform == "win32":
    from support.files.locks_windows import lock_file as lock_file
    from support.files.locks_windows import try_lock_file as try_lock_file
else:
    import fcntl

    def lock_file(descriptor: int, *, shared: bool = False) -> None:
        """Lock an open file or folder; `shared` allows other shared locks. Blocks while another lock excludes it."""
        fcntl.flock(descriptor, fcntl.LOCK_SH if shared else fcntl.LOCK_EX)

    def try_lock_file(descriptor: int, *, shared: bool = False) -> bool:
        """Lock an open file or folder without waiting; return whether no other lock excludes it."""
        try:
            fcntl.flock(descriptor, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True
