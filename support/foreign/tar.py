"""Reader of tar archives of strangers, in the formats ustar, pax and GNU.

It reads headers itself: `tarfile` reads extended headers whole, calls itself for each, and trusts every number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from typing import BinaryIO, Final

from support.foreign.stream import MAX_ZEROS, PIECE, BadArchiveError, Stream

BLOCK: Final = 512
MAX_HEADER: Final = 64 * 1024  # bytes of an extended header
MAX_EXTENDED: Final = 8  # extended headers of one member
MAX_NAME: Final = 4096  # bytes of a path, or of the target of a link
_OVERHEAD: Final = 3 * BLOCK  # decompressed bytes for each member, in addition to its content: header, padding, end
_PAX, _GLOBAL, _LONG_NAME, _LONG_LINK = b"xX", b"g", b"L", b"K"
_OCTAL: Final = re.compile(rb" *+([0-7]*+) *+")
_DECIMAL: Final = re.compile(rb"[0-9]{1,19}")


class MemberKind(Enum):
    """What a member is. OTHER is never unpacked: a device, a pipe, or something unknown."""

    FILE = "file"
    FOLDER = "folder"
    SYMLINK = "symbolic link"
    HARD_LINK = "hard link"
    OTHER = "other"


_KINDS: Final = {
    **dict.fromkeys((b"0", b"\0", b"7"), MemberKind.FILE),
    b"5": MemberKind.FOLDER,
    b"2": MemberKind.SYMLINK,
    b"1": MemberKind.HARD_LINK,
}


@dataclass(frozen=True, slots=True)
class Bounds:
    """What may be in an archive, and what reading it may take."""

    entries: int  # files, folders and links, including folders that only a path names
    size: int  # bytes of all files
    depth: int = 100  # folders in a path
    links: bool = True  # whether there may be links, to the inside
    reserve: int = 0  # bytes that stay free on the disk
    cpu: int = 600  # seconds of processor time of a separate process
    wall: float = 1800.0  # seconds that it may run
    memory: int = 640 << 20  # bytes of its address space


@dataclass(frozen=True, slots=True)
class ArchiveMember:
    """A member. Its name is that in the archive: it may be absolute, or lead out."""

    name: bytes
    kind: MemberKind
    size: int = 0  # bytes; 0 unless it is a file
    executable: bool = False
    target: bytes = b""  # of a link

    @property
    def shown(self) -> str:
        """The name for messages."""
        return repr(self.name[:200].decode("utf-8", "replace"))


class Archive:
    """An archive in a file. Iterate over its members, and read the content of each, if needed, before the next one.

    Everything raises BadArchiveError, and OSError if the file cannot be read.
    """

    def __init__(self, source: BinaryIO, bounds: Bounds) -> None:
        self._bounds = bounds
        extended = MAX_EXTENDED * (BLOCK + MAX_HEADER)
        self._stream = Stream(source, bounds.size + bounds.entries * 2 * _OVERHEAD + extended + 2 * MAX_ZEROS)
        self._left = self._padding = 0  # bytes of the content of the current member that were not read
        self._empty = True

    def __iter__(self) -> Iterator[ArchiveMember]:
        """Yield the members in their order. The end is checked, too: nothing but some zeros may follow."""
        count = size = 0
        while (member := self._next()) is not None:
            count, size = count + 1, size + member.size
            if count > self._bounds.entries:
                raise BadArchiveError(f"it has more than {self._bounds.entries} files")
            if size > self._bounds.size:
                raise BadArchiveError(f"its files have more than {self._bounds.size >> 20} MiB")
            self._left, self._padding = member.size, -member.size % BLOCK
            yield member
            while self._left:
                self.read(PIECE)
        zeros = 0
        while piece := self._stream.read(PIECE):
            zeros += len(piece)
            if piece.strip(b"\0"):
                raise BadArchiveError("data follows the archive")
            if zeros > MAX_ZEROS:
                raise BadArchiveError("too many zeros follow the archive")

    def read(self, size: int) -> bytes:
        """Return the next bytes of the current member, at most `size`; none at its end."""
        size = min(size, self._left)
        content = self._stream.read(size)
        if len(content) < size:
            raise BadArchiveError("it is truncated")
        self._left -= size
        if not self._left and self._padding:
            self._exactly(self._padding)
            self._padding = 0
        return content

    def _exactly(self, size: int) -> bytes:
        content = self._stream.read(size)
        if len(content) < size:
            raise BadArchiveError("it is truncated")
        return content

    def _next(self) -> ArchiveMember | None:
        extended: dict[bytes, bytes] = {}
        for _ in range(MAX_EXTENDED + 1):
            block = self._header()
            if block is None:
                if extended:
                    raise BadArchiveError("it ends after an extended header")
                return None
            kind = block[156:157]
            if kind not in _PAX and kind not in (_GLOBAL, _LONG_NAME, _LONG_LINK):
                return _member(block, extended)
            size = _number(block[124:136])
            if size > MAX_HEADER:
                raise BadArchiveError(f"an extended header has {size} bytes, more than {MAX_HEADER}")
            content = self._exactly(size + -size % BLOCK)[:size]
            if kind in _PAX:
                extended |= _records(content)
            elif kind != _GLOBAL:  # a global header has comments
                extended[b"path" if kind == _LONG_NAME else b"linkpath"] = content.partition(b"\0")[0]
        raise BadArchiveError(f"a file has more than {MAX_EXTENDED} extended headers")

    def _header(self) -> bytes | None:
        block = self._stream.read(BLOCK)
        if (not block and not self._empty) or block == bytes(BLOCK):
            return None
        self._empty = False
        if len(block) < BLOCK:
            raise BadArchiveError("it is truncated, or no archive")
        summed, number = block[:148] + block[156:], _number(block[148:156]) - 8 * 32  # itself counts as spaces
        if number != sum(summed) and number != sum(summed) - 256 * sum(value > 127 for value in summed):
            raise BadArchiveError("it is damaged, or no archive")
        return block


def _member(block: bytes, extended: dict[bytes, bytes]) -> ArchiveMember:
    name = block[:100].partition(b"\0")[0]
    if block[257:263] == b"ustar\0" and (prefix := block[345:500].partition(b"\0")[0]):
        name = prefix + b"/" + name
    name = extended.get(b"path", name)
    target = extended.get(b"linkpath", block[157:257].partition(b"\0")[0])
    if b"\0" in name + target:
        raise BadArchiveError("the name of a file contains a zero byte")
    if max(len(name), len(target)) > MAX_NAME:
        raise BadArchiveError(f"the name of a file has more than {MAX_NAME} bytes")
    kind = _KINDS.get(block[156:157], MemberKind.OTHER)
    if kind is MemberKind.FILE and name.endswith(b"/"):  # as the first tar wrote folders
        kind = MemberKind.FOLDER
    size = _number(block[124:136])
    if b"size" in extended:
        if not _DECIMAL.fullmatch(extended[b"size"]):
            raise BadArchiveError("the size of a file is not a number")
        size = int(extended[b"size"])
    return ArchiveMember(
        name,
        kind,
        size if kind is MemberKind.FILE else 0,
        executable=bool(_number(block[100:108]) & 0o100),
        target=target,
    )


def _number(text: bytes) -> int:
    """Return a number, octal or in base 256; negative ones are refused."""
    if text[0] == 0x80:
        return int.from_bytes(text[1:], "big")
    if text[0] == 0xFF or (match := _OCTAL.fullmatch(text.partition(b"\0")[0])) is None:
        raise BadArchiveError("a number in it is negative, or none")
    return int(match[1] or b"0", 8)


def _records(content: bytes) -> dict[bytes, bytes]:
    """Return what matters of the records `LENGTH NAME=VALUE\\n` of a pax header."""
    values: dict[bytes, bytes] = {}
    at = 0
    while at < len(content) and content[at]:
        digits, space, _ = content[at : at + 8].partition(b" ")
        end = at + int(digits) if space and _DECIMAL.fullmatch(digits) else 0
        name, equals, value = content[at + len(digits) + 1 : end - 1].partition(b"=")
        if end <= at or content[end - 1 : end] != b"\n" or not equals:
            raise BadArchiveError("an extended header is damaged")
        if name.startswith(b"GNU.sparse."):
            raise BadArchiveError("it has sparse files: create it without --sparse")
        if name in (b"path", b"linkpath", b"size"):
            values[name] = value
        at = end
    return values
