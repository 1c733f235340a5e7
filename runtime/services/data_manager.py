"""Data manager: keeps what other resources say."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import ClassVar

from runtime.resource import Extra, Service
from schema.names import API


class MimeType(IntEnum):
    """Media types that the API names by number."""

    UNSPECIFIED = 0
    IMAGE_JPEG = 1
    IMAGE_PNG = 2
    APPLICATION_PCD = 3
    VIDEO_MP4 = 4


class DataManager(Service):
    """Something that captures data of resources and hands it on."""

    API: ClassVar[API] = API("rdk", "service", "data_manager")

    async def sync(self, *, extra: Extra = None) -> None:
        """Hand everything that was captured so far to the cloud, now."""
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
        """Hand `binary_data` to the cloud, into the datasets named."""
        raise NotImplementedError
