"""Calls and structures of Windows. Only modules whose names end with _windows import this package."""

from __future__ import annotations

import sys

assert sys.platform == "win32"

from support.windows.access_windows import ADMINISTRATORS as ADMINISTRATORS
from support.windows.access_windows import SERVICES as SERVICES
from support.windows.access_windows import SYSTEM as SYSTEM
from support.windows.access_windows import only_for as only_for
from support.windows.access_windows import own_user as own_user
from support.windows.access_windows import owner_of as owner_of
from support.windows.kernel_windows import INVALID_HANDLE as INVALID_HANDLE
from support.windows.kernel_windows import OPEN_EXISTING as OPEN_EXISTING
from support.windows.kernel_windows import OVERLAPPED as OVERLAPPED
from support.windows.kernel_windows import QUERY_PROCESS as QUERY_PROCESS
from support.windows.kernel_windows import READ as READ
from support.windows.kernel_windows import SHARE_ALL as SHARE_ALL
from support.windows.kernel_windows import WRITE as WRITE
from support.windows.kernel_windows import Overlapped as Overlapped
from support.windows.kernel_windows import ProcessMemory as ProcessMemory
from support.windows.kernel_windows import kernel32 as kernel32
from support.windows.kernel_windows import last_error as last_error
from support.windows.kernel_windows import memory_of as memory_of
from support.windows.kernel_windows import open_handle as open_handle
from support.windows.kernel_windows import opened_process as opened_process
