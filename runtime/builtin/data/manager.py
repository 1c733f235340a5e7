"""Data manager `builtin`: captures to files on this computer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final

import msgspec
import trio

from nursery_graph import current_node
from runtime.data.disk import Disk, ThreadDisk
from runtime.data.encode import EXTENSIONS
from runtime.data.gate import DISABLED, NO_CLOUD, OPEN, Gate, waiting
from runtime.data.names import stem_of
from runtime.data.retention import Limits
from runtime.data.store import Store
from runtime.modules.command import home
from runtime.resource import Attributes, Context, Extra, Started
from runtime.services.data_manager import DataManager, MimeType
from schema.errors import ErrorKind, MachineError

if TYPE_CHECKING:
    from runtime.data.sync import Syncer

MEDIA_TYPES: Final[Mapping[MimeType, str]] = {
    MimeType.IMAGE_JPEG: "image/jpeg",
    MimeType.IMAGE_PNG: "image/png",
    MimeType.APPLICATION_PCD: "pointcloud/pcd",
    MimeType.VIDEO_MP4: "video/mp4",
}


class CaptureControlSensor(msgspec.Struct, kw_only=True, frozen=True):
    """Which sensor decides what is captured."""

    name: str  # of the sensor
    key: str  # the reading that holds the list of overrides


class DataManagerConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the data manager. What concerns the cloud has no effect without one."""

    capture_dir: str = ""  # where files are kept; `capture` in the machine's home if empty. May begin with ~
    tags: tuple[str, ...] = ()  # of everything that is captured
    capture_disabled: bool = False  # nothing is captured
    maximum_capture_file_size_bytes: int = 262144  # a file is closed before it grows larger (bytes)
    disk_usage_deletion_threshold: float = 0.9  # part of the disk (0 to 1) from which on captured files are deleted
    capture_dir_deletion_threshold: float = 0.5  # ... if captured files are at least this part of the disk (0 to 1)
    delete_every_nth_when_disk_full: int = 5  # then each n-th closed file is deleted, every 30 s
    capture_control_sensor: CaptureControlSensor | None = None  # a sensor that changes what is captured
    sync_disabled: bool = False  # nothing goes to the cloud
    sync_interval_mins: float = 0.1  # minutes between two uploads to the cloud; 0 means 0.1
    selective_syncer_name: str = ""  # a sensor; data leaves while its reading should_sync is true
    additional_sync_paths: tuple[str, ...] = ()  # folders whose files go to the cloud and are deleted then
    file_last_modified_millis: int = 10000  # milliseconds that a file in them must have been left alone
    maximum_num_sync_threads: int = 0  # files that go to the cloud at one time; 0: half as many as there are cores

    @property
    def sync_interval(self) -> float:
        """Seconds between two hand-overs; 0 minutes mean the default."""
        return 60 * (self.sync_interval_mins or 0.1)

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not value >= 0:
                raise ValueError(f"{name} is {value:g}; write 0 or more")
        for name in ("disk_usage_deletion_threshold", "capture_dir_deletion_threshold"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} is {getattr(self, name):g}; write a part of the disk from 0 to 1")
        for name in ("maximum_capture_file_size_bytes", "delete_every_nth_when_disk_full"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} is 0; write 1 or more")


class BuiltinDataManager(DataManager):
    """Keeps one capture folder. What is captured is said by the entries of resources, not here."""

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
        self.syncer: Syncer | None = None  # on a machine with a cloud
        self.gate = DISABLED if config.sync_disabled else waiting(selective) if selective else OPEN

    async def run(self, *, task_status: Started) -> None:
        """Fails, to be tried again, while the folder cannot be written to."""
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

    async def gate_changed(self, gate: Gate) -> None:
        """Hear whether data may leave; when it begins to be so, all files are closed, so that they can be taken."""
        before, self.gate = self.gate, gate
        if gate != before:
            self.log.info("captured data may leave" if gate.is_open else "captured data stays", reason=gate.reason)
        if gate.is_open and not before.is_open:
            if self.syncer is not None:
                self.syncer.wake()
            else:
                await self.store.flush()

    async def sync(self, *, extra: Extra = None) -> None:
        """Bring everything captured so far to the cloud, whatever sync_disabled and the selective sensor say.

        Returns when the cloud has it; UNAVAILABLE if something has to wait. Without a cloud all files are closed, so
        that they can be taken; then PRECONDITION.
        """
        if self.syncer is not None:
            await self.syncer.sync()
            return
        await self.store.flush()
        raise MachineError(
            f"this machine has no cloud to sync with; everything captured so far is in closed files in"
            f" {self.store.folder}, nothing is lost",
            kind=ErrorKind.PRECONDITION,
            remedy="take it from there with `machine data export`",
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
        """Returns when the cloud has it. UNAVAILABLE if it cannot be reached, PRECONDITION without: it is not kept."""
        if self.syncer is not None:
            media = MEDIA_TYPES.get(mime_type, "")
            extension, moment = EXTENSIONS.get(media, ""), self.store.clock()
            uploader, name = self.syncer.uploader, f"{stem_of(moment // 1000)}{extension}"
            metadata = uploader.binary_metadata(self.name.short, name, media, extension, tags, dataset_ids)
            await uploader.binary(metadata, binary_data, moment)
            return
        raise MachineError(
            f"this machine has no cloud: the {len(binary_data)} bytes were not uploaded and are not kept here",
            kind=ErrorKind.PRECONDITION,
            remedy="keep them, and upload them when the machine is connected to a cloud",
        )

    async def get_status(self) -> Mapping[str, Any]:
        """What is captured, what was recovered and deleted, what was uploaded and what waits, and why."""
        gate = {"open": self.gate.is_open, "reason": self.gate.reason}
        sync = NO_CLOUD if self.syncer is None else self.syncer.status()
        return {**self.store.status(), "sync": sync, "sync_gate": gate}
