"""Users of Windows, and the lists of who may use an object: security identifiers, descriptors, owners."""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from ctypes import wintypes
from typing import Any, Final

assert sys.platform == "win32"

from support.windows.kernel_windows import kernel32, last_error

SYSTEM: Final = "S-1-5-18"
ADMINISTRATORS: Final = "S-1-5-32-544"
SERVICES: Final = "S-1-5-80-"
"""Beginning of the identifiers of accounts that exist for one service each."""

# From winnt.h, sddl.h and accctrl.h
_QUERY: Final = 0x8  # TOKEN_QUERY
_USER: Final = 1  # TokenUser
_REVISION: Final = 1  # SDDL_REVISION_1
_KERNEL_OBJECT: Final = 6  # SE_KERNEL_OBJECT
_OWNER: Final = 1  # OWNER_SECURITY_INFORMATION

advapi32: Final = ctypes.WinDLL("advapi32", use_last_error=True)


class SecurityAttributes(ctypes.Structure):
    """SECURITY_ATTRIBUTES, for calls that create an object."""

    _fields_ = (("size", wintypes.DWORD), ("descriptor", ctypes.c_void_p), ("inherit", wintypes.BOOL))


def own_user() -> str:
    """Return the security identifier of the user of this process, such as `S-1-5-18`. Raises OSError."""
    token = ctypes.c_void_p()
    own = ctypes.c_void_p(kernel32.GetCurrentProcess())
    if not advapi32.OpenProcessToken(own, _QUERY, ctypes.byref(token)):
        raise last_error()
    try:
        needed = wintypes.DWORD()
        advapi32.GetTokenInformation(token, _USER, None, 0, ctypes.byref(needed))
        buffer = ctypes.create_string_buffer(needed.value)
        if not advapi32.GetTokenInformation(token, _USER, buffer, needed, ctypes.byref(needed)):
            raise last_error()
    finally:
        kernel32.CloseHandle(token)
    return _text_of(ctypes.c_void_p.from_buffer(buffer))  # TOKEN_USER begins with the pointer to the identifier


def owner_of(handle: ctypes.c_void_p) -> str:
    """Return the security identifier of the owner of a pipe or another object of the kernel. Raises OSError."""
    owner, descriptor = ctypes.c_void_p(), ctypes.c_void_p()
    status = advapi32.GetSecurityInfo(
        handle, _KERNEL_OBJECT, _OWNER, ctypes.byref(owner), None, None, None, ctypes.byref(descriptor)
    )
    if status:
        raise ctypes.WinError(status)
    try:
        return _text_of(owner)
    finally:
        kernel32.LocalFree(descriptor)


@contextmanager
def only_for(owner: str, *others: str) -> Iterator[Any]:
    """Yield a reference to SECURITY_ATTRIBUTES that give some users of this computer full access, and others none.

    The users are named by security identifiers; the `owner` must be `own_user`, or a group that may own. Who comes
    through the network is refused even as one of them. Raises OSError.
    """
    entries = "".join(f"(A;;FA;;;{user})" for user in (owner, *others))
    descriptor = ctypes.c_void_p()
    if not advapi32.ConvertStringSecurityDescriptorToSecurityDescriptorW(
        f"O:{owner}D:P(D;;FA;;;NU){entries}", _REVISION, ctypes.byref(descriptor), None
    ):
        raise last_error()
    try:
        yield ctypes.byref(SecurityAttributes(ctypes.sizeof(SecurityAttributes), descriptor, False))
    finally:
        kernel32.LocalFree(descriptor)


def _text_of(identifier: ctypes.c_void_p) -> str:
    text = wintypes.LPWSTR()
    if not advapi32.ConvertSidToStringSidW(identifier, ctypes.byref(text)):
        raise last_error()
    try:
        return text.value or ""
    finally:
        kernel32.LocalFree(text)
