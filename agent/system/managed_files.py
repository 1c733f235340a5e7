"""Plan for the files that machine-agent writes outside its own folder, and the manifest that names them. Pure.

The manifest names a file before it is written, with the hashes of both its old and its new text. Thus, whenever the
power fails, each own file on the disk is in the manifest, and each file in the manifest whose text has another hash was
changed by the user. Paths are relative to a root folder.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import msgspec

from schema import ErrorKind, MachineError

TEMPORARY_SUFFIX: Final = ".machine-agent-part"


@dataclass(frozen=True)
class WantedFile:
    """A file that must exist. `path` is relative to the root."""

    path: str
    text: str
    mode: int = 0o644

    def __post_init__(self) -> None:
        parts_of(self.path)


@dataclass(frozen=True)
class CurrentFile:
    """What is on the disk at a path: a regular file, or something else (`sha256` is empty)."""

    sha256: str = ""
    mode: int = 0


class Manifest(msgspec.Struct, frozen=True):
    """Files and folders that machine-agent created."""

    files: dict[str, list[str]] = {}  # path: hashes of the texts that machine-agent wrote or is about to write
    folders: list[str] = []  # folders that did not exist before, outer ones first

    def is_own(self, path: str, current: CurrentFile) -> bool:
        """Return whether the file at `path` has a text of machine-agent."""
        return current.sha256 != "" and current.sha256 in self.files.get(path, ())


@dataclass(frozen=True)
class FilePlan:
    """What to do with each file."""

    write: tuple[WantedFile, ...] = ()
    equal: tuple[str, ...] = ()  # already as wanted
    remove: tuple[str, ...] = ()  # no longer needed, unchanged
    forget: tuple[str, ...] = ()  # no longer needed, and already removed
    problems: Mapping[str, MachineError] = field(default_factory=dict)  # left alone: the user changed or owns them


def plan_files(desired: Iterable[WantedFile], manifest: Manifest, current: Mapping[str, CurrentFile]) -> FilePlan:
    """Compare the wanted files with the manifest and the disk. `current` lacks the paths that do not exist."""
    write: list[WantedFile] = []
    equal: list[str] = []
    problems: dict[str, MachineError] = {}
    wanted_by_path = {file.path: file for file in desired}
    for path, file in wanted_by_path.items():
        existing = current.get(path)
        own = existing is not None and manifest.is_own(path, existing)
        if existing is not None and existing.sha256 == sha256(file.text) and (existing.mode == file.mode or not own):
            equal.append(path)
        elif existing is None or own:
            write.append(file)
        else:
            problems[path] = _not_overwritten(path, existing, path in manifest.files)
    remove: list[str] = []
    forget: list[str] = []
    for path in manifest.files:
        if path in wanted_by_path:
            continue
        if path not in current:
            forget.append(path)
        elif manifest.is_own(path, current[path]):
            remove.append(path)
        else:
            problems[path] = MachineError(
                f"/{path} is no longer needed, but was changed since machine-agent wrote it",
                kind=ErrorKind.PRECONDITION,
                remedy="remove the file, or rename it to keep it",
            )
    return FilePlan(tuple(write), tuple(equal), tuple(remove), tuple(forget), problems)


def sha256(text: str | bytes) -> str:
    """Return the hash of a text in hexadecimal digits."""
    return hashlib.sha256(text.encode() if isinstance(text, str) else text).hexdigest()


def parts_of(path: str) -> list[str]:
    """Split a path below the root. MachineError if it is absolute or could leave the root."""
    parts = path.split("/")
    if any(part in ("", ".", "..") or "\0" in part for part in parts):
        raise MachineError(
            f"{path!r} is not a path below the root",
            kind=ErrorKind.INVALID,
            remedy="use a relative path without '.', '..' and empty parts",
        )
    return parts


def parse_manifest(text: bytes | None) -> Manifest:
    """Decode a manifest; None is an empty one. MachineError if it is damaged."""
    if text is None:
        return Manifest()
    try:
        manifest = msgspec.json.decode(text, type=Manifest)
        for path in (*manifest.files, *manifest.folders):
            parts_of(path)
    except (msgspec.DecodeError, MachineError, RecursionError) as error:
        raise MachineError(
            f"the list of files that machine-agent wrote is damaged ({error})",
            kind=ErrorKind.PRECONDITION,
            remedy="remove the files that begin with 'Written by machine-agent', then the list",
        ) from error
    return manifest


def manifest_text(manifest: Manifest) -> bytes:
    """Encode a manifest."""
    return msgspec.json.format(msgspec.json.encode(manifest), indent=2) + b"\n"


def _not_overwritten(path: str, existing: CurrentFile, in_manifest: bool) -> MachineError:
    if not existing.sha256:
        reason = "is not a readable file, or is reached through a symbolic link"
    elif in_manifest:
        reason = "was changed since machine-agent wrote it"
    else:
        reason = "exists, but machine-agent did not write it"
    return MachineError(
        f"/{path} {reason}; it was not overwritten",
        kind=ErrorKind.PRECONDITION,
        remedy="remove it, and machine-agent writes its own file; or remove the setting from the configuration",
    )
