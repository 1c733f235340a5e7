"""The file of the stored record, with a copy of the previous one."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Final

import structlog
import trio
from msgspec.structs import replace as with_fields

from netmgr.store.stored import InvalidStoredError, StoredNetworks, decode, encode, new_password
from support import RunBlocking
from support.files import replace_file

COPY: Final = ".previous"
DAMAGED: Final = ".damaged"

_log = structlog.get_logger("netmgr.store")


class NetworkStore:
    """The stored record in memory, and its file. `run_blocking` calls functions in a worker."""

    def __init__(self, path: Path, run_blocking: RunBlocking) -> None:
        self._path, self._run_blocking = path, run_blocking
        self._stored = StoredNetworks()
        self._lock = trio.Lock()
        self.problem = ""
        """Why the record cannot be stored; empty if it can."""

    @property
    def stored(self) -> StoredNetworks:
        """The record."""
        return self._stored

    async def load(self) -> None:
        """Read the file, or its copy. A damaged file is set aside. Missing secrets of the device are generated."""
        self._stored = await self._run_blocking(partial(load, self._path))
        if not self._stored.password or not self._stored.device_secret:
            await self.change(
                lambda stored: with_fields(
                    stored,
                    password=stored.password or new_password(),
                    device_secret=stored.device_secret or new_password(),
                )
            )

    async def change(self, function: Callable[[StoredNetworks], StoredNetworks]) -> None:
        """Change the record, and store it. If the disk fails, the change counts until the next start; see `problem`."""
        async with self._lock:
            changed = function(self._stored)
            if changed == self._stored and not self.problem:
                return
            self._stored = changed
            try:
                await self._run_blocking(partial(save, self._path, changed))
            except OSError as error:
                if not self.problem:
                    _log.error("the networks cannot be stored", error=error.strerror, path=str(self._path))
                self.problem = f"{self._path} cannot be written: {error.strerror}"
            else:
                self.problem = ""


def save(path: Path, stored: StoredNetworks) -> None:
    """Replace the file atomically and durably, readable only by its owner; the former content is the copy. Blocks.

    Raises OSError; then the former record is in the file or in the copy.
    """
    try:
        previous = path.read_bytes()
        decode(previous)
    except (OSError, InvalidStoredError):
        pass
    else:
        replace_file(path.with_name(path.name + COPY), previous)
    replace_file(path, encode(stored))


def load(path: Path) -> StoredNetworks:
    """Return the record in the file or its copy; an empty one if none can be used, which is logged. Blocks."""
    for place in (path, path.with_name(path.name + COPY)):
        try:
            return decode(place.read_bytes())
        except FileNotFoundError:
            continue
        except OSError as error:
            _log.error("the stored networks cannot be read", path=str(place), error=error.strerror)
        except InvalidStoredError as error:
            damaged = place.with_name(place.name + DAMAGED)
            _log.error(
                "the stored networks cannot be used", path=str(place), error=str(error), kept_as=str(damaged),
                remedy="enter the networks again, or add them to the configuration in the cloud",
            )  # fmt: skip
            try:
                place.replace(damaged)
            except OSError as failure:
                _log.error("the damaged file cannot be renamed", path=str(place), error=failure.strerror)
    return StoredNetworks()
