"""Advisory locks of open files on Windows."""

from __future__ import annotations

import ctypes
import msvcrt
import sys
from typing import Final

assert sys.platform == "win32"

from support.windows import Overlapped, kernel32, last_error

# From minwinbase.h and winerror.h
_FAIL_IMMEDIATELY: Final = 0x1
_EXCLUSIVE: Final = 0x2
_LOCK_VIOLATION: Final = 33
_FAR: Final = 0x7FFFFFFF << 32  # position of the locked byte: no file of ours is that large


def lock_file(descriptor: int, *, shared: bool = False) -> None:
    """Lock an open file; `shared` allows other shared locks. Blocks while another lock excludes it."""
    _lock(descriptor, 0 if shared else _EXCLUSIVE)


def try_lock_file(descriptor: int, *, shared: bool = False) -> bool:
    """Lock an open file without waiting; return whether no other lock excludes it."""
    try:
        _lock(descriptor, _FAIL_IMMEDIATELY | (0 if shared else _EXCLUSIVE))
    except OSError as error:
        if error.winerror != _LOCK_VIOLATION:
            raise
        return False
    return True


def _lock(descriptor: int, flags: int) -> None:
    handle = ctypes.c_void_p(msvcrt.get_osfhandle(descriptor))
    # A second lock of the same descriptor replaces the first one, as flock does; here it would wait for itself.
    kernel32.UnlockFileEx(handle, 0, 1, 0, ctypes.byref(Overlapped(offset=_FAR)))
    if not kernel32.LockFileEx(handle, flags, 0, 1, 0, ctypes.byref(Overlapped(offset=_FAR))):
        raise last_error()
