"""Data manager: captures data from other resources and uploads it."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

from engine.resource import Extra, Service
from schema import API


class MimeType(IntEnum):
    """Media types, by their numbers in the API."""

    UNSPECIFIED = 0
    IMAGE_JPEG = 1
    IMAGE_PNG = 2
    APPLICATION_PCD = 3
    VIDEO_MP4 = 4


class DataManager(Service):
    """A service that captures data from resources and uploads it to the cloud."""

    API: ClassVar[API] = API("rdk", "service", "data_manager")

    async def sync(self, *, extra: Extra = None) -> None:
        """Upload all data captured so far, now."""
        raise NotImplementedError

    async def upload_binary_data_to_datasets(
        self,
        binary_data: bytes,
        tags: Sequence[str] = (),
        dataset_ids: Sequence[str] = (),
        mime_type: MimeType = MimeType.UNSPECIFIED,
        *,
        extra: Extra = None,
    ) -> None:
        """Upload `binary_data` with tags and add it to datasets."""
        raise NotImplementedError
