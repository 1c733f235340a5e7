"""Confinement of a process that executes statements of strangers, for good: files, system calls, memory and time.

Little more than the standard library is imported, because this runs at the start of every query. The process must have
one thread.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import resource
import struct
from collections.abc import Iterable, Mapping
from typing import Final

ALLOWED: Final[Mapping[str, tuple[int | None, int | None]]] = {
    "access": (21, None),
    "brk": (12, 214),
    "clock_getres": (229, 114),
    "clock_gettime": (228, 113),
    "clock_nanosleep": (230, 115),
    "close": (3, 57),
    "exit": (60, 93),
    "exit_group": (231, 94),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "fadvise64": (221, 223),
    "fallocate": (285, 47),
    "fcntl": (72, 25),
    "fdatasync": (75, 83),
    "fstat": (5, 80),
    "fstatfs": (138, 44),
    "fsync": (74, 82),
    "ftruncate": (77, 46),
    "futex": (202, 98),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    "getpid": (39, 172),
    "getrandom": (318, 278),
    "getrusage": (98, 165),
    "gettid": (186, 178),
    "gettimeofday": (96, 169),
    "getuid": (102, 174),
    "lseek": (8, 62),
    "lstat": (6, None),
    "madvise": (28, 233),
    "mkdir": (83, None),
    "mkdirat": (258, 34),
    "mmap": (9, 222),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "munmap": (11, 215),
    "nanosleep": (35, 101),
    "newfstatat": (262, 79),
    "open": (2, None),
    "openat": (257, 56),
    "pread64": (17, 67),
    "pwrite64": (18, 68),
    "read": (0, 63),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "restart_syscall": (219, 128),
    "rmdir": (84, None),
    "rseq": (334, 293),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "rt_sigreturn": (15, 139),
    "sched_getaffinity": (204, 123),
    "sched_yield": (24, 124),
    "set_robust_list": (273, 99),
    "sigaltstack": (131, 132),
    "stat": (4, None),
    "statfs": (137, 43),
    "statx": (332, 291),
    "sysinfo": (99, 179),
    "unlink": (87, None),
    "unlinkat": (263, 35),
    "write": (1, 64),
    "writev": (20, 66),
}
"""System calls on x86-64 and aarch64. None of them makes a process, a thread or a socket."""
MACHINES: Final[Mapping[str, int]] = {"x86_64": 0, "aarch64": 1}  # column of ALLOWED

_ARCHITECTURE: Final = (0xC000003E, 0xC00000B7)  # AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64
_LOAD, _EQUAL, _RETURN = 0x20, 0x15, 0x06  # BPF_LD | BPF_W | BPF_ABS, BPF_JMP | BPF_JEQ | BPF_K, BPF_RET | BPF_K
_NUMBER_AT, _ARCHITECTURE_AT = 0, 4  # offsets in seccomp_data
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_SET_SECCOMP, _FILTER, _NO_NEW_PRIVILEGES = 22, 2, 38
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on all processors
_PATH_BENEATH: Final = 1
_READ_FILE, _WRITE_FILE, _READ_FOLDER, _REMOVE_FOLDER, _REMOVE_FILE = 1 << 2, 1 << 1, 1 << 3, 1 << 4, 1 << 5
_MAKE_FOLDER, _MAKE_FILE, _TRUNCATE = 1 << 7, 1 << 8, 1 << 14
_LIMITS: Final = ("/proc/self/cgroup", "/sys/fs/cgroup")
"""Files in which DuckDB looks for limits of its control group; it crashes if one exists and cannot be opened."""
_RIGHTS: Final = (1 << 13, 1 << 14, 1 << 15, 1 << 15, 1 << 16)
"""First unknown right to files, by version of Landlock: 1 to 5. Later versions add none."""


class Unconfined(Exception):
    """What this kernel lacks."""


def confine(files: Iterable[str], folder: str, *, cpu: int, memory: int, written: int, descriptors: int) -> None:
    """Confine this process: it can read `files`, and change the content of `folder`; nothing else, for good.

    Landlock restricts the files, or without it a root folder that has no others. `cpu` is in seconds, `memory` is
    address space in bytes, `written` is bytes in a file. FileNotFoundError for a file that does not exist. Unconfined
    if the kernel cannot do this; the process must then end.
    """
    landlock = landlock_version()
    if not landlock:
        from cloud.domain.queries.root import enter_root

        try:
            enter_root(files, folder)
        except FileNotFoundError:
            raise
        except (OSError, KeyError) as error:
            raise Unconfined(f"Landlock, and no namespace for files ({error})") from error
    for limited, value in (
        (resource.RLIMIT_CORE, 0),
        (resource.RLIMIT_CPU, cpu),
        (resource.RLIMIT_AS, memory),
        (resource.RLIMIT_FSIZE, written),
        (resource.RLIMIT_NPROC, 0),
        (resource.RLIMIT_NOFILE, descriptors),
    ):
        resource.setrlimit(limited, (value, value))
    libc = ctypes.CDLL(None, use_errno=True)
    _checked(libc.prctl(_NO_NEW_PRIVILEGES, 1, 0, 0, 0), "no_new_privs")
    if landlock:
        _restrict_files(libc, files, folder, landlock)
    _restrict_calls(libc)


def landlock_version() -> int:
    """Return the version of Landlock in this kernel; 0 if there is none."""
    version: int = ctypes.CDLL(None, use_errno=True).syscall(_CREATE_RULESET, None, 0, 1)
    return max(0, version)


def _restrict_files(libc: ctypes.CDLL, files: Iterable[str], folder: str, version: int) -> None:
    handled = _RIGHTS[min(version, len(_RIGHTS)) - 1] - 1
    # Versions 4 and 6 handle ports and signals, too: seccomp refuses sockets and `kill` already.
    rules = libc.syscall(_CREATE_RULESET, ctypes.c_char_p(struct.pack("=Q", handled)), ctypes.c_size_t(8), 0)
    _checked(min(rules, 0), "landlock_create_ruleset")
    in_folder = _READ_FILE | _WRITE_FILE | _READ_FOLDER | _MAKE_FILE | _MAKE_FOLDER | _REMOVE_FILE | _REMOVE_FOLDER
    for path, rights in (
        (folder, in_folder | (_TRUNCATE & handled)),
        *((path, _READ_FILE) for path in (*_LIMITS, *files)),
    ):
        if path in _LIMITS and not os.path.exists(path):
            continue
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        rule = ctypes.c_char_p(struct.pack("=Qi", rights, descriptor))
        _checked(libc.syscall(_ADD_RULE, rules, _PATH_BENEATH, rule, 0), "landlock_add_rule")
        os.close(descriptor)
    _checked(libc.syscall(_RESTRICT_SELF, rules, 0), "landlock_restrict_self")
    os.close(rules)


def _restrict_calls(libc: ctypes.CDLL) -> None:
    code = filter_for(platform.machine())
    if code is None:
        raise Unconfined(f"a filter of system calls for {platform.machine()}")
    content = ctypes.create_string_buffer(code, len(code))
    program = ctypes.create_string_buffer(struct.pack("@HP", len(code) // 8, ctypes.addressof(content)))
    _checked(libc.prctl(_SET_SECCOMP, ctypes.c_ulong(_FILTER), program, 0, 0), "seccomp")


def filter_for(machine: str) -> bytes | None:
    """Return the filter of system calls for a processor, instructions of classic BPF; None if there is no table.

    Calls that are not ALLOWED fail with EPERM; so do all of 32-bit programs and of the second set of x86-64.
    """
    column = MACHINES.get(machine)
    if column is None:
        return None
    refuse, allow = (_RETURN, 0, 0, _ERROR | errno.EPERM), (_RETURN, 0, 0, _ALLOW)
    code = [(_LOAD, 0, 0, _ARCHITECTURE_AT), (_EQUAL, 1, 0, _ARCHITECTURE[column]), refuse, (_LOAD, 0, 0, _NUMBER_AT)]
    for numbers in ALLOWED.values():
        if (number := numbers[column]) is not None:
            code += [(_EQUAL, 0, 1, number), allow]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in (*code, refuse))


def _checked(result: int, what: str) -> None:
    if result:
        number = ctypes.get_errno()
        if number in (errno.ENOSYS, errno.EOPNOTSUPP, errno.EINVAL):
            raise Unconfined(what)
        raise OSError(number, f"{what}: {os.strerror(number)}")
