"""The process between an engine and the program of a job: it confines the program, and ends it when the engine dies.

The engine starts it with the path of a plan (JSON) as its argument and a pipe as its standard input, into which it
writes now and then. When that pipe closes, because the engine has died in whatever way, or nothing arrives for some
time, because the engine has stopped working, everything here is killed. The lock of the plan is held until then. With
`isolate`, the program has its own namespaces for files, processes, network, IPC and host name: it sees only the files
of the plan, no other process and no network apart from what the engine serves, and nothing that it started outlives it.
A program of this project that the plan calls online uses the network of this computer.
As root it also has a separate user; otherwise a user namespace is used. Without `isolate`, there are only the limits
and the process group.

Little more than the standard library is imported, because this starts with every job. It runs single-threaded.
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import select
import signal
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from training.engine.calls import deny

FAILED: Final = 125  # exit status if the program could not be confined; the reason is on the standard error

_NEW_NAMESPACES: Final = 0x00020000 | 0x20000000 | 0x08000000 | 0x04000000  # mount, PID, IPC, UTS
_NEW_NETWORK: Final = 0x40000000
_NEW_USER: Final = 0x10000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_KEPT: Final = {1: 1, 2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}  # ST_... of statvfs -> MS_... of mount
_DETACH: Final = 2
_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP
_PDEATHSIG, _NO_NEW_PRIVILEGES = 1, 38
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41, "armv7l": 218}
_DEVICES: Final = ("null", "zero", "random", "urandom")
_SYSTEM: Final = (
    "/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d",
    "/etc/alternatives", "/etc/localtime",
)  # fmt: skip
"""What every program needs; none of it is secret."""

_libc: Final = ctypes.CDLL(None, use_errno=True)


def main() -> NoReturn:
    """Run the plan that the argument names. Exit with the status of the program, 128 + N if signal N ended it."""
    plan = json.loads(Path(sys.argv[1]).read_text())
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the program receives it too, and its end is ours
    try:
        if plan["group"] is not None:
            Path(plan["group"]).write_text(str(os.getpid()))
        if plan["isolate"]:
            _enter_namespaces(online=plan["online"])
        child = os.fork()
        if not child:
            _run_first(plan)
        if plan["network"] is not None:
            os.close(plan["network"])
        _watch(child, plan["silence"])
    except OSError as error:
        _fail(f"{error.strerror}: {error.filename}" if error.filename else str(error))


def _watch(child: int, silence: float) -> NoReturn:
    """Wait until the child ends, or the engine dies or falls silent: then kill everything."""
    ended, engine = os.pidfd_open(child), sys.stdin.fileno()
    while True:
        ready, _, _ = select.select([ended, engine], [], [], silence)
        if ended in ready:
            os._exit(_status(os.waitpid(child, 0)[1]))
        if engine not in ready or not os.read(engine, 4096):
            signal.pidfd_send_signal(ended, signal.SIGKILL)  # the first process of the namespace takes all others along
            os.waitpid(child, 0)  # hold the lock until they have ended
            os.killpg(0, signal.SIGKILL)


def _run_first(plan: Mapping[str, Any]) -> NoReturn:
    """Be the first process of the namespace: start the program and reap its orphans until it ends."""
    try:
        if not plan["isolate"]:
            _execute(plan)
        _call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if plan["network"] is not None:
            _listen(plan["network"], *plan["cloud"])
        _enter_root(plan)
        program = os.fork()
        if not program:
            _give_up_privileges(plan["user"])
            if lacking := deny():
                os.write(2, f"WARNING: system calls are not filtered: {lacking}\n".encode())
            _execute(plan)
        while True:
            ended, status = os.wait()
            if ended == program:
                os._exit(_status(status))
    except OSError as error:
        _fail(f"{error.strerror}: {error.filename}" if error.filename else str(error))


def _execute(plan: Mapping[str, Any]) -> NoReturn:
    for name, value in plan["limits"].items():
        hard = value + 5 if name == "RLIMIT_CPU" else value  # SIGXCPU first, then SIGKILL
        resource.setrlimit(getattr(resource, name), (value, hard))
    if plan["lock"] is not None:  # nothing of an isolated program outlives its first process, which holds the lock
        os.set_inheritable(plan["lock"], not plan["isolate"])
    os.nice(10)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    null = os.open("/dev/null", os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.chdir(plan["folder"])
    os.execve(plan["command"][0], plan["command"], plan["environment"])


def _status(wait_status: int) -> int:
    code = os.waitstatus_to_exitcode(wait_status)
    return code if code >= 0 else 128 - code


def _fail(reason: str) -> NoReturn:
    os.write(2, f"ERROR: the program cannot be confined: {reason}\n".encode("utf-8", "replace"))
    os._exit(FAILED)


# ---- namespaces


def _enter_namespaces(*, online: bool) -> None:
    """Leave the namespaces of the engine, except for that of the network if `online`.

    The PID namespace begins with the next child.
    """
    user, group = os.geteuid(), os.getegid()
    namespaces = _NEW_NAMESPACES | (0 if online else _NEW_NETWORK)
    if user == 0:
        _call("unshare", namespaces)
        return
    _call("unshare", namespaces | _NEW_USER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")


def _listen(engine: int, host: str, port: int) -> None:
    """Listen at an address of the new network, and send the listening socket to the engine."""
    import fcntl
    import socket

    with socket.socket() as listener, socket.socket(fileno=engine) as sending:
        flags = struct.pack("16sH14x", b"lo", _UP)
        fcntl.ioctl(listener, _SET_FLAGS, flags)
        listener.bind((host, port))
        listener.listen(16)
        socket.send_fds(sending, [b"."], [listener.fileno()])


def _enter_root(plan: Mapping[str, Any]) -> None:
    """Make the files of the plan the only ones, at the same paths as outside."""
    root = Path(plan["root"])
    if plan["user"] is not None:
        for folder in map(Path, plan["writable"]):
            _own(folder, plan["user"])
    _mount(None, "/", None, _REC | _PRIVATE)
    _mount("tmpfs", str(root), "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    temporary = Path(plan["temporary"])  # first: other paths of the plan may be below these
    for at in ("/tmp", "/dev/shm"):
        _show(root, temporary, writable=True, at=Path(at))
    for path in (*map(Path, _SYSTEM), *map(Path, plan["readable"])):
        _show(root, path, writable=False)
    for path in map(Path, plan["writable"]):
        _show(root, path, writable=True)
    for name in _DEVICES:
        _show(root, Path("/dev") / name, writable=True, device=True)
    (root / "proc").mkdir()
    _mount("proc", str(root / "proc"), "proc", _NOSUID | _NODEV | _NOEXEC)
    (root / ".old").mkdir()
    os.chdir(root)
    number = _PIVOT_ROOT.get(platform.machine())
    if number is None:
        raise OSError(0, f"the processor {platform.machine()} is not supported")
    _call("syscall", number, b".", b".old")
    os.chdir("/")
    _call("umount2", b"/.old", _DETACH)
    os.rmdir("/.old")
    _mount(None, "/", None, _REMOUNT | _BIND | _RDONLY | _NOSUID | _NODEV)


def _show(root: Path, path: Path, *, writable: bool, device: bool = False, at: Path | None = None) -> None:
    """Bind a file or folder into the new root; repeat a symbolic link."""
    target = root / (at or path).relative_to("/")
    if target.is_symlink() or (target.exists() and at is None) or not os.path.lexists(path):
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    if path.is_symlink():
        target.symlink_to(os.readlink(path))
        return
    if path.is_dir():
        target.mkdir(exist_ok=True)
    else:
        target.touch()
    _mount(str(path), str(target), None, _BIND | _REC)
    kept = os.statvfs(target).f_flag
    flags = sum(value for bit, value in _KEPT.items() if kept & bit) | _NOSUID
    flags |= 0 if device else _NODEV
    _mount(None, str(target), None, _REMOUNT | _BIND | flags | (0 if writable else _RDONLY))


def _own(folder: Path, user: int) -> None:
    """Give a folder of the job to its user, with what an earlier start has left in it."""
    from support.foreign.walk import entries  # nodes of a cluster do not have it, and do not need it

    os.chown(folder, user, user, follow_symlinks=False)
    for entry in entries(folder):
        os.chown(entry.name, user, user, dir_fd=entry.folder, follow_symlinks=False)


def _give_up_privileges(user: int | None) -> None:
    _call("prctl", _NO_NEW_PRIVILEGES, 1, 0, 0, 0)
    if user is not None:
        os.setgroups([])
        os.setresgid(user, user, user)
        os.setresuid(user, user, user)  # from root to another user: all capabilities are gone


# ---- system calls


def _mount(source: str | None, target: str, kind: str | None, flags: int, options: str = "") -> None:
    words = [word.encode() if word is not None else None for word in (source, target, kind)]
    if _libc.mount(*words, ctypes.c_ulong(flags), options.encode() or None):
        code = ctypes.get_errno()
        raise OSError(code, f"mount: {os.strerror(code)}", target)


def _call(name: str, *arguments: int | bytes) -> None:
    converted = [ctypes.c_ulong(value) if isinstance(value, int) else value for value in arguments]
    if getattr(_libc, name)(*converted) < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")


if __name__ == "__main__":
    main()
