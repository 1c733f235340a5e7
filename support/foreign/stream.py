"""Decompression of a file of a stranger: gzip, bzip2, xz, lzma or nothing, recognized by its first bytes."""

from __future__ import annotations

import bz2
import errno
import lzma
import zlib
from collections.abc import Callable
from typing import BinaryIO, Final, Protocol

PIECE: Final = 256 * 1024
MAX_MEMORY: Final = 256 << 20  # bytes for a decompressor of xz; `xz -9` needs 65 MiB
MAX_ZEROS: Final = 1 << 20  # bytes of padding after the compressed data; tar and tapes use at most 512 KiB
MAX_STREAMS: Final = 50_000  # compressed streams one after the other; parallel programs write one per 900 KB


class NoSpaceError(OSError):
    """The archive does not fit on the disk, of which Bounds.reserve stays free."""

    def __init__(self, free: int, needed: int) -> None:
        self.free, self.needed = free, needed
        super().__init__(errno.ENOSPC, f"the disk has {free >> 20} MiB free, too little for {needed >> 20} MiB more")


class BadArchiveError(Exception):
    """An archive is damaged, exceeds a bound, or has content that is not allowed. Its text says why."""


class _Decoder(Protocol):
    @property
    def eof(self) -> bool: ...

    def decompress(self, data: bytes, max_length: int, /) -> bytes: ...

    @property
    def needs_input(self) -> bool: ...

    @property
    def unused_data(self) -> bytes: ...


class _Gzip:
    """A decompressor of zlib with the interface of the others."""

    def __init__(self) -> None:
        self._inner = zlib.decompressobj(wbits=31)
        self._full = False  # there may be more output of the same input

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        output = self._inner.decompress(self._inner.unconsumed_tail + data, max_length)
        self._full = len(output) == max_length
        return output

    @property
    def eof(self) -> bool:
        return self._inner.eof

    @property
    def needs_input(self) -> bool:
        return not self._full and not self._inner.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._inner.unused_data


def _xz() -> _Decoder:
    return lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MAX_MEMORY)


_KINDS: Final[dict[bytes, Callable[[], _Decoder]]] = {
    b"\x1f\x8b": _Gzip,
    b"BZh": bz2.BZ2Decompressor,
    b"\xfd7zXZ\0": _xz,
    b"\x5d\0\0": lambda: lzma.LZMADecompressor(lzma.FORMAT_ALONE, memlimit=MAX_MEMORY),
}
_LONGEST: Final = max(map(len, _KINDS))
DAMAGED: Final = (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError)  # what decompressors raise; bz2: OSError


class Stream:
    """The decompressed content of `source`, at most `most` bytes. Methods raise BadArchiveError and OSError."""

    def __init__(self, source: BinaryIO, most: int) -> None:
        self._source = source
        self._left = self._most = most
        self._buffer = b""
        self._raw = source.read(PIECE)
        self._decoder = _decoder(self._raw)
        self._streams = 1

    def read(self, size: int) -> bytes:
        """Return `size` bytes, fewer only at the end."""
        parts = []
        while size and (self._buffer or self._fill()):
            piece, self._buffer = self._buffer[:size], self._buffer[size:]
            parts.append(piece)
            size -= len(piece)
        return b"".join(parts)

    def _fill(self) -> bool:
        self._buffer = self._piece() if self._decoder is not None else self._taken()
        self._left -= len(self._buffer)
        if self._left < 0:
            raise BadArchiveError(f"it has more than {self._most >> 20} MiB when it is unpacked")
        return bool(self._buffer)

    def _taken(self) -> bytes:
        """Return and forget what was read from the source, or the next bytes of it."""
        data, self._raw = self._raw or self._source.read(PIECE), b""
        return data

    def _piece(self) -> bytes:
        """Return the next decompressed bytes; none at the end."""
        while self._decoder is not None:
            if self._decoder.eof:
                self._raw = self._decoder.unused_data
                self._decoder = self._following()
                continue
            data = self._taken() if self._decoder.needs_input else b""
            if not data and self._decoder.needs_input:
                raise BadArchiveError("it is truncated")
            try:
                if output := self._decoder.decompress(data, PIECE):
                    return output
            except DAMAGED as error:
                raise BadArchiveError(f"it is damaged: {error}") from None
        return b""

    def _following(self) -> _Decoder | None:
        """Return the decompressor of another stream after the last one; None at the end of the file."""
        zeros = 0
        while not (rest := self._raw.lstrip(b"\0")):
            zeros += len(self._raw)
            if zeros > MAX_ZEROS:
                raise BadArchiveError("too many zeros follow it")
            self._raw = self._source.read(PIECE)
            if not self._raw:
                return None
        self._raw = rest if len(rest) >= _LONGEST else rest + self._source.read(PIECE)
        self._streams += 1
        if self._streams > MAX_STREAMS:
            raise BadArchiveError(f"it has more than {MAX_STREAMS} compressed streams")
        decoder = _decoder(self._raw)
        if decoder is None:
            raise BadArchiveError("data follows the archive")
        return decoder


def _decoder(beginning: bytes) -> _Decoder | None:
    return next((kind() for magic, kind in _KINDS.items() if beginning.startswith(magic)), None)
