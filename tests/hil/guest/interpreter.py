"""A warm Python interpreter that has imported common modules and forks for each program.

Starting a new interpreter takes seconds on an emulated processor, almost all of it for imports. A forked program is a
process like any other: it has a session, an account, a folder, an environment and descriptors of its own, and is
orphaned at once so that the command agent, which requested it, is its parent. This file has no dependencies: it is
copied into the guest's image.

Standard input is a socket of packets, with one request in each and the descriptors of pipes; `imports` lists modules
to import here, `module` is run by the child as `python3 -m` does.
"""

from __future__ import annotations

import ctypes
import fcntl
import gc
import importlib
import json
import os
import runpy
import socket
import sys
from typing import Any

LONGEST = 1 << 17  # bytes of a request
HIGH = 64  # descriptors from here on do not conflict with those of programs
SET_DUMPABLE = 4  # PR_SET_DUMPABLE of linux/prctl.h


def import_all(names: list[str]) -> list[str]:
    """Import missing modules; return the names of those that cannot be imported."""
    missing = [name for name in names if name not in sys.modules]
    failed = []
    importlib.invalidate_caches()
    for name in missing:
        try:
            importlib.import_module(name)
        except ImportError:
            failed.append(name)
    if missing:
        gc.collect()
        gc.freeze()  # children share the memory
    return failed


def fork_orphan() -> int:
    """Call os.fork twice; return 0 in the grandchild, and here its process id, once it has its new parent."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        number = os.fork()
        if number:
            os.write(writing, str(number).encode())
            os._exit(0)
        os.close(reading)
        os.close(writing)
        return 0
    os.close(writing)
    os.waitpid(child, 0)
    number = int(os.read(reading, 32))
    os.close(reading)
    return number


def become(request: dict[str, Any], pipes: list[int]) -> None:
    """Set everything that a process inherits from the program that starts it."""
    os.setsid()
    high = [fcntl.fcntl(pipe, fcntl.F_DUPFD, HIGH) for pipe in pipes]
    for target, which in enumerate(request["descriptors"]):
        os.dup2(high[which], target)
    os.closerange(len(request["descriptors"]), max(high) + 1)
    if request["user"]:
        number, group, groups = request["user"]
        os.setgroups(groups)
        os.setgid(group)
        os.setuid(number)
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 1, 0, 0, 0)  # as after exec: the process owns its files in /proc
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0:1] = [request["cwd"], *filter(None, request["env"].get("PYTHONPATH", "").split(":"))]
    sys.argv = [request["module"], *request["arguments"]]
    importlib.invalidate_caches()


def main() -> str:
    """Serve until standard input is closed. In a child, return the module to run."""
    channel = socket.socket(fileno=0)
    while True:
        data, pipes, _, _ = socket.recv_fds(channel, LONGEST, 3)
        if not data:
            sys.exit()
        request = json.loads(data)
        answer: dict[str, Any] = {"failed": import_all(request["imports"])}
        if "module" in request:
            answer["pid"] = fork_orphan()
            if answer["pid"] == 0:
                channel.detach()
                become(request, pipes)
                return str(request["module"])
        for pipe in pipes:
            os.close(pipe)
        channel.send(json.dumps(answer).encode())


if __name__ == "__main__":
    runpy.run_module(main(), run_name="__main__", alter_sys=True)
