"""Start programs of the project by a fork of a process that has imported them, instead of a new interpreter.

Most of what the end-to-end tests compute is the same imports again: 1.3 of the 1.6 processor seconds of a start of
machine-cloud. `installed` makes `subprocess.Popen` ask for a fork where the command is one of PROGRAMS. The fork runs
the program's module as `python -m` does, with its arguments, environment, working folder and descriptors, as a child of
the test's process. Only `/proc/PID/cmdline` and `/proc/PID/environ` show the difference. Everything that a fork cannot
imitate (a user, a limit, other settings of the interpreter) starts a new interpreter. `MACHINE_TESTS_FRESH` in the
environment of the tests, or of a command, makes all starts new.
"""

from __future__ import annotations

import array
import atexit
import ctypes
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NoReturn

import trio

from support.start import lean_imports

ROOT: Final = Path(__file__).resolve().parents[1]
PROGRAMS: Final = (
    "cloud.server.cli", "cloud.server.start", "command.cli", "runtime.server.cli", "runtime.server.start",
    "tests.e2e.cloud.brisk", "tests.e2e.cloud.sealing",
)  # fmt: skip
"""Modules that are run; they are not imported before."""
PACKAGES: Final = (
    "cloud.server", "cloud.web", "cloud.services", "cloud.commands", "command", "runtime.server", "runtime.parts",
    "engine", "models",
)  # fmt: skip
"""Packages of which every module is imported; none of them starts a thread, which a fork would lose."""
SCRIPTS: Final = {
    "machine": "command.cli",
    "machine-cloud": "cloud.server.start",
    "machine-server": "runtime.server.start",
}
FRESH: Final = "MACHINE_TESTS_FRESH"
KEPT: Final = ("PYTHON", "LC_", "LANG", "LD_", "MALLOC_")  # variables that an interpreter reads when it starts
SUBREAPER: Final = 36  # PR_SET_CHILD_SUBREAPER of prctl(2)
MESSAGE: Final = 1 << 20  # bytes: the largest environment and arguments


class Preloader:
    """The process that forks: started when it is first used, ends with this process."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self._libc = ctypes.CDLL(None, use_errno=True)

    def fork(self, order: dict[str, Any], descriptors: Sequence[int]) -> int:
        """Fork a child of this process that runs the program of `order`; return its process id."""
        with self._lock:
            connection = self._socket = self._socket or self._started()
            # The child's parent ends at once, so that the child falls to this process.
            self._libc.prctl(SUBREAPER, 1, 0, 0, 0)
            try:
                rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", descriptors))]
                connection.sendmsg([json.dumps({**order, "parent": os.getpid()}).encode()], rights)
                return int(connection.recv(32))
            finally:
                self._libc.prctl(SUBREAPER, 0, 0, 0, 0)

    def _started(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MESSAGE)
        with theirs:
            command = [sys.executable, "-m", "tests.preloaded", str(theirs.fileno())]
            descriptors = [theirs.fileno()]
            process = Popen(command, pass_fds=descriptors, cwd=ROOT, stdin=subprocess.DEVNULL, env=_environment)
        atexit.register(_end, ours, process)
        return ours


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.wait()


Popen: Final = subprocess.Popen
_preloader: Final = Preloader()
_environment: Final[dict[str, str]] = {}


class PreloadedPopen(subprocess.Popen[Any]):
    """`subprocess.Popen` that forks the preloader where it can."""

    def _execute_child(  # type: ignore[no-untyped-def]  # the seam of subprocess: nothing public lies below its pipes
        self, args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
        p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid, umask,
        start_new_session, process_group,
    ) -> None:  # fmt: skip
        environment = {os.fsdecode(k): os.fsdecode(v) for k, v in (os.environ if env is None else env).items()}
        plain = close_fds and restore_signals and umask == -1 and process_group == -1 and not shell
        nobody = preexec_fn is executable is gid is gids is uid is None
        folder = Path(cwd or ".").absolute()
        order = program(args, environment, folder) if plain and nobody and folder.is_dir() else None
        if order is None:
            super()._execute_child(  # type: ignore[misc]
                args, executable, preexec_fn, close_fds, pass_fds, cwd, env, startupinfo, creationflags, shell,
                p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite, restore_signals, gid, gids, uid, umask,
                start_new_session, process_group,
            )  # fmt: skip
            return
        streams = [own if fd == -1 else fd for own, fd in enumerate((p2cread, c2pwrite, errwrite))]
        order |= {"folder": str(folder), "session": start_new_session, "kept": [0, 1, 2, *pass_fds]}
        self.pid = _preloader.fork(order, [*streams, *pass_fds])
        self._child_created = True
        self._close_pipe_fds(p2cread, p2cwrite, c2pread, c2pwrite, errread, errwrite)  # type: ignore[attr-defined]


def program(args: Any, environment: Mapping[str, str], folder: Path) -> dict[str, Any] | None:
    """Return what to run for a command; None if it needs an interpreter of its own, as in a copy of the project."""
    if isinstance(args, (str, bytes, os.PathLike)) or FRESH in environment or FRESH in os.environ:
        return None
    words = [os.fsdecode(word) for word in args]
    if words[:2] == [sys.executable, "-m"] and len(words) > 2:
        module, first, rest = words[2], "", words[3:]
    elif words and Path(words[0]).parent == Path(sys.executable).parent:
        module, first, rest = SCRIPTS.get(Path(words[0]).name, ""), words[0], words[1:]
    else:
        return None
    copied = folder != ROOT and (folder / module.partition(".")[0] / "__init__.py").exists()
    if module not in PROGRAMS or copied or _read_at_start(environment) != _read_at_start(_environment):
        return None
    order = {"module": module, "first": first, "rest": rest, "environment": dict(environment)}
    return order if len(json.dumps(order)) < MESSAGE // 4 else None


def _read_at_start(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name.startswith(KEPT)}


@contextmanager
def installed() -> Iterator[None]:
    """Start PROGRAMS by forks in this context."""
    if not _environment:
        _environment.update(os.environ)
    subprocess.Popen = PreloadedPopen  # type: ignore[misc]
    try:
        yield
    finally:
        subprocess.Popen = Popen  # type: ignore[misc]


def serve(connection: socket.socket) -> dict[str, Any] | None:
    """Fork for each order; return the order in the child, and None in the preloader when the tests have ended."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(connection, MESSAGE, 250)
        if not data:
            return None
        order: dict[str, Any] = json.loads(data)
        read, write = os.pipe()
        if not (middle := os.fork()):
            if child := os.fork():
                os.write(write, str(child).encode())
                os._exit(0)
            connection.close()
            os.close(read)
            os.close(write)
            while os.getppid() != order["parent"]:  # until `middle` has ended, a few hundred microseconds
                os.sched_yield()
            return order | {"descriptors": descriptors}
        os.close(write)
        child_id = os.read(read, 32)
        os.close(read)
        os.waitpid(middle, 0)
        for descriptor in descriptors:
            os.close(descriptor)
        connection.send(child_id)


def take_over(order: dict[str, Any]) -> None:
    """Become what the command of `order` would be right after the start of its interpreter."""
    os.chdir(order["folder"])
    if order["session"]:
        os.setsid()
    above = max(*order["descriptors"], *order["kept"]) + 1
    moved = [fcntl.fcntl(descriptor, fcntl.F_DUPFD, above) for descriptor in order["descriptors"]]
    for descriptor, place in zip(moved, order["kept"], strict=True):
        os.dup2(descriptor, place, inheritable=True)
    kept = sorted(order["kept"])
    for after, following in zip(kept, [*kept[1:], os.sysconf("SC_OPEN_MAX")], strict=True):
        os.closerange(after + 1, following)
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        errors = getattr(sys, name).errors
        stream: Any = open(number, mode, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
        stream.reconfigure(line_buffering=name == "stderr" or stream.isatty())
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    os.environ.clear()
    os.environ.update(order["environment"])
    time.tzset()
    first = order["first"]
    sys.path[0] = str(Path(first).parent) if first else order["folder"]
    sys.argv[:] = [first or order["module"], *order["rest"]]
    sys.orig_argv[:] = [sys.executable, *([first] if first else ["-m", order["module"]]), *order["rest"]]


def preload() -> None:
    """Import every module of PACKAGES except programs, and compile the templates of pages."""
    with lean_imports():
        for package in PACKAGES:
            for module in pkgutil.walk_packages(importlib.import_module(package).__path__, f"{package}."):
                if module.name not in PROGRAMS and not module.name.endswith((".__main__", "_windows")):
                    importlib.import_module(module.name)
    trio.run(importlib.import_module("cloud.web.common.site").compile_pages)
    importlib.import_module("runtime.parts.web.render").compile_pages()
    assert threading.active_count() == 1, "an import has started a thread, which forks would not have"


def run(order: dict[str, Any]) -> NoReturn:
    """Run the program of `order`. An orderly end skips the destruction of all modules that are loaded."""
    try:
        if order["first"]:
            importlib.import_module(order["module"]).main()
        else:
            runpy.run_module(order["module"], run_name="__main__", alter_sys=True)
        status = 0
    except SystemExit as end:
        if not isinstance(end.code, (int, type(None))):
            raise
        status = end.code or 0
    atexit._run_exitfuncs()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(status)


def main() -> None:
    """Import what PROGRAMS use, fork until the tests end, and run a program in each child."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C in the terminal of the tests ends the tests, which ends this
    preload()
    gc.collect()
    gc.freeze()
    order = serve(socket.socket(fileno=int(sys.argv[1])))
    if order is not None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        take_over(order)
        run(order)


if __name__ == "__main__":
    main()
