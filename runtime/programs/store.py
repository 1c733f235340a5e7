"""Packages on disk. Functions block: call them in a worker.

The folder `packages` in machine-server's home has a folder for each type. There each package has a file `NAME.json`,
which records the active version, and a folder for each content: `NAME-<16 digits of its SHA-256>`. The file is written
last, so the content that it names is completely downloaded, verified and unpacked. `part` holds incomplete downloads.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runtime.engine.home import home
from runtime.programs import archive
from runtime.programs.archive import MARKER, folder_of
from runtime.programs.configured import MODULE, Key
from uplink.download import PARTS, part_of

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
    part = path.with_name(f".{path.name}.part")
    os.sync()
    with part.open("w") as file:
        json.dump({"named": record.named, "version": record.version, "sha256": record.sha256}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def unpacked(root: Path, key: Key, sha256: str, stopped: Callable[[], bool]) -> Path:
    """Unpack a complete download, if not done yet; returns its folder. Raises MachineError and archive.Stopped."""
    target = folder(root, key, sha256)
    if target.is_dir():
        return target
    part = part_of(root, sha256)
    if key[0] == MODULE:
        archive.prepare(part, root / key[0], key[1], stopped)
        return target
    target.parent.mkdir(mode=0o750, parents=True, exist_ok=True)
    unfinished = target.with_name(f"{target.name}.unpacking")
    shutil.rmtree(unfinished, ignore_errors=True)
    try:
        archive.unpack(part, unfinished, stopped)
        unfinished.replace(target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
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
                shutil.rmtree(entry, ignore_errors=True)
                removed.append(entry.name)
            else:
                entry.unlink(missing_ok=True)
    for entry in (root / PARTS).glob("*"):
        if entry.name not in parts:
            entry.unlink(missing_ok=True)
    return removed
