"""Downloads of release files: from the machine's cloud, an `https://` or `http://` URL, or a file of this device."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import BinaryIO, Final
from urllib.parse import unquote, urlsplit

import trio

from agent.releases.web import Web
from agent.update.record import Release
from schema import ErrorKind, MachineError
from schema.agent import shown_url
from support import Worker
from uplink import DownloadProgress, DownloadSource, Expected, IncompleteDownload, Stopped, download
from uplink.releases import MAX_FILE

_CHUNK: Final = 1 << 20


class ReleaseDownloads:
    """Downloads release files. `worker` must be open; use one of its own, because files are large."""

    def __init__(self, web: Web, worker: Worker) -> None:
        self._web, self._worker = web, worker

    async def download(self, release: Release, file: Path, progress: DownloadProgress = lambda count: None) -> None:
        """Download a release into `file`. When this returns, the file is complete and its SHA-256 is the release's.

        Call it for URLs that `choose` has accepted. It continues with what is in `file`, also after a power cut; what
        was received stays if it is cancelled. The caller limits the time. `progress` receives the number of bytes.

        Raises MachineError. INVALID: the content is too long or another one, or the origin is not possible. NOT_FOUND,
        PERMISSION, UNAUTHENTICATED: so says the server, or the redirect is not secure. EXHAUSTED: the disk is full.
        PRECONDITION: the disk cannot be written. UNAVAILABLE: everything else. After INVALID and EXHAUSTED nothing is
        left on the disk.
        """
        part, expected = IncompleteDownload(file), Expected(release.sha256, release.size, MAX_FILE)
        if urlsplit(release.origin).scheme == "file":
            await self._copy(Path(unquote(urlsplit(release.origin).path)), part, expected, progress)
            return
        etag = release.sha256 if self._web.is_cloud(release.origin) else ""
        source = DownloadSource(shown_url(release.origin), partial(self._web.get, release.origin), etag)
        await download(source, part, self._worker, expected, progress=progress)

    async def _copy(self, path: Path, part: IncompleteDownload, expected: Expected, progress: DownloadProgress) -> None:
        finished = trio.Event()
        try:
            await self._worker.run(partial(_copy, path, part, expected, finished.is_set))
        finally:
            finished.set()
        progress(await self._worker.run(part.begin))


def _copy(path: Path, part: IncompleteDownload, expected: Expected, stopped: Callable[[], bool]) -> None:
    """Copy a local file. Blocks. Raises MachineError; Stopped soon after `stopped` returns true."""
    try:
        part.begin()
        part.remove()
        with _opened(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > expected.most or size != (expected.size or size):
                raise _another(path, f"it has {size} bytes, not {expected.size or f'at most {expected.limit}'}")
            part.check_space(size)
            digest = _fill(part, file, size, stopped)
    except OSError as error:
        raise part.explain(error) from error
    if digest != expected.sha256:
        part.remove()
        raise _another(path, f"its SHA-256 is {digest}, not {expected.sha256}")


_NONBLOCK: Final = getattr(os, "O_NONBLOCK", 0)


def _opened(path: Path) -> BinaryIO:
    """Open a regular file; MachineError."""
    try:
        # Opening a named pipe without O_NONBLOCK would wait for its writer; Windows has none among its files.
        file: BinaryIO = open(os.open(path, os.O_RDONLY | _NONBLOCK), "rb")  # noqa: SIM115 - returned
    except FileNotFoundError:
        raise MachineError(f"{path} does not exist", kind=ErrorKind.NOT_FOUND) from None
    except IsADirectoryError:
        raise MachineError(f"{path} is a folder", kind=ErrorKind.INVALID) from None
    except OSError as error:
        raise MachineError(f"{path} cannot be read: {error.strerror}", kind=ErrorKind.PRECONDITION) from None
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise MachineError(f"{path} is not a regular file", kind=ErrorKind.INVALID)
    return file


def _fill(part: IncompleteDownload, file: BinaryIO, size: int, stopped: Callable[[], bool]) -> str:
    """Copy at most `size` bytes, and return their SHA-256."""
    digest, at = hashlib.sha256(), 0
    while data := file.read(min(_CHUNK, size - at)):
        if stopped():
            raise Stopped
        part.write(data, at)
        digest.update(data)
        at += len(data)
    return digest.hexdigest()


def _another(path: Path, why: str) -> MachineError:
    return MachineError(
        f"{path} is not the file of this release: {why}",
        kind=ErrorKind.INVALID,
        remedy="name the file of this release",
    )
