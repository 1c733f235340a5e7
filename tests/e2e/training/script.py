"""A training script of a tenant, which does what its arguments say. It imports only the standard library."""

from __future__ import annotations

import argparse
import ctypes
import errno
import fcntl
import importlib
import json
import mmap
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--dataset_file", default="")
parser.add_argument("--model_output_directory")
parser.add_argument("--do", default="train")
parser.add_argument("--path", default="")
settings = parser.parse_args()
output = Path(settings.model_output_directory)
checkpoints = Path(os.environ["TRAINING_CHECKPOINTS"])


def train() -> None:
    print("training")
    print('::training {"kind":"progress","done":1,"total":1}')
    (output / "model.onnx").write_bytes(b"model")


def report() -> None:
    """Write a model with a report."""
    train()
    figures = {"pictures": 2, "accuracy": 0.5, "labels": {"ok": {"pictures": 1, "precision": 0.5, "recall": 1}}}
    text = json.dumps({"labels": ["ok"], "test": figures, "remarks": ["few pictures"]})
    (output / "report.json").write_text(text)


def argument() -> None:
    """Write an argument as it arrived."""
    (output / "argument").write_text(settings.path)


def fail() -> None:
    sys.exit("no idea how")


def memory() -> None:
    print(len(bytearray(2 * 1024**3)))


def reserve() -> None:
    """Reserve address space without using it."""
    with mmap.mmap(-1, 2 * 1024**3, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS, prot=0):
        print("reserved")


def together() -> None:
    """Use memory in several processes, each of which stays below the limit."""
    for _ in range(6):
        if not os.fork():
            content = bytearray(os.urandom(1024**2) * 150)
            time.sleep(1000)
            print(len(content))
    time.sleep(1000)


def shared() -> None:
    """Use memory that belongs to no process."""
    import mmap

    content = mmap.mmap(-1, 200 * 1024**2, flags=mmap.MAP_SHARED)
    for start in range(0, len(content), 4096):
        content[start] = 1
    print("written")


def burn() -> None:
    """Use processor time in several processes."""
    for _ in range(3):
        if not os.fork():
            break
    while True:
        pass


def processor() -> None:
    while True:
        pass


def calls() -> None:
    """Make the system calls of `path` (JSON: numbers by name) with zeros; print those that do not fail with EPERM."""
    libc = ctypes.CDLL(None, use_errno=True)
    for name, number in json.loads(settings.path).items():
        ctypes.set_errno(0)
        libc.syscall(number, *[ctypes.c_ulong(0)] * 6)
        if ctypes.get_errno() != errno.EPERM:
            print(f"{name}: {os.strerror(ctypes.get_errno())}")
    threading.Thread(target=print, args=["a thread"]).start()
    print(subprocess.run([sys.executable, "-c", "print('a process')"], capture_output=True, text=True).stdout)


def hang() -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    print("hanging")
    time.sleep(3)
    print("still")
    time.sleep(1000)


def resume() -> None:
    """Count the starts; write a checkpoint on SIGTERM, and end well at the second start."""
    count = checkpoints / "count"
    starts = int(count.read_text()) if count.exists() else 0

    def stop(*_: object) -> None:
        count.write_text(str(starts + 1))
        sys.exit(3)

    signal.signal(signal.SIGTERM, stop)
    print(f"start {starts}")
    if starts:
        (output / "model.onnx").write_bytes(b"model")
        return
    time.sleep(1000)


def count() -> None:
    """Count to `path` from the last checkpoint, and write the number as the model. Fail if another process counts."""
    running = (checkpoints / "running").open("w")
    try:
        fcntl.flock(running, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        sys.exit("TWICE")
    state, part = checkpoints / "count", checkpoints / "count.part"
    for number in range(int(state.read_text()) if state.exists() else 0, int(settings.path)):
        print(f"counting {number}")
        time.sleep(0.05)
        part.write_text(str(number + 1))
        part.rename(state)
    (output / "model.txt").write_text(state.read_text())


def daemon() -> None:
    """Leave a process of another session that would write after the end."""
    code = "import time; print('daemon', flush=True); time.sleep(1000)"
    subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    time.sleep(0.5)


def fork() -> None:
    children = 0
    while True:
        try:
            if not os.fork():
                time.sleep(1000)
            children += 1
        except OSError as error:
            print(f"{children} children, then: {error.strerror}")
            sys.exit(4)


def disk() -> None:
    for number in range(1000):
        (output / str(number)).write_bytes(bytes(4 * 1024**2))
    time.sleep(1000)


def large() -> None:
    """Write a model of 20 MiB."""
    (output / "model.onnx").write_bytes(bytes(20 * 1024**2))


def full() -> None:
    """Fail as on a full disk."""
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def requirement() -> None:
    importlib.import_module("not_installed.part")


def threads() -> None:
    while True:
        threading.Thread(target=time.sleep, args=(1000,), daemon=True).start()


def file() -> None:
    with (output / "large").open("wb") as large:
        while True:
            large.write(bytes(1024**2))


def files() -> None:
    number = 0
    while True:
        (checkpoints / str(number)).touch()
        number += 1


def flood() -> None:
    while True:
        print("x")


def endless() -> None:
    sys.stdout.write("y" * 10**7)


def link() -> None:
    (output / "model.onnx").symlink_to("/etc/passwd")


def read() -> None:
    print(f"content {Path(settings.path).read_bytes()[:40]!r}")


def write() -> None:
    Path(settings.path).write_text("written")
    print("written")


def listing() -> None:
    print(" ".join(sorted(os.listdir(settings.path))))


def connect() -> None:
    host, _, port = settings.path.rpartition(":")
    with socket.create_connection((host, int(port)), timeout=3) as connection:
        connection.sendall(b"hello")
        connection.recv(1)  # the end: what was sent is read before the program ends
    print("connected")


def dataset() -> None:
    """Read the dataset with the published SDK and the key of the job, and try to submit another job."""
    import asyncio

    from viam.app.viam_client import ViamClient
    from viam.rpc.dial import DialOptions

    async def main() -> None:
        options = DialOptions.with_api_key(os.environ["API_KEY"], os.environ["API_KEY_ID"])
        options.insecure = True
        client = await ViamClient.create_from_dial_options(options, app_url=os.environ["TRAINING_CLOUD"])
        files, _, _ = await client.data_client.binary_data_by_filter(include_binary_data=True)
        print(f"{len(files)} pictures, {len({file.binary for file in files})} different")
        try:
            await client.ml_training_client.submit_custom_training_job(settings.path, "d", "s", "1", "m", "1")
        except Exception as error:
            print(f"refused: {error}")
        client.close()

    asyncio.run(main())
    (output / "model.txt").write_text("model")


def kill() -> None:
    os.kill(int(settings.path), signal.SIGKILL)
    print("killed")


def mount() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"none", b"/tmp", b"tmpfs", 0, None):
        sys.exit(os.strerror(ctypes.get_errno()))
    print("mounted")


def root() -> None:
    os.setuid(0)
    print("root")


def chroot() -> None:
    os.chroot("/tmp")
    print("chroot")


def device() -> None:
    os.mknod("/tmp/disk", 0o60600, os.makedev(8, 0))
    print("device")


def trace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.ptrace(16, int(settings.path), 0, 0) < 0:
        sys.exit(os.strerror(ctypes.get_errno()))
    print("attached")


globals()[settings.do]()
