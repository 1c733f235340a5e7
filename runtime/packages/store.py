"""Packages on the disk. Blocks: run it in a worker.

Below `packages` in machine-server's home there is a folder for each type. In it each package has a file `NAME.json`
that says which version is in force, and a folder for each content: `NAME-<16 digits of its SHA-256>`. The file is
written last, so what it names was downloaded, checked and unpacked to its end. `part` holds downloads that are not
whole.
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

from runtime.modules import archive
from runtime.modules.archive import MARKER, folder_of
from runtime.modules.command import home
from runtime.packages.wanted import MODULE, Key
from uplink.download import PARTS, part_of

FOLDER: Final = "packages"


@dataclass(frozen=True, slots=True)
class Installed:
    """What is in force of one package."""

    named: str  # what its entry called it
    version: str
    sha256: str


def root_of(environment: Mapping[str, str]) -> Path:
    """Where packages are kept."""
    return home(environment) / FOLDER


def folder(root: Path, key: Key, sha256: str) -> Path:
    """Where a content of a package is unpacked."""
    return folder_of(root / key[0], key[1], sha256)


def records(root: Path) -> dict[Key, Installed]:
    """What is in force, as the disk says; what cannot be read there does not count."""
    found: dict[Key, Installed] = {}
    for path in root.glob("*/*.json"):
        with contextlib.suppress(OSError, ValueError, TypeError):
            record = Installed(**json.loads(path.read_bytes()))
            key = path.parent.name, path.stem
            if folder(root, key, record.sha256).is_dir():
                found[key] = record
    return found


def note(root: Path, key: Key, record: Installed) -> None:
    """From now on this is in force; the content is on the disk before the file says so."""
    path = root / key[0] / f"{key[1]}.json"
    part = path.with_name(f".{path.name}.part")
    os.sync()
    with part.open("w") as file:
        json.dump({"named": record.named, "version": record.version, "sha256": record.sha256}, file)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def unpacked(root: Path, key: Key, sha256: str, stopped: Callable[[], bool]) -> Path:
    """Unpack the whole download of this content, unless that was done; where. Raises MachineError, archive.Stopped."""
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
    """Remove every content, record and download but these; the names of the folders that went."""
    folders = {folder(root, key, sha256) for key, sha256 in kept}
    names = {root / key[0] / f"{key[1]}.json" for key, _ in kept}
    gone: list[str] = []
    for entry in [path for path in root.glob("*/*") if path.parent.name != PARTS]:
        if entry.suffix == ".json":
            if entry not in names:
                entry.unlink(missing_ok=True)
        elif entry.with_name(entry.name.removesuffix(MARKER).removesuffix(".unpacking")) not in folders:
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry, ignore_errors=True)
                gone.append(entry.name)
            else:
                entry.unlink(missing_ok=True)
    for entry in (root / PARTS).glob("*"):
        if entry.name not in parts:
            entry.unlink(missing_ok=True)
    return gone
