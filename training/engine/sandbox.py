"""The process between an engine and the program of a job: it confines the program, and ends it when the engine dies.

The engine starts it with the path of a plan (JSON) as its argument and a pipe as its standard input, into which it
writes now and then. When that pipe closes, because the engine has died in whatever way, or nothing arrives for some
time, because the engine has stopped working, everything here is killed. The lock of the plan is held until then. With
`isolate`, the program has its own namespaces for files, processes, network, IPC and host name: it sees only the files
of the plan, no other process and no network apart from what the engine serves, and nothing that it started outlives it.
A program of this project that the plan calls online uses the network of this computer.
As root it also has a separate user; otherwise a user namespace is used. Without `isolate`, there are only the limits
and the process group. With `disk`, the folders that the program writes are on a disk of its own, see
training.engine.disk: then the program gets `grace` seconds after SIGTERM, and what must survive is copied.

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
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NoReturn

from training.engine.calls import deny

if TYPE_CHECKING:
    from training.engine.disk import Disk

UNKEPT: Final = 124  # exit status if the program ended well, and its output could not be kept
FAILED: Final = 125  # exit status if the program could not be confined; the reason is on the standard error

_NEW_MOUNT: Final = 0x00020000
_NEW_PROCESSES: Final = 0x20000000  # for the next child
_NEW_NAMESPACES: Final = _NEW_MOUNT | 0x08000000 | 0x04000000  # mount, IPC, UTS
_NEW_NETWORK: Final = 0x40000000
_NEW_USER: Final = 0x10000000
_RDONLY, _NOSUID, _NODEV, _NOEXEC, _REMOUNT, _BIND, _REC, _PRIVATE = 1, 2, 4, 8, 32, 4096, 16384, 1 << 18
_KEPT: Final = {1: 1, 2: 2, 4: 4, 8: 8, 1024: 1024, 2048: 2048, 4096: 1 << 21}  # ST_... of statvfs -> MS_... of mount
_DETACH: Final = 2
_SET_FLAGS, _UP = 0x8914, 1  # SIOCSIFFLAGS, IFF_UP
_PDEATHSIG, _NO_NEW_PRIVILEGES = 1, 38
_PIVOT_ROOT: Final = {"x86_64": 155, "aarch64": 41, "armv7l": 218}
_COUNTED_DEVICES: Final = ("null", "random", "urandom")
_DEVICES: Final = ("zero", *_COUNTED_DEVICES)  # a shared mapping of /dev/zero is memory without a limit
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
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])  # until somebody watches
    disk, saver = None, 0
    try:
        if plan["group"] is not None:
            Path(plan["group"]).write_text(str(os.getpid()))
        if plan["isolate"]:
            _enter_namespaces(online=plan["online"])
            if plan["disk"] is not None:
                disk, saver = _open_disk(plan)
            _call("unshare", _NEW_PROCESSES)  # not before: the program must not see the process that saves
        child = os.fork()
        if not child:
            _run_first(plan)
        if plan["network"] is not None:
            os.close(plan["network"])
        _Watch(child, plan, disk, saver).run()
    except OSError as error:
        _fail(f"{error.strerror}: {error.filename}" if error.filename else str(error))


def _open_disk(plan: Mapping[str, Any]) -> tuple[Disk, int]:
    from training.engine.disk import Disk, start_saving  # nodes of a cluster do not need it

    disk = Disk.of(plan["disk"])
    _mount(None, "/", None, _REC | _PRIVATE)
    _mount("tmpfs", str(disk.at), "tmpfs", _NOSUID | _NODEV, disk.options)
    disk.fill()
    return disk, start_saving(disk, plan["disk"]["seconds"])


class _Watch:
    """Waits until the child ends, or the engine dies or falls silent: then everything is killed."""

    def __init__(self, child: int, plan: Mapping[str, Any], disk: Disk | None, saver: int) -> None:
        self._child, self._ended = child, os.pidfd_open(child)
        self._silence, self._grace = plan["silence"], plan.get("grace", 0.0)
        self._disk, self._saver = disk, saver

    def run(self) -> NoReturn:
        engine, (wake, waking) = sys.stdin.fileno(), os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._disk is not None:
            signal.set_wakeup_fd(waking)
            signal.signal(signal.SIGTERM, lambda number, frame: None)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        kill_at = None
        while True:
            wait = self._silence if kill_at is None else max(0.0, min(self._silence, kill_at - time.monotonic()))
            ready, _, _ = select.select([self._ended, engine, wake], [], [], wait)
            if self._ended in ready:
                status = _status(os.waitpid(self._child, 0)[1])
                os._exit(self._saved(status, interrupted=kill_at is not None))
            if wake in ready:
                os.read(wake, 4096)
                kill_at = kill_at or time.monotonic() + self._grace
            elif kill_at is not None and time.monotonic() >= kill_at:
                self._kill()
                os._exit(self._saved(128 + signal.SIGKILL, interrupted=True))
            elif engine not in ready or not os.read(engine, 4096):
                self._kill()
                self._saved(128 + signal.SIGKILL, interrupted=True)
                os.killpg(0, signal.SIGKILL)

    def _kill(self) -> None:
        signal.pidfd_send_signal(self._ended, signal.SIGKILL)  # the first process of the namespace takes all others
        os.waitpid(self._child, 0)  # hold the lock until they have ended

    def _saved(self, status: int, *, interrupted: bool) -> int:
        """Copy what must survive from the disk of the program, which has ended; return the status to exit with."""
        if self._disk is None:
            return status
        os.kill(self._saver, signal.SIGKILL)
        os.waitpid(self._saver, 0)
        try:
            if interrupted:
                self._disk.save(self._disk.checkpoints)
            if status == 0:
                self._disk.save(self._disk.output)
        except OSError as error:
            what = "checkpoints" if interrupted and status else "output"
            _say(f"ERROR: the {what} of the program cannot be kept: {error.strerror}")
            return status or UNKEPT
        return status


def _run_first(plan: Mapping[str, Any]) -> NoReturn:
    """Be the first process of the namespace: start the program and reap its orphans until it ends."""
    try:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
        if not plan["isolate"]:
            _execute(plan)
        _call("prctl", _PDEATHSIG, signal.SIGKILL, 0, 0, 0)
        if plan["network"] is not None:
            _listen(plan["network"], *plan["cloud"])
        _call("unshare", _NEW_MOUNT)  # the process around this one keeps its files
        _enter_root(plan)
        program = os.fork()
        if not program:
            _give_up_privileges(plan["user"])
            if lacking := deny(uncounted=plan["uncounted"]):
                if not plan["uncounted"]:
                    raise OSError(0, f"system calls that use memory which nothing counts cannot be filtered: {lacking}")
                _say(f"WARNING: system calls are not filtered: {lacking}")
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
    _say(f"ERROR: the program cannot be confined: {reason}")
    os._exit(FAILED)


def _say(line: str) -> None:
    os.write(2, f"{line}\n".encode("utf-8", "replace"))


# ---- namespaces


def _enter_namespaces(*, online: bool) -> None:
    """Leave the namespaces of the engine, except for that of processes, and that of the network if `online`."""
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
    places = {Path(path): _place(plan, Path(path)) for path in plan["writable"]}
    if plan["user"] is not None:
        for folder in places.values():
            _own(folder, plan["user"])
    _mount(None, "/", None, _REC | _PRIVATE)
    _mount("tmpfs", str(root), "tmpfs", _NOSUID | _NODEV, "size=1m,mode=755")
    temporary = places[Path(plan["temporary"])]  # first: other paths of the plan may be below these
    for at in ("/tmp", "/dev/shm"):
        _show(root, temporary, writable=True, at=Path(at))
    for path in (*map(Path, _SYSTEM), *map(Path, plan["readable"])):
        _show(root, path, writable=False)
    for path, place in places.items():
        _show(root, place, writable=True, at=path)
    for name in _DEVICES if plan["uncounted"] else _COUNTED_DEVICES:
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


def _place(plan: Mapping[str, Any], path: Path) -> Path:
    """Return where a folder of the program is: on its disk, if it has one."""
    return Path(plan["disk"]["at"], path.name) if plan["disk"] is not None else path


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
    from support.foreign import folder_entries  # nodes of a cluster do not have it, and do not need it

    os.chown(folder, user, user, follow_symlinks=False)
    for entry in folder_entries(folder):
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
