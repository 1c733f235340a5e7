"""Unpacking by descriptors, on POSIX. Blocking.

Every folder is opened relative to the one around it, and never through a link. Links are created last, so that nothing
is written through them, and each is followed at the end as the kernel would: none leads out of the folder.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO, Final

from support.foreign.removal_at import FOLDER
from support.foreign.stream import PIECE, BadArchiveError, NoSpaceError
from support.foreign.tar import Archive, ArchiveMember, Bounds, MemberKind

MAX_FOLLOWED: Final = 40  # links in one path, as in the kernel; a longer chain leads nowhere
MAX_STEPS: Final = 2_000_000  # names that are followed to check all links
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def unpack(source: BinaryIO, folder: Path, bounds: Bounds) -> None:
    """Unpack an archive, from where `source` is, into `folder`, which is created.

    Owners and times are not kept; of the permissions, only whether the owner may execute a file. If a file is repeated,
    the last one counts.

    Raises BadArchiveError if the content exceeds a bound or is, or leads, outside of the folder; NoSpaceError; OSError.
    After an error, the caller removes the folder.
    """
    archive = Archive(source, bounds)
    os.mkdir(folder, 0o755)
    unpack_into(archive, folder, bounds)


def unpack_into(archive: Archive, folder: Path, bounds: Bounds) -> list[str]:
    """Unpack an archive as `unpack` does, into a folder that exists; return the paths of all files in it."""
    place = _Place(os.open(folder, FOLDER), bounds)
    files: list[str] = []
    links = []
    try:
        for member in archive:
            if member.kind is MemberKind.FILE:
                place.write(member, archive)
                files.append(os.fsdecode(member.name))
            elif member.kind is MemberKind.FOLDER:
                place.enter(place.path(member, member.name))
            elif member.kind is MemberKind.OTHER or not bounds.links:
                allowed = "a file nor a folder nor a link" if bounds.links else "a file nor a folder"
                raise BadArchiveError(f"{member.shown} is neither {allowed}")
            else:
                links.append(member)
        for member in links:
            if member.kind is MemberKind.HARD_LINK:
                place.hard_link(member)
        symbolic = [member for member in links if member.kind is MemberKind.SYMLINK]
        for member in symbolic:
            place.symlink(member)
        for member in symbolic:
            if place.leads_out(member):
                raise BadArchiveError(f"{member.shown} is a link out of the folder")
    finally:
        place.close()
    return files


class _Place:
    """The new folder. Closes `top`."""

    def __init__(self, top: int, bounds: Bounds) -> None:
        self._bounds = bounds
        self._open = [top]  # the folder, and those inside each other that were entered last
        self._names: list[bytes] = []  # of these, without the first
        self._made = 0
        self._steps = 0

    def close(self) -> None:
        for descriptor in self._open:
            os.close(descriptor)

    def path(self, member: ArchiveMember, name: bytes) -> list[bytes]:
        """Return the parts of a path; BadArchiveError if it leads out, or has too many."""
        parts = [part for part in name.split(b"/") if part not in (b"", b".")]
        if name.startswith(b"/") or b".." in parts:
            raise BadArchiveError(f"{member.shown} leads out of the folder")
        if len(parts) > self._bounds.depth:
            raise BadArchiveError(f"{member.shown} is below more than {self._bounds.depth} folders")
        return parts

    def enter(self, parts: list[bytes], *, make: bool = True) -> int:
        """Return a descriptor of a folder, which stays open until the next call. Missing ones are made and counted."""
        common = 0
        while common < min(len(parts), len(self._names)) and parts[common] == self._names[common]:
            common += 1
        while len(self._names) > common:
            self._names.pop()
            os.close(self._open.pop())
        for part in parts[common:]:
            if make:
                self._make(part)
            try:
                self._open.append(os.open(part, FOLDER, dir_fd=self._open[-1]))
            except OSError as error:
                raise _unusable(part, error) from None
            self._names.append(part)
        return self._open[-1]

    def _make(self, name: bytes) -> None:
        try:
            os.mkdir(name, 0o755, dir_fd=self._open[-1])
        except FileExistsError:
            return
        except OSError as error:
            raise _unusable(name, error) from None
        self._made += 1
        if self._made > self._bounds.entries:
            raise BadArchiveError(f"it has more than {self._bounds.entries} folders")

    def write(self, member: ArchiveMember, archive: Archive) -> None:
        folder, name = self._place_of(member)
        if self._bounds.reserve:
            disk = os.fstatvfs(folder)
            free, needed = disk.f_bavail * disk.f_frsize, member.size + self._bounds.reserve
            if free < needed:
                raise NoSpaceError(free, needed)
        try:
            if stat.S_ISREG(os.lstat(name, dir_fd=folder).st_mode):
                os.unlink(name, dir_fd=folder)
        except OSError:
            pass  # usually there is none; creating it says what else is wrong
        try:
            descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
        except OSError as error:
            raise _unusable(name, error) from None
        with open(descriptor, "wb", buffering=0) as file:
            while piece := archive.read(PIECE):
                view = memoryview(piece)
                while view:
                    view = view[file.write(view) or 0 :]
            os.fchmod(descriptor, 0o755 if member.executable else 0o644)

    def hard_link(self, member: ArchiveMember) -> None:
        *parents, last = self.path(member, member.target) or [b"."]
        source = os.dup(self.enter(parents, make=False))
        try:
            if not stat.S_ISREG(os.lstat(last, dir_fd=source).st_mode):
                raise BadArchiveError(f"{member.shown} is a link to what is not a file in the archive")
            folder, name = self._place_of(member)
            os.link(last, name, src_dir_fd=source, dst_dir_fd=folder, follow_symlinks=False)
        except OSError as error:
            raise _unusable(member.name, error) from None
        finally:
            os.close(source)

    def symlink(self, member: ArchiveMember) -> None:
        folder, name = self._place_of(member)
        if not member.target or member.target.startswith(b"/"):
            raise BadArchiveError(f"{member.shown} is a link out of the folder")
        try:
            os.symlink(member.target, name, dir_fd=folder)
        except OSError as error:
            raise _unusable(member.name, error) from None

    def _place_of(self, member: ArchiveMember) -> tuple[int, bytes]:
        parts = self.path(member, member.name)
        if not parts:
            raise BadArchiveError(f"{member.shown} is the folder itself")
        return self.enter(parts[:-1]), parts[-1]

    def leads_out(self, member: ArchiveMember) -> bool:
        """Return whether a link, with all links that it leads to, leaves the folder, now that everything is in place.

        A path that does not exist counts as leading out if it would, whatever its parts will be.
        """
        pending = self.path(member, member.name)[::-1]
        trail: list[int | None] = [os.dup(self._open[0])]  # None: does not exist
        followed = 0
        try:
            while pending:
                self._steps += 1
                if self._steps > MAX_STEPS:
                    raise BadArchiveError("its links lead to each other too often")
                part, folder = pending.pop(), trail[-1]
                if part == b"..":
                    if len(trail) == 1:
                        return True
                    _close(trail.pop())
                elif part not in (b"", b"."):
                    target = _target(part, folder) if folder is not None else None
                    if target is None:
                        trail.append(_inner(part, folder) if folder is not None else None)
                        continue
                    followed += 1
                    if followed > MAX_FOLLOWED:
                        return False  # it leads nowhere
                    if target.startswith(b"/"):
                        return True
                    pending += target.split(b"/")[::-1]
            return False
        finally:
            for descriptor in trail:
                _close(descriptor)


def _target(name: bytes, folder: int) -> bytes | None:
    try:
        return os.readlink(name, dir_fd=folder)
    except OSError:
        return None


def _inner(name: bytes, folder: int) -> int | None:
    try:
        return os.open(name, FOLDER, dir_fd=folder)
    except OSError:
        return None


def _close(descriptor: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)


def _unusable(name: bytes, error: OSError) -> Exception:
    """Return the error for a name that cannot be used: that of the archive, unless the disk is to blame."""
    if error.errno in (errno.EEXIST, errno.ENOTDIR, errno.ENOENT, errno.ELOOP, errno.EISDIR, errno.ENAMETOOLONG):
        return BadArchiveError(f"{name[:200].decode('utf-8', 'replace')!r}: {error.strerror}")
    return error
