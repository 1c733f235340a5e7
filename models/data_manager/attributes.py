"""Attributes of `data_manager`. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from schema import Attributes


class CaptureControlSensor(msgspec.Struct, kw_only=True, frozen=True):
    """The sensor that controls what is captured."""

    name: str  # name of the sensor
    key: str  # reading that contains the list of overrides


class DataManagerConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the data manager. Upload settings have no effect without a cloud."""

    NOT_BUILT: ClassVar[Mapping[str, str]] = {"mongo_capture_config": "writing captured readings to MongoDB"}

    capture_dir: str = ""  # folder of captured files; if empty, `capture` in the machine's home. May begin with ~
    tags: tuple[str, ...] = ()  # tags of all captured data
    capture_disabled: bool = False  # disable capturing
    maximum_capture_file_size_bytes: int = 262144  # a file is closed before it exceeds this size (bytes)
    disk_usage_deletion_threshold: float = 0.9  # used share of the disk (0 to 1) from which captured files are deleted
    capture_dir_deletion_threshold: float = 0.5  # ... if captured files occupy at least this share of the disk (0 to 1)
    delete_every_nth_when_disk_full: int = 5  # when the disk is full, every n-th closed file is deleted, every 30 s
    capture_control_sensor: CaptureControlSensor | None = None  # sensor that controls what is captured
    sync_disabled: bool = False  # disable upload to the cloud
    sync_interval_mins: float = 0.1  # minutes between uploads to the cloud; 0 means 0.1
    selective_syncer_name: str = ""  # name of a sensor; data is uploaded only while its reading should_sync is true
    additional_sync_paths: tuple[str, ...] = ()  # folders whose files are uploaded to the cloud, then deleted
    file_last_modified_millis: int = 10000  # milliseconds without a change before a file in these folders is uploaded
    maximum_num_sync_threads: int = 0  # number of files uploaded at the same time; 0: half the number of cores

    @property
    def sync_interval(self) -> float:
        """Seconds between uploads, with the default applied."""
        return 60 * (self.sync_interval_mins or 0.1)

    def __post_init__(self) -> None:
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, (int, float)) and not isinstance(value, bool) and not value >= 0:
                raise ValueError(f"{name} is {value:g}; write 0 or more")
        for name in ("disk_usage_deletion_threshold", "capture_dir_deletion_threshold"):
            if getattr(self, name) > 1:
                raise ValueError(f"{name} is {getattr(self, name):g}; write a share of the disk from 0 to 1")
        for name in ("maximum_capture_file_size_bytes", "delete_every_nth_when_disk_full"):
            if getattr(self, name) == 0:
                raise ValueError(f"{name} is 0; write 1 or more")
