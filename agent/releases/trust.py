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
worker, or in a process that ends with the refresh, so that its memory is released: see agent.releases.verifier.

The expiry is checked by the clock of the device: a device whose clock is years behind accepts metadata that was current
then, but nothing older than what it has seen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Final

import trio

from agent.releases.chain import ASK_OWNER, MetadataFile, Untrusted, has_pin
from agent.releases.signed import Listing
from agent.releases.verifier import Run, Verifying, in_worker
from schema import ErrorKind, MachineError
from support import Worker
from uplink.releases import MAX_METADATA, ROOT, TIMESTAMP

MAX_ROOTS: Final = 64
"""New versions of root.json that one refresh accepts; the next refresh continues."""

Fetch = Callable[[str, int], Awaitable[bytes | None]]
"""Returns the metadata file with a name such as `3.snapshot.json`, None if the cloud has none; reads at most the given
number of bytes and one more. Raises MachineError."""


class Trust:
    """The trusted metadata below `folder`. `worker` must be open while the methods run.

    `verifying` opens what verifies the metadata, by default the worker.
    """

    def __init__(self, folder: Path, worker: Worker, verifying: Verifying | None = None) -> None:
        self._folder, self._worker = folder, worker
        self._verifying = verifying or in_worker(worker)
        self._lock = trio.Lock()

    async def is_pinned(self) -> bool:
        """Return whether this machine accepts only signed releases. True also if the pinned root is damaged."""
        return await self._worker.run(partial(has_pin, self._folder))

    async def pin_first(self, fetch: Fetch) -> bool:
        """Pin the first root.json of the cloud, if none is pinned; return whether that was done.

        A cloud that is taken over at this moment decides which releases the machine trusts from then on, so only
        the defaults file of the device may ask for it. False also if the cloud has no root.json. Raises Untrusted,
        MachineError of `fetch`, and OSError.
        """
        async with self._lock:
            if await self.is_pinned():
                return False
            content = await _bounded(fetch, MetadataFile(f"1.{ROOT}.json", MAX_METADATA))
            if content is not None:
                async with self._verifying(self._folder) as run:
                    await run("pin", content)
            return content is not None

    async def refresh(self, fetch: Fetch, now: datetime) -> Listing:
        """Fetch what is new, verify it, and return the releases in the newest targets metadata.

        `now` is the time with its zone. If cancelled, what was verified stays. Raises Untrusted if something is not
        signed, older than what this machine has seen, expired or too large; PRECONDITION if no root is pinned or no
        root on the disk can be used; UNAVAILABLE if the verification cannot run; MachineError of `fetch`; OSError if
        the disk refuses.
        """
        async with self._lock, self._verifying(self._folder) as run:
            await self._follow_roots(run, await run("open", now), fetch)
            timestamp = MetadataFile(f"{TIMESTAMP}.json", MAX_METADATA)
            await run("load_timestamp")
            await run("add_timestamp", await _required(fetch, timestamp))
            if (snapshot := await run("load_snapshot")) is not None:
                await run("add_snapshot", snapshot.name, await _required(fetch, snapshot))
            if (targets := await run("load_targets")) is not None:
                await run("add_targets", targets.name, await _required(fetch, targets))
            listing: Listing = await run("releases")
            return listing

    async def _follow_roots(self, run: Run, version: int, fetch: Fetch) -> None:
        for _ in range(MAX_ROOTS):
            name = f"{version + 1}.{ROOT}.json"
            content = await _bounded(fetch, MetadataFile(name, MAX_METADATA))
            if content is None:
                return
            version = await run("add_root", name, content)
        raise Untrusted(
            f"the cloud has at least {MAX_ROOTS} new versions of root.json",
            kind=ErrorKind.EXHAUSTED,
            remedy="the next attempt continues with the following ones",
        )


async def _bounded(fetch: Fetch, file: MetadataFile) -> bytes | None:
    content = await fetch(file.name, file.limit)
    if content is not None and len(content) > file.limit:
        raise Untrusted(f"{file.name} is larger than {file.limit:,} bytes", remedy=ASK_OWNER)
    return content


async def _required(fetch: Fetch, file: MetadataFile) -> bytes:
    content = await _bounded(fetch, file)
    if content is None:
        raise MachineError(
            f"the cloud has no {file.name}", kind=ErrorKind.UNAVAILABLE, remedy="the request is repeated"
        )
    return content
