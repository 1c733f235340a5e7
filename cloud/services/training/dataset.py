"""Files of a job's dataset on disk: the pictures, and `dataset.jsonl` in the published form of an export."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import IO, Any, Final

import msgspec

from cloud.blobs import Blobs
from cloud.domain.training.jobs import NewJob
from cloud.domain.training.pictures import StoredPicture
from support import Worker

DESCRIPTION: Final = "dataset.jsonl"
LABELS: Final = "labels.json"  # the labels to train on, a JSON list
_EXTENSION: Final = re.compile(r"\.[A-Za-z0-9]{1,8}")


def name_of(picture: StoredPicture) -> str:
    """Return the file name of a picture: its id, and its extension if that is an ordinary one."""
    return picture.picture.id + (picture.extension if _EXTENSION.fullmatch(picture.extension) else "")


def line_of(picture: StoredPicture, folder: Path, organization: str) -> dict[str, Any]:
    """Return the line of `dataset.jsonl` about a picture."""
    return {
        "image_path": str(folder / name_of(picture)),
        "binary_data_id": picture.picture.id,
        "organization_id": organization,
        **picture.location,
        "timestamp": picture.captured.isoformat(),
        "classification_annotations": [{"annotation_label": label} for label in sorted(picture.picture.labels)],
        "bounding_box_annotations": [
            {
                "annotation_label": box.label,
                "x_min_normalized": box.x_min,
                "x_max_normalized": box.x_max,
                "y_min_normalized": box.y_min,
                "y_max_normalized": box.y_max,
            }
            for box in picture.picture.boxes
        ],
    }


async def write(worker: Worker, blobs: Blobs, pictures: Sequence[StoredPicture], folder: Path, task: NewJob) -> None:
    """Write the files, which may exist from an earlier attempt. Raises MachineError or OSError."""
    await worker.run(partial(folder.mkdir, parents=True, exist_ok=True))
    for picture in pictures:
        await download(worker, blobs, picture.blob, picture.size, folder / name_of(picture))
    lines = partial(_described, pictures, folder, task.organization_id)
    await worker.run(lambda: (folder / DESCRIPTION).write_bytes(lines()))
    await worker.run(lambda: (folder / LABELS).write_bytes(msgspec.json.encode(task.labels)))


def _described(pictures: Sequence[StoredPicture], folder: Path, organization: str) -> bytes:
    return b"".join(msgspec.json.encode(line_of(picture, folder, organization)) + b"\n" for picture in pictures)


async def download(worker: Worker, blobs: Blobs, key: str, size: int, path: Path) -> None:
    """Write a blob to a file, unless it is there with this size."""
    if await worker.run(partial(_has, path, size)):
        return
    file: IO[bytes] = await worker.run(lambda: path.open("wb"))
    try:
        async with aclosing(blobs.read(key)) as pieces:
            async for piece in pieces:
                await worker.run(partial(file.write, piece))
    finally:
        file.close()


def _has(path: Path, size: int) -> bool:
    return path.is_file() and path.stat().st_size == size
