"""What the steps of an update do on the disk. All functions block: call them in a worker.

Each can be repeated after a power loss at any moment: files appear in their slot complete or not at all.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

import msgspec
from msgspec.structs import replace as replace_fields

from agent.launch import links
from agent.launch.command import is_program
from agent.launch.links import is_usable
from agent.layout import Layout
from agent.releases.header import check_identity, read_identity
from agent.update.record import Release, ReleaseSlots, UpdateProgress, UpdateRecord, UpdateStep
from schema import ErrorKind, MachineError
from support.files import allocate, forget_cached, is_link, read_link, replace_file, sync_folder
from support.foreign import erase
from uplink.releases import Header, normal_platform

UNPACKED: Final = 6
"""Space of an unpacked release, as a multiple of its file: Python programs that are packed with xz need 4.4."""
USUAL_SIZE: Final = 40 << 20
"""Bytes assumed of a file whose size is not known."""
RESERVE: Final = 64 << 20
"""Bytes that stay free for records, logs and what else runs on the device."""

RESERVED_FILE: Final = 1 << 20
"""Bytes of the file that is deleted when the disk is full: enough for records and links of a roll-back."""

DESCRIPTION: Final = "release.json"
"""File in the folder of a release that describes it: with it, a lost record is made again."""

_CHUNK: Final = 1 << 20

Unpack = Callable[[Path, Path], None]
"""Unpacks a release file into a folder, which exists complete or not at all; raises MachineError, or OSError."""


class WrongContentError(MachineError):
    """A downloaded file is not the release that it should be; it was deleted."""

    kind = ErrorKind.INVALID


def download_path(layout: Layout, program: str, sha256: str) -> Path:
    """Return the file into which a release is downloaded."""
    return layout.downloads / f"{program}-{sha256}"


def slots_of(record: UpdateRecord) -> frozenset[str]:
    """Return the hashes of all releases whose files are needed: those in slots, and the target of an update."""
    slots = record.slots
    releases = [slots.current, slots.previous, slots.factory]
    if record.progress is not None:
        releases.append(record.progress.target)
    return frozenset(release.sha256 for release in releases if release is not None)


def clean(layout: Layout, record: UpdateRecord, running: Collection[str] = ()) -> None:
    """Delete the files of a program that are neither in a slot nor part of the update nor `running` (hashes).

    Raises OSError.
    """
    program, needed = record.program, slots_of(record)
    for path in layout.releases(program).iterdir():
        if is_link(path) or path.name in needed or path.name in running:
            continue
        _remove(path)
    target = record.progress.target.sha256 if record.progress is not None else ""
    for path in layout.downloads.glob(f"{program}-*"):
        if path.name != download_path(layout, program, target).name:
            _remove(path)


def check_space(layout: Layout, program: str, release: Release) -> None:
    """Raise MachineError (EXHAUSTED) unless there is space for the file and the unpacked release."""
    if is_usable(layout, program, release.sha256):
        return
    size = release.size or USUAL_SIZE
    need = size * (1 + UNPACKED) + RESERVE
    try:
        need -= download_path(layout, program, release.sha256).stat().st_size
    except OSError:
        pass  # nothing of it is on the disk
    free = shutil.disk_usage(layout.root).free
    if free < need:
        raise MachineError(
            f"the disk of {layout.root} has {free >> 20} MiB free, "
            f"and version {release.version} of {program} needs {need >> 20} MiB",
            kind=ErrorKind.EXHAUSTED,
            remedy=f"free {(need - free >> 20) + 1} MiB; the update continues by itself",
        )


def reserve_space(layout: Layout) -> None:
    """Create the file whose deletion makes space for a roll-back on a full disk. Raises OSError."""
    part = layout.reserve.with_suffix(".part")
    if layout.reserve.exists():
        return
    try:
        with part.open("wb") as file:
            allocate(file.fileno(), RESERVED_FILE)
        part.replace(layout.reserve)
    except OSError:
        part.unlink(missing_ok=True)
        raise


def free_reserve(layout: Layout) -> bool:
    """Delete that file; return whether it existed. Raises OSError."""
    try:
        layout.reserve.unlink()
    except FileNotFoundError:
        return False
    return True


def is_complete(layout: Layout, program: str, release: Release) -> bool:
    """Return whether the file of a release need not be downloaded: it is staged, or as long as it should be."""
    if is_usable(layout, program, release.sha256):
        return True
    try:
        size = download_path(layout, program, release.sha256).stat().st_size
    except OSError:
        return False
    return size == release.size > 0


def verify(layout: Layout, program: str, release: Release) -> None:
    """Check size, hash and identity of a downloaded file; a staged release was verified before.

    Raises WrongContentError if the content is not that of the release, after deleting the file; MachineError (INVALID)
    if the right content is that of another program, version or platform; OSError.
    """
    if is_usable(layout, program, release.sha256):
        return
    path = download_path(layout, program, release.sha256)
    size, sha256 = _digest(path)
    if sha256 != release.sha256:
        path.unlink()
        expected = f"{release.sha256[:12]}…" + (f" of {release.size} bytes" if release.size else "")
        raise WrongContentError(
            f"the downloaded file has SHA-256 {sha256[:12]}… of {size} bytes instead of {expected}",
            remedy="if this repeats, publish the release again",
        )
    check_identity(read_identity(path), Header(program, release.version, normal_platform(release.platform)))


def stage(layout: Layout, program: str, release: Release, unpack: Unpack) -> None:
    """Unpack a verified file into its slot, and delete the file. Raises what `verify` raises, MachineError, OSError."""
    path, folder = download_path(layout, program, release.sha256), layout.release(program, release.sha256)
    if not is_usable(layout, program, release.sha256):
        part = folder.with_name(f"{folder.name}.unpacked")
        for remains in (part, folder):
            erase(remains)
        try:
            unpack(path, part)
        except MachineError as error:
            if error.kind is ErrorKind.INVALID:
                verify(layout, program, release)  # a file that was damaged since it was verified is downloaded again
            raise
        if not is_program(part / "run"):
            erase(part)
            raise MachineError(
                "the release contains no executable file `run`", kind=ErrorKind.INVALID, remedy="build it again"
            )
        replace_file(part / DESCRIPTION, msgspec.json.encode(release))
        part.replace(folder)
        sync_folder(folder.parent)
    path.unlink(missing_ok=True)


def rebuild(layout: Layout, program: str, now: float) -> UpdateRecord | None:
    """Return a record made from the releases that are linked, if the stored one is lost; None if there are none.

    A release on trial is rolled back: it may be the reason for the loss, and may still run. Quarantine and history are
    empty.
    """
    launch = links.read(layout, program)
    factory = layout.releases(program) / "factory"
    order = [
        None if launch.on_trial else launch.run,
        launch.back,
        read_link(factory) if is_link(factory) else None,
    ]
    releases = [_described(layout.release(program, sha256)) for sha256 in order if sha256 is not None]
    described = [release for release in releases if release is not None]
    if not described:
        return None
    others = [release for release in described[1:] if release.sha256 != described[0].sha256]
    record = UpdateRecord(program, ReleaseSlots(described[0], others[0] if others else None, described[-1]))
    if not launch.on_trial:
        return record
    tried = _described(layout.release(program, launch.run)) if launch.run is not None else None
    reason = "the record was lost during a trial"
    leaving = UpdateProgress(UpdateStep.ROLL_BACK, tried or record.slots.current, now, now, now, error=reason)
    return replace_fields(record, progress=leaving)


def _described(folder: Path) -> Release | None:
    try:
        release = msgspec.json.decode((folder / DESCRIPTION).read_bytes(), type=Release)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return None
    return release if release.sha256 == folder.name and is_program(folder / "run") else None


def _digest(path: Path) -> tuple[int, str]:
    digest, size = hashlib.sha256(), 0
    with open(path, "rb") as file:
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
        forget_cached(file.fileno())  # memory is scarce on small devices
    return size, digest.hexdigest()


def _remove(path: Path) -> None:
    if path.is_dir():
        # It loses its name first, so that a removal that is interrupted leaves nothing that looks like a release.
        doomed = path.with_name(f"{path.name.removesuffix('.removed')}.removed")
        if doomed != path:
            erase(doomed)
            path.replace(doomed)
        erase(doomed)
    else:
        path.unlink(missing_ok=True)
