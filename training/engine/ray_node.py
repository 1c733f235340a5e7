"""The program around a training program on a node of a Ray cluster; the engine copies it into the shared folder.

`python ray_node.py FOLDER`: FOLDER is that of one attempt. `alive` is rewritten by the engine again and again; when it
has not changed for some time, the sandbox between this program and the training program kills everything, also if the
shared folder hangs. If `alive` says stop, or Ray sends SIGTERM, the training program gets time for a checkpoint.
`started` and `ended` are written by this program: `ended` proves that nothing of the attempt runs any more.

It uses only the standard library, and no event loop: select waits for output and for the time of the next look, because
no event says that a file on another computer has changed.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Any, Final

LOOK: Final = 1.0  # seconds between two looks at `alive`
MAX_LOG: Final = 64 * 1024 * 1024  # bytes of output that are kept; a program that prints more waits, and is ended
STOP: Final = "stop"
STOPPED: Final = 143  # exit status of a program that never started
PR_SET_CHILD_SUBREAPER: Final = 36  # prctl(2)
INHERITED: Final = ("CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES", "LD_LIBRARY_PATH")  # what Ray decides


def main(folder: Path) -> None:
    """Run the plan of an attempt."""
    plan: dict[str, Any] = json.loads((folder / "plan.json").read_text())
    if said(folder).startswith(STOP):
        end(folder, STOPPED)
        return
    adopt_orphans()
    (folder / "started").write_text(socket.gethostname())
    own = dict(plan)
    own["command"] = [sys.executable, *plan["command"][1:]]
    own["environment"] = {
        **plan["environment"],
        **{name: os.environ[name] for name in INHERITED if name in os.environ},
    }
    (folder / "node.json").write_text(json.dumps(own))
    code = f"import sys; sys.path.insert(0, {plan['code']!r}); from training.engine.sandbox import main; main()"
    command = [sys.executable, "-I", "-S", "-c", code, str(folder / "node.json")]
    around = subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, start_new_session=True
    )
    end(folder, follow(folder, around, plan["grace"]))


def follow(folder: Path, around: subprocess.Popen[bytes], grace: float) -> int:
    """Pass on output and signs of life until the program has ended; return its status."""
    assert around.stdin is not None
    assert around.stdout is not None
    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, _: asked.append(number))
    output, ended = around.stdout.fileno(), os.pidfd_open(around.pid)
    before, size, kill_at = said(folder), 0, 0.0
    look = time.monotonic()
    with (folder / "log").open("ab", buffering=0) as log:
        while around.poll() is None:
            wait = max(0.0, look - time.monotonic())
            if output >= 0 and size < MAX_LOG:
                if select.select([output, ended], [], [], wait)[0] and select.select([output], [], [], 0)[0]:
                    data = os.read(output, 65536)
                    size += len(data)
                    log.write(data)
                    output = output if data else -1
            else:
                select.select([ended], [], [], wait)
            if time.monotonic() < look:
                continue
            look = time.monotonic() + LOOK
            now = said(folder)
            if now and now != before and not now.startswith(STOP):
                before = now
                show_life(around)
            if (now.startswith(STOP) or asked) and not kill_at:
                kill_at = time.monotonic() + grace
                send(around.pid, signal.SIGTERM)
            if kill_at and time.monotonic() > kill_at:
                send(around.pid, signal.SIGKILL)
            elif kill_at:
                show_life(around)
        status = around.wait()
        end_orphans()  # which may hold the other end of the pipe open
        while size < MAX_LOG and (data := os.read(around.stdout.fileno(), 65536)):
            size += len(data)
            log.write(data)
    return status


def adopt_orphans() -> None:
    """Become the parent of processes whose parent has ended, as the training program's, so that none is missed."""
    if ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0):
        raise OSError(ctypes.get_errno(), "PR_SET_CHILD_SUBREAPER")


def end_orphans() -> None:
    """Kill what the training program has left, also in other sessions, and wait until it has ended."""
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    while True:
        for child in children.read_text().split():
            os.kill(int(child), signal.SIGKILL)
        try:
            os.wait()
        except ChildProcessError:
            return


def show_life(around: subprocess.Popen[bytes]) -> None:
    """Write to the sandbox, which waits for it."""
    assert around.stdin is not None
    try:
        os.write(around.stdin.fileno(), b".")
    except OSError:
        pass  # it has just ended


def send(group: int, number: signal.Signals) -> None:
    """Send a signal to all processes of the training program."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        pass


def said(folder: Path) -> str:
    """Return the content of `alive`, opened each time so that the file server is asked. Without the file, say stop."""
    try:
        return (folder / "alive").read_text()
    except FileNotFoundError:
        return STOP
    except OSError:
        return ""


def end(folder: Path, status: int) -> None:
    """Say that everything has ended."""
    part = folder / "ended.part"
    part.write_text(json.dumps({"status": status}))
    part.rename(folder / "ended")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
