"""Trusted metadata on the disk: one pass through it, with `tuf`, which is imported when it is first used.

All functions block, and need some 20 MiB once `tuf` is imported: machine-agent calls them in a process of their own,
see agent.releases.verifier.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

from agent.releases.signed import Listing, listing
from schema import ErrorKind, MachineError
from support.files import replace_file
from uplink.releases import MAX_METADATA, ROOT, SNAPSHOT, TARGETS, TIMESTAMP

PINNED: Final = "pinned.json"
ASK_OWNER: Final = "tell the owner of the organization: the cloud may have been taken over, or restored from a backup"


class Untrusted(MachineError):
    """Metadata that must not be used. The text names the file and the reason."""

    kind = ErrorKind.PERMISSION


class MetadataFile(NamedTuple):
    """Metadata file of the cloud."""

    name: str
    limit: int  # bytes


def has_pin(folder: Path) -> bool:
    """Return whether a root is pinned below `folder`, also if it is damaged. Blocks."""
    return any(file.exists() for file in (folder / PINNED, _file(folder, ROOT)))


def check_pin(content: bytes) -> None:
    """Raise Untrusted unless this is a root.json that is signed by its own keys. Blocks."""
    if len(content) > MAX_METADATA:
        raise Untrusted(f"the root.json to pin is larger than {MAX_METADATA:,} bytes", kind=ErrorKind.INVALID)
    with _explained("the root.json to pin"):
        _trusted_set(content)


def pin(folder: Path, content: bytes) -> None:
    """Trust this root.json, and forget all other metadata, unless it is the one that is pinned. Blocks. Untrusted."""
    check_pin(content)
    if _stored(folder / PINNED) == content:
        return  # older metadata than what was seen stays refused
    for role in (TARGETS, SNAPSHOT, TIMESTAMP, ROOT):
        _file(folder, role).unlink(missing_ok=True)
    replace_file(folder / PINNED, content)


class RootChain:
    """One pass through the metadata, in the order of the specification. All methods block."""

    def __init__(self, folder: Path, now: datetime) -> None:
        self._folder = folder
        self._set = _first(folder)
        self._set.reference_time = now

    @property
    def root_version(self) -> int:
        """Version of the newest root that is trusted."""
        return int(self._set.root.version)

    def add_root(self, name: str, content: bytes) -> int:
        """Accept and store the next root; return its version."""
        with _explained(name):
            self._set.update_root(content)
        replace_file(_file(self._folder, ROOT), content)
        return self.root_version

    def load_timestamp(self) -> None:
        """Load the stored timestamp, which a newer one must not fall behind; it may have expired."""
        if self._set.root.is_expired(self._set.reference_time):
            raise _expired(f"{self.root_version}.{ROOT}.json")
        self._load(TIMESTAMP, self._set.update_timestamp)

    def add_timestamp(self, content: bytes) -> None:
        """Accept and store the timestamp, unless it is the stored one."""
        from tuf.api.exceptions import EqualVersionNumberError

        with _explained(f"{TIMESTAMP}.json"):
            try:
                self._set.update_timestamp(content)
            except EqualVersionNumberError:  # the stored one is used
                pass
            else:
                replace_file(_file(self._folder, TIMESTAMP), content)
        if self._set.timestamp.is_expired(self._set.reference_time):
            raise _expired(f"{TIMESTAMP}.json")

    def load_snapshot(self) -> MetadataFile | None:
        """Load the stored snapshot, and return which one to fetch; None if it is the current one."""
        if self._load(SNAPSHOT, functools.partial(self._set.update_snapshot, trusted=True)):
            return None
        return _named(SNAPSHOT, self._set.timestamp.snapshot_meta)

    def add_snapshot(self, name: str, content: bytes) -> None:
        """Accept and store the snapshot."""
        with _explained(name):
            self._set.update_snapshot(content)
        replace_file(_file(self._folder, SNAPSHOT), content)

    def load_targets(self) -> MetadataFile | None:
        """Load the stored targets, and return which one to fetch; None if it is the current one."""
        if self._load(TARGETS, self._set.update_targets):
            return None
        meta = self._set.snapshot.meta.get(f"{TARGETS}.json")
        if meta is None:
            raise Untrusted("snapshot.json does not list targets.json", remedy=ASK_OWNER)
        return _named(TARGETS, meta)

    def add_targets(self, name: str, content: bytes) -> None:
        """Accept and store the targets."""
        with _explained(name):
            self._set.update_targets(content)
        replace_file(_file(self._folder, TARGETS), content)

    def releases(self) -> Listing:
        """Return the releases that targets.json lists."""
        targets = self._set.targets.targets
        return listing((path, file.hashes, file.length, file.custom) for path, file in sorted(targets.items()))

    def _load(self, role: str, update: Callable[[bytes], object]) -> bool:
        """Load a stored file; return whether it is the one to use. One that is outdated still protects."""
        from tuf.api.exceptions import RepositoryError

        content = _stored(_file(self._folder, role))
        if content is None:
            return False
        try:
            update(content)
        except RepositoryError:
            return False
        return True


def _file(folder: Path, role: str) -> Path:
    return folder / f"{role}.json"


def _stored(path: Path) -> bytes | None:
    """Return the content of a file; None if it is missing or too large to be metadata."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_METADATA + 1)
    except FileNotFoundError:
        return None
    return content if len(content) <= MAX_METADATA else None


def _trusted_set(root: bytes) -> Any:
    from tuf.ngclient._internal.trusted_metadata_set import TrustedMetadataSet
    from tuf.ngclient.config import EnvelopeType

    return TrustedMetadataSet(root, EnvelopeType.METADATA)


def _first(folder: Path) -> Any:
    """Return a set with the newest stored root that can be used."""
    from tuf.api.exceptions import RepositoryError

    reasons = []
    for path in (_file(folder, ROOT), folder / PINNED):
        content = _stored(path)
        if content is None:
            reasons.append(f"{path} is missing or too large")
            continue
        try:
            return _trusted_set(content)
        except RepositoryError as error:
            reasons.append(f"{path} is damaged: {error}")
    raise MachineError(
        "; ".join(reasons), kind=ErrorKind.PRECONDITION, remedy="install the root.json of the organization again"
    )


def _named(role: str, meta: Any) -> MetadataFile:
    """Return the file of a role that other metadata names."""
    return MetadataFile(f"{meta.version}.{role}.json", min(meta.length or MAX_METADATA, MAX_METADATA))


def _expired(name: str) -> Untrusted:
    return Untrusted(
        f"{name} has expired", remedy="check the clock of this device; if it is right, the metadata must be renewed"
    )


@contextlib.contextmanager
def _explained(name: str) -> Iterator[None]:
    """Turn an error of the library about the file `name` into one for people."""
    from tuf.api import exceptions

    try:
        yield
    except exceptions.ExpiredMetadataError:
        raise _expired(name) from None
    except exceptions.UnsignedMetadataError as error:
        raise Untrusted(f"{name} is not signed by enough trusted keys: {error}", remedy=ASK_OWNER) from None
    except exceptions.BadVersionNumberError as error:
        raise Untrusted(f"{name} is not the version that must follow: {error}", remedy=ASK_OWNER) from None
    except exceptions.LengthOrHashMismatchError:
        raise Untrusted(f"{name} is not the file that the signed metadata names", remedy=ASK_OWNER) from None
    except exceptions.RepositoryError as error:
        raise Untrusted(f"{name} is not valid: {error}", remedy=ASK_OWNER) from None
