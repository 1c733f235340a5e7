"""System calls that programs of jobs cannot use: a filter of the kernel (seccomp) refuses them with EPERM.

This is defence in depth. Namespaces and the separate user confine a program already, and the filter keeps it from parts
of the kernel in which mistakes have often let programs escape, and which no training needs. Only the standard library
is imported, because this runs at the start of every job.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
from collections.abc import Mapping
from typing import Final

DENIED: Final[Mapping[str, tuple[int, int]]] = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "delete_module": (176, 106),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "perf_event_open": (298, 241),
    "pidfd_getfd": (438, 438),
    "pivot_root": (155, 41),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setns": (308, 268),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "umount2": (166, 39),
    "unshare": (272, 97),
    "userfaultfd": (323, 282),
}
"""Numbers of the calls on x86-64 and aarch64."""
UNCOUNTED: Final[Mapping[str, tuple[int, int]]] = {
    "memfd_create": (319, 279),
    "msgget": (68, 186),
    "semget": (64, 190),
    "shmget": (29, 194),
}
"""Calls that make memory which belongs to no process and no disk: only a control group counts it."""
FAMILIES: Final = (1, 2, 10)  # of sockets that can be made: AF_UNIX, AF_INET, AF_INET6
MACHINES: Final[Mapping[str, int]] = {"x86_64": 0, "aarch64": 1}  # column of DENIED

_ARCHITECTURE: Final = (0xC000003E, 0xC00000B7)  # AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64
_SOCKET: Final = ((41, 198), (53, 199))  # socket, socketpair
_MMAP: Final = (9, 222)
_SHARED, _ANONYMOUS = 0x01, 0x20  # MAP_SHARED, with which MAP_SHARED_VALIDATE (3) has a bit in common; MAP_ANONYMOUS
_CLONE: Final = (56, 220)
_CLONE3: Final = 435
_NAMESPACES: Final = 0x7E020000  # all CLONE_NEW... that fit into the flags of clone, except CLONE_NEWTIME
_X32: Final = 0x40000000  # bit in the numbers of the second set of calls of x86-64
_LOAD, _EQUAL, _AT_LEAST, _HAS, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | ...
_NUMBER_AT, _ARCHITECTURE_AT, _FIRST_AT, _FOURTH_AT = 0, 4, 16, 40  # offsets in seccomp_data
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_SET_SECCOMP, _FILTER = 22, 2


def filter_for(machine: str, *, uncounted: bool = True) -> bytes | None:
    """Return the filter for a processor, instructions of classic BPF; None for a processor that has no table.

    Without `uncounted`, it refuses memory that only a control group counts, too: the calls of UNCOUNTED, and shared
    memory without a file.
    """
    column = MACHINES.get(machine)
    if column is None:
        return None
    refuse = (_RETURN, 0, 0, _ERROR | errno.EPERM)
    code = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, _ARCHITECTURE[column]), refuse]  # no 32-bit calls
    code += [(_LOAD, 0, 0, _NUMBER_AT), (_AT_LEAST, 0, 1, _X32), refuse]
    for numbers in (*DENIED.values(), *(() if uncounted else UNCOUNTED.values())):
        code += [(_EQUAL, 0, 1, numbers[column]), refuse]
    # The flags of clone3 are in memory, which a filter cannot read. Without it, the C library uses clone.
    code += [(_EQUAL, 0, 1, _CLONE3), (_RETURN, 0, 0, _ERROR | errno.ENOSYS)]
    unsupported = (_RETURN, 0, 0, _ERROR | errno.EAFNOSUPPORT)
    for numbers in _SOCKET:
        code += [(_EQUAL, 0, 3 + len(FAMILIES), numbers[column]), (_LOAD, 0, 0, _FIRST_AT)]
        code += [(_EQUAL, len(FAMILIES) - at, 0, family) for at, family in enumerate(FAMILIES)]
        code += [unsupported, (_RETURN, 0, 0, _ALLOW)]
    if not uncounted:
        code += [(_EQUAL, 0, 4, _MMAP[column]), (_LOAD, 0, 0, _FOURTH_AT)]
        code += [(_HAS, 0, 2, _SHARED), (_HAS, 0, 1, _ANONYMOUS), refuse, (_LOAD, 0, 0, _NUMBER_AT)]
    code += [(_EQUAL, 0, 3, _CLONE[column]), (_LOAD, 0, 0, _FIRST_AT), (_HAS, 0, 1, _NAMESPACES), refuse]
    code += [(_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in code)


def deny(*, uncounted: bool = True) -> str:
    """Refuse the calls of DENIED to this process and all that it starts, for good; see `filter_for`.

    Return why there can be no filter here; empty if there is one.
    PR_SET_NO_NEW_PRIVS must be set before. OSError if the kernel refuses the filter.
    """
    code = filter_for(platform.machine(), uncounted=uncounted)
    if code is None:
        return f"there is no table for the processor {platform.machine()}"
    content = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(content)))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), program, 0, 0):
        error = ctypes.get_errno()
        if error == errno.EINVAL:
            return "this kernel has no seccomp filters"
        raise OSError(error, f"seccomp: {os.strerror(error)}")
    return ""
