"""The trusted metadata of an organization's releases: a client of The Update Framework (specification 1.0, section 5).

A machine trusts the `root.json` that was pinned at its installation, and what follows from it by signatures. Below
`layout.trust` are

| file | content |
|---|---|
| `pinned.json` | the root of the installation; only `pin` writes it |
| `root.json` | the newest root; without it, the client begins with `pinned.json` and follows the chain again |
| `timestamp.json`, `snapshot.json`, `targets.json` | the newest of each; their versions protect against older ones |

Each file is replaced as soon as its content is verified, so a refresh that ends halfway, also by a power cut, has made
progress and has not lost the protection. A damaged file counts as missing. Parsing and verification take place in the
worker; `tuf` is imported there when it is first used.

The expiry is checked by the clock of the device: a device whose clock is years behind accepts metadata that was current
then, but nothing older than what it has seen.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Awaitable, Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final, NamedTuple

import trio

from agent.releases.signed import Listing, listing
from schema.errors import ErrorKind, MachineError
from support.worker import Worker
from uplink.cached import replace
from uplink.releases import MAX_METADATA, ROOT, SNAPSHOT, TARGETS, TIMESTAMP

MAX_ROOTS: Final = 64
"""New versions of root.json that one refresh accepts; the next refresh continues."""

PINNED: Final = "pinned.json"

Fetch = Callable[[str, int], Awaitable[bytes | None]]
"""Returns the metadata file with a name such as `3.snapshot.json`, None if the cloud has none; reads at most the given
number of bytes and one more. Raises MachineError."""

_ASK: Final = "tell the owner of the organization: the cloud may have been taken over, or restored from a backup"


class Untrusted(MachineError):
    """Metadata that must not be used. The text names the file and the reason."""

    kind = ErrorKind.PERMISSION


class _File(NamedTuple):
    name: str
    limit: int  # bytes


class Trust:
    """The trusted metadata below `folder`. `worker` must be open while the methods run."""

    def __init__(self, folder: Path, worker: Worker) -> None:
        self._folder, self._worker = folder, worker
        self._lock = trio.Lock()

    async def is_pinned(self) -> bool:
        """Return whether this machine accepts only signed releases. True also if the pinned root is damaged."""
        return await self._worker.run(functools.partial(has_pin, self._folder))

    async def pin_first(self, fetch: Fetch) -> bool:
        """Pin the first root.json of the cloud, if none is pinned; return whether that was done.

        A cloud that is taken over at this moment decides which releases the machine trusts from then on, so only
        the defaults file of the device may ask for it. False also if the cloud has no root.json. Raises Untrusted,
        MachineError of `fetch`, and OSError.
        """
        async with self._lock:
            if await self.is_pinned():
                return False
            content = await _bounded(fetch, _File(f"1.{ROOT}.json", MAX_METADATA))
            if content is not None:
                await self._worker.run(functools.partial(pin, self._folder, content))
            return content is not None

    async def refresh(self, fetch: Fetch, now: datetime) -> Listing:
        """Fetch what is new, verify it, and return the releases in the newest targets metadata.

        `now` is the time with its zone. If cancelled, what was verified stays. Raises Untrusted if something is not
        signed, older than what this machine has seen, expired or too large; PRECONDITION if no root is pinned or no
        root on the disk can be used; MachineError of `fetch`; OSError if the disk refuses.
        """
        async with self._lock:
            run = self._worker.run
            chain = await run(lambda: _Chain(self._folder, now))
            await self._follow_roots(chain, fetch)
            timestamp = _File(f"{TIMESTAMP}.json", MAX_METADATA)
            await run(chain.load_timestamp)
            await run(functools.partial(chain.add_timestamp, await _required(fetch, timestamp)))
            if (snapshot := await run(chain.load_snapshot)) is not None:
                await run(functools.partial(chain.add_snapshot, snapshot.name, await _required(fetch, snapshot)))
            if (targets := await run(chain.load_targets)) is not None:
                await run(functools.partial(chain.add_targets, targets.name, await _required(fetch, targets)))
            return await run(chain.releases)

    async def _follow_roots(self, chain: _Chain, fetch: Fetch) -> None:
        for _ in range(MAX_ROOTS):
            name = f"{chain.root_version + 1}.{ROOT}.json"
            content = await _bounded(fetch, _File(name, MAX_METADATA))
            if content is None:
                return
            await self._worker.run(functools.partial(chain.add_root, name, content))
        raise Untrusted(
            f"the cloud has at least {MAX_ROOTS} new versions of root.json",
            kind=ErrorKind.EXHAUSTED,
            remedy="the next attempt continues with the following ones",
        )


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
    replace(folder / PINNED, content)


class _Chain:
    """One pass through the metadata, in the order of the specification. All methods block."""

    def __init__(self, folder: Path, now: datetime) -> None:
        self._folder = folder
        self._set = _first(folder)
        self._set.reference_time = now

    @property
    def root_version(self) -> int:
        """Version of the newest root that is trusted."""
        return int(self._set.root.version)

    def add_root(self, name: str, content: bytes) -> None:
        with _explained(name):
            self._set.update_root(content)
        replace(_file(self._folder, ROOT), content)

    def load_timestamp(self) -> None:
        """Load the stored timestamp, which a newer one must not fall behind; it may have expired."""
        if self._set.root.is_expired(self._set.reference_time):
            raise _expired(f"{self.root_version}.{ROOT}.json")
        self._load(TIMESTAMP, self._set.update_timestamp)

    def add_timestamp(self, content: bytes) -> None:
        from tuf.api.exceptions import EqualVersionNumberError

        with _explained(f"{TIMESTAMP}.json"):
            try:
                self._set.update_timestamp(content)
            except EqualVersionNumberError:  # the stored one is used
                pass
            else:
                replace(_file(self._folder, TIMESTAMP), content)
        if self._set.timestamp.is_expired(self._set.reference_time):
            raise _expired(f"{TIMESTAMP}.json")

    def load_snapshot(self) -> _File | None:
        """Load the stored snapshot, and return which one to fetch; None if it is the current one."""
        if self._load(SNAPSHOT, functools.partial(self._set.update_snapshot, trusted=True)):
            return None
        return _named(SNAPSHOT, self._set.timestamp.snapshot_meta)

    def add_snapshot(self, name: str, content: bytes) -> None:
        with _explained(name):
            self._set.update_snapshot(content)
        replace(_file(self._folder, SNAPSHOT), content)

    def load_targets(self) -> _File | None:
        """Load the stored targets, and return which one to fetch; None if it is the current one."""
        if self._load(TARGETS, self._set.update_targets):
            return None
        meta = self._set.snapshot.meta.get(f"{TARGETS}.json")
        if meta is None:
            raise Untrusted("snapshot.json does not list targets.json", remedy=_ASK)
        return _named(TARGETS, meta)

    def add_targets(self, name: str, content: bytes) -> None:
        with _explained(name):
            self._set.update_targets(content)
        replace(_file(self._folder, TARGETS), content)

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


def _named(role: str, meta: Any) -> _File:
    """Return the file of a role that other metadata names."""
    return _File(f"{meta.version}.{role}.json", min(meta.length or MAX_METADATA, MAX_METADATA))


async def _bounded(fetch: Fetch, file: _File) -> bytes | None:
    content = await fetch(file.name, file.limit)
    if content is not None and len(content) > file.limit:
        raise Untrusted(f"{file.name} is larger than {file.limit:,} bytes", remedy=_ASK)
    return content


async def _required(fetch: Fetch, file: _File) -> bytes:
    content = await _bounded(fetch, file)
    if content is None:
        raise MachineError(
            f"the cloud has no {file.name}", kind=ErrorKind.UNAVAILABLE, remedy="the request is repeated"
        )
    return content


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
        raise Untrusted(f"{name} is not signed by enough trusted keys: {error}", remedy=_ASK) from None
    except exceptions.BadVersionNumberError as error:
        raise Untrusted(f"{name} is not the version that must follow: {error}", remedy=_ASK) from None
    except exceptions.LengthOrHashMismatchError:
        raise Untrusted(f"{name} is not the file that the signed metadata names", remedy=_ASK) from None
    except exceptions.RepositoryError as error:
        raise Untrusted(f"{name} is not valid: {error}", remedy=_ASK) from None
