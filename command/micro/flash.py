"""`machine micro flash`: the files of a board, which the program mpremote copies."""

from __future__ import annotations

import hashlib
import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from command.micro.package import UPDATE_KEY, sources
from micro.update.slots import Record, encode
from schema import ErrorKind, MachineError

_UPDATE: Final = ("__init__", "boot", "image", "signature", "slots", "store", "updater")
BOOT: Final = ("__init__", *(f"update/{name}" for name in _UPDATE))
"""Modules of the first program, which chooses the slot and is not updated."""

MAIN: Final = """import sys

sys.path.insert(0, "/boot")
from micro.update.boot import boot

boot("", "micro.hosts.device", "machine.json", "")
"""
CONFIG: Final = "machine.json"


def lay_out(folder: Path, config: bytes, update_key: bytes | None, sequence: int) -> None:
    """Write the files of a device, whose program in slot a has the number `sequence`, into a folder."""
    files = sources()
    record = encode(Record(highest=sequence), 0, lambda data: hashlib.sha256(data).digest())
    contents = {
        **{f"slot-a/{name}": data for name, data in files.items()},
        **{f"boot/micro/{name}.py": files[f"micro/{name}.py"] for name in BOOT},
        "record-0": record,
        "main.py": MAIN.encode(),
        CONFIG: config,
        **({} if update_key is None else {UPDATE_KEY: update_key}),
    }
    for name, data in contents.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)


def flash(device: str, config: Path, update_key: Path | None, sequence: int) -> None:
    """Copy the files to a board and restart it. MachineError."""
    program = shutil.which("mpremote")
    if program is None:
        raise MachineError(
            "the program mpremote is not installed",
            kind=ErrorKind.UNAVAILABLE,
            remedy="pip install mpremote, or apt-get install micropython-mpremote on Debian 13",
        )
    key = None if update_key is None else update_key.read_bytes()
    with TemporaryDirectory() as name:
        folder = Path(name)
        lay_out(folder, config.read_bytes(), key, sequence)
        top = sorted(str(path) for path in folder.iterdir())
        for words in (["fs", "cp", "-r", *top, ":"], ["reset"]):
            done = subprocess.run([program, "connect", device, *words], check=False)
            if done.returncode:
                raise MachineError(
                    f"mpremote {words[0]} ended with {done.returncode}",
                    kind=ErrorKind.UNAVAILABLE,
                    remedy=f"check that {device} is a board with MicroPython, and that no other program uses it",
                )
