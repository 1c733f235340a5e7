"""The releases of the machine's cloud, and files at URLs: signed metadata, downloads, identities."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urlsplit

import structlog
import trio

from agent.actions.offers import Identified
from agent.releases.download import ReleaseDownloads
from agent.releases.header import read_identity
from agent.releases.signed import Signed
from agent.releases.transport import Transport
from agent.releases.trust import Trust
from agent.releases.web import Web
from agent.update.record import Release
from schema import ErrorKind, MachineError
from schema.agent import shown_url
from support import Worker
from support.files import forget_cached
from uplink import IncompleteDownload, read_body
from uplink.releases import MAX_FILE

FRESH: Final = 600.0
"""Seconds during which metadata that was verified is not fetched again."""
_CHUNK: Final = 1 << 20

_log = structlog.get_logger("agent.update")


class ReleaseCatalog:
    """Implements Catalog and Source. `worker` must be open, and not be used for other things: files are large.

    `folder` is for downloads of files whose hash is not known yet.
    """

    def __init__(self, trust: Trust, transport: Transport, web: Web, worker: Worker, folder: Path) -> None:
        self._trust, self._transport, self._web, self._worker = trust, transport, web, worker
        self._downloads = ReleaseDownloads(web, worker)
        self._folder = folder
        self.trust_first_root = False
        """Whether to pin the cloud's root.json, if none is pinned: a consent of the device."""
        self._signed: tuple[Signed, ...] = ()
        self._fetched = float("-inf")

    async def signed(self, *, fresh: bool = False) -> tuple[Signed, ...] | None:
        """Return the releases that the organization signed; None if no root is pinned."""
        if not await self._trust.is_pinned():
            if not self.trust_first_root or not await self._trust.pin_first(self._transport.fetch):
                return None
            _log.warning("the root.json of the cloud is pinned: only signed releases are installed from now on")
        if fresh or trio.current_time() - self._fetched > FRESH:
            listing = await self._trust.refresh(self._transport.fetch, datetime.now(UTC))
            self._signed, self._fetched = listing.releases, trio.current_time()
        return self._signed

    async def check(self, release: Release) -> None:
        """Return if this release may still be installed; NOT_FOUND if it was withdrawn.

        A release of a URL is not listed, and stays what it is: its hash is known.
        """
        if urlsplit(release.origin).scheme:
            return
        signed = await self.signed()
        if signed is not None and all(entry.sha256 != release.sha256 for entry in signed):
            raise MachineError(
                f"version {release.version} was withdrawn",
                kind=ErrorKind.NOT_FOUND,
                remedy="select another version",
            )

    async def download(self, release: Release, file: Path) -> None:
        """Download the file of a release, continuing with what is in `file`."""
        await self._downloads.download(release, file)

    async def identify(self, url: str) -> Identified:
        """Return identity, hash and size of the file at a URL that `choose` accepted.

        The file at a URL of the network is downloaded, and deleted again.
        """
        if urlsplit(url).scheme == "file":
            return await self._worker.run(partial(identify_file, Path(unquote(urlsplit(url).path))))
        path = self._folder / f"url-{hashlib.sha256(url.encode()).hexdigest()[:16]}"
        try:
            await self._fill(url, path)
            return await self._worker.run(partial(identify_file, path))
        finally:
            self._worker.post(partial(path.unlink, missing_ok=True))

    async def _fill(self, url: str, path: Path) -> None:
        part, size = IncompleteDownload(path), 0

        async def take(data: bytes) -> None:
            nonlocal size
            at, size = size, size + len(data)
            if size > MAX_FILE:
                raise MachineError(f"{shown_url(url)} has more than {MAX_FILE >> 20} MiB", kind=ErrorKind.INVALID)
            await self._worker.run(partial(_append, part, bytes(data), at))

        async with self._web.get(url) as response:
            await read_body(shown_url(url), response, take)


def _append(part: IncompleteDownload, data: bytes, at: int) -> None:
    """Write what was received, if the disk keeps enough free space. MachineError."""
    try:
        part.begin()
        part.check_space(len(data))
        part.write(data, at)
    except OSError as error:
        raise part.explain(error) from error


def identify_file(path: Path) -> Identified:
    """Return identity, hash and size of a release file. Blocks. Raises MachineError with its path, and OSError."""
    header = read_identity(path)
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while data := file.read(_CHUNK):
            size += len(data)
            digest.update(data)
        with suppress(OSError):
            forget_cached(file.fileno())
    return Identified(header, digest.hexdigest(), size)
