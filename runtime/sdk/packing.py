"""Packs a module's folder as an archive for the registry and for machines."""

from __future__ import annotations

import gzip
import io
import os
import tarfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from fnmatch import fnmatch
from pathlib import Path
from typing import Final

from runtime.sdk.meta import FILE, Meta, check_folder, parse_meta
from schema import ConfigError, ConfigErrors, ErrorKind, MachineError
from support.foreign import walk

NEVER: Final = (".*", "__pycache__", "*.pyc", "artifacts", "dist", "node_modules", "venv", "*.tar.gz", "*.tgz")
"""Name patterns of files and folders to exclude: build products and files that are specific to a computer."""

EPOCH: Final = 315532800  # 1980-01-01, the time of all members, so that the same content results in the same archive


def read_folder(folder: Path) -> tuple[Meta, tuple[ConfigError, ...]]:
    """Return the meta.json of a module's folder, and warnings.

    Raises MachineError (NOT_FOUND) if it cannot be read, and ConfigErrors with all mistakes in it and all programs that
    are missing or not executable.
    """
    try:
        data = (folder / FILE).read_bytes()
    except OSError as error:
        raise MachineError(
            f"{folder / FILE} cannot be read: {error.strerror}",
            kind=ErrorKind.NOT_FOUND,
            remedy="use the folder of a module; `machine module new NAME` creates one",
        ) from error
    meta, report = parse_meta(data)
    problems = report.problems or ([] if meta is None else check_folder(folder, meta))
    if meta is None or problems:
        raise ConfigErrors(
            [
                ConfigError(f"{FILE}: {problem.path}".rstrip(": "), problem.reason, remedy=problem.remedy)
                for problem in problems
            ]
        )
    return meta, tuple(report.warnings)


def members(folder: Path, exclude: Iterable[str] = ()) -> Iterator[Path]:
    """Yield the files and links of the folder to archive, as sorted paths relative to it."""
    patterns = (*NEVER, *exclude)
    for directory, folders, files in walk(folder):
        kept = sorted(name for name in folders if not _matches(name, patterns))
        links = [name for name in kept if (directory / name).is_symlink()]
        folders[:] = [name for name in kept if name not in links]
        for name in sorted([*links, *files]):
            if not _matches(name, patterns):
                yield (directory / name).relative_to(folder)


def _matches(name: str, patterns: Iterable[str]) -> bool:
    return any(fnmatch(name, pattern) for pattern in patterns)


def pack(folder: Path, archive: Path, exclude: Iterable[str] = ()) -> tuple[Meta, int]:
    """Write the archive of a module's folder atomically; returns its meta.json and the number of files.

    The same files result in the same bytes. Raises like `read_folder`, and MachineError if a link leads out of the
    folder, a program is excluded, or the archive cannot be written.
    """
    meta, _ = read_folder(folder)
    names = list(members(folder, exclude))
    for key in ("entrypoint", "first_run"):
        if (name := getattr(meta, key)) and Path(name) not in names:
            raise ConfigError(
                f"{FILE}: {key}",
                f"{name} is excluded from the archive",
                remedy=f"use a name that matches none of {', '.join(NEVER)}",
            )
    part = archive.with_name(archive.name + ".part")
    try:
        archive.parent.mkdir(parents=True, exist_ok=True)
        with part.open("wb") as file, gzip.GzipFile("", "wb", fileobj=file, mtime=EPOCH) as packed:
            with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
                for name in names:
                    _add(tar, folder, name)
        part.replace(archive)
    except OSError as error:
        raise MachineError(f"{archive} cannot be written: {error.strerror}", kind=ErrorKind.PRECONDITION) from error
    finally:
        with suppress(OSError):
            part.unlink()
    return meta, len(names)


def _add(tar: tarfile.TarFile, folder: Path, name: Path) -> None:
    path = folder / name
    member = tarfile.TarInfo(name.as_posix())
    member.mtime = EPOCH
    if path.is_symlink():
        if not path.resolve().is_relative_to(folder.resolve()) or os.path.isabs(os.readlink(path)):
            raise MachineError(
                f"{name} is a link that leads out of the module",
                kind=ErrorKind.INVALID,
                remedy="replace the link with a copy of its target",
            )
        member.type, member.linkname = tarfile.SYMTYPE, os.readlink(path)
        tar.addfile(member)
        return
    data = path.read_bytes()
    member.size, member.mode = len(data), 0o755 if os.access(path, os.X_OK) else 0o644
    tar.addfile(member, io.BytesIO(data))
