"""Slots and record as files: folders `slot-a` and `slot-b`, and two copies of the record that are written in turns.

A write of a copy that a power cut interrupts leaves the other one. The files of a slot are written while nothing refers
to that slot, and read back before something does.
"""

import os

from micro.update import slots
from micro.update.image import BadImage, Manifest
from micro.update.slots import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

BLOCK = 1024


class SlotStore:
    """The slots in a folder. `files` is a module with `open` and those functions of `os` that are used; for tests."""

    def __init__(self, folder: str, sha256: "Callable[[bytes], bytes]", files: "Any" = None) -> None:
        self._folder = folder
        self._sha256 = sha256
        self._files: Any = files or _Files()
        self._file: Any = None
        self._name = ""

    def path(self, slot: str) -> str:
        """Return the folder of a slot."""
        return f"{self._folder}/slot-{slot}"

    # The record

    def _copies(self) -> "list[tuple[int, Record] | None]":
        copies: list[tuple[int, Record] | None] = []
        for number in (0, 1):
            try:
                with self._files.open(f"{self._folder}/record-{number}", "rb") as file:
                    copies.append(slots.decode(file.read(), self._sha256))
            except (OSError, ValueError):
                copies.append(None)
        return copies

    def load(self) -> Record:
        """Return the newest record; that of a new device if there is none."""
        best = max([copy for copy in self._copies() if copy is not None], key=lambda copy: copy[0], default=None)
        return Record() if best is None else best[1]

    def save(self, record: Record) -> None:
        """Store a record in the place of the older copy."""
        copies = self._copies()
        counts = [-1 if copy is None else copy[0] for copy in copies]
        older = 0 if counts[0] <= counts[1] else 1
        self._write_file(f"{self._folder}/record-{older}", slots.encode(record, max(counts) + 1, self._sha256))

    def _write_file(self, path: str, data: bytes) -> None:
        with self._files.open(path, "wb") as file:
            file.write(data)
            self._files.flush(file)

    # The files of a slot

    def erase(self, slot: str) -> None:
        """Remove a slot."""
        self._remove(self.path(slot))
        self._mkdir(self.path(slot))

    def _mkdir(self, path: str) -> None:
        try:
            self._files.mkdir(path)
        except OSError:
            pass  # is there already

    def _remove(self, path: str) -> None:
        try:
            names = self._files.listdir(path)
        except OSError:
            return
        for name in names:
            inner = f"{path}/{name}"
            try:
                self._files.remove(inner)
            except OSError:
                self._remove(inner)
        try:
            self._files.rmdir(path)
        except OSError:
            pass  # is written again

    def write(self, slot: str, name: str, data: bytes) -> None:
        """Append to a file of a slot; the first piece of a file creates it."""
        if name != self._name:
            self.finish()
            folder = self.path(slot)
            parts = name.split("/")
            for part in parts[:-1]:
                folder += "/" + part
                self._mkdir(folder)
            self._file = self._files.open(f"{self.path(slot)}/{name}", "wb")
            self._name = name
        self._file.write(data)

    def finish(self) -> None:
        """Close the last file."""
        if self._file is not None:
            self._files.flush(self._file)
            self._file.close()
            self._file = None
            self._name = ""

    def verify(self, slot: str, manifest: Manifest, new: "Callable[[], Any]") -> None:
        """Read a slot back and compare it with its manifest. BadImage for a file that is not as it was signed."""
        for name, size, digest in manifest.files:
            total = new()
            count = 0
            try:
                with self._files.open(f"{self.path(slot)}/{name}", "rb") as file:
                    while True:
                        data = file.read(BLOCK)
                        if not data:
                            break
                        count += len(data)
                        total.update(data)
            except OSError:
                count = -1
            if count != size or total.digest() != digest:
                raise BadImage(f"{name} was not stored as it was signed")


class _Files:
    """The files of this host."""

    def __init__(self) -> None:
        self.open = open
        self.mkdir, self.listdir, self.remove, self.rmdir = os.mkdir, os.listdir, os.remove, os.rmdir

    def flush(self, file: "Any") -> None:
        """Write what is buffered to the disk."""
        file.flush()
        if hasattr(os, "sync"):
            os.sync()
