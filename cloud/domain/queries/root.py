"""A root folder that has only some files, in a mount namespace of this process: for kernels without Landlock.

Raspberry Pi OS has none (its kernel 6.18 of 2026 is built without it). Only the standard library is imported, because
this runs at the start of every query. The process must have one thread; `training.engine.sandbox` does the same for
programs that need a system, and is a program of its own, which also runs on computers without this package.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Final

PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41}  # numbers of the system call, which the C library does not have
_NEW_MOUNT, _NEW_USER = 0x00020000, 0x10000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_KEPT: Final = {1: 1, 2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}
"""Flags of mounts that a user namespace may not clear: ST_... of statvfs, MS_... of mount."""
_DETACH: Final = 2  # MNT_DETACH
_NAME: Final = ".root"

_libc: Final = ctypes.CDLL(None, use_errno=True)


def enter_root(files: Iterable[str], folder: str) -> None:
    """Make `files`, read-only, and `folder` the only ones that this process sees, at the same paths as before.

    OSError if the kernel or an administrator does not allow it, for example without user namespaces; FileNotFoundError
    for a file that does not exist. The process must then end.
    """
    user, group = os.geteuid(), os.getegid()
    _checked(_libc.unshare(_NEW_MOUNT if user == 0 else _NEW_MOUNT | _NEW_USER), "unshare")
    if user != 0:
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    root = Path(folder, _NAME)
    root.mkdir(mode=0o700)
    _mount(None, "/", None, _REC | _PRIVATE)
    _mount("tmpfs", str(root), "tmpfs", _NOSUID | _NODEV | _NOEXEC, b"size=16m,mode=755")
    _show(root, folder, writable=True)
    for path in files:
        _show(root, path, writable=False)
    (root / ".old").mkdir()
    os.chdir(root)
    _checked(_libc.syscall(PIVOT_ROOT[platform.machine()], b".", b".old"), "pivot_root")
    os.chdir("/")
    _checked(_libc.umount2(b"/.old", _DETACH), "umount2")
    os.rmdir("/.old")
    _mount(None, "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV | _NOEXEC)
    os.rmdir(Path(folder, _NAME))


def _show(root: Path, path: str, *, writable: bool) -> None:
    """Bind a file or folder into the new root."""
    target = root / path.lstrip("/")
    if Path(path).is_dir():
        target.mkdir(parents=True, exist_ok=True)
    else:
        os.stat(path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.touch()
    _mount(path, str(target), None, _BIND)
    kept = os.statvfs(target).f_flag
    flags = sum(value for bit, value in _KEPT.items() if kept & bit) | _NOSUID | _NODEV | _NOEXEC
    _mount(None, str(target), None, _REMOUNT | _BIND | flags | (0 if writable else _RDONLY))


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: bytes | None = None) -> None:
    words = [None if word is None else os.fsencode(word) for word in (source, target, kind)]
    _checked(_libc.mount(*words, ctypes.c_ulong(flags), options), "mount")


def _checked(result: int, name: str) -> None:
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")
