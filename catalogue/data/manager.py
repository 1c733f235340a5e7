"""Attributes that `runtime.builtin.data.manager` reads."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import msgspec

from schema.attributes import Attributes


class CaptureControlSensor(msgspec.Struct, kw_only=True, frozen=True):
    """Which sensor decides what is captured."""

    name: str  # of the sensor
    key: str  # the reading that holds the list of overrides


class DataManagerConfig(Attributes, kw_only=True, frozen=True):
    """Attributes of the data manager. What concerns the cloud has no effect without one."""

    NOT_BUILT: ClassVar[Mapping[str, str]] = {"mongo_capture_config": "writing captured readings to MongoDB"}

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
