"""What Wine 10 lacks, for Python started by the tests. Real Windows needs none of it."""

from __future__ import annotations

import importlib.abc
import importlib.util
import os
import sys


def _parent():
    """Return the id of the parent process: PssCaptureSnapshot, which os.getppid calls, would end the process."""
    import ctypes
    from ctypes import wintypes

    class Entry(ctypes.Structure):
        _fields_ = (
            ("size", wintypes.DWORD),
            ("usage", wintypes.DWORD),
            ("pid", wintypes.DWORD),
            ("heap", ctypes.c_void_p),
            ("module", wintypes.DWORD),
            ("threads", wintypes.DWORD),
            ("parent", wintypes.DWORD),
            ("priority", wintypes.LONG),
            ("flags", wintypes.DWORD),
            ("name", wintypes.WCHAR * 260),
        )

    kernel32 = ctypes.WinDLL("kernel32")
    kernel32.CreateToolhelp32Snapshot.restype = ctypes.c_void_p
    snapshot = ctypes.c_void_p(kernel32.CreateToolhelp32Snapshot(2, 0))
    entry = Entry(size=ctypes.sizeof(Entry))
    more = kernel32.Process32FirstW(snapshot, ctypes.byref(entry))
    try:
        while more:
            if entry.pid == os.getpid():
                return entry.parent
            more = kernel32.Process32NextW(snapshot, ctypes.byref(entry))
    finally:
        kernel32.CloseHandle(snapshot)
    return 0


class _Trio(importlib.abc.MetaPathFinder):
    """Wine does not know SIO_BSP_HANDLE_SELECT, by which Trio asks for the socket below others: there is none."""

    def find_spec(self, name, path, target=None):
        if name != "trio._core._io_windows":
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        execute = spec.loader.exec_module

        def patched(module):
            execute(module)

            def itself(sock, *_, **__):
                return module.ffi.cast("HANDLE", sock.fileno() if hasattr(sock, "fileno") else sock)

            module._get_underlying_socket = module._get_base_socket = itself

        spec.loader.exec_module = patched
        return spec


os.getppid = _parent
sys.meta_path.insert(0, _Trio())
