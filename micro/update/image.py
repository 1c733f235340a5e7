"""An image: a signed manifest, and files. It is read in pieces, and nothing is accepted before the signature is. Pure.

    MICRO1, a line break
    length of the manifest (4 bytes), manifest (JSON), signature of the manifest (384 bytes)
    the files, in the order of the manifest, without anything in between

The manifest has `version` (text), `sequence` (integer, which an update must raise) and `files`: a list of name, size
and SHA-256 in hexadecimal digits.
"""

import json

from micro.update.signature import SIZE, is_valid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

MAGIC = b"MICRO1\n"
MAX_MANIFEST = 8192
MAX_FILES = 100
MAX_FILE = 65536
LETTERS = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-."


class BadImage(Exception):
    """An image cannot be used; the text says why."""


class Manifest:
    """What a signed manifest says."""

    def __init__(self, data: bytes) -> None:
        try:
            value = json.loads(data)
            self.version = str(value["version"])
            self.sequence = int(value["sequence"])
            self.files = [(str(name), int(size), bytes.fromhex(digest)) for name, size, digest in value["files"]]
        except (ValueError, KeyError, TypeError):
            raise BadImage("the manifest is not valid") from None
        if not 0 < len(self.files) <= MAX_FILES or not 0 < self.sequence < 1 << 30:
            raise BadImage("the manifest has no files, too many of them, or no valid sequence")
        for name, size, digest in self.files:
            if not is_safe(name) or not 0 <= size <= MAX_FILE or len(digest) != 32:
                raise BadImage(f"the manifest has a file that is not allowed: {name[:40]!r}")


def is_safe(name: str) -> bool:
    """Return whether a name of a file stays in its folder: parts of plain letters that do not begin with a dot."""
    parts = name.split("/")
    plain = all(part and part[0] != "." and all(letter in LETTERS for letter in part) for part in parts)
    return plain and 0 < len(name) <= 80 and len(parts) <= 4


class ImageReader:
    """Reads an image. `begin(manifest)` may refuse it with BadImage; `write(name, data)` gets each file in pieces."""

    def __init__(
        self,
        modulus: int,
        sha256: "Callable[[], Any]",
        begin: "Callable[[Manifest], None]",
        write: "Callable[[str, bytes], None]",
    ) -> None:
        self.manifest: Manifest | None = None
        self._modulus = modulus
        self._sha256 = sha256
        self._begin = begin
        self._write = write
        self._head = bytearray()
        self._need = len(MAGIC) + 4
        self._place = 0  # of the current file
        self._left = 0  # bytes of it still to come
        self._hash: Any = None

    @property
    def is_complete(self) -> bool:
        """Whether every file has been read."""
        return self.manifest is not None and self._place == len(self.manifest.files)

    def feed(self, data: bytes) -> None:
        """Take a piece. BadImage if the image is not valid."""
        at = 0
        while at < len(data):
            if self.manifest is None:
                part = data[at : at + self._need - len(self._head)]
                self._head += part
                if len(self._head) == self._need:
                    self._read_head()
            elif self.is_complete:
                raise BadImage("the image is longer than its manifest says")
            else:
                part = data[at : at + self._left]
                self._take(part)
            at += len(part)

    def _read_head(self) -> None:
        start = len(MAGIC) + 4
        if self._need == start:
            size = int.from_bytes(self._head[len(MAGIC) :], "big")
            if self._head[: len(MAGIC)] != MAGIC or not 0 < size <= MAX_MANIFEST:
                raise BadImage("this is not an image of a micro server")
            self._need += size + SIZE
            return
        text, signature = bytes(self._head[start:-SIZE]), bytes(self._head[-SIZE:])
        self._head = bytearray()
        digest = self._sha256()
        digest.update(text)
        if not is_valid(self._modulus, digest.digest(), signature):
            raise BadImage("the signature is not that of the key of this device")
        manifest = Manifest(text)
        self._begin(manifest)
        self.manifest = manifest
        self._open()

    def _open(self) -> None:
        """Begin the next file; files without content are complete at once."""
        assert self.manifest is not None
        while not self.is_complete:
            name, self._left, _ = self.manifest.files[self._place]
            self._hash = self._sha256()
            self._write(name, b"")
            if self._left:
                return
            self._close()

    def _close(self) -> None:
        assert self.manifest is not None
        name, _, digest = self.manifest.files[self._place]
        if self._hash.digest() != digest:
            raise BadImage(f"{name} is not the file that was signed")
        self._place += 1

    def _take(self, part: bytes) -> None:
        assert self.manifest is not None
        self._hash.update(part)
        self._write(self.manifest.files[self._place][0], part)
        self._left -= len(part)
        if not self._left:
            self._close()
            self._open()
