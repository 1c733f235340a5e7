"""Which store of files: a folder, or a bucket."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from cloud.blobs import Blobs
from cloud.blobs.folder import FolderBlobs
from cloud.blobs.s3_place import Place


def store_of(files: Path | Place) -> AbstractAsyncContextManager[Blobs]:
    """The store at that place, usable while the context is open. What a bucket needs is imported only for one."""
    if isinstance(files, Path):
        return FolderBlobs(files).opened()
    from cloud.blobs.s3 import S3Blobs

    return S3Blobs(files).opened()
