"""Packages on disk. Functions that are not async block: call them in a worker.

The folder `packages` in machine-server's home has a folder for each type. There each package has a file `NAME.json`,
which records the active version, and a folder for each content: `NAME-<16 digits of its SHA-256>`. The file is written
last, so the content that it names is completely downloaded, verified and unpacked. `part` holds incomplete downloads.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from engine import home
from runtime.programs import archive
from runtime.programs.archive import MARKER, folder_of
from runtime.programs.configured import MODULE, Key
from support import Worker
from support.files import replace_file
from uplink import PARTS, part_of

FOLDER: Final = "packages"


@dataclass(frozen=True, slots=True)
class Installed:
    """The active version of a package."""

    named: str  # its name in the entry
    version: str
    sha256: str


def root_of(environment: Mapping[str, str]) -> Path:
    """Return the folder of all packages."""
    return home(environment) / FOLDER


def folder(root: Path, key: Key, sha256: str) -> Path:
    """Return the folder of a content of a package."""
    return folder_of(root / key[0], key[1], sha256)


def records(root: Path) -> dict[Key, Installed]:
    """Return the active versions on disk; unreadable records are ignored."""
    installed: dict[Key, Installed] = {}
    for path in root.glob("*/*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            record = Installed(**json.loads(path.read_bytes()))
            key = path.parent.name, path.stem
            if folder(root, key, record.sha256).is_dir():
                installed[key] = record
    return installed


def activate(root: Path, key: Key, record: Installed) -> None:
    """Make a version active; its content is flushed to disk before the record is written."""
    path = root / key[0] / f"{key[1]}.json"
    os.sync()
    replace_file(path, json.dumps({"named": record.named, "version": record.version, "sha256": record.sha256}).encode())


async def unpacked(root: Path, key: Key, sha256: str, worker: Worker) -> Path:
    """Unpack a complete download, if not done yet; return its folder. Raises MachineError. `worker` must be open."""
    target = folder(root, key, sha256)
    if not await worker.run(target.is_dir):
        await archive.unpack(part_of(root, sha256), target, worker, module=key[0] == MODULE)
    return target


def tidy(root: Path, kept: Collection[tuple[Key, str]], parts: Collection[str]) -> list[str]:
    """Remove all contents, records and downloads except the given ones; returns the names of removed folders."""
    folders = {folder(root, key, sha256) for key, sha256 in kept}
    record_files = {root / key[0] / f"{key[1]}.json" for key, _ in kept}
    removed: list[str] = []
    for entry in [path for path in root.glob("*/*") if path.parent.name != PARTS]:
        if entry.suffix == ".json":
            if entry not in record_files:
                entry.unlink(missing_ok=True)
        elif entry.with_name(entry.name.removesuffix(MARKER).removesuffix(".unpacking")) not in folders:
            if entry.is_dir() and not entry.is_symlink():
                removed.append(entry.name)
            archive.remove_tree(entry)
    for entry in (root / PARTS).glob("*"):
        if entry.name not in parts:
            entry.unlink(missing_ok=True)
    return removed
