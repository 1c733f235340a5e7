"""The folder of running training jobs.

A cloud removes everything in it that does not belong to its own jobs, so each cloud has a separate one. The file
`machine-cloud.json` in the folder contains the id of its cloud, like that of a file store. Replicas have the same
database, therefore the same id, and can share a folder.
"""

from __future__ import annotations

import os
from functools import partial
from pathlib import Path
from typing import Final

from cloud.blobs import MOST_STAMP, STAMP
from cloud.blobs.folder import write_stamp
from cloud.commands.options import Options
from cloud.domain.upkeep.identity import Identity, of, parsed, written
from cloud.store.sql import Store
from schema import ErrorKind, MachineError
from support import Worker
from support.files import private

_SAFE: Final = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC  # a program on a Ray node can replace files by pipes


def folder_of(options: Options) -> Path:
    """Return the folder of running jobs."""
    if options.training_folder is None:
        return options.data / "training"
    return options.training_folder / "machine-training"  # everything else in it is removed


async def claim(options: Options, store: Store) -> None:
    """Make the folder of running jobs, and mark it as that of this cloud.

    The database must have an id, see `cloud.domain.upkeep.identity.bind`. Raise MachineError with a remedy if the
    folder belongs to another cloud (PRECONDITION) or cannot be used (UNAVAILABLE).
    """
    identity = await store.read(of)
    assert identity is not None
    worker = Worker("folder of training jobs")
    async with worker.opened():
        await worker.run(partial(mark, folder_of(options), identity.cloud))


def mark(folder: Path, cloud: str) -> None:
    """Do what `claim` does for the cloud with this id. Blocking.

    If several clouds start at once with a new folder, it belongs to the first, also after a crash at any time.
    """
    try:
        folder.mkdir(mode=private.FOLDER, parents=True, exist_ok=True)
        if not (content := _read(folder)):
            write_stamp(folder, written(Identity(cloud)), replace=False)
            content = _read(folder)
    except OSError as error:
        raise MachineError(
            f"the folder of training jobs {folder} cannot be used: {error.strerror or error}",
            kind=ErrorKind.UNAVAILABLE,
            remedy="check that its disk is mounted and has free space, and that this user may write to it",
        ) from error
    try:
        owner = parsed(content).cloud
    except ValueError as error:
        raise MachineError(
            f"{folder / STAMP} is not valid: {error}",
            kind=ErrorKind.PRECONDITION,
            remedy=f"if no other cloud uses {folder}, delete it: it contains only files of unfinished training jobs",
        ) from None
    if owner != cloud:
        raise MachineError(
            f"the folder of training jobs {folder} belongs to the cloud {owner}, and this is the cloud {cloud}",
            kind=ErrorKind.PRECONDITION,
            remedy="set --training-folder to a folder that no other cloud uses; if the other cloud no longer exists, "
            f"for example because its database was replaced by a new one, delete {folder}",
        )


def _read(folder: Path) -> bytes:
    """Return the content of the mark; nothing without one."""
    try:
        descriptor = os.open(folder / STAMP, os.O_RDONLY | _SAFE)
    except FileNotFoundError:
        return b""
    try:
        return os.read(descriptor, MOST_STAMP)
    finally:
        os.close(descriptor)
