"""Installs an image into the slot that does not run, and confirms it when it is healthy."""

from micro.update import slots
from micro.update.image import BadImage, ImageReader, Manifest
from micro.update.store import SlotStore

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


class Updater:
    """Updates of a device with the key `modulus`; `new` returns a SHA-256."""

    def __init__(self, store: SlotStore, modulus: int, new: "Callable[[], Any]") -> None:
        self._store = store
        self._modulus = modulus
        self._new = new
        self._slot = ""

    def install(self) -> ImageReader:
        """Return a reader for an image; call `complete` when all of it has been fed."""
        return ImageReader(self._modulus, self._new, self._begin, self._write)

    def _begin(self, manifest: Manifest) -> None:
        """Make room for an image whose signature is valid, unless it is older or was rolled back. BadImage."""
        record = self._store.load()
        reason = slots.refusal(record, manifest.sequence)
        if reason:
            raise BadImage(reason)
        self._slot = record.inactive
        self._store.erase(self._slot)

    def _write(self, name: str, data: bytes) -> None:
        self._store.write(self._slot, name, data)

    def complete(self, reader: ImageReader) -> None:
        """Put a complete image on trial: the next start begins it. BadImage if it is not complete."""
        self._store.finish()
        if not reader.is_complete or reader.manifest is None:
            raise BadImage("the image is cut off")
        self._store.verify(self._slot, reader.manifest, self._new)
        self._store.save(slots.installed(self._store.load(), reader.manifest.sequence))

    def confirm(self) -> bool:
        """Keep the program that runs; return whether it was on trial."""
        record = self._store.load()
        if not record.trial:
            return False
        self._store.save(slots.confirmed(record))
        return True


def choose(store: SlotStore) -> str:
    """Return the slot that this start begins, after that has been stored."""
    record = store.load()
    slot, after = slots.boot(record)
    if after is not record:
        store.save(after)
    return slot
