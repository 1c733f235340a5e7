"""A training script that tries to hold more than its limits, as its arguments say. It prints what it got."""

from __future__ import annotations

import argparse
import ctypes
import errno
import mmap
import os
import socket
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("--dataset_file", default="")
parser.add_argument("--model_output_directory")
parser.add_argument("--do")
parser.add_argument("--path", default="")
settings = parser.parse_args()
output = Path(settings.model_output_directory)
PIECE = bytes(4 * 1024**2)
CONTENT = 160  # MiB, of 64
MEMORY = 700  # MiB, of 512


def fill(write: Callable[[int], object], count: int, unit: str, each: int = 1) -> None:
    """Call a function until it fails; print how often it succeeded, and why it failed."""
    reason = "nothing"
    number = 0
    try:
        while number < count:
            write(number)
            number += each
    except OSError as error:
        reason = errno.errorcode[error.errno or 0]
    print(f"{number} {unit}, then {reason}")
    (output / "model.onnx").write_bytes(b"m")


def unlinked() -> None:
    """Hold files that have no name."""
    held = []

    def write(number: int) -> None:
        path = Path("/tmp", str(number))
        held.append(path.open("wb"))
        path.unlink()
        held[-1].write(PIECE)

    try:
        fill(write, CONTENT, "MiB", 4)
    finally:
        for file in held:
            file.close()


def deep() -> None:
    """Write below more folders than a path can name."""
    os.chdir(output)
    for _ in range(400):
        os.mkdir("x" * 20)
        os.chdir("x" * 20)
    fill(lambda number: Path(str(number)).write_bytes(PIECE), CONTENT, "MiB", 4)


def nested() -> None:
    """Write a model that has more levels of folders than are copied."""
    os.chdir(output)
    for _ in range(150):
        os.mkdir("x")
        os.chdir("x")
    Path("model.onnx").touch()


def inodes() -> None:
    """Make many files below folders that a path cannot name."""
    os.chdir(output)
    for _ in range(400):
        os.mkdir("x" * 20)
        os.chdir("x" * 20)
    fill(lambda number: Path(str(number)).touch(), 2000, "files")


def folders() -> None:
    """Make many folders."""
    fill(lambda number: os.mkdir(f"/tmp/{number}"), 2000, "folders")


def links() -> None:
    """Make many names of a file."""
    Path("/tmp/file").touch()
    fill(lambda number: os.link("/tmp/file", f"/tmp/{number}"), 2000, "links")


def noaccess() -> None:
    """Write into a folder, and close it for its owner, too."""
    folder = output / "closed"
    folder.mkdir()
    here = os.open(folder, os.O_RDONLY)
    os.fchdir(here)
    try:
        fill(lambda number: Path(str(number)).write_bytes(PIECE), CONTENT, "MiB", 4)
    finally:
        folder.chmod(0)


def shared_memory() -> None:
    """Write files to /dev/shm."""
    fill(lambda number: Path(f"/dev/shm/{number}").write_bytes(PIECE), CONTENT, "MiB", 4)


def memfd() -> None:
    """Hold memory that is in no address space."""
    fill(lambda number: os.write(os.memfd_create("memory"), PIECE), MEMORY, "MiB", 4)


def shm() -> None:
    """Hold memory of System V that is attached nowhere."""
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmat.restype = ctypes.c_void_p

    def write(number: int) -> None:
        memory = libc.shmget(0, len(PIECE), 0o1600)
        if memory < 0:
            raise OSError(ctypes.get_errno(), "shmget")
        at = libc.shmat(memory, None, 0)
        ctypes.memmove(at, PIECE, len(PIECE))
        libc.shmdt(ctypes.c_void_p(at))

    fill(write, MEMORY, "MiB", 4)


def anonymous() -> None:
    """Hold shared memory without a file, of which only the first page is mapped at the end."""
    _shared(-1, mmap.MAP_SHARED | mmap.MAP_ANONYMOUS)


def zero() -> None:
    """Hold the same by a device."""
    try:
        device = os.open("/dev/zero", os.O_RDWR)
    except OSError as error:
        sys.exit(f"no device: {error.strerror}")
    _shared(device, mmap.MAP_SHARED)


def _shared(file: int, flags: int) -> None:
    held = []

    def write(number: int) -> None:
        held.append(mmap.mmap(file, len(PIECE), flags=flags))
        held[-1].write(PIECE)
        held[-1].madvise(mmap.MADV_DONTNEED)

    fill(write, MEMORY, "MiB", 4)


def on_disk() -> None:
    """Use memory and a disk that is memory, each below its limit."""
    for number in range(50):
        Path(f"/tmp/{number}").write_bytes(PIECE)
    held = bytearray(b"x") * (400 * 1024**2)
    print(len(held))
    threading.Event().wait(20)


def families() -> None:
    """Open sockets and pairs of all families; print those that exist."""
    for family in range(50):
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
            try:
                socket.socket(family, kind).close()
                print(f"family {family}")
            except OSError as error:
                if error.errno not in (errno.EAFNOSUPPORT, errno.EPERM, errno.EPROTONOSUPPORT):
                    print(f"family {family}: {error}")
    for family in (socket.AF_UNIX, 40):
        try:
            for end in socket.socketpair(family):
                end.close()
            print(f"pair {family}")
        except OSError:
            pass


def well() -> None:
    """Stay below all limits, with what is allowed, and leave many folders of which some are closed."""
    for number in range(100):
        (output / f"folder {number}" / "inner").mkdir(parents=True)
    (output / "folder 0" / "model.onnx").write_bytes(b"model")
    (output / "folder 0").chmod(0)
    (output / "latest").symlink_to("/etc/passwd")
    Path("/tmp/scratch").write_bytes(PIECE)
    Path("/dev/shm/scratch").write_bytes(PIECE)
    assert stat.S_IMODE(output.stat().st_mode) == 0o700


def checkpoints() -> None:
    """Write a checkpoint; say so; go on for ever. At the second start, print it."""
    folder = Path(os.environ["TRAINING_CHECKPOINTS"])
    if (folder / "step").exists():
        print(f"continues after {(folder / 'step').read_text()}")
        (output / "model.onnx").write_bytes(b"model")
        return
    (folder / "step.part").write_text("7")
    (folder / "step.part").rename(folder / "step")
    print("saved")
    threading.Event().wait(100)


globals()[settings.do]()
