"""Data manager `builtin`: captures to files on this computer, and uploads them if there is a cloud."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import trio

from engine import Attributes, Context, DataManager, Extra, MimeType, Started, home, model
from nursery_graph import current_node
from runtime.parts.data.files.disk import Disk, ThreadDisk
from runtime.parts.data.files.encode import EXTENSIONS
from runtime.parts.data.files.names import stem_of
from runtime.parts.data.files.retention import Limits
from runtime.parts.data.files.store import Store
from runtime.parts.data.gate import DISABLED, NO_CLOUD, OPEN, UploadGate, waiting
from schema import ErrorKind, MachineError

if TYPE_CHECKING:
    from runtime.parts.data.sync.sync import Syncer
from models.data_manager import DataManagerConfig

MEDIA_TYPES: Final[Mapping[MimeType, str]] = {
    MimeType.IMAGE_JPEG: "image/jpeg",
    MimeType.IMAGE_PNG: "image/png",
    MimeType.APPLICATION_PCD: "pointcloud/pcd",
    MimeType.VIDEO_MP4: "video/mp4",
}


@model("rdk:builtin:builtin")
class BuiltinDataManager(DataManager):
    """Manages one capture folder. The entries of resources configure what is captured."""

    Config: ClassVar[type[Attributes]] = DataManagerConfig
    DISK: ClassVar[Callable[[str], Disk]] = ThreadDisk

    def __init__(self, context: Context) -> None:
        super().__init__(context)
        config: DataManagerConfig = self.attributes
        folder = Path(config.capture_dir).expanduser() if config.capture_dir else home(os.environ) / "capture"
        self.store = Store(
            folder,
            type(self).DISK(f"capture folder {folder}"),
            self.log,
            largest=config.maximum_capture_file_size_bytes,
            tags=config.tags,
            report=self._report,
        )
        selective = config.selective_syncer_name
        self.syncer: Syncer | None = None  # set while a cloud is configured
        self.gate = DISABLED if config.sync_disabled else waiting(selective) if selective else OPEN

    async def run(self, *, task_status: Started) -> None:
        """Keep the folder until cancelled. Raises MachineError if the folder cannot be written to."""
        config: DataManagerConfig = self.attributes
        self._node = current_node()
        async with self.store.disk.opened():
            await self.store.prepare()
            task_status.started()
            if config.capture_disabled:
                await trio.sleep_forever()
            await self.store.keep_room(
                Limits(
                    config.disk_usage_deletion_threshold,
                    config.capture_dir_deletion_threshold,
                    config.delete_every_nth_when_disk_full,
                )
            )

    def _report(self, reason: str) -> None:
        if reason:
            self._node.unhealthy(reason)
        else:
            self._node.healthy()

    async def gate_changed(self, gate: UploadGate) -> None:
        """Set whether data may be uploaded. When the gate opens, start an upload; without a cloud, close all files."""
        before, self.gate = self.gate, gate
        if gate != before:
            self.log.info(
                "captured data is uploaded" if gate.is_open else "captured data is not uploaded", reason=gate.reason
            )
        if gate.is_open and not before.is_open:
            if self.syncer is not None:
                self.syncer.wake()
            else:
                await self.store.flush()

    async def sync(self, *, extra: Extra = None) -> None:
        """Upload everything captured so far, regardless of sync_disabled and the selective sensor.

        Return when the cloud has everything. Raises MachineError: UNAVAILABLE if something has to wait. Without a
        cloud, close all files so that they can be exported, and raise PRECONDITION.
        """
        if self.syncer is not None:
            await self.syncer.sync()
            return
        await self.store.flush()
        raise MachineError(
            f"this machine has no cloud to sync with; everything captured so far is in closed files in "
            f"{self.store.folder}",
            kind=ErrorKind.PRECONDITION,
            remedy="export the files with `machine data export`",
        )

    async def upload_binary_data_to_datasets(
        self,
        binary_data: bytes,
        tags: Sequence[str] = (),
        dataset_ids: Sequence[str] = (),
        mime_type: MimeType = MimeType.UNSPECIFIED,
        *,
        extra: Extra = None,
    ) -> None:
        """Upload the bytes, and return when the cloud has them. They are not stored on this machine.

        Raises MachineError: UNAVAILABLE if the cloud cannot be reached, PRECONDITION without a cloud.
        """
        if self.syncer is not None:
            media = MEDIA_TYPES.get(mime_type, "")
            extension, moment = EXTENSIONS.get(media, ""), self.store.clock()
            uploader, name = self.syncer.uploader, f"{stem_of(moment // 1000)}{extension}"
            metadata = uploader.binary_metadata(self.name.short, name, media, extension, tags, dataset_ids)
            await uploader.binary(metadata, binary_data, moment)
            return
        raise MachineError(
            f"this machine has no cloud: the {len(binary_data)} bytes were neither uploaded nor stored",
            kind=ErrorKind.PRECONDITION,
            remedy="keep them, and upload them when the machine is connected to a cloud",
        )

    async def get_status(self) -> Mapping[str, Any]:
        """Return the status of capture, recovery, deletion and upload."""
        gate = {"open": self.gate.is_open, "reason": self.gate.reason}
        sync = NO_CLOUD if self.syncer is None else self.syncer.status()
        return {**self.store.status(), "sync": sync, "sync_gate": gate}
