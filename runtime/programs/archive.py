"""Module archives: a `.tgz` with a `meta.json`, unpacked once per content. Functions block: call them in a worker.

Archives are not trusted: no member may be or lead outside the archive's folder or be a device, and sizes are limited.
An archive is unpacked next to its final folder, which is renamed into place when everything is written to disk. So an
existing folder is always complete, even after a power failure.
"""

from __future__ import annotations

import json
import lzma
import os
import shutil
import stat
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path, PurePosixPath
from typing import Final

from runtime.programs.command import Program
from schema.errors import ErrorKind, MachineError
from uplink.download import Stopped, digest_of

META: Final = "meta.json"
MAX_MEMBERS: Final = 200_000  # a Python environment with packages has about 20,000
MAX_BYTES: Final = 8 * 1024**3  # unpacked; a module with neural network libraries has about 4 GiB
MAX_HEADER: Final = 64 * 1024  # bytes of an extended header; a path has at most 4,096
_EXTENDED: Final = frozenset(
    {
        tarfile.XHDTYPE,
        tarfile.XGLTYPE,
        tarfile.SOLARIS_XHDTYPE,
        tarfile.GNUTYPE_LONGNAME,
        tarfile.GNUTYPE_LONGLINK,
    }
)
_PIECE: Final = 1024 * 1024
_DIGITS: Final = 16  # hexadecimal digits of the digest in the folder's name: 64 bits
_UNFINISHED: Final = ".unpacking"
_REMOVED: Final = ".removed"  # not part of the name of another module: module names have no dots
MARKER: Final = ".first_run_succeeded"  # suffix of a file next to the folder; part of the protocol


class _Member(tarfile.TarInfo):
    """A member that rejects too large extended headers; tarfile would read them whole before returning the member."""

    def _proc_member(self, tar: tarfile.TarFile) -> tarfile.TarInfo:
        if self.type in _EXTENDED and self.size > MAX_HEADER:
            raise tarfile.ReadError(f"an extended header has {self.size} bytes, more than {MAX_HEADER}")
        member: tarfile.TarInfo = super()._proc_member(tar)  # type: ignore[misc]
        return member


def folder_of(packages: Path, name: str, digest: str) -> Path:
    """Return the folder for the archive of a module with this digest."""
    return packages / f"{name}-{digest[:_DIGITS]}"


def marker_of(folder: Path) -> Path:
    """Return the path of the file that marks that the first_run program of `folder` has succeeded."""
    return folder.with_name(folder.name + MARKER)


def prepare(archive: Path, packages: Path, name: str, stopped: Callable[[], bool] = lambda: False) -> Program:
    """Unpack an archive unless its content is already unpacked, and return the program in its meta.json.

    Raises MachineError, which names the archive and member, if it is not an archive, is unsafe or has no entrypoint;
    raises Stopped soon after `stopped` has become true. In both cases unpacked files are removed.
    """
    folder = folder_of(packages, name, digest_of(archive, stopped))
    if not folder.is_dir():
        packages.mkdir(mode=0o750, parents=True, exist_ok=True)
        unfinished = folder.with_name(folder.name + _UNFINISHED)
        shutil.rmtree(unfinished, ignore_errors=True)
        try:
            unpack(archive, unfinished, stopped)
            read_meta(archive, unfinished)
            os.replace(unfinished, folder)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return read_meta(archive, folder)


def remove_others(packages: Path, name: str, keep: Path | None) -> None:
    """Remove the folders of a module's other archives, or of all its archives if `keep` is None."""
    if not packages.is_dir():
        return
    for entry in packages.iterdir():
        stem = entry.name.removesuffix(MARKER).removesuffix(_UNFINISHED)
        digest = stem.removeprefix(f"{name}-")
        if stem == name or len(digest) != _DIGITS or digest == stem or not set(digest) <= set("0123456789abcdef"):
            continue
        if keep is not None and entry in (keep, marker_of(keep)):
            continue
        if entry.is_dir() and not entry.is_symlink():
            shutil.rmtree(entry, ignore_errors=True)
        else:
            entry.unlink(missing_ok=True)


def unpack(archive: Path, folder: Path, stopped: Callable[[], bool] = lambda: False) -> None:
    """Unpack into a new folder; everything is written to disk when this returns.

    Links are created last, so that nothing is written through them.
    """
    links: list[tuple[tarfile.TarInfo, Path]] = []
    try:
        with tarfile.open(archive, "r:*", tarinfo=_Member) as tar:
            folder.mkdir(mode=0o750, parents=True)
            count = size = 0
            for member in tar:
                _check(stopped)
                count, size = count + 1, size + member.size
                if count > MAX_MEMBERS or size > MAX_BYTES:
                    raise _unsafe(archive, member.name, "exceeds the maximum number or size of an archive's members")
                target = folder / _path_inside(archive, member.name)
                if member.isdir():
                    target.mkdir(mode=0o755, parents=True, exist_ok=True)
                elif member.isreg():
                    _write(tar, member, target, stopped)
                elif member.issym() or member.islnk():
                    links.append((member, target))
                else:
                    raise _unsafe(archive, member.name, "is neither a file nor a folder nor a link")
            while tar.fileobj.read(_PIECE):
                _check(stopped)  # read to the end, where the checksum is
            for member, target in links:
                if member.islnk():
                    _hard_link(archive, member, target, folder)
            for member, target in links:
                if member.issym():
                    _symbolic_link(archive, member, target, folder)
            _verify(archive, folder, [target for member, target in links if member.issym()])
        os.sync()  # once for all files: fsync for each of thousands takes minutes on a memory card
    except (tarfile.TarError, EOFError, OSError, ValueError, zlib.error, lzma.LZMAError) as error:
        raise MachineError(f"{archive} cannot be unpacked: {error}", kind=ErrorKind.PRECONDITION) from error


def read_meta(archive: Path, folder: Path) -> Program:
    """Return the entrypoint and the first_run program in meta.json; both must be executable and inside the folder."""
    try:
        meta = json.loads((folder / META).read_bytes())
    except FileNotFoundError:
        raise _unusable(archive, f"has no {META}", 'add one: {"entrypoint": "run.sh"}') from None
    except (OSError, ValueError, RecursionError) as error:
        raise _unusable(archive, f"has a {META} that cannot be read: {error}", "write it as JSON") from None
    if not isinstance(meta, dict) or not isinstance(meta.get("entrypoint"), str) or not meta["entrypoint"]:
        raise _unusable(archive, f"has a {META} without entrypoint", 'name the program: {"entrypoint": "run.sh"}')
    first_run = meta.get("first_run") or ""
    if not isinstance(first_run, str):
        raise _unusable(
            archive, f"has a {META} whose first_run is not a string", "use the path of a program in the archive"
        )
    entrypoint = _program(archive, folder, meta["entrypoint"], "entrypoint")
    return Program(entrypoint, folder, _program(archive, folder, first_run, "first_run") if first_run else None)


def _program(archive: Path, folder: Path, name: str, key: str) -> Path:
    path = folder / _path_inside(archive, name)
    if not path.resolve().is_relative_to(folder.resolve()) or not path.is_file():
        raise _unusable(archive, f"does not contain its {key} {name!r}", f"correct {key} in {META}")
    if not os.access(path, os.X_OK):
        raise _unusable(archive, f"contains its {key} {name!r}, which is not executable", f"chmod +x {name}")
    return path


def _path_inside(archive: Path, name: str) -> PurePosixPath:
    """Return a member's path; raises MachineError if it leads out of the folder."""
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or "\0" in name:
        raise _unsafe(archive, name, "leads out of the archive's folder")
    return path


def _write(tar: tarfile.TarFile, member: tarfile.TarInfo, target: Path, stopped: Callable[[], bool]) -> None:
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    target.unlink(missing_ok=True)  # if a member is repeated, the last one counts
    source = tar.extractfile(member)
    assert source is not None
    with source, target.open("xb") as file:
        while piece := source.read(_PIECE):
            _check(stopped)
            file.write(piece)
    target.chmod(0o755 if member.mode & stat.S_IXUSR else 0o644)


def _hard_link(archive: Path, member: tarfile.TarInfo, target: Path, folder: Path) -> None:
    source = folder / _path_inside(archive, member.linkname)
    if not source.is_file():
        raise _unsafe(archive, member.name, f"is a link to {member.linkname!r}, which is not a file in the archive")
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    os.link(source, target)


def _symbolic_link(archive: Path, member: tarfile.TarInfo, target: Path, folder: Path) -> None:
    if PurePosixPath(member.linkname).is_absolute() or not target.parent.resolve().is_relative_to(folder.resolve()):
        raise _unsafe(archive, member.name, f"is a link to {member.linkname!r}, out of the archive's folder")
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    target.symlink_to(member.linkname)


def _verify(archive: Path, folder: Path, links: list[Path]) -> None:
    """Raise MachineError if a symbolic link leads out of the folder, directly or through other links."""
    root = folder.resolve()
    for link in links:
        try:
            inside = link.resolve().is_relative_to(root)
        except RuntimeError:  # links that form a cycle lead nowhere
            inside = True
        if not inside:
            raise _unsafe(archive, str(link.relative_to(folder)), "is a link out of the archive's folder")


def _check(stopped: Callable[[], bool]) -> None:
    if stopped():
        raise Stopped


def _unsafe(archive: Path, member: str, reason: str) -> MachineError:
    return MachineError(
        f"{archive} is not unpacked: {member!r} {reason}",
        kind=ErrorKind.PRECONDITION,
        remedy="build the archive with only folders, regular files, and links within the archive",
    )


def _unusable(archive: Path, reason: str, remedy: str) -> MachineError:
    return MachineError(f"{archive} {reason}", kind=ErrorKind.PRECONDITION, remedy=remedy)


def remove_tree(folder: Path) -> None:
    """Remove a folder and its contents as far as permitted, without following links."""
    if folder.is_symlink():
        folder.unlink()
    else:
        shutil.rmtree(folder, ignore_errors=True)


def rename_for_removal(folder: Path) -> None:
    """Rename a folder, if it exists, to a free name, which `remove_renamed` recognizes."""
    if not folder.is_dir() or folder.is_symlink():
        return
    number, target = 1, folder.with_name(f"{folder.name}{_REMOVED}")
    while os.path.lexists(target):
        number += 1
        target = folder.with_name(f"{folder.name}{_REMOVED}-{number}")
    folder.rename(target)


def remove_renamed(folder: Path) -> None:
    """Remove what `rename_for_removal` has renamed, including the remains of interrupted removals."""
    for renamed in folder.parent.glob(f"{folder.name}{_REMOVED}*"):
        remove_tree(renamed)
