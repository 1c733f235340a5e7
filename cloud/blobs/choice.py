"""Choice of the file store: a folder or a bucket."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

from cloud.blobs import Blobs
from cloud.blobs.folder import FolderBlobs
from cloud.blobs.s3_location import BucketLocation


def store_of(files: Path | BucketLocation) -> AbstractAsyncContextManager[Blobs]:
    """Return a context manager for the store at that place. Dependencies for buckets are imported only if needed."""
    if isinstance(files, Path):
        return FolderBlobs(files).opened()
    from cloud.blobs.s3 import S3Blobs

    return S3Blobs(files).opened()
