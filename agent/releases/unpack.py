"""Unpacking of a release file: a shell script with a header, followed by a tar archive that is compressed with xz.

The archive begins after the line MARK. Its member `run` is the program; links must stay inside of the archive.
"""

from __future__ import annotations

import lzma
import os
import shutil
import tarfile
from pathlib import Path
from typing import IO, BinaryIO, Final, cast

from schema.errors import ErrorKind, MachineError

MARK: Final = b"\n__PAYLOAD__\n"
MAX_SCRIPT: Final = 16 * 1024
"""Bytes at the beginning of the file in which the line MARK ends."""
MAX_MEMORY: Final = 256 << 20
"""Bytes of memory for decompression; `xz -9` needs 65 MiB."""
MAX_MEMBERS: Final = 50_000
MAX_UNPACKED: Final = 2 << 30
"""Bytes of all files in the archive."""
RESERVE: Final = 32 << 20
"""Bytes that stay free on the disk."""

_CHUNK: Final = 1 << 18
_FOLDER: Final = 0o755
_DAMAGED: Final = (tarfile.TarError, lzma.LZMAError, EOFError)


def unpack(file: Path, folder: Path) -> None:
    """Unpack a release file into a new folder, which exists complete and flushed to the disk, or not at all.

    Blocks. What an interrupted call has left is replaced. Owners are not kept; permissions are, except setuid, setgid
    and write access of others.

    Raises MachineError: INVALID if the file is not a release, is damaged, too large, or contains paths, links or
    devices that lead out of the folder; EXHAUSTED if the disk has too little space; FileExistsError if `folder` exists.
    """
    part = folder.with_name(f"{folder.name}.part")
    if folder.exists():
        raise FileExistsError(17, "the folder exists", str(folder))
    if part.exists():
        shutil.rmtree(part)
    part.mkdir(mode=0o755)
    try:
        with open(file, "rb") as source:
            _seek_payload(source, file)
            _extract(source, part, file)
        _sync_tree(part)
        part.replace(folder)
    except BaseException:
        shutil.rmtree(part, ignore_errors=True)
        raise
    _sync(folder.parent)


def _seek_payload(source: BinaryIO, file: Path) -> None:
    beginning = source.read(MAX_SCRIPT)
    end = beginning.find(MARK)
    if not beginning.startswith(b"#!") or end < 0:
        raise _invalid(file, f"it has no line {MARK.decode().strip()} in its first {MAX_SCRIPT >> 10} KiB")
    source.seek(end + len(MARK))


def _extract(source: BinaryIO, part: Path, file: Path) -> None:
    members = size = 0
    try:
        payload = _Payload(source)
        with tarfile.open(fileobj=cast(IO[bytes], payload), mode="r|") as archive:
            for member in archive:
                members += 1
                size += member.size
                if members > MAX_MEMBERS or size > MAX_UNPACKED:
                    raise _invalid(file, f"it has more than {MAX_MEMBERS} files, or {MAX_UNPACKED >> 20} MiB")
                _check_space(part, member.size)
                _create(archive, member, part)
        payload.finish()
    except _DAMAGED as error:
        raise _invalid(file, str(error)) from None


def _create(archive: tarfile.TarFile, member: tarfile.TarInfo, part: Path) -> None:
    """Create a member below `part`. ReadError if it is of another kind, exists, or leads out of `part`.

    The filters of `tarfile` are missing in Python 3.11.2, which is the interpreter of Debian 12 and of our releases.
    """
    if "\0" in member.name or "\0" in member.linkname:
        raise tarfile.ReadError("the name of a file contains a zero byte")
    path = part / member.name
    # Links may lead out even though each was checked: to a name that became another link later.
    if not _is_inside(path.parent, part):
        raise tarfile.ReadError(f"{member.name[:200]} leads out of the folder")
    try:
        path.parent.mkdir(mode=_FOLDER, parents=True, exist_ok=True)
        if member.isreg():
            mode = 0o755 if member.mode & 0o100 else 0o644
            content = archive.extractfile(member)
            assert content is not None, "a regular file has content"
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as target:
                shutil.copyfileobj(content, target, _CHUNK)
                os.fchmod(target.fileno(), mode)
        elif member.isdir():
            path.mkdir(mode=_FOLDER, exist_ok=True)
        elif member.issym() and _is_inside(path.parent / member.linkname, part):
            path.symlink_to(member.linkname)
        elif member.islnk() and _is_inside(part / member.linkname, part):
            os.link(part / member.linkname, path, follow_symlinks=False)
        else:
            raise tarfile.ReadError(f"{member.name[:200]} is not a file, a folder or a link to the inside")
    except (FileExistsError, FileNotFoundError, NotADirectoryError) as error:
        raise tarfile.ReadError(f"{member.name[:200]}: {error.strerror}") from None


def _is_inside(path: Path, part: Path) -> bool:
    return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(part))


class _Payload:
    """The decompressed archive. EOFError if it is truncated, LZMAError if it is damaged or needs too much memory."""

    def __init__(self, source: BinaryIO) -> None:
        self._source = source
        self._decompressor = lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY)

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0 and not self._decompressor.eof:
            data = self._source.read(_CHUNK) if self._decompressor.needs_input else b""
            if self._decompressor.needs_input and not data:
                raise EOFError("it is truncated")
            parts.append(self._decompressor.decompress(data, size))
            size -= len(parts[-1])
        return b"".join(parts)

    def finish(self) -> None:
        """Check that nothing but padding follows the archive, and that its checksums are complete."""
        while data := self.read(_CHUNK):
            if data.strip(b"\0"):
                raise lzma.LZMAError("data follows the archive")
        if self._decompressor.unused_data or self._source.read(1):
            raise lzma.LZMAError("data follows the archive")


def _check_space(part: Path, size: int) -> None:
    free = shutil.disk_usage(part).free
    if free < size + RESERVE:
        raise MachineError(
            f"the disk of {part.parent} has {free >> 20} MiB free: too little to unpack a release",
            kind=ErrorKind.EXHAUSTED,
            remedy="free some space",
        )


def _invalid(file: Path, reason: str) -> MachineError:
    return MachineError(
        f"{file.name} cannot be unpacked: {reason}", kind=ErrorKind.INVALID, remedy="build the release again"
    )


def _sync_tree(root: Path) -> None:
    """Flush all files and folders to the disk."""
    for folder, _, names in os.walk(root):
        for name in names:
            path = Path(folder, name)
            if not path.is_symlink():
                _sync(path)
        _sync(Path(folder))


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
