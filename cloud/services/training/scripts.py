"""Training scripts of the registry: unpacked without trust in their archive. Blocking, for a worker thread."""

from __future__ import annotations

import shutil
import tarfile
from pathlib import Path, PurePosixPath
from typing import Final

from schema.errors import ErrorKind, MachineError

MODULE: Final = "model.training"  # module of every published script
MAX_FILES: Final = 10_000
MAX_BYTES: Final = 1024**3  # of the content; an archive of zeros is small


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a script and return the folder that contains `model/training.py`; PRECONDITION if there is none.

    Only regular files and folders are unpacked, and only inside `folder`. PRECONDITION for other archives.
    """
    folder.mkdir(parents=True)
    try:
        with tarfile.open(archive, "r:*") as tar:
            size = count = 0
            for member in tar:
                size, count = size + member.size, count + 1
                if size > MAX_BYTES or count > MAX_FILES:
                    raise _unusable(f"it contains more than {MAX_BYTES // 1024**2} MiB or {MAX_FILES} files")
                if not (member.isfile() or member.isdir()):
                    raise _unusable(f"{member.name[:200]!r} is neither a file nor a folder")
                path = PurePosixPath(member.name)
                if path.is_absolute() or ".." in path.parts:
                    raise _unusable(f"{member.name[:200]!r} is outside of it")
                target = folder.joinpath(path)
                (target if member.isdir() else target.parent).mkdir(parents=True, exist_ok=True)
                content = tar.extractfile(member)
                if content is not None:
                    with content, target.open("wb") as file:  # no link was ever made here that it could follow
                        shutil.copyfileobj(content, file)
    except (tarfile.TarError, EOFError, OSError, ValueError) as error:
        raise _unusable(str(error)) from error
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
