"""Training scripts of the registry: unpacked without trust in their archive, in a process of its own."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Final

from schema import ErrorKind, MachineError
from support import Worker
from support.foreign import BadArchiveError, Bounds, unpack_apart

MODULE: Final = "model.training"  # module of every published script
BOUNDS: Final = Bounds(
    entries=10_000,
    size=1024**3,  # an archive of zeros is small
    links=False,
    cpu=60,
    wall=300.0,
)


async def unpack(archive: Path, folder: Path, worker: Worker) -> Path:
    """Unpack a script into a new folder, and return the folder that contains `model/training.py`.

    Only regular files and folders are unpacked. PRECONDITION for other archives, for one that exceeds BOUNDS, and if
    there is no such file; OSError. The caller removes the folder, also after an error.
    """
    try:
        await unpack_apart(archive, folder, BOUNDS)
    except BadArchiveError as error:
        raise _unusable(str(error)) from None
    return await worker.run(partial(_program_in, folder))


def _program_in(folder: Path) -> Path:
    candidates = [path for path in (folder, *sorted(folder.iterdir())) if (path / "model" / "training.py").is_file()]
    if not candidates:
        raise _unusable("it has no model/training.py")
    return candidates[0]


def _unusable(reason: str) -> MachineError:
    return MachineError(
        f"the archive of the training script cannot be used: {reason}",
        kind=ErrorKind.PRECONDITION,
        remedy="upload a .tar.gz with model/training.py",
    )
