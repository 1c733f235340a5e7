"""A Python interpreter that has imported what programs need, and forks for each of them.

Starting one anew takes seconds on an emulated processor, nearly all of it for imports. What is forked is a process like
any other: a session, an account, a folder, an environment and descriptors of its own, orphaned at once so that the
command agent, which asked for it, is its parent. The file stands alone: it is copied into the guest's image.

Standard input is a socket of packets. One request in each, with the descriptors of pipes; `imports` names modules that
are imported here, `module` is run by the child as `python3 -m` does.
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
HIGH = 64  # descriptors from here on are out of the way
SET_DUMPABLE = 4  # PR_SET_DUMPABLE of linux/prctl.h


def import_all(names: list[str]) -> list[str]:
    """Import what is not there yet; the names of those that cannot be."""
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
    """Twice os.fork: 0 in the grandchild, here its number, once it has a new parent."""
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
    """Take over everything that a process has from the program that starts it."""
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
        ctypes.CDLL(None).prctl(SET_DUMPABLE, 1, 0, 0, 0)  # as after exec: its files in /proc are its own
    os.chdir(request["cwd"])
    os.environ.clear()
    os.environ.update(request["env"])
    sys.path[0:1] = [request["cwd"], *filter(None, request["env"].get("PYTHONPATH", "").split(":"))]
    sys.argv = [request["module"], *request["arguments"]]
    importlib.invalidate_caches()


def main() -> str:
    """Serve until nobody asks any more. In a child it returns the module to be run."""
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
